/** What has changed between an execution and its baseline. */

import * as v from "valibot";
import { caseRef } from "./case_ref.ts";
import { blamedCounts, blamedFailures } from "./failures.ts";
import { branchName, count, uuid } from "./fields.ts";

const refs = (what: string) => v.pipe(v.array(caseRef), v.description(`${what}; the first 100`));

export const comparison = v.strictObject({
  executionId: uuid,
  baselineId: v.pipe(
    v.nullable(uuid),
    v.description("null: there was none, so that only the record of a case explains its failure"),
  ),
  counts: v.strictObject({ ...blamedCounts, fixed: count, added: count, missing: count }),
  ...blamedFailures,
  fixed: refs("Passed, and failed in the baseline"),
  added: refs("Not in the baseline"),
  missing: refs("Only in the baseline"),
});
export type Comparison = v.InferOutput<typeof comparison>;

export const comparisonQuery = v.strictObject({
  baseline: v.optional(uuid),
  branch: v.optional(branchName),
});
