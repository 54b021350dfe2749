/** A test case as answers name it. */

import * as v from "valibot";
import { described, taskSlug, testCaseId } from "./fields.ts";

/** What names a test case within its task. */
export const caseNames = {
  suite: described(
    v.string(),
    "The suites, outermost first, as the report names them; may be empty",
    "checkout > cart",
  ),
  name: described(v.string(), "The name of the test", "adds an item"),
  file: described(v.nullable(v.string()), "The file, if the report names it", "test/cart.test.ts"),
};

export const caseRef = v.strictObject({ testCaseId, taskSlug, ...caseNames });
export type CaseRef = v.InferOutput<typeof caseRef>;
