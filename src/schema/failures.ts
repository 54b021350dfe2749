/** Failures as they are told: what each says about its build. */

import * as v from "valibot";
import { caseRef } from "./case_ref.ts";
import { bugStatus } from "./bug_reports.ts";
import { count, time, uuid } from "./fields.ts";

const BLAMES = ["new", "flaky", "main", "still", "quarantined"] as const;
/** As it is stored. */
export type Blame = (typeof BLAMES)[number];

const refs = (what: string) => v.pipe(v.array(caseRef), v.description(`${what}; the first 100`));

const flakiness = {
  flakeRate: v.pipe(v.nullable(v.number()), v.description("The share of its results that failed without a reason")),
  lastFlakyAt: v.nullable(time),
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
};

export const blamedCounts = {
  newFailures: count,
  flakyFailures: count,
  alsoFailingOnMain: count,
  stillFailing: count,
  quarantinedFailures: count,
};

const lists = v.strictObject(blamedFailures);
export type BlamedFailures = v.InferOutput<typeof lists>;
const counts = v.strictObject(blamedCounts);
export type BlameCounts = v.InferOutput<typeof counts>;

const failure = v.strictObject({
  ...caseRef.entries,
  line: v.nullable(v.number()),
  attempt: v.pipe(count, v.description("The attempt of the run that this result is from")),
  blame: v.pipe(
    v.nullable(v.picklist(["new", "flaky", "also_failing_on_main", "still_failing", "quarantined"])),
    v.description("null: of an outage, which blames nobody, or from before failures were judged"),
  ),
  since: v.pipe(
    v.nullable(v.strictObject({ executionId: uuid, commit: v.nullable(v.string()), at: v.nullable(time) })),
    v.description(
      "The first of its failures in a row, on this branch and the default branch; 100 results are looked at",
    ),
  ),
  owner: v.nullable(v.string()),
  ...flakiness,
});

const cause = v.strictObject({
  message: v.pipe(v.nullable(v.string()), v.description("Of the first of its failures, as is the stack")),
  stack: v.nullable(v.string()),
  exceptionType: v.nullable(v.string()),
  bugReport: v.nullable(v.strictObject({ id: uuid, number: count, title: v.string(), status: bugStatus })),
  failures: v.array(failure),
});
export type Cause = v.InferOutput<typeof cause>;

/** The failures of an execution, those of one cause together. */
export const executionFailures = v.strictObject({
  executionId: uuid,
  baselineId: v.pipe(v.nullable(uuid), v.description("The execution that it is measured by; it may be deleted by now")),
  failed: v.pipe(count, v.description("All of them; the first 500 are told below")),
  counts,
  causes: v.array(cause),
});
