/** How executions are named and told in a line, wherever pages list them. */

import { html, type Html } from "../http/html.ts";
import { executionReason } from "../rules/red_reason.ts";
import type { ExecutionStatus } from "../schema/executions.ts";
import { ago, commitCode, counted, mark, tag, toDuration, toExact, wordOf } from "./parts.ts";
import type { ExecutionSummary } from "../store/execution_list.ts";

/** `#412` where its CI numbers builds, its key where that is a name, else the moment it began. */
export function executionName({ key, createdAt }: Pick<ExecutionSummary, "key" | "createdAt">): string {
  if (key === null) return toExact(createdAt).replace(/:\d\d, UTC| UTC$/, "");
  const number = /^(?:sample )?(\d+)$/.exec(key)?.[1];
  return number === undefined ? key : `#${number}`;
}

export const executionPath = (projectId: string, id: string): string => `/projects/${projectId}/executions/${id}`;
/** A slug is free text; one of nothing but dots would be read as a way up by browsers, and has no page. */
export const taskPath = (projectId: string, executionId: string, slug: string): string =>
  /^\.{1,2}$/.test(slug)
    ? executionPath(projectId, executionId)
    : `${executionPath(projectId, executionId)}/tasks/${encodeURIComponent(slug)}`;
export const testPath = (projectId: string, id: string): string => `/projects/${projectId}/tests/${id}`;
export const bugPath = (projectId: string, id: string): string => `/projects/${projectId}/bugs/${id}`;

const OPEN = ["queued", "running"];

/** What came of it, the worst first: "3 new failures", "1,210 passed, 1 flaky", "running, 3 of 5 tasks". */
export function outcomeWords(build: ExecutionSummary): string {
  const { status, newFailures, failed, passed, flaky, skipped, tasks, openTasks, outageFailures } = build;
  // Nothing runs that is known of: an upload that is the last one says so, or the time does.
  if (status === "running" && tasks > 0 && openTasks === 0 && build.mode === "report")
    return `waiting for more reports, ${counted(passed + failed + skipped, "test")} so far${failed > 0 ? `, ${failed} failed` : ""}`;
  if (OPEN.includes(status)) {
    const progress = tasks === 0 ? "" : `, ${tasks - openTasks} of ${counted(tasks, "task")}`;
    return `${status}${progress}${failed > 0 ? `, ${counted(failed, "failure")} so far` : ""}`;
  }
  if (status === "cancelled") return "cancelled";
  const { redTasks } = build;
  const isKnown = tasks === 0 || redTasks.length > 0;
  const reason = isKnown ? executionReason(status as ExecutionStatus, redTasks) : null;
  const known = reason === null ? "" : `; ${reason}`;
  if (outageFailures > 0) {
    const others = failed - outageFailures - newFailures;
    const told = [
      `an outage: ${counted(outageFailures, "failure")}`,
      newFailures > 0 && counted(newFailures, "new failure"),
      others > 0 && counted(others, "known failure"),
    ];
    return `${told.filter(Boolean).join(", ")}${known}`;
  }
  if (newFailures > 0)
    return `${counted(newFailures, "new failure")}${failed > newFailures ? `, ${failed - newFailures} known` : ""}${known}`;
  if (failed > 0)
    return reason === null ? counted(failed, "known failure") : `${reason}; ${counted(failed, "known failure")}`;
  if (reason !== null) return reason;
  if (passed + skipped === 0) return status === "failed" ? "failed without results" : "nothing ran";
  return [`${passed.toLocaleString("en-US")} passed`, flaky > 0 && `${flaky} flaky`].filter(Boolean).join(", ");
}

/** With what its reruns have made of it. */
export const toldOutcome = (build: ExecutionSummary): string =>
  `${outcomeWords(build)}${build.repeatedStatus === null ? "" : `, ${wordOf(build.repeatedStatus)} when repeated`}`;

export const statusOf = ({ status, flaky }: ExecutionSummary): string =>
  status === "passed" && flaky > 0 ? "passed" : status;

/** Rows of a table of executions. */
export const buildRows = (projectId: string, builds: readonly ExecutionSummary[], now: Date): Html[] =>
  builds.map(
    (build) =>
      html`<tr>
        <td class="mark-cell">${mark(statusOf(build))}</td>
        <td class="long">
          <a href="${executionPath(projectId, build.id)}"><b>${executionName(build)}</b></a>
          ${build.branch === null ? null : html`<code>${build.branch}</code>`}
          ${build.commit === null ? null : html`<span class="soft wide">${commitCode(build.commit)}</span>`}
          ${build.isRerun ? tag("rerun") : null} ${build.sample ? tag("sample") : null}
        </td>
        <td class="${OPEN.includes(build.status) ? "running" : ""}">
          ${toldOutcome(build)}
        </td>
        <td class="number wide">${build.durationMs > 0 ? toDuration(build.durationMs) : "–"}</td>
        <td class="number soft">${ago(build.completedAt ?? build.createdAt, now)}</td>
      </tr>`,
  );

/** A table of executions; the caption names it for those who hear it. */
export const buildTable = (projectId: string, builds: readonly ExecutionSummary[], now: Date, caption: string): Html =>
  html`<div class="card">
    <table class="builds">
      <caption class="visually-hidden">
        ${caption}
      </caption>
      <thead class="visually-hidden">
        <tr>
          <th scope="col">Status</th>
          <th scope="col">Execution</th>
          <th scope="col">Outcome</th>
          <th scope="col">Duration</th>
          <th scope="col">When</th>
        </tr>
      </thead>
      <tbody>
        ${buildRows(projectId, builds, now)}
      </tbody>
    </table>
  </div>`;
