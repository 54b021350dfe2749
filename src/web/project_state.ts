/** How a project stands, in words: is its default branch green, since when, and what else there is. */

import { html, type Html } from "../http/html.ts";
import type { BranchState, Tally } from "../store/overview.ts";
import { executionPath, nameOf, outcomeOf } from "./builds.ts";
import { commit, counted, toDuration, toSpan } from "./parts.ts";

/** "main has been green for 2 hours". */
export function headlineOf(
  branch: string,
  state: BranchState | undefined,
  now: Date,
): { status: string; text: string } {
  if (!state) return { status: "queued", text: `Nothing has ended on ${branch} yet` };
  const isGreen = state.last.status === "passed";
  const span = toSpan(now.getTime() - Date.parse(state.since));
  const where = state.last.sample ? `In the sample data ${branch}` : branch;
  return { status: isGreen ? "passed" : "failed", text: `${where} has been ${isGreen ? "green" : "red"} for ${span}` };
}

/** What is said below the headline. */
export function summaryOf(projectId: string, state: BranchState | undefined, tally: Tally): (Html | null)[] {
  const base = `/projects/${projectId}`;
  return [
    state
      ? html`<span
          ><a href="${executionPath(projectId, state.last.id)}">${nameOf(state.last)}</a>
          ${state.last.commit === null ? null : commit(state.last.commit)}
          ${outcomeOf(state.last)}${state.last.durationMs > 0 ? ` in ${toDuration(state.last.durationMs)}` : ""}</span
        >`
      : null,
    tally.flaky > 0 ? html`<a href="${base}/tests?health=flaky">${counted(tally.flaky, "flaky test")}</a>` : null,
    tally.broken > 0 ? html`<a href="${base}/tests?health=broken">${counted(tally.broken, "broken test")}</a>` : null,
    html`<a href="${base}/bugs"
      >${counted(tally.openBugs, "open bug")}${tally.regressedBugs > 0 ? `, ${tally.regressedBugs} regressed` : ""}</a
    >`,
    tally.quarantined > 0
      ? html`<a href="${base}/tests?quarantined=true">${counted(tally.quarantined, "quarantined test")}</a>`
      : null,
    tally.running > 0 ? html`<a href="${base}/executions?status=running">${tally.running} running</a>` : null,
  ];
}
