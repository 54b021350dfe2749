/** The pages of the API: every operation, for everybody, with one's own ids. */

import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { ROUTES } from "../../src/server/app.ts";
import type { Visitor } from "../../src/request/visitors.ts";
import { exampleOf, OPERATIONS, TAGS } from "../../src/web/pages/docs/reference.ts";
import { unescape } from "../browser.ts";
import { createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";
import { linesIn } from "./shell_lines.ts";

let visitor: Visitor | undefined;
const { url, ask, acme, rival, addProject } = await createHarness({
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

async function open(path: string) {
  const response = await fetch(`${url}${path}`, { redirect: "manual" });
  return { status: response.status, text: await response.text() };
}

const idsIn = (text: string) => [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!);
const paths = ["/docs", ...TAGS.map(({ name }) => `/docs/${name}`)];
const pages = async () => new Map(await Promise.all(paths.map(async (path) => [path, await open(path)] as const)));

describe("the pages", () => {
  test("are there for everybody, signed in or not, and no other", async () => {
    for (const who of [undefined, of(acme.team), of(rival.team), of()]) {
      visitor = who;
      for (const [path, { status, text }] of await pages()) {
        expect([path, status]).toEqual([path, 200]);
        expect(text).toContain('<a href="/docs">API</a>');
      }
    }
    visitor = undefined;
    expect((await open("/docs/nope")).status).toBe(404);
    expect((await open("/docs?nope=1")).status).toBe(200);
    expect((await open("/docs/test-runs?project=nope")).status).toBe(400);
  });

  test("tell every operation once: what it does, its method in letters, its path, whose key, each parameter and field", async () => {
    const all = await pages();
    for (const operation of OPERATIONS) {
      const { anchor, method, summary, description, key, parameters, body } = operation;
      const { text } = all.get(`/docs/${operation.tag}`)!;
      const [, own] = text.split(`<section class="operation" id="${anchor}">`);
      const told = unescape(own!.split("</section>")[0]!.replace(/<wbr>/g, ""));
      expect(text.split(`id="${anchor}"`)).toHaveLength(2);
      expect(told).toContain(summary);
      for (const paragraph of description.split("\n\n")) expect(told).toContain(paragraph);
      expect(told).toContain(`<b class="tag">${method}</b> <code>${operation.path}</code>`);
      expect(told).toContain(`with the ${key} key`);
      for (const { name } of parameters)
        if (name !== "projectId" && name !== "teamId") expect(told).toContain(`<code>${name}</code>`);
      const { properties = {} } = body?.content["application/json"]?.schema ?? {};
      for (const name of Object.keys(properties)) expect(told).toContain(`<code>${name}</code>`);
    }
  });

  test("lead to each other, and every link within them to something that is there", async () => {
    const all = await pages();
    for (const [path, { text }] of all) {
      expect([path, new Set(idsIn(text)).size]).toEqual([path, idsIn(text).length]);
      for (const [, href] of text.matchAll(/ href="([^"]*)"/g)) {
        const [place, anchor] = unescape(href!).split("#");
        const target = all.get(place === "" ? path : place!.split("?")[0]!);
        if (anchor === undefined || anchor === "main") continue;
        expect([path, href, target !== undefined && idsIn(target.text).includes(anchor)]).toEqual([path, href, true]);
      }
    }
  });

  test("are small, and need neither a script nor a style of their own", async () => {
    visitor = of(acme.team);
    for (const [path, { text }] of await pages()) {
      expect([path, text.length < 80_000]).toEqual([path, true]);
      expect([path, Bun.gzipSync(text).length < 12_000]).toEqual([path, true]);
      expect(text).not.toMatch(/ style=| on[a-z]+=|<script(?! type="module" src=)|<style/);
    }
    visitor = undefined;
  });

  test("the overview tells of keys, errors, the rate limit, sending again and lists", async () => {
    const { text } = await open("/docs");
    const said = ["svc_proj_", "svc_team_", "X-RateLimit-Remaining", "Idempotent-Replayed", "hasMore", "/openapi.json"];
    const codes = ["VALIDATION_ERROR", "UNAUTHORIZED", "NOT_FOUND", "RATE_LIMITED", "INTERNAL_ERROR"];
    for (const word of [...said, ...codes]) expect(text).toContain(word);
  });
});

describe("ids in the lines", () => {
  test("are variables of the shell for who is not signed in, who is asked to", async () => {
    visitor = undefined;
    const { text } = await open("/docs/test-runs");
    expect(linesIn(text).get("get-test-runs")).toContain(`${url}/api/v1/projects/$ASSAY_PROJECT/test-runs`);
    expect(text).toContain('<a href="/login?next=%2Fdocs%2Ftest-runs">');
    expect(text).not.toContain(acme.project);
  });

  test("are those of one's own project, of several the one that is chosen, and never another team's", async () => {
    const other = await addProject(acme);
    visitor = of(acme.team);
    const lineOf = async (query: string) => linesIn((await open(`/docs/test-runs${query}`)).text).get("get-test-runs")!;
    expect(await lineOf("")).toContain(`/projects/${acme.project}/test-runs`);
    expect(await lineOf(`?project=${other.project}`)).toContain(`/projects/${other.project}/test-runs`);
    expect(await lineOf(`?project=${rival.project}`)).toContain(`/projects/${acme.project}/test-runs`);
    const { text } = await open(`/docs/executions?project=${other.project}`);
    expect(text).toMatch(new RegExp(`<option value="${other.project}" +selected>`));
    expect(text).toContain(`href="/docs/test-runs?project=${other.project}"`);
    visitor = of(rival.team);
    for (const { text } of (await pages()).values()) expect(text).not.toContain(acme.project);
  });

  test("a name is shown as the text that it is", async () => {
    const hostile = `<img src=x onerror=alert(1)>`;
    await ask(`PATCH /projects/${rival.project}`, { key: rival.key, body: { name: hostile } });
    visitor = of(rival.team);
    const { text } = await open("/docs");
    expect(text).not.toContain(hostile);
    expect(unescape(text)).toContain(hostile);
  });

  test("lead to things of one's own only where a line changes nothing", async () => {
    const task = `a "$(touch x)" \`b\` 'c' !d /e`;
    const { executionId } = await createAsking(ask, acme).upload("pf", { task_slug: task });
    visitor = of(acme.team);
    const lines = linesIn((await open("/docs/test-runs")).text);
    const read = lines.get("get-executions-executionId-test-runs-taskSlug")!;
    expect(read).toContain(executionId);
    for (const open of ["$(", "`", "!", "\\", "'"]) expect(read.replaceAll(" \\\n", "")).not.toContain(open);
    for (const [anchor, line] of lines)
      if (!anchor.startsWith("get-")) expect([anchor, line.includes(executionId)]).toEqual([anchor, false]);
    const changing = linesIn((await open("/docs/executions")).text).get("delete-executions-executionId")!;
    expect(changing).toContain("$EXECUTION_ID");
    visitor = undefined;
  });
});

test("examples of answers are answers", () => {
  const known = new Map(ROUTES.map((route) => [`${route.method} ${route.path.replace(/:(\w+)/g, "{$1}")}`, route]));
  let count = 0;
  for (const { method, path, answers } of OPERATIONS) {
    const { answer } = known.get(`${method} ${path}`)!;
    const schema = answers[0]!.content["application/json"]?.schema;
    if (!answer || !schema) continue;
    count++;
    const { issues } = v.safeParse(answer, exampleOf(schema));
    expect([method, path, issues?.map((issue) => [v.getDotPath(issue), issue.message])]).toEqual([
      method,
      path,
      undefined,
    ]);
  }
  expect(count).toBeGreaterThan(40);
});
