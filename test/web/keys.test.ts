/** The named keys of a project, in the browser. */

import { describe, expect, test } from "bun:test";
import { until } from "../harness.ts";
import { createPages, formsOf, valueOf } from "./browser.ts";

const { acme, ask, look, fill } = await createPages();
const page = `/projects/${acme.project}/settings/keys`;
const KEY = /svc_proj_[0-9A-Za-z]{44}/;

const generate = async (given: Record<string, string>) => {
  const newest = valueOf(await look("member", page), "newest")!;
  return await fill("member", page, { scope: "upload", days: "", newest, ...given });
};
const status = async (key: string) => (await ask(`GET /projects/${acme.project}`, { key })).status;

describe("named keys", () => {
  test("are generated, shown once, used, listed and revoked", async () => {
    expect((await look("member", `/projects/${acme.project}/settings`)).html).toContain(`href="${page}"`);
    const made = await generate({ name: " nightly <e2e> ", days: "30" });
    const [key] = KEY.exec(made.words)!;
    expect(await status(key)).toBe(200);
    // The use of a key is noted after the answer.
    await until(async () => (await look("member", page)).words.includes("just now"));
    const seen = await look("member", page);
    expect(seen.words).toContain(`nightly <e2e> ${key.slice(0, 17)}… upload for 30 days just now`);
    expect(seen.html).not.toContain(key);
    const revoke = formsOf(seen).find((path) => path.endsWith("/revoke"))!;
    expect((await fill("member", revoke, {})).location).toBe(`${page}?notice=revoked`);
    expect(await status(key)).toBe(401);
    expect((await look("member", page)).words).toContain("No named keys yet.");
    const audit = (await look("owner", `/teams/${acme.team}/audit`)).words;
    expect(audit).toContain(key.slice(0, 17));
    expect(audit).not.toContain(key);
  });

  test("show the line for an assistant where they read or triage", async () => {
    for (const [scope, isShown] of [
      ["read", true],
      ["triage", true],
      ["upload", false],
      ["run", false],
    ] as const) {
      const { words } = await generate({ name: scope, scope });
      expect([scope, words.includes("claude mcp add --transport http assay")]).toEqual([scope, isShown]);
    }
  });

  test("are one for a form that is sent twice", async () => {
    const newest = valueOf(await look("member", page), "newest")!;
    const fields = { name: "twice", scope: "read", days: "", newest };
    expect((await fill("member", page, fields)).words).toMatch(KEY);
    expect((await fill("member", page, fields)).location).toBe(`${page}?notice=shown`);
  });

  test("are refused with a name or a scope that is none, and what was given stays", async () => {
    for (const [given, field] of [
      [{ name: " " }, "Name"],
      [{ name: "x", scope: "runner" }, "Scope"],
      [{ name: "x", days: "0" }, "Expires after (days)"],
      [{ name: "x", days: "soon" }, "Expires after (days)"],
    ] as const) {
      const refused = await generate(given);
      expect([refused.status, refused.words]).toEqual([400, expect.stringContaining(`${field}: expected`)]);
      expect(valueOf(refused, "name")).toBe(given.name);
    }
  });
});
