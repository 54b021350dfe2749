import { describe, expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const trx = (results: string, more = "") =>
  `<?xml version="1.0"?><TestRun xmlns="http://microsoft.com/schemas/VisualStudio/TeamTest/2010">
  <Times start="2026-01-31T12:00:00.0000000+00:00" finish="2026-01-31T12:00:02.5000000+00:00"/>
  <Results>${results}</Results>
  <TestDefinitions><UnitTest id="1" name="Adds"><TestMethod className="Acme.CartTests, Acme, Version=1.0" name="Adds"/></UnitTest></TestDefinitions>${more}</TestRun>`;
const result = (outcome: string, inner = "", more = "") =>
  `<UnitTestResult testId="1" testName="Acme.CartTests.Adds(n: 1)" duration="00:01:02.1234567"${outcome && ` outcome="${outcome}"`} ${more}>${inner}</UnitTestResult>`;

test("a result is read with its class, time and texts", () => {
  const output = `<Output><StdOut>out</StdOut><StdErr>err</StdErr><ErrorInfo><Message>expected 1
but was 2</Message><StackTrace>at Acme.CartTests.Adds()</StackTrace></ErrorInfo></Output>`;
  const found = read(trx(result("Failed", output)));
  expect(inShort(found)).toEqual(["failed failure: Acme.CartTests > Adds(n: 1)"]);
  expect(found.cases[0]).toMatchObject({
    ...{ durationMs: 62_123, message: "expected 1\nbut was 2", stack: "at Acme.CartTests.Adds()", output: "out\nerr" },
    ...{ file: null, line: null, properties: null },
  });
  expect(found).toMatchObject({ format: "trx", durationMs: 2500, completedAt: new Date("2026-01-31T12:00:02.5Z") });
});

test.each([
  ["Passed", "passed", null],
  ["Warning", "passed", null],
  ["Failed", "failed", "failure"],
  ["Error", "failed", "error"],
  ["Timeout", "failed", "timeout"],
  ["Aborted", "failed", "error"],
  ["", "failed", "error"],
  ["NotExecuted", "skipped", null],
  ["Inconclusive", "skipped", null],
  ["Pending", "skipped", null],
  ["NotRunnable", "skipped", null],
  ["InProgress", "failed", "error"],
  ["toString", "failed", "error"],
] as const)("the outcome %p is %p", (outcome, status, kind) => {
  expect(read(trx(result(outcome))).cases).toMatchObject([{ status, kind }]);
});

test("the rows of a data-driven test count as well", () => {
  const rows = `<InnerResults>${result("Passed")}${result("Failed")}</InnerResults>`;
  expect(inShort(read(trx(result("Failed", rows))))).toHaveLength(3);
});

test("a run that was aborted without a failed test is not green", () => {
  const summary = `<ResultSummary outcome="Aborted"><RunInfos><RunInfo><Text>host crashed</Text></RunInfo></RunInfos></ResultSummary>`;
  expect(read(trx(result("Passed"), summary)).cases.at(-1)).toMatchObject({
    name: "(test run failed)",
    status: "failed",
    message: "host crashed",
  });
});

describe("a run that says of itself what none of its tests shows", () => {
  const summary = (outcome: string, counters = "", ...errors: string[]) => {
    const infos = errors.map((text) => `<RunInfo outcome="Error"><Text>${text}</Text></RunInfo>`).join("");
    return `<ResultSummary outcome="${outcome}"><Counters ${counters}/><RunInfos>${infos}</RunInfos></ResultSummary>`;
  };
  const after = (results: string, more: string) =>
    read(trx(results, more)).cases.flatMap(({ name, status, kind, message }) =>
      name.startsWith("(") ? [[name, status, kind, message]] : [],
    );
  const fault = "(test run failed)";
  const crash = "The active test run was aborted. Reason: Test host process crashed";

  test.each(["Failed", "Error", "Aborted"])("has failed when its outcome is %s", (outcome) => {
    const kind = outcome === "Failed" ? "failure" : "error";
    const message = `The outcome of the run is ${outcome}, but none of its tests failed`;
    expect(after(result("Passed"), summary(outcome))).toEqual([[fault, "failed", kind, message]]);
    expect(after(result("Failed"), summary(outcome))).toEqual([]);
  });

  test("has failed when its host crashed, also beside tests that failed", () => {
    expect(after(result("Passed"), summary("Failed", "", crash))).toEqual([[fault, "failed", "error", crash]]);
    expect(after(result("Passed"), summary("Completed", "", crash))).toEqual([[fault, "failed", "error", crash]]);
    expect(after(result("Failed"), summary("Failed", "", crash))).toEqual([[fault, "failed", "error", crash]]);
    expect(after(result("Aborted"), summary("Error", "", crash))).toEqual([]);
  });

  test("has not when a run-level error only repeats a test that failed", () => {
    const fail = "[xUnit.net 00:00:00.51]     Acme.CartTests.Adds [FAIL]";
    const more = "[xUnit.net 00:00:00.52]       Assert.Equal() Failure";
    const code = "Exit code indicates failure: '2'. Please refer to https://aka.ms/testingplatform/exitcodes";
    expect(after(result("Failed"), summary("Failed", "", fail, more, code))).toEqual([]);
    const cleanup = "[xUnit.net 00:00:00.60]     [Test Class Cleanup Failure (Acme.CartTests)]: System.Exception: x";
    expect(after(result("Failed"), summary("Failed", "", fail, cleanup))).toEqual([
      [fault, "failed", "error", cleanup],
    ]);
  });

  test("is warned of when its counters tell of more tests, and not of fewer, as rows are counted by some", () => {
    expect(read(trx(result("Passed"), summary("Completed", 'total="3"'))).warnings).toEqual([
      "The report declares 3 tests, but its test cases are 1 test",
    ]);
    expect(read(trx(result("Passed").repeat(2), summary("Completed", 'total="1" passed="1"'))).warnings).toEqual([]);
  });
});

test.each(["1:2:3", "00:00:61", "x", "", "99999999999:00:00"])("the duration %p does not break it", (duration) => {
  const { cases } = read(trx(`<UnitTestResult testName="a" outcome="Passed" duration="${duration}"/>`));
  expect(cases[0]!.durationMs === null || cases[0]!.durationMs > 0).toBe(true);
});
