/** How a project stands, in words: is its default branch green, since when, and what else there is. */

import type { Html, Path } from "../../http/html.ts";
import type { BranchState } from "../../rules/branch_state.ts";
import type { ExecutionSummary } from "../../store/execution_list.ts";
import type { ProjectCounts } from "../../store/overview.ts";
import type { Branch } from "../../store/state.ts";
import { executionPath } from "../site/paths.ts";
import { executionName, outcomeText } from "../components/execution_table.tsx";
import { Commit, toSpan } from "../components/text.tsx";
import { counted, toDuration } from "../../wording/numbers.ts";

/** "main has been green for 2 hours". */
export function branchHeadline(
  { branch, sample }: Branch,
  { state, since, isLonger }: BranchState,
  now: Date,
): { status: string; text: string } {
  if (state === null || since === null) return { status: "queued", text: `Nothing has ended on ${branch} yet` };
  const span = `${isLonger ? "more than " : ""}${toSpan(now.getTime() - Date.parse(since))}`;
  const where = sample ? `In the sample data ${branch}` : branch;
  return { status: state, text: `${where} has been ${state === "passed" ? "green" : "red"} for ${span}` };
}

const MISSING_TASKS = 3;

/** Which tasks do not count because they have not run lately. */
export function missingTasks({ missing }: BranchState): Html | null {
  if (missing.length === 0) return null;
  const names = missing.slice(0, MISSING_TASKS).map(({ slug }) => slug);
  const more = missing.length - names.length;
  return (
    <span class="soft">
      not run lately: {names.join(", ")}
      {more > 0 ? ` and ${more} more` : ""}
    </span>
  );
}

type Standing = { state: BranchState; last: ExecutionSummary | undefined; tally: ProjectCounts };

/** What is said below the headline. */
export function summaryOf(projectId: string, { state, last, tally }: Standing): (Html | null)[] {
  const base: Path = `/projects/${projectId}`;
  return [
    last ? (
      <span>
        newest <a href={executionPath(projectId, last.id)}>{executionName(last)}</a>{" "}
        {last.commit === null ? null : <Commit hash={last.commit} />} {outcomeText(last)}
        {last.durationMs > 0 ? ` in ${toDuration(last.durationMs)}` : ""}
      </span>
    ) : null,
    missingTasks(state),
    tally.flaky > 0 ? <a href={`${base}/tests?health=flaky`}>{counted(tally.flaky, "flaky test")}</a> : null,
    tally.broken > 0 ? <a href={`${base}/tests?health=broken`}>{counted(tally.broken, "broken test")}</a> : null,
    <a href={`${base}/bugs`}>
      {counted(tally.openBugs, "open bug")}
      {tally.regressedBugs > 0 ? `, ${tally.regressedBugs} regressed` : ""}
    </a>,
    tally.quarantined > 0 ? (
      <a href={`${base}/tests?quarantined=true`}>{counted(tally.quarantined, "quarantined test")}</a>
    ) : null,
    tally.running > 0 ? <a href={`${base}/executions?status=running`}>{tally.running} running</a> : null,
  ];
}
