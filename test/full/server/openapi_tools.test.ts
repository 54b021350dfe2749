/** What the linters of others say of the OpenAPI document: Spectral and Redocly, from the npm registry. */

import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { OPENAPI_FILE } from "../../../src/server/openapi.ts";
import { createPlace, readOutput } from "../../places.ts";

const isReachable = Bun.spawnSync(["npm", "ping", "--fetch-retries=0", "--fetch-timeout=10000"]).success;
if (!isReachable) console.warn("The npm registry cannot be reached: Spectral and Redocly are not asked");

const folder = createPlace("openapi-tools");
const run = (...command: string[]) =>
  readOutput(
    Bun.spawn(command, {
      ...{ cwd: folder, stdout: "pipe", stderr: "pipe" },
      env: {
        PATH: process.env["PATH"]!,
        HOME: folder,
        REDOCLY_TELEMETRY: "off",
        REDOCLY_SUPPRESS_UPDATE_NOTICE: "true",
      },
    }),
  );

/** OpenAPI 3.1 lets a key have roles, which this rule only knows of OAuth. */
const RULES = `extends: ["spectral:oas"]\nrules: { oas3-operation-security-defined: off }\n`;
/** The owner of Assay has not chosen a licence, so there is no address of one. */
const REDOCLY = `extends: [recommended]\nrules: { info-license-strict: off }\n`;

test.skipIf(!isReachable)(
  "Spectral and Redocly find nothing wrong with the document",
  async () => {
    writeFileSync(join(folder, "package.json"), "{}");
    writeFileSync(join(folder, ".spectral.yaml"), RULES);
    writeFileSync(join(folder, "redocly.yaml"), REDOCLY);
    const packages = ["@stoplight/spectral-cli@6.16.3", "@redocly/cli@2.77.0"];
    expect(await run("npm", "install", "--no-audit", "--no-fund", ...packages)).toMatchObject({ code: 0 });
    expect(await run("npx", "--no-install", "spectral", "lint", "--fail-severity=warn", OPENAPI_FILE)).toMatchObject({
      code: 0,
      output: expect.stringContaining("No results with a severity of 'warn' or higher found"),
    });
    const redocly = await run("npx", "--no-install", "redocly", "lint", "--format=json", OPENAPI_FILE);
    expect([redocly.code, JSON.parse(redocly.output).problems]).toEqual([0, []]);
  },
  180_000,
);
