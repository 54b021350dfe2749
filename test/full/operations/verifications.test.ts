/** Verifications with a real repository and `assay runner`, and what they do to a quarantine. */

import { describe, expect, test } from "bun:test";
import { createAsking } from "../../asking.ts";
import { createHarness, until } from "../../harness.ts";
import { createProbedRepository, startProbeRunner } from "../../probing.ts";
import { createPlace, removePlace } from "../../places.ts";
import { reclaimLeases } from "../../../src/work/reclaim.ts";
import { advanceVerifications } from "../../../src/work/verify.ts";

const { url, ask, acme, database, addProject } = await createHarness({ ownDatabase: true });
const { pool } = database;

const fresh = async () => createAsking(ask, await addProject(acme));
type Project = Awaited<ReturnType<typeof fresh>>;

async function report(project: Project, commit: string): Promise<string> {
  const body = `<testsuite name="cart"><testcase classname="cart" name="adds"/></testsuite>`;
  await project.call("POST", `/test-runs?task_slug=unit&branch=main&commit=${commit}`, body);
  return (await project.list("/test-cases?q=adds"))[0].id;
}

/** Advances verifications as the loop of a server does, without its pauses, until this one has ended. */
async function ends(project: Project, id: string) {
  await until(async () => {
    await pool`update verification set next_check_at = now() where next_check_at is not null`;
    await advanceVerifications(database);
    return (await project.get(`/verifications/${id}`)).endedAt !== null;
  }, 50);
  return await project.get(`/verifications/${id}`);
}

async function begin(project: Project, testCaseId: string, body: object) {
  // The runner has said what it can probe.
  await until(async () => {
    const [runner] = await pool`select from runner where project_id = ${project.project} and probe_slugs <> '{}'`;
    return runner !== undefined;
  });
  const answer = await project.call("POST", `/test-cases/${testCaseId}/verify`, body);
  expect([answer.status, answer.body.status]).toEqual([201, "running"]);
  return answer.body.id as string;
}

describe("a verification", () => {
  test.each([
    ["passes, though the test leaves an ignored file", "! -e", "passed", [5, 0]],
    ["fails, though another test leaves an ignored file that this one needs", "-e", "failed", [0, 5]],
  ])("consists of independent runs: it %s", async (_, condition, status, [passed, failed]) => {
    const project = await fresh();
    const script = `[ -e .git/info/exclude ] || { mkdir -p .git/info; echo state.db > .git/info/exclude; }
      test ${condition} state.db; code=$?; echo x > state.db; exit $code`;
    const { commits, task } = await createProbedRepository([{ test: script }]);
    const testCaseId = await report(project, commits[0]!);
    const runner = startProbeRunner({ url, project, tasks: { unit: task } });
    const id = await begin(project, testCaseId, { commit: commits[0], runs: 5 });
    expect(await ends(project, id)).toMatchObject({ status, passed, failed, noResult: 0 });
    expect(await runner.stop()).toBe(0);
  });

  test("that passes says how certain it is and ends the quarantine, with its evidence in the audit log", async () => {
    const project = await fresh();
    const repository = await createProbedRepository([{ test: "exit 0" }]);
    const [commit] = repository.commits as [string];
    const testCaseId = await report(project, commit);
    await project.call("PATCH", `/test-cases/${testCaseId}`, { quarantine: { reason: "#12" } });
    const tasks = { unit: repository.task };
    const runners = await Promise.all(
      [1, 2].map((name) =>
        startProbeRunner({ url, project, tasks, args: ["--name", `r${name}`, "--concurrency", "2"] }),
      ),
    );
    const id = await begin(project, testCaseId, { commit, runs: 12, release: true });
    const ended = await ends(project, id);
    const statement = "0 of 12 runs failed: with 95 % certainty it fails in less than 23 % of its runs";
    expect(ended).toMatchObject({
      ...{ status: "passed", runs: 12, passed: 12, failed: 0, noResult: 0, released: true, statement },
      ...{ testCase: { testCaseId, name: "adds" }, failedExecutionIds: [] },
      failureRate: { lower: 0, upper: expect.closeTo(1 - 0.05 ** (1 / 12), 6), confidence: 0.95 },
    });
    expect((await project.get(`/test-cases/${testCaseId}`)).quarantine).toBeNull();
    const entries =
      await pool`select actor, details from audit_entry where details->>'projectId' = ${project.project} order by id desc`;
    expect(entries[0]).toMatchObject({
      actor: expect.stringMatching(/^key svc_proj_/),
      details: { testCaseIds: [testCaseId], reason: `Verified at ${commit.slice(0, 12)}: ${statement}` },
    });
    const [event] =
      await pool`select data from event where project_id = ${project.project} and type = 'test_case.verified'`;
    expect(event!["data"]).toMatchObject({
      testCase: { id: testCaseId, flakeRate: 0 },
      verification: { id, commit, status: "passed", passed: 12, failed: 0, statement, released: true },
    });
    const probes = await project.call("GET", "/executions?probe=true&limit=100");
    expect(probes.body.data).toHaveLength(12);
    expect(probes.body.data[0].probe).toMatchObject({ verificationId: id, result: "passed" });
    // Nothing of it is in the history of the test case.
    expect(await project.list(`/test-cases/${testCaseId}/results`)).toHaveLength(1);
    for (const runner of runners) expect(await runner.stop()).toBe(0);
  }, 90_000);

  test("of a flaky, a broken and an unbuildable commit ends early, and keeps the quarantine", async () => {
    const project = await fresh();
    // Flaky: every second run fails, whichever work tree it has.
    const flaky = `file=$(sed q .git/objects/info/alternates)/count; echo x >> "$file"; [ $(($(wc -l < "$file") % 2)) = 0 ]`;
    const repository = await createProbedRepository([
      { test: flaky },
      { test: "exit 1" },
      { test: "exit 0", builds: false },
    ]);
    const [one, two, three] = repository.commits as [string, string, string];
    const testCaseId = await report(project, one);
    await project.call("PATCH", `/test-cases/${testCaseId}`, { quarantine: { reason: "#12" } });
    const runner = await startProbeRunner({ url, project, tasks: { unit: repository.task } });
    const first = await ends(project, await begin(project, testCaseId, { commit: one, runs: 500, release: true }));
    expect(first).toMatchObject({ status: "flaky", runs: 500, failed: 3, released: false });
    expect(first.passed).toBeLessThan(10);
    expect(first.failedExecutionIds).toHaveLength(3);
    expect(first.stopReason).toBe(
      `Stopped after ${first.passed + 3} of 500 runs: 3 failed and ${first.passed} passed, so it is flaky`,
    );
    const second = await ends(project, await begin(project, testCaseId, { commit: two, runs: 500, release: true }));
    expect(second).toMatchObject({
      ...{ status: "failed", failed: 5, passed: 0 },
      statement: "5 of 5 runs failed: with 95 % certainty it fails in more than 54 % of its runs",
    });
    const third = await ends(project, await begin(project, testCaseId, { commit: three, runs: 500, release: true }));
    expect(third).toMatchObject({
      ...{ status: "inconclusive", passed: 0, failed: 0, noResult: 2, failureRate: null },
      statement: "The commit cannot be checked out or built",
      stopReason: "Stopped after 0 of 500 runs: the commit could not be checked out or built 2 times",
    });
    expect((await project.get(`/test-cases/${testCaseId}`)).quarantine).toMatchObject({ reason: "#12" });
    const listed = await project.call("GET", `/test-cases/${testCaseId}/verifications?limit=2`);
    expect(listed.body.data.map(({ id }: { id: string }) => id)).toEqual([third.id, second.id]);
    const { cursor } = listed.body.pagination;
    const rest = await project.call("GET", `/test-cases/${testCaseId}/verifications?limit=2&cursor=${cursor}`);
    expect(rest.body.data.map(({ id }: { id: string }) => id)).toEqual([first.id]);
    await runner.stop();
  }, 90_000);

  test("loses no run when a runner is killed: the run goes to another runner", async () => {
    const project = await fresh();
    const gate = createPlace("gate");
    const repository = await createProbedRepository([{ test: `while [ ! -e ${gate}/open ]; do sleep 0.02; done` }]);
    const [commit] = repository.commits as [string];
    const testCaseId = await report(project, commit);
    const tasks = { unit: repository.task };
    const killed = await startProbeRunner({ url, project, tasks, args: ["--name", "killed"], isProcess: true });
    const id = await begin(project, testCaseId, { commit, runs: 4 });
    const isRunning = () =>
      pool`select from lease where project_id = ${project.project} and runner = 'killed' and status = 'running'`;
    await until(async () => (await isRunning()).length === 1, 20);
    await killed.kill();
    await Bun.write(`${gate}/open`, "");
    // As if the time of the lease were over.
    await pool`update lease set expires_at = now() - interval '1 second' where project_id = ${project.project} and runner = 'killed'`;
    expect(await reclaimLeases(database)).toBe(1);
    const other = await startProbeRunner({ url, project, tasks, args: ["--name", "other"] });
    expect(await ends(project, id)).toMatchObject({ status: "passed", passed: 4, failed: 0, noResult: 0 });
    await other.stop();
    await removePlace(gate);
  }, 90_000);

  test("is refused while 20 of the project run, also if several are begun at the same time", async () => {
    const project = await fresh();
    const testCaseId = await report(project, "abcdef1");
    await project.call("POST", "/leases", { runner: "r", probeSlugs: ["unit"], free: 0 });
    const verify = () => project.call("POST", `/test-cases/${testCaseId}/verify`, { commit: "abcdef1", runs: 3 });
    for (let count = 0; count < 18; count++) expect((await verify()).status).toBe(201);
    const answers = await Promise.all(Array.from({ length: 8 }, verify));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 400, 400, 400, 400, 400, 400]);
    expect(answers.find(({ status }) => status === 400)!.body.error.message).toBe(
      "Cannot verify the test case: 20 verifications of the project are running",
    );
  });

  test("can be cancelled with its probes, and needs a runner that can run the test case alone", async () => {
    const project = await fresh();
    const testCaseId = await report(project, "abcdef1");
    const refused = await project.call("POST", `/test-cases/${testCaseId}/verify`, { commit: "abcdef1" });
    expect([refused.status, refused.body.error.message]).toEqual([
      400,
      expect.stringContaining("Cannot run the test case alone: no runner"),
    ]);
    await project.call("POST", "/leases", { runner: "r", probeSlugs: ["unit"], free: 0 });
    const option = await project.call("POST", `/test-cases/${testCaseId}/verify`, { commit: "--output=/tmp/x" });
    expect(option.body.error.message).toBe(
      `Cannot read "commit": expected a commit hash of 7 to 64 hexadecimal digits, got "--output=/tmp/x"`,
    );
    const id = await begin(project, testCaseId, { commit: "abcdef1", runs: 3 });
    const { body: probes } = await project.call("GET", "/executions?probe=true");
    expect(probes.data.map(({ status }: { status: string }) => status)).toEqual(["queued"]);
    const cancelled = await project.call("POST", `/verifications/${id}/cancel`);
    expect(cancelled.body).toMatchObject({ status: "cancelled", passed: 0, failed: 0 });
    expect((await project.get(`/executions/${probes.data[0].id}`)).status).toBe("cancelled");
    expect((await project.call("POST", `/verifications/${id}/cancel`)).status).toBe(200);
    expect(
      await pool`select from event where project_id = ${project.project} and type = 'test_case.verified'`,
    ).toHaveLength(0);
  });

  test("ends a quarantine only for keys that may", async () => {
    const project = await fresh();
    const testCaseId = await report(project, "abcdef1");
    await project.call("POST", "/leases", { runner: "r", probeSlugs: ["unit"], free: 0 });
    const { body: run } = await project.call("POST", "/keys", { name: "run", scope: "run" });
    const verify = (release: boolean) =>
      createAsking(ask, { ...project, key: run.key }).call("POST", `/test-cases/${testCaseId}/verify`, {
        commit: "abcdef1",
        release,
      });
    const refused = await verify(true);
    expect([refused.status, refused.body.error.message]).toEqual([
      401,
      `A key of scope "run" cannot end a quarantine: omit "release"`,
    ]);
    expect((await verify(false)).status).toBe(201);
  });
});
