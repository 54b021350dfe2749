/** The differences between an execution and its baseline. */

import * as v from "valibot";
import { caseRef } from "./case_ref.ts";
import { blamedCounts, blamedFailures } from "./failures.ts";
import { slowerTest } from "./slower.ts";
import { branchName, count, described, executionId, uuid } from "./fields.ts";

const refs = (what: string) => v.pipe(v.array(caseRef), v.description(`${what}; the first 100`));

export const comparison = v.strictObject({
  executionId,
  baselineId: v.pipe(
    v.nullable(uuid),
    v.description("null: there was none, so failures are explained only by the history of their test cases"),
  ),
  counts: described(
    v.strictObject({
      ...blamedCounts,
      fixed: described(count, "Passed, but failed in the baseline or in the last build of the same pull request", 2),
      added: described(count, "Not in the baseline", 4),
      missing: described(count, "Only in the baseline", 0),
      slower: described(count, "Passed and took longer than usual", 1),
    }),
    "The number of test cases in each list, without a limit",
  ),
  ...blamedFailures,
  fixed: refs("Passed, but failed in the baseline or in the last build of the same pull request"),
  added: refs("Not in the baseline"),
  missing: refs("Only in the baseline"),
  slower: described(
    v.array(slowerTest),
    "Passed and took longer than usual on the default branch, whatever the baseline is; the first 100",
  ),
});
export type Comparison = v.InferOutput<typeof comparison>;

export const comparisonQuery = v.strictObject({
  baseline: described(
    v.optional(uuid),
    "The execution to compare with; not together with branch. Default: the baseline, which was fixed when this " +
      "execution began",
  ),
  branch: described(
    v.optional(branchName),
    "Compare with the last execution of this branch that had ended when this one began; answered 400 if there is " +
      "none",
    "main",
  ),
});
