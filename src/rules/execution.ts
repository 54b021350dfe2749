/** When an execution ends, and how. */

import type { ExecutionStatus, TaskStatus } from "../schema/executions.ts";
import type { Verdict } from "../schema/fields.ts";

/** `attempt` 0: nothing of it has come. */
export type TaskState = { status: TaskStatus; declared: boolean; verdict: Verdict | null; attempt: number };

const isOpen = (status: TaskStatus) => status === "queued" || status === "running";
export const hasEnded = (status: TaskStatus) => !isOpen(status);

/**
 * Decides how a task ends that is open when its execution ends: some of its shards have come, or nothing has. A rerun is an
 * offer to run a task again: where nobody took it, nothing is known that was not known before.
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

/** By results alone: a task that never reported weighs more than one that failed, and nobody's silence is green. */
export function byResults(tasks: readonly TaskState[]): "passed" | "failed" | "timed_out" {
  const silent = ({ status, attempt }: TaskState) => status === "timed_out" || (isOpen(status) && attempt === 0);
  if (tasks.length === 0 || tasks.some(silent)) return "timed_out";
  const isRed = ({ status, verdict }: TaskState) => verdict !== "passed" || isOpen(status) || status === "incomplete";
  return tasks.some(isRed) ? "failed" : "passed";
}

/** Decides how a rerun ends: only the tasks that somebody ran again count, and without any the rerun is cancelled. */
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
