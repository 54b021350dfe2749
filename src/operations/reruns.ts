/** Asks for the tasks of an ended execution again: a new execution, linked to it. */

import { hasEnded } from "../rules/execution.ts";
import type { Tx } from "../store/connect.ts";
import { insertDeclaredTasks, insertExecution, type LockedExecution, selectTasks } from "../store/executions.ts";

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
