import { describe, expect, test } from "bun:test";
import { GREEN_REPORTS } from "./green_reports.ts";
import { inShort, read } from "./reading.ts";

const green = GREEN_REPORTS.pytest_json!;
const report = (more: object) => read({ ...JSON.parse(green), ...more });
const one = (test: object, exitcode = 1) =>
  report({ exitcode, summary: {}, tests: [{ nodeid: "t.py::a", lineno: 0, ...test }] });

test("a test has the same identity as in pytest's JUnit XML", () => {
  const junit = read(
    `<testsuites><testsuite name="pytest" tests="1"><testcase classname="tests.test_cart.TestCart" name="test_adds[a/b::c]" time="0.1"/></testsuite></testsuites>`,
  ).cases[0]!;
  const json = one({ nodeid: "tests/test_cart.py::TestCart::test_adds[a/b::c]", outcome: "passed" }, 0).cases[0]!;
  expect([json.suite, json.name, json.file]).toEqual([junit.suite, junit.name, junit.file]);
});

describe("a test", () => {
  test.each([
    ["passed", "passed"],
    ["xpassed", "passed"],
    ["skipped", "skipped"],
    ["xfailed", "skipped"],
    ["failed", "failed error"],
    ["error", "failed error"],
    ["rerun", "passed flaky, 2 attempts"],
  ])("of the outcome %s is %s", (outcome, expected) => {
    expect(inShort(one({ outcome }))[0]).toBe(`${expected}: t > a`);
  });

  test("with a stage that failed has failed, whatever its outcome", () => {
    for (const outcome of ["passed", "rerun", "xfailed"])
      expect(inShort(one({ outcome, call: { outcome: "failed" } }))).toEqual(["failed failure: t > a"]);
  });

  test("that pytest-timeout stops is a timeout", () => {
    const crash = { message: "Failed: Timeout (>1.0s) from pytest-timeout." };
    expect(one({ outcome: "failed", call: { outcome: "failed", crash } }).cases[0]!.kind).toBe("timeout");
  });
});

test.each([
  [1, "pytest exited with 1: Tests failed"],
  [2, "pytest exited with 2: The session was interrupted"],
  [3, "pytest exited with 3: pytest had an internal error"],
  [5, "pytest exited with 5"],
  ["x", "pytest did not say how it exited"],
])("a session that exited with %j is not green", (exitcode, message) => {
  expect(report({ exitcode }).cases.at(-1)).toMatchObject({ status: "failed", kind: "error", message });
});

test("a summary without tests is read as counts", () => {
  const summary = { passed: 3, xpassed: 1, rerun: 1, failed: 2, error: 1, skipped: 1, xfailed: 1, total: 10 };
  const { tests: _, ...rest } = JSON.parse(green);
  expect(read({ ...rest, summary, exitcode: 1 }).countsOnly).toEqual({ passed: 5, failed: 3, skipped: 2 });
  expect(read({ ...rest, summary: { passed: 3, total: 3 }, exitcode: 2 }).countsOnly!.failed).toBe(1);
});
