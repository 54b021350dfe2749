/** Failures as they are told: what each says about its build. */

import * as v from "valibot";
import { caseRef } from "./case_ref.ts";
import { bugStatus } from "./bug_reports.ts";
import { commit, count, described, executionId, integerText, time, uuid } from "./fields.ts";
import { pageQuery, pagination } from "./page.ts";

const BLAMES = ["new", "flaky", "main", "still", "quarantined", "incident"] as const;
/** As it is stored. */
export type Blame = (typeof BLAMES)[number];
/**
 * How an incident was recognised: by a message that many tests have in common, by the other runs of the machine, or by tests of the
 * run that passed only on retry.
 */
export type IncidentSign = "cause" | "machine" | "retries";

const refs = (what: string) => v.pipe(v.array(caseRef), v.description(`${what}; the first 100`));

const flakiness = {
  flakeRate: described(
    v.nullable(v.number()),
    "The share of its results that failed without a reason, from 0 to 1",
    0.04,
  ),
  lastFlakyAt: described(v.nullable(time), "When it last showed that it is flaky"),
};

/** Every failed case is in one of these, but for those of an outage, which are in none. */
export const blamedFailures = {
  newFailures: refs(
    "Failed, and nothing explains it: neither the baseline nor the default branch since then nor the record of the case",
  ),
  flakyFailures: v.pipe(
    v.array(v.strictObject({ ...caseRef.entries, ...flakiness })),
    v.description(
      "Failed, and its own record explains it: a flaky case, or one that has failed for a short time on the default " +
        "branch, or on several other branches; the first 100",
    ),
  ),
  alsoFailingOnMain: refs(
    "Failed, and so it did on the default branch since the baseline, or until not long before it",
  ),
  stillFailing: refs("Failed, and did so in the baseline"),
  quarantinedFailures: refs("Failed, and not counted by the verdict because the case is quarantined"),
  incidentFailures: refs(
    "Failed together with many others for a cause outside of the code, as a service that is away: nobody's change is to blame",
  ),
};

export const blamedCounts = {
  newFailures: described(count, "Failed, and nothing explains it", 3),
  flakyFailures: described(count, "Failed, and the case's own record explains it", 1),
  alsoFailingOnMain: described(count, "Failed, and so it did on the default branch since the baseline", 0),
  stillFailing: described(count, "Failed, and did so in the baseline", 1),
  quarantinedFailures: described(count, "Failed, and not counted by the verdict because the case is quarantined", 0),
  incidentFailures: described(count, "Failed together with many others for a cause outside of the code", 0),
};

const lists = v.strictObject(blamedFailures);
export type BlamedFailures = v.InferOutput<typeof lists>;
export const blameCounts = v.strictObject(blamedCounts);
export type BlameCounts = v.InferOutput<typeof blameCounts>;

const failure = v.strictObject({
  ...caseRef.entries,
  line: described(v.nullable(v.number()), "The line in its file, where the report names it", 42),
  attempt: v.pipe(count, v.description("The attempt of the run that this result is from"), v.examples([1])),
  host: described(v.nullable(v.string()), "The machine that it failed on; null: unknown", "ci-3"),
  blame: v.pipe(
    v.nullable(v.picklist(["new", "flaky", "also_failing_on_main", "still_failing", "quarantined", "incident"])),
    v.description(
      "Which of the lists of a comparison it is in; null: of an outage, which blames nobody, or from before failures were judged",
    ),
    v.examples(["new"]),
  ),
  reason: described(
    v.nullable(v.string()),
    "Why it is in that list, in one sentence",
    "Fails 6 % of the time without a code change; 2 failures in a row on this branch have odds of 1 in 280",
  ),
  since: v.pipe(
    v.nullable(v.strictObject({ executionId, commit, at: described(v.nullable(time), "When that run was completed") })),
    v.description(
      "The first of its failures in a row, on this branch and the default branch; 100 results are looked at",
    ),
  ),
  owner: described(v.nullable(v.string()), "Who looks after the test case", "ada"),
  ...flakiness,
});

const cause = v.strictObject({
  message: v.pipe(
    v.nullable(v.string()),
    v.description("Of the first of its failures, as is the stack"),
    v.examples(["expected 2 items, got 1"]),
  ),
  stack: described(v.nullable(v.string()), "The stack of the failure", "at cart.test.ts:42:5"),
  exceptionType: described(v.nullable(v.string()), "What was thrown, where the failure says it", "AssertionError"),
  bugReport: described(
    v.nullable(
      v.strictObject({
        id: described(uuid, "The id of the bug report"),
        number: described(count, "Its number in the project", 17),
        title: described(v.string(), "Its title", "expected # items, got #"),
        status: bugStatus,
      }),
    ),
    "The bug report that these failures have joined; null: none",
  ),
  failed: described(count, "The number of test cases that failed of it", 2500),
  failures: described(
    v.array(failure),
    "The first of the test cases that failed of it; a page lists up to 500 failures, at least one of each cause",
  ),
});
export type Cause = v.InferOutput<typeof cause>;

/** The failures of an execution, those of one cause together. */
export const executionFailures = v.strictObject({
  executionId,
  headline: described(
    v.string(),
    "What came of the execution in one line, as its page says it",
    "3 new failures since #412, 1 also failing on main",
  ),
  baselineId: v.pipe(v.nullable(uuid), v.description("The execution that it is measured by; it may be deleted by now")),
  failed: v.pipe(count, v.description("All failures of the execution, whatever this page lists"), v.examples([4])),
  counts: described(blameCounts, "How many failures are in each of the lists of a comparison"),
  causeCount: described(count, "The number of causes of all failures, whatever this page lists", 2),
  causes: described(v.array(cause), "What went wrong, new failures first; failures that have one cause stand together"),
  pagination,
});

export type ExecutionFailures = v.InferOutput<typeof executionFailures>;

export const executionFailuresQuery = v.strictObject({
  ...pageQuery,
  limit: described(v.optional(integerText(1, 100), "100"), "How many causes a page holds at most"),
});

/** A failure as a notification mentions it. */
export type FailureSummary = {
  suite: string;
  name: string;
  file: string | null;
  message: string | null;
  /** Null: the run is an outage. */
  blame: Blame | null;
};
