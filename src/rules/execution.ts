/** Decides when an execution ends, and how. */

import type { ExecutionStatus, TaskStatus } from "../schema/executions.ts";
import type { Verdict } from "../schema/fields.ts";

/** `attempt` 0: nothing of it has come. */
export type TaskState = { status: TaskStatus; declared: boolean; verdict: Verdict | null; attempt: number };

const isOpen = (status: TaskStatus) => status === "queued" || status === "running";
export const hasEnded = (status: TaskStatus) => !isOpen(status);

/**
 * Decides how a task ends that is open when its execution ends: some shards or none have reported. A rerun is an offer to run a task again:
 * if no one took it, the earlier result stays.
 */
export const endOfTask = ({ attempt }: { attempt: number }, status: ExecutionStatus, isRerun = false) =>
  status === "cancelled" ? "cancelled" : attempt > 0 ? "incomplete" : isRerun ? "cancelled" : "timed_out";

/** Decides how a task of mode run ends that no runner has or waits for any more, by how its last lease without a report ended. */
export const endWithoutLease = ({ attempt, leaseStatus }: { attempt: number; leaseStatus: string }): TaskStatus =>
  attempt > 0 || leaseStatus === "infrastructure"
    ? "incomplete"
    : leaseStatus === "lost" || leaseStatus === "timed_out"
      ? "timed_out"
      : "cancelled";

/** A task that ended with a part of its reports has failed. */
export const verdictAtEnd = (status: TaskStatus, verdict: Verdict | null): Verdict | null =>
  status === "incomplete" ? "failed" : verdict;

/** Decides by results alone: a task that never reported weighs more than one that failed, and a missing report is never green. */
export function byResults(tasks: readonly TaskState[]): "passed" | "failed" | "timed_out" {
  const silent = ({ status, attempt }: TaskState) => status === "timed_out" || (isOpen(status) && attempt === 0);
  if (tasks.length === 0 || tasks.some(silent)) return "timed_out";
  const isRed = ({ status, verdict }: TaskState) => verdict !== "passed" || isOpen(status) || status === "incomplete";
  return tasks.some(isRed) ? "failed" : "passed";
}

/** Decides how a rerun ends: only tasks that ran again count, and without any the rerun is cancelled. */
function byAnswers(tasks: readonly TaskState[]): ExecutionStatus {
  const answered = tasks.filter(({ status, attempt }) => status !== "cancelled" && !(isOpen(status) && attempt === 0));
  return answered.length === 0 ? "cancelled" : byResults(answered);
}

export type ExecutionEvent = "arrived" | "completed" | "cancelled" | "expired";

/**
 * The status after a report has arrived, `complete` was asked for, or the time was over.
 * - Ended executions stay ended: a late report changes the outcome, a cancelled one stays cancelled.
 * - Declared tasks end the execution when all of them have reported.
 * - A rerun that nobody answered is cancelled.
 */
export function nextStatus(
  current: ExecutionStatus,
  tasks: readonly TaskState[],
  event: ExecutionEvent,
  isRerun = false,
): ExecutionStatus {
  const decide = isRerun ? byAnswers : byResults;
  if (current === "cancelled" || event === "cancelled") return "cancelled";
  if (hasEnded(current) || event !== "arrived") return decide(tasks);
  const declared = tasks.filter((task) => task.declared);
  if (declared.length > 0 && tasks.every(({ status }) => !isOpen(status))) return decide(tasks);
  return "running";
}

/** Failed as soon as anything has; passed only at the end. */
export function executionVerdict(status: ExecutionStatus, tasks: readonly TaskState[]): Verdict | null {
  if (status === "failed" || status === "timed_out" || tasks.some(({ verdict }) => verdict === "failed"))
    return "failed";
  return status === "passed" ? "passed" : null;
}

type OpenTask = { slug: string; status: TaskStatus; startedAt: string | null };

/** How far an execution is, judged by the usual durations of its tasks. */
type Estimate = {
  /** From 0 to 1: of the usual durations if all are known, else of the tasks. */
  share: number;
  /** Null if the usual duration of an open task is not known. A task that takes longer than usual counts as nearly done. */
  remainingMs: number | null;
};

/**
 * Estimates progress. Waiting tasks are shared by as many tasks as run at once now. `usual` are durations in milliseconds by slug. Null
 * without tasks, and for an execution that has ended.
 */
export function progressOf(
  status: ExecutionStatus,
  tasks: readonly OpenTask[],
  usual: ReadonlyMap<string, number>,
  now: number,
): Estimate | null {
  if (hasEnded(status) || tasks.length === 0) return null;
  const open = tasks.filter((task) => !hasEnded(task.status));
  const share = (tasks.length - open.length) / tasks.length;
  if (open.length === 0 || tasks.some(({ slug }) => !usual.has(slug))) return { share, remainingMs: null };
  const leftOf = ({ slug, status, startedAt }: OpenTask): number => {
    const all = usual.get(slug)!;
    return status === "running" && startedAt !== null ? Math.max(0, all - (now - Date.parse(startedAt))) : all;
  };
  const left = open.map(leftOf);
  const total = tasks.reduce((sum, { slug }) => sum + usual.get(slug)!, 0);
  const sum = left.reduce((all, ms) => all + ms, 0);
  const atOnce = Math.max(1, open.filter(({ status }) => status === "running").length);
  return { share: total === 0 ? share : 1 - sum / total, remainingMs: Math.max(sum / atOnce, ...left) };
}

/** Adds up a count of all tasks of an execution. */
export const sumTasks = <Name extends string>(tasks: readonly Record<Name, number>[], name: Name): number =>
  tasks.reduce((total, task) => total + task[name], 0);
