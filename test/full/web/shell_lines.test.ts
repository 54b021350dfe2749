/** The lines for the shell that pages show work as they stand. */

import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { OPERATIONS, type Operation, toCurl } from "../../../src/web/pages/docs/reference.ts";
import { advanceSearches } from "../../../src/work/culprits.ts";
import { unescape } from "../../browser.ts";
import { createAsking } from "../../asking.ts";
import { junit } from "../../harness.ts";
import { createPlace, removePlace } from "../../places.ts";
import { createPages } from "../../web/browser.ts";

const { url, ask, acme, createProject, look, database } = await createPages();

const place = createPlace("docs");
afterAll(() => removePlace(place));
await Bun.write(join(place, "report.xml"), junit("ppf"));
// The content of an attachment is read as the answers are.
await Bun.write(join(place, "cart-actual.png"), "1");
/** The example of a body that is a text, under the name of the file that its line sends. */
const textOf = (anchor: string, name: string) => {
  const operation = OPERATIONS.find((one) => one.anchor === anchor)!;
  expect(toCurl(operation, "", {})).toContain(`@${name}`);
  return String(operation.body!.content["text/plain"]!.example);
};
const TEXTS = {
  ".env": textOf("put-environments-environmentId-variables", ".env"),
  CODEOWNERS: textOf("put-owners", "CODEOWNERS"),
};
for (const [name, text] of Object.entries(TEXTS)) await Bun.write(join(place, name), text);

/** Runs the line as it stands, in a shell that has the keys and these variables, and returns what it prints. */
async function runText(line: string, variables: Record<string, string>): Promise<string> {
  const child = Bun.spawn(["sh", "-euc", line.replace(/^curl /, "curl -sS ")], {
    cwd: place,
    env: { PATH: process.env["PATH"], ASSAY_KEY: acme.key, ASSAY_TEAM_KEY: acme.teamKey, ...variables },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect([line, code, err]).toEqual([line, 0, ""]);
  return out;
}

async function run(line: string, variables: Record<string, string> = {}): Promise<{ status: number; body: any }> {
  const out = await runText(line.replace(/^curl /, `curl -w '\\n%{http_code}' `), variables);
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

const { project, team } = acme;
const own = createAsking(ask, acme, "unit");
const ofTeam = async (path: string, body: unknown) =>
  (await ask(`POST /teams/${team}${path}`, { key: acme.teamKey, body })).body;
const createExecution = async (): Promise<string> => (await own.upload("pf")).executionId;

/** A runner that can probe asks for so many tasks. */
const syncProbing = async (free: number): Promise<{ id: string; commits?: object }[]> =>
  (await own.post("/leases", { runner: "prober", taskSlugs: ["unit"], probeSlugs: ["unit"], free })).leases;

/** A bug with a range of commits, whose search may have been started. */
async function createSearchable({ isStarted }: { isStarted: boolean }): Promise<string> {
  const suite = `suite ${crypto.randomUUID()}`;
  await own.upload("p", "branch=main&commit=1111111", suite);
  const { bugReports } = await own.upload("f", "branch=main&commit=2222222", suite);
  await syncProbing(0);
  if (isStarted) await own.post(`/bug-reports/${bugReports[0].id}/culprit`, {});
  return bugReports[0].id;
}

/** Something of its own for each line: what one ends or deletes is not missed by the next. By the names of variables. */
const THINGS: Record<string, (anchor: string) => Promise<string>> = {
  ASSAY_PROJECT: async () => project,
  ASSAY_TEAM: async () => team,
  TASK_SLUG: async () => "unit",
  VARIABLE_NAME: async () => "BASE_URL",
  EXECUTION_ID: async (anchor) =>
    /-(complete|cancel)$/.test(anchor)
      ? (await own.post("/executions", { tasks: ["unit"] })).id
      : await createExecution(),
  ATTACHMENT_ID: async () => {
    const path = `/executions/${await createExecution()}/test-runs/unit/attachments?path=one.json`;
    return (await own.call("PUT", path, "1")).body.attachment.id;
  },
  TEST_CASE_ID: async () => {
    await createExecution();
    await syncProbing(0);
    return (await own.list("/test-cases?task_slug=unit"))[0].id;
  },
  BUG_REPORT_ID: async (anchor) =>
    anchor.includes("culprit")
      ? await createSearchable({ isStarted: !anchor.endsWith("-culprit") || anchor.startsWith("get-") })
      : (await own.post("/bug-reports", { title: "one" })).id,
  INTO: async () => (await own.post("/bug-reports", { title: "another" })).id,
  VERIFICATION_ID: async (anchor) =>
    (await own.post(`/test-cases/${await THINGS["TEST_CASE_ID"]!(anchor)}/verify`, { commit: "1111111" })).id,
  LEASE_ID: async (anchor) => {
    if (anchor.endsWith("-commits")) {
      await createSearchable({ isStarted: true });
      await advanceSearches(database);
      return (await syncProbing(8)).find(({ commits }) => commits)!.id;
    }
    await own.post("/executions", { mode: "run", tasks: ["leased"] });
    return (await own.post("/leases", { runner: "one", taskSlugs: ["leased"] })).leases[0].id;
  },
  KEY_ID: async () => (await own.post("/keys", { name: "ci", scope: "upload" })).id,
  ENVIRONMENT_ID: async () => {
    const { id } = await ofTeam("/environments", { slug: `e${crypto.randomUUID()}` });
    const path = `/teams/${team}/environments/${id}/variables/BASE_URL`;
    await ask(`PUT ${path}`, { key: acme.teamKey, body: { value: "x" } });
    return id;
  },
  INFRASTRUCTURE_RULE_ID: async () =>
    (await ofTeam("/infrastructure-rules", { name: "disk", pattern: "no space left" })).id,
  INTEGRATION_ID: async () =>
    (await ofTeam("/integrations", { kind: "webhook", config: { url: "https://hooks.example/x" } })).id,
  AUTOMATION_ID: async (anchor) => {
    const actions = [{ type: "notify", integrationId: await THINGS["INTEGRATION_ID"]!(anchor) }];
    return (await ofTeam("/automations", { name: "x", trigger: { event: "task.missed" }, actions })).id;
  },
};

/** What is there after a line whose answer does not show it. */
const EFFECTS: Record<string, (variables: Record<string, string>) => Promise<void>> = {
  "put-owners": async () =>
    expect(await own.get("/owners")).toMatchObject({ content: TEXTS.CODEOWNERS, syntax: "github", warnings: [] }),
  "put-environments-environmentId-variables": async ({ ENVIRONMENT_ID }) => {
    const { body } = await ask(`GET /teams/${team}/environments/${ENVIRONMENT_ID}/variables`, { key: acme.teamKey });
    const names = [...TEXTS[".env"].matchAll(/^(\w+)=/gm)].map(([, name]) => name!);
    expect(body.data.map(({ name }: { name: string }) => name).sort()).toEqual(names.sort());
  },
};

/** The simple fields of an example's body that its answer repeats have the values that were sent. */
function expectSent({ body }: Operation, answer: Record<string, unknown> | undefined): void {
  const sent = Object.entries((body?.content["application/json"]?.example as object | undefined) ?? {});
  for (const [name, value] of sent)
    if (typeof value !== "object" && answer && name in answer) expect([name, answer[name]]).toEqual([name, value]);
}

async function createThings(line: string, { anchor }: Operation): Promise<Record<string, string>> {
  const names = Object.keys(THINGS).filter((name) => line.includes(`$${name}`));
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await THINGS[name]!(anchor)] as const)));
}

describe("the line for the shell works as it stands", () => {
  const tried = OPERATIONS.filter(({ anchor }) => !ELSEWHERE.includes(anchor));

  test.each(tried.map((operation) => [`${operation.method} ${operation.path}`, operation] as const))(
    "%s",
    async (_, operation) => {
      const line = toCurl(operation, `${url}/api/v1`, {});
      const variables = await createThings(line, operation);
      const { status, body } = await run(line, variables);
      expect([line, operation.answers.map(({ status }) => status).includes(status), body?.error]).toEqual([
        line,
        true,
        undefined,
      ]);
      if (line.includes(" -d ")) expectSent(operation, body);
      await EFFECTS[operation.anchor]?.(variables);
    },
  );
});

test("the lines of the first report work", async () => {
  const mine = await createProject();
  const { html } = await look("member", `${mine.path}/onboarding`);
  const lines = [...html.matchAll(/<pre data-copy[^>]*>([^]*?)<\/pre>/g)].map(([, line]) => unescape(line!));
  for (const line of lines.slice(0, 2)) expect(await runText(line, { ASSAY_KEY: mine.key })).toContain("/executions/");
  expect(await mine.list("/executions")).toHaveLength(2);
});
