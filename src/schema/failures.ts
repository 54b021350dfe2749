/** Failures in answers, with their meaning for the build. */

import * as v from "valibot";
import { absentTests } from "./absent_tests.ts";
import { caseAttachments } from "./attachments.ts";
import { caseOwners, caseRef } from "./case_ref.ts";
import { commit, count, described, executionId, integerText, text, time, uuid } from "./fields.ts";
import { joinedBug } from "./known_bugs.ts";
import { pageQuery, pagination } from "./page.ts";
import { onlyWith } from "./tags.ts";

const BLAMES = ["new", "unclear", "flaky", "main", "still", "quarantined", "incident"] as const;
/** The blame as it is stored. */
export type Blame = (typeof BLAMES)[number];
export const EXPLANATION_KINDS = ["change", "flaky", "inherited", "outside"] as const;
/** The evidence for the odds of a failure, as it is stored. */
export type OddsEvidence = {
  /** Failures in results of other builds, and those results. */
  failed: number;
  results: number;
  /** Whether none of those failures has this message. */
  isNewMessage: boolean;
  /** Failures in a row on this branch, this one included. */
  inARow: number;
  /** The task has passed it at the same commit. */
  passedAtCommit: boolean;
  /** The state of the test in the baseline. */
  base: "this cause" | "other cause" | "passed" | "none";
  /** Other branches that fail with the same message now. */
  siblings: number;
  /** Failures with the same message in other builds of the last three days, and in incidents of other tasks of the build. */
  elsewhere: number;
  /**
   * Where all other failures with the same message are, if they may be caused by changes: in the last results of the line, in other pull
   * requests, or in streaks on the line that ended with a fix.
   */
  onlyIn: "line" | "pull requests" | "fixed rows" | null;
  /** Whether it was judged again after later builds failed in the same way. */
  isSeenLater: boolean;
};

/** In the answer to an upload, `onlyWith` is as of the variants that have reported so far. */
export const failedCaseRef = v.strictObject({
  ...caseRef.entries,
  onlyWith: described(v.optional(onlyWith), "The tags that explain it; absent: none do", ["browser:webkit"]),
});

const flakiness = {
  flakeRate: described(
    v.nullable(v.number()),
    "The share of the results before this failure that failed without a cause outside of the code, from 0 to 1",
    0.04,
  ),
  lastFlakyAt: described(v.nullable(time), "When it was last observed to be flaky"),
};

/** Every failed case is in one of these, but for those of an outage, which are in none. */
const listsOf = <Ref extends typeof caseRef | typeof failedCaseRef>(ref: Ref) => {
  const refs = (what: string) => v.pipe(v.array(ref), v.description(`${what}; the first 100`));
  return {
    newFailures: refs(
      "Failed without an explanation: not in the baseline, not on the default branch since then, and not by the " +
        "history of the test case",
    ),
    unclearFailures: refs("Failed, and neither the change nor anything else explains it clearly"),
    flakyFailures: v.pipe(
      v.array(v.strictObject({ ...ref.entries, ...flakiness })),
      v.description(
        "Failed, and the history of the test case explains it: it is flaky, or it failed briefly on the default branch " +
          "or on several other branches; the first 100",
      ),
    ),
    alsoFailingOnMain: refs(
      "Failed, and also failed on the default branch since the baseline, or until shortly before it",
    ),
    stillFailing: refs("Failed, and also failed in the baseline"),
    quarantinedFailures: refs("Failed, but ignored by the verdict because the test case is quarantined"),
    incidentFailures: refs(
      "Failed for a cause outside the code: together with many others, such as for an unavailable service, or by an " +
        "infrastructure rule of the team; no change is blamed",
    ),
  };
};

export const blamedFailures = listsOf(caseRef);
export const uploadedFailures = listsOf(failedCaseRef);

export const blamedCounts = {
  newFailures: described(count, "Failed without an explanation", 3),
  unclearFailures: described(count, "Failed, and neither the change nor anything else explains it clearly", 1),
  flakyFailures: described(count, "Failed, and the history of the test case explains it", 1),
  alsoFailingOnMain: described(count, "Failed, and also failed on the default branch since the baseline", 0),
  stillFailing: described(count, "Failed, and also failed in the baseline", 1),
  quarantinedFailures: described(count, "Failed, but ignored by the verdict because the test case is quarantined", 0),
  incidentFailures: described(
    count,
    "Failed for a cause outside the code, together with many others or by an infrastructure rule",
    0,
  ),
};

const lists = v.strictObject(uploadedFailures);
export type BlamedFailures = v.InferOutput<typeof lists>;
export const blameCounts = v.strictObject(blamedCounts);
export type BlameCounts = v.InferOutput<typeof blameCounts>;

const failure = v.strictObject({
  ...caseRef.entries,
  line: described(v.nullable(v.number()), "The line in the file, if the report names it", 42),
  attempt: v.pipe(count, v.description("The attempt of the run that this result is from"), v.examples([1])),
  host: described(v.nullable(v.string()), "The machine that it failed on; null: unknown", "ci-3"),
  blame: v.pipe(
    v.nullable(
      v.picklist(["new", "unclear", "flaky", "also_failing_on_main", "still_failing", "quarantined", "incident"]),
    ),
    v.description("The list of the comparison that it is in; null: it is part of an outage"),
    v.examples(["new"]),
  ),
  reason: described(
    v.nullable(v.string()),
    "The reason for the list, in one sentence",
    "It failed in 3 of 212 results of other builds: 92 % not this change",
  ),
  explanations: described(
    v.array(
      v.strictObject({
        kind: described(
          v.picklist(EXPLANATION_KINDS),
          "change: the change of the build; flaky: the test fails by itself; inherited: what the build is based on fails; outside: " +
            "a machine, a service or the environment",
          "flaky",
        ),
        share: described(v.number(), "How likely it is, from 0 to 1; together they are 1", 0.92),
      }),
    ),
    "What may explain the failure, the most likely first; empty: it was not judged",
  ),
  infrastructureRule: v.pipe(
    v.nullable(
      v.strictObject({
        id: described(uuid, "The id of the rule, which may have been deleted since"),
        name: described(v.string(), "Its name at that time", "Package registry"),
        url: described(
          v.nullable(v.string()),
          "A link to more information; null: none",
          "https://wiki.shop.example/registry",
        ),
      }),
    ),
    v.description("The infrastructure rule of the team that the failure matches; null: none"),
  ),
  since: v.pipe(
    v.nullable(v.strictObject({ executionId, commit, at: described(v.nullable(time), "When that run was completed") })),
    v.description("The first of its consecutive failures, on this branch and the default branch, within 100 results"),
  ),
  onlyWith,
  ...caseOwners,
  ...flakiness,
  attachments: caseAttachments,
});

const cause = v.strictObject({
  message: v.pipe(
    v.nullable(v.string()),
    v.description("The message of the first failure"),
    v.examples(["expected 2 items, got 1"]),
  ),
  stack: described(v.nullable(v.string()), "The stack of the same failure", "at cart.test.ts:42:5"),
  exceptionType: described(
    v.nullable(v.string()),
    "The type of the exception, if the failure names it",
    "AssertionError",
  ),
  bugReport: described(v.nullable(joinedBug), "The bug report that these failures have joined; null: none"),
  failed: described(count, "The number of test cases that failed for this cause", 2500),
  failures: described(v.array(failure), "The first test cases that failed for this cause"),
});
export type Cause = v.InferOutput<typeof cause>;

/** The failures of an execution, those of one cause together. */
export const executionFailures = v.strictObject({
  executionId,
  headline: described(
    v.string(),
    "The outcome of the execution in one line, as on its page",
    "3 new failures since #412, 1 also failing on main",
  ),
  baselineId: v.pipe(
    v.nullable(uuid),
    v.description("The execution that it was compared with; it may have been deleted"),
  ),
  failed: v.pipe(count, v.description("The number of all failures of the execution, on all pages"), v.examples([4])),
  counts: described(blameCounts, "The number of failures in each list of the comparison"),
  causeCount: described(count, "The number of causes of all failures, on all pages", 2),
  causes: described(v.array(cause), "The causes of the failures, new failures first"),
  ...absentTests,
  pagination,
});

export type ExecutionFailures = v.InferOutput<typeof executionFailures>;

export const executionFailuresQuery = v.strictObject({
  ...pageQuery,
  limit: described(v.optional(integerText(1, 100), "100"), "The maximum number of causes per page"),
  owner: described(
    v.optional(text(200)),
    "Only failures of test cases of this owner; causeCount and the failed of a cause count only these",
    "@acme/cart",
  ),
});

/** A failure as a notification mentions it. */
export type FailureSummary = {
  suite: string;
  name: string;
  file: string | null;
  message: string | null;
  owners: string[];
  /** Null: the run is an outage. */
  blame: Blame | null;
  /** The sentence about it; null: it was not judged. */
  reason: string | null;
  /** The number of the known bug that it belongs to, if the notification names it. */
  knownBug: number | null;
};
