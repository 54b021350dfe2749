/** The pages of the API: every operation with a line for the shell that works, for everybody, with one's own ids. */

import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as v from "valibot";
import { ROUTES } from "../../src/server/app.ts";
import type { Visitor } from "../../src/request/visitors.ts";
import { exampleOf, OPERATIONS, type Operation, TAGS, toCurl } from "../../src/web/pages/docs/reference.ts";
import { advanceSearches } from "../../src/work/culprits.ts";
import { createHarness, junit } from "../harness.ts";
import { createPlace, removePlace } from "../places.ts";

let visitor: Visitor | undefined;
const { url, ask, acme, rival, addProject, database } = await createHarness({
  visitors: { find: async () => visitor, csrf: () => ({ token: "" }), isOwnForm: () => false },
});
const of = (...teamIds: string[]): Visitor => ({
  accountId: crypto.randomUUID(),
  email: "ada@acme.example",
  name: "Ada",
  isQuiet: false,
  sessionId: crypto.randomUUID(),
  teams: teamIds.map((teamId) => ({ teamId, teamName: "Acme", role: "viewer" })),
});

async function open(path: string) {
  const response = await fetch(`${url}${path}`, { redirect: "manual" });
  return { status: response.status, text: await response.text() };
}

const ENTITIES: Record<string, string> = { quot: '"', amp: "&", lt: "<", gt: ">", "#x27": "'" };
const decode = (text: string) => text.replace(/&(#?\w+);/g, (whole, name: string) => ENTITIES[name] ?? whole);

/** The lines for the shell, by the anchors of their operations. */
function linesIn(text: string): Map<string, string> {
  const found = new Map<string, string>();
  let anchor = "";
  new HTMLRewriter()
    .on("section.operation", { element: (section) => void (anchor = section.getAttribute("id")!) })
    .on("section.operation pre[data-copy]", {
      text: ({ text }) => void found.set(anchor, (found.get(anchor) ?? "") + text),
    })
    .transform(text);
  return new Map([...found].map(([anchor, line]) => [anchor, decode(line)]));
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
      const told = decode(own!.split("</section>")[0]!.replace(/<wbr>/g, ""));
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
        const [place, anchor] = decode(href!).split("#");
        const target = all.get(place === "" ? path : place!.split("?")[0]!);
        if (anchor === undefined || anchor === "main") continue;
        expect([path, href, target !== undefined && idsIn(target.text).includes(anchor)]).toEqual([path, href, true]);
      }
    }
  });

  test("are small, and need neither a script nor a style of their own", async () => {
    visitor = of(acme.team);
    for (const [path, { text }] of await pages()) {
      expect([path, text.length < 76_000]).toEqual([path, true]);
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
    expect(decode(text)).toContain(hostile);
  });

  test("lead to things of one's own only where a line changes nothing", async () => {
    const task = `a "$(touch x)" \`b\` 'c' !d /e`;
    const uploaded = await ask(`POST /projects/${acme.project}/test-runs?task_slug=${encodeURIComponent(task)}`, {
      key: acme.key,
      body: junit("pf"),
    });
    visitor = of(acme.team);
    const lines = linesIn((await open("/docs/test-runs")).text);
    const read = lines.get("get-executions-executionId-test-runs-taskSlug")!;
    expect(read).toContain(uploaded.body.executionId);
    for (const open of ["$(", "`", "!", "\\", "'"]) expect(read.replaceAll(" \\\n", "")).not.toContain(open);
    expect((await run(read, { ASSAY_KEY: acme.key })).status).toBe(200);
    for (const [anchor, line] of lines)
      if (!anchor.startsWith("get-"))
        expect([anchor, line.includes(uploaded.body.executionId)]).toEqual([anchor, false]);
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

const place = createPlace("docs");
afterAll(() => removePlace(place));
await Bun.write(join(place, "report.xml"), junit("ppf"));
// The content of an attachment is read as the answers are.
await Bun.write(join(place, "cart-actual.png"), "1");
await Bun.write(join(place, ".env"), "BASE_URL=https://staging.shop.example\nAPI_TOKEN='s3cret'\n");

/** Runs the line as it stands, in a shell that has these variables. */
async function run(line: string, variables: Record<string, string>): Promise<{ status: number; body: any }> {
  const silent = line.replace(/^curl /, `curl -sS -w '\\n%{http_code}' `);
  const child = Bun.spawn(["sh", "-euc", silent], {
    cwd: place,
    env: { PATH: process.env["PATH"], ...variables },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect([line, code, err]).toEqual([line, 0, ""]);
  const at = out.lastIndexOf("\n");
  const whole = out.slice(0, at);
  // An export has an object on each of its lines.
  const body = whole.startsWith('{"type":"header"') ? whole.split("\n")[0]! : whole;
  return { status: Number(out.slice(at + 1)), body: body === "" ? undefined : JSON.parse(body) };
}

/** An engine or a place outside is asked by these, or they do not end. */
const ELSEWHERE = [
  "post-integrations-integrationId-test",
  "post-integrations-integrationId-deliveries-deliveryId-redeliver",
  "get-events",
];

/** Something of its own for each line: what one ends or deletes is not missed by the next. By the names of variables. */
const THINGS: Record<string, (operation: Operation) => Promise<string>> = {
  ASSAY_PROJECT: async () => acme.project,
  ASSAY_TEAM: async () => acme.team,
  TASK_SLUG: async () => "unit",
  VARIABLE_NAME: async () => "BASE_URL",
  EXECUTION_ID: async ({ anchor }) =>
    /-(complete|cancel)$/.test(anchor)
      ? (await post(`/projects/${acme.project}/executions`, { tasks: ["unit"] })).id
      : (await post(`/projects/${acme.project}/test-runs?task_slug=unit`, junit("pf"))).executionId,
  ATTACHMENT_ID: async (operation) => {
    const execution = await THINGS["EXECUTION_ID"]!(operation);
    const path = `/projects/${acme.project}/executions/${execution}/test-runs/unit/attachments?path=one.json`;
    return (await ask(`PUT ${path}`, { key: acme.key, body: "1" })).body.attachment.id;
  },
  TEST_CASE_ID: async () => {
    await post(`/projects/${acme.project}/test-runs?task_slug=unit`, junit("pf"));
    await syncProbing(0);
    return (await ask(`GET /projects/${acme.project}/test-cases?task_slug=unit`, { key: acme.key })).body.data[0].id;
  },
  BUG_REPORT_ID: async ({ anchor }) =>
    anchor.includes("culprit")
      ? await createSearchable({ isStarted: !anchor.endsWith("-culprit") || anchor.startsWith("get-") })
      : (await post(`/projects/${acme.project}/bug-reports`, { title: "one" })).id,
  INTO: async () => (await post(`/projects/${acme.project}/bug-reports`, { title: "another" })).id,
  VERIFICATION_ID: async (operation) => {
    const testCase = await THINGS["TEST_CASE_ID"]!(operation);
    return (await post(`/projects/${acme.project}/test-cases/${testCase}/verify`, { commit: "1111111" })).id;
  },
  LEASE_ID: async ({ anchor }) => {
    if (anchor.endsWith("-commits")) {
      await createSearchable({ isStarted: true });
      await advanceSearches(database);
      const leases = await syncProbing(8);
      return leases.find(({ commits }) => commits)!.id;
    }
    await post(`/projects/${acme.project}/executions`, { mode: "run", tasks: ["leased"] });
    const { leases } = await post(`/projects/${acme.project}/leases`, { runner: "one", taskSlugs: ["leased"] });
    return leases[0].id;
  },
  KEY_ID: async () => (await post(`/projects/${acme.project}/keys`, { name: "ci", scope: "upload" })).id,
  ENVIRONMENT_ID: async () => {
    const slug = `e${crypto.randomUUID()}`;
    const { id } = await post(`/teams/${acme.team}/environments`, { slug });
    const path = `/teams/${acme.team}/environments/${id}/variables/BASE_URL`;
    await ask(`PUT ${path}`, { key: acme.teamKey, body: { value: "x" } });
    return id;
  },
  INFRASTRUCTURE_RULE_ID: async () =>
    (await post(`/teams/${acme.team}/infrastructure-rules`, { name: "disk", pattern: "no space left" })).id,
  INTEGRATION_ID: async () => {
    const config = { url: "https://hooks.example/x" };
    return (await post(`/teams/${acme.team}/integrations`, { kind: "webhook", config })).id;
  },
  AUTOMATION_ID: async (operation) => {
    const integrationId = await THINGS["INTEGRATION_ID"]!(operation);
    const actions = [{ type: "notify", integrationId }];
    return (await post(`/teams/${acme.team}/automations`, { name: "x", trigger: { event: "task.missed" }, actions }))
      .id;
  },
};

const post = async (path: string, body: unknown): Promise<any> =>
  (await ask(`POST ${path}`, { key: path.startsWith("/teams") ? acme.teamKey : acme.key, body })).body;

/** A runner that can probe asks for so many tasks. */
const syncProbing = async (free: number): Promise<{ id: string; commits?: object }[]> => {
  const body = { runner: "prober", taskSlugs: ["unit"], probeSlugs: ["unit"], free };
  return (await post(`/projects/${acme.project}/leases`, body)).leases;
};

/** A bug with a range of commits, whose search may have been started. */
async function createSearchable({ isStarted }: { isStarted: boolean }): Promise<string> {
  const build = (letter: string, commit: string) =>
    post(`/projects/${acme.project}/test-runs?task_slug=unit&branch=main&commit=${commit}`, junit(letter, suite));
  const suite = `suite ${crypto.randomUUID()}`;
  await build("p", "1111111");
  const { bugReports } = await build("f", "2222222");
  await syncProbing(0);
  if (isStarted) await post(`/projects/${acme.project}/bug-reports/${bugReports[0].id}/culprit`, {});
  return bugReports[0].id;
}

async function createThings(line: string, operation: Operation): Promise<Record<string, string>> {
  const names = Object.keys(THINGS).filter((name) => line.includes(`$${name}`));
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await THINGS[name]!(operation)] as const)),
  );
}

describe("the line for the shell works as it stands", () => {
  const tried = OPERATIONS.filter(({ anchor }) => !ELSEWHERE.includes(anchor));

  test.each(tried.map((operation) => [`${operation.method} ${operation.path}`, operation] as const))(
    "%s",
    async (_, operation) => {
      const line = toCurl(operation, `${url}/api/v1`, {});
      const variables = await createThings(line, operation);
      const { status, body } = await run(line, {
        ASSAY_KEY: acme.key,
        ASSAY_TEAM_KEY: acme.teamKey,
        ...variables,
      });
      expect([line, operation.answers.map(({ status }) => status).includes(status), body?.error]).toEqual([
        line,
        true,
        undefined,
      ]);
    },
  );

  test("and those that only read, with the ids that a page fills in", async () => {
    visitor = of(acme.team);
    let count = 0;
    for (const { name } of TAGS) {
      const { text } = await open(`/docs/${name}?project=${acme.project}`);
      for (const [anchor, line] of linesIn(text)) {
        // What the newest object of the path may not have, or has no page.
        const isAbsent = /-(?:plan|culprit|verificationId)$/.test(anchor);
        if (!anchor.startsWith("get-") || ELSEWHERE.includes(anchor) || isAbsent) continue;
        const { status } = await run(line, { ASSAY_KEY: acme.key, ASSAY_TEAM_KEY: acme.teamKey });
        expect([line, status]).toEqual([line, 200]);
        count++;
      }
    }
    expect(count).toBeGreaterThan(20);
  });
});
