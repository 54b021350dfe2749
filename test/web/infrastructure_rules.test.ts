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
});
