/** The line of facts below the headline of an execution, and the headline as markup. */

import type { Sql } from "../../../database/connect.ts";
import { type Piece, safeUrl } from "../../../http/html.ts";
import { hasEnded, sumTasks } from "../../../rules/execution.ts";
import { sourceLinks } from "../../../rules/source_links.ts";
import type { Blame } from "../../../schema/failures.ts";
import { selectCaseResults } from "../../../store/case_results.ts";
import type { ExecutionName, TimedExecutionRow } from "../../../store/execution_list.ts";
import type { ExecutionRow } from "../../../store/executions.ts";
import { selectRunId } from "../../../store/test_runs.ts";
import { flakyWords, type HeadlineWord } from "../../../wording/execution.ts";
import { toCount, toDuration } from "../../../wording/numbers.ts";
import { executionNumber, shortExecutionName } from "../../../wording/execution_name.ts";
import { Tag } from "../../components/status.tsx";
import { Ago, Commit, CommitText, External } from "../../components/text.tsx";
import { executionPath, taskPath, toAddress } from "../../site/paths.ts";

export const toHtml = (words: readonly HeadlineWord[]) =>
  words.map((word): Piece => (typeof word === "string" ? word : <a href={word.href}>{word.text}</a>));

export type ExecutionView = {
  projectId: string;
  execution: TimedExecutionRow;
  counts: Partial<Record<Blame, number>>;
  baseline: HeadlineWord | null;
  defaultBranch: string;
  /** Set only if exactly one test is flaky. */
  flakyTestId: string | undefined;
};

/** Returns "2 flaky", linked to the flaky results of the first task that has any. A single flaky test is linked directly. */
export function flakyWord({ projectId, execution, flakyTestId }: ExecutionView): HeadlineWord {
  const { id, tasks } = execution;
  const text = flakyWords(tasks);
  const task = tasks.find(({ flaky }) => flaky > 0);
  if (!task) return text;
  const filter = flakyTestId === undefined ? { status: "flaky" } : { case: flakyTestId };
  return { text, href: toAddress(taskPath(projectId, id, task.slug), filter) };
}

/** Returns the id of the only flaky test of an execution, or undefined if there are none or several. */
export async function findFlakyTest(
  sql: Sql,
  projectId: string,
  { id, tasks, untrusted }: ExecutionRow,
): Promise<string | undefined> {
  const task = tasks.find(({ flaky }) => flaky > 0);
  if (!task || sumTasks(tasks, "flaky") !== 1) return undefined;
  const runId = await selectRunId(sql, projectId, id, task.slug);
  if (runId === undefined) return undefined;
  const [row] = await selectCaseResults(sql, projectId, { id: runId, untrusted }, { limit: 1, flaky: true });
  return row?.testCaseId;
}

const TRIGGER_WORDS: Record<string, string> = {
  automation: "started by an automation",
  schedule: "started by a schedule",
  api: "started by API",
  upload: "",
  rerun: "",
};

export function metaOf(
  projectId: string,
  view: ExecutionView,
  names: ReadonlyMap<string, ExecutionName>,
  now: Date,
): Piece[] {
  const { execution, counts } = view;
  const { tasks, rerunOf, baselineId, durationMs, machineTimeMs } = execution;
  const [passed, recovered, skipped] = [
    sumTasks(tasks, "passed"),
    sumTasks(tasks, "flaky"),
    sumTasks(tasks, "skipped"),
  ];
  const { flaky = 0, quarantined = 0, incident = 0 } = counts;
  const link = (id: string) => {
    const name = names.get(id);
    return name ? <a href={executionPath(projectId, id)}>{shortExecutionName(name)}</a> : "a deleted execution";
  };
  const baseline = baselineId === null ? undefined : names.get(baselineId);
  const baselineName = baseline ? shortExecutionName(baseline) : "its baseline";
  const source = sourceLinks(execution);
  const at = execution.completedAt ?? execution.startedAt ?? execution.createdAt;
  const [ended, isOver] = [execution.completedAt !== null, hasEnded(execution.status)];
  const isGreen = execution.status === "passed";
  return [
    <span>
      <b>{executionNumber(execution)}</b>
      {execution.sample ? [" ", <Tag>sample</Tag>] : null}
      {execution.untrusted ? [" ", <Tag>{execution.probe ? "probe" : "untrusted (fork)"}</Tag>] : null}
    </span>,
    execution.branch === null ? null : <code>{execution.branch}</code>,
    execution.branch !== null || execution.baseBranch === null ? null : (
      <span>
        merge queue of <code>{execution.baseBranch}</code>
      </span>
    ),
    execution.commit === null ? null : <External href={source.commit} of={<Commit hash={execution.commit} />} />,
    execution.commitSubject === null ? null : (
      <span>
        <CommitText of={execution} />
      </span>
    ),
    execution.pullRequest === null ? null : (
      <External href={source.pullRequest} of={<>pull request {execution.pullRequest}</>} />
    ),
    execution.environment === null ? null : <span>on {execution.environment}</span>,
    !isGreen && passed > 0 ? (
      <span>
        {toCount(passed)} passed{durationMs > 0 ? ` in ${toDuration(durationMs)}` : ""}
      </span>
    ) : null,
    !isGreen && recovered > 0 ? <span>{toHtml([flakyWord(view)])}</span> : null,
    skipped > 0 ? <span>{toCount(skipped)} skipped</span> : null,
    machineTimeMs !== durationMs ? <span>machine time {toDuration(machineTimeMs)}</span> : null,
    isOver && flaky > 0 && (counts.new ?? 0) > 0 ? <span>{toCount(flaky)} known flaky failed</span> : null,
    isOver && incident > 0 && (counts.new ?? 0) > 0 ? <span>{toCount(incident)} failed in an incident</span> : null,
    isOver && quarantined > 0 && !isGreen ? <span>{toCount(quarantined)} quarantined, not counted</span> : null,
    rerunOf === null ? null : <span>repeats {link(rerunOf)}</span>,
    TRIGGER_WORDS[execution.trigger] ? <span>{TRIGGER_WORDS[execution.trigger]}</span> : null,
    baselineId === null ? null : (
      <a href={`${executionPath(projectId, execution.id)}/comparison`}>compare with {baselineName}</a>
    ),
    safeUrl(execution.buildUrl) === undefined ? null : <External href={execution.buildUrl} of={<>CI run</>} />,
    <span>
      {ended ? "ended " : execution.startedAt === null ? "created " : "began "}
      <Ago at={at} now={now} />
    </span>,
  ];
}
