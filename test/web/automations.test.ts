/** Automations in the dashboard: a form, JSON for the rest, dry runs, and runs with their reasons. */

import { describe, expect, test } from "bun:test";
import { createAutomating } from "../automating.ts";
import { createPages, fieldsOf, type Shown, valueOf } from "./browser.ts";

const pages = await createPages();
const { acme, rival, ask, look, fill, own } = pages;
const { handle } = createAutomating(pages, acme);
const base = `/teams/${acme.team}/automations`;
const key = acme.teamKey;
const CHAT = { kind: "slack", name: "Team chat", config: { url: "https://hooks.slack.com/services/T/B/abcdefgh" } };
const integrate = async (body: object = CHAT, { team, teamKey } = acme): Promise<string> =>
  (await ask(`POST /teams/${team}/integrations`, { key: teamKey, body })).body.id;
const chat = await integrate();

const formOf = ({ html }: Shown) => fieldsOf(/<form class="fields parts[^]*?<\/form>/.exec(html)![0]);

async function create(fields: Record<string, string>): Promise<string> {
  const { location, words } = await fill("owner", `${base}/new`, fields);
  if (!location) throw new Error(words);
  return location.replace(/\?.*/, "");
}

const find = async (path: string) => (await ask(`GET ${path}`, { key })).body;
const nightly = (rest: object = {}) => ({
  name: "Nightly",
  trigger: { schedule: "30 2 * * *", timezone: "Europe/Berlin" },
  actions: [{ type: "start_execution", tasks: ["nightly"], ...rest }],
});

describe("the form", () => {
  test("as it is first shown makes an automation for failures on main", async () => {
    const fields = formOf(await look("owner", `${base}/new`));
    const path = await create({ ...fields, name: "Red main", [`project.0`]: acme.project });
    expect(await find(path)).toMatchObject({
      name: "Red main",
      enabled: true,
      trigger: { event: "execution.failed" },
      conditions: { projects: [acme.project], branches: ["main"] },
      actions: [{ type: "notify", integrationId: chat }],
    });
    const seen = await look("viewer", path);
    expect(seen.words).toContain("When an execution has failed in Acme web on main: send a message to Team chat");
    expect((await look("viewer", base)).words).toContain("Red main When an execution has failed in Acme web on main");
  });

  test("says a schedule with its zone, and several actions", async () => {
    const path = await create({
      ...{ name: "Nightly", when: "schedule", event: "execution.failed", branches: "left from before" },
      ...{ schedule: "30 2 * * 1-5", timezone: "Europe/Berlin" },
      ...{ "action.0.type": "start_execution", "action.0.tasks": "nightly, e2e", "action.0.key": "nightly-{date}" },
      ...{ "action.1.type": "notify", "action.1.integrationId": chat },
    });
    expect(await find(path)).toMatchObject({
      trigger: { schedule: "30 2 * * 1-5", timezone: "Europe/Berlin" },
      conditions: {},
      actions: [
        { type: "start_execution", tasks: ["nightly", "e2e"], key: "nightly-{date}" },
        { type: "notify", integrationId: chat },
      ],
    });
    const { words } = await look("viewer", path);
    const what = "start an execution of nightly, e2e, then send a message to Team chat";
    expect(words).toContain(`At 30 2 * * 1-5 (Europe/Berlin): ${what}`);
    expect(words).toMatch(/runs next at \d+ \w+ \d{4}/);
  });

  test("shown for an automation and sent as it is changes nothing of it", async () => {
    const config = { baseUrl: "https://acme.atlassian.net", token: "t", projectKey: "WEB" };
    const bodies = [
      {
        trigger: { event: "bug_report.opened" },
        conditions: { severity: ["critical", "minor"], branches: ["main", "!main"], taskSlugs: ["unit"] },
        actions: [{ type: "create_issue", integrationId: await integrate({ kind: "jira", config }) }],
      },
      {
        trigger: { event: "execution.completed" },
        conditions: { projects: [acme.project], environments: ["staging"], minFailed: 3 },
        actions: [
          { type: "open_bug_report", severity: "trivial", title: "It & <that>" },
          { type: "rerun_failed", maximum: 2 },
          { type: "notify", integrationId: chat },
        ],
      },
      nightly({ key: "nightly-{date}", environment: "staging" }),
      {
        trigger: { event: "test_case.became_flaky" },
        conditions: { branches: ["main"] },
        actions: [{ type: "quarantine", maxTests: 7, maxShare: 2.5, days: 14 }],
      },
      { trigger: { event: "test_case.recovered" }, conditions: {}, actions: [{ type: "release" }] },
      {
        trigger: { schedule: "0 9 * * 1", timezone: "UTC" },
        conditions: { projects: [acme.project] },
        actions: [{ type: "digest", integrationId: chat, owners: ["@acme/cart"] }],
      },
    ];
    for (const body of bodies) {
      const { body: before } = await ask(`POST ${base}`, { key, body: { name: "same", enabled: false, ...body } });
      const path = `${base}/${before.id}`;
      const fields = formOf(await look("owner", path));
      expect((await fill("owner", path, fields)).location).toBe(`${path}?notice=saved`);
      const { updatedAt: _, ...after } = await find(path);
      expect(after).toEqual({ ...before, updatedAt: undefined, lastRun: null });
    }
  });

  test("is refused with each mistake, and with what is another team's", async () => {
    const refused = await fill("owner", `${base}/new`, {
      ...{ name: "mine", when: "schedule", schedule: "every day" },
      ...{ "action.0.type": "start_execution", "action.0.tasks": "" },
    });
    expect(refused.words).toMatch(/Schedule: expected five cron fields.* Tasks: expected a non-empty list/);
    const integrationId = await integrate(CHAT, rival);
    const theirs = await fill("owner", `${base}/new`, {
      ...{ name: "x", event: "execution.failed", "project.0": rival.project },
      ...{ "action.0.type": "notify", "action.0.integrationId": integrationId },
    });
    expect(theirs.words).toContain(`there is no project "${rival.project}" in this team`);
    expect(theirs.words).toContain("Integration: there is no integration");
  });

  test("gives way to JSON for what it cannot say, and that says everything", async () => {
    const { body } = await ask(`POST ${base}`, { key, body: nightly({ branch: "release" }) });
    const path = `${base}/${body.id}`;
    const shown = await look("owner", path);
    expect(shown.words).toContain("This automation uses options that the form does not support. Edit it as JSON");
    expect(shown.html).not.toContain('name="action.0.type"');
    const json = JSON.parse(valueOf(shown, "json")!.replaceAll("&quot;", '"'));
    json.actions[0].branch = "main";
    expect((await fill("owner", path, { json: JSON.stringify(json) })).location).toBe(`${path}?notice=saved`);
    expect((await find(path)).actions[0].branch).toBe("main");
    const broken = await fill("owner", path, { json: "{ nonsense" });
    expect([broken.status, valueOf(broken, "json")]).toEqual([400, "{ nonsense"]);
    expect(broken.words).toContain("Cannot read the JSON");
    expect((await fill("owner", `${base}/new`, { json: JSON.stringify(nightly()) })).status).toBe(303);
  });
});

describe("an automation", () => {
  test("says in a dry run what it would do and why, and does nothing", async () => {
    const actions = [{ type: "notify", integrationId: chat }];
    const conditions = { branches: ["main"] };
    const body = { name: "dry", trigger: { event: "execution.failed" }, conditions, actions };
    const path = `${base}/${(await ask(`POST ${base}`, { key, body })).body.id}`;
    const nothing = await fill("owner", `${path}/run`, { dryRun: "true" });
    expect(nothing.words).toContain('Would do nothing: There was no "execution.failed" in the last 7 days');
    expect((await fill("owner", `${path}/run`, { dryRun: "false" })).words).toContain("Cannot run the automation");
    await own.upload("f", "branch=main");
    const dry = await fill("owner", `${path}/run`, { dryRun: "true" });
    expect(dry.status).toBe(200);
    const why = 'Would run: The branch "main" matches "main" Tested with the last execution.failed event';
    expect(dry.words).toContain(why);
    expect(dry.words).toMatch(/send a message: planned Would send ".*" to "Team chat" \(slack\)/);
    expect((await look("owner", path)).words).toContain("No runs yet");

    expect((await fill("owner", `${path}/run`, { dryRun: "false" })).location).toBe(`${path}?notice=ran#runs`);
    await handle();
    const ran = await look("viewer", path);
    expect(ran.words).toContain('done execution.failed, started manually The branch "main" matches "main"');
    expect(ran.words).toMatch(/send a message: done Sends ".*" to "Team chat" \(slack\) Delivery/);
    expect((await look("viewer", `${path}?status=failed`)).words).toContain("No runs match this status");
    expect((await look("viewer", base)).words).toContain('done: The branch "main" matches "main"');
  });

  test("is switched off and on", async () => {
    const path = await create({ json: JSON.stringify(nightly()) });
    await fill("owner", `${path}/state`, { enabled: "false" });
    expect(await find(path)).toMatchObject({ enabled: false, nextRunAt: null });
    expect((await look("viewer", base)).words).toContain("Nightly disabled");
    await fill("owner", `${path}/state`, { enabled: "true" });
    expect((await find(path)).nextRunAt).not.toBeNull();
  });

  test("shows others what it is set to", async () => {
    const path = await create({ json: JSON.stringify(nightly()) });
    expect((await look("viewer", path)).words).toContain('"schedule": "30 2 * * *"');
  });
});
