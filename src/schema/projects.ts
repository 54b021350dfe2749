/** The project itself. */

import * as v from "valibot";
import { integer, patchOf, text, time, timeoutMinutes, uuid } from "./fields.ts";

export const project = v.strictObject({
  id: uuid,
  name: v.string(),
  defaultBranch: v.string(),
  executionTimeoutMinutes: v.number(),
  retentionDays: v.pipe(v.number(), v.description("How long results are kept; 0: for ever. Runs keep their counts")),
  createdAt: time,
});
export type Project = v.InferOutput<typeof project>;

export const projectPatch = patchOf({
  name: v.optional(text(200)),
  defaultBranch: v.optional(text(500)),
  executionTimeoutMinutes: v.optional(timeoutMinutes),
  retentionDays: v.pipe(
    v.optional(v.nullable(integer(0, 36_500))),
    v.description("null: what the server is configured for"),
  ),
});
export type ProjectPatch = v.InferOutput<typeof projectPatch>;
