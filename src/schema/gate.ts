/** Gates: which failures of a build or an upload are forgiven, and whether it may pass. */

import * as v from "valibot";
import { executionStatus } from "./executions.ts";
import { caseRef } from "./case_ref.ts";
import { booleanText, count, described, executionId, integerText, slug, time } from "./fields.ts";

const MODES = ["quarantine", "new"] as const;
export const gateMode = v.picklist(MODES, `expected "quarantine" or "new"`);
export type GateMode = v.InferOutput<typeof gateMode>;

const MODE_MEANING =
  "quarantine: failures of quarantined tests are forgiven; new: also failures of known flaky tests, and of tests that " +
  "fail on the default branch, unless the build is of the default branch or a long-lived branch itself";

/**
 * The maximum share of the change among the explanations of a failure that a gate forgives: the odds are at least 20 to 1, or 4 to 1,
 * against the change.
 */
export const GATE_SHARES = { strict: 0.05, normal: 0.2 } as const;

const MIN_SHARE = 0.01;
const MAX_SHARE = 0.5;
const SHARE_EXPECTED = `expected a number from ${MIN_SHARE} to ${MAX_SHARE}`;

/** A choice of the project: an upload that could raise it would forgive itself. */
export const gateShare = v.pipe(
  v.number(SHARE_EXPECTED),
  v.minValue(MIN_SHARE, SHARE_EXPECTED),
  v.maxValue(MAX_SHARE, SHARE_EXPECTED),
);

/** The same as a query parameter. */
export const gateShareText = v.pipe(
  v.string(SHARE_EXPECTED),
  v.regex(/^0?\.\d{1,6}$/, SHARE_EXPECTED),
  v.transform(Number),
  v.minValue(MIN_SHARE, SHARE_EXPECTED),
  v.maxValue(MAX_SHARE, SHARE_EXPECTED),
  v.metadata({ openapi: { type: "number", minimum: MIN_SHARE, maximum: MAX_SHARE } }),
);

export const GATE_SHARE_MEANING =
  "Up to this share of the change among the explanations of a failure, from 0.01 to 0.5, gates forgive it; with a larger share it is " +
  `unclear and stays red. ${GATE_SHARES.strict} is strict (odds of 20 to 1 against the change), ${GATE_SHARES.normal} normal (4 to 1)`;

/** Maximum number of forgiven failures that an answer names. */
export const MAX_FORGIVEN = 100;

export const forgivenFailure = v.strictObject({
  ...caseRef.entries,
  list: described(
    v.picklist(["quarantined", "flaky", "also_failing_on_main", "still_failing"]),
    "The list of the comparison that the failure is in",
    "flaky",
  ),
  reason: described(
    v.string(),
    "The reason for the list, in one sentence",
    "Fails 6 % of the time without a code change",
  ),
});
export type ForgivenFailure = v.InferOutput<typeof forgivenFailure>;

const unclearFailure = v.strictObject({
  ...caseRef.entries,
  reason: described(
    v.string(),
    "The likeliest explanation, in one sentence",
    "It failed in 3 of 212 results of other builds: 62 % not this change; a rerun tells",
  ),
});
export type UnclearFailure = v.InferOutput<typeof unclearFailure>;

/** The choice of a client: the mode, and the share of absent tests in percent; undefined is the default. */
export type GateChoice = { mode: GateMode; missingPercent: number | undefined };

const gateMissing = described(
  v.optional(integerText(0, 100)),
  "The share of the baseline's tests, in percent, that may be missing or newly skipped in a task whose failures are forgiven: above " +
    "it the gate does not pass. 100: any. Default: 5",
  5,
);

const decision = {
  gate: described(gateMode, MODE_MEANING, "new"),
  pass: described(
    v.boolean(),
    "Whether the gate passes: nothing is wrong except forgiven failures. A job may then exit with 0",
    true,
  ),
  reasons: described(v.array(v.string()), "The reasons why the gate does not pass, the first 20; empty: it passes", [
    "unit: 2 new failures",
  ]),
  forgivenCount: described(count, "The number of forgiven failures", 1),
  forgiven: described(
    v.array(forgivenFailure),
    "The forgiven failures, the first 100. If it does not pass, other failures or problems remain",
  ),
};

const unclear = described(v.array(unclearFailure), "Its unclear failures, the first 100: a rerun tells");

/** The decision about an upload. */
export const uploadGate = v.strictObject({ ...decision, unclear });
export type GateDecision = v.InferOutput<typeof uploadGate>;

/** The decision as it is stored with the upload that asked for it. */
export const storedGate = v.strictObject({
  shard: described(v.nullable(count), "The shard of the upload; null: the upload was not for a shard", 2),
  ...decision,
  decidedAt: described(time, "When the upload was decided"),
});
export type StoredGate = v.InferOutput<typeof storedGate>;

/** The decision about an execution or one of its tasks. */
export const executionGate = v.strictObject({
  executionId,
  status: executionStatus,
  final: described(
    v.boolean(),
    "Whether all results have arrived; until then pass is false. Another upload or a rerun can change a final decision",
    true,
  ),
  ...decision,
  unclear,
});
export type ExecutionGate = v.InferOutput<typeof executionGate>;

export const gateQuery = v.strictObject({
  gate: described(gateMode, MODE_MEANING, "new"),
  gate_missing: gateMissing,
  task_slug: described(v.optional(slug), "Only this task of the execution", "unit"),
  wait: described(
    v.optional(integerText(1, 30)),
    "The number of seconds to wait for the end of the execution. Default: answer at once",
    30,
  ),
});

/** Parameters of an upload. */
export const gateParameters = {
  gate: described(
    v.optional(gateMode),
    `Decide whether the failures of this upload are forgiven, and record that. ${MODE_MEANING}. The answer then has "gate"`,
    "new",
  ),
  gate_missing: gateMissing,
  gate_dry_run: described(v.optional(booleanText), "With gate: decide, but record nothing. Default: false"),
};

export const gatePreviewQuery = v.strictObject({
  share: described(v.optional(gateShareText), "The share to try. Default: that of the project", 0.05),
  days: described(v.optional(integerText(1, 90), "30"), "The number of days"),
});

/** The decisions that gates would have made with another share. */
export const gatePreview = v.strictObject({
  share: described(v.number(), "The share that was tried", 0.05),
  since: described(
    time,
    "The time from which red builds are counted: so many days ago, or later if there are more than 2,000 red executions or 50,000 failures since",
  ),
  guiltyBuilds: described(count, "The number of red builds of which a failure was the change's in the end", 40),
  guiltyPassed: described(count, 'The number of these that the gate "new" would have let through', 1),
  otherBuilds: described(count, "The number of other red builds with failed tests", 300),
  otherStopped: described(count, "The number of these that it would have kept red", 9),
  summary: described(
    v.string(),
    "The same in one sentence",
    "In the last 30 days this would have let through 1 of 40 guilty builds and stopped 9 of 300 others",
  ),
});
export type GatePreview = v.InferOutput<typeof gatePreview>;
