import { beforeAll, expect, test } from "bun:test";
import { createPages } from "./browser.ts";

const { own, look, report } = await createPages();
const base = own.path;
const find = (q: string) => look("viewer", `${base}/search?${new URLSearchParams({ q })}`);

const ids: Record<string, string> = {};
beforeAll(async () => {
  const send = async (key: string, parameters: Record<string, string>) =>
    (ids[key] = (await report("p", { execution_key: key, ...parameters }, "computes the total <b>")).body.executionId);
  await send("412", { branch: "main", commit: "1a2b3c4d5e6f7a8b9c0d" });
  await send("413", { branch: "feature/cart", commit: "9f8e7d6c5b4a39281706", pull_request: "88" });
  await send("nightly", { branch: "feature/cart-2", commit: "9f8e7d0000000000000f" });
  await own.post("/bug-reports", { title: "the total is wrong" });
});

test("finds tests by name and file, and bugs by title, each with the way to its whole list", async () => {
  const { words, html } = await find("TOTAL");
  expect(words).toContain("unit › computes the total <b>");
  expect(words).toContain("Bug 1 the total is wrong");
  expect(html).toContain(`href="${base}/tests?q=TOTAL"`);
  expect(html).toContain(`href="${base}/bugs?q=is%3Aany+TOTAL&amp;sort=newest"`);
  // A text, whatever it would be in a list.
  expect((await find("is:flaky")).words).toContain("No results for “is:flaky”");
  expect((await find("unit.test.ts")).words).toContain("computes the total");
});

test("finds executions by key, branch, pull request and the beginning of a commit", async () => {
  expect((await find("nightly")).words).toContain("nightly feature/cart-2");
  const cart = (await find("cart")).words;
  expect([cart.includes("#413"), cart.includes("nightly"), cart.includes("#412")]).toEqual([true, true, false]);
  expect((await find("88")).words).toContain("#413");
  const some = (await find("9f8e7d")).words;
  expect([some.includes("#413"), some.includes("nightly"), some.includes("#412")]).toEqual([true, true, false]);
});

test("goes straight to what is named exactly", async () => {
  const to = async (q: string) => (await find(q)).location;
  expect(await to("1a2b3c4d5e6f7a8b9c0d")).toBe(`${base}/executions/${ids["412"]}`);
  expect(await to(" 1A2B3C4 ")).toBe(`${base}/executions/${ids["412"]}`);
  expect(await to("#412")).toBe(`${base}/executions/${ids["412"]}`);
  const [{ id }] = await own.list("/bug-reports");
  expect(await to("bug 1")).toBe(`${base}/bugs/${id}`);
  expect(await to("#1")).toBe(`${base}/bugs/${id}`);
  // A number alone may be anything: it is listed.
  expect(await to("412")).toBeNull();
  expect((await find("1")).words).toContain("Bug 1 the total is wrong");
  // One of several is nobody's to choose.
  await report("p", { execution_key: "413", branch: "other", commit: "0123456789" });
  const several = await find("#413");
  expect([several.location, several.words.match(/#413/g)!.length >= 2]).toEqual([null, true]);
});

test("says so where nothing is found or asked for, and shows text as text", async () => {
  expect((await find("no such thing")).words).toContain("No results for “no such thing”");
  expect((await find("")).words).toContain("Search");
  const { html } = await find(`"><script>alert(1)</script>`);
  expect(html).not.toContain("<script>alert");
  expect((await find("total")).html).toContain("computes the total &lt;b&gt;");
  for (const q of ["%", "_", "\\", "'", "#", "bug", "#".repeat(200), "g".repeat(200)])
    expect([q, (await find(q)).status]).toEqual([q, 200]);
  expect((await find("x".repeat(201))).status).toBe(400);
});
