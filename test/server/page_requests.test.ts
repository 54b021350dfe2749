/** What everybody may ask for without a key or a session: written once, and limited by address. */

import { afterEach, expect, test } from "bun:test";
import type { Visitor } from "../../src/request/visitors.ts";
import { createHarness, createServer } from "../harness.ts";

let visitor: Visitor | undefined;
const { url, database } = await createHarness({
  visitors: { find: async () => visitor, csrf: () => ({ token: "" }), isOwnForm: () => false },
});
afterEach(() => (visitor = undefined));

test("the documents are answered with 304 to those who have them", async () => {
  for (const path of ["/openapi.json", "/docs", "/docs/events"]) {
    const first = await fetch(`${url}${path}`);
    const etag = first.headers.get("etag")!;
    const again = await fetch(`${url}${path}`, { headers: { "If-None-Match": `"other", ${etag}` } });
    expect([path, again.status, await again.text()]).toEqual([path, 304, ""]);
    const stale = await fetch(`${url}${path}`, { headers: { "If-None-Match": '"other"' } });
    expect([path, stale.status, await stale.text()]).toEqual([path, 200, await first.text()]);
  }
});

test("a page with the name of who is signed in is not that of everybody", async () => {
  const etag = (await fetch(`${url}/docs`)).headers.get("etag")!;
  visitor = {
    accountId: crypto.randomUUID(),
    email: "a@b.example",
    name: "Ada",
    isQuiet: false,
    plannedDeletions: [],
    sessionId: "",
    teams: [],
  };
  const own = await fetch(`${url}/docs`, { headers: { "If-None-Match": etag } });
  expect([own.status, own.headers.get("etag"), await own.text()]).toEqual([200, null, expect.stringContaining("Ada")]);
});

test("without a session an address may open five pages for each request of a key, and probe as often as it likes", async () => {
  const limited = await createServer(database, { rateLimitPerMinute: 1 });
  const ask = async (path: string, accept = "*/*") =>
    (await fetch(`${limited.url}${path}`, { headers: { Accept: accept } })).status;
  const paths = ["/openapi.json", "/docs", "/login", "/nope", "/docs/events"];
  expect(await Promise.all(paths.map((path) => ask(path)))).toEqual([200, 200, 200, 404, 200]);
  for (const path of paths) expect([path, await ask(path), await ask(path, "text/html")]).toEqual([path, 429, 429]);
  expect([await ask("/healthz"), await ask("/readyz")]).toEqual([200, 200]);
});
