/** When a verification ends, and how many runs it begins. */

import { describe, expect, test } from "bun:test";
import { countWantedProbes, decideVerification, type VerificationTally } from "../../src/rules/verification.ts";

const NONE: VerificationTally = { passed: 0, failed: 0, noResult: 0, noBuild: 0, queued: 0, running: 0 };
const decide = (runs: number, tally: Partial<VerificationTally>) => decideVerification(runs, { ...NONE, ...tally });
const want = (runs: number, tally: Partial<VerificationTally>, free: number) =>
  countWantedProbes(runs, { ...NONE, ...tally }, free);

describe("a verification", () => {
  test.each([
    ["passed", 200, { passed: 200 }],
    ["running", 200, { passed: 199 }],
    ["running", 200, { passed: 150, failed: 2 }],
    ["flaky", 200, { passed: 150, failed: 3 }],
    ["flaky", 200, { passed: 198, failed: 2 }],
    ["running", 200, { failed: 4 }],
    ["failed", 200, { failed: 5 }],
    ["flaky", 200, { passed: 1, failed: 3 }],
    ["failed", 2, { failed: 2 }],
    ["flaky", 2, { passed: 1, failed: 1 }],
    ["running", 200, { noResult: 1, noBuild: 1 }],
    ["inconclusive", 200, { noResult: 2, noBuild: 2 }],
    ["running", 200, { passed: 6, noResult: 5 }],
    ["inconclusive", 200, { passed: 5, noResult: 5 }],
    ["running", 200, { noResult: 4 }],
  ] as const)("is %s of %i runs after %j", (status, runs, tally) => {
    expect(decide(runs, tally)).toBe(status);
  });

  test("begins as many runs as runners are free or become free, and never more than are left", () => {
    expect(want(200, {}, 0)).toBe(1);
    expect(want(200, {}, 4)).toBe(4);
    expect(want(200, { running: 4 }, 0)).toBe(4);
    expect(want(200, { running: 4, queued: 4 }, 0)).toBe(0);
    expect(want(200, { queued: 1 }, 0)).toBe(0);
    expect(want(10, { passed: 7, running: 2 }, 8)).toBe(1);
    expect(want(10, { passed: 8, running: 2 }, 8)).toBe(0);
    expect(want(1_000, {}, 500)).toBe(32);
    expect(want(1_000, { running: 30 }, 500)).toBe(2);
    expect(want(1_000, { running: 40 }, 500)).toBe(0);
  });
});
