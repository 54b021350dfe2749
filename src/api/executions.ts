/** Executions: created, listed, awaited, ended, deleted. */

import * as v from "valibot";
import { absent, fail } from "../http/problem.ts";
import { toPage } from "../request/page.ts";
import { json, noContent } from "../request/reply.ts";
import { type Context, route, type Route } from "../request/route.ts";
import { advanceExecution, findOrInsertExecution, rerunExecution } from "../operations/executions.ts";
import { executionVerdict, hasEnded } from "../rules/execution.ts";
import {
  type Execution,
  execution,
  executionFilter,
  executionPage,
  newExecution,
  rerunRequest,
} from "../schema/executions.ts";
import { comparison, comparisonQuery } from "../schema/comparisons.ts";
import { integerText } from "../schema/fields.ts";
import { selectBaseline, selectComparison } from "../store/comparisons.ts";
import type { Sql } from "../store/connect.ts";
import {
  deleteExecution,
  type ExecutionRow,
  insertDeclaredTasks,
  lockExecution,
  selectExecution,
  selectExecutions,
} from "../store/executions.ts";
import { selectProject } from "../store/projects.ts";
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
    tasks: row.tasks.map(({ flaky: _, verdict: __, declared: ___, ...task }) => ({
      ...task,
      total: task.passed + task.failed + task.skipped,
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

async function find(sql: Sql, { params, publicUrl }: Pick<One, "params" | "publicUrl">): Promise<Execution> {
  const row = (await selectExecution(sql, params.projectId, params.executionId)) ?? absent();
  return toExecution(publicUrl, params.projectId, row);
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
      const { params, body, conclude, publicUrl } = context;
      const { key, tasks, timeoutMinutes, mode: _, ...origin } = body;
      return await conclude(async (sql) => {
        const { execution, isNew } = await findOrInsertExecution(sql, params.projectId, {
          ...origin,
          key: key ?? null,
          status: "queued",
          trigger: "api",
          timeoutMinutes: timeoutMinutes ?? null,
          now: new Date(),
        });
        if (isNew && tasks.length > 0) await insertDeclaredTasks(sql, params.projectId, execution.id, tasks);
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
      const { fast, query, params, services } = context;
      const until = performance.now() + (query.wait ?? 0) * 1000;
      for (;;) {
        // Listening begins before looking: an end between the two would be missed otherwise.
        const left = until - performance.now();
        const ended = left > 0 ? services.executionEnd(params.executionId, left) : undefined;
        const found = await find(fast, context);
        if (!ended || hasEnded(found.status)) return found;
        if (!(await ended)) return await find(fast, context);
      }
    },
  ),

  route(
    "POST /projects/:projectId/executions/:executionId/complete",
    { summary: "Say that no further report will come", answer: execution },
    async (context) => {
      const { params, conclude } = context;
      return await conclude(async (sql) => {
        const locked = (await lockExecution(sql, params.projectId, params.executionId)) ?? absent();
        if (locked.status === "cancelled") fail("VALIDATION_ERROR", "Cannot complete the execution: it was cancelled");
        if (!hasEnded(locked.status))
          await advanceExecution(sql, params.projectId, locked, "completed", { arrived: false, now: new Date() });
        return await find(sql, context);
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
      const [project, mine] = await Promise.all([
        selectProject(sql, projectId),
        selectExecution(sql, projectId, executionId),
      ]);
      if (!project || !mine) absent();
      if (query.baseline !== undefined && !(await selectExecution(sql, projectId, query.baseline)))
        fail("VALIDATION_ERROR", `Cannot read "baseline": there is no execution "${query.baseline}" in this project`);
      const baselineId =
        query.baseline ?? (await selectBaseline(sql, projectId, executionId, query.branch ?? project.defaultBranch));
      const changes = await selectComparison(sql, projectId, executionId, baselineId);
      return { executionId, baselineId: baselineId ?? null, ...changes };
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
