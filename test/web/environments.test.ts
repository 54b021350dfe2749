/** Environments and their variables in the dashboard. */

import { describe, expect, test } from "bun:test";
import { createPages, nextOf, valueOf } from "./browser.ts";

const lines: string[] = [];
const { acme, ask, look, fill } = await createPages({ log: (line) => void lines.push(line) });
const base = `/teams/${acme.team}/environments`;
const key = acme.teamKey;

const FIELDS = { slug: "staging", name: "", baseUrl: "", description: "" };

async function create(slug: string): Promise<string> {
  const { location } = await fill("owner", base, { ...FIELDS, slug });
  return location!.replace(/\?.*/, "");
}

const variablesOf = async (path: string) =>
  (await ask(`GET ${path}/variables?limit=100`, { key })).body.data.map(({ name, value, secret }: any) =>
    secret ? name : `${name}=${value}`,
  );

test("an environment keeps the lines of its description, and what is emptied is nothing", async () => {
  const path = await create("text");
  await fill("owner", path, { slug: "text", name: "T", baseUrl: "https://t.example", description: "Two\r\nlines" });
  expect((await ask(`GET ${path}`, { key })).body).toMatchObject({ name: "T", description: "Two\nlines" });
  await fill("owner", path, { ...FIELDS, slug: "text" });
  expect((await ask(`GET ${path}`, { key })).body).toMatchObject({ name: "text", baseUrl: null, description: null });
  expect((await fill("owner", base, { ...FIELDS, slug: "text" })).words).toContain('an environment "text" already');
});

describe("variables", () => {
  test("are set, changed and deleted; a secret is never shown", async () => {
    const path = await create("set");
    await fill("owner", `${path}/variables`, { name: " TOKEN ", value: "line one\r\nline two-sekrit", secret: "true" });
    await fill("owner", `${path}/variables`, { name: "BROWSER", value: "firefox" });
    expect(await variablesOf(path)).toEqual(["BROWSER=firefox", "TOKEN"]);
    for (const who of ["owner", "viewer"] as const) {
      const seen = await look(who, path);
      expect(seen.words).toMatch(/TOKEN secret set on \d+ \w+ \d{4}, [\d:]+ UTC/);
      expect(seen.words).toContain("BROWSER firefox");
      expect(seen.html).not.toContain("sekrit");
    }
    await fill("owner", `${path}/variables`, { name: "BROWSER", value: "<i>safari</i>" });
    expect((await look("viewer", path)).html).toContain("&lt;i&gt;safari&lt;/i&gt;");
    expect((await fill("owner", `${path}/variables/TOKEN/delete`)).location).toBe(`${path}?notice=removed#variables`);
    expect(await variablesOf(path)).toEqual(["BROWSER=<i>safari</i>"]);
    expect(lines.filter((line) => line.includes("sekrit"))).toEqual([]);
  });

  test("are pasted as a .env file: added to the others, or in their place", async () => {
    const path = await create("paste");
    await fill("owner", `${path}/variables`, { name: "OLD", value: "1" });
    await fill("owner", `${path}/variables/paste`, { text: `# a comment\r\nA=1\r\nexport B="two\\nlines"\r\n` });
    expect(await variablesOf(path)).toEqual(["A=1", "B=two\nlines", "OLD=1"]);
    const { location } = await fill("owner", `${path}/variables/paste`, {
      text: "C=3",
      secret: "true",
      replace: "true",
    });
    expect(location).toBe(`${path}?notice=pasted#variables`);
    expect(await variablesOf(path)).toEqual(["C"]);
    expect((await look("owner", `/teams/${acme.team}/audit`)).html).not.toContain("two\\nlines");
  });

  test("that cannot be read leave everything as it was, and no secret comes back", async () => {
    const path = await create("wrong");
    await fill("owner", `${path}/variables`, { name: "KEPT", value: "1" });
    const pasted = await fill("owner", `${path}/variables/paste`, { text: "GOOD=sekrit\nnonsense", replace: "true" });
    expect(pasted.status).toBe(400);
    expect(pasted.words).toContain("line 2: expected NAME=value");
    expect(pasted.html).not.toContain("sekrit");
    const named = await fill("owner", `${path}/variables`, { name: "1X", value: "sekrit", secret: "true" });
    expect(named.words).toContain("expected a name of letters, digits and _");
    expect(valueOf(named, "name")).toBe("1X");
    expect(named.html).not.toContain("sekrit");
    expect((await fill("owner", `${path}/variables/paste`, { text: " ", replace: "true" })).status).toBe(400);
    expect(await variablesOf(path)).toEqual(["KEPT=1"]);
  });

  test("are never more than a thousand, however they come", async () => {
    const path = await create("many");
    const lines = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => `V${from + i}=x`).join("\n");
    await fill("owner", `${path}/variables/paste`, { text: lines(0, 900) });
    const refused = await fill("owner", `${path}/variables/paste`, { text: lines(900, 1_001) });
    expect(refused.words).toContain("expected at most 1000 variables, got 1001");
    expect((await ask(`GET ${path}`, { key })).body.variableCount).toBe(900);
    const first = await look("viewer", path);
    expect(first.words).toContain("900 variables");
    expect((await look("viewer", nextOf(first)!)).words).toContain("V2");
  });
});
