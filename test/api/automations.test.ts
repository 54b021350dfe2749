import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking, createRequests } from "../asking.ts";
import { runSchedules } from "../../src/work/automate.ts";
import { createAutomating, PUBLIC_URL } from "../automating.ts";
import { createHarness } from "../harness.ts";
import { createReceiver } from "../receiver.ts";

const harness = await createHarness({ outboundAllow: ["127.0.0.0/8"] });
const { ask, acme, rival, addProject, database } = harness;
const teamKey = acme.teamKey;
const team = createRequests(ask, `/teams/${acme.team}/automations`, teamKey);
const integrations = createRequests(ask, `/teams/${acme.team}/integrations`, teamKey);
const automating = createAutomating(harness, acme);
const { handle: handleAll, integrate, runsOf, settle } = automating;
const deliverAll = () => automating.deliver();
const SLACK = { url: "https://hooks.slack.com/services/T/B/abcdefgh" };
let project: Asking;

beforeEach(async () => {
  await automating.deleteAutomations();
  await handleAll();
  project = createAsking(ask, await addProject(acme));
});

/** Returns the automation. */
async function automate(body: Record<string, unknown>) {
  const answer = await team.call("POST", "", { name: "a", ...body });
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return answer.body;
}

const upload = (letters: string, parameters: Record<string, string> = {}) =>
  project.upload(letters, { task_slug: "unit", branch: "main", ...parameters });

const run = (id: string, dryRun = false) => team.call("POST", `/${id}/run`, { dryRun });
const executionsOf = () => project.list("/executions?limit=100");

/** A receiver that answers as Slack or a webhook does, and the action that notifies it. */
async function createNotify(kind: "slack" | "webhook" = "slack") {
  const receiver = createReceiver({ status: 200, body: "ok" });
  return { receiver, notify: { type: "notify", integrationId: await integrate(kind, { url: receiver.url }) } };
}
/** The same for a repository at GitHub. */
async function createGitHub(answer: { status: number; body?: object }, more: object = {}) {
  const receiver = createReceiver(answer);
  const config = { baseUrl: receiver.url, repository: "acme/web", token: "t", ...more };
  return { receiver, integrationId: await integrate("github", config) };
}
describe("automations", () => {
  test("are created, listed newest first, changed and deleted", async () => {
    const notify = { type: "notify", integrationId: await integrate("slack", SLACK) };
    const body = {
      ...{ name: "red main", trigger: { event: "execution.failed" }, actions: [notify] },
      conditions: { branches: ["main"], projects: [project.project] },
    };
    const created = await automate(body);
    const times = { createdAt: expect.any(String), updatedAt: expect.any(String) };
    const state = { enabled: true, lastRun: null, nextRunAt: null };
    expect(created).toEqual({ id: expect.any(String), ...body, ...state, ...times });
    const second = await automate({ trigger: { schedule: "0 6 * * *" }, actions: [notify] });
    expect((await team.walk("?limit=1")).map(({ id }) => id)).toEqual([second.id, created.id]);
    const patch = { name: "b", enabled: false, conditions: {} };
    const changed = await team.patch(`/${created.id}`, patch);
    expect(changed).toMatchObject({ ...patch, trigger: { event: "execution.failed" } });
    expect((await team.call("DELETE", `/${created.id}`)).status).toBe(204);
    expect((await team.call("GET", `/${created.id}`)).status).toBe(404);
  });

  test("what cannot work is refused, every mistake at once", async () => {
    const slack = await integrate("slack", SLACK);
    const message = async (body: object) => {
      const answer = await team.call("POST", "", { name: "x", ...body });
      expect(answer.status).toBe(400);
      return answer.body.error.message as string;
    };
    const notify = { type: "notify", integrationId: slack };
    const wrong = await message({
      trigger: { event: "bug_report.opened" },
      conditions: { minFailed: 3, environments: ["x"], projects: [rival.project] },
      actions: [
        { type: "create_issue", integrationId: slack },
        { type: "notify", integrationId: crypto.randomUUID() },
        { type: "rerun_failed" },
        { type: "start_execution", projectId: rival.project, tasks: ["unit"] },
      ],
    });
    for (const part of [
      `"conditions.minFailed"`,
      `"conditions.environments"`,
      `"conditions.projects"`,
      `"actions.0": an integration of slack knows notify`,
      `"actions.1.integrationId"`,
      `"actions.2" with "bug_report.opened": rerun_failed`,
      `"actions.3.projectId"`,
    ])
      expect(wrong).toContain(part);
    for (const trigger of [
      {},
      { event: "execution.failed", schedule: "0 6 * * *" },
      { event: "execution.failed", timezone: "UTC" },
      { event: "execution.exploded" },
      { schedule: "99 6 * * *" },
      { schedule: "0 0 30 2 *" },
      { schedule: "0 6 * * *", timezone: "Mars/Olympus" },
      { schedule: "0 6 * * *", timezone: "+02:00" },
    ])
      expect(await message({ trigger, actions: [notify] })).toContain("trigger");
    const trigger = { event: "execution.failed" };
    for (const name of ["constructor", "__proto__"]) {
      const inputs = JSON.parse(`{"a":"b","${name}":"c"}`);
      const dispatch = { type: "dispatch", integrationId: slack, inputs };
      expect(await message({ trigger, actions: [dispatch] })).toContain(`"actions.0.inputs.${name}"`);
    }
    expect(await message({ trigger, actions: [] })).toContain(`"actions"`);
    expect(await message({ trigger, actions: [{ type: "explode" }] })).toContain(`"actions.0.type"`);
    expect(await message({ trigger, actions: [notify], conditions: { branch: ["main"] } })).toContain("branch");
    for (const branches of [[], ["!main"]])
      expect(await message({ trigger, actions: [notify], conditions: { branches } })).toContain("conditions.branches");
  });

  test("another team cannot use this team's integrations", async () => {
    const integrationId = await integrate("slack", SLACK);
    const body = { name: "x", trigger: { event: "execution.failed" }, actions: [{ type: "notify", integrationId }] };
    expect((await ask(`POST /teams/${rival.team}/automations`, { key: rival.teamKey, body })).status).toBe(400);
  });
});

describe("events", () => {
  test("a message says what is new and what is not, as the answer to the upload did", async () => {
    const { receiver, notify } = await createNotify();
    for (const event of ["test_run.completed", "execution.failed"])
      await automate({ trigger: { event }, actions: [notify] });
    await upload("fpp", { branch: "main" });
    await upload("fpf", { branch: "x", commit: "c0ffee12" });
    await settle();
    const told = "2 failed (1 new, 1 still failing), 1 passed\n• unit &gt; case 2: case 2 failed\n";
    const texts = receiver.requests.map(({ body }) => body.blocks[1].text.text);
    const [red] = receiver.requests;
    expect(red!.body.blocks.at(-1).elements[0].url).toStartWith(
      `${PUBLIC_URL}/projects/${project.project}/executions/`,
    );
    expect(texts.filter((text) => text.startsWith("2 failed"))).toEqual(
      Array(2).fill(`${told}• unit &gt; case 0 (still failing, known bug #1): case 0 failed`),
    );
  });

  test("a message about an outage says so, and blames nobody", async () => {
    const { receiver, notify } = await createNotify();
    await automate({ trigger: { event: "execution.failed" }, actions: [notify] });
    await upload("f".repeat(12), { branch: "main" });
    await settle();
    expect(receiver.requests[0]!.body.blocks[1].text.text).toStartWith("12 failed (an outage)\n");
  });

  test("each run is kept with its reason, skipped ones as well", async () => {
    const { notify } = await createNotify();
    const { id } = await automate({
      trigger: { event: "execution.completed" },
      conditions: { branches: ["release/*", "main"], minFailed: 2, environments: ["staging"], taskSlugs: ["unit"] },
      actions: [notify],
    });
    const given = { environment: "staging" };
    await upload("ff", { branch: "feature" });
    await upload("ff", { branch: "release/1/2", ...given });
    await upload("ff");
    await upload("fp", given);
    await upload("ff", { ...given, task_slug: "e2e" });
    await upload("ffp", { ...given, branch: "release/1" });
    await handleAll();
    const runs = await runsOf(id, "?limit=100");
    expect(runs.map(({ status, reason }: any) => [status, reason])).toEqual([
      [
        "done",
        `The branch "release/1" matches "release/*", the environment is "staging", it is about the task "unit", 2 failed, and it takes 2`,
      ],
      ["skipped", `It is about none of the tasks "unit"`],
      ["skipped", "1 failed, and it takes 2"],
      ["skipped", `The environment null is none of "staging"`],
      ["skipped", `The branch "release/1/2" matches none of "release/*", "main"`],
      ["skipped", `The branch "feature" matches none of "release/*", "main"`],
    ]);
    expect(runs[0]).toMatchObject({
      ...{ cause: "event", eventType: "execution.completed", projectId: project.project },
      actions: [{ ...notify, status: "done", deliveryId: expect.any(String) }],
    });
    expect(await runsOf(id, "?status=done")).toHaveLength(1);
    expect((await team.get(`/${id}`)).lastRun).toMatchObject({ id: runs[0].id, status: "done" });
  });

  test("several servers handle each event once, and send each message once", async () => {
    const receiver = createReceiver({ status: 200 });
    const secret = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
    const integrationId = await integrate("webhook", { url: receiver.url, secret });
    const notify = { type: "notify", integrationId };
    const { id } = await automate({ trigger: { event: "test_run.completed" }, actions: [notify] });
    const servers = [1, 2, 3, 4];
    const busy = servers.map(async () => {
      for (let round = 0; round < 5; round++) await handleAll();
    });
    for (let index = 0; index < 10; index++) await upload("p", { commit: `c${index}` });
    await Promise.all(busy);
    await Promise.all(servers.map(handleAll));
    await Promise.all(servers.map(deliverAll));
    expect(await runsOf(id, "?limit=100")).toHaveLength(10);
    expect(receiver.requests.map(({ body }) => body.data.execution.commit).sort()).toEqual(
      Array.from({ length: 10 }, (_, index) => `c${index}`),
    );
    expect(receiver.requests[0]!.body).toMatchObject({
      type: "test_run.completed",
      data: { project: { name: "other" }, testRun: { taskSlug: "unit", passed: 1, verdict: "passed" } },
    });
  });

  test("of two states of one thing only the newer is sent: no retry overtakes it", async () => {
    const receiver = createReceiver({ status: 502 }, { status: 201 });
    const integrationId = await integrate("gitlab", { baseUrl: receiver.url, project: "acme/web", token: "t" });
    const actions = [{ type: "set_commit_status", integrationId }];
    await automate({ trigger: { event: "execution.completed" }, actions });
    const later = async () => {
      await database.pool`update delivery set due_at = now() - interval '1 second' where due_at is not null`;
      await deliverAll();
    };
    await upload("f", { commit: "c0ffee12" });
    await settle();
    await upload("p", { commit: "c0ffee12" });
    await upload("f", { commit: "decade12" });
    await handleAll();
    await later();
    await later();
    const states = receiver.requests.map(({ path, body }) => [path.split("/").at(-1), body.state]);
    expect(states).toEqual([
      ["c0ffee12", "failed"],
      ["c0ffee12", "success"],
      ["decade12", "failed"],
    ]);
    const oldest = (await automating.deliveriesOf(integrationId)).at(-1);
    expect(oldest).toMatchObject({ status: "failed", nextAttemptAt: null });
    expect(oldest.attempts.map(({ error }: any) => error)).toEqual([
      expect.stringContaining("502"),
      "Not sent: a newer delivery for the same has taken its place",
    ]);
    await integrations.call("POST", `/${integrationId}/deliveries/${oldest.id}/redeliver`);
    await deliverAll();
    expect(receiver.requests.at(-1)!.body.state).toBe("failed");
  });

  test("one whose integration was deleted can still be renamed and switched off", async () => {
    const actions = [{ type: "notify", integrationId: await integrate("slack", SLACK) }];
    const { id } = await automate({ trigger: { event: "execution.failed" }, actions });
    await integrations.call("DELETE", `/${actions[0]!.integrationId}`);
    const patch = (body: object) => team.call("PATCH", `/${id}`, body);
    expect((await patch({ name: "n", enabled: false })).body).toMatchObject({ name: "n", enabled: false });
    expect((await patch({ actions })).status).toBe(400);
    expect((await patch({ trigger: { event: "bug_report.opened" }, conditions: { minFailed: 1 } })).status).toBe(400);
  });

  describe("by owner", () => {
    const failing = (name: string) =>
      `<testcase classname="S" name="${name}" file="src/${name}.ts"><failure message="no"/></testcase>`;
    const send = async (parameters: Record<string, string>, ...names: string[]) => {
      const query = new URLSearchParams({ branch: "main", complete: "true", ...parameters });
      await project.post(`/test-runs?${query}`, `<testsuite>${names.map(failing).join("")}</testsuite>`);
      await settle();
    };
    const inProject = (owners?: string[]) => ({ projects: [project.project], ...(owners && { owners }) });
    beforeEach(async () => void (await project.call("PUT", "/owners", "/src/cart* @cart\n/src/pay* @pay\n")));

    test("a condition takes failures of its owners, and the message names only these", async () => {
      const { receiver, notify } = await createNotify("webhook");
      const conditions = inProject(["@cart"]);
      const { id } = await automate({ trigger: { event: "execution.failed" }, conditions, actions: [notify] });
      await send({ execution_key: "1" }, "pay");
      expect(await runsOf(id)).toMatchObject([{ status: "skipped", reason: 'Nothing in it belongs to "@cart"' }]);
      await send({ execution_key: "2" }, "cart", "pay", "lost");
      expect((await runsOf(id))[0].reason).toBe('The project is one of them, it belongs to "@cart"');
      expect(receiver.requests.map(({ body }) => body.data.failures)).toEqual([
        [expect.objectContaining({ name: "cart", owners: ["@cart"] })],
      ]);
    });

    test("a message names the known bugs of its owners' failures, and none that the execution has opened", async () => {
      const { receiver, notify } = await createNotify("webhook");
      const actions = [{ ...notify, owners: ["@cart"] }];
      await automate({ trigger: { event: "execution.completed" }, conditions: inProject(), actions });
      const told = () => receiver.requests.at(-1)!.body.data;
      await send({ execution_key: "1" }, "cart");
      expect(told()).not.toHaveProperty("knownBugs");
      expect(told().failures).toMatchObject([{ name: "cart", knownBug: null }]);
      await send({ execution_key: "2" }, "cart", "pay");
      const bug = (await project.list("/bug-reports")).at(-1);
      expect(told().knownBugs).toEqual([
        {
          ...{ id: bug.id, number: 1, title: bug.title, status: "open", failed: 1, culprit: null },
          url: expect.stringMatching(new RegExp(`/projects/${project.project}/bugs/${bug.id}$`)),
        },
      ]);
      expect(told().failures).toMatchObject([{ name: "cart", knownBug: 1 }]);
    });

    test("each message goes to the owners that it is for, and is not sent where there is nothing of theirs", async () => {
      const [cart, pay, all] = [await createNotify(), await createNotify(), await createNotify()];
      const { id, actions } = await automate({
        ...{ trigger: { event: "execution.failed" }, conditions: inProject() },
        actions: [{ ...cart.notify, owners: ["@cart"] }, { ...pay.notify, owners: ["@pay"] }, all.notify],
      });
      expect(actions[0].owners).toEqual(["@cart"]);
      await send({}, "cart", "lost");
      expect((await runsOf(id))[0].actions).toMatchObject([
        { status: "done" },
        { status: "skipped", reason: "Nothing in it belongs to @pay" },
        { status: "done" },
      ]);
      expect(pay.receiver.requests).toEqual([]);
      expect(cart.receiver.requests[0]!.text).toContain("cart (@cart): no");
      expect(cart.receiver.requests[0]!.text).not.toContain("lost");
      expect(all.receiver.requests[0]!.text).toContain("lost: no");
    });

    test("bugs and tests bring their owners", async () => {
      const { receiver, notify } = await createNotify("webhook");
      const conditions = inProject(["@pay"]);
      await automate({ trigger: { event: "bug_report.opened" }, conditions, actions: [notify] });
      await send({}, "cart");
      await send({}, "pay");
      expect(receiver.requests.map(({ body }) => body.data.bugReport.owners)).toEqual([["@pay"]]);
    });

    test("an event that has no owners is refused", async () => {
      const { notify } = await createNotify("webhook");
      const message = async (body: object) => (await team.call("POST", "", { name: "x", ...body })).body.error.message;
      const [owners, schedule] = [["@cart"], "@daily"];
      expect(await message({ trigger: { schedule }, actions: [{ ...notify, owners }] })).toBe(
        'Cannot use "actions.0.owners" with a schedule',
      );
      const missed = { trigger: { event: "task.missed" }, conditions: { owners }, actions: [notify] };
      expect(await message(missed)).toBe('Cannot use "conditions.owners" with "task.missed"');
    });
  });

  test("rerun_failed says which environment there is no more, and is no failure of ours", async () => {
    const environments = createRequests(ask, `/teams/${acme.team}/environments`, teamKey);
    const { id: environment } = await environments.post("", { slug: "short-lived" });
    await project.post("/executions", { mode: "run", tasks: ["unit"], environment: "short-lived" });
    await environments.call("DELETE", `/${environment}`);
    const { id } = await automate({ trigger: { event: "execution.failed" }, actions: [{ type: "rerun_failed" }] });
    const { leases } = await project.post("/leases", { runner: "r" });
    await upload("f", { lease_id: leases[0].id });
    await handleAll();
    const [{ status, actions }] = await runsOf(id);
    const reason = `Cannot read "environment": the team has no environment "short-lived", whose variables the tasks would get`;
    expect(status).toBe("failed");
    expect(actions[0].reason).toBe(reason);
    expect(await executionsOf()).toHaveLength(1);
  });

  test("a disabled automation does nothing, a disabled or deleted integration is told in the run", async () => {
    const [gone, off] = [await integrate("slack", SLACK), await integrate("slack", SLACK)];
    const trigger = { event: "execution.completed" };
    const actions = [gone, off].map((integrationId) => ({ type: "notify", integrationId }));
    const asleep = await automate({ trigger, actions, enabled: false });
    const awake = await automate({ trigger, actions });
    await integrations.call("DELETE", `/${gone}`);
    await integrations.patch(`/${off}`, { enabled: false });
    await upload("p");
    await handleAll();
    expect(await runsOf(asleep.id)).toEqual([]);
    const [kept] = await runsOf(awake.id);
    expect(kept).toMatchObject({
      status: "failed",
      actions: [
        { status: "failed", reason: "The integration was deleted" },
        { status: "skipped", reason: `The integration "slack" is disabled` },
      ],
    });
  });
});

describe("actions", () => {
  test("create_issue opens one for a bug, and the bug links to it; regressions open no second one", async () => {
    const externalUrl = "https://github.test/acme/web/issues/7";
    const { receiver, integrationId } = await createGitHub({ status: 201, body: { html_url: externalUrl } });
    const actions = [{ type: "create_issue", integrationId, labels: ["flaky"] }];
    const trigger = { event: "bug_report.opened" };
    const opened = (severity: unknown) => ({ trigger, conditions: { severity }, actions });
    await automate(opened("major"));
    const back = await automate({ trigger: { event: "bug_report.regressed" }, actions });
    const critical = await automate(opened(["critical"]));
    const { bugReports } = await upload("f");
    await settle();
    expect(receiver.requests.map(({ path, body }) => [path, body.title, body.labels])).toEqual([
      ["/repos/acme/web/issues", "case 0 failed", ["flaky"]],
    ]);
    const path = `/bug-reports/${bugReports[0].id}`;
    expect(await project.get(path)).toMatchObject({ externalUrl });
    await project.patch(path, { status: "resolved" });
    await upload("f");
    await handleAll();
    const reason = `The bug report is followed up at ${externalUrl} already`;
    expect((await runsOf(back.id))[0]).toMatchObject({ status: "skipped", actions: [{ reason }] });
    expect((await runsOf(critical.id))[0].reason).toBe(`The severity "major" is none of "critical"`);
  });

  test("set_commit_status tells the outcome of the commit, per task where it is about one", async () => {
    const { receiver, integrationId } = await createGitHub({ status: 201 });
    const actions = [{ type: "set_commit_status", integrationId }];
    for (const event of ["test_run.completed", "execution.completed"]) await automate({ trigger: { event }, actions });
    await upload("pf", { commit: "c0ffee12" });
    const without = await upload("p");
    await settle();
    expect(receiver.requests.map(({ path, body }) => [path, body.state, body.context, body.description])).toEqual([
      ["/repos/acme/web/statuses/c0ffee12", "failure", "assay/unit", "1 failed (1 new), 1 passed"],
      ["/repos/acme/web/statuses/c0ffee12", "failure", "assay", "1 failed (1 new), 1 passed"],
    ]);
    expect(without.verdict).toBe("passed");
  });

  test("open_bug_report opens one per branch and reopens it, and sets off no loop", async () => {
    const bugReport = { title: "The nightly is red", severity: "critical", labels: ["nightly"] };
    const actions = [{ type: "open_bug_report", ...bugReport }];
    const { id } = await automate({ trigger: { event: "execution.failed" }, actions });
    const bugs = async () => await project.list("/bug-reports?severity=critical");
    await upload("f");
    await upload("f");
    await handleAll();
    const [bug] = await bugs();
    expect(bug).toMatchObject({ ...bugReport, source: "automatic", status: "open" });
    expect((await runsOf(id)).map(({ actions }: any) => actions[0].reason)).toEqual([
      `Bug report #${bug.number} is open already`,
      `Opened bug report #${bug.number}`,
    ]);
    await project.patch(`/bug-reports/${bug.id}`, { status: "resolved" });
    await upload("f");
    await handleAll();
    expect(await bugs()).toMatchObject([{ id: bug.id, status: "open", regressed: true }]);
    const depths = await database.pool`
      select type, depth from event where project_id = ${project.project} and depth > 0 order by id`;
    expect(depths).toEqual([
      { type: "bug_report.opened", depth: 1 },
      { type: "bug_report.regressed", depth: 1 },
    ] as never);
  });

  test("rerun_failed asks again for what failed, and no more often than it may", async () => {
    const actions = [{ type: "rerun_failed", maximum: 2 }];
    const { id } = await automate({ trigger: { event: "execution.failed" }, actions });
    const parameters = { execution_key: "b1", commit: "c1" };
    await upload("p", { ...parameters, task_slug: "lint" });
    await upload("f", { ...parameters, task_slug: "unit", complete: "true" });
    for (let round = 0; round < 4; round++) {
      await handleAll();
      const [newest] = await executionsOf();
      if (newest.status === "queued") await upload("f", { execution_id: newest.id, task_slug: "unit" });
    }
    const all = await executionsOf();
    expect(all.map(({ trigger, tasks }: any) => [trigger, tasks.map(({ slug }: any) => slug)])).toEqual([
      ["automation", ["unit"]],
      ["automation", ["unit"]],
      ["upload", ["lint", "unit"]],
    ]);
    expect(all[0].rerunOf).toBe(all[1].id);
    expect((await runsOf(id))[0].actions[0].reason).toBe("It has already been rerun 2 times");
  });

  test("start_execution on every failure ends: what automations begin carries its depth", async () => {
    const actions = [{ type: "start_execution", tasks: ["diagnose"], environment: "lab" }];
    const { id } = await automate({ trigger: { event: "execution.failed" }, actions });
    await upload("f");
    for (let round = 0; round < 6; round++) {
      await handleAll();
      const [newest] = await executionsOf();
      if (newest.status === "queued") await upload("f", { execution_id: newest.id, task_slug: "diagnose" });
    }
    expect(await executionsOf()).toHaveLength(4);
    const reason = "Stopped: a chain of 3 automations led to this event";
    expect((await runsOf(id))[0].actions[0]).toMatchObject({ status: "skipped", reason });
  });

  test("start_execution gives runners nothing of a report that git would take for an option", async () => {
    const actions = [{ type: "start_execution", mode: "run", tasks: ["diagnose"] }];
    const { id } = await automate({ trigger: { event: "execution.failed" }, actions });
    await upload("f", { branch: "--upload-pack=x" });
    await handleAll();
    const reason = `Cannot read "branch": expected no "-" at the beginning, got "--upload-pack=x"`;
    expect((await runsOf(id))[0].actions[0]).toMatchObject({ status: "failed", reason });
    expect(await executionsOf()).toHaveLength(1);
  });

  test("dispatch starts a pipeline, and tells it the execution that it is about", async () => {
    const { receiver, integrationId } = await createGitHub({ status: 204 }, { workflow: "ci.yml" });
    const inputs = { reason: "red" };
    const actions = [{ type: "dispatch", integrationId, ref: "main", inputs }];
    await automate({ trigger: { event: "execution.failed" }, actions });
    const { executionId } = await upload("f");
    await settle();
    const told = { ...inputs, assay_execution_id: executionId };
    expect(receiver.requests.map(({ path, body }) => [path, body])).toEqual([
      ["/repos/acme/web/actions/workflows/ci.yml/dispatches", { ref: "main", inputs: told }],
    ]);
  });
});

describe("schedules", () => {
  const at = (time: string) => new Date(`2030-01-07T${time}:00.000Z`);
  const due = (id: string, time: Date) =>
    database.pool`update automation set next_run_at = ${time.toISOString()} where id = ${id}`;

  test("know the next time in their own zone, and change it with the schedule alone", async () => {
    const actions = [{ type: "start_execution", tasks: ["nightly"], projectId: project.project }];
    const trigger = { schedule: "30 6 * * *", timezone: "Asia/Tokyo" };
    const { id, nextRunAt } = await automate({ trigger, actions });
    expect(nextRunAt).toEndWith("T21:30:00.000Z");
    const patch = async (body: object) => (await team.patch(`/${id}`, body)).nextRunAt;
    expect(await patch({ name: "other" })).toBe(nextRunAt);
    expect(await patch({ enabled: false })).toBeNull();
    expect(await patch({ enabled: true })).toBe(nextRunAt);
    expect(await patch({ trigger: { schedule: "@daily" } })).toEndWith("T00:00:00.000Z");
    expect(await patch({ trigger: { event: "execution.failed" } })).toBeNull();
  });

  test("four servers run one that is due once, and its next time is after now", async () => {
    const { id } = await automate({
      trigger: { schedule: "0 * * * *" },
      conditions: { projects: [project.project] },
      actions: [{ type: "start_execution", tasks: ["nightly", "nightly"], key: "nightly-{date}-{time}" }],
    });
    await due(id, at("03:00"));
    await Promise.all([1, 2, 3, 4].map(() => runSchedules(database, PUBLIC_URL, at("05:30"))));
    expect((await executionsOf()).map(({ key, trigger, tasks }: any) => [key, trigger, tasks.length])).toEqual([
      ["nightly-2030-01-07-05-30", "schedule", 1],
    ]);
    const lastRun = { status: "done" };
    expect(await team.get(`/${id}`)).toMatchObject({ nextRunAt: "2030-01-07T06:00:00.000Z", lastRun });
    expect(await runSchedules(database, PUBLIC_URL, at("05:59"))).toBe(0);
  });

  test("notify sums up each project", async () => {
    const { receiver, notify } = await createNotify();
    const conditions = { projects: [project.project] };
    const { id } = await automate({ trigger: { schedule: "0 9 * * 1" }, conditions, actions: [notify] });
    await upload("pf");
    await upload("pp");
    const { body } = await run(id);
    expect(body).toMatchObject({ cause: "manual", status: "done", reason: "Scheduled time reached" });
    await deliverAll();
    const [heading, summary] = receiver.requests[0]!.body.blocks;
    expect(heading.text.text).toBe("⚪ other: 2 executions, 1 failed");
    expect(summary.text.text).toBe("1 open bug, 0 flaky tests");
  });
});

describe("POST …/run", () => {
  test("dry, it says what would happen and why, and nothing happens", async () => {
    const { receiver, notify } = await createNotify();
    const { id } = await automate({
      trigger: { event: "execution.failed" },
      conditions: { branches: ["main"], projects: [project.project] },
      actions: [
        ...[notify, { type: "open_bug_report" }, { type: "rerun_failed" }],
        { type: "start_execution", tasks: ["diagnose"] },
      ],
    });
    const none = await run(id, true);
    expect([none.status, none.body.status, none.body.id]).toEqual([200, "skipped", null]);
    expect(none.body.reason).toContain("There was no");
    expect((await run(id)).status).toBe(400);
    await upload("f");
    await database.pool`update event set due_at = null`;
    const before = [await executionsOf(), await runsOf(id)];
    const { body } = await run(id, true);
    const reason = expect.stringContaining(`"main" matches "main"`);
    expect(body).toMatchObject({ id: null, status: "done", reason });
    expect(body.actions.map(({ type, status, reason }: any) => [type, status, reason])).toEqual([
      ["notify", "planned", `Would send "other: main failed" to "slack" (slack)`],
      ["open_bug_report", "planned", `Would open the bug report "other: main failed"`],
      ["rerun_failed", "planned", "Would rerun the failed tasks"],
      ["start_execution", "planned", `Would start the tasks "diagnose" in "other"`],
    ]);
    expect([await executionsOf(), await runsOf(id)]).toEqual(before);
    await deliverAll();
    expect(receiver.requests).toHaveLength(0);

    const { body: real } = await run(id);
    expect(real).toMatchObject({ cause: "manual", status: "done" });
    await deliverAll();
    expect(receiver.requests).toHaveLength(1);
    expect(await executionsOf()).toHaveLength(3);
    expect((await runsOf(id))[0].id).toBe(real.id);
  });
});
