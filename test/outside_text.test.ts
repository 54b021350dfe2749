/** Texts from outside that may not reach the log, as keys, or the database, as NUL. */

import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { ROUTES } from "../src/server/app.ts";
import { CONFIGS } from "../src/schema/integration_configs.ts";
import { parseQuery } from "../src/http/input.ts";
import { createKey } from "../src/secrets/keys.ts";
import { createLinkToken, createToken } from "../src/secrets/tokens.ts";
import { PAGES } from "../src/web/site/pages.ts";
import { createServer } from "./harness.ts";
import { createPages } from "./web/browser.ts";

const lines: string[] = [];
const { acme, url, database, look } = await createPages({ log: (line) => void lines.push(line) });

describe("keys and tokens", () => {
  const { key } = createKey("project");

  test("are not taken for the id of a request, and are neither echoed nor logged", async () => {
    for (const id of [key, `job-${key}`, createKey("team").key, "svc_pat_1"]) {
      const response = await fetch(`${url}/api/v1/projects/${acme.project}/executions`, {
        method: "POST",
        headers: { "x-request-id": id, authorization: `Bearer ${acme.key}` },
        body: "{}",
      });
      expect(response.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
      expect(lines.join()).not.toContain(id);
    }
  });

  test("in a path are masked in the log, also where they are percent-encoded", async () => {
    const [session, link] = [createToken().token, createLinkToken().token];
    const encoded = [...key].map((char) => `%${char.charCodeAt(0).toString(16)}`).join("");
    for (const path of [
      `/api/v1/projects/${key}`,
      `/api/v1/projects/${encoded}`,
      `/${key}`,
      `/invitations/${session}`,
      `/shared/${link}`,
      `/badge/${link}.svg`,
    ])
      await fetch(`${url}${path}`, { method: "POST" });
    const logged = lines.join("\n");
    for (const secret of [key, encoded, session, link]) expect(logged).not.toContain(secret);
    expect(logged).toContain('"path":"/invitations/…"');
    expect(logged).toContain(`"path":"/${key.slice(0, 17)}…"`);
  });
});

describe("NUL", () => {
  test("in a query or a form is refused before anybody looks at it", () => {
    for (const search of ["a=x%00", "a%00=x", "cursor=%00"])
      expect(() => parseQuery(search)).toThrow("expected a text without NUL");
  });

  test("in the cursor of a page is a 400", async () => {
    for (const path of [`/teams/${acme.team}/environments?cursor=a%00`, `/projects/${acme.project}/bugs?cursor=a%00`])
      expect([path, (await look("owner", path)).status]).toEqual([path, 400]);
  });

  test("in a path is refused by the schema of every parameter", () => {
    for (const { path, pathParameters } of [...ROUTES, ...PAGES])
      for (const [name, schema] of Object.entries(pathParameters.entries as Record<string, v.GenericSchema>))
        if (v.safeParse(schema, "a\0b").success)
          // A token is looked up by its digest.
          expect([path, name]).toEqual([expect.stringMatching(/^\/(invitations|shared|badge)\//), "token"]);
  });

  test("is refused by every text of every JSON body, and of what comes beside an upload", () => {
    const open = new Set<string>();
    const walk = (schema: any, at: string): void => {
      if (schema.type === "string" && v.safeParse(schema, "a\0b").success) open.add(at);
      for (const [name, one] of Object.entries(schema.entries ?? {})) walk(one, `${at}.${name}`);
      for (const inner of [schema.wrapped, schema.item, schema.type === "record" ? schema.value : undefined])
        if (inner) walk(inner, at);
      for (const option of schema.options ?? []) if (typeof option === "object") walk(option, at);
    };
    for (const { method, path, query, body } of ROUTES)
      if (body !== undefined && body !== "text") walk(body === "upload" ? query : body, `${method} ${path}`);
    for (const [kind, config] of Object.entries(CONFIGS)) walk(config, kind);
    // What a task has printed is stored as bytes; why it failed, and what git says of commits, with U+FFFD for what cannot be stored.
    const leases = "POST /projects/:projectId/leases";
    const failure = `${leases}/:leaseId/fail`;
    const commits = ["author", "date", "subject", "files"].map(
      (field) => `${leases}/:leaseId/commits.commits.${field}`,
    );
    expect([...open]).toEqual([`${leases}.held.log.text`, `${failure}.message`, `${failure}.log.text`, ...commits]);
  });
});

describe("requests that were forwarded", () => {
  const warningsIn = (lines: string[]) => lines.filter((line) => line.includes("TRUST_PROXY"));
  const refusedKey = (base: string, headers: Record<string, string> = {}) =>
    fetch(`${base}/api/v1/projects`, { headers: { authorization: "Bearer svc_proj_wrong", ...headers } });

  test("by an address that is not trusted are warned of once", async () => {
    const own: string[] = [];
    const { url } = await createServer(database, { log: (line) => void own.push(line) });
    await refusedKey(url);
    expect(warningsIn(own)).toEqual([]);
    for (let count = 0; count < 3; count++) await refusedKey(url, { "x-forwarded-for": "203.0.113.7" });
    await refusedKey(url, { forwarded: "for=203.0.113.7" });
    expect(warningsIn(own)).toHaveLength(1);
    expect(warningsIn(own)[0]).toContain("127.0.0.1");
  });

  test("by a trusted proxy are not", async () => {
    const own: string[] = [];
    const { url } = await createServer(database, { trustProxy: ["127.0.0.0/8"], log: (line) => void own.push(line) });
    await refusedKey(url, { "x-forwarded-for": "203.0.113.7" });
    expect(warningsIn(own)).toEqual([]);
  });

  test("with wrong keys from one address keep nobody there from using a right one", async () => {
    const { url, ask } = await createServer(database, { rateLimitPerMinute: 60 });
    const statuses: number[] = [];
    for (let count = 0; count < 61; count++) statuses.push((await refusedKey(url)).status);
    expect([statuses[0], statuses[60]]).toEqual([401, 429]);
    expect((await ask(`GET /projects/${acme.project}/test-runs`, { key: acme.key })).status).toBe(200);
  });
});
