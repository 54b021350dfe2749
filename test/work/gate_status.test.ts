/** The commit status of a gate: whole requests to a recording receiver, after the end of a build and after later changes. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { createAutomating, PUBLIC_URL } from "../automating.ts";
import { createHarness } from "../harness.ts";
import { createReceiver, type Recorded } from "../receiver.ts";

const harness = await createHarness({ outboundAllow: ["127.0.0.0/8"] });
const { ask, acme, addProject } = harness;
const { settle, ...automating } = createAutomating(harness, acme);
const COMMIT = "0123456789abcdef";
let project: ReturnType<typeof createAsking>;

beforeEach(async () => {
  await automating.deleteAutomations();
  project = createAsking(ask, await addProject(acme));
  await upload("fpp", { branch: "main" });
  await settle();
});

const upload = async (letters: string, parameters: Record<string, string>): Promise<string> =>
  (await project.upload(letters, { task_slug: "unit", ...parameters })).executionId;

const CONFIGS = { github: { repository: "acme/web", token: "t0ken" }, gitlab: { project: "acme/web", token: "t0ken" } };

async function automate(kind: keyof typeof CONFIGS, event: string, action: object) {
  const receiver = createReceiver({ status: 201 });
  const config = { ...CONFIGS[kind], baseUrl: receiver.url };
  const integrationId = await automating.integrate(kind, config);
  const actions = [{ type: "set_commit_status", integrationId, ...action }];
  const id = await automating.automate({ name: "gate", trigger: { event }, actions });
  return { receiver, id };
}

const build = (more: object = {}) => ({ branch: "x", commit: COMMIT, ...more });
const states = (requests: Recorded[]) =>
  requests.map(({ body }) => [body.context ?? body.name, body.state, body.description]);
const page = (id: string) => `${PUBLIC_URL}/projects/${project.project}/executions/${id}`;

describe("a commit status with a gate", () => {
  const forgiven = { state: "success", description: "Passed, 1 failure forgiven", context: "assay/gate" };
  const refused = {
    state: "failed",
    description: "Failed: unit: 1 failure that the baseline has too",
    name: "assay/gate",
  };
  test.each([
    ["github", "new", `/repos/acme/web/statuses/${COMMIT}`, ["authorization", "Bearer t0ken"], forgiven],
    ["gitlab", "quarantine", `/api/v4/projects/acme%2Fweb/statuses/${COMMIT}`, ["private-token", "t0ken"], refused],
  ] as const)("is the decision, at %s", async (kind, gate, path, [header, token], status) => {
    const { receiver } = await automate(kind, "execution.completed", { gate });
    const id = await upload("fpp", build());
    await settle();
    const sent = receiver.requests.map(({ method, path, headers }) => [method, path, headers[header]]);
    expect(sent).toEqual([["POST", path, token]]);
    expect(receiver.requests[0]!.body).toEqual({ ...status, target_url: page(id) });
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
    await project.post("/executions", body);
    await upload("fpp", build({ execution_key: "2" }));
    await settle();
    expect(receiver.requests).toEqual([]);
    await upload("p", build({ execution_key: "2", task_slug: "e2e" }));
    await settle();
    expect(states(receiver.requests)).toEqual([["assay/gate", "success", "Passed, 1 failure forgiven"]]);
    expect(await automating.runsOf(id)).toHaveLength(1);
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
    await upload("fpp", build({ execution_key: "3" }));
    await settle();
    expect(receiver.requests).toHaveLength(2);
  });

  test("is updated by a rerun of the build", async () => {
    const { receiver } = await automate("github", "execution.completed", { gate: "new" });
    const id = await upload("ffp", build({ execution_key: "4", complete: "true" }));
    await settle();
    const rerun = await project.post(`/executions/${id}/rerun`);
    await upload("fpp", { execution_id: rerun.id });
    await settle();
    expect(states(receiver.requests).map(([, state]) => state)).toEqual(["failure", "success"]);
  });
});
