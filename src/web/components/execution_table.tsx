/** A table of executions. */

import { AgoCell, MarkCell, CardTable } from "./list.tsx";
import type { Html } from "../../http/html.ts";
import type { TaskStatus } from "../../schema/executions.ts";
import type { ExecutionSummary } from "../../store/execution_list.ts";
import { executionOutcome } from "../../wording/execution.ts";
import { executionNumber, lineName } from "../../wording/execution_name.ts";
import { toDuration } from "../../wording/numbers.ts";
import { executionPath } from "../site/paths.ts";
import { Tag, wordOf } from "./status.tsx";
import { Commit, CommitText } from "./text.tsx";

const OPEN = ["queued", "running"];

/** Returns the outcome of an execution, with that of its reruns. */
export const outcomeText = (execution: ExecutionSummary): string =>
  `${executionOutcome(execution)}${execution.repeatedStatus === null ? "" : `, ${wordOf(execution.repeatedStatus)} when rerun`}`;

/** Maximum number of dots. */
const MAX_DOTS = 16;

/** Shows a dot for each task, failed ones first. Shows nothing for a single task, whose status is that of the execution. */
function TaskDots({ statuses }: { statuses: readonly TaskStatus[] }): Html | null {
  if (statuses.length < 2) return null;
  const byStatus = Map.groupBy(statuses, (status) => status);
  const isRed = (status: string) => ["failed", "timed_out", "incomplete"].includes(status);
  const order = [...byStatus.keys()].toSorted((a, b) => Number(isRed(b)) - Number(isRed(a)));
  const label = order.map((status) => `${byStatus.get(status)!.length} ${wordOf(status)}`).join(", ");
  const drawn = order.flatMap((status) => byStatus.get(status)!).slice(0, MAX_DOTS);
  return (
    <span class="task-dots" role="img" aria-label={`Tasks: ${label}`} title={`Tasks: ${label}`}>
      {drawn.map((status) => (
        <i class={isRed(status) ? "failed" : status} />
      ))}
    </span>
  );
}

type RowProperties = { projectId: string; execution: ExecutionSummary; now: Date };

const ExecutionRow = ({ projectId, execution, now }: RowProperties): Html => (
  <tr>
    <MarkCell status={execution.status} />
    <td class="long">
      <a href={executionPath(projectId, execution.id)}>
        <b>{executionNumber(execution)}</b>
      </a>{" "}
      {lineName(execution) === null ? null : <code>{lineName(execution)}</code>}{" "}
      {execution.commit === null ? null : (
        <span class="soft wide">
          <Commit hash={execution.commit} />
        </span>
      )}{" "}
      <CommitText of={execution} /> {execution.isRerun ? <Tag>rerun</Tag> : null}{" "}
      {execution.sample ? <Tag>sample</Tag> : null}{" "}
      {execution.probe ? <Tag>probe</Tag> : execution.untrusted ? <Tag>untrusted (fork)</Tag> : null}
    </td>
    <td class={OPEN.includes(execution.status) ? "running" : undefined}>
      {outcomeText(execution)} <TaskDots statuses={execution.taskStatuses} />
    </td>
    <td class="number wide">{execution.durationMs > 0 ? toDuration(execution.durationMs) : "–"}</td>
    <AgoCell at={execution.completedAt ?? execution.createdAt} now={now} />
  </tr>
);

type TableProperties = { projectId: string; executions: readonly ExecutionSummary[]; now: Date; caption: string };

/** Screen readers announce the table by its caption. */
export const ExecutionTable = ({ projectId, executions, now, caption }: TableProperties): Html => (
  <CardTable
    caption={caption}
    columns={[["Status", "hidden"], "Execution", "Outcome", ["Duration", "number", "wide"], ["When", "number"]]}
    kind="builds"
  >
    {executions.map((execution) => (
      <ExecutionRow projectId={projectId} execution={execution} now={now} />
    ))}
  </CardTable>
);
