/** Uploads that were refused, or accepted with warnings, lately. */

import * as v from "valibot";
import { count, time, uuid } from "./fields.ts";
import { page, pageQuery } from "./page.ts";

/** So many of a project are kept, for so many hours. */
export const KEPT_UPLOADS = 200;
export const KEPT_HOURS = 24;

const OUTCOMES = ["refused", "warned"] as const;
const outcome = v.picklist(OUTCOMES, `expected "refused" or "warned"`);
export type UploadOutcome = v.InferOutput<typeof outcome>;

/** The parameters that are told: none of them holds a secret. By their names in a request. */
export const TOLD_PARAMETERS = {
  execution_id: "executionId",
  execution_key: "executionKey",
  task_slug: "taskSlug",
  shard: "shard",
  branch: "branch",
  commit: "commit",
  pull_request: "pullRequest",
  format: "format",
  lease_id: "leaseId",
} as const;

const given = v.optional(v.string());
const parameters = v.pipe(
  v.strictObject({
    executionId: given,
    executionKey: given,
    taskSlug: given,
    shard: given,
    branch: given,
    commit: given,
    pullRequest: given,
    format: given,
    leaseId: given,
  } satisfies Record<(typeof TOLD_PARAMETERS)[keyof typeof TOLD_PARAMETERS], v.GenericSchema>),
  v.description("As they were given, right or wrong; each only there where it was, and cut to 200 characters"),
);
export type GivenParameters = v.InferOutput<typeof parameters>;

export const upload = v.strictObject({
  id: uuid,
  answeredAt: time,
  outcome,
  statusCode: count,
  message: v.pipe(v.nullable(v.string()), v.description("Why it was refused; null: it was accepted")),
  warnings: v.pipe(v.array(v.string()), v.description("The first 20 of what was odd about a report that was accepted")),
  parameters,
  bytes: v.pipe(
    v.nullable(count),
    v.description("What has come of the body; where nothing was read, as its head announced it, or null"),
  ),
  userAgent: v.nullable(v.string()),
  clientAddress: v.string(),
  keyLeading: v.pipe(v.string(), v.description("The leading part of the key")),
  requestId: v.string(),
  executionId: v.pipe(v.nullable(uuid), v.description("Of what was accepted; it may have been deleted since")),
  taskSlug: v.nullable(v.string()),
  times: v.pipe(
    count,
    v.description("How often: requests beyond the rate limit, one after the other, are told as one; else 1"),
  ),
  lastAnsweredAt: v.pipe(time, v.description("When the last of them was answered, told within a minute or two")),
});
export type Upload = v.InferOutput<typeof upload>;
export const uploadPage = page(upload);

export const uploadFilter = v.strictObject({ ...pageQuery, outcome: v.optional(outcome) });
