/** The catalogue of test cases: the list, one case, its history, its owner and quarantine. */

import { absent } from "../http/problem.ts";
import { catchUp } from "../operations/health/catch_up.ts";
import { readHistory } from "../operations/health/case_history.ts";
import { changeTestCases, requireFuture } from "../operations/projects/catalogue.ts";
import { toPage, toPagination } from "../request/page.ts";
import { type Context, route, type Route } from "../request/route.ts";
import {
  changedTestCases,
  testCase,
  testCaseFilter,
  testCasePage,
  testCasePatch,
  testCaseResultFilter,
  testCaseResultPage,
  testCasesPatch,
} from "../schema/test_cases.ts";
import { selectTestCase, selectTestCases, type TestCaseRow, updateTestCases } from "../store/test_cases.ts";
import type { Sql } from "../database/connect.ts";

const toTestCase = ({ number: _, key: __, ...row }: TestCaseRow) => row;

type One = Pick<Context<{ projectId: string; testCaseId: string }>, "params">;

const find = async (sql: Sql, { params }: One): Promise<TestCaseRow> =>
  (await selectTestCase(sql, params.projectId, params.testCaseId)) ?? absent();

export const testCases: Route[] = [
  route(
    "GET /projects/:projectId/test-cases",
    {
      summary: "The catalogue of test cases, in the order in which they were first seen or sorted, greatest first",
      description: "Every test case that has been reported, with what is remembered of it.",
      example: { query: { health: "flaky,broken", sort: "flakeRate" } },
      query: testCaseFilter,
      answer: testCasePage,
    },
    async (context) => {
      const { sql, params, query, page, services } = context;
      await catchUp(sql, services.begin, params.projectId);
      const rows = await selectTestCases(sql, params.projectId, { ...query, after: page.after });
      return toPage(context, rows, ({ key, number }) => [key ?? "", String(number)], toTestCase);
    },
  ),

  route(
    "GET /projects/:projectId/test-cases/:testCaseId",
    {
      summary: "One test case",
      description: "What is remembered of it: health, rates, durations, owner, quarantine.",
      answer: testCase,
    },
    async (context) => {
      const { sql, services, params } = context;
      await catchUp(sql, services.begin, params.projectId);
      return toTestCase(await find(sql, context));
    },
  ),

  route(
    "PATCH /projects/:projectId/test-cases/:testCaseId",
    {
      scope: "triage",
      record: "test_case.changed",
      summary: "Give a test case an owner, quarantine it, or end that",
      description:
        "Its failures go on being counted while it is quarantined, but turn no run red and are told apart. What is " +
        "left out stays as it is.",
      example: { body: { owner: "ada", quarantine: { reason: "#12" } } },
      body: testCasePatch,
      answer: testCase,
    },
    async (context) => {
      const { params, sql, services, body, transact } = context;
      requireFuture(body);
      await catchUp(sql, services.begin, params.projectId);
      return await transact(async (sql) => {
        if ("absent" in (await updateTestCases(sql, params.projectId, [params.testCaseId], body))) absent();
        return toTestCase(await find(sql, context));
      });
    },
  ),

  route(
    "PATCH /projects/:projectId/test-cases",
    {
      scope: "triage",
      record: "test_case.changed",
      summary: "Give up to 100 test cases an owner, quarantine them, or end that: all of them, or none",
      description: "The same change for all of them. One that is not of this project is a 400, and none is changed.",
      example: { body: { testCaseIds: ["0199b2c4-8e02-75cc-a1b0-52d7f90c6e13"], owner: "ada" } },
      body: testCasesPatch,
      answer: changedTestCases,
    },
    async ({ params, body: { testCaseIds, ...patch }, transact }) =>
      await transact(async (sql) => await changeTestCases(sql, params.projectId, testCaseIds, patch)),
  ),

  route(
    "GET /projects/:projectId/test-cases/:testCaseId/results",
    {
      summary: "The results of a test case, newest run first",
      description:
        "Its history: one result for each run. A page may be short where a filter matches few of very many; the list " +
        "goes on as long as hasMore says so.",
      example: { query: { status: "failed", branch: "main" } },
      query: testCaseResultFilter,
      answer: testCaseResultPage,
    },
    async (context) => {
      const { sql, fast, params, query, page } = context;
      await find(fast, context);
      const { rows, last } = await readHistory(sql, params.projectId, params.testCaseId, {
        ...query,
        after: page.after?.[0],
      });
      return {
        data: rows.map(({ runId: _, ...row }) => row),
        pagination: toPagination(context, last === undefined ? undefined : [last]),
      };
    },
  ),
];
