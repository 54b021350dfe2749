/** The project itself. */

import * as v from "valibot";
import { text, time, timeoutMinutes, uuid } from "./fields.ts";

export const project = v.strictObject({
  id: uuid,
  name: v.string(),
  defaultBranch: v.string(),
  executionTimeoutMinutes: v.number(),
  createdAt: time,
});
export type Project = v.InferOutput<typeof project>;

export const projectPatch = v.strictObject({
  name: v.optional(text(200)),
  defaultBranch: v.optional(text(500)),
  executionTimeoutMinutes: v.optional(timeoutMinutes),
});
export type ProjectPatch = v.InferOutput<typeof projectPatch>;
