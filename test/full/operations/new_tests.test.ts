/** Tests that an execution adds are run again by `assay runner`. */

import { expect, test } from "bun:test";
import { createAsking } from "../../asking.ts";
import { createHarness, until } from "../../harness.ts";
import { createProbedRepository, startProbeRunner } from "../../probing.ts";
import { advanceVerifications, verifyNewTests } from "../../../src/work/verify.ts";
import { readPullRequestState } from "../../../src/operations/automation/pull_requests.ts";
import { renderComment } from "../../../src/senders/pull_request_comment.ts";
import { selectExecution } from "../../../src/store/execution_list.ts";

const { url, ask, acme, database, addProject } = await createHarness();
const { pool, begin } = database;

const fresh = async () => createAsking(ask, await addProject(acme));
type Project = Awaited<ReturnType<typeof fresh>>;
const see = async (project: Project, id: string) => await project.get(`/executions/${id}`);

async function work(): Promise<void> {
  await pool`update verification set next_check_at = now() where next_check_at is not null`;
  await verifyNewTests(database);
  await advanceVerifications(database);
}

/** Every third run fails. */
const FLAKY = `file=$(sed q .git/objects/info/alternates)/count; echo x >> "$file"; [ $(($(wc -l < "$file") % 3)) != 0 ]`;

test("a new test of a pull request that is flaky from the start is found, and one that main has is not run again", async () => {
  const project = await fresh();
  const repository = await createProbedRepository([{ test: "exit 0" }, { test: FLAKY }]);
  const [main, head] = repository.commits as [string, string];
  // The default branch has "prints" alone.
  await project.call(
    "POST",
    `/test-runs?task_slug=unit&branch=main&commit=${main}`,
    `<testsuite name="cart"><testcase classname="cart" name="prints"/></testsuite>`,
  );
  const runner = await startProbeRunner({ url, project, tasks: { unit: repository.task } });
  const { body: created } = await project.call("POST", "/executions", {
    ...{
      mode: "run",
      branch: "topic",
      pullRequest: "12",
      commit: head,
      tasks: [{ slug: "unit", newTests: { runs: 30 } }],
    },
  });
  await until(async () => (await see(project, created.id)).completedAt !== null, 30);
  expect(await see(project, created.id)).toMatchObject({ status: "passed", passed: 2, newTests: [] });
  await until(async () => {
    await work();
    const { newTests } = await see(project, created.id);
    return newTests.length > 0 && newTests.every(({ status }: { status: string }) => status !== "running");
  }, 50);
  const ended = await see(project, created.id);
  expect(ended.newTests).toEqual([
    {
      testCase: expect.objectContaining({ name: "adds", taskSlug: "unit" }),
      verificationId: expect.any(String),
      ...{ status: "flaky", failed: 3, passed: expect.any(Number) },
      statement: `New test, failed 3 of ${3 + ended.newTests[0].passed} more runs: flaky from the start`,
    },
  ]);
  // The finding changes neither the result of the execution nor the health of the test.
  expect([ended.status, ended.flaky]).toEqual(["passed", 0]);
  const events = await pool<{ type: string }[]>`
    select type from event where project_id = ${project.project} and execution_id = ${created.id} order by id`;
  expect(events.map(({ type }) => type).filter((type) => type.startsWith("execution."))).toEqual([
    "execution.completed",
    "execution.changed",
  ]);
  const execution = (await selectExecution(pool, project.project, created.id))!;
  const state = await begin((sql) =>
    readPullRequestState(sql, { publicUrl: "https://assay.example", projectId: project.project }, execution),
  );
  expect(renderComment(state, project.project)).toContain("**New tests that are not reliable (1)**");
  expect(renderComment(state, project.project)).toContain("more runs: flaky from the start");
  await runner.stop();
}, 90_000);

test("on the default branch, without a baseline or after a cancellation nothing is run again", async () => {
  const project = await fresh();
  const tasks = [{ slug: "unit", newTests: { runs: 5 } }];
  const run = async (more: object) => {
    const { body } = await project.call("POST", "/executions", { mode: "run", commit: "abcdef1", tasks, ...more });
    const { body: synced } = await project.call("POST", "/leases", { runner: "r", probeSlugs: ["unit"] });
    const report = `<testsuite name="cart"><testcase classname="cart" name="${body.id}"/></testsuite>`;
    await project.call("POST", `/test-runs?lease_id=${synced.leases[0].id}`, report);
    return body.id as string;
  };
  const first = await run({ branch: "topic" });
  const ofMain = await run({ branch: "main" });
  const { body: cancelled } = await project.call("POST", "/executions", { mode: "run", branch: "topic", tasks });
  await project.call("POST", `/executions/${cancelled.id}/cancel`);
  await verifyNewTests(database);
  for (const id of [first, ofMain, cancelled.id]) expect((await see(project, id)).newTests).toEqual([]);
  const second = await run({ branch: "topic" });
  await verifyNewTests(database);
  expect((await see(project, second)).newTests).toMatchObject([
    { status: "running", statement: "New test, 0 of 5 more runs done" },
  ]);
  const refused = await project.call("POST", "/executions", { tasks });
  expect(refused.body.error.message).toBe(`Cannot read "tasks.newTests": only executions of mode "run" have this`);
});
