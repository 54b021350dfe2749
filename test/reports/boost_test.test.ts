import { describe, expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const log = (inner: string) =>
  `<TestLog><TestSuite name="shop"><TestSuite name="cart">${inner}</TestSuite></TestSuite></TestLog>`;
const logged = (inner: string, attributes = "") =>
  `<TestCase name="adds" file="a.cpp" line="3" ${attributes}>${inner}<TestingTime>1500</TestingTime></TestCase>`;
const counts = (passed: number, failed: number) =>
  `test_cases_passed="${passed}" test_cases_failed="${failed}" test_cases_skipped="0"`;
const result = (inner: string, attributes: string) =>
  `<TestResult><TestSuite name="shop" ${attributes}>${inner}</TestSuite></TestResult>`;
const one = (word: string) => `<TestCase name="adds" result="${word}" assertions_failed="2"></TestCase>`;

test.each([
  ["", "passed"],
  ["<Info>fine</Info><Warning>careful</Warning>", "passed"],
  ["<Error>no</Error>", "failed failure"],
  ["<FatalError>no</FatalError>", "failed failure"],
  ["<Exception>std::bad_alloc</Exception>", "failed error"],
  ["<Exception>signal: SIGALRM (timeout while executing function)</Exception>", "failed timeout"],
] as const)("a logged test with %p is %s", (inner, outcome) =>
  expect(inShort(read(log(logged(inner))))).toEqual([`${outcome}: cart > adds`]),
);

test("a skipped test that holds an error has failed", () => {
  expect(inShort(read(log(logged("<Error>no</Error>", 'skipped="yes"'))))).toEqual(["failed failure: cart > adds"]);
});

test.each([
  ["passed", "passed", 0],
  ["failed", "failed failure", 0],
  ["aborted", "failed error", 0],
  ["timed-out", "failed timeout", 0],
  ["skipped", "skipped", 0],
  ["", "failed failure", 1],
] as const)("the result %p is %s", (word, outcome, warnings) => {
  const report = read(result(one(word), 'result="failed"'));
  expect(inShort(report)[0]).toBe(`${outcome}: adds`);
  expect(report.warnings).toHaveLength(warnings);
});

describe("no silent green", () => {
  test("a module that says that it failed is not green", () => {
    for (const inner of [one("passed"), ""]) {
      const { cases } = read(result(inner, `result="aborted" ${counts(1, 0)}`));
      expect(cases.at(-1)).toMatchObject({ status: "failed", message: 'The test module has the result "aborted"' });
    }
  });

  test("a log without test cases is no report", () => {
    expect(read("<TestLog></TestLog>").cases).toEqual([]);
  });
});
