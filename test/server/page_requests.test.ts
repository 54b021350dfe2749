/** What everybody may ask for without a key or a session: written once, and limited by address. */

import { expect, test } from "bun:test";
import { createHarness, createServer } from "../harness.ts";

const { url, database } = await createHarness();

test("the OpenAPI document is answered with 304 to those who have it", async () => {
  const first = await fetch(`${url}/openapi.json`);
  const etag = first.headers.get("etag")!;
  const again = await fetch(`${url}/openapi.json`, { headers: { "If-None-Match": `"other", ${etag}` } });
  expect([again.status, await again.text()]).toEqual([304, ""]);
  const stale = await fetch(`${url}/openapi.json`, { headers: { "If-None-Match": '"other"' } });
  expect([stale.status, await stale.text()]).toEqual([200, await first.text()]);
});

test("without a session an address may open five pages for each request of a key, and probe as often as it likes", async () => {
  const limited = await createServer(database, { rateLimitPerMinute: 1 });
  const ask = async (path: string, accept = "*/*") =>
    (await fetch(`${limited.url}${path}`, { headers: { Accept: accept } })).status;
  const paths = ["/openapi.json", "/docs", "/login", "/nope", "/docs/operations"];
  expect(await Promise.all(paths.map((path) => ask(path)))).toEqual([200, 200, 200, 404, 200]);
  for (const path of paths) expect([path, await ask(path), await ask(path, "text/html")]).toEqual([path, 429, 429]);
  expect([await ask("/healthz"), await ask("/readyz")]).toEqual([200, 200]);
});
