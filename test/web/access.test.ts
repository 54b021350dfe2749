/** Every page and form of the dashboard, present and future, is only for those it is meant for, and says so to the others. */

import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { isAtLeast, ROLES } from "../../src/schema/accounts.ts";
import { ROUTES } from "../../src/server/app.ts";
import { PAGES } from "../../src/web/site/pages.ts";
import { createEverything, digestTables } from "../everything.ts";
import { createRouter } from "../../src/http/router.ts";
import { createHarness } from "../harness.ts";
import { formsOf } from "./browser.ts";

/** What programs and people call things closes attributes, opens elements and turns the direction of text. */
const hostile = (plain: string) => `${plain}"'><x-hostile>\u202e`;
const options = { ownDatabase: true, outboundAllow: ["127.0.0.0/8"] };
const everything = await createEverything(await createHarness(options), hostile);
const { url, people, fill, there, database, acme, rival } = everything;
const sibling = await everything.addProject(acme);
type Who = keyof typeof people | "nobody";

const OWN = ["script-src", "style-src", "form-action"].map((part) => `${part} 'self'`);
const CSP = [...OWN, "default-src 'none'", "frame-ancestors 'none'"];
/** What browsers may keep: it is the same for everybody who has its address, or they ask each time whether it may be shown. */
const KEPT = ["/badge/:token", "/projects/:projectId/attachments/:attachmentId"];

type Sent = { body?: string; headers?: object };
async function ask(who: Who, method: string, path: string, { body, headers = {} }: Sent = {}) {
  // Pages know no keys.
  const by =
    who === "nobody" ? { authorization: `Bearer ${acme.key}` } : { cookie: `assay_session=${people[who].token}` };
  const abort = new AbortController();
  const response = await fetch(`${url}${path}`, {
    method,
    redirect: "manual",
    signal: abort.signal,
    headers: { accept: "text/html", ...by, ...headers },
    ...(body === undefined ? {} : { body }),
  });
  const isStream = response.headers.get("content-type") === "text/event-stream";
  const text = isStream ? "" : await response.text();
  // It would not end.
  if (isStream) abort.abort();
  return { status: response.status, headers: response.headers, location: response.headers.get("location"), text };
}
const get = (who: Who, path: string) => ask(who, "GET", path);

const FORM = "application/x-www-form-urlencoded";
const tokens: Partial<Record<Who, string>> = {};
async function tokenOf(who: Who): Promise<string> {
  return (tokens[who] ??= /name="csrf" value="([^"]+)"/.exec((await get(who, "/account")).text)![1]!);
}
const send = async (
  who: Who,
  path: string,
  { csrf = true, origin = url, fields = {} as Record<string, string> } = {},
) => {
  const token: Record<string, string> = csrf && who !== "nobody" ? { csrf: await tokenOf(who) } : {};
  const body = new URLSearchParams({ ...token, ...fields }).toString();
  return await ask(who, "POST", path, { body, headers: { "content-type": FORM, origin } });
};

const before = await digestTables(database);

/** With an id or a token of a place, the path is about that; the rest of a path stays. */
const elsewhere = (path: string) =>
  path.replace(encodeURIComponent(acme.project), rival.project).replace(acme.team, rival.team);

const placed = PAGES.filter(({ path }) => /:projectId|:teamId/.test(path));
const findForm = createRouter(PAGES.filter(({ method }) => method === "POST"));
const named = (pages: readonly (typeof PAGES)[number][]) =>
  pages.map((page) => ({ ...page, name: `${page.method} ${page.path}`, at: fill(page.path) }));

describe.each(named(PAGES.filter(({ method }) => method === "GET")))("$name", ({ path, at, access }) => {
  test("is shown to whom it is for, with a policy, kept nowhere; others learn who may", async () => {
    for (const who of ["nobody", "viewer", "member", "owner"] as const) {
      const { status, headers, location, text } = await get(who, at);
      const seen = [who, status];
      if (!KEPT.includes(path)) expect([...seen, headers.get("cache-control")]).toEqual([...seen, "no-store"]);
      if (headers.get("content-type")?.startsWith("text/html")) {
        const policy = headers.get("content-security-policy") ?? "";
        for (const part of CSP) expect(policy).toContain(part);
        expect(policy).not.toContain("unsafe");
        expect(headers.get("x-frame-options")).toBe("DENY");
        // Neither is run: nor is it in our pages.
        expect(text).not.toMatch(/<script(?![^>]* src="\/assets\/)|<style|<[^>]* (?:style|on[a-z]+)=/);
        expect(text).not.toMatch(/<x-hostile|[\u202a-\u202e\u2066-\u2069]/);
      }
      if (who === "nobody" && access !== "public") {
        expect([...seen, location]).toEqual(["nobody", 303, `/login?${new URLSearchParams({ next: at })}`]);
      } else if (who !== "nobody" && access !== "public" && access !== "account" && !isAtLeast(who, access)) {
        expect(seen).toEqual([who, 403]);
        expect(text).toContain(access === "owner" ? "Only owners of the team can do this" : "Viewers cannot do this");
      } else if (access === "public") expect(status).toBeLessThan(500);
      else expect([who, status < 400]).toEqual([who, true]);
      if (who === "nobody") continue;
      for (const action of formsOf({ html: text })) {
        const found = findForm("POST", action.replaceAll("&amp;", "&").split("?")[0]!);
        if (!found || "allow" in found) throw new Error(`${path} has a form that leads nowhere: ${action}`);
        const { access } = found.route;
        const isAllowed = access === "public" || access === "account" || isAtLeast(who, access);
        expect([who, action, isAllowed]).toEqual([who, action, true]);
      }
    }
  });
});

/** Valid fields of the forms that have some: a form reads them before it looks for the thing that it is about. */
const FIELDS: Record<string, Record<string, string>> = {
  "/projects/:projectId/bugs/:bugId": { title: "Taken over", severity: "minor" },
  "/projects/:projectId/bugs/:bugId/merge": { into: crypto.randomUUID() },
  "/projects/:projectId/bugs/:bugId/status": { status: "resolved", fixedInCommit: "" },
  "/projects/:projectId/tests/:testId/quarantine": { reason: "taken", until: "" },
  "/projects/:projectId/tests/:testId/verify": { commit: "abcdef1", runs: "20" },
  "/teams/:teamId/automations/:automationId/run": { dryRun: "true" },
  "/teams/:teamId/automations/:automationId/state": { enabled: "false" },
  "/teams/:teamId/environments/:environmentId": { slug: "taken", name: "", baseUrl: "", description: "" },
  "/teams/:teamId/environments/:environmentId/variables": { name: "TAKEN", value: "1" },
  "/teams/:teamId/environments/:environmentId/variables/paste": { text: "TAKEN=1" },
  "/teams/:teamId/infrastructure-rules/:infrastructureRuleId": { name: "taken", pattern: "taken", url: "", do: "save" },
  "/teams/:teamId/integrations/:integrationId": { name: "taken" },
  "/teams/:teamId/integrations/:integrationId/state": { enabled: "false" },
  "/teams/:teamId/members/:accountId/role": { role: "viewer" },
};

describe.each(named(placed))("$name", ({ method, path, at }) => {
  const tryIt = (who: Who, to: string) =>
    method === "GET" ? get(who, to) : send(who, to, { fields: FIELDS[path] ?? {} });

  test("is a page that does not exist, for another team's owner and for a place that does not exist", async () => {
    const nowhere = fill(path, { projectId: crypto.randomUUID(), teamId: crypto.randomUUID() });
    const answers = [await tryIt("stranger", at), await tryIt("owner", elsewhere(at)), await tryIt("owner", nowhere)];
    for (const { status, text } of answers) {
      expect(status).toBe(404);
      expect(text).toContain("Page not found");
      expect(text).not.toContain("shop");
    }
  });

  if (/:(?!projectId|teamId|taskSlug|variableName)\w+/.test(path))
    test("does not find what is another team's or another project's behind its own address", async () => {
      // The stranger's own project or team, and Acme's thing.
      expect((await tryIt("stranger", elsewhere(at))).status).toBe(404);
      if (path.includes(":projectId"))
        expect((await tryIt("owner", fill(path, { projectId: sibling.project }))).status).toBe(404);
    });
});

describe.each(named(PAGES.filter(({ method }) => method === "POST")))("$name", ({ path, at, access }) => {
  test("does nothing for who may not, without its token, or from another page", async () => {
    if (access !== "public") {
      const { status, location } = await send("nobody", at);
      expect([status, location]).toEqual([303, "/login"]);
    }
    if (access !== "public" && access !== "account")
      for (const who of ROLES.filter((role) => !isAtLeast(role, access)))
        expect([who, (await send(who, at)).status]).toEqual([who, 403]);
    for (const origin of ["https://evil.example", "null", url.replace("127.0.0.1", "localhost")])
      expect([origin, (await send("owner", at, { origin })).status]).toEqual([origin, 403]);
    const others = await tokenOf("member");
    const forged: [string, Record<string, string>][] = [
      ["none", {}],
      ["empty", { csrf: "" }],
      ["made up", { csrf: "x".repeat(64) }],
      ["somebody else's", { csrf: others }],
    ];
    for (const [what, fields] of forged)
      expect([what, (await send("owner", at, { csrf: false, fields })).status]).toEqual([what, 403]);
    // What another site's page could send without being asked for leave.
    for (const type of ["text/plain", "multipart/form-data; boundary=x", "application/json"]) {
      const body = `csrf=${await tokenOf("owner")}`;
      const { status } = await ask("owner", "POST", at, { body, headers: { "content-type": type, origin: url } });
      expect([type, status]).toEqual([type, 403]);
    }
    if (!PAGES.some((page) => page.method === "GET" && page.path === path))
      expect((await get("owner", at)).status).toBe(404);
  });
});

test("GETs of the API answer", async () => {
  const { testId, bugId, namedKeyId } = there;
  const ids = { testCaseId: testId!, bugReportId: bugId!, keyId: namedKeyId!, leaseId: crypto.randomUUID() };
  const headers = (access: string) => ({ authorization: `Bearer ${access === "team" ? acme.teamKey : acme.key}` });
  const other: string[] = [];
  // A plan is stored by the first GET of it: all shards get the same one.
  const reading = ROUTES.filter(({ method, path }) => method === "GET" && !/\/plan$/.test(path));
  for (const { path, access, example } of reading) {
    const to = `/api/v1${fill(path, ids)}?${new URLSearchParams(example.query)}`;
    const { status } = await ask("nobody", "GET", to, { headers: headers(access) });
    if (status !== 200) other.push(`${status} ${path}`);
  }
  expect(other).toEqual([]);
});

test("none of that has changed anything, nor does looking at every page", async () => {
  expect(await digestTables(database)).toEqual(before);
});

const shown = PAGES.filter(({ method, path }) => method === "GET" && !/\/(live|log\/follow)$/.test(path));

test("a page ignores parameters that it does not know", async () => {
  for (const { path } of shown) {
    const plain = await get("owner", fill(path));
    const extra = await get("owner", `${fill(path)}?foo=1&utm_source=mail&__proto__=x`);
    expect([path, extra.status]).toEqual([path, plain.status]);
  }
});

test("a page refuses bad values of its own parameters", async () => {
  const refused: string[] = [];
  for (const { path, query } of shown)
    for (const [name, schema] of Object.entries(query.entries)) {
      const bad = ["no such value", "x".repeat(2_000)].find((value) => !v.safeParse(schema, value).success);
      if (bad === undefined) continue;
      const { status } = await get("owner", `${fill(path)}?${new URLSearchParams({ [name]: bad })}`);
      expect([path, name, status]).toEqual([path, name, 400]);
      refused.push(`${path}?${name}`);
    }
  expect(refused).toContain("/projects/:projectId/executions?status");
  expect(refused.length).toBeGreaterThan(20);
});
