/** Bug reports: listed, opened by hand, edited, merged, and where they occurred. */

import type * as v from "valibot";
import { absent, fail } from "../http/problem.ts";
import { editBug, mergeBugs, openBugByHand } from "../operations/bugs/bug_reports.ts";
import { toPage } from "../request/page.ts";
import { type Context, route, type Route } from "../request/route.ts";
import { type BugCondition, readBugSearch } from "../rules/bug_search.ts";
import {
  type BugReportDetail,
  bugOccurrenceFilter,
  bugOccurrencePage,
  bugReportDetail,
  bugReportFilter,
  bugReportPage,
  bugReportPatch,
  mergeRequest,
  newBugReport,
} from "../schema/bug_reports.ts";
import { selectBugReport, selectBugReports, selectBugState } from "../store/bug_reports.ts";
import { selectOccurrences } from "../store/bug_occurrences.ts";
import type { Sql } from "../database/connect.ts";

type One = Pick<Context<{ projectId: string; bugReportId: string }>, "params">;

const find = async (sql: Sql, { params }: One): Promise<BugReportDetail> =>
  (await selectBugReport(sql, params.projectId, params.bugReportId)) ?? absent();

/** Parameters and the words of `q` are combined. Fails where the words cannot be read. */
function toConditions(query: v.InferOutput<typeof bugReportFilter>): BugCondition[] {
  const { status, severity, source, task_slug, test_case_id, assignee, owner, q } = query;
  const searched = q === undefined ? { conditions: [] } : readBugSearch(q);
  if ("problem" in searched) fail("VALIDATION_ERROR", `Cannot read "q": ${searched.problem}`);
  const given: (BugCondition | undefined)[] = [
    status && { field: "status", is: status },
    severity && { field: "severity", is: [severity] },
    source && { field: "source", is: source },
    task_slug === undefined ? undefined : { field: "task", is: task_slug },
    test_case_id === undefined ? undefined : { field: "testCaseId", is: test_case_id },
    assignee === undefined ? undefined : { field: "assignee", is: assignee },
    owner === undefined ? undefined : { field: "owner", is: owner },
  ];
  return [...given.filter((one) => one !== undefined), ...searched.conditions];
}

export const bugReports: Route[] = [
  route(
    "GET /projects/:projectId/bug-reports",
    {
      summary: "List bug reports, newest first or sorted",
      description: "Bug reports that were not merged into another and match all given filters.",
      example: { query: { status: "open,in_progress", sort: "occurrences" } },
      query: bugReportFilter,
      answer: bugReportPage,
    },
    async (context) => {
      const { sql, params, query, page } = context;
      const { limit, sort } = query;
      const conditions = toConditions(query);
      const rows = await selectBugReports(sql, params.projectId, { limit, sort, conditions, after: page.after });
      return toPage(
        context,
        rows,
        ({ key, number }) => [key, String(number)],
        ({ key: _, ...bug }) => bug,
      );
    },
  ),

  route(
    "POST /projects/:projectId/bug-reports",
    {
      scope: "triage",
      record: "bug.created",
      summary: "Create a bug report",
      description:
        "For a bug that no test has found, or before it fails again: the next failures of its test cases join it.",
      example: { body: { title: "The cart forgets items", severity: "critical" } },
      body: newBugReport,
      answer: bugReportDetail,
      status: 201,
    },
    async ({ params: { projectId }, body, conclude }) =>
      await conclude(async (sql) => {
        const { id } = await openBugByHand(sql, projectId, body);
        return await find(sql, { params: { projectId, bugReportId: id } });
      }),
  ),

  route(
    "GET /projects/:projectId/bug-reports/:bugReportId",
    {
      summary: "Get a bug report with its grouping and history",
      description:
        "grouping says what its failures have in common, and the history lists the changes of its status. A merged bug " +
        "report names the one that it was merged into.",
      answer: bugReportDetail,
    },
    async (context) => await find(context.sql, context),
  ),

  route(
    "PATCH /projects/:projectId/bug-reports/:bugReportId",
    {
      scope: "triage",
      record: "bug.changed",
      summary: "Change a bug report",
      description:
        "Changes the given fields and keeps the others. A resolved bug report is reopened automatically if it occurs " +
        "again in a newer execution. An ignored bug report counts occurrences without notifications.",
      example: { body: { status: "in_progress", assignee: "ada" } },
      body: bugReportPatch,
      answer: bugReportDetail,
    },
    async (context) =>
      await context.transact(async (sql) => {
        await editBug(sql, context.params.projectId, context.params.bugReportId, context.body);
        return await find(sql, context);
      }),
  ),

  route(
    "GET /projects/:projectId/bug-reports/:bugReportId/occurrences",
    {
      summary: "List the occurrences of a bug, newest run first",
      description: "Each failed test case of this bug in each run, as long as the results are kept.",
      query: bugOccurrenceFilter,
      answer: bugOccurrencePage,
    },
    async (context) => {
      const { sql, fast, params, query, page } = context;
      if (!(await selectBugState(fast, params.projectId, params.bugReportId))) absent();
      const place = page.after as [string, string] | undefined;
      const rows = await selectOccurrences(sql, params.projectId, params.bugReportId, query.limit, place);
      return toPage(
        context,
        rows,
        ({ runId, testCase }) => [runId, String(testCase)],
        ({ runId: _, testCase: __, ...row }) => row,
      );
    },
  ),

  route(
    "POST /projects/:projectId/bug-reports/:bugReportId/merge",
    {
      scope: "triage",
      record: "bug.merged",
      summary: "Merge a bug report into another",
      description:
        "The other bug report receives its fingerprints, occurrences and future failures, and is the answer. This one is " +
        "resolved and names the other one. A merge cannot be undone.",
      example: { body: { into: "0199b2c4-a7f1-7d20-b3c4-1e9f8a7b6c5d" } },
      body: mergeRequest,
      answer: bugReportDetail,
    },
    async ({ params: { projectId, bugReportId }, body: { into }, conclude }) =>
      await conclude(async (sql) => {
        await mergeBugs(sql, projectId, bugReportId, into);
        return await find(sql, { params: { projectId, bugReportId: into } });
      }),
  ),
];
