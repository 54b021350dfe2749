/** The catalogue of test cases: the list, one case, its history, its owner and quarantine. */

import type * as v from "valibot";
import { absent, fail } from "../http/problem.ts";
import { catchUp } from "../operations/health/catch_up.ts";
import { readHistory } from "../operations/health/case_history.ts";
import { readCaseVariants } from "../operations/health/case_variants.ts";
import { changeTestCases, requireFuture } from "../operations/projects/catalogue.ts";
import { toPage, toPagination } from "../request/page.ts";
import { type Context, route, type Route } from "../request/route.ts";
import { identify } from "../rules/identity.ts";
import { type TestCondition, readTestSearch } from "../rules/test_search.ts";
import {
  changedTestCases,
  newTestCases,
  newTestCasesRequest,
  testCase,
  testCaseDetail,
  testCaseFilter,
  testCasePage,
  testCasePatch,
  testCaseResultFilter,
  testCaseResultPage,
  testCasesPatch,
} from "../schema/test_cases.ts";
import { selectEstablishedTests } from "../store/new_tests.ts";
import { selectTestCaseNumbers } from "../store/test_case_names.ts";
import { selectTestCase, selectTestCases, type TestCaseRow, updateTestCases } from "../store/test_cases.ts";
import type { Sql } from "../database/connect.ts";

const toTestCase = ({ number: _, key: __, isOwnerSet: ___, ...row }: TestCaseRow) => row;

type One = Pick<Context<{ projectId: string; testCaseId: string }>, "params">;

const find = async (sql: Sql, { params }: One): Promise<TestCaseRow> =>
  (await selectTestCase(sql, params.projectId, params.testCaseId)) ?? absent();

/** Parameters and the words of `q` are combined. Fails where the words cannot be read. */
function toConditions(query: v.InferOutput<typeof testCaseFilter>): TestCondition[] {
  const { health, task_slug, tag = [], q, owner, owned, quarantined, skip } = query;
  const searched = q === undefined ? { conditions: [] } : readTestSearch(q);
  if ("problem" in searched) fail("VALIDATION_ERROR", `Cannot read "q": ${searched.problem}`);
  const given: (TestCondition | undefined)[] = [
    health && { field: "health", is: health },
    task_slug === undefined ? undefined : { field: "task", is: task_slug },
    ...tag.map((is): TestCondition => ({ field: "tag", is })),
    owner === undefined ? undefined : { field: "owner", is: owner },
    owned === undefined ? undefined : { field: "owned", is: owned },
    quarantined === undefined ? undefined : { field: "quarantined", is: quarantined },
    skip === undefined ? undefined : { field: "skipped", is: skip },
  ];
  return [...given.filter((one) => one !== undefined), ...searched.conditions];
}

export const testCases: Route[] = [
  route(
    "GET /projects/:projectId/test-cases",
    {
      summary: "List test cases, in the order in which they were first seen or sorted",
      description: "Every test case that has been reported, with its health and statistics.",
      example: { query: { health: "flaky,broken", sort: "flakeRate" } },
      query: testCaseFilter,
      answer: testCasePage,
    },
    async (context) => {
      const { sql, params, query, page, services } = context;
      const { limit, sort } = query;
      const conditions = toConditions(query);
      await catchUp(sql, services.begin, params.projectId);
      const rows = await selectTestCases(sql, params.projectId, { limit, sort, conditions, after: page.after });
      return toPage(context, rows, ({ key, number }) => [key ?? "", String(number)], toTestCase);
    },
  ),

  route(
    "GET /projects/:projectId/test-cases/:testCaseId",
    {
      summary: "Get a test case",
      description:
        "Its health, rates, durations, owner and quarantine, and its results in the other variants of its task.",
      answer: testCaseDetail,
    },
    async (context) => {
      const { sql, services, params } = context;
      await catchUp(sql, services.begin, params.projectId);
      const row = await find(sql, context);
      return { ...toTestCase(row), ...(await readCaseVariants(sql, params.projectId, row)) };
    },
  ),

  route(
    "PATCH /projects/:projectId/test-cases/:testCaseId",
    {
      scope: "triage",
      record: "test_case.changed",
      summary: "Change the owner or quarantine of a test case",
      description:
        "Failures of a quarantined test case are counted but do not turn a run red, and are listed separately. Omitted " +
        "fields are unchanged.",
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
      summary: "Change the owner or quarantine of up to 100 test cases",
      description:
        "Applies the same change to all of them. If one does not belong to this project, the answer is 400 and none is " +
        "changed.",
      example: { body: { testCaseIds: ["0199b2c4-8e02-75cc-a1b0-52d7f90c6e13"], owner: "ada" } },
      body: testCasesPatch,
      answer: changedTestCases,
    },
    async ({ params, body: { testCaseIds, ...patch }, transact }) =>
      await transact(async (sql) => await changeTestCases(sql, params.projectId, testCaseIds, patch)),
  ),

  route(
    "POST /projects/:projectId/test-cases/new",
    {
      scope: "upload",
      summary: "Find out which test cases are new",
      description:
        "Returns the test cases that the default branch has never run. A test that was renamed or moved is new as well.",
      example: {
        body: { taskSlug: "unit", testCases: [{ suite: "cart", name: "adds an item", file: "test/cart.test.ts" }] },
      },
      body: newTestCasesRequest,
      answer: newTestCases,
    },
    async ({ sql, services, params: { projectId }, body: { taskSlug, testCases } }) => {
      await catchUp(sql, services.begin, projectId);
      const { digests } = identify(projectId, taskSlug, testCases);
      const { numbers } = await selectTestCaseNumbers(sql, projectId, digests);
      const known = numbers.filter((number) => number !== null);
      const established = await selectEstablishedTests(sql, projectId, known);
      return { testCases: testCases.filter((_, index) => !established.has(numbers[index] ?? -1)) };
    },
  ),

  route(
    "GET /projects/:projectId/test-cases/:testCaseId/results",
    {
      summary: "List the results of a test case, newest run first",
      description:
        "The history, with one result for each run. With a filter that matches few results a page may be short; continue " +
        "as long as hasMore is true.",
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
