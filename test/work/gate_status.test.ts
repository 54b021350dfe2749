/** The commit status of a gate: whole requests to a recording receiver, after the end of a build and after later changes. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { handleEvents } from "../../src/work/automate.ts";
import { createDeliverer } from "../../src/work/deliver.ts";
import { createHarness, junit, SECRET_KEY } from "../harness.ts";
import { createReceiver, outboundToReceivers, type Recorded } from "../receiver.ts";

const { ask, acme, addProject, database } = await createHarness({ outboundAllow: ["127.0.0.0/8"] });
const PUBLIC = "https://assay.test";
const COMMIT = "0123456789abcdef";
const log = createLog("error", () => {}, false);
const automations = `/teams/${acme.team}/automations`;
let project: string;
let key: string;

beforeEach(async () => {
  for (const { id } of (await ask(`GET ${automations}?limit=100`, { key: acme.teamKey })).body.data)
    await ask(`DELETE ${automations}/${id}`, { key: acme.teamKey });
  ({ project, key } = await addProject(acme));
  await upload("fpp", { branch: "main" });
  await settle();
});

async function upload(letters: string, parameters: Record<string, string>) {
  const query = new URLSearchParams({ task_slug: "unit", ...parameters });
  const { status, body } = await ask(`POST /projects/${project}/test-runs?${query}`, { key, body: junit(letters) });
  expect([body.error, status]).toEqual([undefined, 201]);
  return body.executionId as string;
}

/** Handles all events, and sends what comes of them. */
async function settle(): Promise<void> {
  await handleEvents(database, PUBLIC, log);
  const sender = createDeliverer(database, { outbound: outboundToReceivers(), seal: createSeal(SECRET_KEY) }, log);
  while ((await sender.start()) > 0) await sender.ended();
}

const CONFIGS = {
  github: { repository: "acme/web", token: "t0ken" },
  gitlab: { project: "acme/web", token: "t0ken" },
};

async function automate(kind: keyof typeof CONFIGS, event: string, action: object) {
  const receiver = createReceiver({ status: 201 });
  const config = { ...CONFIGS[kind], baseUrl: receiver.url };
  const { body } = await ask(`POST /teams/${acme.team}/integrations`, {
    ...{ key: acme.teamKey, body: { kind, config } },
  });
  const actions = [{ type: "set_commit_status", integrationId: body.id, ...action }];
  const created = await ask(`POST ${automations}`, {
    ...{ key: acme.teamKey, body: { name: "gate", trigger: { event }, actions } },
  });
  expect([created.status, created.text]).toEqual([201, expect.any(String)]);
  return { receiver, id: created.body.id as string };
}

const build = (more: object = {}) => ({ branch: "x", commit: COMMIT, ...more });
const states = (requests: Recorded[]) =>
  requests.map(({ body }) => [body.context ?? body.name, body.state, body.description]);
const page = (id: string) => `${PUBLIC}/projects/${project}/executions/${id}`;

describe("a commit status with a gate", () => {
  test("is the decision, at GitHub", async () => {
    const { receiver } = await automate("github", "execution.completed", { gate: "new" });
    const id = await upload("fpp", build());
    await settle();
    const [request, ...others] = receiver.requests;
    expect(others).toEqual([]);
    expect([request!.method, request!.path, request!.headers["authorization"]]).toEqual([
      "POST",
      `/repos/acme/web/statuses/${COMMIT}`,
      "Bearer t0ken",
    ]);
    expect(request!.body).toEqual({
      ...{ state: "success", target_url: page(id), description: "Passed, 1 failure forgiven", context: "assay/gate" },
    });
  });

  test("is the decision, at GitLab", async () => {
    const { receiver } = await automate("gitlab", "execution.completed", { gate: "quarantine" });
    const id = await upload("fpp", build());
    await settle();
    const [request, ...others] = receiver.requests;
    expect(others).toEqual([]);
    expect([request!.method, request!.path, request!.headers["private-token"]]).toEqual([
      "POST",
      `/api/v4/projects/acme%2Fweb/statuses/${COMMIT}`,
      "t0ken",
    ]);
    const description = "Failed: unit: 1 failure that the baseline has too";
    expect(request!.body).toEqual({ state: "failed", target_url: page(id), description, name: "assay/gate" });
  });

  test("is that of a task where the event is about one, with a name of its own if the action has one", async () => {
    const own = await automate("github", "test_run.completed", { gate: "new" });
    const named = await automate("github", "test_run.completed", { gate: "new", context: "must pass" });
    await upload("fpp", build({ execution_key: "1" }));
    await settle();
    expect(states(own.receiver.requests)).toEqual([["assay/gate/unit", "success", "Passed, 1 failure forgiven"]]);
    expect(states(named.receiver.requests)).toEqual([["must pass", "success", "Passed, 1 failure forgiven"]]);
  });

  test("is not set before the decision is final", async () => {
    const { receiver, id } = await automate("github", "execution.completed", { gate: "new" });
    const body = { key: "2", tasks: ["unit", "e2e"], ...build() };
    await ask(`POST /projects/${project}/executions`, { key, body });
    await upload("fpp", build({ execution_key: "2" }));
    await settle();
    expect(receiver.requests).toEqual([]);
    await upload("p", build({ execution_key: "2", task_slug: "e2e" }));
    await settle();
    expect(states(receiver.requests)).toEqual([["assay/gate", "success", "Passed, 1 failure forgiven"]]);
    const { body: runs } = await ask(`GET ${automations}/${id}/runs`, { key: acme.teamKey });
    expect(runs.data).toHaveLength(1);
  });

  test("is updated when a later report changes the decision, and other actions are not repeated", async () => {
    const { receiver } = await automate("github", "execution.completed", { gate: "new" });
    const plain = await automate("github", "execution.completed", {});
    await upload("ffp", build({ execution_key: "3", complete: "true" }));
    await settle();
    await upload("fpp", build({ execution_key: "3" }));
    await settle();
    expect(states(receiver.requests)).toEqual([
      ["assay/gate", "failure", "Failed: unit: 1 new failure"],
      ["assay/gate", "success", "Passed, 1 failure forgiven"],
    ]);
    expect(states(plain.receiver.requests)).toHaveLength(1);
    // The same bytes again change nothing.
    await ask(`POST /projects/${project}/test-runs?task_slug=unit&branch=x&commit=${COMMIT}&execution_key=3`, {
      ...{ key, body: junit("fpp") },
    });
    await settle();
    expect(receiver.requests).toHaveLength(2);
  });

  test("is updated by a rerun of the build", async () => {
    const { receiver } = await automate("github", "execution.completed", { gate: "new" });
    const id = await upload("ffp", build({ execution_key: "4", complete: "true" }));
    await settle();
    const { body: rerun } = await ask(`POST /projects/${project}/executions/${id}/rerun`, { key });
    await upload("fpp", { execution_id: rerun.id });
    await settle();
    expect(states(receiver.requests).map(([, state]) => state)).toEqual(["failure", "success"]);
  });

  test("refuses an unknown mode", async () => {
    const actions = [{ type: "set_commit_status", integrationId: crypto.randomUUID(), gate: "all" }];
    const body = { name: "gate", trigger: { event: "execution.completed" }, actions };
    const { status, text } = await ask(`POST ${automations}`, { key: acme.teamKey, body });
    expect([status, text]).toEqual([400, expect.stringContaining('expected \\"quarantine\\" or \\"new\\"')]);
  });
});

test("execution.changed is an event of its own, with the results as they are then", async () => {
  const receiver = createReceiver({ status: 204 });
  const { body: hook } = await ask(`POST /teams/${acme.team}/integrations`, {
    ...{ key: acme.teamKey, body: { kind: "webhook", config: { url: receiver.url } } },
  });
  const trigger = { event: "execution.changed" };
  const actions = [{ type: "notify", integrationId: hook.id }];
  const created = await ask(`POST ${automations}`, { key: acme.teamKey, body: { name: "late", trigger, actions } });
  expect([created.status, created.text]).toEqual([201, expect.any(String)]);
  await upload("ffp", build({ execution_key: "5", complete: "true" }));
  await settle();
  expect(receiver.requests).toEqual([]);
  await upload("fpp", build({ execution_key: "5" }));
  await settle();
  expect(
    receiver.requests.map(({ body }) => [body.type, body.data.execution.status, body.data.execution.failed]),
  ).toEqual([["execution.changed", "failed", 1]]);
});
