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

/** What a client chooses: the mode, and the share of absent tests, in percent; undefined: the default. */
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

/** The decision about an upload. */
export const uploadGate = v.strictObject(decision);
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
