/** Why the failures of a bug are one bug, and the changes of its status. */

import type { Html } from "../../../http/html.ts";
import type { BugReportDetail } from "../../../schema/bug_reports.ts";
import { counted } from "../../../wording/numbers.ts";
import { Mark, wordOf } from "../../components/status.tsx";
import { Ago } from "../../components/text.tsx";

type Grouping = BugReportDetail["grouping"][number];

/** What its failures have in common, in words. */
function reasonOf({ kind, exceptionType, message, frames, test }: Grouping): Html {
  const type = exceptionType === null ? null : <code>{exceptionType}</code>;
  const from =
    frames.length === 0 ? null : (
      <>, from {frames.map((frame, index) => [index === 0 ? "" : ", ", <code>{frame}</code>])}</>
    );
  const said = message === "" ? null : <code class="long">{message}</code>;
  if (kind === "outage") return <>Nearly everything failed at once: {message}</>;
  if (kind === "flaky") return <>The flaky test {test ?? ""}, however it fails</>;
  if (kind === "automation") return <>Opened by a rule. {message}</>;
  if (kind === "case")
    return (
      <>
        The test {test ?? ""} fails at the same place{type ? <> with {type}</> : null}
        {from}
        {said ? <>, saying {said}, whatever numbers it names</> : ", whatever it says"}
      </>
    );
  return (
    <>
      The failures say the same{type || said ? ": " : ""}
      {type}
      {type && said ? " " : null}
      {said}
      {from}
      {test === null ? ", whichever test it is" : <>, in the test {test}</>}
    </>
  );
}

const GROUPS = 5;

export const groupingOf = ({ grouping, source }: BugReportDetail): Html | null =>
  grouping.length === 0 ? (
    source === "manual" ? null : (
      <>
        <h2>Why these failures are one bug</h2>
        <p class="soft">Everything that it was known by belongs to another bug now.</p>
      </>
    )
  ) : (
    <>
      <h2>
        Why these failures are one bug{" "}
        <small>
          they have one of these in common; <code>&lt;n&gt;</code> and the like stand for what varies
        </small>
      </h2>
      <div class="card padded">
        <ul>
          {grouping.slice(0, GROUPS).map((one) => (
            <li>{reasonOf(one)}</li>
          ))}
        </ul>
        {grouping.length > GROUPS ? (
          <details class="panel small">
            <summary>{counted(grouping.length - GROUPS, "further sign")}</summary>
            <ul>
              {grouping.slice(GROUPS).map((one) => (
                <li>{reasonOf(one)}</li>
              ))}
            </ul>
          </details>
        ) : null}
      </div>
    </>
  );

const CAUSES: Record<BugReportDetail["history"][number]["cause"], string> = {
  opened: "when it was opened",
  api: "by somebody",
  regression: "because it failed again on the default branch",
  removed: "because its tests are not reported any more",
  clean_runs: "because all its tests passed in three runs of the default branch in a row",
  merge: "by a merge",
};

export const changesOf = ({ history }: BugReportDetail, now: Date): Html => (
  <>
    <h2>What became of it</h2>
    <div class="card">
      <table>
        <caption class="visually-hidden">Changes of its status, newest first</caption>
        <tbody>
          {history.toReversed().map(({ from, to, cause, changedAt }) => (
            <tr>
              <td class="mark-cell">
                <Mark status={cause === "regression" ? "regressed" : to} word={false} />
              </td>
              <td>
                {from === null ? "opened" : `${wordOf(from)} → ${wordOf(to)}`}{" "}
                <span class="soft">{from === null ? "" : CAUSES[cause]}</span>
              </td>
              <td class="number soft">
                <Ago at={changedAt} now={now} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </>
);
