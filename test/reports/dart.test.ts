import { describe, expect, test } from "bun:test";
import { inShort, read as readText } from "./reading.ts";

const START = { protocolVersion: "0.1.1", runnerVersion: "1.24.9", pid: 7, type: "start", time: 0 };
const SUITE = { suite: { id: 0, platform: "vm", path: "test/cart_test.dart" }, type: "suite", time: 0 };
const ROOT = group(1, null, "");
const done = (success: boolean | null = true) => ({ success, type: "done", time: 2500 });
function group(id: number, parentID: number | null, name: string | null) {
  return { group: { id, suiteID: 0, parentID, name, testCount: 1 }, type: "group", time: 1 };
}
const testStart = (id: number, name: string, groupIDs: number[] = [1], more: object = {}) => ({
  test: { id, name, suiteID: 0, groupIDs, line: 5, column: 3, url: "file:///app/test/cart_test.dart", ...more },
  type: "testStart",
  time: 100,
});
const testDone = (testID: number, result = "success", more: object = {}) => ({
  ...{ testID, result, skipped: false, hidden: false, type: "testDone", time: 350 },
  ...more,
});
const error = (testID: number, text: string, isFailure = true) => ({
  ...{ testID, error: text, stackTrace: "test/cart_test.dart 7:5  main.<fn>\n", isFailure, type: "error", time: 200 },
});
const print = (testID: number, message: string, messageType = "print") => ({
  ...{ testID, messageType, message, type: "print", time: 150 },
});
const toLines = (lines: (string | object)[]) =>
  lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");
const read = (...lines: (string | object)[]) => readText(toLines([START, SUITE, ROOT, ...lines]));

test("groups are the suite, what the runner does around the tests is none, times are told", () => {
  const report = read(
    testStart(2, "loading test/cart_test.dart", []),
    testDone(2, "success", { hidden: true }),
    group(3, 1, "Cart"),
    group(4, 3, "Cart when empty"),
    testStart(5, "(setUpAll)", [1, 3]),
    testDone(5, "success", { hidden: true }),
    testStart(6, "Cart when empty has no total", [1, 3, 4]),
    print(6, "hello"),
    testDone(6),
    done(),
  );
  expect(report).toMatchObject({ format: "dart", durationMs: 2500, partial: false, warnings: [] });
  expect(report.cases).toMatchObject([
    {
      ...{ suite: "Cart > when empty", name: "has no total", file: "test/cart_test.dart", line: 5 },
      ...{ durationMs: 250, output: "hello" },
    },
  ]);
});

test("flutter's own lines and what it builds are passed over", () => {
  const report = readText(
    toLines([
      "Resolving dependencies...",
      '[{"event":"test.startedProcess","params":{"vmServiceUri":null}}]',
      ...[START, SUITE, testStart(2, "a"), "", "flutter: hello", testDone(2), done(), "bye"],
    ]),
  );
  expect(inShort(report)).toEqual(["passed: a"]);
});

describe("a test of Dart", () => {
  const outcome = (...events: object[]) => read(testStart(2, "adds"), ...events, done()).cases[0];

  test("has the error as message, and the trace below it", () => {
    expect(outcome(error(2, "Expected: <2>\n  Actual: <1>\n"), testDone(2, "failure"))).toMatchObject({
      status: "failed",
      kind: "failure",
      message: "Expected: <2>\n  Actual: <1>",
      stack: "Expected: <2>\n  Actual: <1>\ntest/cart_test.dart 7:5  main.<fn>",
    });
    expect(outcome(error(2, "StateError", false), testDone(2, "error"))).toMatchObject({ kind: "error" });
    const slow = "TimeoutException after 0:00:30.000000: Test timed out after 30 seconds.";
    expect(outcome(error(2, slow, false), testDone(2, "error"))).toMatchObject({ kind: "timeout" });
  });

  test("that was skipped has the reason", () => {
    const skipped = outcome(print(2, "Skip: later", "skip"), testDone(2, "success", { skipped: true }));
    expect(skipped).toMatchObject({ status: "skipped", message: "later", output: null });
  });

  test("that was tried again is flaky when it passed at last, and has its last failure when not", () => {
    const first = [error(2, "first"), print(2, "Retry: adds")];
    expect(outcome(...first, testDone(2))).toMatchObject({ status: "passed", flaky: true, attempts: 2, message: null });
    const failed = { status: "failed", flaky: false, attempts: 2, message: "second" };
    expect(outcome(...first, error(2, "second"), testDone(2, "failure"))).toMatchObject(failed);
  });

  test("whose error comes after its end has failed, also when it was hidden", () => {
    expect(outcome(testDone(2), error(2, "late"))).toMatchObject({ status: "failed", message: "late" });
    const hidden = read(testStart(2, "(tearDownAll)"), testDone(2, "success", { hidden: true }), error(2, "late"));
    expect(inShort(hidden)[0]).toBe("failed failure: (tearDownAll)");
  });

  test("that another file defines has the line in its own file", () => {
    const elsewhere = { url: "package:flutter_test/src/widget_tester.dart", line: 170 };
    const line = (more: object) =>
      read(testStart(2, "a", [1], { ...elsewhere, ...more }), testDone(2), done()).cases[0]!.line;
    expect(line({ root_line: 9, root_url: "file:///app/test/cart_test.dart" })).toBe(9);
    expect(line({})).toBeNull();
  });
});

describe("no silent green", () => {
  test("a file that does not load is a failed case", () => {
    const report = read(
      testStart(2, "loading test/cart_test.dart", []),
      error(2, "Failed to load", false),
      testDone(2, "error"),
      done(false),
    );
    expect(inShort(report)).toEqual(["failed error: (file failed to load)"]);
    expect(report.cases[0]).toMatchObject({ file: "test/cart_test.dart", message: "Failed to load" });
  });

  test("a stream without its end is partial, and a test without one failed", () => {
    const report = read(testStart(2, "a"), testDone(2), testStart(3, "b"), '{"testID":3,"resu');
    expect(report.partial).toBe(true);
    expect(inShort(report)).toEqual(["passed: a", "failed error: b", "failed error: (test run did not finish)"]);
    expect(report.cases[1]!.message).toBe("It did not finish");
  });

  test("a run that was closed is not green", () => {
    const closed = read(testStart(2, "a"), testDone(2), done(null));
    expect(inShort(closed)).toEqual(["passed: a", "failed error: (test run did not finish)"]);
    expect(closed.partial).toBe(true);
  });

  test("what contradicts itself is a warning", () => {
    const count = { count: 2, type: "allSuites", time: 1 };
    const { warnings } = read(count, testStart(2, "a"), error(2, "no"), testDone(2, "failure"), done(true));
    expect(warnings).toEqual([
      "The report says that all tests succeeded, but 1 test failed",
      "The report declares 2 suites, but tells of 1",
    ]);
  });

  test("streams one after the other are read each with its own ids", () => {
    const first = [testStart(2, "a"), testDone(2), done()];
    const second = [START, SUITE, ROOT, testStart(2, "b"), error(2, "no"), testDone(2, "failure")];
    const report = read(...first, ...second);
    expect(inShort(report)).toEqual(["passed: a", "failed failure: b", "failed error: (test run did not finish)"]);
  });
});
