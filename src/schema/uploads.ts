/** Uploads that were refused, or accepted with warnings, lately. */

import * as v from "valibot";
import { count, described, time, uuid } from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";

/** Maximum number of uploads kept per project, and the hours that they are kept. */
export const KEPT_UPLOADS = 200;
export const KEPT_HOURS = 24;

const OUTCOMES = ["refused", "warned"] as const;
const outcome = described(
  v.picklist(OUTCOMES, `expected "refused" or "warned"`),
  "refused: nothing was stored; warned: it was accepted with warnings",
  "refused",
);
export type UploadOutcome = v.InferOutput<typeof outcome>;

/** The logged parameters, by their names in a request. None of them contains a secret. */
export const TOLD_PARAMETERS = {
  execution_id: "executionId",
  execution_key: "executionKey",
  task_slug: "taskSlug",
  shard: "shard",
  branch: "branch",
  commit: "commit",
  pull_request: "pullRequest",
  base_branch: "baseBranch",
  format: "format",
  lease_id: "leaseId",
} as const;

const given = (name: string) => described(v.optional(v.string()), `${name}, as it was sent`);
const parameters = v.pipe(
  v.strictObject({
    executionId: given("execution_id"),
    executionKey: given("execution_key"),
    taskSlug: given("task_slug"),
    shard: given("shard"),
    branch: given("branch"),
    commit: given("commit"),
    pullRequest: given("pull_request"),
    baseBranch: given("base_branch"),
    format: given("format"),
    leaseId: given("lease_id"),
  } satisfies Record<(typeof TOLD_PARAMETERS)[keyof typeof TOLD_PARAMETERS], v.GenericSchema>),
  v.description("The parameters as they were sent, valid or not, cut to 200 characters; absent ones are omitted"),
);
export type GivenParameters = v.InferOutput<typeof parameters>;

export const loggedUpload = v.strictObject({
  id: described(uuid, "The id of this record"),
  answeredAt: described(time, "When it was answered"),
  outcome,
  statusCode: described(count, "The HTTP status of the answer", 400),
  message: v.pipe(
    v.nullable(v.string()),
    v.description("Why the upload was refused; null: it was accepted"),
    v.examples([`Cannot read "report.xml": it is empty`]),
  ),
  warnings: v.pipe(v.array(v.string()), v.description("The first 20 warnings of an accepted report"), v.examples([[]])),
  parameters,
  bytes: v.pipe(
    v.nullable(count),
    v.description("The number of bytes received; if the body was not read, the announced length, or null"),
    v.examples([18_204]),
  ),
  userAgent: described(v.nullable(v.string()), "The User-Agent of the client; null: none", "curl/8.14.1"),
  clientAddress: described(v.string(), "The address of the client", "192.0.2.7"),
  keyLeading: v.pipe(v.string(), v.description("The first characters of the key"), v.examples(["svc_proj_4fK2pQ9x"])),
  requestId: described(v.string(), "X-Request-Id of the answer", "0199b2c4-9d3e-7b11-8c55-70a1e2f3b4c5"),
  executionId: v.pipe(v.nullable(uuid), v.description("The execution of an accepted upload; it may have been deleted")),
  taskSlug: described(v.nullable(v.string()), "The task of an accepted upload", "unit"),
  times: v.pipe(
    count,
    v.description("The number of consecutive requests beyond the rate limit that this record combines; otherwise 1"),
    v.examples([1]),
  ),
  lastAnsweredAt: v.pipe(time, v.description("When the last of them was answered, updated within two minutes")),
});
export type LoggedUpload = v.InferOutput<typeof loggedUpload>;
export const uploadPage = listPage(loggedUpload);

export const uploadFilter = v.strictObject({
  ...pageQuery,
  outcome: described(v.optional(outcome), "Only refused uploads, or only uploads with warnings", "refused"),
});
