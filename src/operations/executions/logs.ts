/** Reads a task and the end of its log. */

import type { Sql } from "../../database/connect.ts";
import { joinLog } from "../../rules/log_parts.ts";
import { refuseAbsent } from "../../schema/refusal.ts";
import { selectExecution, type TimedExecutionRow } from "../../store/execution_list.ts";
import type { TaskRow } from "../../store/execution_tasks.ts";
import { countLogLines, type LogLease, selectLogLease, selectLogTail } from "../../store/lease_logs.ts";
import { selectRunId } from "../../store/test_runs.ts";

export type TaskAddress = { projectId: string; executionId: string; taskSlug: string };

export async function findTask(
  sql: Sql,
  { projectId, executionId, taskSlug }: TaskAddress,
): Promise<{ execution: TimedExecutionRow; task: TaskRow }> {
  const execution = (await selectExecution(sql, projectId, executionId)) ?? refuseAbsent();
  const task = execution.tasks.find(({ slug }) => slug === taskSlug) ?? refuseAbsent();
  return { execution, task };
}

/**
 * The end of a log. `offset` is the byte from which it was read; `cutLines` is 1 if the rest of a line at its beginning
 * was left out of `text`.
 */
export type LogEnd = { text: string; lease: LogLease; offset: number; cutLines: 0 | 1 };

/** By default the newest log of the first shard. */
export type WhichLog = { shard?: number | undefined; lease?: string | undefined };

/** Returns at most so many bytes from the end of a log, from the beginning of a line on; undefined: no runner has run the task. */
export async function readLog(sql: Sql, key: TaskAddress, which: WhichLog, bytes: number): Promise<LogEnd | undefined> {
  const { projectId, executionId, taskSlug } = key;
  const runId = await selectRunId(sql, projectId, executionId, taskSlug);
  const lease =
    runId === undefined
      ? undefined
      : await selectLogLease(sql, projectId, runId, { shard: which.shard, leaseId: which.lease });
  if (!lease && which.lease !== undefined) refuseAbsent();
  if (!lease) return undefined;
  const from = Math.max(0, lease.logBytes - bytes);
  const { text, offset } = joinLog(await selectLogTail(sql, projectId, lease, bytes), from);
  if (offset === 0) return { text, lease, offset, cutLines: 0 };
  // The text may begin within a line, or within a character.
  const end = text.indexOf("\n");
  return { text: text.slice(end + 1), lease, offset, cutLines: end === -1 ? 0 : 1 };
}

/** Returns the number of the first line of `log.text` in the whole log; undefined if the log was trimmed at its beginning. */
export async function numberOfFirstLine(sql: Sql, projectId: string, log: LogEnd): Promise<number | undefined> {
  if (log.offset === 0) return 1;
  const before = await countLogLines(sql, projectId, log.lease.id, log.offset);
  return before === undefined ? undefined : before + log.cutLines + 1;
}
