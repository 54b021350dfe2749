/** Says the outcome of a task in words. */

import type { BranchTask } from "../rules/branch_state.ts";
import type { TaskEnd } from "../rules/red_reason.ts";
import { toCount, counted, toDuration } from "./numbers.ts";
import { taskReason } from "./reasons.ts";

export type TaskFigures = TaskEnd & { passed: number; skipped: number; flaky: number; durationMs: number };

/** Returns the outcome of a task: "waiting", "1 failed, 4 passed in 8.3 s". */
export function taskHeadline(task: TaskFigures): string {
  const { passed, failed, skipped, flaky, status, attempt, durationMs } = task;
  if (attempt === 0)
    return status === "queued"
      ? "waiting"
      : status === "running"
        ? "runs"
        : status === "timed_out"
          ? taskReason(task)!
          : status.replaceAll("_", " ");
  const counts = [
    failed > 0 && `${toCount(failed)} failed`,
    `${toCount(passed)} passed`,
    skipped > 0 && `${toCount(skipped)} skipped`,
    flaky > 0 && `${toCount(flaky)} flaky`,
  ].filter(Boolean);
  const reason = taskReason(task);
  return `${reason === null ? "" : `${reason}; `}${counts.join(", ")}${durationMs > 0 ? ` in ${toDuration(durationMs)}` : ""}`;
}

const RED_WORDS: Record<BranchTask["status"], string> = {
  passed: "passed",
  failed: "failed",
  incomplete: "is incomplete",
  timed_out: "has not reported",
};

/** Returns "2 failures" or "is incomplete" for a red task of a branch. */
export const redTaskWords = ({ status, failed }: Pick<BranchTask, "status" | "failed">): string =>
  status === "failed" && failed > 0 ? counted(failed, "failure") : RED_WORDS[status];
