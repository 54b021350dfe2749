/** Digests of projects: a history over HTTP, and the messages that receivers get about it. */

import { beforeEach, expect, test } from "bun:test";
import { countAll } from "../../src/work/count.ts";
import { runSchedules } from "../../src/work/automate.ts";
import { createAsking } from "../asking.ts";
import { createAutomating, PUBLIC_URL } from "../automating.ts";
import { createHarness } from "../harness.ts";
import { serveMail } from "../mail_server.ts";
import { createReceiver } from "../receiver.ts";

const harness = await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"] });
const { ask, acme, addProject, database } = harness;
const { integrate, automate, deleteAutomations, call, handle, deliver, runsOf } = createAutomating(harness, acme);
let project: ReturnType<typeof createAsking>;
let builds = 0;

beforeEach(async () => {
  await deleteAutomations();
  project = createAsking(ask, await addProject(acme), "unit");
});

const build = (letters: string, more: Record<string, string> = {}) =>
  project.upload(letters, { branch: "main", execution_key: `${++builds}`, complete: "true", ...more });

/** Tests that fail and pass again in the same build. */
async function flake(letters: string, suite: string): Promise<void> {
  const parameters = { branch: "main", execution_key: `${++builds}`, commit: "1a2b3c4d", task_slug: "flaky" };
  await project.upload(letters, parameters, suite);
  await project.upload(letters.replaceAll("f", "p"), parameters, suite);
}

async function settle(): Promise<void> {
  await countAll(database);
  await handle();
}

/** A week passes for everything that is stored. */
async function passWeek(): Promise<void> {
  const week = database.pool`interval '7 days'`;
  await database.pool`update execution set completed_at = completed_at - ${week}, created_at = created_at - ${week}`;
  await database.pool`update test_run set completed_at = completed_at - ${week}`;
  await database.pool`update bug_report set resolved_at = resolved_at - ${week}`;
}

const automateDigest = (integrationId: string, action: object = {}) =>
  automate({
    trigger: { schedule: "0 9 * * 1" },
    conditions: { projects: [project.project] },
    actions: [{ type: "digest", integrationId, ...action }],
  });

const digestOf = async (kind: string, path: string, action: object = {}) => {
  const receiver = createReceiver({ status: kind === "teams" ? 202 : 200, body: kind === "slack" ? "ok" : "" });
  const secret = kind === "webhook" ? { secret: `whsec_${Buffer.alloc(24, "a").toString("base64")}` } : {};
  const integrationId = await integrate(kind, { url: `${receiver.url}${path}`, ...secret });
  const id = await automateDigest(integrationId, action);
  return { id, receiver };
};

const run = async (id: string, body: object = {}) => (await call("POST", `/automations/${id}/run`, body)).body;

/** The texts and paths of the links of a message to Slack. */
const linksOf = ({ body }: { body: any }): [string, string][] =>
  body.blocks
    .filter(({ text }: any) => text?.type === "mrkdwn")
    .map(({ text }: any) => /^• <(\S+?)\|(.*)>$/.exec(text.text)!)
    .map(([, url, words]: string[]) => [words, url!.split(project.project)[1]]);

const FLAKY_URL = "/tests?q=is:flaky";
const numberOf = (path: string) => path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}$/, "ID");
const shown = (request: { body: any } | undefined) => linksOf(request!).map(([words, path]) => [words, numberOf(path)]);

test("says what changed in a week compared with the week before, each line with its page", async () => {
  for (const letters of ["pp", "pp", "fp"]) await build(letters, { commit: "0dd0dd01" });
  await settle();
  await passWeek();
  await build("pp", { commit: "c0ffee01" });
  await build("pf", { commit: "c0ffee02" });
  await flake("fpp", "cart");
  await flake("fpp", "<!channel> https://evil.test");
  await build("pp", { commit: "c0ffee03" });
  await build("pp", { commit: "c0ffee04" });
  await settle();
  const bug = (await project.list("/bug-reports?limit=10")).find(({ title }) => title === "case 1 failed");
  await project.patch(`/bug-reports/${bug.id}`, { status: "resolved" });

  const slack = await digestOf("slack", "/");
  expect((await run(slack.id)).actions).toEqual([expect.objectContaining({ type: "digest", status: "done" })]);
  await deliver();
  const [message] = slack.receiver.requests;
  expect(message!.body.blocks[0].text.text).toMatch(/^⚪ other: test digest, \d+ \w+ to \d+ \w+$/);
  const open = await project.list("/bug-reports?status=open&limit=10");
  const oldest = open.toSorted((a, b) => a.number - b.number);
  expect(shown(message)).toEqual([
    ["main: 3 of 4 builds passed (75 %; the week before: 67 %)", "/executions"],
    ["main was red for 168 hours and turned red once; the week before: less than a minute", "/executions"],
    ["2 flaky tests, 2 more than the week before", FLAKY_URL],
    ["Became flaky: &lt;!channel&gt; https:\u200b//evil.test &gt; case 0 (failed 1 of 1)", "/tests/ID"],
    ["Became flaky: cart &gt; case 0 (failed 1 of 1)", "/tests/ID"],
    ["3 bugs opened, 3 more than the week before; 1 resolved, 1 more than the week before; 2 open", "/bugs"],
    ...oldest.map(({ number, title }) => [
      expect.stringMatching(new RegExp(`^Open since .*: #${number} ${title}$`)),
      "/bugs/ID",
    ]),
  ]);
  expect(linksOf(message!).at(-1)![1]).toBe(`/bugs/${oldest.at(-1).id}`);

  // The receiver of a webhook verifies the body by its schema.
  const webhook = await digestOf("webhook", "/");
  const chats = [await digestOf("teams", "/"), await digestOf("discord", "/")];
  for (const { id } of [webhook, ...chats]) await run(id);
  await deliver();
  const { type, data } = webhook.receiver.requests[0]!.body;
  expect([type, data.project.id]).toEqual(["digest", project.project]);
  expect(data.digest).toMatchObject({
    owners: null,
    flaky: { count: 2, before: 0, becameCount: 2, became: [{ failed: 1, results: 1 }, { suite: "cart" }] },
    bugs: { opened: { count: 3, before: 0 }, resolved: { count: 1, before: 0 }, open: 2 },
    builds: { branch: "main", count: 4, before: 3, passed: 3, passedBefore: 2, timesRed: 1 },
  });
  const { port, received } = await serveMail({ authOptional: true });
  const mail = { host: "127.0.0.1", port, security: "none", from: "assay@acme.example", to: ["ada@acme.example"] };
  await run(await automateDigest(await integrate("email", mail)));
  await deliver();
  expect(received.map(({ to }) => to)).toEqual([["ada@acme.example"]]);
  expect(received[0]!.text).toContain("- main: 3 of 4 builds passed");
  for (const { receiver } of chats)
    expect(JSON.stringify(receiver.requests[0]!.body)).toContain("main: 3 of 4 builds passed");
});

test("is about the time since the last one, and an empty time sends nothing", async () => {
  await build("pp");
  await settle();
  const { id, receiver } = await digestOf("slack", "/");
  const dry = await run(id, { dryRun: true });
  expect(dry.actions[0]).toMatchObject({ status: "planned", reason: expect.stringContaining("test digest") });
  const due = () => database.pool`update automation set next_run_at = now() - interval '1 second' where id = ${id}`;
  for (let time = 0; time < 2; time++) {
    await due();
    expect(await runSchedules(database, PUBLIC_URL, new Date())).toBe(1);
    await deliver();
  }
  expect(receiver.requests).toHaveLength(1);
  const [second, first] = await runsOf(id);
  expect([first.status, second.status]).toEqual(["done", "skipped"]);
  expect(second.actions).toEqual([
    { type: "digest", status: "skipped", reason: 'Nothing has changed in "other"', integrationId: expect.any(String) },
  ]);
  await build("fp");
  await settle();
  await due();
  await runSchedules(database, PUBLIC_URL, new Date());
  await deliver();
  // The time before is as short as the one since the last digest, and may not reach back to the first build.
  expect(shown(receiver.requests[1])[0]).toEqual([
    expect.stringMatching(/^main: 0 of 1 build passed \(0 %(?:; the hour before: 100 %)?\)$/),
    "/executions",
  ]);
});

test("for owners is about their tests and bugs alone, and is not sent if there are none", async () => {
  await build("pp");
  await flake("fpp", "cart");
  await flake("fpp", "checkout");
  await settle();
  const tests = await project.list("/test-cases?health=flaky");
  const { id: testId } = tests.find(({ suite }) => suite === "cart");
  await project.patch(`/test-cases/${testId}`, { owner: "@cart" });
  const [theirs, nobodys] = [
    await digestOf("slack", "/", { owners: ["@cart"] }),
    await digestOf("slack", "/", { owners: ["@nobody"] }),
  ];
  for (const { id } of [theirs, nobodys]) await run(id);
  await deliver();
  expect(nobodys.receiver.requests).toEqual([]);
  const [message] = theirs.receiver.requests;
  expect(message!.body.blocks[0].text.text).toStartWith("⚪ other: test digest for @cart, ");
  expect(shown(message).map(([words]) => words)).toEqual([
    "1 flaky test, 1 more than the week before",
    "Became flaky: cart &gt; case 0 (failed 1 of 1)",
    "1 bug opened, 1 more than the week before; 1 open",
    expect.stringContaining("Open since"),
  ]);
});

test("needs a schedule, and an integration that can receive it", async () => {
  const integrationId = await integrate("pagerduty", { routingKey: "R".repeat(32) });
  const actions = [{ type: "digest", integrationId }];
  const refusedBy = async (trigger: object) =>
    (await call("POST", "/automations", { name: "x", trigger, actions })).body.error.message;
  expect(await refusedBy({ schedule: "@weekly" })).toContain("an integration of pagerduty knows notify");
  expect(await refusedBy({ event: "execution.failed" })).toContain('with "execution.failed": digest');
});

test("names tests that have recovered, that became slower, and builds that a gate rescued", async () => {
  const report = (seconds: number) => `<testsuite name="cart"><testcase name="adds" time="${seconds}"/></testsuite>`;
  const upload = async (seconds: number) => {
    const parameters = { branch: "main", execution_key: `${++builds}`, complete: "true", task_slug: "slow" };
    await project.uploadReport(report(seconds), parameters);
    await settle();
  };
  for (let time = 0; time < 12; time++) await upload(0.9 + (time % 5) / 20);
  for (let time = 0; time < 4; time++) await upload(6.2);
  await flake("fpp", "cart");
  await settle();
  const rescued = { branch: "x", task_slug: "flaky", gate: "new", execution_key: "rescued", complete: "true" };
  const { gate } = await project.upload("fpp", rescued, "cart");
  expect(gate).toMatchObject({ pass: true, forgivenCount: 1 });
  const passes = { branch: "main", task_slug: "flaky", complete: "true" };
  for (let time = 0; time < 40; time++)
    await project.upload("ppp", { ...passes, execution_key: `passes ${time}` }, "cart");
  await settle();
  const { id, receiver } = await digestOf("slack", "/");
  await run(id);
  await deliver();
  const words = shown(receiver.requests[0]).map(([words]) => words!);
  expect(words.filter((line) => !/bug|Open since/.test(line))).toEqual([
    "main: 56 of 56 builds passed (100 %)",
    "1 build passed because a gate forgave failures, 1 more than the week before",
    "0 flaky tests",
    "Recovered: cart &gt; case 0",
    "Slower: cart &gt; adds took 6.2 s in 3 runs, usually 1.0 s",
    "Slowest: cart &gt; adds took at most 6.2 s in 95 % of its runs",
  ]);
});
