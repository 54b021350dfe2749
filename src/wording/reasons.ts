/** Says in one line why an execution or a task is red beside its failing tests. */

import { constants } from "node:os";
import type { Flaws, TaskEnd } from "../rules/red_reason.ts";
import { missingShardsOf, toShardList } from "../rules/shards.ts";
import type { ExecutionStatus, TaskStatus } from "../schema/executions.ts";
import { notRerunWords } from "./absent_tests.ts";
import { counted } from "./numbers.ts";
import { singleLine } from "./single_line.ts";

/** The stored reason of a task that is open when its execution ends, unless a better one is known. */
export const END_REASONS: Record<"arrived" | "completed" | "cancelled" | "expired", string> = {
  arrived: "The execution has ended",
  completed: "The execution was completed without this task",
  cancelled: "The execution was cancelled",
  expired: "No report arrived in time",
};
const KNOWN_REASONS = new Set(Object.values(END_REASONS));

/** The stored reason of a task whose time is over. */
export const timeLimitReason = (minutes: number): string => `No report arrived within ${counted(minutes, "minute")}`;
const TIME_LIMIT = /^No report arrived (within (\d.*))$/;

const MAX_TASKS = 3;
const MAX_SLUG = 80;
const MAX_REASON = 300;

/** The exit code of timeout(1) when the time was over. */
const TIMEOUT_CODE = 124;
/** Shells report a command that signal n has ended as 128 + n. */
const FIRST_SIGNAL_CODE = 128;

/** Returns "code 3", or what shells mean by it: "code 137 (SIGKILL)", "code 124 (time limit)". */
export function exitWords(exitCode: number): string {
  const signal = Object.entries(constants.signals).find(([, number]) => FIRST_SIGNAL_CODE + number === exitCode)?.[0];
  const meaning = exitCode === TIMEOUT_CODE ? "time limit" : signal;
  return `code ${exitCode}${meaning === undefined ? "" : ` (${meaning})`}`;
}

/** The message of a failure that represents an exit code, if there is no other message. */
export const exitMessage = (exitCode: number): string =>
  `The test runner exited with ${exitWords(exitCode)} although no test case failed`;

/** Messages that say all there is to say, also without an exit code: the runner and `assay upload` write them. */
const COMPLETE_MESSAGE = /^(?:No report|Timed out|The command)\b/;

/** Returns "test runner exited with code 3 (Cannot read the report)" or "timed out after 10 s". */
function whatFailed({ exitCode, says }: Flaws): string {
  const hasCode = exitCode !== null && exitCode !== 0;
  if (says !== null && !hasCode && COMPLETE_MESSAGE.test(says))
    return clip(`${says[0]!.toLowerCase()}${says.slice(1)}`, MAX_REASON);
  const isKnown = says === null || (hasCode && says.startsWith(exitMessage(exitCode)));
  const what = !hasCode ? "failed" : `exited with ${isKnown ? exitWords(exitCode) : `code ${exitCode}`}`;
  return `test runner ${what}${isKnown ? "" : ` (${clip(says, MAX_REASON)})`}`;
}

function whatEnded(task: Omit<TaskEnd, "slug">): string | null {
  const { status, attempt, shards, verdict, failed, flaws } = task;
  if (status === "timed_out" || (status === "cancelled" && attempt === 0)) return "did not report";
  if (status === "incomplete" || status === "cancelled") {
    const missing = missingShardsOf(task);
    if (missing.length > 0) return `${toShardList(missing)} of ${shards} missing`;
    return status === "incomplete" ? "did not finish" : null;
  }
  if (verdict !== "failed" || status !== "failed") return null;
  if (flaws?.brokeOff) return "report is incomplete";
  // Failed tests explain an exit code, and not what has ended the command before it could exit.
  const endedEarly = flaws !== null && flaws.says !== null && COMPLETE_MESSAGE.test(flaws.says);
  if (flaws && flaws.standIns > 0 && (flaws.standIns >= failed || endedEarly)) return whatFailed(flaws);
  if (flaws && flaws.notRerun > 0) return notRerunWords(flaws.notRerun);
  return failed === 0 ? "failed without a failing test" : null;
}

/** Returns "shard 2 of 3 missing" or "did not report (The runner r1 was lost)"; null if failing tests explain it, or it is not red. */
export function taskReason(task: Omit<TaskEnd, "slug">): string | null {
  const ended = whatEnded(task);
  if (ended === null || task.reason === null || KNOWN_REASONS.has(task.reason)) return ended;
  const limit = TIME_LIMIT.exec(task.reason);
  if (limit) return task.status === "timed_out" ? `${ended} ${limit[1]}` : `${ended} after ${limit[2]}`;
  return `${ended} (${clip(task.reason, MAX_REASON)})`;
}

const toStart = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
/** Limits a slug or a message of a runner to one line of `max` characters. */
function clip(text: string, max: number): string {
  const start = singleLine(text.slice(0, max).toWellFormed());
  return text.length > max ? `${start}…` : start;
}

/** Returns the line of a single task: "Shard 2 of 3 missing". */
export function taskLine(task: Omit<TaskEnd, "slug">): string | null {
  const reason = taskReason(task);
  return reason === null ? null : toStart(reason);
}

/** Returns "Incomplete: e2e: shard 2 of 3 missing"; null if failing tests explain everything, or the execution is not red. */
export function executionReason(status: ExecutionStatus, tasks: readonly TaskEnd[]): string | null {
  if (status !== "failed" && status !== "timed_out") return null;
  if (tasks.length === 0) return status === "timed_out" ? "Timed out: no reports" : "Failed without results";
  const named = tasks.flatMap((task) => {
    const reason = taskReason(task);
    return reason === null ? [] : [`${clip(task.slug, MAX_SLUG)}: ${reason}`];
  });
  if (named.length === 0) return null;
  const is = (wanted: TaskStatus) => tasks.some((task) => task.status === wanted);
  const kind = is("timed_out") ? "Timed out" : is("incomplete") ? "Incomplete" : "Failed";
  const more = named.length - MAX_TASKS;
  return `${kind}: ${named.slice(0, MAX_TASKS).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
