/** Test runs and their case results: parameters of uploads, and answers of lists. */

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
import { absentTests } from "./absent_tests.ts";
import { commits } from "./commits.ts";
import { caseAttachments } from "./attachments.ts";
import { touchedBug } from "./bug_reports.ts";
import { caseNames } from "./case_ref.ts";
import { blameCounts, uploadedFailures } from "./failures.ts";
import { gateParameters, storedGate, uploadGate } from "./gate.ts";
import { slowerRun, slowerTest } from "./slower.ts";
import { taskStatus } from "./executions.ts";
import { listPage, pageQuery } from "./page.ts";
import { tagParameter, tags } from "./tags.ts";

/** An element of the list: exactly the seven given fields. */
export const testRun = v.strictObject({
  executionId,
  taskSlug,
  completedAt: described(time, "When the last report of the run arrived, or the value of completed_at"),
  ...counts,
});
export type TestRun = v.InferOutput<typeof testRun>;
export const testRunPage = listPage(testRun);

export const testRunFilter = v.strictObject({
  ...pageQuery,
  execution_id: described(
    v.optional(uuid),
    "Only the runs of this execution; an unknown execution returns an empty list",
  ),
  task_slug: described(v.optional(slug), "Only the runs of this task", "unit"),
});

const ranOn = v.strictObject({
  shard: described(v.nullable(count), "The number of the shard; null: the upload was not for a shard", 2),
  host: described(v.nullable(v.string()), "The name of the machine; null: unknown", "ci-3"),
  system: described(v.nullable(v.string()), "The operating system and architecture", "linux x64"),
  image: described(v.nullable(v.string()), "The image of the machine or container", "ubuntu-24.04"),
});
export type RanOn = v.InferOutput<typeof ranOn>;

const slowerTests = described(
  v.array(slowerTest),
  "The test cases of the run that passed and took longer than usual; the first 100, the greatest difference first",
);

const runDetail = {
  ...testRun.entries,
  tags,
  completedAt: described(
    v.optional(time),
    "When the last report of the run arrived, or the value of completed_at; absent until every announced shard has " +
      "reported",
  ),
  arrivedShards: v.pipe(
    v.array(count),
    v.description("The numbers of the shards that have reported, ascending; [1] for a run without shards"),
    v.examples([[1]]),
  ),
  missingShards: v.pipe(
    v.array(count),
    v.description("The announced shards that have not reported; if there are any, completedAt is absent"),
    v.examples([[]]),
  ),
  status: v.pipe(
    taskStatus,
    v.description("running: shards are still expected; incomplete: the execution has ended without some of them"),
  ),
  attempt: v.pipe(count, v.description("The number of attempts: the highest attempt of any shard"), v.examples([1])),
  flaky: v.pipe(
    count,
    v.description("Test cases that failed before they passed; they are included in passed"),
    v.examples([2]),
  ),
  durationMs: v.pipe(
    count,
    v.description(
      "Wall time in milliseconds: from the first start to the last end of parallel shards, or the longest shard if " +
        "reports contain no start times, plus further attempts",
    ),
    v.examples([252_000]),
  ),
  verdict,
  reason: described(
    v.nullable(v.string()),
    "The reason other than failed tests why it is red: missing shards, a truncated report, a failed test tool; null: " +
      "it is red only because of failed tests, or it is not red",
    "shard 2 of 3 missing",
  ),
  warnings: described(
    v.array(v.string()),
    "Problems of the report or the upload: a different total, a shortened text, a truncated file",
    ["The report says 1220 tests, it holds 1219"],
  ),
  outage: v.pipe(
    v.boolean(),
    v.description("Whether nearly all tests failed; the run then does not count for the health of test cases"),
  ),
  slower: described(
    v.nullable(slowerRun),
    "With what its wall time is compared, if the run passed and took longer than usual; null: it did not. It is never red " +
      "for that",
  ),
  ...absentTests,
  ranOn: described(
    v.array(ranOn),
    "The machines of the latest uploads, ordered by shard, the first 100; unknown machines are omitted",
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
  machineTimeMs: described(
    count,
    "The total duration of the tests in milliseconds, over all shards and attempts",
    756_000,
  ),
  shards: v.pipe(
    count,
    v.description("The number of shards that the uploads announced; 1 for a run without shards"),
    v.examples([1]),
  ),
  slowerTests,
  forgiven: described(count, "The number of failures that the gates of its latest uploads have forgiven", 1),
  gates: described(
    v.array(storedGate),
    "The decisions of the gates that its latest uploads asked for, ordered by shard, the first 100; none for an " +
      "upload in which nothing failed",
  ),
  format: described(v.nullable(v.string()), "The format of the last report", "junit"),
  exitCode: described(v.nullable(v.pipe(v.number(), v.integer())), "The last value of exit_code; null: none", 1),
});

/** The answer to an upload. */
export const uploadedRun = v.strictObject({
  ...runDetail,
  counts: described(blameCounts, "The number of failures in each of the following lists, which contain the first 100"),
  ...uploadedFailures,
  slowerTests,
  gate: described(v.optional(uploadGate), "The decision of the gate; only if the upload asked for one"),
  bugReports: v.pipe(
    v.array(touchedBug),
    v.description("The bug reports that the upload opened or changed; the first 100"),
  ),
});
export type UploadedRun = v.InferOutput<typeof uploadedRun>;

const EXPECTED_EXIT_CODE = "expected an exit code from -2147483648 to 4294967295";

/** The number of the attempt that each file is from, or the word. */
const toAttempts = (given: string): "merged" | number[] => (given === "merged" ? given : given.split(",").map(Number));

const EXPECTED_ATTEMPTS = 'expected "merged" or a number from 1 to 99 for each file, such as "1,1,2"';

export const uploadParameters = v.strictObject({
  execution_id: described(
    v.optional(uuid),
    "The id of the execution that the report belongs to; an unknown id is answered 404. Without execution_id and " +
      "execution_key, the upload is a separate execution that is complete at once",
  ),
  execution_key: described(
    v.optional(text(200)),
    "A name that you choose for the execution, such as the number of the build; the first upload creates it. The key " +
      "identifies an execution together with branch and commit, if both are known. It can be reused a week after the " +
      "execution has ended",
    "4711",
  ),
  task_slug: described(
    v.optional(slug),
    "The task of the execution. Default: the name in the report, otherwise default",
    "unit",
  ),
  tag: tagParameter(
    "What distinguishes this variant of the task from others in a matrix, up to 8 tags. Each variant is a task of its own, with a " +
      "name such as e2e [browser:webkit]",
  ),
  shard: described(
    v.optional(shard),
    "The slice of the task, such as 2/4: the run is complete when all slices have reported. The jobs of a matrix are " +
      "not slices: they have tags",
    "2/4",
  ),
  branch: described(
    mayBeEmpty(branchName),
    "The tested branch; refs/heads/main is read as main. An empty value is ignored. An upload without a branch " +
      "counts as the default branch",
    "main",
  ),
  commit: described(
    mayBeEmpty(text(200)),
    "The tested commit; for a pull request the commit of its head, not the merge commit that CI created. An empty " +
      "value is ignored",
    "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
  ),
  commits: v.optional(commits),
  base_commit: described(
    mayBeEmpty(text(200)),
    "The newest commit of the target branch that the tested tree contains: an execution that this upload creates is " +
      "compared with the last build at or before this commit, in the order in which the branch saw its commits",
    "1a2b3c4d",
  ),
  pull_request: described(mayBeEmpty(text(200)), "The number or name of the pull or merge request", "128"),
  base_branch: described(
    mayBeEmpty(branchName),
    "The branch that the pull request or the merge train is merged into: its builds are the baseline, and those of the " +
      "default branch while it has no result of the task. The ref of a merge queue of GitHub names it",
    "main",
  ),
  build_url: described(
    mayBeEmpty(buildUrl),
    "The page of the build in CI, to link to; an http or https address",
    "https://ci.example/builds/4711",
  ),
  environment: described(mayBeEmpty(text(200)), "The environment of the tests", "staging"),
  ...machineNames,
  repository_root: described(
    mayBeEmpty(text(1_000)),
    "The directory of the checkout on the machine that ran the tests: paths of the report below it are stored relative to it. " +
      "Default: recognised for common CI systems, else what the paths of the report have in common",
    "/home/runner/work/web/web",
  ),
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
    "The exit code of the test tool. If it is not 0 and no test case failed, or the report is missing, a failed test " +
      "case is added, so that a crashed test tool is never green",
    1,
  ),
  failure: described(
    v.optional(text(1_000)),
    "Why the tests did not run to their end or have no report, if it is more than an exit code: a time limit, a signal, a report that is " +
      "not there. A failed test case with this message is added, and the body may be empty",
    "Timed out after 600 s",
  ),
  allow_empty: described(
    v.optional(
      v.pipe(
        v.picklist(["true", "false", "if_no_files"], 'expected "true", "false" or "if_no_files"'),
        v.transform((value) => (value === "if_no_files" ? value : value === "true")),
        v.metadata({ openapi: { type: "string", enum: ["true", "false", "if_no_files"] } }),
      ),
      "false",
    ),
    "Whether a report without test cases is accepted; if_no_files: only from a shard to which the split of the task gave no files. " +
      "Otherwise it is answered 400, unless exit_code reports a failure",
  ),
  format: described(
    v.optional(text(50)),
    "The format of the report. Default: recognised from the content. One of junit, playwright, jest (also Vitest), " +
      "ctrf, mocha, go, dart, teamcity, tap, trx, nunit, xunit, robot, doctest, testng, ctest, " +
      "boost, catch2, sonar, subunit, cucumber, rspec, allure, assay, " +
      "cucumber_messages, mochawesome, libtest, pytest_json, pytest_reportlog, newman, behave, swift_testing, xcresult, " +
      "open_test_reporting, k6, playwright_blob, surefire",
    "junit",
  ),
  completed_at: described(
    v.optional(timestamp),
    "When the run was completed, if not now; not in the future. It is the date of the run, of an execution that the " +
      "upload creates, of the results and of the bugs. It does not change the effects of newer runs, and no " +
      "notifications are sent for uploads that are older than a day",
  ),
  untrusted: described(
    v.optional(booleanText),
    "Whether the report comes from a fork. It is shown and compared, but not used for anything else: not for health, baselines, " +
      "trends, bug reports or the state of a branch. An untrusted report and a trusted one with the same execution_key " +
      "have separate executions",
  ),
  ...gateParameters,
  attempts: described(
    v.optional(
      v.pipe(
        v.string(EXPECTED_ATTEMPTS),
        v.regex(/^(?:merged|[1-9]\d?(?:,[1-9]\d?)*)$/, EXPECTED_ATTEMPTS),
        v.transform(toAttempts),
        v.metadata({ openapi: { type: "string", pattern: "^(merged|[1-9][0-9]?(,[1-9][0-9]?)*)$" } }),
      ),
    ),
    "merged: equal names within the upload are attempts of one test, the last of which counts. A list such as 1,1,2 has a number for each " +
      "file: the attempt that it is from, so that equal names in files of one attempt stay rows of one test. Without it they are attempts " +
      "if exit_code is 0 and the last one passed, or if a file of the upload began when another one had ended and repeats a part of its " +
      "tests; otherwise they are rows of one test, and one that failed makes it fail",
    "merged",
  ),
  lease_id: described(
    v.optional(uuid),
    "For runners: the lease of the report, which determines execution, task and shard",
  ),
  attachments: described(
    v.optional(v.picklist(["failed", "all"], 'expected "failed" or "all"')),
    "The test cases of which files are kept that the report names: failed, the default, also means those that failed before they " +
      "passed. Files that no test case names belong to the run and are kept in any case",
    "all",
  ),
  complete: described(
    v.optional(booleanText, "false"),
    "Whether this was the last upload of its execution, which then ends. Otherwise the execution ends when every " +
      "declared task has reported, or after its timeout without an upload, 30 minutes by default",
  ),
});
export type UploadParameters = v.InferOutput<typeof uploadParameters>;

/** The result of one test case in one run. */
export const caseResult = v.strictObject({
  testCaseId,
  ...caseNames,
  line: described(v.nullable(v.number()), "The line in the file, if the report names it", 42),
  status: caseStatus,
  kind: described(
    v.nullable(v.picklist(["failure", "error", "timeout"])),
    "failure: an assertion did not hold; error: another error occurred; timeout: it took too long; null: unknown, or " +
      "the test case did not fail",
  ),
  flaky: described(v.boolean(), "Whether it failed before it passed within this run", false),
  attempt: v.pipe(count, v.description("The attempt of the run that this result is from"), v.examples([1])),
  durationMs: described(v.nullable(count), "The duration in milliseconds; null: unknown", 830),
  message: described(v.nullable(v.string()), "Why it failed or was skipped", "expected 2 items, got 1"),
  stack: described(v.nullable(v.string()), "The stack of the failure", "at cart.test.ts:42:5"),
  output: v.pipe(
    v.nullable(v.string()),
    v.description("The last 16 KiB of the test case's output"),
    v.examples(["GET /cart 200"]),
  ),
  properties: described(v.nullable(v.record(v.string(), v.string())), "Additional properties of the report, by name", {
    browser: "chrome",
  }),
  attachments: caseAttachments,
});
export type CaseResult = v.InferOutput<typeof caseResult>;
export const caseResultPage = listPage(caseResult);

export const caseResultFilter = v.strictObject({
  ...pageQuery,
  status: described(v.optional(caseStatus), "Only results with this status: passed, failed or skipped", "failed"),
  flaky: described(
    v.optional(booleanText),
    "true: only test cases that failed before they passed; false: only the others",
  ),
});
