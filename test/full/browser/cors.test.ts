/** Scripts of pages on other origins call the API in a real browser. */

import { afterAll, expect, test } from "bun:test";
import { hasChromium, openChromium } from "../../browser/chromium.ts";
import { createHarness, createServer } from "../../harness.ts";

const { acme, database } = await createHarness();
/** A site of somebody else, with an origin of its own. */
function createSite(): string {
  const site = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    fetch: () => new Response("<!doctype html><title>app</title>", { headers: { "content-type": "text/html" } }),
  });
  afterAll(() => site.stop(true));
  return site.url.origin;
}
const [listed, other] = [createSite(), createSite()];
const { url } = await createServer(database, { corsOrigins: [listed], rateLimitPerMinute: 1000 });
const api = `${url}/api/v1/projects/${acme.project}`;

/** Uploads a report, lists the runs, and returns what the script of the page can read. */
const SCRIPT = `(async () => {
  const headers = { Authorization: "Bearer ${acme.key}" };
  try {
    const sent = await fetch("${api}/test-runs?task_slug=page", { method: "POST", body: JSON.stringify({ cases: [{ name: "a", status: "passed" }] }),
      headers: { ...headers, "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() } });
    const list = await fetch("${api}/test-runs", { headers });
    const wrong = await fetch("${api}/test-runs?limit=0", { headers });
    return JSON.stringify([sent.status, (await list.json()).data[0].taskSlug, list.headers.get("X-RateLimit-Limit"), (await wrong.json()).error.code]);
  } catch (error) { return String(error); }
})()`;

test.skipIf(!hasChromium)(
  "a page of a listed origin reads answers, headers and errors; another page reads nothing",
  async () => {
    const browser = await openChromium(url);
    await browser.view.navigate(listed);
    expect(JSON.parse(await browser.evaluate(SCRIPT))).toEqual([201, "page", "1000", "VALIDATION_ERROR"]);
    await browser.view.navigate(other);
    expect(await browser.evaluate<string>(SCRIPT)).toBe("TypeError: Failed to fetch");
    // With an answer to a request without preflight as well, which the server has processed.
    const simple = `fetch("${api}/test-runs").then(() => "read", String)`;
    expect(await browser.evaluate<string>(simple)).toBe("TypeError: Failed to fetch");
    await browser.view.navigate(listed);
    expect(await browser.evaluate<string>(simple)).toBe("read");
    // A page that asks for cookies to be sent gets nothing either.
    expect(
      await browser.evaluate<string>(
        `fetch("${api}/test-runs", { credentials: "include" }).then(() => "read", String)`,
      ),
    ).toBe("TypeError: Failed to fetch");
  },
);
