/** The state of a project in words: the state of its default branch, since when, and counts of bugs and tests. */

import type { Html, Path } from "../../http/html.ts";
import type { BranchState } from "../../rules/branch_state.ts";
import type { ExecutionSummary } from "../../store/execution_list.ts";
import type { ProjectCounts } from "../../store/overview.ts";
import type { Branch } from "../../store/state.ts";
import { executionPath } from "../site/paths.ts";
import { outcomeText } from "../components/execution_table.tsx";
import { executionName } from "../../wording/execution_name.ts";
import { Commit, CommitText, toStateSpan } from "../components/text.tsx";
import { counted, toDuration } from "../../wording/numbers.ts";

/** Returns a headline such as "main has been green for 2 hours". */
export function branchHeadline(
  { branch, sample }: Branch,
  { state, since, isLonger }: BranchState,
  now: Date,
): { status: string; text: string } {
  if (state === null || since === null) return { status: "queued", text: `No finished executions on ${branch} yet` };
  const span = toStateSpan(now.getTime() - Date.parse(since), isLonger);
  const where = sample ? `In the sample data ${branch}` : branch;
  return { status: state, text: `${where} has been ${state === "passed" ? "green" : "red"} for ${span}` };
}

const MAX_MISSING_TASKS = 3;

/** Lists the tasks that do not count because they have not run recently. */
function missingTasks({ missing }: BranchState): Html | null {
  if (missing.length === 0) return null;
  const names = missing.slice(0, MAX_MISSING_TASKS).map(({ slug }) => slug);
  const more = missing.length - names.length;
  return (
    <span class="soft">
      not run recently: {names.join(", ")}
      {more > 0 ? ` and ${more} more` : ""}
    </span>
  );
}

type ProjectStanding = { state: BranchState; last: ExecutionSummary | undefined; tally: ProjectCounts };

/** Shows the facts below the headline. */
export function summaryOf(projectId: string, { state, last, tally }: ProjectStanding): (Html | null)[] {
  const base: Path = `/projects/${projectId}`;
  return [
    last ? (
      <span>
        newest <a href={executionPath(projectId, last.id)}>{executionName(last)}</a> {outcomeText(last)}
        {last.durationMs > 0 ? ` in ${toDuration(last.durationMs)}` : ""}
      </span>
    ) : null,
    last && last.commit !== null ? (
      <span>
        <Commit hash={last.commit} /> <CommitText of={last} />
      </span>
    ) : null,
    missingTasks(state),
    tally.flaky > 0 ? <a href={`${base}/tests?q=is:flaky`}>{counted(tally.flaky, "flaky test")}</a> : null,
    tally.broken > 0 ? <a href={`${base}/tests?q=is:broken`}>{counted(tally.broken, "broken test")}</a> : null,
    tally.openBugs > 0 ? (
      <a href={`${base}/bugs`}>
        {counted(tally.openBugs, "open bug")}
        {tally.regressedBugs > 0 ? `, ${tally.regressedBugs} regressed` : ""}
      </a>
    ) : null,
    tally.quarantined > 0 ? (
      <a href={`${base}/tests?q=is:quarantined`}>{counted(tally.quarantined, "quarantined test")}</a>
    ) : null,
    tally.running > 0 ? <a href={`${base}/executions?status=running`}>{tally.running} running</a> : null,
  ];
}
