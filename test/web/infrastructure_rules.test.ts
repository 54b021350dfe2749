/** Infrastructure rules in the dashboard: created, tried before they are saved, changed, deleted. */

import { describe, expect, test } from "bun:test";
import { junit } from "../harness.ts";
import { createPages, valueOf } from "./browser.ts";

const { acme, ask, look, fill, own } = await createPages();
const base = `/teams/${acme.team}/infrastructure-rules`;
const FIELDS = { name: "Registry", pattern: "econnrefused", url: "", do: "save" };
const rules = async () => (await ask(`GET ${base}?limit=100`, { key: acme.teamKey })).body.data;

async function create(fields: object = {}): Promise<string> {
  expect((await fill("owner", base, { ...FIELDS, ...fields })).location).toBe(`${base}?notice=created`);
  return `${base}/${(await rules()).at(-1).id}`;
}

describe("infrastructure rules", () => {
  test("are created, changed and deleted by owners, and stand in the audit log", async () => {
    const path = await create({ url: "https://wiki.acme.example/registry" });
    const seen = await look("viewer", base);
    expect(seen.words).toContain("Registry About contains econnrefused");
    expect(seen.html).toContain('href="https://wiki.acme.example/registry"');
    const changed = { ...FIELDS, name: "Disk", pattern: "no space*quota" };
    expect((await fill("owner", path, changed)).location).toBe(`${base}?notice=saved`);
    expect((await rules()).at(-1)).toMatchObject({ name: "Disk", pattern: "no space*quota", url: null });
    expect((await look("viewer", path)).words).toContain("A failure matches if it contains no space*quota");
    expect((await fill("owner", `${path}/delete`)).location).toBe(`${base}?notice=deleted`);
    const log = (await look("owner", `/teams/${acme.team}/audit`)).words;
    for (const what of ["created", "changed", "deleted"]) expect(log).toContain(`${what} the infrastructure rule`);
  });

  test("are tried on recent failures without being saved, and the page shows the trend of those that match", async () => {
    const upload = () =>
      own.uploadReport(junit("ppf").replace(/<failure[^>]*\/>/, '<failure message="dial: ECONNREFUSED"/>'));
    await upload();
    const before = await rules();
    const tried = await fill("owner", base, { ...FIELDS, do: "try" });
    expect(tried.status).toBe(200);
    expect(tried.words).toContain("Matches 1 of 1 failure");
    expect(tried.words).toContain("Acme web: 1 of 1");
    expect(tried.words).toContain("dial: ECONNREFUSED");
    expect(valueOf(tried, "name")).toBe("Registry");
    expect(await rules()).toEqual(before);
    expect(tried.words).not.toContain("Failures of the infrastructure");
    await create();
    await upload();
    expect((await look("viewer", base)).words).toContain("Acme web 50 % 1 of 2 failures");
  });

  test("that make no sense come back as they were typed, with what is wrong", async () => {
    for (const what of ["save", "try"]) {
      const refused = await fill("owner", base, { ...FIELDS, pattern: " * ", do: what });
      expect(refused.status).toBe(400);
      expect(refused.words).toContain("Text: expected a text that is not blank and more than *");
      expect(valueOf(refused, "pattern")).toBe(" * ");
    }
  });
});
