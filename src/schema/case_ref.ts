/** A test case as answers name it. */

import * as v from "valibot";
import { uuid } from "./fields.ts";

export const caseRef = v.strictObject({
  testCaseId: uuid,
  taskSlug: v.string(),
  suite: v.string(),
  name: v.string(),
  file: v.nullable(v.string()),
});
export type CaseRef = v.InferOutput<typeof caseRef>;
