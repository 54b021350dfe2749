import { describe, expect, test } from "bun:test";
import { GREEN_REPORTS } from "./green_reports.ts";
import { inShort, read } from "./reading.ts";

const green = GREEN_REPORTS.swift_testing!;
const testID = "M.S/a()/F.swift:1:1";
const record = { kind: "test", version: 0, payload: { id: testID, kind: "function", name: "a()" } };
const event = (kind: string, more: object = {}) => ({
  kind: "event",
  version: 0,
  payload: { kind, testID, messages: [], ...more },
});
const ends = (symbol: string) => event("testEnded", { messages: [{ symbol, text: "Test a() ended." }] });
const issue = (more: object) => event("issueRecorded", { messages: [{ symbol: "fail", text: "no" }], issue: more });
const start = event("testStarted");
const runEnded = (symbol = "pass") =>
  event("runEnded", { testID: undefined, messages: [{ symbol, text: "Test run ended." }] });
const stream = (...events: object[]) => events.map((one) => JSON.stringify(one)).join("\n");
const run = (...events: object[]) => read(stream(record, ...events, runEnded()));

describe("a test", () => {
  test.each([
    ["pass", "passed"],
    ["passWithKnownIssue", "passed"],
    ["passWithWarnings", "passed"],
    ["fail", "failed failure"],
  ])("that ends with the symbol %s is %s", (symbol, expected) => {
    expect(inShort(run(start, ends(symbol)))).toEqual([`${expected}: M.S > a()`]);
  });

  test.each([
    [{ isKnown: false }, "failed failure"],
    [{}, "failed failure"],
    [{ isKnown: true }, "passed"],
    [{ isKnown: false, severity: "warning" }, "passed"],
    [{ isKnown: false, isFailure: false }, "passed"],
    [{ isKnown: false, isFailure: true, severity: "warning" }, "failed failure"],
  ])("with the issue %j is %s", (more, expected) => {
    expect(inShort(run(start, issue(more), ends("pass")))).toEqual([`${expected}: M.S > a()`]);
  });

  test("that did not start is skipped, and one that did not end failed", () => {
    expect(inShort(run())).toEqual(["skipped: M.S > a()"]);
    expect(run(start).cases).toMatchObject([{ status: "failed", kind: "error", message: "The test did not finish" }]);
  });

  test("that is skipped or cancelled is skipped, unless it failed before", () => {
    const messages = [{ symbol: "skip", text: "not here" }];
    expect(run(event("testSkipped", { messages })).cases).toMatchObject([{ status: "skipped", message: "not here" }]);
    expect(inShort(run(start, event("testCancelled", { messages }), ends("skip")))).toEqual(["skipped: M.S > a()"]);
    expect(inShort(run(start, issue({}), event("testCancelled"), ends("fail")))).toEqual(["failed failure: M.S > a()"]);
  });

  test("that is repeated is flaky after a failure, and fails with its last repetition", () => {
    const [good, bad] = [
      [start, ends("pass")],
      [start, issue({}), ends("fail")],
    ];
    expect(inShort(run(...bad, ...good))).toEqual(["passed flaky, 2 attempts: M.S > a()"]);
    expect(inShort(run(...good, ...bad))).toEqual(["failed failure, 2 attempts: M.S > a()"]);
  });

  test("without a record has the names of its id", () => {
    expect(inShort(read(stream(start, ends("pass"), runEnded())))).toEqual(["passed: M.S > a()"]);
  });
});

test("issues outside of tests are failures", () => {
  const suite = { kind: "test", version: 0, payload: { id: "M.S", kind: "suite", name: "S" } };
  for (const id of ["M.S", undefined]) {
    const report = read(stream(suite, event("issueRecorded", { testID: id, issue: {} }), runEnded()));
    expect(inShort(report)).toEqual(["failed error: (issue outside of tests)"]);
  }
});

test("a run that says that it failed is not green", () => {
  expect(read(stream(record, start, ends("pass"), runEnded("fail"))).cases[1]).toMatchObject({
    ...{ name: "(failure without a test case)", message: "Test run ended.", status: "failed" },
  });
});

test("runs one after the other are each judged", () => {
  expect(read(`${green}\n${green}`)).toMatchObject({ partial: false, cases: { length: 4 } });
  const report = read(`${green}\n${stream(start, ends("pass"))}`);
  expect(report.partial).toBe(true);
  expect(inShort(report).at(-1)).toBe("failed error: (run did not finish)");
});
