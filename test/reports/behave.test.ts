import { describe, expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

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
