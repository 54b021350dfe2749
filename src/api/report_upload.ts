/** The upload of a test report. */

import { fail } from "../http/problem.ts";
import { removeReleased } from "../operations/attachments/contents.ts";
import { storeFiles } from "../operations/attachments/upload.ts";
import type { ReceivedUpload } from "../request/attachment_parts.ts";
import { prepareReport } from "../operations/ingest/prepare.ts";
import { takeUpload } from "../operations/ingest/queue.ts";
import { readReport } from "../reports/read.ts";
import { type CaseName, type Report, ReportError } from "../reports/report.ts";
import { withRelativePaths } from "../rules/repository_root.ts";
import { probeOnly, repeatOnly } from "../rules/repeat.ts";
import type { Caller } from "../request/callers.ts";
import { type Context, route, type Route } from "../request/route.ts";
import { uploadedRun, type UploadParameters, uploadParameters } from "../schema/test_runs.ts";
import type { Sql } from "../database/connect.ts";
import { selectLease } from "../store/leases.ts";
import { selectOnly } from "../store/probes.ts";
import { totalResults } from "../operations/executions/run_detail.ts";

/** A client's clock may be ahead a little; a run from the far future would stay on top of the list. */
const MAX_AHEAD_MS = 60 * 60_000;

/** Returns the number of test cases in a report, listed or only counted. */
const totalOf = ({ cases, countsOnly }: Report): number => cases.length + (countsOnly ? totalResults(countsOnly) : 0);

/** Fails with VALIDATION_ERROR on a report that cannot be read, or that says nothing. */
function read(
  { body, services }: Pick<Context<unknown, unknown, ReceivedUpload>, "body" | "services">,
  parameters: UploadParameters,
): Report {
  // If the runner reports a failure, a report without results counts as failed.
  const hasFailed = (parameters.exit_code ?? 0) !== 0;
  const { allow_empty: allowsEmpty, failure } = parameters;
  const isAbsent = failure !== undefined || allowsEmpty === "if_no_files";
  const mayBeEmpty = isAbsent ? "absent" : allowsEmpty || hasFailed;
  let report: Report;
  try {
    const format = parameters.format === undefined ? {} : { format: parameters.format };
    const limit = { maxInflatedBytes: services.maxInflatedBytes, variable: "MAX_INFLATED_MB" };
    const { attempts } = parameters;
    const rounds = Array.isArray(attempts) ? { attempts } : {};
    report = readReport(body.files, { ...format, ...limit, ...rounds, mayBeEmpty });
  } catch (error) {
    if (!(error instanceof ReportError)) throw error;
    fail("VALIDATION_ERROR", error.message);
  }
  if (totalOf(report) === 0 && !mayBeEmpty)
    fail("VALIDATION_ERROR", `The report holds no test case: upload it with allow_empty=true if this is expected`);
  return report;
}

/**
 * Returns when the run was completed, if the client states it in a parameter or in a report of our own format. Times in other reports
 * depend on the clock of the machine that ran the tests.
 */
function completionOf(parameters: UploadParameters, { format, completedAt }: Report): string | undefined {
  const stated = format === "assay" ? completedAt : null;
  const time = parameters.completed_at ?? stated?.toISOString();
  if (time === undefined) return undefined;
  const name = parameters.completed_at === undefined ? "completedAt" : "completed_at";
  if (Date.parse(time) > Date.now() + MAX_AHEAD_MS || Date.parse(time) < 0)
    fail(
      "VALIDATION_ERROR",
      `Cannot read "${name}": expected a time from 1970 on that is not in the future, got "${time}"`,
    );
  return time;
}

/**
 * Resolves a lease to its execution, task and shard; parameters that name them must agree. `only` are the test cases of a rerun of
 * failures, or of a probe. `testedCommit` is the commit that the runner checked out.
 */
async function ofLease(
  sql: Sql,
  projectId: string,
  caller: Caller,
  parameters: UploadParameters,
): Promise<{
  parameters: UploadParameters;
  only?: readonly CaseName[] | undefined;
  isProbe?: boolean;
  testedCommit?: string | undefined;
}> {
  const { lease_id, execution_id, execution_key, task_slug, shard } = parameters;
  if (lease_id === undefined) {
    if (caller.scope === "runner")
      fail("VALIDATION_ERROR", `Cannot read "lease_id": the key of a runner can report only its own leases`);
    return { parameters };
  }
  const lease =
    (await selectLease(sql, projectId, lease_id)) ??
    fail("VALIDATION_ERROR", `Cannot read "lease_id": there is no lease "${lease_id}" in this project`);
  if (caller.scope === "runner" && lease.runner !== caller.name)
    fail("VALIDATION_ERROR", `Cannot read "lease_id": it is the lease of another runner`);
  const own = {
    task_slug: lease.taskSlug,
    shard: lease.shard === 0 ? undefined : { index: lease.shard, of: lease.shards },
  };
  const others = {
    execution_id: execution_id !== undefined && execution_id !== lease.executionId,
    execution_key: execution_key !== undefined,
    task_slug: task_slug !== undefined && task_slug !== own.task_slug,
    tag: parameters.tag !== undefined && parameters.tag.length > 0,
    shard: shard !== undefined && (shard.index !== own.shard?.index || shard.of !== own.shard.of),
  };
  for (const [name, isOther] of Object.entries(others))
    if (isOther) fail("VALIDATION_ERROR", `Cannot read "${name}": the lease belongs to another one, omit it`);
  // The execution determines the origin, and the time of the run is known.
  const { commit, branch, base_commit, base_branch, pull_request, build_url, environment, ...given } = parameters;
  const { tag, completed_at, untrusted, ...rest } = given;
  return {
    testedCommit: commit,
    parameters: {
      ...rest,
      ...{ lease_id, ...own, execution_key: undefined, execution_id: lease.executionId },
      ...(lease.probe ? { untrusted: true } : {}),
    },
    only: await selectOnly(sql, projectId, lease),
    isProbe: lease.probe,
  };
}

const repeat = (report: Report, only: readonly CaseName[] | undefined, isProbe: boolean): Report =>
  !only ? report : isProbe ? probeOnly(report, only) : repeatOnly(report, only);

/** Stores the content of the files that have come with a report. */
const storeReceived = (
  { sql, params, body, services }: Context<{ projectId: string }, unknown, ReceivedUpload>,
  report: Report,
  parameters: UploadParameters,
) =>
  storeFiles(sql, services.attachments, params.projectId, {
    report,
    arrived: { ...body.received, bodies: body.attachments },
    keepsAll: parameters.attachments === "all",
    onError: (error) => services.log.error("Cannot store the attachments of an upload", { ...params, error }),
  });

export const reportUploads: Route[] = [
  route(
    "POST /projects/:projectId/test-runs",
    {
      scope: "upload",
      isForRunners: true,
      summary: "Upload a test report",
      description:
        "Adds a report to its run, completely or not at all, and returns the verdict. Uploads with the same " +
        "execution_key, branch and commit belong to the same execution, in any order. Another upload of the same task is another attempt: results are merged test case by test case, the latest counts, and a test case that failed before and passes now is flaky. A skipped result replaces none, and a failure outside of tests is replaced by tests of the same file, class or package. Equal names within one upload are attempts if exit_code is 0 and the last one passed, or if attempts says so; otherwise they are rows of one test case. The same bytes again change nothing and are answered 200. Counts are always computed from the test cases.\n\n" +
        "Recognised formats are JUnit XML in the dialects of the many tools that write it, Playwright, Jest, Vitest and Mocha JSON, " +
        "CTRF, Go test2json and the text of go test -v, Dart and Flutter JSON lines, TeamCity service messages, TAP, TRX, NUnit and xUnit XML, Robot " +
        "Framework's output.xml, doctest, Catch2, Boost.Test, CTest and TestNG XML, SonarQube's generic test execution, subunit " +
        "version 2, Cucumber JSON and Cucumber Messages, behave, RSpec, mochawesome and Newman JSON, the JSON of Rust's libtest, " +
        "pytest-json-report, pytest-reportlog, Swift Testing's event stream, Xcode's test results, Allure results, and Assay's own JSON format.\n\n" +
        "An unreadable report is answered 400 with file, position and reason. Truncated JUnit XML is read up to its last " +
        "complete test case, and its run fails. Form parts named attachment are files that the report names by their filename, or " +
        "files of the run as a whole; one that cannot be stored is a warning. The limits are 32 MiB as sent, 128 MiB after decompression (MAX_BODY_MB, " +
        "MAX_INFLATED_MB of the server) and 200,000 test cases; a message or stack is cut at 64 KiB and output at 1 MiB",
      example: {
        query: {
          execution_key: "4711",
          task_slug: "unit",
          branch: "main",
          commit: "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
        },
      },
      text:
        "One line of text: the verdict, the counts and the page of the execution. With gate, lines about its decision " +
        'come first; the first of all begins with "Gate new: passed" or "Gate new: failed". Further lines name tests ' +
        "of the baseline that did not run, failed tests that a rerun does not repeat, and a test that took longer than usual",
      query: uploadParameters,
      body: "upload",
      answer: uploadedRun,
      status: 201,
      otherStatus: 200,
      deadlineSeconds: 120,
    },
    async (context) => {
      const { sql, params, caller, upload, wantsText, services, publicUrl } = context;
      const given = await ofLease(sql, params.projectId, caller, context.query);
      const written = withRelativePaths(read(context, context.query), context.query.repository_root);
      const report = repeat(written, given.only, given.isProbe === true);
      const parameters = { ...given.parameters, completed_at: completionOf(given.parameters, report) };
      const files = await storeReceived(context, report, parameters);
      report.warnings.push(...files.warnings);
      const prepared = await prepareReport(params.projectId, report, parameters, context.body.digest);
      const { begin, beginAhead } = services;
      const { limits } = services.attachments;
      const { taken, answer, released } = await takeUpload({ sql, begin, beginAhead, limits }, params.projectId, {
        ...{ key: caller, prepared, parameters, testedCommit: given.testedCommit, files },
        ...{ claim: upload.claim, progress: upload.progress, answer: { publicUrl, wantsText } },
      });
      const { run, warnings, added } = taken;
      const { executionId, taskSlug } = run;
      const { format } = report;
      const reply = upload.stored(answer, { executionId, taskSlug, format, cases: totalOf(report), warnings, added });
      await removeReleased(services, services.attachments, params.projectId, released);
      return reply;
    },
  ),
];
