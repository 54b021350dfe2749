/** The catalogue of test cases: the list, one case, its history, its owner and quarantine. */

import { absent, fail } from "../http/problem.ts";
import { catchUp } from "../operations/case_health.ts";
import { toPage } from "../request/page.ts";
import { type Context, route, type Route } from "../request/route.ts";
import {
  testCase,
  testCaseFilter,
  testCasePage,
  testCasePatch,
  testCaseResultFilter,
  testCaseResultPage,
} from "../schema/test_cases.ts";
import {
  selectHistory,
  selectTestCase,
  selectTestCases,
  type TestCaseRow,
  updateTestCase,
} from "../store/test_cases.ts";
import type { Sql } from "../store/connect.ts";

const toTestCase = ({ number: _, key: __, ...row }: TestCaseRow) => row;

type One = Pick<Context<{ projectId: string; testCaseId: string }>, "params">;

const find = async (sql: Sql, { params }: One): Promise<TestCaseRow> =>
  (await selectTestCase(sql, params.projectId, params.testCaseId)) ?? absent();

export const testCases: Route[] = [
  route(
    "GET /projects/:projectId/test-cases",
    {
      summary: "The catalogue of test cases, in the order in which they were first seen or sorted, greatest first",
      query: testCaseFilter,
      answer: testCasePage,
    },
    async (context) => {
      const { sql, params, query, after, services } = context;
      await catchUp(sql, services.begin, params.projectId);
      const rows = await selectTestCases(sql, params.projectId, { ...query, after });
      return toPage(context, rows, ({ key, number }) => [key ?? "", String(number)], toTestCase);
    },
  ),

  route(
    "GET /projects/:projectId/test-cases/:testCaseId",
    { summary: "One test case", answer: testCase },
    async (context) => {
      const { sql, services, params } = context;
      await catchUp(sql, services.begin, params.projectId);
      return toTestCase(await find(sql, context));
    },
  ),

  route(
    "PATCH /projects/:projectId/test-cases/:testCaseId",
    { summary: "Give a test case an owner, quarantine it, or end that", body: testCasePatch, answer: testCase },
    async (context) => {
      const { params, sql, services, body, transact } = context;
      const until = body.quarantine?.until;
      if (until && Date.parse(until) <= Date.now())
        fail("VALIDATION_ERROR", `Cannot read "quarantine.until": expected a time in the future, got "${until}"`);
      await catchUp(sql, services.begin, params.projectId);
      return await transact(async (sql) => {
        if (!(await updateTestCase(sql, params.projectId, params.testCaseId, body))) absent();
        return toTestCase(await find(sql, context));
      });
    },
  ),

  route(
    "GET /projects/:projectId/test-cases/:testCaseId/results",
    {
      summary: "The results of a test case, newest run first",
      query: testCaseResultFilter,
      answer: testCaseResultPage,
    },
    async (context) => {
      const { sql, fast, params, query, after } = context;
      await find(fast, context);
      const rows = await selectHistory(sql, params.projectId, params.testCaseId, query.limit, after?.[0]);
      return toPage(
        context,
        rows,
        ({ runId }) => [runId],
        ({ runId: _, ...row }) => row,
      );
    },
  ),
];
