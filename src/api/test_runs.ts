/** Test runs: the list, one run, and the results of its cases. */

import { absent } from "../http/problem.ts";
import { readCaseAttachments } from "../operations/attachments/read.ts";
import { readAbsentTests } from "../operations/executions/absent_tests.ts";
import { toPage, toPagination } from "../request/page.ts";
import { jsonText } from "../request/reply.ts";
import { type Context, route, type Route } from "../request/route.ts";
import { caseResultFilter, caseResultPage, testRunDetail, testRunFilter, testRunPage } from "../schema/test_runs.ts";
import { LISTED } from "../store/failures.ts";
import { selectStoredGates } from "../store/gate.ts";
import { selectSlowerTestsOfRun } from "../store/slower.ts";
import { selectCaseResults } from "../store/case_results.ts";
import { selectTestRun, selectTestRunPageWithKey } from "../store/test_runs.ts";
import { toRunDetail, toSlowerTest } from "../operations/executions/run_detail.ts";

export const testRuns: Route[] = [
  route(
    "GET /projects/:projectId/test-runs",
    {
      summary: "List test runs, newest first",
      description:
        "Runs whose announced shards have all reported, last completed first. An unknown execution returns an empty " +
        "list.",
      example: { query: { limit: "20" } },
      query: testRunFilter,
      answer: testRunPage,
    },
    async (context) => {
      const { fast, caller, query, page } = context;
      const found = selectTestRunPageWithKey(fast, caller, { ...query, after: page.after });
      const { elements, last } = await context.readWithKey(found);
      const pagination = toPagination(context, last);
      return jsonText(200, `{"data":[${elements}],"pagination":${JSON.stringify(pagination)}}`);
    },
  ),

  route(
    "GET /projects/:projectId/executions/:executionId/test-runs/:taskSlug",
    {
      summary: "Get a test run",
      description: "The run with its shards, verdict and warnings, from its first report on, complete or not.",
      answer: testRunDetail,
    },
    async (context) => {
      const { fast, params } = context;
      const run = (await selectRun(context)) ?? absent();
      const [gates, slowerTests, absentTests] = await Promise.all([
        run.failed === 0 ? undefined : selectStoredGates(fast, params.projectId, [run.id]),
        selectSlowerTestsOfRun(fast, params.projectId, run.id, LISTED),
        readAbsentTests(fast, params.projectId, [run]),
      ]);
      return {
        ...toRunDetail(context.publicUrl, context.params.projectId, run, absentTests),
        machineTimeMs: run.machineTimeMs,
        shards: run.shards,
        slowerTests: slowerTests.map(toSlowerTest),
        forgiven: run.forgiven,
        gates: gates?.get(run.id) ?? [],
        format: run.format,
        exitCode: run.exitCode,
      };
    },
  ),

  route(
    "GET /projects/:projectId/executions/:executionId/test-runs/:taskSlug/cases",
    {
      summary: "List the results of a test run, failed ones first",
      description:
        "The result of the last attempt for each test case. Failed ones come first, the others in the order in which " +
        "they were first seen.",
      example: { query: { status: "failed" } },
      query: caseResultFilter,
      answer: caseResultPage,
    },
    async (context) => {
      const { sql, params, query, page } = context;
      const run = (await selectRun(context)) ?? absent();
      const { projectId } = params;
      const rows = await selectCaseResults(sql, projectId, run, { ...query, after: page.after });
      const keys = rows.slice(0, query.limit).map(({ number }) => ({ runId: run.id, number }));
      const filesOf = await readCaseAttachments(sql, { publicUrl: context.publicUrl, projectId }, keys);
      return toPage(
        context,
        rows,
        ({ rank, number }) => [String(rank), String(number)],
        ({ rank: _, number, host: __, ...result }) => ({
          ...result,
          attachments: filesOf({ runId: run.id, number }),
        }),
      );
    },
  ),
];

const selectRun = ({ fast, params }: Context<{ projectId: string; executionId: string; taskSlug: string }>) =>
  selectTestRun(fast, params.projectId, params.executionId, params.taskSlug);
