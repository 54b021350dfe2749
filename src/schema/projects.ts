/** The project itself. */

import * as v from "valibot";
import { MAX_TIMEOUT_MINUTES } from "./executions.ts";
import { integer, text, time, uuid } from "./fields.ts";

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
  executionTimeoutMinutes: v.optional(integer(1, MAX_TIMEOUT_MINUTES)),
});
export type ProjectPatch = v.InferOutput<typeof projectPatch>;
