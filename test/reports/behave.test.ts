import { describe, expect, test } from "bun:test";
import { inShort, read, readFixture } from "./reading.ts";

const feature = (more: object) =>
  read([{ keyword: "Feature", name: "F", location: "a.feature:1", status: "passed", ...more }]);
const step = (status: string | undefined, more: object = {}) => ({
  ...{ keyword: "When", name: "x", location: "a.feature:3" },
  ...(status === undefined ? {} : { result: { status, duration: 0.25, ...more } }),
});
const scenario = (status: string | undefined, ...steps: object[]) => ({
  type: "scenario",
  name: "a",
  location: "a.feature:2",
  status,
  steps,
});
const one = (status: string | undefined, ...steps: object[]) => feature({ elements: [scenario(status, ...steps)] });
const SUITE = 'Shop "quoted" & <script> 😀';

test("what behave 1.2.6 writes is read whole", () => {
  const report = readFixture("behave.json");
  expect(report).toMatchObject({ format: "behave", suite: null, partial: false, warnings: [] });
  expect(inShort(report)).toEqual([
    "passed: Bank > passes",
    "failed error: Bank > has a broken hook after it",
    `passed: ${SUITE} > adds ]]>`,
    `failed failure: ${SUITE} > fails`,
    `failed error: ${SUITE} > raises`,
    `failed error: ${SUITE} > is undefined`,
    `skipped: ${SUITE} > is skipped`,
    `skipped: ${SUITE} > is skipped inside`,
    `passed: ${SUITE} > counts -- @1.1 good`,
    `passed: ${SUITE} > counts -- @1.2 good`,
    `failed failure: ${SUITE} > counts -- @2.1 bad`,
    `passed: ${SUITE} > has no steps`,
    `failed error: ${SUITE} > has a broken hook`,
  ]);
  expect(report.cases[3]).toMatchObject({
    ...{ file: "features/shop.feature", line: 11, message: "Assertion Failed: expected 2" },
    ...{ stack: "Assertion Failed: expected 2\n got 1 \ufffd 😀", properties: { tag: "@shop", "tag 2": "@slow" } },
  });
  expect(report.cases[4]!.message).toBe("KeyError: 'fire'");
  expect(report.cases[5]!.message).toBe("Undefined step: When nobody wrote this step");
  expect(report.cases[12]!.message).toBe('The scenario is "failed", but none of its steps failed');
});

test("it is told from Cucumber's JSON by its results and places", () => {
  const cucumber = [{ uri: "a.feature", keyword: "Feature", name: "F", elements: [] }];
  expect(read(cucumber).format).toBe("cucumber");
  expect(feature({}).format).toBe("behave");
});

describe("a scenario", () => {
  test.each([
    ["passed", "passed"],
    ["pending_warn", "passed"],
    ["failed", "failed failure"],
    ["undefined", "failed error"],
    ["error", "failed error"],
    ["pending", "failed error"],
    ["skipped", "skipped"],
    ["untested", "skipped"],
    [undefined, "skipped"],
  ])("with a step that is %s is %s", (status, expected) => {
    expect(inShort(one("passed", step("passed"), step(status)))).toEqual([`${expected}: F > a`]);
  });

  test.each([
    ["passed", "passed"],
    [undefined, "passed"],
    ["failed", "failed error"],
    ["hook_error", "failed error"],
    ["cleanup_error", "failed error"],
    ["xpassed", "failed error"],
    ["skipped", "skipped"],
    ["untested", "skipped"],
  ])("that is %s, with a step that passed, is %s", (status, expected) => {
    expect(inShort(one(status, step("passed")))).toEqual([`${expected}: F > a`]);
  });

  test("without steps did not test anything", () => {
    expect(inShort(one("passed"))).toEqual(["skipped: F > a"]);
  });

  test("that is written again was retried", () => {
    const elements = [scenario("failed", step("failed")), scenario("passed", step("passed"))];
    expect(inShort(feature({ elements }))).toEqual(["passed flaky, 2 attempts: F > a"]);
  });

  test("lasts as long as its steps, in seconds", () => {
    expect(one("passed", step("passed"), step("passed")).cases[0]!.durationMs).toBe(500);
  });

  test("may be in a rule", () => {
    const elements = [{ type: "rule", name: "R", elements: [scenario("failed", step("failed"))] }];
    expect(inShort(feature({ elements }))).toEqual(["failed failure: F > a"]);
  });
});

test("a feature that failed is not green", () => {
  for (const status of ["failed", "hook_error", "greenish"])
    expect(feature({ status, elements: [scenario("passed", step("passed"))] }).cases[1]).toMatchObject({
      ...{ name: "(feature failed)", status: "failed", file: "a.feature", suite: "F" },
      message: `The feature is "${status}", but none of its scenarios failed`,
    });
  expect(inShort(feature({ status: "failed" }))).toEqual(["failed error: F > (feature failed)"]);
});
