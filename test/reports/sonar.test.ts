import { expect, test } from "bun:test";
import { inShort, read, readFixture } from "./reading.ts";

const run = (tests: string) => `<testExecutions version="1"><file path="src/cart.js">${tests}</file></testExecutions>`;
const one = (inner: string, duration = "12") => `<testCase name="adds" duration="${duration}">${inner}</testCase>`;

test("what jest-sonar 0.2.16 writes is read whole", () => {
  const report = readFixture("sonar_jest.xml");
  expect(report).toMatchObject({ format: "sonar", suite: null, partial: false, warnings: [] });
  expect(inShort(report)).toEqual([
    'passed: cart adds Grüße 🚀 <b> & "x"',
    "failed failure: cart wrong total",
    "failed failure: cart throws",
    "skipped: cart not today",
    "passed: cart later",
    "passed: cart price 1",
    "failed failure: cart price 2",
    // A syntax error is in this file.
    "failed error: (file without test cases)",
  ]);
  expect(report.cases[1]).toMatchObject({
    ...{ file: "src/cart.test.js", durationMs: 26 },
    message: "Error: expect(received).toBe(expected) // Object.is equality",
    stack: expect.stringContaining("Expected: 7\nReceived: 6"),
  });
  expect(report.cases[7]!.file).toBe("src/broken.test.js");
});

test("what the reporter of Catch2 2.13 writes is read whole", () => {
  const report = readFixture("sonar_catch2.xml");
  expect(inShort(report)).toEqual([
    "passed: adds",
    'failed failure: a wrong total of Grüße 🚀 <b> & "x"',
    "failed error: throws",
    "passed: sections/one",
    "failed failure: sections/two/inner",
    "failed error: sections/three",
    "skipped: may fail",
    "skipped: should fail",
    "passed: should fail but passes",
    "passed: warns",
    "failed failure: by hand",
    "failed failure: throws as",
    "passed: of each type - int",
    "failed failure: of each type - long",
    "failed failure: prints",
    "passed: with a fixture",
  ]);
  expect(report.cases[1]).toMatchObject({
    message: "CHECK(6 == 7)",
    stack:
      "FAILED:\n\tCHECK( 6 == 7 )\ninfo <b> ]]> &\nat sonar_test.cpp:6\n\nFAILED:\n\tCHECK( 1 == 2 )\ninfo <b> ]]> &\nat sonar_test.cpp:6",
  });
});

test.each([
  ["", "passed", null],
  [`<skipped message="later"/>`, "skipped", "later"],
  [`<failure message="sold out">at a.js:1</failure>`, "failed failure", "sold out"],
  [`<failure>at a.js:1</failure>`, "failed failure", "at a.js:1"],
  [`<error message="Error">TypeError: no</error>`, "failed error", "TypeError: no"],
  [`<skipped message="later"/><failure message="no"/>`, "failed failure", "no"],
  [`<constructor message="odd"/>`, "failed failure", "odd"],
] as const)("a test with %p is %s", (inner, outcome, message) => {
  const report = read(run(one(inner)));
  expect(inShort(report)).toEqual([`${outcome}: adds`]);
  expect(report.cases[0]).toMatchObject({ message, durationMs: 12 });
  expect(report.warnings).toHaveLength(message === "odd" ? 1 : 0);
});

test("the older root is read", () => {
  expect(inShort(read(`<unitTest version="1"><file path="a">${one("")}</file></unitTest>`))).toEqual(["passed: adds"]);
});
