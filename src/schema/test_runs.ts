/** Test runs and their case results: what an upload takes, what the lists answer. */

import * as v from "valibot";
import {
  branchName,
  booleanText,
  buildUrl,
  caseStatus,
  count,
  mayBeEmpty,
  shard,
  slug,
  text,
  time,
  timestamp,
  uuid,
  verdict,
} from "./fields.ts";
import { touchedBug } from "./bug_reports.ts";
import { blamedFailures } from "./failures.ts";
import { taskStatus } from "./executions.ts";
import { page, pageQuery } from "./page.ts";

/** An element of the list: exactly the seven given fields. */
export const testRun = v.strictObject({
  executionId: uuid,
  taskSlug: v.string(),
  completedAt: time,
  passed: count,
  failed: count,
  skipped: count,
  total: count,
});
export type TestRun = v.InferOutput<typeof testRun>;
export const testRunPage = page(testRun);

export const testRunFilter = v.strictObject({
  ...pageQuery,
  execution_id: v.optional(uuid),
  task_slug: v.optional(slug),
});

const runDetail = {
  ...testRun.entries,
  /** Left out until every announced shard is in. */
  completedAt: v.optional(time),
  arrivedShards: v.pipe(
    v.array(count),
    v.description("The numbers of the shards that are in, ascending; [1] for a run that is not sharded"),
  ),
  missingShards: v.pipe(
    v.array(count),
    v.description("Those that are announced and not in; then completedAt is left out"),
  ),
  status: v.pipe(
    taskStatus,
    v.description("running: shards are still awaited; incomplete: the execution has ended without some of them"),
  ),
  attempt: v.pipe(count, v.description("How often the run was uploaded: the highest attempt of any shard")),
  flaky: v.pipe(count, v.description("Cases that failed before they passed; they are among the passed ones")),
  durationMs: v.pipe(count, v.description("Of all attempts together")),
  verdict,
  warnings: v.array(v.string()),
  outage: v.pipe(
    v.boolean(),
    v.description("Nearly everything failed: kept out of what is remembered of the test cases"),
  ),
  url: v.pipe(v.string(), v.description("The page of the execution in the dashboard")),
};

/** One run in detail. */
export const testRunDetail = v.strictObject({
  ...runDetail,
  shards: v.pipe(count, v.description("As announced by the uploads; 1 for a run that is not sharded")),
  format: v.nullable(v.string()),
  exitCode: v.nullable(v.pipe(v.number(), v.integer())),
});

/** The answer to an upload. */
export const uploadedRun = v.strictObject({
  ...runDetail,
  ...blamedFailures,
  bugReports: v.pipe(v.array(touchedBug), v.description("Those that the upload opened or touched; the first 100")),
});
export type UploadedRun = v.InferOutput<typeof uploadedRun>;

const EXPECTED_EXIT_CODE = "expected an exit code from -2147483648 to 4294967295";

export const uploadParameters = v.strictObject({
  execution_id: v.optional(uuid),
  execution_key: v.optional(text(200)),
  task_slug: v.optional(slug),
  shard: v.optional(shard),
  branch: mayBeEmpty(branchName),
  commit: mayBeEmpty(text(200)),
  base_commit: v.pipe(
    mayBeEmpty(text(200)),
    v.description(
      "The commit that the branch began from: the execution that this upload begins is compared with that of this commit",
    ),
  ),
  pull_request: mayBeEmpty(text(200)),
  build_url: mayBeEmpty(buildUrl),
  environment: mayBeEmpty(text(200)),
  exit_code: v.optional(
    v.pipe(
      v.string(EXPECTED_EXIT_CODE),
      v.regex(/^-?\d{1,10}$/, EXPECTED_EXIT_CODE),
      v.transform(Number),
      v.minValue(-2_147_483_648, EXPECTED_EXIT_CODE),
      v.maxValue(4_294_967_295, EXPECTED_EXIT_CODE),
      // Windows gives the 32 bits without a sign: 4294967295 is -1.
      v.transform((code) => code | 0),
    ),
  ),
  allow_empty: v.optional(booleanText, "false"),
  format: v.optional(text(50)),
  completed_at: v.optional(
    v.pipe(
      timestamp,
      v.metadata({
        openapi: {
          type: "string",
          format: "date-time",
          description:
            "When the run was completed, if not now: it dates the run, the execution that the upload makes, the " +
            "results and the bugs; what newer runs have told stays",
        },
      }),
    ),
  ),
  lease_id: v.pipe(
    v.optional(uuid),
    v.description("Of a runner: the lease that this is the report of; it says which execution, task and shard"),
  ),
  complete: v.optional(booleanText, "false"),
});
export type UploadParameters = v.InferOutput<typeof uploadParameters>;

/** The result of one test case in one run. */
export const caseResult = v.strictObject({
  testCaseId: uuid,
  suite: v.string(),
  name: v.string(),
  file: v.nullable(v.string()),
  line: v.nullable(v.number()),
  status: caseStatus,
  kind: v.nullable(v.picklist(["failure", "error", "timeout"])),
  flaky: v.boolean(),
  attempt: v.pipe(count, v.description("The attempt of the run that this result is from")),
  durationMs: v.nullable(count),
  message: v.nullable(v.string()),
  stack: v.nullable(v.string()),
  output: v.pipe(v.nullable(v.string()), v.description("The last 16 KiB of what the case printed")),
  properties: v.nullable(v.record(v.string(), v.string())),
});
export type CaseResult = v.InferOutput<typeof caseResult>;
export const caseResultPage = page(caseResult);

export const caseResultFilter = v.strictObject({
  ...pageQuery,
  status: v.optional(caseStatus),
  flaky: v.optional(booleanText),
});
