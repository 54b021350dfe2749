/** What explains a failure, by what is known of its test case. */

import { describe, expect, test } from "bun:test";
import { assignBlame, type FailureFacts } from "../../src/rules/assign_blame.ts";

const UNKNOWN: FailureFacts = {
  ...{ runId: "r", testCase: 1, isQuarantined: false, isInBaseline: true, failedInBaseline: false },
  ...{ failedOnDefault: false, isOnDefault: false, isCurrent: true, isFlaky: false, isBroken: false },
  ...{ hasFailedOnDefault: false, hadEpisodes: false, wasFixed: false, hasNewestDefault: false, isStandIn: false },
  ...{ hasOpenBug: false, flakeRate: null, episodeRate: null, flakyAt: null, inARow: null },
};
const blameOf = (facts: Partial<FailureFacts>) => assignBlame({ ...UNKNOWN, ...facts }).blame;
const FLAKY: Partial<FailureFacts> = {
  ...{ isFlaky: true, flakeRate: 0.2, episodeRate: 0, inARow: 1, flakyAt: "2026-11-01" },
};

describe("a failure is", () => {
  test.each([
    ["new, if nothing explains it", {}, "new"],
    ["quarantined before anything else", { ...FLAKY, isQuarantined: true, failedInBaseline: true }, "quarantined"],
    ["known, if the baseline failed", { failedInBaseline: true, failedOnDefault: true }, "still"],
    ["the default branch's, if a build there has failed since", { failedOnDefault: true }, "main"],
    ["the default branch's, if the test case is broken there", { isBroken: true }, "main"],
    ["known on the default branch, if the test case is broken there", { isBroken: true, isOnDefault: true }, "still"],
    [
      "the default branch's, if it has a bug there",
      { hasFailedOnDefault: true, hasOpenBug: true, isInBaseline: false },
      "main",
    ],
    ["new in spite of a bug that the baseline does not show", { hasFailedOnDefault: true, hasOpenBug: true }, "new"],
    ["new, if the test case was broken later only", { isBroken: true, isCurrent: false }, "new"],
    ["flaky after short failures again and again", { hadEpisodes: true }, "flaky"],
    ["the default branch's, if that was fixed not long ago", { wasFixed: true }, "main"],
    ["new on the default branch, although that was fixed not long ago", { wasFixed: true, isOnDefault: true }, "new"],
    ["new in a merge queue, which has the fix", { wasFixed: true, hasNewestDefault: true }, "new"],
    ["new, if it represents a test tool that failed", { ...FLAKY, hadEpisodes: true, isStandIn: true }, "new"],
  ] as const)("%s", (_, facts, blame) => {
    expect(blameOf(facts)).toBe(blame);
  });
});

test("a flaky test case explains as many failures in a row as have odds of 1 % at its rate", () => {
  expect([1, 2, 3].map((inARow) => blameOf({ ...FLAKY, inARow }))).toEqual(["flaky", "flaky", "new"]);
  expect(blameOf({ ...FLAKY, inARow: 3, flakeRate: 0.5 })).toBe("flaky");
  expect(blameOf({ ...FLAKY, inARow: 3, episodeRate: 0.5 })).toBe("flaky");
});

test("tells the rate and the last time only where they explain something", () => {
  const { flakeRate, flakyAt, inARow } = assignBlame({ ...UNKNOWN, ...FLAKY });
  expect({ flakeRate, flakyAt, inARow }).toEqual({ flakeRate: 0.2, flakyAt: "2026-11-01", inARow: 1 });
  const unexplained = assignBlame({ ...UNKNOWN, ...FLAKY, inARow: 3 });
  expect([unexplained.flakeRate, unexplained.flakyAt, unexplained.inARow]).toEqual([0.2, null, 3]);
  expect(assignBlame({ ...UNKNOWN, episodeRate: 0.1 }).flakeRate).toBeNull();
});
