/** Several rows of one name in one upload, and cases that contain cases: what run, history and gate make of them. */

import { describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { countAll } from "../../src/work/count.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();
const fresh = async () => createAsking(ask, await addProject(acme), "t");

const NO = '<failure message="no">Error: no</failure>';
const row = (name: string, inner = "") => `<testcase classname="com.acme.StockTest" name="${name}">${inner}</testcase>`;
const junit = (rows: string[], attributes = "") =>
  `<testsuite name="com.acme.StockTest" ${attributes}>${rows.join("")}</testsuite>`;
const form = (...files: string[]) => {
  const body = new FormData();
  for (const [index, file] of files.entries()) body.append("file", new Blob([file]), `${index}.xml`);
  return body;
};

const RETRIED = junit([row("counts()", NO), row("adds()"), row("counts()", NO), row("counts()")]);

describe("rows of one name, of which the last one passed", () => {
  test.each(["exit_code=0", "attempts=merged"])("are attempts of a flaky test with %s", async (query) => {
    const place = await fresh();
    const run = await place.uploadReport(RETRIED, `${query}&branch=main&complete=true`);
    expect(run).toMatchObject({ verdict: "passed", passed: 2, failed: 0, total: 2, flaky: 1 });
    const [flaky] = await place.list(`/executions/${run.executionId}/test-runs/t/cases?flaky=true`);
    expect(flaky).toMatchObject({ name: "counts()", status: "passed", message: "no" });
    expect((await place.get(`/executions/${run.executionId}/failures`)).headline).toEndWith(", 1 flaky");
  });

  test.each(["", "exit_code=1"])("are rows of one red test otherwise (%s)", async (query) => {
    const place = await fresh();
    const run = await place.uploadReport(RETRIED, `${query}&branch=main&complete=true`);
    const counts = { newFailures: 1 };
    expect(run).toMatchObject({ verdict: "failed", passed: 2, failed: 2, total: 4, flaky: 0, counts });
    const cases = await place.list("/test-cases");
    expect(cases.map(({ name, failures }) => [name, failures])).toEqual([
      ["counts()", 1],
      ["adds()", 0],
    ]);
    const again = await place.uploadReport(junit([row("counts()")]), `exit_code=0&execution_id=${run.executionId}`);
    expect(again).toMatchObject({ verdict: "passed", flaky: 1 });
  });

  test("do not make a quarantined test red by their number", async () => {
    const place = await fresh();
    await place.uploadReport(RETRIED, "exit_code=0&branch=main&complete=true");
    const [{ id }] = await place.list("/test-cases?q=counts");
    await place.patch(`/test-cases/${id}`, { quarantine: { reason: "known" } });
    const run = await place.uploadReport(RETRIED, "exit_code=1&branch=topic&complete=true&gate=quarantine");
    expect(run).toMatchObject({ verdict: "passed", failed: 2, gate: { pass: true, forgivenCount: 1 } });
  });
});

test("rows of a parameterised test stay red where one of them failed, also if it is not the last", async () => {
  const place = await fresh();
  const rows = junit([row("sums(int)"), row("sums(int)", NO), row("sums(int)")]);
  const red = { verdict: "failed", failed: 1 };
  expect(await place.uploadReport(rows, "exit_code=1&complete=true")).toMatchObject({ ...red, passed: 2 });
  const last = junit([row("sums(int)"), row("sums(int)", NO)]);
  expect(await place.uploadReport(last, "exit_code=0&complete=true")).toMatchObject({ ...red, passed: 1 });
});

test("rows that all passed are one test beside the failure of their tool", async () => {
  const place = await fresh();
  const run = await place.uploadReport(junit([row("sums(int)"), row("sums(int)")]), "exit_code=3&complete=true");
  expect(run).toMatchObject({ verdict: "failed", passed: 2, failed: 1 });
  const cases = await place.list(`/executions/${run.executionId}/test-runs/t/cases`);
  expect(cases.map(({ name }) => name)).toEqual(["runner exited 3", "sums(int)"]);
});

test.each([
  ["exit_code=0", "passed", 1],
  ["exit_code=1", "failed", 0],
  ["", "failed", 0],
])("a test that its suite counts as flaky has passed if the tool has (%s)", async (query, verdict, flaky) => {
  const place = await fresh();
  const report = junit([row("counts", NO + NO), row("adds")], 'tests="2" failures="2" flaky="1"');
  expect(await place.uploadReport(report, `${query}&complete=true`)).toMatchObject({ verdict, flaky });
});

describe("files of one upload", () => {
  const at = (time: string) => `timestamp="2026-02-03T10:${time}" time="2"`;
  const first = junit([row("a"), row("b", NO), row("c", NO)], at("00:00"));

  test.each([true, false])("of which one repeats the failures are attempts, in any order (%p)", async (inOrder) => {
    const place = await fresh();
    const retry = junit([row("b"), row("c")], at("01:00"));
    const run = await place.uploadReport(inOrder ? form(first, retry) : form(retry, first), "complete=true");
    expect(run).toMatchObject({ verdict: "passed", passed: 3, failed: 0, flaky: 2, total: 3 });
  });

  test("stay red where the later one passes only some, does not follow the first, or has all tests, as that of another browser", async () => {
    for (const [later, failed] of [
      [junit([row("b")], at("01:00")), 1],
      [junit([row("b"), row("c")], at("00:01")), 2],
      [junit([row("a"), row("b"), row("c")], at("01:00")), 2],
      [junit([row("b"), row("c")]), 2],
    ] as const) {
      const place = await fresh();
      const red = { verdict: "failed", failed };
      expect(await place.uploadReport(form(first, later), "complete=true")).toMatchObject(red);
    }
  });

  test("are of the attempts that the upload says, and rows of one name in one of them stay rows", async () => {
    const of = (query: string, ...files: string[]) =>
      fresh().then((place) => place.uploadReport(form(...files), `complete=true&exit_code=0&${query}`));
    const [all, again] = [junit([row("a"), row("b", NO)]), junit([row("b")])];
    const green = { verdict: "passed", passed: 2, failed: 0, flaky: 1 };
    expect(await of("attempts=1,2", all, again)).toMatchObject(green);
    // A tool that names no times may list the later attempt first.
    expect(await of("attempts=2,1", again, all)).toMatchObject(green);
    expect(await of("attempts=1,1", all, junit([row("c")]))).toMatchObject({ verdict: "failed", failed: 1 });
    expect(await of("attempts=1,2", all, junit([row("b", NO)]))).toMatchObject({ verdict: "failed", failed: 1 });
    const rows = junit([row("b", NO), row("b", NO), row("b")]);
    expect(await of("attempts=1,2", rows, junit([row("b"), row("b", NO)]))).toMatchObject({ verdict: "failed" });
  });

  test("that are more or fewer than the attempts are a 400 that says so", async () => {
    const place = await fresh();
    const { status, body } = await place.call("POST", "/test-runs?attempts=1,2,2", form(first, first));
    const message = 'Cannot read "attempts": expected a number for each of 2 files, got 3';
    expect([status, body.error.message]).toEqual([400, message]);
    const odd = await place.call("POST", "/test-runs?attempts=1,zero", form(first, first));
    expect(odd.body.error.message).toContain('expected "merged" or a number from 1 to 99 for each file');
  });

  test("of Visual Studio are attempts as well", async () => {
    const result = (outcome: string, index: number) =>
      `<UnitTestResult testId="t${index}" testName="T${index}" outcome="${outcome}"/>`;
    const trx = (minute: string, outcomes: string[], total: string) =>
      `<TestRun xmlns="http://microsoft.com/schemas/VisualStudio/TeamTest/2010"><Times start="2026-02-03T10:${minute}:00Z" finish="2026-02-03T10:${minute}:02Z"/><Results>${outcomes.map(result).join("")}</Results><ResultSummary outcome="${total}"/></TestRun>`;
    const place = await fresh();
    const files = form(trx("00", ["Failed", "Passed"], "Failed"), trx("01", ["Passed"], "Completed"));
    expect(await place.uploadReport(files, "complete=true")).toMatchObject({ verdict: "passed", passed: 2, flaky: 1 });
  });
});

describe("a Go test that failed only through its subtest", () => {
  const event = (Action: string, Test?: string, Output?: string) =>
    JSON.stringify({ Action, Package: "acme.test/tax", ...(Test ? { Test } : {}), ...(Output ? { Output } : {}) });
  const json = (own = "") =>
    [
      ...[event("run", "TestTax"), event("output", "TestTax", "=== RUN   TestTax\n"), event("run", "TestTax/eur")],
      event("output", "TestTax/eur", "    tax_test.go:6: got 3, want 4\n"),
      event("output", "TestTax/eur", "    --- FAIL: TestTax/eur (0.00s)\n"),
      ...(own === "" ? [] : [event("output", "TestTax", own)]),
      event("output", "TestTax", "--- FAIL: TestTax (0.00s)\n"),
      ...[event("fail", "TestTax/eur"), event("fail", "TestTax"), event("fail")],
    ].join("\n");
  const xml = (text = "") =>
    `<testsuites><testsuite name="acme.test/tax">${["TestTax/eur", "TestTax"]
      .map((name) => {
        const said = name === "TestTax" ? text : "    tax_test.go:6: got 3, want 4\n";
        return `<testcase classname="acme.test/tax" name="${name}"><failure message="Failed">=== RUN   ${name}\n${said}--- FAIL: ${name} (0.00s)\n</failure></testcase>`;
      })
      .join("")}</testsuite></testsuites>`;
  const passed = [
    event("run", "TestTax"),
    event("run", "TestTax/eur"),
    event("pass", "TestTax/eur"),
    event("pass", "TestTax"),
    event("pass"),
  ];

  test.each([
    ["test2json", json(), json("    tax_test.go:9: no subtests left\n")],
    ["JUnit XML", xml(), xml("    tax_test.go:9: no subtests left\n")],
  ])("is no failure of its own (%s)", async (_, through, own) => {
    const place = await fresh();
    await place.uploadReport(passed.join("\n"), "branch=main&complete=true");
    const red = await place.uploadReport(through, "branch=main&exit_code=1&complete=true");
    expect(red).toMatchObject({ verdict: "failed", failed: 2, counts: { newFailures: 1 } });
    expect(red.newFailures.map(({ name }: { name: string }) => name)).toEqual(["TestTax/eur"]);
    expect(await place.list("/bug-reports")).toHaveLength(1);
    await countAll(database);
    const parent = (await place.list("/test-cases?q=TestTax")).find(({ name }) => name === "TestTax");
    expect(parent).toMatchObject({ runs: 1, failures: 0, lastStatus: "passed", lastFailedAt: null });
    const { id } = (await place.list("/test-cases?q=TestTax/eur"))[0];
    await place.patch(`/test-cases/${id}`, { quarantine: { reason: "currency service" } });
    const gated = "branch=topic&exit_code=1&complete=true&gate=quarantine";
    expect(await place.uploadReport(through, gated)).toMatchObject({
      ...{ verdict: "passed", failed: 2, missing: { count: 0 } },
      gate: { pass: true, reasons: [], forgivenCount: 1 },
    });
    expect(await place.uploadReport(own, gated)).toMatchObject({ verdict: "failed", gate: { pass: false } });
  });
});
