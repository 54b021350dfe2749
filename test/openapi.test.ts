import { expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { ROUTES } from "../src/app.ts";
import { createOpenapi, OPENAPI_FILE } from "../src/openapi.ts";

const stored = await Bun.file(OPENAPI_FILE).json();

test("src/openapi.json is what the routes make of it: run `bun run openapi` after changing one", () => {
  expect(stored).toEqual(JSON.parse(JSON.stringify(createOpenapi())));
});

test("the document is valid OpenAPI 3.1", async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(stored));
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
});

test("every route is in it with its parameters", () => {
  for (const { method, path, pathParameters, query } of ROUTES) {
    const operation = stored.paths[path.replace(/:(\w+)/g, "{$1}")][method.toLowerCase()];
    const names = operation.parameters.flatMap(({ name }: { name?: string }) => name ?? []);
    expect(names).toEqual([...Object.keys(pathParameters.entries), ...Object.keys(query.entries)]);
  }
});
