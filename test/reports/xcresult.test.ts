import { describe, expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const node = (nodeType: string, result?: string, children: object[] = [], name = nodeType) => ({
  nodeType,
  name,
  result,
  children,
});
const one = (result: string | undefined, ...children: object[]) =>
  read({ testNodes: [node("Test Case", result, children, "a()")] });
const message = node("Failure Message", undefined, [], "CartTests.swift:42: no");

describe("a test case", () => {
  test.each([
    ["Passed", "passed"],
    ["Failed", "failed failure"],
    ["Skipped", "skipped"],
    ["Expected Failure", "passed"],
  ])("of the result %s is %s", (result, expected) => {
    expect(inShort(one(result))).toEqual([`${expected}: a()`]);
  });

  test.each(["unknown", ""])("of the result %j failed, and the upload is warned", (result) => {
    const report = one(result);
    expect(inShort(report)).toEqual(["failed failure: a()"]);
    expect(report.warnings).toEqual([`The result "${result}" is unknown: 1 test case counted as failed`]);
  });

  test("that passed, and holds a failure outside of a repetition, failed", () => {
    expect(inShort(one("Passed", message))).toEqual(["failed failure: a()"]);
    expect(inShort(one("Passed", node("Device", "Failed")))).toEqual(["failed failure: a()"]);
    expect(inShort(one("Passed", node("Repetition", "Failed")))).toEqual(["failed failure: a()"]);
  });

  test("that passed at a repetition is flaky", () => {
    for (const type of ["Repetition", "Test Case Run"])
      expect(inShort(one("Passed", node(type, "Failed", [message]), node(type, "Passed")))).toEqual([
        "passed flaky, 2 attempts: a()",
      ]);
  });

  test("has its duration in seconds, or in the words of a locale", () => {
    const durations = [{ durationInSeconds: 1.5 }, { duration: "1,5s" }, { duration: "1m 3s" }];
    expect(
      durations.map(
        (more) =>
          read({ testNodes: [{ nodeType: "Test Case", name: "a", result: "Passed", ...more }] }).cases[0]!.durationMs,
      ),
    ).toEqual([1500, 1500, null]);
  });
});

test("suites that failed without a test case are not green", () => {
  const good = node("Test Case", "Passed", [], "a()");
  const suite = (result: string) => node("Test Suite", result, [good], "S");
  const bundle = node("Unit test bundle", "Failed", [suite("Failed"), suite("Passed")], "B");
  expect(inShort(read({ testNodes: [node("Test Plan", "Failed", [bundle])] }))).toEqual([
    "passed: B > S > a()",
    "passed: B > S > a()",
    "failed error: B > S > (suite failed)",
  ]);
});

test("a suite with a result that Xcode does not have is not green", () => {
  const suite = (result: string) => read({ testNodes: [node("Test Suite", result, [node("Test Case", "Passed")])] });
  expect(inShort(suite("Crashed"))).toEqual([
    "passed: Test Suite > Test Case",
    "failed error: Test Suite > (suite failed)",
  ]);
  expect(inShort(suite("unknown"))).toEqual(["passed: Test Suite > Test Case"]);
});
