/** Tests of a run without a result, as answers name them. */

import * as v from "valibot";
import { caseRef } from "./case_ref.ts";
import { count, described } from "./fields.ts";

/** The maximum number of such tests that an answer names. */
export const MAX_ABSENT_NAMED = 10;

const someTests = v.strictObject({
  count: described(count, "The number of all of them", 2),
  testCases: described(v.array(caseRef), "The first 10"),
});

export const absentTests = {
  notRerun: described(
    someTests,
    "In a rerun: the tests that failed in the build and have no result in the rerun, or are skipped in it. They are still " +
      "failed: the task stays red until each of them has passed",
  ),
};

const lists = v.strictObject(absentTests);
export type AbsentTests = v.InferOutput<typeof lists>;
