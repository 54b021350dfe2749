/** Reruns: executions that repeat another one. They are part of the build that they repeat. */

import { planTasks } from "./executions.ts";
import { askEngine, lockEngine } from "../automation/dispatch.ts";
import { hasEnded } from "../../rules/execution.ts";
import type { QueuedTask } from "../../schema/planned_tasks.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import { selectTeamProjects } from "../../store/automations.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { insertExecution } from "../../store/new_executions.ts";
import { type LockedExecution, lockExecution } from "../../store/executions.ts";
import { selectTasks } from "../../store/execution_tasks.ts";
import { selectDispatch } from "../../store/deliveries.ts";
import { selectCasesToRepeat, selectPlannedTasks } from "../../store/leases.ts";
import { selectHasRunners } from "../../store/runners.ts";

export type RerunRequest = {
  failedOnly: boolean;
  trigger: "rerun" | "automation";
  depth: number;
  teamId: string;
  publicUrl: string;
  now: Date;
};

/**
 * In a transaction that holds the execution's lock. What an engine was asked to run, it is asked to run again. Answers the new
 * execution, or why there is none.
 */
export async function rerunExecution(
  sql: Tx,
  projectId: string,
  execution: LockedExecution,
  { failedOnly, trigger, depth, now, ...asking }: RerunRequest,
): Promise<{ id: string } | { reason: string }> {
  if (!hasEnded(execution.status)) return { reason: `it has not ended: it is "${execution.status}"` };
  if (execution.probe) return { reason: "it is a probe" };
  if (execution.untrusted) return { reason: "it is untrusted" };
  const tasks = (await selectTasks(sql, projectId, execution.id)).filter(
    ({ verdict, status }) => !failedOnly || verdict !== "passed" || status === "timed_out",
  );
  if (tasks.length === 0) return { reason: failedOnly ? "none of its tasks failed" : "it has no tasks" };
  const { branch, commit, pullRequest, baseBranch, queueRef, buildUrl, environment, mode, failFast } = execution;
  const inserted = await insertExecution(sql, projectId, {
    ...{ branch, commit, pullRequest, baseBranch, queueRef, buildUrl, environment },
    key: null,
    status: "queued",
    mode,
    trigger,
    timeoutMinutes: null,
    depth,
    failFast,
    rerunOf: { ...execution, failedOnly },
    now,
  });
  const slugs = tasks.map(({ slug }) => slug);
  const planned = await selectPlannedTasks(sql, projectId, execution.id, slugs);
  const again: QueuedTask[] = [];
  for (const task of planned) {
    // Which shard a test case failed in is not known: those that failed are run together.
    const isPart =
      failedOnly && task.shards > 1 && (await selectCasesToRepeat(sql, projectId, execution.id, task.slug));
    again.push(isPart ? { ...task, shards: 1 } : task);
  }
  await planTasks(sql, projectId, inserted, again, now);
  if (mode === "report") await dispatchAgain(sql, { ...asking, projectId, repeated: execution, rerun: inserted, now });
  return { id: inserted.id };
}

type Again = Pick<RerunRequest, "teamId" | "publicUrl" | "now"> & {
  projectId: string;
  repeated: LockedExecution;
  rerun: LockedExecution;
};

/** Where the engine is not there any more, the rerun waits for reports that somebody else sends. */
async function dispatchAgain(sql: Tx, { teamId, publicUrl, projectId, repeated, rerun, now }: Again): Promise<void> {
  const dispatch = await selectDispatch(sql, projectId, repeated.id);
  if (!dispatch || "problem" in (await lockEngine(sql, teamId, dispatch))) return;
  const [project] = await selectTeamProjects(sql, teamId, [projectId]);
  const { problem } = await askEngine(sql, { teamId, project: project!, execution: rerun }, dispatch, {
    publicUrl,
    now,
  });
  if (problem) refuse(`Cannot dispatch: ${problem}`);
}

/** In a transaction: asked for by somebody. Answers the id of the new execution; refuses one that goes on. */
export async function rerunEnded(
  sql: Tx,
  projectId: string,
  id: string,
  asked: Omit<RerunRequest, "trigger" | "depth">,
): Promise<string> {
  const locked = (await lockExecution(sql, projectId, id)) ?? refuseAbsent();
  const created = await rerunExecution(sql, projectId, locked, { ...asked, trigger: "rerun", depth: 0 });
  return "reason" in created ? refuse(`Cannot rerun the execution: ${created.reason}`) : created.id;
}

/**
 * Whether somebody would run the tasks of an execution again: runners that take them and were seen within the last hour, or
 * an engine that was asked to run them before.
 */
export const isAnswered = async (
  sql: Sql,
  projectId: string,
  { id, mode }: { id: string; mode: LockedExecution["mode"] },
): Promise<boolean> =>
  mode === "run"
    ? await selectHasRunners(sql, projectId, id)
    : (await selectDispatch(sql, projectId, id)) !== undefined;
