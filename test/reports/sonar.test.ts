import { expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const run = (tests: string) => `<testExecutions version="1"><file path="src/cart.js">${tests}</file></testExecutions>`;
const one = (inner: string, duration = "12") => `<testCase name="adds" duration="${duration}">${inner}</testCase>`;

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
