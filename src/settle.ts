/** What an event makes of an execution and of the tasks that have not reported. */

import { type ExecutionEvent, executionStatus, hasEnded } from "./rules/execution.ts";
import type { Sql } from "./store/connect.ts";
import {
  type ExecutionChange,
  type LockedExecution,
  notifyExecutionEnded,
  selectTasks,
  updateExecution,
  updateOpenTasks,
} from "./store/executions.ts";

/** In a transaction that holds the execution's lock. */
export async function settleExecution(
  sql: Sql,
  projectId: string,
  execution: LockedExecution,
  event: ExecutionEvent,
  change: Omit<ExecutionChange, "status">,
): Promise<void> {
  const tasks = await selectTasks(sql, projectId, execution.id);
  const status = executionStatus(execution.status, tasks, event);
  const silent = tasks.some((task) => !hasEnded(task.status));
  if (hasEnded(status) && silent)
    await updateOpenTasks(sql, projectId, execution.id, status === "cancelled" ? "cancelled" : "timed_out");
  await updateExecution(sql, projectId, execution.id, { ...change, status });
  if (hasEnded(status) && !hasEnded(execution.status)) await notifyExecutionEnded(sql, execution.id);
}
