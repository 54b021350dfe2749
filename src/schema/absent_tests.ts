/** Tests of a run without a result, as answers name them. */

import * as v from "valibot";
import { caseRef } from "./case_ref.ts";
import { count, described } from "./fields.ts";

const someTests = v.strictObject({
  count: described(count, "The number of all of them", 2),
  testCases: described(v.array(caseRef), "The first 10"),
});

/** Fields for a run, or for all runs of an execution. */
export const notRun = {
  missing: described(
    someTests,
    "The tests that have a result in the baseline and none in the run. Said if they and those of newlySkipped are more than 5 % of " +
      "the baseline's tests, or if the run stopped early; otherwise count is 0",
  ),
  newlySkipped: described(
    someTests,
    "The tests that have a result in the baseline and are skipped in the run; said as missing is",
  ),
};

export const absentTests = {
  ...notRun,
  notRerun: described(
    someTests,
    "In a rerun: the tests that failed in the build and have no result in the rerun, or are skipped in it. They are still " +
      "failed: the task stays red until each of them has passed",
  ),
};

const lists = v.strictObject(absentTests);
export type AbsentTests = v.InferOutput<typeof lists>;
