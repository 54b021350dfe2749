/** Requests of scripts on pages of other origins, as far as the server decides them; test/full/browser/cors.test.ts asks a browser. */

import { describe, expect, test } from "bun:test";
import { createHarness, createServer } from "../harness.ts";

const LISTED = "https://app.example.com";
const { acme, database, url: closed } = await createHarness();
const { url } = await createServer(database, { corsOrigins: [LISTED], rateLimitPerMinute: 20 });
const path = `/api/v1/projects/${acme.project}/test-runs`;

const corsOf = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith("access-control-") || name === "vary"));
const preflight = (server: string, origin: string, method = "GET") =>
  fetch(`${server}${path}`, { method: "OPTIONS", headers: { origin, "access-control-request-method": method } });
const get = (server: string, origin?: string) =>
  fetch(`${server}${path}`, { headers: { authorization: `Bearer ${acme.key}`, ...(origin ? { origin } : {}) } });

describe("with CORS_ORIGINS", () => {
  test("a preflight of a listed origin is answered without a key, with the headers of all answers, and does not count", async () => {
    for (let times = 0; times < 25; times++) {
      const answer = await preflight(url, LISTED, "PUT");
      expect([answer.status, corsOf(answer)]).toEqual([
        204,
        {
          "access-control-allow-origin": LISTED,
          "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
          "access-control-allow-headers": expect.stringMatching(/^Authorization, .*Idempotency-Key/),
          "access-control-expose-headers": expect.stringContaining("X-RateLimit-Remaining"),
          "access-control-max-age": "7200",
          vary: "Origin",
        },
      ]);
      const { headers } = answer;
      expect(["limit", "remaining"].map((name) => headers.get(`x-ratelimit-${name}`))).toEqual(["20", "20"]);
      expect(Number(headers.get("x-ratelimit-reset"))).toBeGreaterThan(Date.now() / 1000 - 5);
    }
  });

  test("an answer and an error name the listed origin, and never allow cookies", async () => {
    const answer = await get(url, LISTED);
    const refused = await fetch(`${url}${path}`, { headers: { origin: LISTED } });
    for (const [response, status] of [
      [answer, 200],
      [refused, 401],
    ] as const) {
      expect([response.status, corsOf(response)]).toEqual([
        status,
        {
          "access-control-allow-origin": LISTED,
          "access-control-expose-headers": expect.stringContaining("Retry-After"),
          vary: "Accept-Encoding, Origin",
        },
      ]);
    }
  });

  test.each([
    "https://app.example.com.evil.example",
    "http://app.example.com",
    "https://app.example.com:8443",
    "null",
    "*",
  ])("%s, which is not listed, gets none of the headers", async (origin) => {
    const answer = await preflight(url, origin);
    expect([answer.status, corsOf(answer)]).toEqual([401, { vary: "Accept-Encoding, Origin" }]);
    expect(corsOf(await get(url, origin))).toEqual({ vary: "Accept-Encoding, Origin" });
  });

  test("a stream of events is read from a listed origin, too", async () => {
    const headers = { authorization: `Bearer ${acme.key}`, origin: LISTED };
    const answer = await fetch(`${url}/api/v1/projects/${acme.project}/events`, { headers });
    expect([answer.status, corsOf(answer)["access-control-allow-origin"]]).toEqual([200, LISTED]);
    await answer.body!.cancel();
  });

  test("requests without an origin vary as well, because caches may serve them to pages; pages and /mcp stay as they are", async () => {
    expect(corsOf(await get(url))).toEqual({ vary: "Accept-Encoding, Origin" });
    for (const other of ["/login", "/openapi.json", "/healthz", "/mcp"]) {
      const answer = await fetch(`${url}${other}`, { headers: { origin: LISTED } });
      expect([other, answer.headers.get("access-control-allow-origin")]).toEqual([other, null]);
    }
  });
});

test("without CORS_ORIGINS no origin is allowed", async () => {
  expect(corsOf(await get(closed, LISTED))).toEqual({ vary: "Accept-Encoding" });
  const answer = await preflight(closed, LISTED);
  expect([answer.status, corsOf(answer)]).toEqual([401, { vary: "Accept-Encoding" }]);
});
