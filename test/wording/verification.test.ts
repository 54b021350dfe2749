/** The sentences about a verification. */

import { expect, test } from "bun:test";
import { failureRateWords, stopWords, verificationWords } from "../../src/wording/verification.ts";

test.each([
  [0, 200, "0 of 200 runs failed: with 95 % certainty it fails in less than 1.5 % of its runs"],
  [0, 1_000, "0 of 1,000 runs failed: with 95 % certainty it fails in less than 0.3 % of its runs"],
  [0, 1, "0 of 1 run failed: with 95 % certainty it fails in less than 95 % of its runs"],
  [3, 20, "3 of 20 runs failed: with 95 % certainty it fails in 3.2 % to 38 % of its runs"],
  [5, 5, "5 of 5 runs failed: with 95 % certainty it fails in more than 54 % of its runs"],
  [300, 300, "300 of 300 runs failed: with 95 % certainty it fails in more than 99 % of its runs"],
])("%i failures in %i runs", (failed, runs, words) => {
  expect(failureRateWords(failed, runs)).toBe(words);
});

test("a verification without results says why", () => {
  const none = { passed: 0, failed: 0, noBuild: 0, noResult: 0 };
  expect(verificationWords({ ...none, status: "running" })).toBe("No results yet");
  expect(verificationWords({ ...none, status: "inconclusive", noBuild: 2, noResult: 2 })).toBe(
    "The commit cannot be checked out or built",
  );
  expect(verificationWords({ ...none, status: "inconclusive", noResult: 5 })).toBe("5 runs had no result");
  expect(verificationWords({ ...none, status: "inconclusive", passed: 2, noResult: 5 })).toBe(
    "5 runs had no result; 0 of 2 runs failed: with 95 % certainty it fails in less than 78 % of its runs",
  );
});

test.each([
  [{ status: "running", passed: 1, failed: 1 }, null],
  [{ status: "passed", passed: 200 }, null],
  [{ status: "flaky", passed: 198, failed: 2 }, null],
  [{ status: "failed", failed: 200 }, null],
  [{ status: "flaky", passed: 2, failed: 3 }, "Stopped after 5 of 200 runs: 3 failed and 2 passed, so it is flaky"],
  [{ status: "failed", failed: 5 }, "Stopped after 5 of 200 runs: all failed, so it is broken and not flaky"],
  [
    { status: "inconclusive", noBuild: 2, noResult: 2 },
    "Stopped after 0 of 200 runs: the commit could not be checked out or built 2 times",
  ],
  [{ status: "inconclusive", passed: 2, noResult: 5 }, "Stopped after 2 of 200 runs: 5 other runs had no result"],
  [{ status: "cancelled", passed: 40 }, "Cancelled after 40 of 200 runs"],
] as const)("a verification that ended early says why: %j", (found, words) => {
  expect(stopWords({ runs: 200, passed: 0, failed: 0, noBuild: 0, noResult: 0, ...found })).toBe(words);
});
