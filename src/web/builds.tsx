/** How executions are named and told in a line, wherever pages list them. */

import type { Html, Path } from "../http/html.ts";
import { executionOutcome } from "../wording/execution.ts";
import type { ExecutionSummary } from "../store/execution_list.ts";
import { ago, commitCode, mark, tag, toDuration, toExact, wordOf } from "./parts.tsx";

/** `#412` where its CI numbers builds, its key where that is a name, else the moment it began. */
export function executionName({ key, createdAt }: Pick<ExecutionSummary, "key" | "createdAt">): string {
  if (key === null) return toExact(createdAt).replace(/:\d\d, UTC| UTC$/, "");
  const number = /^(?:sample )?(\d+)$/.exec(key)?.[1];
  return number === undefined ? key : `#${number}`;
}

export const executionPath = (projectId: string, id: string): Path => `/projects/${projectId}/executions/${id}`;
/** A slug is free text; one of nothing but dots would be read as a way up by browsers, and has no page. */
export const taskPath = (projectId: string, executionId: string, slug: string): Path =>
  /^\.{1,2}$/.test(slug)
    ? executionPath(projectId, executionId)
    : `${executionPath(projectId, executionId)}/tasks/${encodeURIComponent(slug)}`;
export const testPath = (projectId: string, id: string): Path => `/projects/${projectId}/tests/${id}`;
export const bugPath = (projectId: string, id: string): Path => `/projects/${projectId}/bugs/${id}`;

const OPEN = ["queued", "running"];

/** With what its reruns have made of it. */
export const toldOutcome = (build: ExecutionSummary): string =>
  `${executionOutcome(build)}${build.repeatedStatus === null ? "" : `, ${wordOf(build.repeatedStatus)} when repeated`}`;

export const statusOf = ({ status, flaky }: ExecutionSummary): string =>
  status === "passed" && flaky > 0 ? "passed" : status;

/** Rows of a table of executions. */
export const buildRows = (projectId: string, builds: readonly ExecutionSummary[], now: Date): Html[] =>
  builds.map((build) => (
    <tr>
      <td class="mark-cell">{mark(statusOf(build))}</td>
      <td class="long">
        <a href={executionPath(projectId, build.id)}>
          <b>{executionName(build)}</b>
        </a>{" "}
        {build.branch === null ? null : <code>{build.branch}</code>}{" "}
        {build.commit === null ? null : <span class="soft wide">{commitCode(build.commit)}</span>}{" "}
        {build.isRerun ? tag("rerun") : null} {build.sample ? tag("sample") : null}
      </td>
      <td class={OPEN.includes(build.status) ? "running" : ""}>{toldOutcome(build)}</td>
      <td class="number wide">{build.durationMs > 0 ? toDuration(build.durationMs) : "–"}</td>
      <td class="number soft">{ago(build.completedAt ?? build.createdAt, now)}</td>
    </tr>
  ));

/** A table of executions; the caption names it for those who hear it. */
export const buildTable = (
  projectId: string,
  builds: readonly ExecutionSummary[],
  now: Date,
  caption: string,
): Html => (
  <div class="card">
    <table class="builds">
      <caption class="visually-hidden">{caption}</caption>
      <thead class="visually-hidden">
        <tr>
          <th scope="col">Status</th>
          <th scope="col">Execution</th>
          <th scope="col">Outcome</th>
          <th scope="col">Duration</th>
          <th scope="col">When</th>
        </tr>
      </thead>
      <tbody>{buildRows(projectId, builds, now)}</tbody>
    </table>
  </div>
);
