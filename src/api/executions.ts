/** Executions: created, listed, awaited, ended, deleted. */

import * as v from "valibot";
import { absent, fail } from "../http/problem.ts";
import { awaitEnd } from "../request/await_end.ts";
import { toPage, toPagination } from "../request/page.ts";
import { json, noContent, plainText } from "../request/reply.ts";
import { type Context, route, type Route } from "../request/route.ts";
import { dispatchExecution } from "../operations/automation/dispatch.ts";
import { rerunEnded } from "../operations/executions/reruns.ts";
import {
  cancelExecution,
  completeExecution,
  planTasks,
  supersede,
  removeExecution,
  requireNoOption,
} from "../operations/executions/executions.ts";
import { findOrInsertExecution } from "../operations/executions/found_execution.ts";
import { readCaseAttachments } from "../operations/attachments/read.ts";
import { readAbsentOfExecution } from "../operations/executions/absent_tests.ts";
import { readCauses, readHeadline } from "../operations/executions/failures.ts";
import { resolveBranch } from "../rules/branch.ts";
import { isBlame, toCounts, toLists } from "../rules/blame.ts";
import { sealVariables } from "../operations/executions/leases.ts";
import { hasEnded, sumTasks } from "../rules/execution.ts";
import { executionLine } from "../wording/execution.ts";
import {
  type Execution,
  execution,
  executionFilter,
  executionPage,
  executionWait,
  newExecution,
  rerunRequest,
} from "../schema/executions.ts";
import { type Comparison, comparison, comparisonQuery } from "../schema/comparisons.ts";
import { executionFailures, executionFailuresQuery } from "../schema/failures.ts";
import { type ComparedRow, selectBaseline, selectComparison } from "../store/comparisons.ts";
import type { Sql } from "../database/connect.ts";
import { updateExecution } from "../store/executions.ts";
import { countFailures, selectFailureEvidence, LISTED } from "../store/failures.ts";
import { selectSlowerTests, type SlowerRow } from "../store/slower.ts";
import { toSlowerTest } from "../operations/executions/run_detail.ts";
import { selectExecution, selectExecutions } from "../store/execution_list.ts";
import { toExecution } from "./execution_fields.ts";
import { keyOf, toCause } from "./failure_fields.ts";

type One = Context<{ projectId: string; executionId: string }>;

async function find(sql: Sql, { params, publicUrl }: Pick<One, "params" | "publicUrl">): Promise<Execution> {
  const row = (await selectExecution(sql, params.projectId, params.executionId)) ?? absent();
  return toExecution(publicUrl, params.projectId, row);
}

function toComparison(
  rows: readonly ComparedRow[],
  slower: readonly SlowerRow[],
): Omit<Comparison, "executionId" | "baselineId"> {
  const of = (wanted: "fixed" | "added" | "missing") =>
    rows.flatMap(({ kind, total: _, flakeRate: __, lastFlakyAt: ___, ...ref }) => (kind === wanted ? [ref] : []));
  const failures = rows.flatMap(({ kind, total: _, ...ref }) => (isBlame(kind) ? [{ ...ref, blame: kind }] : []));
  const totals = Object.fromEntries(rows.map(({ kind, total }) => [kind, total]));
  const { fixed = 0, added = 0, missing = 0 } = totals;
  return {
    counts: { ...toCounts(totals), fixed, added, missing, slower: slower[0]?.total ?? 0 },
    ...toLists(failures),
    fixed: of("fixed"),
    added: of("added"),
    missing: of("missing"),
    slower: slower.map(toSlowerTest),
  };
}

/** Maximum number of failures on a page of causes, and of one cause. */
const MAX_FAILURES = 500;

/** Refuses options that only runners can follow in an execution without runners. */
function requireRunnable({
  mode,
  tasks,
  variables,
  failFast,
  priority,
  supersede,
  untrusted,
  dispatch,
  ...origin
}: v.InferOutput<typeof newExecution>): void {
  // The code of a fork neither runs on our runners, with the variables of an environment, nor in a CI job that is started for it.
  if (untrusted && (mode === "run" || dispatch))
    fail("VALIDATION_ERROR", `Cannot read "untrusted": an untrusted execution only takes reports`);
  if (mode === "run") {
    requireNoOption(origin);
    if (tasks.length === 0)
      fail("VALIDATION_ERROR", `Cannot read "tasks": an execution of mode "run" needs at least one task`);
    return;
  }
  const given = {
    variables: variables !== undefined,
    failFast: failFast !== undefined,
    priority: priority !== undefined,
    supersede: supersede !== undefined,
    "tasks.labels": tasks.some(({ labels }) => labels.length > 0),
    "tasks.concurrencyGroup": tasks.some(({ concurrencyGroup }) => concurrencyGroup !== undefined),
    "tasks.newTests": tasks.some(({ newTests }) => newTests !== undefined),
    "tasks.timeoutSeconds": tasks.some(({ timeoutSeconds }) => timeoutSeconds !== undefined),
  };
  const names = Object.entries(given).flatMap(([name, isGiven]) => (isGiven ? [`"${name}"`] : []));
  if (names.length > 0)
    fail("VALIDATION_ERROR", `Cannot read ${names.join(" and ")}: only executions of mode "run" have this`);
}

export const executions: Route[] = [
  route(
    "POST /projects/:projectId/executions",
    {
      scope: "upload",
      summary: "Create an execution, or get the one with this key",
      description:
        "Declares the expected tasks. The execution ends when all of them have reported; a task that never reports makes " +
        "it timed_out. In mode run, your runners execute the tasks; with dispatch, a CI system does. To upload reports " +
        "only, you need not create an execution: execution_key does.",
      example: {
        body: {
          key: "4712",
          tasks: ["unit", "e2e"],
          branch: "main",
          commit: "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
        },
      },
      body: newExecution,
      answer: execution,
      status: 201,
      otherStatus: 200,
    },
    async (context) => {
      const { params, body, conclude, publicUrl, services, caller } = context;
      const {
        key,
        mode,
        tasks,
        timeoutMinutes,
        baseCommit,
        variables,
        failFast,
        priority,
        dispatch,
        supersede: supersedes,
        ...named
      } = body;
      const origin = { ...named, ...resolveBranch(named) };
      if (caller.scope === "upload" && (mode === "run" || dispatch))
        fail("UNAUTHORIZED", `A key of scope "upload" cannot start tasks: use a key of scope "run"`);
      requireRunnable(body);
      const now = new Date();
      const dispatching = { teamId: caller.teamId, seal: services.seal, publicUrl, now };
      return await conclude(async (sql) => {
        const { execution, isNew } = await findOrInsertExecution(sql, params.projectId, {
          ...origin,
          key: key ?? null,
          status: "queued",
          mode,
          trigger: "api",
          failFast,
          variables: variables && sealVariables(services.seal, params.projectId, variables),
          timeoutMinutes: timeoutMinutes ?? null,
          baseCommit,
          now,
        });
        if (isNew) {
          const queued = tasks.map((task) => ({ ...task, ...(priority === undefined ? {} : { priority }) }));
          await planTasks(sql, params.projectId, execution, queued, now);
          if (supersedes) await supersede(sql, params.projectId, execution, now);
          if (dispatch) await dispatchExecution(sql, dispatching, params.projectId, execution, dispatch);
        } else if (execution.mode !== mode)
          fail("VALIDATION_ERROR", `Cannot read "mode": the execution with this key is of mode "${execution.mode}"`);
        else if (mode === "run" && execution.environment === null && origin.environment != null)
          fail("VALIDATION_ERROR", `Cannot read "environment": the execution with this key has none`);
        // The request completes fields that were unknown, like a report does.
        if (!isNew) {
          const { id, status } = execution;
          await updateExecution(sql, params.projectId, id, { ...origin, status, arrived: false, now });
        }
        const row = (await selectExecution(sql, params.projectId, execution.id)) ?? absent();
        return json(isNew ? 201 : 200, toExecution(publicUrl, params.projectId, row));
      });
    },
  ),

  route(
    "GET /projects/:projectId/executions",
    {
      summary: "List executions, newest first",
      description: "All executions, or those that match all given filters.",
      example: { query: { branch: "main", limit: "5" } },
      query: executionFilter,
      answer: executionPage,
    },
    async (context) => {
      const { sql, params, query, page, publicUrl } = context;
      const rows = await selectExecutions(sql, params.projectId, query.limit, { ...query, before: page.after?.[0] });
      return toPage(
        context,
        rows,
        ({ id }) => [id],
        (row) => toExecution(publicUrl, params.projectId, row),
      );
    },
  ),

  route(
    "GET /projects/:projectId/executions/:executionId",
    {
      summary: "Get an execution, optionally waiting for its end",
      description:
        "With wait, the answer is sent as soon as the execution has ended, or after this number of seconds with the " +
        "current state. Repeat the request until status says that it has ended.",
      text: "One line of text: the status, the counts, missing reports and the page in the dashboard",
      query: executionWait,
      answer: execution,
      deadlineSeconds: 60,
    },
    async (context) => {
      const { fast, query, wantsText } = context;
      const found = await awaitEnd(
        context,
        query.wait,
        () => find(fast, context),
        ({ status }) => hasEnded(status),
      );
      return wantsText ? plainText(200, executionLine(found)) : found;
    },
  ),

  route(
    "POST /projects/:projectId/executions/:executionId/complete",
    {
      scope: "upload",
      summary: "Complete an execution",
      description:
        "Declares that no further report will arrive, and ends the execution with the present results; a declared task " +
        "that has not reported makes it timed_out. An execution that has ended already is returned unchanged; a " +
        "cancelled one is answered 400.",
      text: "One line of text: the status, the counts, missing reports and the page in the dashboard",
      answer: execution,
    },
    async (context) => {
      const { params, conclude, wantsText } = context;
      return await conclude(async (sql) => {
        await completeExecution(sql, params.projectId, params.executionId, new Date());
        const found = await find(sql, context);
        return wantsText ? plainText(200, executionLine(found)) : found;
      });
    },
  ),

  route(
    "POST /projects/:projectId/executions/:executionId/cancel",
    {
      scope: "run",
      summary: "Cancel an execution that has not ended",
      description:
        "Cancelling triggers no automation. Runners end its tasks. A later report changes its figures, but it stays " +
        "cancelled. An execution that has already ended is answered 400.",
      answer: execution,
    },
    async (context) => {
      const { params, conclude } = context;
      return await conclude(async (sql) => {
        await cancelExecution(sql, params.projectId, params.executionId, new Date());
        return await find(sql, context);
      });
    },
  ),

  route(
    "POST /projects/:projectId/executions/:executionId/rerun",
    {
      scope: "rerun",
      summary: "Rerun the tasks of an ended execution",
      description:
        "Creates an execution like this one, linked by rerunOf, that waits for reports of its tasks, or in mode run " +
        "hands them to runners. With failedOnly it repeats only tasks that did not pass; runners then run only the " +
        "failed test cases. A dispatched execution is dispatched again. A rerun is part of the build that it repeats: " +
        "its results determine repeatedStatus and the state of the branch. A rerun that never starts is cancelled. An " +
        "execution that has not ended, or has nothing to repeat, is answered 400.",
      example: { body: { failedOnly: true } },
      body: rerunRequest,
      answer: execution,
      status: 201,
    },
    async (context) => {
      const { params, body, conclude, publicUrl, caller } = context;
      const { projectId, executionId } = params;
      return await conclude(async (sql) => {
        const { failedOnly } = body;
        const asked = { failedOnly, teamId: caller.teamId, publicUrl, now: new Date() };
        const id = await rerunEnded(sql, projectId, executionId, asked);
        return await find(sql, { params: { projectId, executionId: id }, publicUrl });
      });
    },
  ),

  route(
    "GET /projects/:projectId/executions/:executionId/comparison",
    {
      summary: "Compare an execution with its baseline, another execution or a branch",
      description:
        "Every failed test case is in exactly one of the lists of failures, except those of an outage, which are in " +
        "none. The baseline was fixed when the execution began, so the answer does not change over time; baseline or " +
        "branch select another execution to compare with.",
      query: comparisonQuery,
      answer: comparison,
    },
    async ({ sql, params, query }) => {
      const { projectId, executionId } = params;
      if (query.baseline !== undefined && query.branch !== undefined)
        fail("VALIDATION_ERROR", `Cannot read "branch": "baseline" is given as well`);
      const mine = (await selectExecution(sql, projectId, executionId)) ?? absent();
      if (query.baseline !== undefined && !(await selectExecution(sql, projectId, query.baseline)))
        fail("VALIDATION_ERROR", `Cannot read "baseline": there is no execution "${query.baseline}" in this project`);
      const asked =
        query.branch === undefined
          ? query.baseline
          : ((await selectBaseline(sql, projectId, executionId, query.branch)) ??
            fail(
              "VALIDATION_ERROR",
              `Cannot read "branch": no execution of "${query.branch}" had ended before this one began`,
            ));
      const [rows, slower] = await Promise.all([
        selectComparison(sql, projectId, executionId, asked),
        selectSlowerTests(sql, projectId, executionId, LISTED),
      ]);
      return { executionId, baselineId: asked === undefined ? mine.baselineId : asked, ...toComparison(rows, slower) };
    },
  ),

  route(
    "GET /projects/:projectId/executions/:executionId/failures",
    {
      summary: "List the failures of an execution by cause, new ones first",
      description:
        "Failures that belong to one bug report, or have the same message, form one cause; causes with new failures come " +
        "first. All failures are counted; a page lists up to 500 of them, at least one of each cause. The test cases of " +
        "each run list all of them.",
      query: executionFailuresQuery,
      answer: executionFailures,
    },
    async (context) => {
      const { sql, params, query, page } = context;
      const { projectId, executionId } = params;
      const mine = (await selectExecution(sql, projectId, executionId)) ?? absent();
      const [rank, runId, number] = page.after ?? [];
      const [{ causes, totals, last }, counts] = await Promise.all([
        readCauses(sql, projectId, executionId, {
          limit: query.limit,
          owner: query.owner,
          members: MAX_FAILURES,
          total: MAX_FAILURES,
          after: page.after && { rank: Number(rank), runId: runId!, number: Number(number) },
        }),
        countFailures(sql, projectId, executionId),
      ]);
      const shown = causes.flatMap(({ failures }) => failures).map((failure) => ({ ...failure, deep: true }));
      const [found, headline, filesOf, absentTests] = await Promise.all([
        shown.length === 0 ? [] : selectFailureEvidence(sql, projectId, executionId, shown),
        readHeadline(sql, projectId, mine, counts),
        readCaseAttachments(sql, { publicUrl: context.publicUrl, projectId }, shown),
        readAbsentOfExecution(sql, projectId, executionId),
      ]);
      const evidence = new Map(found.map((row) => [keyOf(row), row]));
      return {
        executionId,
        headline,
        baselineId: mine.baselineId,
        failed: sumTasks(mine.tasks, "failed"),
        counts: toCounts(counts),
        causeCount: Object.values(totals).reduce((all, number) => all + number, 0),
        causes: causes.map((cause) => toCause(cause, evidence, filesOf)),
        ...absentTests,
        pagination: toPagination(context, last && [String(last.rank), last.runId, String(last.number)]),
      };
    },
  ),

  route(
    "DELETE /projects/:projectId/executions/:executionId",
    {
      summary: "Delete an execution with all its results",
      description:
        "Deletes the execution with its runs, results and logs, immediately and permanently, in any status. The health " +
        "of its test cases keeps its results.",
      record: "execution.deleted",
      answer: null,
    },
    async ({ params, transact }) => {
      const found = await transact((sql) => removeExecution(sql, params.projectId, params.executionId));
      return found ? noContent() : absent();
    },
  ),
];
