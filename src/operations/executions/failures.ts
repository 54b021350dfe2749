/** The failures of an execution: its headline, and its failures by blame and by cause. */

import { readOnlyWith } from "./only_with.ts";
import { BLAME_ORDER, toCounts } from "../../rules/blame.ts";
import type { Blame } from "../../schema/failures.ts";
import type { JoinedBug } from "../../schema/known_bugs.ts";
import {
  type BugCounts,
  type CauseMember,
  type CauseQuery,
  type FailurePosition,
  selectCauses,
} from "../../store/causes.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { selectExecutionNames, type TimedExecutionRow } from "../../store/execution_list.ts";
import { countFailures } from "../../store/failures.ts";
import { selectJoinedBugs } from "../../store/known_bugs.ts";
import { selectProject } from "../../store/projects.ts";
import { executionHeadline, flakyWords, headlineText } from "../../wording/execution.ts";
import { shortExecutionName } from "../../wording/execution_name.ts";

/** How many failures of an execution have which blame. */
export const countBlames = async (sql: Tx, projectId: string, executionId: string) =>
  toCounts(await countFailures(sql, projectId, executionId));

/** Returns the headline of the execution's page as a text. */
export async function readHeadline(
  sql: Sql,
  projectId: string,
  execution: TimedExecutionRow,
  counts: Partial<Record<Blame, number>>,
): Promise<string> {
  const { baselineId } = execution;
  const [names, project] = await Promise.all([
    selectExecutionNames(sql, projectId, [baselineId]),
    selectProject(sql, projectId),
  ]);
  const baseline = baselineId === null ? undefined : names.get(baselineId);
  return headlineText(
    executionHeadline({
      execution,
      counts,
      baseline: baseline ? shortExecutionName(baseline) : null,
      defaultBranch: project?.defaultBranch ?? "the default branch",
      flaky: flakyWords(execution.tasks),
    }),
  );
}

/** `onlyWith`: the tags that explain why it failed in some variants of the execution only; none: nothing does. */
export type ExplainedFailure = CauseMember & { onlyWith: string[] };

/** The number of a cause's failures, the first of them, and the bug report that they have joined. */
export type CauseFailures = {
  failed: number;
  failures: [ExplainedFailure, ...ExplainedFailure[]];
  bug: JoinedBug | null;
};

export type CausePage = {
  /** In the order of their first failures: new ones first. */
  causes: CauseFailures[];
  /** The number of causes of the whole execution by the blame of their first failure; "none": the failure was not judged. */
  totals: Partial<Record<Blame | "none", number>>;
  /** The first failure of the page's last cause, when there are further causes. */
  last: FailurePosition | undefined;
  /** The bug reports that failures of the whole execution belong to. */
  bugCounts: BugCounts;
};

/** A page of the causes of an execution's failures. All of its failures are grouped, not only those of the page. */
export async function readCauses(
  sql: Sql,
  projectId: string,
  executionId: string,
  query: CauseQuery,
): Promise<CausePage> {
  const selected = await selectCauses(sql, projectId, executionId, query);
  const shownCounts = Object.fromEntries(
    selected.flatMap(({ bugId, failed }) => (bugId === null ? [] : [[bugId, failed]])),
  );
  const [onlyWithOf, bugs] = await Promise.all([
    readOnlyWith(sql, projectId, executionId, selected),
    selectJoinedBugs(sql, projectId, executionId, shownCounts),
  ]);
  const rows = selected.map((row) => ({ ...row, onlyWith: onlyWithOf(row) }));
  const bugOf = new Map<string | null, JoinedBug>(bugs.map(({ failed: _, ...bug }) => [bug.id, bug]));
  const found = [...Map.groupBy(rows, ({ place }) => place).values()];
  const causes = found.slice(0, query.limit).map(([first, ...others]): CauseFailures => ({
    failed: first!.failed,
    failures: [first!, ...others],
    bug: bugOf.get(first!.bugId) ?? null,
  }));
  const ranks = Object.entries(rows[0]?.causes ?? {});
  const totals = Object.fromEntries(ranks.map(([rank, number]) => [BLAME_ORDER[Number(rank) - 1] ?? "none", number]));
  const last = found.length > query.limit ? causes.at(-1)!.failures[0] : undefined;
  return { causes, totals, last, bugCounts: selected[0]?.bugCounts ?? {} };
}
