/** Plans the tasks of executions, completes, cancels, supersedes and removes them. */

import { hasEnded } from "../../rules/execution.ts";
import type { QueuedTask } from "../../schema/planned_tasks.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import type { Tx } from "../../database/connect.ts";
import { selectHasEnvironment } from "../../store/environments.ts";
import { insertDeclaredTasks } from "../../store/execution_tasks.ts";
import { deleteExecution, type ExecutionOrigin, type LockedExecution, lockExecution } from "../../store/executions.ts";
import { insertLeases, lockOpenLeases, selectSupersededIds } from "../../store/leases.ts";
import { insertNewTestChecks } from "../../store/new_tests.ts";
import { notifyExecutionEnded, notifyLeases } from "../../database/signals.ts";
import { advanceExecution, updateRepeated } from "./advance.ts";

/** Refuses values that start with "-", for an execution of mode run: a runner passes them to git, which would take them for options. */
export function requireNoOption({ branch, commit, pullRequest }: ExecutionOrigin): void {
  for (const [name, value] of Object.entries({ branch, commit, pullRequest }))
    if (value?.startsWith("-"))
      refuse(`Cannot read "${name}": expected no "-" at the beginning, got ${JSON.stringify(value.slice(0, 60))}`);
}

/** Adds the tasks of a locked execution that was just created. They wait for their reports or, in mode run, for runners. */
export async function planTasks(
  sql: Tx,
  projectId: string,
  execution: Pick<LockedExecution, "id" | "mode" | "environment" | "branch" | "commit" | "pullRequest" | "untrusted">,
  tasks: readonly QueuedTask[],
  now: Date,
): Promise<void> {
  if (tasks.length === 0) return;
  const { id, mode, environment } = execution;
  await insertDeclaredTasks(sql, projectId, execution, tasks);
  if (tasks.some(({ newTests }) => newTests)) await insertNewTestChecks(sql, projectId, id, tasks);
  if (mode !== "run") return;
  requireNoOption(execution);
  // Without the variables of the environment, the tests would fail for reasons that have nothing to do with the code.
  if (environment !== null && !(await selectHasEnvironment(sql, projectId, environment)))
    refuse(
      `Cannot read "environment": the team has no environment "${environment}", whose variables the tasks would get`,
    );
  await insertLeases(sql, projectId, id, tasks, now);
  await notifyLeases(sql, projectId);
}

/** Completes a running execution with the reports that have arrived, in a transaction. Refuses a cancelled one. */
export async function completeExecution(sql: Tx, projectId: string, id: string, now: Date): Promise<LockedExecution> {
  const locked = (await lockExecution(sql, projectId, id)) ?? refuseAbsent();
  if (locked.status === "cancelled") refuse("Cannot complete the execution: it was cancelled");
  if (!hasEnded(locked.status)) await advanceExecution(sql, projectId, locked, "completed", { arrived: false, now });
  return locked;
}

/** Cancels an execution, in a transaction. Refuses one that has ended in another way. */
export async function cancelExecution(sql: Tx, projectId: string, id: string, now: Date): Promise<LockedExecution> {
  const locked = (await lockExecution(sql, projectId, id)) ?? refuseAbsent();
  if (hasEnded(locked.status) && locked.status !== "cancelled")
    refuse(`Cannot cancel the execution: it has ended as "${locked.status}"`);
  await advanceExecution(sql, projectId, locked, "cancelled", { arrived: false, now });
  return locked;
}

/** Cancels older running executions of the branch, in the transaction that created this execution of mode run. */
export async function supersede(
  sql: Tx,
  projectId: string,
  {
    id,
    key,
    branch,
    queueRef,
    pullRequest,
  }: Pick<LockedExecution, "id" | "key" | "branch" | "queueRef" | "pullRequest">,
  now: Date,
): Promise<void> {
  if (branch === null && queueRef === null) refuse(`Cannot supersede other executions: the execution has no "branch"`);
  const reason = `Superseded by ${key === null ? "a newer execution" : `the execution ${JSON.stringify(key)}`} of the ${branch === null ? "pull request" : "branch"}`;
  for (const older of await selectSupersededIds(sql, projectId, { id, branch, pullRequest })) {
    const locked = await lockExecution(sql, projectId, older);
    if (locked && !hasEnded(locked.status))
      await advanceExecution(sql, projectId, locked, "cancelled", { arrived: false, now, reason });
  }
}

/** Deletes an execution with all its data, in a transaction, and notifies runners of its tasks. Returns false if it does not exist. */
export async function removeExecution(sql: Tx, projectId: string, id: string): Promise<LockedExecution | false> {
  const locked = await lockExecution(sql, projectId, id);
  if (!locked) return false;
  if (locked.mode === "run") {
    await lockOpenLeases(sql, projectId, id);
    await notifyLeases(sql, projectId);
  }
  await notifyExecutionEnded(sql, id);
  const isDeleted = await deleteExecution(sql, projectId, id);
  if (locked.buildId !== null) await updateRepeated(sql, projectId, locked.buildId);
  return isDeleted && locked;
}
