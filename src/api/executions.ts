/** Executions: created, listed, awaited, ended, deleted. */

import * as v from "valibot";
import { absent, fail } from "../http/problem.ts";
import { toPage } from "../request/page.ts";
import { json, noContent, plainText } from "../request/reply.ts";
import { type Context, route, type Route } from "../request/route.ts";
import { dispatchExecution } from "../operations/dispatch.ts";
import { advanceExecution, findOrInsertExecution, planTasks, rerunExecution } from "../operations/executions.ts";
import { isBlame, toCounts, toLists, WORD_OF } from "../rules/blame.ts";
import { sealVariables } from "../operations/leases.ts";
import { executionVerdict, hasEnded } from "../rules/execution.ts";
import { fingerprint } from "../rules/fingerprint.ts";
import { shardsOf, toShardList } from "../rules/shards.ts";
import {
  type Execution,
  execution,
  executionFilter,
  executionPage,
  newExecution,
  rerunRequest,
} from "../schema/executions.ts";
import { type Comparison, comparison, comparisonQuery } from "../schema/comparisons.ts";
import { type Cause, executionFailures } from "../schema/failures.ts";
import { integerText } from "../schema/fields.ts";
import { type ComparedRow, selectBaseline, selectComparison } from "../store/comparisons.ts";
import type { Sql } from "../store/connect.ts";
import {
  deleteExecution,
  type ExecutionRow,
  lockExecution,
  selectExecution,
  selectExecutions,
  updateExecution,
} from "../store/executions.ts";
import { countFailures, type FailureRow, selectExecutionFailures } from "../store/failures.ts";
import { executionUrl } from "../schema/urls.ts";

type One = Context<{ projectId: string; executionId: string }>;

const sum = (tasks: ExecutionRow["tasks"], name: "passed" | "failed" | "skipped" | "flaky") =>
  tasks.reduce((total, task) => total + task[name], 0);

function toExecution(publicUrl: string, projectId: string, row: ExecutionRow): Execution {
  const counts = {
    passed: sum(row.tasks, "passed"),
    failed: sum(row.tasks, "failed"),
    skipped: sum(row.tasks, "skipped"),
  };
  return {
    id: row.id,
    key: row.key,
    status: row.status,
    mode: row.mode,
    branch: row.branch,
    commit: row.commit,
    pullRequest: row.pullRequest,
    buildUrl: row.buildUrl,
    environment: row.environment,
    trigger: row.trigger,
    rerunOf: row.rerunOf,
    baselineId: row.baselineId,
    tasks: row.tasks.map(({ flaky: _, verdict: __, declared: ___, outage: ____, shards, namedShards, ...task }) => ({
      ...task,
      total: task.passed + task.failed + task.skipped,
      missingShards: shards === 1 ? [] : shardsOf({ shards, completedAt: task.completedAt }, namedShards).missingShards,
    })),
    ...counts,
    total: counts.passed + counts.failed + counts.skipped,
    flaky: sum(row.tasks, "flaky"),
    verdict: executionVerdict(row.status, row.tasks),
    createdAt: row.createdAt,
    startedAt: row.startedAt,
    completedAt: row.completedAt,
    url: executionUrl(publicUrl, projectId, row.id),
    ...(row.sample ? { sample: true } : {}),
  };
}

/** One line for people; what free texts hold must not break it. */
function toLine({ status, key, branch, passed, failed, skipped, tasks, url }: Execution): string {
  const name = [key, branch && `on ${branch}`].filter(Boolean).join(" ") || "execution";
  const silent = tasks.flatMap(({ slug, status, missingShards }) => {
    if (status === "timed_out" || status === "queued") return [`${slug} without report`];
    return missingShards.length === 0 ? [] : [`${slug} without ${toShardList(missingShards)}`];
  });
  const counts = `${passed} passed, ${failed} failed, ${skipped} skipped`;
  return (
    `${status.toUpperCase()} ${[`${name}: ${counts}`, ...silent].join("; ")} ${url}`.replace(/\p{C}+/gu, " ") + "\n"
  );
}

async function find(sql: Sql, { params, publicUrl }: Pick<One, "params" | "publicUrl">): Promise<Execution> {
  const row = (await selectExecution(sql, params.projectId, params.executionId)) ?? absent();
  return toExecution(publicUrl, params.projectId, row);
}

function toComparison(rows: readonly ComparedRow[]): Omit<Comparison, "executionId" | "baselineId"> {
  const of = (wanted: "fixed" | "added" | "missing") =>
    rows.flatMap(({ kind, total: _, flakeRate: __, lastFlakyAt: ___, ...ref }) => (kind === wanted ? [ref] : []));
  const failures = rows.flatMap(({ kind, total: _, ...ref }) => (isBlame(kind) ? [{ ...ref, blame: kind }] : []));
  const totals = Object.fromEntries(rows.map(({ kind, total }) => [kind, total]));
  const { fixed = 0, added = 0, missing = 0 } = totals;
  return {
    counts: { ...toCounts(totals), fixed, added, missing },
    ...toLists(failures),
    fixed: of("fixed"),
    added: of("added"),
    missing: of("missing"),
  };
}

/** How many failures of an execution are told. */
const MAX_FAILURES = 500;

/** What has joined one bug report is one cause; what has none is told apart by its fingerprint. */
function toCauses(rows: readonly FailureRow[]): Cause[] {
  const causes = new Map<string, Cause>();
  for (const row of rows) {
    const { blame, since, bugReport, message, stack, kind, ...failure } = toFailure(row);
    const mark = fingerprint({ ...failure, kind, message, stack });
    const key = bugReport?.id ?? mark.digest;
    const cause = causes.get(key) ?? { message, stack, exceptionType: mark.exceptionType, bugReport, failures: [] };
    causes.set(key, cause);
    cause.failures.push({ ...failure, blame: blame === null ? null : WORD_OF[blame], since });
  }
  return [...causes.values()];
}

function toFailure({ sinceExecutionId, sinceCommit, sinceAt, ...row }: FailureRow) {
  const { bugId, bugNumber, bugTitle, bugStatus, ...failure } = row;
  return {
    ...failure,
    since: sinceExecutionId === null ? null : { executionId: sinceExecutionId, commit: sinceCommit, at: sinceAt },
    bugReport: bugId === null ? null : { id: bugId, number: bugNumber!, title: bugTitle!, status: bugStatus! },
  };
}

/** What only runners can heed is refused where there are none. */
function requireRunnable({ mode, tasks, variables, failFast }: v.InferOutput<typeof newExecution>): void {
  if (mode === "run") {
    if (tasks.length === 0)
      fail("VALIDATION_ERROR", `Cannot read "tasks": an execution of mode "run" runs at least one`);
    return;
  }
  const given = {
    variables: variables !== undefined,
    failFast: failFast !== undefined,
    "tasks.labels": tasks.some(({ labels }) => labels.length > 0),
    "tasks.timeoutSeconds": tasks.some(({ timeoutSeconds }) => timeoutSeconds !== undefined),
  };
  const names = Object.entries(given).flatMap(([name, isGiven]) => (isGiven ? [`"${name}"`] : []));
  if (names.length > 0)
    fail("VALIDATION_ERROR", `Cannot read ${names.join(" and ")}: that is for executions of mode "run"`);
}

export const executions: Route[] = [
  route(
    "POST /projects/:projectId/executions",
    {
      summary: "Create an execution, or get the one with this key",
      body: newExecution,
      answer: execution,
      status: 201,
      otherStatus: 200,
    },
    async (context) => {
      const { params, body, conclude, publicUrl, services, caller } = context;
      const { key, mode, tasks, timeoutMinutes, baseCommit, variables, failFast, dispatch, ...origin } = body;
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
          await planTasks(sql, params.projectId, execution, tasks, now);
          if (dispatch) await dispatchExecution(sql, dispatching, params.projectId, execution, dispatch);
        } else if (execution.mode !== mode)
          fail("VALIDATION_ERROR", `Cannot read "mode": the execution with this key is of mode "${execution.mode}"`);
        // What was not known of the build is known from now on, as with a report.
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
    { summary: "List executions, newest first", query: executionFilter, answer: executionPage },
    async (context) => {
      const { sql, params, query, after, publicUrl } = context;
      const rows = await selectExecutions(sql, params.projectId, query, after?.[0]);
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
      summary: "One execution; with wait, as soon as it has ended",
      query: v.strictObject({ wait: v.optional(integerText(1, 30)) }),
      answer: execution,
      deadlineSeconds: 60,
    },
    async (context) => {
      const { fast, query, params, services, wantsText } = context;
      const toAnswer = (found: Execution) => (wantsText ? plainText(200, toLine(found)) : found);
      if (query.wait === undefined) return toAnswer(await find(fast, context));
      const until = performance.now() + query.wait * 1000;
      // The watch begins before the first look: an end between the two would be missed otherwise.
      const watch = services.signals.watch([["execution_ended", params.executionId]]);
      try {
        for (let isLast = false; ;) {
          const found = await find(fast, context);
          const left = until - performance.now();
          if (isLast || left <= 0 || hasEnded(found.status)) return toAnswer(found);
          isLast = (await watch.next(left)) === "closed";
        }
      } finally {
        watch.end();
      }
    },
  ),

  route(
    "POST /projects/:projectId/executions/:executionId/complete",
    { summary: "Say that no further report will come", answer: execution },
    async (context) => {
      const { params, conclude, wantsText } = context;
      return await conclude(async (sql) => {
        const locked = (await lockExecution(sql, params.projectId, params.executionId)) ?? absent();
        if (locked.status === "cancelled") fail("VALIDATION_ERROR", "Cannot complete the execution: it was cancelled");
        if (!hasEnded(locked.status))
          await advanceExecution(sql, params.projectId, locked, "completed", { arrived: false, now: new Date() });
        const found = await find(sql, context);
        return wantsText ? plainText(200, toLine(found)) : found;
      });
    },
  ),

  route(
    "POST /projects/:projectId/executions/:executionId/cancel",
    { summary: "Cancel an execution that has not ended", answer: execution },
    async (context) => {
      const { params, conclude } = context;
      return await conclude(async (sql) => {
        const locked = (await lockExecution(sql, params.projectId, params.executionId)) ?? absent();
        if (hasEnded(locked.status) && locked.status !== "cancelled")
          fail("VALIDATION_ERROR", `Cannot cancel the execution: it has ended as "${locked.status}"`);
        await advanceExecution(sql, params.projectId, locked, "cancelled", { arrived: false, now: new Date() });
        return await find(sql, context);
      });
    },
  ),

  route(
    "POST /projects/:projectId/executions/:executionId/rerun",
    {
      summary: "Ask for the tasks of an ended execution again: a new execution that waits for their reports",
      body: rerunRequest,
      answer: execution,
      status: 201,
    },
    async (context) => {
      const { params, body, conclude, publicUrl } = context;
      const { projectId, executionId } = params;
      return await conclude(async (sql) => {
        const locked = (await lockExecution(sql, projectId, executionId)) ?? absent();
        const rerun = { failedOnly: body.failedOnly, trigger: "rerun" as const, depth: 0, now: new Date() };
        const created = await rerunExecution(sql, projectId, locked, rerun);
        if ("reason" in created) fail("VALIDATION_ERROR", `Cannot rerun the execution: ${created.reason}`);
        return await find(sql, { params: { projectId, executionId: created.id }, publicUrl });
      });
    },
  ),

  route(
    "GET /projects/:projectId/executions/:executionId/comparison",
    {
      summary: "What has changed since the baseline: an execution, or the last one that ended on a branch",
      query: comparisonQuery,
      answer: comparison,
    },
    async ({ sql, params, query }) => {
      const { projectId, executionId } = params;
      if (query.baseline !== undefined && query.branch !== undefined)
        fail("VALIDATION_ERROR", `Cannot read "branch": "baseline" says already what to compare with`);
      const mine = (await selectExecution(sql, projectId, executionId)) ?? absent();
      if (query.baseline !== undefined && !(await selectExecution(sql, projectId, query.baseline)))
        fail("VALIDATION_ERROR", `Cannot read "baseline": there is no execution "${query.baseline}" in this project`);
      const asked =
        query.branch === undefined
          ? query.baseline
          : ((await selectBaseline(sql, projectId, executionId, query.branch)) ??
            fail(
              "VALIDATION_ERROR",
              `Cannot read "branch": no execution of "${query.branch}" was over before this one`,
            ));
      const rows = await selectComparison(sql, projectId, executionId, asked);
      return { executionId, baselineId: asked === undefined ? mine.baselineId : asked, ...toComparison(rows) };
    },
  ),

  route(
    "GET /projects/:projectId/executions/:executionId/failures",
    { summary: "All failures of an execution, those of one cause together, new ones first", answer: executionFailures },
    async ({ sql, params }) => {
      const { projectId, executionId } = params;
      const mine = (await selectExecution(sql, projectId, executionId)) ?? absent();
      const [rows, counts] = await Promise.all([
        selectExecutionFailures(sql, projectId, executionId, MAX_FAILURES),
        countFailures(sql, projectId, executionId),
      ]);
      return {
        executionId,
        baselineId: mine.baselineId,
        failed: sum(mine.tasks, "failed"),
        counts: toCounts(counts),
        causes: toCauses(rows),
      };
    },
  ),

  route(
    "DELETE /projects/:projectId/executions/:executionId",
    { summary: "Delete an execution with all its results", answer: null },
    async ({ params, transact }) => {
      const found = await transact((sql) => deleteExecution(sql, params.projectId, params.executionId));
      return found ? noContent() : absent();
    },
  ),
];
