/** The tasks of an execution. */

import type { Html, Path, Piece } from "../../../http/html.ts";
import { hasEnded } from "../../../rules/execution.ts";
import { missingShardsOf, toShardList } from "../../../rules/shards.ts";
import type { ExecutionRow } from "../../../store/executions.ts";
import type { TaskRow } from "../../../store/execution_tasks.ts";
import type { ShardRow } from "../../../store/shards.ts";
import { counted, toCount, toDuration } from "../../../wording/numbers.ts";
import { reasonOfTask } from "../../../wording/missing_runner.ts";
import { taskLine } from "../../../wording/reasons.ts";
import { MarkCell, CardTable, TASK_COLUMNS } from "../../components/list.tsx";
import { Tag, wordOf, worstFirst } from "../../components/status.tsx";
import { Breakable } from "../../components/text.tsx";
import { executionPath, taskPath } from "../../site/paths.ts";

/** Maximum number of tasks that are listed at first. */
export const MAX_TASKS = 50;

type TaskTable = {
  /** The usual durations of tasks, in milliseconds by slug. */
  usual: ReadonlyMap<string, number>;
  shards: readonly ShardRow[];
  showsAll: boolean;
  now: Date;
};

export function taskTable(
  projectId: string,
  { id, mode, tasks }: ExecutionRow,
  { usual, shards, showsAll, now }: TaskTable,
): Piece[] {
  if (tasks.length === 0) return [];
  const sorted = worstFirst(tasks);
  const shown = showsAll ? sorted : sorted.slice(0, MAX_TASKS);
  const hasRunners = mode === "run";
  const byTask = Map.groupBy(shards, ({ taskSlug }) => taskSlug);
  return [
    <>
      <h2>
        Tasks <small>{counted(tasks.length, "task")}</small>
      </h2>
      <CardTable
        caption="Tasks of this execution, failed tasks first"
        columns={[...TASK_COLUMNS, hasRunners && ["Runner", "wide"], hasRunners && ["Log", "wide"]]}
      >
        {shown.map((task) =>
          taskRow(projectId, id, task, {
            ...{ hasRunners, usual: task.slower?.usualMs ?? usual.get(task.slug), now },
            shards: byTask.get(task.slug) ?? [],
          }),
        )}
      </CardTable>
    </>,
    shown.length < tasks.length ? (
      <p class="pages">
        <a href={`${executionPath(projectId, id)}?tasks=all`}>All {tasks.length} tasks</a>
      </p>
    ) : null,
  ];
}

const shardsWord = (task: TaskRow): string | null => {
  if (task.shards === 1) return null;
  return `${task.shards - missingShardsOf(task).length} of ${task.shards} shards`;
};

/** Explains why a task is missing or incomplete. Returns null if it is neither. */
function whyMissing(task: TaskRow): string | null {
  if (hasEnded(task.status)) return taskLine(task) ?? task.reason;
  const reason = reasonOfTask(task);
  if (reason !== null) return reason;
  const missing = missingShardsOf(task);
  return missing.length > 0 && task.attempt > 0 ? `Waiting for ${toShardList(missing)}` : null;
}

/** Differences of at least a fifth are shown. */
const isUsual = (ms: number, usual: number) => Math.abs(ms - usual) < usual / 5;

/** Returns the duration of a task in milliseconds; 0 if it is unknown. A runner measures a task whose report has no times. */
function spanOf({ status, startedAt, completedAt, durationMs, runner }: TaskRow, now: Date): number {
  const since = startedAt === null ? undefined : Date.parse(startedAt);
  if (since === undefined) return durationMs;
  if (status === "running") return now.getTime() - since;
  const isMeasured = durationMs === 0 && runner !== null && completedAt !== null;
  return isMeasured ? Date.parse(completedAt) - since : durationMs;
}

/** Maximum number of machines that are listed for a task. */
const MAX_HOSTS = 8;

/** Lists the machines of a task with their shards and failed tests, those with failures first. */
function Machines({ shards }: { shards: readonly ShardRow[] }): Html | null {
  const byHost = Map.groupBy(shards, ({ host }) => host);
  byHost.delete(null);
  const machines = [...byHost]
    .map(([host, rows]) => ({
      host: host!,
      numbers: rows.flatMap(({ shard }) => (shard === 0 ? [] : shard)),
      failed: rows.reduce((sum, { failed }) => sum + failed, 0),
    }))
    .toSorted((a, b) => b.failed - a.failed);
  if (machines.length === 0) return null;
  const more = machines.length - MAX_HOSTS;
  return (
    <span class="small soft dots">
      {machines.slice(0, MAX_HOSTS).map(({ host, numbers, failed }) => (
        <span>
          <Breakable text={host} />
          {numbers.length === 0 ? "" : ` (${toShardList(numbers)})`}
          {failed > 0 && machines.length > 1 ? `: ${failed} failed` : ""}
        </span>
      ))}
      {more > 0 ? <span>{counted(more, "more machine")}</span> : null}
    </span>
  );
}

type RowContext = { hasRunners: boolean; usual: number | undefined; shards: readonly ShardRow[]; now: Date };

function taskRow(
  projectId: string,
  executionId: string,
  task: TaskRow,
  { hasRunners, usual, shards: uploads, now }: RowContext,
): Html {
  const path: Path = taskPath(projectId, executionId, task.slug);
  const shards = shardsWord(task);
  const why = whyMissing(task);
  const isRunning = task.status === "running" && task.startedAt !== null;
  const span = spanOf(task, now);
  return (
    <tr>
      <MarkCell status={task.status} />
      <td class="long">
        <a href={path}>
          <Breakable text={task.slug} />
        </a>{" "}
        {shards ? <Tag>{shards}</Tag> : null} {task.attempt > 1 ? <Tag>{`attempt ${task.attempt}`}</Tag> : null}{" "}
        {task.outage ? <Tag kind="failed">outage</Tag> : null}
        {task.slower ? <Tag>slower than usual</Tag> : null}
        {["queued", "running", "cancelled"].includes(task.status)
          ? [" ", <Tag kind={task.status}>{wordOf(task.status)}</Tag>]
          : null}
        {why ? <span class="small soft">{why}</span> : null}
        <Machines shards={uploads} />
      </td>
      <td class={task.passed === 0 ? "number soft" : "number"}>{toCount(task.passed)}</td>
      <td class="number">
        {task.failed > 0 ? (
          <a class="failed" href={`${path}?status=failed`}>
            {toCount(task.failed)}
          </a>
        ) : (
          <span class="soft">0</span>
        )}
      </td>
      <td class="number soft wide">{toCount(task.skipped)}</td>
      <td class={`number${isRunning ? " running" : ""}`}>
        {span > 0 ? toDuration(span) : "–"}
        {usual === undefined || (!isRunning && isUsual(span, usual)) ? null : (
          <span class="small soft wide">usually {toDuration(usual)}</span>
        )}
      </td>
      {hasRunners ? (
        <>
          <td class="soft wide">{task.runner ?? "–"}</td>
          <td class="wide">
            {task.runner === null ? (
              "–"
            ) : (
              <a href={`${path}/log`}>
                Log<span class="visually-hidden"> of {task.slug}</span>
              </a>
            )}
          </td>
        </>
      ) : null}
    </tr>
  );
}
