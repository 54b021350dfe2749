import { expect, test } from "bun:test";
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
  expect(found.cases).toEqual([
    {
      suite: "Acme.CartTests",
      name: "Adds(n: 1)",
      file: null,
      line: null,
      status: "failed",
      kind: "failure",
      flaky: false,
      attempts: 1,
      durationMs: 62_123,
      message: "expected 1\nbut was 2",
      stack: "at Acme.CartTests.Adds()",
      output: "out\nerr",
      properties: null,
    },
  ]);
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
  ["toString", "skipped", null],
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

test("more tests declared than listed are a warning", () => {
  const summary = `<ResultSummary outcome="Completed"><Counters total="3"/></ResultSummary>`;
  expect(read(trx(result("Passed"), summary)).warnings).toEqual([
    "The report declares 3 tests, but its test cases are 1 test",
  ]);
});

test.each(["1:2:3", "00:00:61", "x", "", "99999999999:00:00"])("the duration %p does not break it", (duration) => {
  const { cases } = read(trx(`<UnitTestResult testName="a" outcome="Passed" duration="${duration}"/>`));
  expect(cases[0]!.durationMs === null || cases[0]!.durationMs > 0).toBe(true);
});
