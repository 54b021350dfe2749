/** Reruns on the page of an execution: their results, and how to start one. */

import { type Html, type Piece, safeUrl } from "../../../http/html.ts";
import { hasEnded } from "../../../rules/execution.ts";
import type { ExecutionRow } from "../../../store/executions.ts";
import type { TaskRow } from "../../../store/execution_tasks.ts";
import type { RerunRow } from "../../../store/execution_list.ts";
import { executionPath } from "../../site/paths.ts";
import { executionName } from "../../../wording/execution_name.ts";
import { Mark, wordOf } from "../../components/status.tsx";

/** Shows the outcome including reruns, with links to them. */
export function rerunsOf(projectId: string, { repeatedStatus }: ExecutionRow, reruns: readonly RerunRow[]): Piece {
  if (reruns.length === 0) return null;
  const links = reruns.map((rerun) => (
    <>
      <a href={executionPath(projectId, rerun.id)}>{executionName(rerun)}</a> ({wordOf(rerun.status)})
    </>
  ));
  const became = repeatedStatus === null ? "" : `${wordOf(repeatedStatus)} when rerun`;
  const lead =
    repeatedStatus === null ? "rerun by" : [<Mark status={repeatedStatus} word={false} />, " ", <b>{became}</b>, ":"];
  return (
    <span>
      {lead}{" "}
      {links.map((link, index) => (
        <>
          {index > 0 ? ", " : ""}
          {link}
        </>
      ))}
    </span>
  );
}

type Repeating = { projectId: string; publicUrl: string; execution: ExecutionRow; red: readonly TaskRow[] };

/** Shows instructions for a build that neither a runner nor an integration can rerun. */
export const howToRepeat = (repeating: Repeating): Html => (
  <details class="bare">
    <summary>Run again</summary>
    <RepeatSteps {...repeating} />
  </details>
);

/** Shows the next steps of a rerun that waits for an upload. Shows nothing if runners execute it or once it has results. */
export function waitingRerun(repeating: Omit<Repeating, "red">): Html | null {
  const { mode, rerunOf, status, tasks } = repeating.execution;
  if (hasEnded(status) || rerunOf === null || mode === "run" || tasks.some(({ attempt }) => attempt > 0)) return null;
  if (tasks.length === 0) return null;
  return (
    <section class="card padded" data-region="waiting">
      <h2 class="label">Waiting for results</h2>
      <RepeatSteps {...repeating} red={tasks} />
    </section>
  );
}

function RepeatSteps({ projectId, publicUrl, execution, red }: Repeating): Html {
  const { id, mode, tasks } = execution;
  const slug = (red[0] ?? tasks[0])!.slug;
  const build = safeUrl(execution.buildUrl);
  const address = `${publicUrl}/api/v1/projects/${projectId}/test-runs?execution_id=${id}&task_slug=${encodeURIComponent(slug)}`;
  const [hint, command] =
    mode === "run"
      ? [
          <>No matching runner has been seen in the last hour. Start one on the machine that should run the tests:</>,
          "assay runner",
        ]
      : [
          <>
            {build ? (
              <>
                Restart its job{" "}
                <a href={build} rel="noreferrer">
                  in your CI
                </a>
                , or run
              </>
            ) : (
              "Run"
            )}{" "}
            the tests again and upload the report to this execution. Its results are merged test by test:
          </>,
          `curl -sS -H "Authorization: Bearer $ASSAY_KEY" --data-binary @report.xml \\\n  "${address}"`,
        ];
  return (
    <>
      <p class="hint">{hint}</p>
      <div class="copied">
        <pre data-copy>{command}</pre>
      </div>
    </>
  );
}
