import { describe, expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const results = (passed: number, failed: number, skipped = 0) =>
  `<OverallResultsAsserts successes="1" failures="0"/><OverallResultsTestCases successes="${passed}" failures="${failed}" skipped="${skipped}"/>`;
const run = (inner: string, totals: string) =>
  `<doctest binary="a\\shop.exe" version="2.4.9">${inner}${totals}</doctest>`;
const suite = (inner: string) => `<TestSuite name="cart">${inner}</TestSuite>`;
const ended = (told: string) => `<OverallResultsAsserts successes="0" ${told}/>`;
const one = (attributes: string, inner: string) =>
  read(run(suite(`<TestCase name="adds" ${attributes}>${inner}</TestCase>`), results(1, 0))).cases[0]!;

describe("no silent green", () => {
  test("a report without its totals broke off, even where it is well formed", () => {
    const report = read(
      run(suite(`<TestCase name="a">${ended('failures="0" test_case_success="true"')}</TestCase>`), ""),
    );
    expect(report.partial).toBe(true);
    expect(inShort(report)).toEqual(["passed: cart > a", "failed error: (test run did not finish)"]);
  });

  test("a test without results did not finish", () => {
    expect(one("", "")).toMatchObject({ status: "failed", kind: "error", message: "It did not finish" });
    const crash = one("", `<Exception crash="true">SIGSEGV</Exception>`);
    expect(crash).toMatchObject({ status: "failed", kind: "error", message: "SIGSEGV" });
  });
});

test.each([
  ["", `failures="0" test_case_success="false"`, "failed"],
  ["", `failures="2" test_case_success="false" expected_failures="1"`, "failed"],
  ["", `failures="0"`, "passed"],
  ["", `failures="1"`, "failed"],
  [`may_fail="true"`, `failures="1"`, "passed"],
  [`should_fail="true"`, `failures="1"`, "passed"],
  [`should_fail="true"`, `failures="0"`, "failed"],
  [`skipped="true"`, `failures="1"`, "skipped"],
] as const)("a test with %p and %p is %p", (attributes, told, status) =>
  expect(one(attributes, ended(told)).status).toBe(status),
);
