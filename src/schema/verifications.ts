/** Verifications: one test case is run many times at one commit. */

import * as v from "valibot";
import { caseRef } from "./case_ref.ts";
import { count, createdAt, described, executionId, integer, time, uuid } from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";

export const MAX_VERIFICATION_RUNS = 1_000;

export const verificationStatus = described(
  v.picklist(["running", "passed", "flaky", "failed", "inconclusive", "cancelled"]),
  "passed: no run failed; flaky: some runs failed and some passed; failed: every run failed; inconclusive: too many " +
    "runs have no result",
  "passed",
);
export type VerificationStatus = v.InferOutput<typeof verificationStatus>;

const rate = (text: string, example: number) => described(v.number(), text, example);

export const verification = v.strictObject({
  id: described(uuid, "The id of the verification"),
  testCase: described(v.strictObject(caseRef.entries), "The test case"),
  commit: described(v.string(), "The commit", "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"),
  status: verificationStatus,
  runs: described(count, "The number of runs that were asked for", 200),
  passed: described(count, "The number of runs that passed", 200),
  failed: described(
    count,
    "The number of runs that failed, also if the test passed when its tool repeated it in the same run",
    0,
  ),
  noResult: described(
    count,
    "The number of runs without a result: the test did not run, the runner failed, or the commit cannot be built",
    0,
  ),
  failureRate: described(
    v.nullable(
      v.strictObject({
        lower: rate("The lower bound of the confidence interval, from 0 to 1", 0),
        upper: rate("The upper bound of the confidence interval, from 0 to 1", 0.0149),
        confidence: rate("The confidence level", 0.95),
      }),
    ),
    "The exact confidence interval (Clopper and Pearson) of the share of runs that fail; null: no run has a result",
  ),
  statement: described(
    v.string(),
    "The result in words",
    "0 of 200 runs failed: with 95 % certainty it fails in less than 1.5 % of its runs",
  ),
  stopReason: described(
    v.nullable(v.string()),
    "Why it ended before all its runs, in words; null: it is running, or all runs are done",
    "Stopped after 5 of 200 runs: 3 failed and 2 passed, so it is flaky",
  ),
  release: described(v.boolean(), "Whether a quarantine of the test case ends if the verification passes", true),
  released: described(v.boolean(), "Whether the verification has ended a quarantine", true),
  failedExecutionIds: described(v.array(executionId), "The first failed probes, at most 20"),
  requestedBy: described(v.string(), "Who started it", "ada@example.com"),
  createdAt,
  endedAt: described(v.nullable(time), "When it ended; null: not yet"),
});
export type Verification = v.InferOutput<typeof verification>;
export const verificationPage = listPage(verification);
export const verificationFilter = v.strictObject(pageQuery);

/** A hash that git takes for a commit, and never for an option. */
export const commitHash = v.pipe(
  v.string("expected a commit hash of 7 to 64 hexadecimal digits"),
  v.regex(/^[0-9a-fA-F]{7,64}$/, "expected a commit hash of 7 to 64 hexadecimal digits"),
  v.toLowerCase(),
);

export const newVerification = v.strictObject({
  commit: described(commitHash, "The commit to run it at", "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"),
  runs: described(
    v.optional(integer(1, MAX_VERIFICATION_RUNS), 100),
    "The number of runs, 1 to 1,000. Default: 100. It ends earlier when the test is clearly flaky or broken",
    200,
  ),
  release: described(
    v.optional(v.boolean("expected true or false"), false),
    "Whether to end the quarantine of the test case if no run fails. Default: false",
    true,
  ),
});
