/** A test case as answers name it. */

import * as v from "valibot";
import { described, taskSlug, testCaseId } from "./fields.ts";

/** The fields that identify a test case within its task. */
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

/** The owners of a test case in answers. */
export const caseOwners = {
  owner: described(v.nullable(v.string()), "The first of its owners; null: it has none", "@acme/cart"),
  owners: described(
    v.array(v.string()),
    "All owners: the owner that a person set, otherwise the owners of its file or class in the CODEOWNERS file",
    ["@acme/cart"],
  ),
};
