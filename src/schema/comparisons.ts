/** What has changed between an execution and its baseline. */

import * as v from "valibot";
import { caseRef } from "./case_ref.ts";
import { count, text, uuid } from "./fields.ts";

const refs = (what: string) => v.pipe(v.array(caseRef), v.description(`${what}; the first 100`));

export const comparison = v.strictObject({
  executionId: uuid,
  baselineId: v.pipe(v.nullable(uuid), v.description("null: there is none yet, so everything is new")),
  counts: v.strictObject({ newFailures: count, fixed: count, stillFailing: count, added: count, missing: count }),
  newFailures: refs("Failed, and did not fail in the baseline or were not there"),
  fixed: refs("Passed, and failed in the baseline"),
  stillFailing: refs("Failed in both"),
  added: refs("Not in the baseline"),
  missing: refs("Only in the baseline"),
});
export type Comparison = v.InferOutput<typeof comparison>;

export const comparisonQuery = v.strictObject({
  baseline: v.optional(uuid),
  branch: v.optional(text(500)),
});
