/** Test cases and runs that took longer than usual. */

import * as v from "valibot";
import { caseRef } from "./case_ref.ts";
import { count, described } from "./fields.ts";

const usual = {
  usualMs: described(count, "The median of the last passes on the default branch, up to 100, in milliseconds", 900),
  longestMs: described(count, "The longest of them", 1_400),
};

/** The usual durations that a run is compared with. */
export const slowerRun = v.strictObject(usual);

export const slowerTest = v.strictObject({
  ...caseRef.entries,
  durationMs: described(count, "The duration in milliseconds", 6_200),
  ...usual,
});
