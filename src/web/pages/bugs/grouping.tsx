/** Explains why the failures of a bug are grouped, and lists the changes of its status. */

import type { Html } from "../../../http/html.ts";
import type { BugReportDetail } from "../../../schema/bug_reports.ts";
import { counted } from "../../../wording/numbers.ts";
import { AgoCell, MarkCell, CardTable } from "../../components/list.tsx";
import { wordOf } from "../../components/status.tsx";

type Grouping = BugReportDetail["grouping"][number];

/** Describes what the failures of a group have in common. */
function reasonOf({ kind, exceptionType, message, frames, test }: Grouping): Html {
  const type = exceptionType === null ? null : <code>{exceptionType}</code>;
  const from =
    frames.length === 0 ? null : (
      <>, from {frames.map((frame, index) => [index === 0 ? "" : ", ", <code>{frame}</code>])}</>
    );
  const quoted = message === "" ? null : <code class="long">{message}</code>;
  if (kind === "outage") return <>Almost all tests failed at once: {message}</>;
  if (kind === "flaky") return <>The flaky test {test ?? ""}, regardless of how it fails</>;
  if (kind === "automation") return <>Created by an automation. {message}</>;
  if (kind === "case")
    return (
      <>
        The test {test ?? ""} fails at the same location{type ? <> with {type}</> : null}
        {from}
        {quoted ? <>, saying {quoted}, ignoring numbers</> : ", regardless of the message"}
      </>
    );
  return (
    <>
      The failures have the same message{type || quoted ? ": " : ""}
      {type}
      {type && quoted ? " " : null}
      {quoted}
      {from}
      {test === null ? ", in any test" : <>, in the test {test}</>}
    </>
  );
}

const MAX_GROUPS = 5;

export const groupingOf = ({ grouping, source }: BugReportDetail): Html | null =>
  grouping.length === 0 ? (
    source === "manual" ? null : (
      <>
        <h2>Why these failures are one bug</h2>
        <p class="soft">All its fingerprints have moved to another bug.</p>
      </>
    )
  ) : (
    <details class="panel why-one">
      <summary>
        <h2>Why these failures are one bug</h2>
      </summary>
      <div class="card padded">
        <p class="small soft">
          They share one of these fingerprints; <code>&lt;n&gt;</code> and similar placeholders stand for values that
          vary.
        </p>
        <ul>
          {grouping.slice(0, MAX_GROUPS).map((one) => (
            <li>{reasonOf(one)}</li>
          ))}
        </ul>
        {grouping.length > MAX_GROUPS ? (
          <details class="panel small">
            <summary>{counted(grouping.length - MAX_GROUPS, "more fingerprint")}</summary>
            <ul>
              {grouping.slice(MAX_GROUPS).map((one) => (
                <li>{reasonOf(one)}</li>
              ))}
            </ul>
          </details>
        ) : null}
      </div>
    </details>
  );

const CAUSES: Record<BugReportDetail["history"][number]["cause"], string> = {
  opened: "when it was opened",
  api: "manually",
  regression: "because it failed again on the default branch",
  removed: "because its tests are no longer reported",
  clean_runs: "because all its tests passed in three consecutive runs of the default branch",
  merge: "by a merge",
};

export const changesOf = ({ history }: BugReportDetail, now: Date): Html => (
  <>
    <h2>Activity</h2>
    <CardTable caption="Changes of its status, newest first">
      {history.toReversed().map(({ from, to, cause, changedAt }) => (
        <tr>
          <MarkCell status={cause === "regression" ? "regressed" : to} word={false} />
          <td>
            {from === null ? "opened" : `${wordOf(from)} → ${wordOf(to)}`}{" "}
            <span class="soft">{from === null ? "" : CAUSES[cause]}</span>
          </td>
          <AgoCell at={changedAt} now={now} />
        </tr>
      ))}
    </CardTable>
  </>
);
