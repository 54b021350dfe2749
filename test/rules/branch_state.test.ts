import { describe, expect, test } from "bun:test";
import { type TaskResult, toBranchState } from "../../src/rules/branch_state.ts";

const dayOf = (at: number) => new Date(Date.UTC(2026, 0, at)).toISOString();
/** `at`: the day of the build, which is its id as well. */
const result = (
  slug: string,
  at: number,
  status: TaskResult["status"],
  more: Partial<TaskResult> = {},
): TaskResult => ({
  ...{ slug, status, passed: 1, failed: 0, buildId: `b${at}`, executionId: `b${at}`, buildsAgo: 1 },
  ...{ createdAt: dayOf(at), endedAt: dayOf(at) },
  ...more,
});
const stateOf = (...results: TaskResult[]) => toBranchState(results, true);

describe("the state of a branch", () => {
  test("is not known without results", () => {
    expect(toBranchState([], true)).toEqual({
      ...{ state: null, since: null, executionId: null, isLonger: false, tasks: [], missing: [] },
    });
  });

  test("is red as long as one task is, since the oldest of the red ones", () => {
    const state = stateOf(
      ...[result("e2e", 1, "passed"), result("e2e", 2, "failed"), result("e2e", 3, "timed_out")],
      ...[result("lint", 1, "failed"), result("lint", 3, "passed")],
      ...[result("unit", 3, "passed"), result("unit", 4, "incomplete")],
    );
    expect(state).toMatchObject({ state: "failed", since: dayOf(2), executionId: "b2", isLonger: false });
    expect(state.tasks).toMatchObject([
      { slug: "e2e", status: "timed_out", executionId: "b2", lastExecutionId: "b3" },
      { slug: "unit", status: "incomplete", executionId: "b4", lastExecutionId: "b4" },
      { slug: "lint", status: "passed", executionId: "b3", lastExecutionId: "b3" },
    ]);
  });

  test("is green since its last task became green", () => {
    const state = stateOf(
      ...[result("e2e", 1, "failed"), result("e2e", 2, "passed")],
      ...[result("unit", 1, "passed"), result("unit", 3, "passed")],
    );
    expect(state).toMatchObject({ state: "passed", since: dayOf(2), executionId: "b2", isLonger: false });
  });

  test("may have begun before what was looked through", () => {
    const results = [result("unit", 1, "passed"), result("unit", 9, "passed")];
    expect(toBranchState(results, false)).toMatchObject({ since: dayOf(1), isLonger: true });
    expect(toBranchState(results, true)).toMatchObject({ since: dayOf(1), isLonger: false });
    const turned = [result("unit", 1, "failed"), ...results.slice(1)];
    expect(toBranchState(turned, false)).toMatchObject({ since: dayOf(9), isLonger: false });
  });

  test("leaves out and names a task that has not run for 14 days or 50 builds", () => {
    const state = stateOf(
      result("gone", 1, "failed", { buildsAgo: 3 }),
      result("late", 2, "failed", { buildsAgo: 50 }),
      result("rare", 9, "failed", { buildsAgo: 51 }),
      result("unit", 16, "passed"),
    );
    expect(state).toMatchObject({ state: "failed", executionId: "b2" });
    expect(state.tasks.map(({ slug }) => slug)).toEqual(["late", "unit"]);
    expect(state.missing.map(({ slug }) => slug)).toEqual(["rare", "gone"]);
  });

  test("does not fall out because nothing has run since", () => {
    const old = { ...result("unit", 1, "failed"), createdAt: "2020-01-01T00:00:00.000Z" };
    expect(toBranchState([old], true)).toMatchObject({ state: "failed", missing: [] });
  });
});
