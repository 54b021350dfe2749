/** Engines that run tests elsewhere: what they are asked, how their results join, and what becomes of those that cannot be. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { runSchedules } from "../../src/work/automate.ts";
import { expireExecutions } from "../../src/work/expire.ts";
import { createAsking } from "../asking.ts";
import { createAutomating, PUBLIC_URL } from "../automating.ts";
import { createHarness } from "../harness.ts";
import { createReceiver, type Script } from "../receiver.ts";

const harness = await createHarness({ outboundAllow: ["127.0.0.0/8"] });
const { ask, acme, rival, addProject, database } = harness;
const { call, integrate, handle, deliveriesOf, ...automating } = createAutomating(harness, acme);
const log = createLog("debug", () => {}, false);
const nightly = new Date("2030-01-07T03:00:00.000Z");
let project: ReturnType<typeof createAsking>;
beforeEach(async () => {
  project = createAsking(ask, await addProject(acme));
});

const github = (baseUrl: string, more: object = { workflow: "ci.yml" }, add = integrate) =>
  add("github", { baseUrl, repository: "acme/web", token: "t", ...more });
const gitlab = (baseUrl: string, more: object = { triggerToken: "trigger" }) =>
  integrate("gitlab", { baseUrl, project: "acme/web", token: "t", ...more });
const change = (integrationId: string, body: object) => call("PATCH", `/integrations/${integrationId}`, body);

const create = (dispatch: unknown, more: object = {}) =>
  project.call("POST", "/executions", { tasks: ["unit"], branch: "feat/a", dispatch, ...more });
const get = (id: string) => project.get(`/executions/${id}`);
const list = () => project.list("/executions?limit=100");
const act = (id: string, action: string) => project.call("POST", `/executions/${id}/${action}`);
const upload = (id: string, letters = "p", task = "unit") =>
  project.upload(letters, { execution_id: id, task_slug: task, branch: "feat/a" });
const endTime = (id: string) =>
  database.pool`update execution set expires_at = now() - interval '1 second' where id = ${id}`;

/** Sends what is due; what was put off is due as well, since a while: columns round to milliseconds, into the future. */
async function deliver(): Promise<void> {
  const { pool } = database;
  await pool`update delivery set due_at = now() - interval '1 second' where status = 'pending' and due_at is not null`;
  await pool`update integration set paused_until = null`;
  await automating.deliver();
}

/** A thousand deliveries that are not due. */
const fillQueue = (integrationId: string) => database.pool`
  insert into delivery (team_id, integration_id, id, action, options, event_type, notice)
  select ${acme.team}, ${integrationId}, gen_random_uuid(), 'create_issue', '{}', 'test', '{}' from generate_series(1, 1000)`;

const addEnvironment = (slug: string) => call("POST", "/environments", { slug, name: slug });

const typesOf = async () => {
  const rows = await database.pool<{ type: string }[]>`
    select type from event where project_id = ${project.project} order by id`;
  return rows.map(({ type }) => type);
};

const automate = (body: object) => call("POST", "/automations", { name: "a", ...body });
const start = (more: object) => ({
  trigger: { schedule: "0 3 * * *" },
  actions: [{ type: "start_execution", projectId: project.project, tasks: ["unit"], ...more }],
});

/** Its automation's last run, once its time has come. */
async function runAt3(body: object) {
  const id = await automating.automate(body);
  await database.pool`update automation set next_run_at = ${nightly.toISOString()} where id = ${id}`;
  await runSchedules(database, PUBLIC_URL, nightly, log);
  const [run] = await automating.runsOf(id);
  await call("DELETE", `/automations/${id}`);
  return run;
}

describe("POST …/executions with dispatch", () => {
  test("starts a workflow on the execution's branch with its id, and what comes back joins it", async () => {
    const receiver = createReceiver({ status: 204 });
    const integrationId = await github(receiver.url);
    const { status, body } = await create({ integrationId, inputs: { suite: "fast" } });
    expect(body.status).toBe("queued");
    expect(status).toBe(201);
    await deliver();
    const inputs = { suite: "fast", assay_execution_id: body.id };
    expect(receiver.requests.map(({ path, body }) => [path, body])).toEqual([
      ["/repos/acme/web/actions/workflows/ci.yml/dispatches", { ref: "feat/a", inputs }],
    ]);
    await upload(receiver.requests[0]!.body.inputs.assay_execution_id);
    expect(await list()).toMatchObject([{ id: body.id, status: "passed", passed: 1, trigger: "api" }]);
    expect(await deliveriesOf(integrationId)).toMatchObject([
      { action: "dispatch", eventType: "dispatch", eventId: null, status: "sent" },
    ]);
  });

  test("starts a pipeline at GitLab, with the id as a variable", async () => {
    const receiver = createReceiver({ status: 201, body: { web_url: "https://gitlab.test/1" } });
    const { body } = await create({ integrationId: await gitlab(receiver.url), inputs: { SUITE: "fast" } });
    await deliver();
    const variables = { SUITE: "fast", ASSAY_EXECUTION_ID: body.id };
    expect(receiver.requests.map(({ path, body }) => [path, body])).toEqual([
      ["/api/v4/projects/acme%2Fweb/trigger/pipeline", { token: "trigger", ref: "feat/a", variables }],
    ]);
  });

  test("is done again by a rerun, as long as the integration can be asked", async () => {
    const receiver = createReceiver({ status: 204 });
    const integrationId = await github(receiver.url);
    const { body } = await create({ integrationId, inputs: { suite: "fast" }, ref: "release" });
    await deliver();
    await upload(body.id, "pf");
    const { body: again } = await act(body.id, "rerun");
    await deliver();
    const told = (id: string) => ({ ref: "release", inputs: { suite: "fast", assay_execution_id: id } });
    expect(receiver.requests.map(({ body }) => body)).toEqual([told(body.id), told(again.id)]);
    await upload(again.id, "pp");
    expect(await get(body.id)).toMatchObject({ status: "failed", repeatedStatus: "passed" });
    await act(again.id, "rerun");
    await deliver();
    await change(integrationId, { enabled: false });
    expect((await act(body.id, "rerun")).status).toBe(201);
    await change(integrationId, { enabled: true });
    await deliver();
    expect(receiver.requests).toHaveLength(3);
  });

  test("names the ref and the workflow that are asked for, and without a branch the integration's ref", async () => {
    const receiver = createReceiver({ status: 204 });
    const integrationId = await github(receiver.url, { workflow: "ci.yml", ref: "trunk" });
    await create({ integrationId, ref: "release", workflow: "other.yml" });
    await create({ integrationId }, { branch: undefined });
    await deliver();
    expect(receiver.requests.map(({ path, body }) => [path.split("/").at(-2), body.ref])).toEqual([
      ["other.yml", "release"],
      ["ci.yml", "trunk"],
    ]);
  });

  test("starts nothing for an execution that is there already, nor for a request that comes twice", async () => {
    const receiver = createReceiver({ status: 204 });
    const integrationId = await github(receiver.url);
    const body = { key: "b1", tasks: ["unit"], dispatch: { integrationId } };
    const headers = { "idempotency-key": crypto.randomUUID() };
    const send = (headers?: Record<string, string>) => project.call("POST", "/executions", body, headers);
    const answers = [await send(headers), await send(headers), await send()];
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 200]);
    await deliver();
    expect(receiver.requests).toHaveLength(1);
  });

  test("refuses what cannot work by the name of its field, and leaves nothing behind", async () => {
    const receiver = createReceiver({ status: 204 });
    const url = receiver.url;
    const integrationId = await github(url);
    const disabled = await github(url);
    await change(disabled, { enabled: false });
    const foreign = await github(url, { workflow: "ci.yml" }, createAutomating(harness, rival).integrate);
    const many = Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`i${index}`, "x"]));
    const refused: [dispatch: object, field: string, reason: string, more?: object][] = [
      [{ integrationId: crypto.randomUUID() }, "dispatch.integrationId", "there is no such integration"],
      [{ integrationId: foreign }, "dispatch.integrationId", "there is no such"],
      [
        { integrationId: await integrate("slack", { url }) },
        "dispatch.integrationId",
        "an integration of slack starts no",
      ],
      [{ integrationId: disabled }, "dispatch.integrationId", 'the integration "github" is disabled'],
      [{ integrationId: await github(url, {}) }, "dispatch.workflow", "neither it nor the integration"],
      [
        { integrationId: await gitlab(url, {}) },
        "dispatch.integrationId",
        'the integration "gitlab" has no "triggerToken"',
      ],
      [
        { integrationId: await gitlab(url), workflow: "ci.yml" },
        "dispatch.workflow",
        "an integration of gitlab knows none",
      ],
      [{ integrationId, inputs: many }, "dispatch.inputs", "expected at most 24"],
      [{ integrationId, inputs: { assay_execution_id: "x" } }, "dispatch.inputs", '"assay_execution_id" is the id'],
      [{ integrationId, workflow: "../ci.yml" }, "dispatch.workflow", "expected a workflow file"],
      [{ integrationId }, "tasks", '"dispatch" needs at least one task', { tasks: [] }],
      [{ integrationId }, "dispatch", 'an execution of mode "run" is for runners', { mode: "run" }],
    ];
    for (const [dispatch, field, reason, more] of refused) {
      const { status, body } = await create(dispatch, more);
      const message = expect.stringContaining(`Cannot read "${field}": ${reason}`);
      expect([status, body.error?.message]).toEqual([400, message]);
    }
    await deliver();
    expect([await list(), receiver.requests]).toEqual([[], []]);
  });

  test("is refused where a thousand deliveries are waiting", async () => {
    const integrationId = await github(createReceiver().url);
    await fillQueue(integrationId);
    const { status, body } = await create({ integrationId });
    expect([status, body.error?.message]).toEqual([400, expect.stringContaining("1000 deliveries are waiting")]);
    expect(await list()).toEqual([]);
    await database.pool`delete from delivery where integration_id = ${integrationId}`;
  });
});

describe("a dispatch that fails", () => {
  const missing: Script = { status: 404, body: { message: "Not Found" } };
  const away: Script = { status: 503 };

  test("for good ends its execution at once, with the engine's reason", async () => {
    const integrationId = await github(createReceiver(missing).url);
    const { body } = await create({ integrationId }, { tasks: ["unit", { slug: "e2e", shards: 2 }] });
    await deliver();
    const reason = "The pipeline was not started: Answered 404: Not Found";
    expect(await get(body.id)).toMatchObject({
      ...{ status: "timed_out", verdict: "failed" },
      tasks: ["unit", "e2e"].map((slug) => ({ slug, status: "timed_out", reason })),
    });
    expect(await typesOf()).toEqual(["execution.completed", "execution.failed"]);
  });

  test("too often ends it with the last reason, and until then it is tried again", async () => {
    const receiver = createReceiver(away);
    const { body } = await create({ integrationId: await github(receiver.url) });
    for (let tries = 1; tries <= 8; tries++) await deliver();
    expect([receiver.requests.length, (await get(body.id)).status]).toEqual([8, "queued"]);
    await deliver();
    const reason = "The pipeline was not started: Answered 503";
    expect((await get(body.id)).tasks).toMatchObject([{ status: "timed_out", reason }]);
  });

  test("leaves alone what has reported meanwhile", async () => {
    const integrationId = await github(createReceiver(missing).url);
    const { body } = await create({ integrationId });
    await upload(body.id);
    await deliver();
    expect(await get(body.id)).toMatchObject({ status: "passed", tasks: [{ reason: null }] });
    const ended = 'Not sent: its execution has ended, it is "passed"';
    expect((await deliveriesOf(integrationId))[0].attempts.at(-1).error).toBe(ended);
  });

  test("while the time of its execution runs out is told as the reason, and then starts nothing any more", async () => {
    const receiver = createReceiver(away);
    const integrationId = await github(receiver.url);
    const { body } = await create({ integrationId });
    await deliver();
    await endTime(body.id);
    await expireExecutions(database);
    const reason = "The pipeline was not started in time: Answered 503";
    expect((await get(body.id)).tasks).toMatchObject([{ status: "timed_out", reason }]);
    receiver.play({ status: 204 });
    await deliver();
    expect(receiver.requests).toHaveLength(1);
    const attempts = [{ error: "Answered 503" }, { error: 'Not sent: its execution has ended, it is "timed_out"' }];
    expect((await deliveriesOf(integrationId))[0]).toMatchObject({ status: "failed", attempts });
  });

  test("is not told as the reason of an execution whose pipeline was started and said nothing", async () => {
    const { body } = await create({ integrationId: await github(createReceiver({ status: 204 }).url) });
    await deliver();
    await endTime(body.id);
    await expireExecutions(database);
    expect((await get(body.id)).tasks).toMatchObject([{ reason: "No report arrived within 30 minutes" }]);
  });

  test("is sent again when somebody asks for it, and what comes then joins late; unless it was cancelled or deleted", async () => {
    const receiver = createReceiver(missing);
    const integrationId = await github(receiver.url);
    const redeliver = async () => {
      const [{ id }] = await deliveriesOf(integrationId);
      await call("POST", `/integrations/${integrationId}/deliveries/${id}/redeliver`);
      await deliver();
      return (await deliveriesOf(integrationId))[0].attempts.at(-1).error;
    };
    const { body } = await create({ integrationId });
    await deliver();
    receiver.play({ status: 204 });
    expect(await redeliver()).toBeNull();
    await upload(body.id);
    expect(await get(body.id)).toMatchObject({ status: "passed", tasks: [{ status: "passed" }] });

    const cancelled = await create({ integrationId });
    await act(cancelled.body.id, "cancel");
    await deliver();
    expect(await redeliver()).toBe('Not sent: its execution has ended, it is "cancelled"');
    await project.call("DELETE", `/executions/${cancelled.body.id}`);
    expect(await redeliver()).toBe("Not sent: its execution was deleted");
    expect(receiver.requests).toHaveLength(2);
  });
});

describe("start_execution", () => {
  test("with dispatch starts the pipeline that reports to it", async () => {
    const receiver = createReceiver({ status: 204 });
    const integrationId = await github(receiver.url);
    const run = await runAt3(start({ key: "nightly-{date}", branch: "feat/a", dispatch: { integrationId } }));
    const [execution] = await list();
    const reason = 'Started the tasks "unit" in "other", with a pipeline by "github" (github)';
    expect(run.actions).toMatchObject([
      { status: "done", reason, executionId: execution.id, integrationId, deliveryId: expect.any(String) },
    ]);
    await deliver();
    const told = { ref: "feat/a", inputs: { assay_execution_id: execution.id } };
    expect(receiver.requests.map(({ body }) => body)).toEqual([told]);
    await upload(execution.id);
    expect(await list()).toMatchObject([{ key: "nightly-2030-01-07", status: "passed", trigger: "schedule" }]);
  });

  test("whose pipeline cannot be started ends as missed, and the message says why", async () => {
    const slack = createReceiver({ status: 200, body: "ok" });
    const notify = { type: "notify", integrationId: await integrate("slack", { url: slack.url }) };
    const tell = await automate({ trigger: { event: "task.missed" }, actions: [notify] });
    const integrationId = await github(createReceiver({ status: 422, body: { message: "No ref found" } }).url);
    await runAt3(start({ dispatch: { integrationId } }));
    await deliver();
    expect(await typesOf()).toEqual(["execution.completed", "execution.failed", "task.missed"]);
    await handle();
    await deliver();
    await call("DELETE", `/automations/${tell.body.id}`);
    const reason = expect.stringContaining("The pipeline was not started: Answered 422: No ref found");
    expect(slack.requests.map(({ text }) => text)).toEqual([reason]);
  });

  test("begins nothing where the integration has been deleted or disabled, and what cannot be sent ends what was begun", async () => {
    const integrationId = await github(createReceiver().url);
    const nightly = start({ dispatch: { integrationId } });
    const { body } = await automate(nightly);
    const runNow = async (dryRun = false) => {
      const { status, actions } = (await call("POST", `/automations/${body.id}/run`, { dryRun })).body;
      return [status, actions[0].reason];
    };
    const what = 'the tasks "unit" in "other", with a pipeline by "github" (github)';
    expect(await runNow(true)).toEqual(["done", `Would start ${what}`]);
    await change(integrationId, { enabled: false });
    const disabled = 'Cannot dispatch, by its integrationId: the integration "github" is disabled';
    expect(await runNow()).toEqual(["failed", disabled]);
    expect(await list()).toEqual([]);

    await change(integrationId, { enabled: true });
    await fillQueue(integrationId);
    const waiting = "1000 deliveries are waiting for the integration already";
    expect(await runNow()).toEqual(["failed", waiting]);
    const tasks = [{ reason: `The pipeline was not started: ${waiting}` }];
    expect(await list()).toMatchObject([{ status: "timed_out", tasks }]);

    await call("DELETE", `/integrations/${integrationId}`);
    const deleted = "Cannot dispatch, by its integrationId: there is no such integration in this team";
    expect(await runNow()).toEqual(["failed", deleted]);
    await call("DELETE", `/automations/${body.id}`);
  });

  test("that makes no sense is refused before it is stored", async () => {
    const integrationId = await github(createReceiver().url);
    const many = Array.from({ length: 5 }, (_, index) => ({ slug: `${index}`, shards: 500 }));
    const refused: [object, string][] = [
      [{ mode: "run", dispatch: { integrationId } }, '"actions.0.dispatch": an execution of mode "run" is for runners'],
      [{ dispatch: { integrationId: crypto.randomUUID() } }, '"actions.0.dispatch.integrationId": there is no such'],
      [{ dispatch: { integrationId: await gitlab("http://127.0.0.1:1", {}) } }, 'has no "triggerToken"'],
      [{ tasks: [{ slug: "a", labels: ["linux"] }] }, '"actions.0.tasks": labels and timeoutSeconds are for'],
      [{ mode: "run", tasks: [{ slug: "a", shards: 0 }] }, "expected an integer from 1 to 500"],
      [{ mode: "run", tasks: many }, "at most 2000 shards"],
    ];
    for (const [more, message] of refused) {
      const { status, body } = await automate(start(more));
      expect([status, body.error?.message]).toEqual([400, expect.stringContaining(message)]);
    }
  });

  test("of mode run in an environment that is not there begins nothing, and says so", async () => {
    const run = await runAt3(start({ mode: "run", environment: "nowhere" }));
    const reason = 'The team has no environment "nowhere", whose variables the tasks would get';
    expect(run).toMatchObject({ status: "failed", actions: [{ reason }] });
    expect(await list()).toEqual([]);
  });

  test("of mode run queues its tasks for runners, on the branch and in the environment that it names", async () => {
    await addEnvironment("staging");
    const tasks = ["lint", { slug: "e2e", shards: 2, labels: ["browser"] }, "lint"];
    const run = await runAt3(start({ mode: "run", tasks, branch: "main", environment: "staging" }));
    expect(run.actions[0].reason).toBe('Started the tasks "lint", "e2e" in "other"');
    expect(await list()).toMatchObject([{ mode: "run", trigger: "schedule", branch: "main", environment: "staging" }]);
    const sync = async (labels: string[]) => {
      const { leases } = await project.post("/leases", { runner: `r ${labels}`, labels, free: 8 });
      return leases.map(({ taskSlug, shard, execution }: any) => [taskSlug, shard?.index, execution.environment]);
    };
    expect(await sync([])).toEqual([["lint", undefined, "staging"]]);
    expect(await sync(["browser"])).toEqual([
      ["e2e", 1, "staging"],
      ["e2e", 2, "staging"],
    ]);
  });

  test("of mode run on an event runs where that happened", async () => {
    await addEnvironment("lab");
    const actions = [{ type: "start_execution", mode: "run", tasks: ["diagnose"] }];
    const conditions = { projects: [project.project] };
    const { body } = await automate({ trigger: { event: "execution.failed" }, conditions, actions });
    const build = { branch: "feat/b", commit: "c0ffee12", environment: "lab" };
    await project.upload("f", build);
    await handle();
    await call("DELETE", `/automations/${body.id}`);
    const [execution] = await list();
    expect(execution).toMatchObject({ mode: "run", trigger: "automation", status: "queued", ...build });
  });
});
