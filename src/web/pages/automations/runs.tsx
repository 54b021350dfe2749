/** The runs of an automation, with the result of each action. */

import type { Html } from "../../../http/html.ts";
import type { AutomationRun } from "../../../schema/automation_runs.ts";
import { AgoCell, MarkCell } from "../../components/list.tsx";
import { Mark } from "../../components/status.tsx";
import { bugPath, executionPath, testPath } from "../../site/paths.ts";
import { ACTION_WORDS } from "./sentence.ts";
import { MARKS, wordOf } from "./list.tsx";

/** Shows the result of each action, with a link to it. */
function results(team: { id: string }, run: AutomationRun): Html | null {
  if (run.actions.length === 0) return null;
  return (
    <ul class="plain small">
      {run.actions.map((one) => (
        <li>
          <Mark status={MARKS[one.status]!} word={false} /> <b>{ACTION_WORDS[one.type]}</b>: {one.status}{" "}
          <span class="soft">{one.reason}</span>{" "}
          {one.executionId && run.projectId ? (
            <a href={executionPath(run.projectId, one.executionId)}>Execution</a>
          ) : null}{" "}
          {one.bugReportId && run.projectId ? <a href={bugPath(run.projectId, one.bugReportId)}>Bug</a> : null}{" "}
          {one.testCaseId && run.projectId ? <a href={testPath(run.projectId, one.testCaseId)}>Test</a> : null}{" "}
          {one.integrationId ? (
            <a
              href={`/teams/${team.id}/integrations/${one.integrationId}${one.deliveryId ? `#d-${one.deliveryId}` : ""}`}
            >
              {one.deliveryId ? "Delivery" : "Integration"}
            </a>
          ) : null}
        </li>
      ))}
    </ul>
  );
}

const causeOf = ({ cause, eventType }: AutomationRun): string =>
  [eventType ?? (cause === "manual" ? "" : cause), cause === "manual" ? "started manually" : ""]
    .filter(Boolean)
    .join(", ");

export function runRow(team: { id: string }, run: AutomationRun, now: Date): Html {
  return (
    <tr>
      <MarkCell status={MARKS[run.status]!} word={run.status} />
      <td class="long">
        <b>{wordOf(run.status)}</b> <span class="soft">{causeOf(run)}</span>
        <span class="small">{run.reason}</span>
        {results(team, run)}
      </td>
      <AgoCell at={run.createdAt} now={now} />
    </tr>
  );
}

export const dryRunCard = (team: { id: string }, run: AutomationRun): Html => (
  <>
    <h2 id="dry-run">
      Dry run <small>no action was carried out, and the result is not stored</small>
    </h2>
    <div class="card padded">
      <p>
        <Mark status={MARKS[run.status]!} word={false} />{" "}
        <b>{{ done: "Would run", skipped: "Would do nothing", failed: "Would fail" }[run.status]}</b>: {run.reason}
      </p>
      {run.eventType === null ? null : <p class="hint">Tested with the last {run.eventType} event.</p>}
      {results(team, run)}
    </div>
  </>
);
