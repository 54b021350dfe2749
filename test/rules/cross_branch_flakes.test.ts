import { describe, expect, test } from "bun:test";
import { findCrossBranchFlakes, type BranchFailure } from "../../src/rules/cross_branch_flakes.ts";

const WORDS = "the session of the buyer is gone after the redirect";
const OTHER = "the export has no header for the second currency";

const failure = (more: Partial<BranchFailure> = {}): BranchFailure => ({
  ...{ suite: "s", name: "n", file: "a.test.ts", kind: "failure", message: WORDS, stack: "at pay (src/pay.ts:3:1)" },
  ...{ testCase: 1, isMine: false, branch: "other", isLongLived: false, isDefault: false, streak: 1, isLast: false },
  ...{ at: "2026-01-01T00:00:00.000Z", rate: 0.04 },
  ...more,
});
const mine = failure({ isMine: true, branch: "mine", rate: null });
const blames = (record: BranchFailure[], onLongLived = false) =>
  findCrossBranchFlakes([mine, ...record], onLongLived).map(({ blame }) => blame);

describe("a failure on a branch", () => {
  test("is the case's own where two other branches had it, whatever they say", () => {
    expect(blames([failure({ message: OTHER }), failure({ branch: "third", message: "nothing at all" })])).toEqual([
      "flaky",
    ]);
    expect(blames([failure({ message: OTHER }), failure({ message: "nothing at all" })])).toEqual([]);
  });

  test("is the case's own where one other branch had it in the same words", () => {
    expect(findCrossBranchFlakes([mine, failure()], false)).toEqual([
      { testCase: 1, blame: "flaky", rate: 0.04, at: "2026-01-01T00:00:00.000Z" },
    ]);
    expect(blames([failure({ message: OTHER })])).toEqual([]);
  });

  test("is the change's where it fails in a row on this branch, or where the test has never passed elsewhere", () => {
    expect(findCrossBranchFlakes([{ ...mine, streak: 2 }, failure()], false)).toEqual([]);
    for (const rate of [1, null]) expect(blames([failure({ rate }), failure({ rate, branch: "third" })])).toEqual([]);
  });

  test("is the change's where three tests fail together for one reason, as on a branch that it builds on", () => {
    const together = (more: Partial<BranchFailure>, count: number) =>
      Array.from({ length: count }, (_, at) => [{ ...mine, testCase: at }, failure({ testCase: at, ...more })]).flat();
    const told = (record: BranchFailure[]) => findCrossBranchFlakes(record, false).length;
    expect([told(together({}, 2)), told(together({}, 3))]).toEqual([2, 0]);
    // The default branch has it as well: it comes from there.
    expect(told(together({ isDefault: true, branch: "main" }, 3))).toBe(3);
    const words = { message: "connect ECONNREFUSED 10.0.0.7:5432", stack: "at pay (src/pay.ts:3:1)" };
    expect(told(together(words, 3).map((one) => ({ ...one, ...words })))).toBe(3);
  });

  test("is not explained by a branch that fails again and again: that one has broken it", () => {
    const broken = [failure({ streak: 2, isLast: true }), failure({ streak: 1 })].map((one, index) => ({
      ...one,
      branch: index === 0 ? "other" : "third",
      message: OTHER,
    }));
    expect(blames(broken)).toEqual([]);
  });

  test("is a long-lived branch's where that fails now in the same words, and only then", () => {
    const release = failure({ branch: "release/1", isLongLived: true, isLast: true, streak: 3 });
    expect(blames([release])).toEqual(["main"]);
    expect(blames([{ ...release, isLast: false }])).toEqual([]);
    expect(blames([{ ...release, message: OTHER }])).toEqual([]);
  });

  test("of a long-lived branch is not explained by what another branch fails with now", () => {
    expect(blames([failure({ isLast: true })], true)).toEqual([]);
    expect(blames([failure({ isLast: false })], true)).toEqual(["flaky"]);
    expect(blames([failure({ branch: "release/1", isLongLived: true, isLast: true, streak: 3 })], true)).toEqual([]);
  });
});
