/** Executions: found or created for an upload, advanced by what happens, announced at their end, asked for again. */

import { type ExecutionEvent, nextStatus, hasEnded } from "../rules/execution.ts";
import type { EventData, ExecutionData, NewEvent } from "../schema/events.ts";
import { refuse, refuseAbsent } from "../schema/refusal.ts";
import type { UploadParameters } from "../schema/test_runs.ts";
import type { Tx } from "../store/connect.ts";
import { insertEvents, updateRedTasks } from "../store/events.ts";
import {
  type ExecutionChange,
  type ExecutionOrigin,
  insertDeclaredTasks,
  insertExecution,
  type LockedExecution,
  lockExecution,
  lockExecutionByKey,
  notifyExecutionEnded,
  selectTasks,
  type TaskRow,
  updateExecution,
  updateOpenTasks,
} from "../store/executions.ts";

export type ExecutionAdvance = Omit<ExecutionChange, "status"> & {
  /** What else there is to announce. */
  events?: readonly NewEvent[];
  /** Nothing is announced: sample data tells of nothing that has happened. */
  silent?: boolean;
};

/** In a transaction that holds the execution's lock. */
export async function advanceExecution(
  sql: Tx,
  projectId: string,
  execution: LockedExecution,
  event: ExecutionEvent,
  { events = [], silent = false, ...change }: ExecutionAdvance,
): Promise<void> {
  const tasks = await selectTasks(sql, projectId, execution.id);
  const status = nextStatus(execution.status, tasks, event);
  const silentTasks = tasks.filter((task) => !hasEnded(task.status));
  if (hasEnded(status) && silentTasks.length > 0) {
    const outcome = status === "cancelled" ? "cancelled" : "timed_out";
    await updateOpenTasks(sql, projectId, execution.id, outcome);
    for (const task of silentTasks) task.status = outcome;
  }
  await updateExecution(sql, projectId, execution.id, { ...change, status });
  const ends = hasEnded(status) && !hasEnded(execution.status);
  if (ends) await notifyExecutionEnded(sql, execution.id);
  if (silent) return;
  const ended = ends && status !== "cancelled";
  const origin = toOrigin({ ...execution, status }, change);
  const missed = silentTasks.filter(({ declared }) => declared);
  const announced = ended ? await announceEnd(sql, projectId, execution, origin, tasks, missed) : [];
  await insertEvents(sql, projectId, [...events, ...announced]);
}

/** Where an execution comes from, with what a report has just added. */
export function toOrigin(
  execution: LockedExecution,
  change: Partial<Omit<ExecutionChange, "status">> = {},
): ExecutionData {
  const { id, key, status } = execution;
  return {
    id,
    key,
    status,
    branch: execution.branch ?? change.branch ?? null,
    commit: execution.commit ?? change.commit ?? null,
    pullRequest: execution.pullRequest ?? change.pullRequest ?? null,
    buildUrl: execution.buildUrl ?? change.buildUrl ?? null,
    environment: execution.environment ?? change.environment ?? null,
  };
}

/** An execution may have hundreds of tasks; who is told of it wants to read the worst ones. */
const MAX_TASKS = 20;
const sum = (tasks: readonly TaskRow[], name: "passed" | "failed" | "skipped" | "flaky") =>
  tasks.reduce((total, task) => total + task[name], 0);

const isRed = ({ verdict, status }: TaskRow) => verdict === "failed" || status === "timed_out";

async function announceEnd(
  sql: Tx,
  projectId: string,
  { depth, trigger, defaultBranch }: LockedExecution,
  origin: ExecutionData,
  tasks: readonly TaskRow[],
  missed: readonly TaskRow[],
): Promise<NewEvent[]> {
  const failed = origin.status !== "passed";
  const states = tasks.map((task) => ({ slug: task.slug, failed: isRed(task) }));
  const wasRed = await updateRedTasks(
    sql,
    projectId,
    origin.branch ?? defaultBranch,
    states.length === 0 ? [{ slug: "", failed }] : states,
  );
  const [passed, fails, skipped] = [sum(tasks, "passed"), sum(tasks, "failed"), sum(tasks, "skipped")];
  const worstFirst = tasks.toSorted((a, b) => Number(isRed(b)) - Number(isRed(a)));
  const execution: EventData["execution"] = {
    ...origin,
    passed,
    failed: fails,
    skipped,
    total: passed + fails + skipped,
    flaky: sum(tasks, "flaky"),
    taskCount: tasks.length,
    tasks: worstFirst.slice(0, MAX_TASKS).map(({ slug, status, passed, failed, skipped, verdict }) => {
      return { slug, status, passed, failed, skipped, verdict };
    }),
  };
  const toEvent = (type: NewEvent["type"], more: EventData = {}): NewEvent => ({
    type,
    depth,
    data: { execution, ...more },
  });
  return [
    toEvent("execution.completed"),
    ...(failed ? [toEvent("execution.failed")] : wasRed ? [toEvent("execution.recovered")] : []),
    // Only what a schedule has asked for was expected.
    ...(trigger === "schedule" ? missed.map(({ slug }) => toEvent("task.missed", { taskSlug: slug })) : []),
  ];
}

/** In a transaction: the execution that an upload belongs to, locked. */
export async function findOrCreateExecution(
  sql: Tx,
  projectId: string,
  { execution_id, execution_key }: UploadParameters,
  origin: ExecutionOrigin,
  now: Date,
): Promise<LockedExecution> {
  if (execution_id !== undefined) {
    const found = (await lockExecution(sql, projectId, execution_id)) ?? refuseAbsent();
    if (execution_key !== undefined && found.key !== execution_key)
      refuse(`Cannot read "execution_key": the execution of "execution_id" has another key`);
    return found;
  }
  const fresh = {
    ...origin,
    key: execution_key ?? null,
    status: "running" as const,
    trigger: "upload" as const,
    timeoutMinutes: null,
    now,
  };
  const find = () => (execution_key === undefined ? undefined : lockExecutionByKey(sql, projectId, execution_key));
  return (
    (await find()) ??
    (await insertExecution(sql, projectId, fresh)) ??
    // Somebody else has just created it.
    (await find()) ??
    refuseAbsent()
  );
}

export type Rerun = { failedOnly: boolean; trigger: "rerun" | "automation"; depth: number; now: Date };

/** In a transaction that holds the execution's lock. Answers the new execution, or why there is none. */
export async function rerunExecution(
  sql: Tx,
  projectId: string,
  execution: LockedExecution,
  { failedOnly, trigger, depth, now }: Rerun,
): Promise<{ id: string } | { reason: string }> {
  if (!hasEnded(execution.status)) return { reason: `it has not ended: it is "${execution.status}"` };
  const tasks = (await selectTasks(sql, projectId, execution.id)).filter(
    ({ verdict, status }) => !failedOnly || verdict !== "passed" || status === "timed_out",
  );
  if (tasks.length === 0) return { reason: failedOnly ? "none of its tasks failed" : "it has no tasks" };
  const { branch, commit, pullRequest, buildUrl, environment, mode } = execution;
  const inserted = await insertExecution(sql, projectId, {
    ...{ branch, commit, pullRequest, buildUrl, environment },
    key: null,
    status: "queued",
    mode,
    trigger,
    timeoutMinutes: null,
    depth,
    rerunOf: execution,
    now,
  });
  const slugs = tasks.map(({ slug }) => slug);
  await insertDeclaredTasks(sql, projectId, inserted!.id, slugs);
  return { id: inserted!.id };
}
