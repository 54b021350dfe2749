/** A green report of each format of which one place says something else: it is red, and the upload is warned. */

import { describe, expect, test } from "bun:test";
import { GREEN_REPORTS } from "./green_reports.ts";
import { read } from "./reading.ts";

/** Reads the report with the first `from` replaced. */
function readChanged(format: string, from: string, to: string) {
  expect(GREEN_REPORTS[format]).toContain(from);
  return read(GREEN_REPORTS[format]!.replace(from, to));
}

const FAULT = "(failure without a test case)";
const unshown = (failed: number) => `The report declares ${failed} failed, but none of its test cases failed`;
const suiteFailed = "The report says that the suite failed, but none of its tests failed";

/** What the test cases of each report are. */
const FOUND: Record<string, number> = { tests: 2, passed: 2, failed: 0, skipped: 0 };

function disagreement(declared: string): string {
  const found = declared.replace(/\d+ (\w+)/g, (_, what: string) => `${FOUND[what]} ${what}`);
  return `The report declares ${declared}, but its test cases are ${found}`;
}

describe("totals that disagree are a warning, and failures that no test case shows are one", () => {
  test.each([
    ["boost_report", 'failed="0"', 'failed="2"', "2 passed, 2 failed", unshown(2)],
    ["catch2", 'failures="0" exp', 'failures="2" exp', "2 passed, 2 failed", unshown(2)],
    ["ctrf", '"failed":0', '"failed":2', "2 tests, 2 passed, 2 failed", unshown(2)],
    [
      "doctest",
      'Cases successes="2" failures="0"',
      'Cases successes="2" failures="1"',
      "2 passed, 1 failed",
      "1 failed",
    ],
    ["jest", 'Tests":0', 'Tests":1', "2 tests, 1 failed", "1 failed, but 0 of its test cases failed"],
    ["libtest", '"failed": 0', '"failed": 2', "2 tests, 2 passed, 2 failed, 0 skipped", suiteFailed],
    ["mocha", '"failures":0', '"failures":2', "2 passed, 2 failed, 0 skipped", unshown(2)],
    ["mochawesome", '"failures":0', '"failures":1', "2 passed, 1 failed, 0 skipped", unshown(1)],
    ["newman", '"total":2,"pending":0,"failed":0', '"total":3,"failed":1', "3 tests, 1 failed", unshown(1)],
    ["nunit", 'failed="0"', 'failed="2"', "2 tests, 2 failed", unshown(2)],
    ["nunit_2", 'failures="0" errors="0"', 'failures="2" errors="3"', "2 tests, 5 failed", unshown(5)],
    ["playwright", '"unexpected":0', '"unexpected":2', "2 passed, 2 failed, 0 skipped", unshown(2)],
    ["rspec", '"failure_count":0', '"failure_count":2', "2 tests, 2 failed", unshown(2)],
    ["testng", 'failed="0"', 'failed="2"', "2 passed, 2 failed", unshown(2)],
    ["trx", 'failed="0"', 'failed="2"', "2 tests, 2 passed, 2 failed", "2 failed, but 0 of its tests failed"],
    ["xunit", 'failed="0"', 'failed="2"', "2 tests, 2 failed", unshown(2)],
  ])("%s: %s", (format, from, to, declared, message) => {
    const { cases, warnings } = readChanged(format, from, to);
    expect(warnings).toEqual([disagreement(declared)]);
    expect(cases.at(-1)).toMatchObject({
      name: expect.stringMatching(/^\((?:failure without|test run failed)/),
      status: "failed",
      kind: "error",
      message: expect.stringContaining(message),
    });
  });

  test.each([
    ["libtest", '"passed": 2', '"passed": 3', "2 tests, 3 passed, 0 failed, 0 skipped"],
    ["mocha", '"passes":2', '"passes":3', "3 passed, 0 failed, 0 skipped"],
    ["mochawesome", '"skipped":0', '"skipped":1', "2 passed, 0 failed, 1 skipped"],
    ["playwright", '"expected":2', '"expected":3', "3 passed, 0 failed, 0 skipped"],
    ["pytest_json", '"total":2', '"failed":1,"total":3', "3 tests, 1 failed, 0 skipped"],
    ["rspec", '"example_count":2', '"example_count":3', "3 tests, 0 failed"],
    ["xunit", 'total="2"', 'total="3"', "3 tests, 0 failed"],
  ])("%s: %s alone is a warning", (format, from, to, declared) => {
    const { cases, warnings } = readChanged(format, from, to);
    expect(warnings).toEqual([disagreement(declared)]);
    expect(cases).toHaveLength(2);
  });
});

describe("a run that says of itself that it failed is red", () => {
  test.each([
    ["boost_report", 'result="passed"', 'result="aborted"', FAULT, 'The test module has the result "aborted"'],
    ["cucumber_messages", '"success":true', '"success":false', FAULT, "The report says that the run failed"],
    ["cucumber_messages", '"success":true', '"success":"yes"', FAULT, "The report says that the run failed"],
    ["dart", '"success":true', '"success":false', "(test run failed)", "The run says that it failed"],
    ["libtest", '"ok", "passed"', '"failed", "passed"', FAULT, suiteFailed],
    ["libtest", '"ok", "passed"', '"odd", "passed"', FAULT, suiteFailed],
    ["nunit", '"Passed" total', '"Failed" total', "(test run failed)", "The run has the result Failed, but no test"],
    ["nunit_2", '"True"><r', '"False"><r', "(test run failed)", 'The suite "C" has the result failed, but no'],
  ])("%s: %s is %s", (format, from, to, name, message) => {
    const { cases, warnings } = readChanged(format, from, to);
    expect(cases.at(-1)).toMatchObject({
      name,
      status: "failed",
      kind: "error",
      message: expect.stringContaining(message),
    });
    expect(warnings).toEqual([]);
  });
});

/** The places of results, with `*` for the word that the green report has there. */
const RESULTS: [format: string, place: string, word: string, kind: string][] = [
  ["behave", '"result":{"status":"*"', "passed", "error"],
  ["behave", '0.1}}],"status":"*"', "passed", "error"],
  ["boost_report", '<TestCase name="a" result="*"', "passed", "failure"],
  ["catch2", '<OverallResult success="*"', "true", "failure"],
  ["ctest", '<Test Status="*"', "passed", "failure"],
  ["cucumber_messages", '"status":"*"', "PASSED", "error"],
  ["libtest", '"event": "*" }', "ok", "failure"],
  ["nunit", '<test-case name="a" result="*"', "Passed", "error"],
  ["pytest_json", '"outcome":"*"', "passed", "error"],
  ["pytest_json", '"call":{"duration":0.1,"outcome":"*"', "passed", "error"],
  ["pytest_reportlog", '"*", "longrepr": null, "when": "call"', "passed", "failure"],
  ["swift_testing", '"symbol":"*"', "pass", "failure"],
  ["testng", 'status="*"', "PASS", "failure"],
  ["trx", 'outcome="*"', "Passed", "error"],
  ["xcresult", '"name":"a()","result":"*"', "Passed", "failure"],
  ["xunit", ' result="*"', "Pass", "failure"],
];

test.each(RESULTS)("%s: a test case with an unknown %s has failed, with a warning", (format, place, word, kind) => {
  const { cases, warnings } = readChanged(format, place.replace("*", word), place.replace("*", "Greenish"));
  expect(cases.slice(0, 2)).toMatchObject([{ status: "failed", kind }, { status: "passed" }]);
  expect(warnings.at(-1)).toMatch(/^The result "greenish" is unknown: 1 test case counted as failed$/i);
});

test("a total that is no number is a warning", () => {
  expect(read('<testsuite failures="one"><testcase name="a"/></testsuite>').warnings).toEqual([
    'The report declares failures="one", which is no number',
  ]);
});
