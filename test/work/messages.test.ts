/** Messages about branches that turn red and green, from uploads to what a receiver gets: each thing is said once. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { createAutomating } from "../automating.ts";
import { createHarness } from "../harness.ts";
import { createReceiver } from "../receiver.ts";

const harness = await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"] });
const { ask, acme, addProject } = harness;
const { integrate, automate, deleteAutomations, handle, deliver, list } = createAutomating(harness, acme);
let project: ReturnType<typeof createAsking>;
let chat: ReturnType<typeof createReceiver>;
beforeEach(async () => {
  await deleteAutomations();
  project = createAsking(ask, await addProject(acme));
  chat = createReceiver({ status: 200 });
  const integrationId = await integrate("discord", { url: chat.url });
  for (const event of ["execution.failed", "execution.recovered"])
    await automate({
      trigger: { event },
      conditions: { branches: ["main"] },
      actions: [{ type: "notify", integrationId }],
    });
});

let builds = 0;
/** Uploads one build for each task, in the order given or at once. */
const build = (letters: string, taskSlug: string, more: object = {}) =>
  project.upload(letters, {
    ...{ branch: "main", task_slug: taskSlug, execution_key: `${++builds}`, complete: "true", ...more },
  });
/** The titles of the messages since the last call, in alphabetical order; two servers handle events. */
async function said(): Promise<string[]> {
  await Promise.all([handle(), handle()]);
  await deliver();
  const titles = chat.requests.map(({ body }) => body.content.replace(/^other: /, ""));
  chat.requests.length = 0;
  return titles.toSorted();
}
const RED = "main failed";
const GREEN = "main is green again";
const stillRed = (...slugs: string[]) => `main passed again, and ${slugs.join(" and ")} still red`;

describe("a message", () => {
  test("says that a task has turned red once, and that it is green again once, task by task", async () => {
    await build("p", "a");
    await build("f", "a");
    expect(await said()).toEqual([RED]);
    await build("f", "a");
    await build("ff", "a");
    expect(await said()).toEqual([]);
    await build("f", "b");
    expect(await said()).toEqual([RED]);
    await build("p", "a");
    await build("p", "a");
    expect(await said()).toEqual([stillRed("b is")]);
    await build("p", "b");
    await build("p", "b");
    expect(await said()).toEqual([GREEN]);
    await build("f", "b");
    expect(await said()).toEqual([RED]);
  });

  test("is not sent twice where several tasks report at once", async () => {
    const { id } = await project.post("/executions", { branch: "main", tasks: ["a", "b"] });
    await Promise.all(["a", "b"].map((slug) => project.upload("f", { execution_id: id, task_slug: slug })));
    expect(await said()).toEqual([RED]);
    await Promise.all(["a", "b", "a", "b"].map((slug) => build("f", slug)));
    expect(await said()).toEqual([]);
    await Promise.all(["a", "b"].map((slug) => build("p", slug)));
    expect(await said()).toEqual([GREEN, expect.stringMatching(/^main passed again, and [ab] is still red$/)]);
  });

  test("follows a rerun, and a job that is run again under the same key", async () => {
    const { executionId } = await build("pf", "a");
    expect(await said()).toEqual([RED]);
    const { id } = await project.post(`/executions/${executionId}/rerun`);
    await project.upload("pp", { execution_id: id, task_slug: "a" });
    expect(await said()).toEqual([GREEN]);
    const again = await build("pf", "a");
    expect(await said()).toEqual([RED]);
    await project.upload("pp", { execution_id: again.executionId, task_slug: "a" });
    expect(await said()).toEqual([GREEN]);
    await project.upload("ff", { execution_id: again.executionId, task_slug: "a", complete: "true" });
    expect(await said()).toEqual([RED]);
  });

  test("is not about a build that the branch has left behind", async () => {
    await build("f", "a", { commit: "aaaaaaaa" });
    await build("p", "a", { commit: "bbbbbbbb" });
    expect(await said()).toEqual([RED, GREEN].toSorted());
    await build("f", "a", { commit: "aaaaaaaa" });
    expect(await said()).toEqual([]);
    await build("f", "a", { commit: "bbbbbbbb" });
    await build("p", "a", { commit: "aaaaaaaa" });
    expect(await said()).toEqual([RED]);
  });

  test("is not sent for quarantined failures", async () => {
    await build("pp", "a");
    const [{ id }] = await project.list("/test-cases?q=case%201");
    await project.patch(`/test-cases/${id}`, { quarantine: { reason: "#12" } });
    const [{ actions }] = await list("/automations");
    await automate({ trigger: { event: "bug_report.opened" }, actions });
    await build("pf", "a");
    await build("pp", "a");
    expect(await said()).toEqual([]);
  });
});
