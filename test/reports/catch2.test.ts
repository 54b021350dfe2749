import { describe, expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

/** As version 3 writes it, by the source of its reporter; the fixtures are of version 2. */
const run = (tests: string) =>
  `<Catch2TestRun name="shop" rng-seed="1" xml-format-version="3" catch2-version="3.4.0">${tests}` +
  `<OverallResults successes="1" failures="0" expectedFailures="0" skips="0"/><OverallResultsCases successes="1" failures="0" expectedFailures="0" skips="0"/></Catch2TestRun>`;
const one = (inner: string, result: string) =>
  `<TestCase name="adds" tags="[cart]" filename="a.cpp" line="3">${inner}<OverallResult ${result} durationInSeconds="0.25"/></TestCase>`;
const check =
  "<Expression success='false' type='CHECK' filename='a.cpp' line='4'><Original>a == b</Original><Expanded>1 == 2</Expanded>";

test.each([
  ["", 'success="true"', "passed", null],
  ["<Warning>careful</Warning>", 'success="true"', "passed", null],
  [`${check}</Expression>`, 'success="false"', "failed failure", "CHECK(a == b): is 1 == 2"],
  [`${check}<Exception>no</Exception></Expression>`, 'success="false"', "failed error", "CHECK(a == b): threw no"],
  ["<FatalErrorCondition>SIGSEGV</FatalErrorCondition>", 'success="false"', "failed error", "SIGSEGV"],
  ["<Failure>by hand</Failure>", 'success="false"', "failed failure", "by hand"],
  ["<Skip>not today</Skip>", 'success="true" skips="1"', "skipped", "not today"],
  [
    `<Skip>not today</Skip>${check}</Expression>`,
    'success="false" skips="1"',
    "failed failure",
    "CHECK(a == b): is 1 == 2",
  ],
  ["", 'success="odd"', "failed failure", "It passed, although it is marked to fail"],
] as const)("a test of version 3 with %p and %p is %s", (inner, result, outcome, message) => {
  const report = read(run(one(inner, result)));
  expect(inShort(report)[0]).toBe(`${outcome}: adds`);
  expect(report.cases[0]).toMatchObject({ message, durationMs: 250 });
});

describe("no silent green", () => {
  test("a report without its totals, or a test without its result, did not finish", () => {
    const passed = one("", 'success="true"');
    const report = read(`<Catch name="a"><Group name="a">${passed}</Group></Catch>`);
    expect(report.partial).toBe(true);
    expect(inShort(report)).toEqual(["passed: adds", "failed error: (test run did not finish)"]);
    expect(inShort(read(run(`<TestCase name="a"/>`)))).toEqual(["failed error: a"]);
  });
});
