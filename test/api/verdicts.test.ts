import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createHarness, junit } from "../harness.ts";

const { ask, acme, addProject } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

async function upload(letters: string, query: string, suite = "unit", expected = 201) {
  const { status, body } = await own.send(junit(letters, suite), query);
  expect([body.error, status]).toEqual([undefined, expected]);
  return body;
}
const get = async (path: string) => await own.get(`/executions/${path}`);
const verdict = (id: string, query = "gate=new") => get(`${id}/verdict?${query}`);
const names = (forgiven: { name: string; list: string }[]) => forgiven.map(({ name, list }) => `${name}: ${list}`);

/** The first case fails on the default branch, the second is quarantined. */
async function prepare() {
  await upload("fppp", "branch=main");
  const body = await own.get("/test-cases?limit=100");
  const quarantine = { quarantine: { reason: "unstable" } };
  await own.patch(`/test-cases/${body.data.find(({ name }: any) => name === "case 1").id}`, quarantine);
}

describe("an upload with a gate", () => {
  beforeEach(prepare);

  test("does not pass in an outage", async () => {
    const { gate } = await upload("f".repeat(12), "branch=x&gate=new");
    expect(gate).toMatchObject({ pass: false, reasons: ["t: an outage: nearly all tests failed"] });
  });

  test("does not pass with a truncated report", async () => {
    const cut = junit("fppp").slice(0, -60);
    const { body } = await own.send(cut, "branch=x&gate=new");
    expect(body.gate).toMatchObject({ pass: false, reasons: ["t: the report is incomplete"] });
  });

  test("does not pass with failures that are only counted", async () => {
    const counts = { taskSlug: "t", passed: 5, failed: 2, skipped: 0 };
    const { body } = await own.send(counts, "branch=x&gate=new");
    expect(body.gate).toMatchObject({ pass: false, reasons: ["t: 2 failures without a test case in the report"] });
  });

  test("passes when all failures are forgiven, names them and records them on the run", async () => {
    const run = await upload("ffpp", "branch=x&gate=new&exit_code=1");
    expect(run).toMatchObject({ verdict: "failed", gate: { gate: "new", pass: true, reasons: [], forgivenCount: 2 } });
    expect(run.gate.forgiven).toMatchObject([
      {
        name: "case 0",
        taskSlug: "t",
        list: "still_failing",
        reason: expect.stringMatching(/^It failed in the baseline, with the same message: /),
      },
      { name: "case 1", list: "quarantined", reason: "Quarantined: its failures do not count" },
    ]);
    const { forgiven, gates, verdict } = await get(`${run.executionId}/test-runs/t`);
    expect({ forgiven, verdict }).toEqual({ forgiven: 2, verdict: "failed" });
    const { unclear: _, ...stored } = run.gate;
    expect(gates).toEqual([{ ...stored, shard: null, decidedAt: expect.stringContaining("Z") }]);
  });

  test("of mode quarantine forgives nothing else", async () => {
    const { gate } = await upload("ffpp", "branch=x&gate=quarantine&exit_code=1");
    expect(gate).toMatchObject({ pass: false, reasons: ["t: 1 failure that the baseline has too"], forgivenCount: 1 });
    expect((await upload("pfpp", "branch=x&gate=quarantine&exit_code=1")).gate).toMatchObject({ pass: true });
  });

  test("does not pass with what an earlier build of the same branch has broken, although that is the baseline", async () => {
    await upload("fppf", "branch=x&commit=1111111a&execution_key=1&complete=true");
    const { gate } = await upload("fppf", "branch=x&commit=2222222b&base_commit=1111111a&gate=new&exit_code=1");
    expect(gate).toMatchObject({ pass: false, reasons: ["t: 2 failures that the baseline has too"] });
  });

  test("does not pass with a report that counts more failures than it names", async () => {
    const body = `<testsuite name="unit" tests="4" failures="3">${'<testcase name="case 1"><failure/></testcase>'}<testcase name="case 2"/></testsuite>`;
    const { gate } = await own.uploadReport(body, "branch=x&gate=new&exit_code=1");
    expect(gate).toMatchObject({ pass: false, reasons: [expect.stringContaining("report")] });
  });

  test("does not pass with a namesake in another file, where the report is of a part of the task", async () => {
    const one = (file: string, name: string, failed = false) =>
      `<testcase classname="s" name="${name}" file="test/${file}.ts">${failed ? "<failure/>" : ""}</testcase>`;
    const send = async (query: string, cases: string) =>
      await own.post(`/test-runs?task_slug=parts&${query}`, `<testsuite name="s">${cases}</testsuite>`);
    await send("branch=main", one("a", "login") + one("a", "logout") + one("b", "pay"));
    const { data } = await own.get("/test-cases?task_slug=parts");
    const { id } = data.find(({ name }: { name: string }) => name === "login");
    await own.patch(`/test-cases/${id}`, { quarantine: { reason: "unstable" } });
    const { gate } = await send("branch=x&gate=quarantine&exit_code=1", one("admin", "login", true));
    expect(gate).toMatchObject({ pass: false, reasons: ["parts: 1 new failure"] });
  });

  test("does not pass with a new failure, and the run says so", async () => {
    const { gate, executionId } = await upload("ffpf", "branch=x&gate=new&exit_code=1");
    expect(gate).toMatchObject({ pass: false, reasons: ["t: 1 new failure"], forgivenCount: 2 });
    expect(await get(`${executionId}/test-runs/t`)).toMatchObject({ forgiven: 0, gates: [{ pass: false }] });
  });

  test.each([
    ["the default branch", "branch=main"],
    ["no branch, which counts as the default branch", "commit=1a2b3c4d"],
    ["a long-lived branch", "branch=release/2.0"],
  ])("of %s does not pass while a test is broken there", async (_, query) => {
    await upload("fppp", query);
    const { gate, executionId } = await upload("ffpp", `${query}&gate=new&exit_code=1`);
    const reasons = ["t: 1 failure that the baseline has too"];
    const forgiven = [{ name: "case 1", list: "quarantined" }];
    expect(gate).toMatchObject({ pass: false, reasons, forgivenCount: 1, forgiven });
    expect(await verdict(executionId)).toMatchObject({ pass: false, reasons, forgivenCount: 1, forgiven });
    expect((await upload("pfpp", `${query}&gate=new&exit_code=1`)).gate).toMatchObject({ pass: true });
  });

  test.each([
    ["a pull request from a fork whose branch has the name of the default branch", "branch=main&pull_request=7"],
    ["a merge queue", "branch=gh-readonly-queue/main/pr-7-1a2b3c4d5e6f"],
  ])("of %s passes although a test is broken on the default branch", async (_, query) => {
    const { gate } = await upload("fppp", `${query}&gate=new&exit_code=1`);
    expect(gate).toMatchObject({ pass: true, forgiven: [{ name: "case 0", list: "still_failing" }] });
  });

  test("records nothing in a dry run", async () => {
    const { gate, executionId } = await upload("fppp", "branch=x&gate=new&gate_dry_run=true");
    expect(gate).toMatchObject({ pass: true, forgivenCount: 1 });
    expect(await get(`${executionId}/test-runs/t`)).toMatchObject({ forgiven: 0, gates: [] });
  });

  test("has an answer without failures as well, and none unless it is asked for", async () => {
    expect((await upload("pppp", "branch=x&gate=new")).gate).toEqual({
      ...{ gate: "new", pass: true, reasons: [], forgivenCount: 0, forgiven: [], unclear: [] },
    });
    expect("gate" in (await upload("fppp", "branch=x"))).toBe(false);
  });

  test.each([
    ["a crash", "fppp", "exit_code=139", "t: exit code 139 (SIGSEGV), which means more than failed tests"],
    ["no failed test", "pppp", "exit_code=1", "t: test runner exited with code 1"],
  ])("does not pass with %s", async (_, letters, query, reason) => {
    const { gate } = await upload(letters, `branch=x&gate=new&${query}`);
    expect(gate).toMatchObject({ pass: false, reasons: [reason] });
  });

  test("of a shard is judged by its own results", async () => {
    const build = "branch=x&execution_key=7";
    const broken = await upload("pf", `${build}&shard=1/3&gate=new&exit_code=1`, "other");
    expect(broken.gate).toMatchObject({ pass: false, reasons: ["t: 1 new failure"] });
    const { gate } = await upload("fp", `${build}&shard=2/3&gate=new&exit_code=1`);
    expect(gate).toMatchObject({ pass: true, forgivenCount: 1 });
    expect(names(gate.forgiven)).toEqual(["case 0: still_failing"]);
    const { forgiven, gates } = await get(`${broken.executionId}/test-runs/t`);
    expect(forgiven).toBe(1);
    expect(gates.map(({ shard, pass }: any) => [shard, pass])).toEqual([
      [1, false],
      [2, true],
    ]);
    // What an earlier attempt of the shard left red counts as well.
    const again = await upload("p", `${build}&shard=1/3&gate=new`, "third");
    expect(again.gate).toMatchObject({ pass: false, reasons: ["t: 1 new failure"] });
  });

  test("repeats its decision when the same bytes are sent again, unless a later attempt has replaced them", async () => {
    const build = "branch=x&execution_key=8&gate=new&exit_code=1";
    const first = await upload("fppp", build);
    expect((await upload("fppp", build, "unit", 200)).gate).toEqual(first.gate);
    expect((await upload("pppp", "branch=x&execution_key=8&gate=new")).gate.pass).toBe(true);
    expect((await upload("fppp", build, "unit", 200)).gate).toMatchObject({
      ...{ pass: false, reasons: ["t: the report repeats an earlier attempt, which a later one has replaced"] },
    });
  });

  test("is answered as text whose first line is the decision", async () => {
    const lines = async (letters: string) =>
      (await own.send(junit(letters), "branch=x&gate=new&exit_code=1", { accept: "text/plain" })).text.split("\n");
    expect(await lines("fppp")).toEqual([
      "Gate new: passed, 1 failure forgiven",
      expect.stringMatching(/^Forgiven: unit > case 0: It failed in the baseline, .* % not this change$/),
      expect.stringContaining("FAILED t: 3 passed, 1 failed"),
      "",
    ]);
    expect((await lines("fppf")).slice(0, 3)).toEqual([
      "Gate new: failed",
      expect.stringMatching(/^Would be forgiven: unit > case 0: It failed in the baseline, /),
      "Stays red: t: 1 new failure",
    ]);
  });

  test("refuses an unknown mode", async () => {
    const { status, body } = await own.call("POST", "/test-runs?gate=all", junit("p"));
    const message = 'Cannot read "gate": expected "quarantine" or "new", got "all"';
    expect([status, body.error.message]).toEqual([400, message]);
  });
});

describe("GET …/executions/:executionId/verdict", () => {
  beforeEach(prepare);

  test("decides about all tasks, and about one of them", async () => {
    const build = "branch=x&execution_key=1";
    const { executionId } = await upload("ffpp", build);
    await upload("pf", `${build}&task_slug=e2e&complete=true`, "e2e");
    expect(await verdict(executionId)).toMatchObject({
      ...{ executionId, status: "failed", gate: "new", pass: false, final: true },
      ...{ reasons: ["e2e: 1 new failure"], forgivenCount: 2 },
    });
    const own = await verdict(executionId, "gate=new&task_slug=t");
    expect(own).toMatchObject({ pass: true, final: true, reasons: [] });
    expect(names(own.forgiven)).toEqual(["case 0: still_failing", "case 1: quarantined"]);
    expect(await verdict(executionId, "gate=quarantine&task_slug=t")).toMatchObject({
      ...{ pass: false, reasons: ["t: 1 failure that the baseline has too"] },
    });
    expect(await verdict(executionId, "gate=new&task_slug=none")).toMatchObject({
      ...{ pass: false, final: true, reasons: ["There are no reports"] },
    });
  });

  test("is not final before all tasks have reported, and waits for the end", async () => {
    const created = { key: "2", tasks: ["t", "lint", "e2e"], branch: "x" };
    const execution = await own.post("/executions", created);
    const open = await verdict(execution.id);
    expect(open).toMatchObject({ pass: false, final: false, reasons: ["3 of 3 tasks have not reported"] });
    await upload("fppp", "branch=x&execution_key=2");
    expect(await verdict(execution.id)).toMatchObject({ final: false, reasons: ["2 of 3 tasks have not reported"] });
    await upload("p", "branch=x&execution_key=2&task_slug=lint");
    const waiting = verdict(execution.id, "gate=new&wait=30");
    await upload("p", "branch=x&execution_key=2&task_slug=e2e");
    expect(await waiting).toMatchObject({ pass: true, final: true, reasons: [], forgivenCount: 1 });
  });

  test("does not pass with missing shards, a task that never reported, or when it was cancelled", async () => {
    const { executionId } = await upload("p", "branch=x&execution_key=3&shard=1/3");
    await own.post(`/executions/${executionId}/complete`);
    expect(await verdict(executionId)).toMatchObject({ pass: false, reasons: ["t: shards 2 and 3 of 3 missing"] });
    const create = async (tasks: string[]) => (await own.post("/executions", { tasks })).id;
    const silent = await create(["t"]);
    await own.post(`/executions/${silent}/complete`);
    expect(await verdict(silent)).toMatchObject({ pass: false, reasons: ["t: did not report"] });
    const cancelled = await create(["t"]);
    await own.post(`/executions/${cancelled}/cancel`);
    const reasons = ["The execution was cancelled", "t: did not report"];
    expect(await verdict(cancelled)).toMatchObject({ pass: false, final: true, reasons });
  });

  test("judges a task as its last rerun left it", async () => {
    const { executionId } = await upload("pppf", "branch=x&execution_key=4&complete=true");
    expect((await verdict(executionId)).pass).toBe(false);
    const rerun = await own.post(`/executions/${executionId}/rerun`, { failedOnly: true });
    await upload("pppp", `execution_id=${rerun.id}`);
    expect(await verdict(executionId)).toMatchObject({ pass: true, final: true, status: "failed" });
  });
});
