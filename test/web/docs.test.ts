/** The reference of the API: for everybody, complete without a script. test/full/browser/docs.test.ts opens the viewer. */

import { describe, expect, test } from "bun:test";
import type { Visitor } from "../../src/request/visitors.ts";
import { ROUTES } from "../../src/server/app.ts";
import { OPENAPI_FILE } from "../../src/server/openapi.ts";
import { unescape } from "../browser.ts";
import { createHarness } from "../harness.ts";

let visitor: Visitor | undefined;
const { url, ask, acme, rival } = await createHarness({
  visitors: { find: async () => visitor, csrf: () => ({ token: "" }), isOwnForm: () => false },
});
const of = (...teamIds: string[]): Visitor => ({
  accountId: crypto.randomUUID(),
  email: "ada@acme.example",
  name: "Ada",
  isQuiet: false,
  plannedDeletions: [],
  sessionId: crypto.randomUUID(),
  teams: teamIds.map((teamId) => ({ teamId, teamName: "Acme", role: "viewer" })),
});

async function open(path: string, who?: Visitor) {
  visitor = who;
  const response = await fetch(`${url}${path}`, { redirect: "manual" });
  const text = await response.text();
  visitor = undefined;
  return { status: response.status, text };
}

describe("/docs", () => {
  test("lists every operation with its method, path and keys, and leads to it in the viewer", async () => {
    const { text } = await open("/docs");
    const listed = unescape(text.replace(/<wbr>/g, ""));
    const { paths } = await Bun.file(OPENAPI_FILE).json();
    for (const { method, path, summary, access } of ROUTES) {
      const documented = path.replace(/:(\w+)/g, "{$1}");
      const { operationId, tags } = paths[documented][method.toLowerCase()];
      const row = new RegExp(`<tr>(?:(?!</tr>).)*#/${tags[0]}/${operationId}"(?:(?!</tr>).)*</tr>`, "s").exec(listed)!;
      const words = row[0].replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");
      expect(words).toContain(`${method} ${summary} ${documented} with the ${access} key`);
    }
  });

  test("states keys, errors, the rate limit, retries and lists, and its links lead to something", async () => {
    const { text } = await open("/docs");
    const stated = ["svc_proj_", "svc_team_", "X-RateLimit-Remaining", "Idempotent-Replayed", "hasMore"];
    const codes = ["VALIDATION_ERROR", "UNAUTHORIZED", "NOT_FOUND", "RATE_LIMITED", "INTERNAL_ERROR"];
    for (const word of [...stated, ...codes]) expect(text).toContain(word);
    const scopes = /Cancel an execution.*?<span[^>]*>([^<]*)/s.exec(text)![1];
    expect(scopes).toBe("with the project key or one of scope run");
    for (const path of ["/docs/operations", "/openapi.json"]) {
      expect(text).toContain(`href="${path}"`);
      expect((await open(path)).status).toBe(200);
    }
    expect((await open("/docs/nope")).status).toBe(404);
  });
});

describe("/docs/operations", () => {
  test("contains the ids of the visitor's own teams and projects, as text", async () => {
    const hostile = `"'><img src=x onerror=alert(1)>`;
    await ask(`PATCH /projects/${rival.project}`, { key: rival.key, body: { name: hostile } });
    for (const [who, own, others] of [
      [of(acme.team), [acme], [rival]],
      [of(rival.team), [rival], [acme]],
      [of(), [], [acme, rival]],
      [undefined, [], [acme, rival]],
    ] as const) {
      const { status, text } = await open("/docs/operations", who);
      expect(status).toBe(200);
      expect(text).not.toContain("<img");
      for (const { project, team } of own) expect([text.includes(project), text.includes(team)]).toEqual([true, true]);
      for (const { project, team } of others)
        expect([text.includes(project), text.includes(team)]).toEqual([false, false]);
    }
  });
});
