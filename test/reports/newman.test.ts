import { describe, expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const run = (executions: object[], failures: object[] = [], more: object = {}) =>
  read({ collection: { info: { name: "Shop" }, item: [] }, run: { stats: {}, executions, failures, ...more } });
const item = { id: "1", name: "list" };
const cursor = { ref: "r" };

describe("an assertion", () => {
  test.each([
    [{}, "passed"],
    [{ skipped: true }, "skipped"],
    [{ error: { name: "AssertionError", message: "no" } }, "failed failure"],
    [{ error: { name: "TypeError", message: "no" } }, "failed error"],
    [{ skipped: true, error: {} }, "failed error"],
    [{ error: "no" }, "failed error"],
    [{ error: null }, "passed"],
  ])("that says %j is %s", (more, expected) => {
    expect(inShort(run([{ item, assertions: [{ assertion: "a", ...more }] }]))).toEqual([`${expected}: list > a`]);
  });
});

test("errors of requests and scripts are failures, once each", () => {
  const requestError = { code: "ECONNREFUSED" };
  const failure = { at: "request", cursor, error: { name: "Error", message: "connect ECONNREFUSED" }, source: item };
  for (const failures of [[], [failure]])
    expect(inShort(run([{ item, cursor, requestError }], failures))).toEqual(["failed error: list > (request failed)"]);
});

test("failures that no execution shows are failures, with the request that they name", () => {
  const failure = { at: "iteration", cursor, error: { name: "Error", message: "broke" }, source: item };
  expect(inShort(run([], [failure]))).toEqual(["failed error: list > (iteration failed)"]);
  expect(run([], [], { error: { message: "no collection" } }).cases).toMatchObject([
    { name: "(run failed)", message: "no collection", status: "failed" },
  ]);
  // Of an assertion, which no execution lists.
  expect(run([], [{ at: "assertion:0 in test-script" }]).cases).toMatchObject([
    { name: "(failure without a test case)" },
  ]);
  expect(run([], [], { stats: { prerequestScripts: { failed: 1 } } }).cases).toHaveLength(1);
});
