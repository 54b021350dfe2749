/** A table of executions. */

import { AgoCell, MarkCell, CardTable } from "./list.tsx";
import type { Html } from "../../http/html.ts";
import type { TaskStatus } from "../../schema/executions.ts";
import type { ExecutionSummary } from "../../store/execution_list.ts";
import { executionOutcome } from "../../wording/execution.ts";
import { executionNumber, lineName } from "../../wording/execution_name.ts";
import { toDuration } from "../../wording/numbers.ts";
import { executionPath } from "../site/paths.ts";
import { Mark, Tag, wordOf } from "./status.tsx";
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

/** Links to the executions of one commit, the newest right; in words for screen readers. */
function OfCommit({ projectId, group }: { projectId: string; group: readonly ExecutionSummary[] }): Html | null {
  if (group.length < 2) return null;
  return (
    <div class="cells">
      {group.toReversed().map((execution) => {
        const status = execution.repeatedStatus ?? execution.status;
        const label = `${executionNumber(execution)}: ${wordOf(status)}, ${outcomeText(execution)}`;
        return (
          <a class={`cell ${status}`} href={executionPath(projectId, execution.id)} title={label} aria-label={label}>
            <Mark status={status} word={false} />
          </a>
        );
      })}
    </div>
  );
}

/** Returns "3 of these 6 executions did not pass; the newest: 90 passed", or the outcome of the newest one if they are alike. */
function outcomeOfGroup(group: readonly ExecutionSummary[]): string {
  const [newest] = group;
  const statuses = group.map(({ repeatedStatus, status }) => repeatedStatus ?? status);
  const ended = statuses.filter((status) => !OPEN.includes(status));
  const passed = ended.filter((status) => status === "passed").length;
  if (passed === 0 || passed === ended.length) return outcomeText(newest!);
  const counted = ended.length === group.length ? `these ${ended.length} executions` : `the ${ended.length} that ended`;
  return `${ended.length - passed} of ${counted} did not pass; the newest: ${outcomeText(newest!)}`;
}

type RowProperties = { projectId: string; group: readonly ExecutionSummary[]; now: Date };

function ExecutionRow({ projectId, group, now }: RowProperties): Html {
  const execution = group[0]!;
  return (
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
        {outcomeOfGroup(group)} <TaskDots statuses={execution.taskStatuses} />
        <OfCommit projectId={projectId} group={group} />
      </td>
      <td class="number wide">{execution.durationMs > 0 ? toDuration(execution.durationMs) : "–"}</td>
      <AgoCell at={execution.completedAt ?? execution.createdAt} now={now} />
    </tr>
  );
}

/** Groups executions of one commit and one branch. A fork's execution has a row of its own, as has one without a commit. */
const groupByCommit = (executions: readonly ExecutionSummary[]): ExecutionSummary[][] => [
  ...Map.groupBy(executions, ({ id, commit, branch, pullRequest, untrusted }) =>
    commit === null || untrusted ? id : JSON.stringify([commit.toLowerCase(), branch, pullRequest]),
  ).values(),
];

/** Maximum number of rows by commit. */
const MAX_COMMITS = 10;

type TableProperties = {
  projectId: string;
  executions: readonly ExecutionSummary[];
  now: Date;
  /** Screen readers announce the table by its caption. */
  caption: string;
  /** Whether the executions of a commit share a row. */
  byCommit?: boolean;
};

export const ExecutionTable = ({ projectId, executions, now, caption, byCommit = false }: TableProperties): Html => (
  <CardTable
    caption={caption}
    columns={[["Status", "hidden"], "Execution", "Outcome", ["Duration", "number", "wide"], ["When", "number"]]}
    kind="builds"
  >
    {(byCommit ? groupByCommit(executions).slice(0, MAX_COMMITS) : executions.map((execution) => [execution])).map(
      (group) => (
        <ExecutionRow projectId={projectId} group={group} now={now} />
      ),
    )}
  </CardTable>
);
