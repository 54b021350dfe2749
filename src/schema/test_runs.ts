/** Test runs and their case results: what an upload takes, what the lists answer. */

import * as v from "valibot";
import {
  branchName,
  booleanText,
  buildUrl,
  caseStatus,
  count,
  counts,
  described,
  executionId,
  machineNames,
  mayBeEmpty,
  shard,
  slug,
  taskSlug,
  testCaseId,
  text,
  time,
  timestamp,
  uuid,
  verdict,
} from "./fields.ts";
import { touchedBug } from "./bug_reports.ts";
import { caseNames } from "./case_ref.ts";
import { blameCounts, blamedFailures } from "./failures.ts";
import { taskStatus } from "./executions.ts";
import { listPage, pageQuery } from "./page.ts";

/** An element of the list: exactly the seven given fields. */
export const testRun = v.strictObject({
  executionId,
  taskSlug,
  completedAt: described(time, "When the last report of the run arrived, or what completed_at has said"),
  ...counts,
});
export type TestRun = v.InferOutput<typeof testRun>;
export const testRunPage = listPage(testRun);

export const testRunFilter = v.strictObject({
  ...pageQuery,
  execution_id: described(
    v.optional(uuid),
    "Only the runs of this execution; one that matches nothing makes an empty list",
  ),
  task_slug: described(v.optional(slug), "Only the runs of this task", "unit"),
});

const ranOn = v.strictObject({
  shard: described(v.nullable(count), "The number of the shard; null: the upload was not one of a shard", 2),
  host: described(v.nullable(v.string()), "The name of the machine; null: unknown, as are the others", "ci-3"),
  system: described(v.nullable(v.string()), "Its operating system and architecture", "linux x64"),
  image: described(v.nullable(v.string()), "The image of the machine or container", "ubuntu-24.04"),
});
export type RanOn = v.InferOutput<typeof ranOn>;

const runDetail = {
  ...testRun.entries,
  completedAt: described(
    v.optional(time),
    "When the last report of the run arrived, or what completed_at has said; left out until every announced shard is in",
  ),
  arrivedShards: v.pipe(
    v.array(count),
    v.description("The numbers of the shards that are in, ascending; [1] for a run that is not sharded"),
    v.examples([[1]]),
  ),
  missingShards: v.pipe(
    v.array(count),
    v.description("Those that are announced and not in; then completedAt is left out"),
    v.examples([[]]),
  ),
  status: v.pipe(
    taskStatus,
    v.description("running: shards are still awaited; incomplete: the execution has ended without some of them"),
  ),
  attempt: v.pipe(
    count,
    v.description("How often the run was uploaded: the highest attempt of any shard"),
    v.examples([1]),
  ),
  flaky: v.pipe(
    count,
    v.description("Cases that failed before they passed; they are among the passed ones"),
    v.examples([2]),
  ),
  durationMs: v.pipe(
    count,
    v.description(
      "Wall time in milliseconds: shards that ran side by side from the first start to the last end, or the longest of them " +
        "where reports do not tell when they began; further attempts in addition",
    ),
    v.examples([252_000]),
  ),
  verdict,
  reason: described(
    v.nullable(v.string()),
    "Why it is red beside its failing tests: shards that are missing, a report that broke off, a test runner that failed; " +
      "null: only its failing tests make it red, or it is not red",
    "shard 2 of 3 missing",
  ),
  warnings: described(
    v.array(v.string()),
    "What was odd about the report, or the upload: a total that disagrees, a text that was cut, a file that broke off",
    ["The report says 1220 tests, it holds 1219"],
  ),
  outage: v.pipe(
    v.boolean(),
    v.description("Nearly everything failed: kept out of what is remembered of the test cases"),
  ),
  ranOn: described(
    v.array(ranOn),
    "Where its latest uploads ran, in the order of their shards, the first 100; those of which nothing is known are left out",
  ),
  url: v.pipe(
    v.string(),
    v.description("The page of the execution in the dashboard"),
    v.examples([
      "https://assay.example/projects/0199b2c4-7c1e-7a54-9f0d-3b1c5a7e8d21/executions/0199b2c4-7c1e-7a54-9f0d-3b1c5a7e8d21",
    ]),
  ),
};

/** One run in detail. */
export const testRunDetail = v.strictObject({
  ...runDetail,
  machineTimeMs: described(count, "How long its tests ran in sum, over all shards and attempts", 756_000),
  shards: v.pipe(count, v.description("As announced by the uploads; 1 for a run that is not sharded"), v.examples([1])),
  format: described(v.nullable(v.string()), "What the last report was read as", "junit"),
  exitCode: described(
    v.nullable(v.pipe(v.number(), v.integer())),
    "What exit_code has said last; null: nobody has said it",
    1,
  ),
});

/** The answer to an upload. */
export const uploadedRun = v.strictObject({
  ...runDetail,
  counts: described(blameCounts, "How many failures are in each of the following lists, which hold the first 100"),
  ...blamedFailures,
  bugReports: v.pipe(v.array(touchedBug), v.description("Those that the upload opened or touched; the first 100")),
});
export type UploadedRun = v.InferOutput<typeof uploadedRun>;

const EXPECTED_EXIT_CODE = "expected an exit code from -2147483648 to 4294967295";

export const uploadParameters = v.strictObject({
  execution_id: described(
    v.optional(uuid),
    "The execution that the report belongs to, by its id; one that is not there is a 404. With neither it nor execution_key the " +
      "upload is an execution of its own, complete at once",
  ),
  execution_key: described(
    v.optional(text(200)),
    "The execution that the report belongs to, by any name of yours, such as the number of the build: the first upload makes " +
      "it, whichever that is. It names an execution together with branch and commit, wherever both sides know them; a week " +
      "after its end the key is free again",
    "4711",
  ),
  task_slug: described(
    v.optional(slug),
    "Which task of the execution this is. Default: the name that the report gives itself, else default",
    "unit",
  ),
  shard: described(
    v.optional(shard),
    "Which slice of how many of one and the same task: the run is complete when all of them are in. Jobs of a matrix are " +
      "tasks of their own",
    "2/4",
  ),
  branch: described(
    mayBeEmpty(branchName),
    "The branch that was tested; refs/heads/main is taken for main. An empty value is ignored, and an upload without a branch counts " +
      "as the default one",
    "main",
  ),
  commit: described(
    mayBeEmpty(text(200)),
    "The commit that was tested: of a pull request its head, not what CI merged it to. An empty value is ignored",
    "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
  ),
  base_commit: described(
    mayBeEmpty(text(200)),
    "The commit that the branch began from: the execution that this upload begins is compared with that of this commit",
    "1a2b3c4d",
  ),
  pull_request: described(
    mayBeEmpty(text(200)),
    "The pull or merge request, by its number or whatever names it",
    "128",
  ),
  build_url: described(
    mayBeEmpty(buildUrl),
    "The page of the build in CI, to link to; an http or https address",
    "https://ci.example/builds/4711",
  ),
  environment: described(mayBeEmpty(text(200)), "What the tests ran against", "staging"),
  ...machineNames,
  exit_code: described(
    v.optional(
      v.pipe(
        v.string(EXPECTED_EXIT_CODE),
        v.regex(/^-?\d{1,10}$/, EXPECTED_EXIT_CODE),
        v.transform(Number),
        v.minValue(-2_147_483_648, EXPECTED_EXIT_CODE),
        v.maxValue(4_294_967_295, EXPECTED_EXIT_CODE),
        // Windows gives the 32 bits without a sign: 4294967295 is -1.
        v.transform((code) => code | 0),
        v.metadata({ openapi: { type: "integer", minimum: -2_147_483_648, maximum: 4_294_967_295 } }),
      ),
    ),
    "How the test runner ended. Other than 0 without a failed test case, or without a report, it adds a failed case of its own: a " +
      "runner that crashed is never green",
    1,
  ),
  allow_empty: described(
    v.optional(booleanText, "false"),
    "Whether a report without any test case is right; else it is a 400, unless exit_code tells of a failure",
  ),
  format: described(
    v.optional(text(50)),
    "Which format the report has, where it is not to be recognised from the content: junit, playwright, jest (also Vitest), " +
      "ctrf, mocha, go, dart, teamcity, tap, trx, nunit, xunit, robot, doctest, cucumber, rspec, allure, assay. Another is a 400",
    "junit",
  ),
  completed_at: described(
    v.optional(timestamp),
    "When the run was completed, if not now; not in the future. It dates the run, the execution that the upload makes, the " +
      "results and the bugs; what newer runs have told stays, and no notifications are sent for uploads that are older than a day",
  ),
  lease_id: described(
    v.optional(uuid),
    "Of a runner: the lease that this is the report of; it says which execution, task and shard",
  ),
  complete: described(
    v.optional(booleanText, "false"),
    "Whether this was the last upload of its execution, which ends then. Else it ends when every declared task has reported, or " +
      "when nothing has come for its timeout, 30 minutes where nobody has said otherwise",
  ),
});
export type UploadParameters = v.InferOutput<typeof uploadParameters>;

/** The result of one test case in one run. */
export const caseResult = v.strictObject({
  testCaseId,
  ...caseNames,
  line: described(v.nullable(v.number()), "The line in its file, where the report names it", 42),
  status: caseStatus,
  kind: described(
    v.nullable(v.picklist(["failure", "error", "timeout"])),
    "failure: an assertion did not hold; error: something else went wrong; timeout: it took too long; null: the report does not " +
      "say, or nothing failed",
  ),
  flaky: described(v.boolean(), "Whether it failed before it passed, within this run", false),
  attempt: v.pipe(count, v.description("The attempt of the run that this result is from"), v.examples([1])),
  durationMs: described(v.nullable(count), "How many milliseconds it took; null: the report does not say", 830),
  message: described(v.nullable(v.string()), "Why it failed, or was skipped", "expected 2 items, got 1"),
  stack: described(v.nullable(v.string()), "The stack of the failure", "at cart.test.ts:42:5"),
  output: v.pipe(
    v.nullable(v.string()),
    v.description("The last 16 KiB of what the case printed"),
    v.examples(["GET /cart 200"]),
  ),
  properties: described(
    v.nullable(v.record(v.string(), v.string())),
    "Further things that the report says of it, by their names",
    { browser: "chrome" },
  ),
});
export type CaseResult = v.InferOutput<typeof caseResult>;
export const caseResultPage = listPage(caseResult);

export const caseResultFilter = v.strictObject({
  ...pageQuery,
  status: described(v.optional(caseStatus), "Only results of this status: passed, failed or skipped", "failed"),
  flaky: described(v.optional(booleanText), "true: only cases that failed before they passed; false: only the others"),
});
