/** The table of bugs, with the buttons of triage. */

import type { Html } from "../../../http/html.ts";
import { type BugReportPatch, SEVERITIES } from "../../../schema/bug_reports.ts";
import type { OccurrenceDay } from "../../../store/bug_evidence.ts";
import type { BugReportRow, TriagedBug } from "../../../store/bug_reports.ts";
import type { TestCaseName } from "../../../store/test_cases.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { counted } from "../../../wording/numbers.ts";
import { AgoCell, CardTable } from "../../components/list.tsx";
import { Tag, wordOf } from "../../components/status.tsx";
import { Breakable } from "../../components/text.tsx";
import { bugPath } from "../../site/paths.ts";
import { Activity, LIST_DAYS } from "./evidence.tsx";
import { STILL_OPEN, markOf } from "./shared.tsx";

/** The change that a button of the list makes to a bug. */
export const TRIAGE_CHANGES: Record<string, (me: string) => BugReportPatch> = {
  start: () => ({ status: "in_progress" }),
  resolve: () => ({ status: "resolved" }),
  ignore: () => ({ status: "ignored" }),
  reopen: () => ({ status: "open" }),
  take: (me) => ({ assignee: me }),
  drop: () => ({ assignee: null }),
  ...Object.fromEntries(SEVERITIES.map((severity) => [severity, () => ({ severity })])),
};

const VERBS = { open: "reopen", in_progress: "start", resolved: "resolve", ignored: "ignore" } as const;

/** Returns the verb that reverts a change of the bug; undefined if none does. `before`: the bug before the change. */
export function undoOf(verb: string, before: TriagedBug): string | undefined {
  if (verb === "take" || verb === "drop") return before.assignee === null ? "drop" : undefined;
  return SEVERITIES.some((severity) => severity === verb) ? before.severity : VERBS[before.status];
}

/** The result of each change, as the notice says it. */
export const TRIAGE_NOTICES: Record<string, string> = {
  start: "is in progress",
  resolve: "is resolved",
  ignore: "is ignored",
  reopen: "is open",
  take: "is assigned to you",
  drop: "is no longer assigned",
  ...Object.fromEntries(SEVERITIES.map((severity) => [severity, `is ${severity}`])),
};

/** `key`: the keyboard shortcut of the button in the current row. */
const triageButton = (verb: string, number: number, label: string, key?: string): Html => (
  <button name="do" value={`${verb} ${number}`} data-row-key={key}>
    {label}
  </button>
);

export function triage({ number, status, severity, assignee }: BugReportRow, me: string): Html {
  const isLive = status === "open" || status === "in_progress";
  return (
    <div class="row-actions" role="group" aria-label={`Bug ${number}`}>
      {isLive
        ? [
            assignee === me ? null : triageButton("take", number, "Assign to me", "a"),
            triageButton("resolve", number, "Resolve", "r"),
            triageButton("ignore", number, "Ignore", "i"),
          ]
        : triageButton("reopen", number, "Reopen")}
      <details class="panel">
        <summary>More</summary>
        <div class="row-actions">
          {status === "open"
            ? triageButton("start", number, "Start")
            : status === "in_progress"
              ? triageButton("reopen", number, "Stop progress")
              : null}
          {SEVERITIES.filter((one) => one !== severity).map((one) => triageButton(one, number, `Make ${one}`))}
        </div>
      </details>
    </div>
  );
}

type RowContext = {
  triageOf: ((bug: BugReportRow) => Html) | undefined;
  /** The days on which the bug occurred. */
  days: readonly OccurrenceDay[];
  /** The only test of the bug, if it has one. */
  test: TestCaseName | undefined;
  now: Date;
};

export function bugRow(projectId: string, bug: BugReportRow, { triageOf, days, test, now }: RowContext): Html {
  const {
    number,
    title,
    severity,
    occurrences,
    assignee,
    owners,
    taskSlugs,
    lastSeenAt,
    regressed,
    status,
    testCaseIds,
  } = bug;
  const tests = testCaseIds.length >= 100 ? "100 tests or more" : counted(testCaseIds.length, "test");
  const facts = [
    regressed && STILL_OPEN.includes(status as never) && "came back",
    status === "open" ? null : wordOf(status),
    occurrences > 0 && counted(occurrences, "failure"),
    test === undefined && testCaseIds.length > 0 && tests,
    taskSlugs.slice(0, 3).join(", ") + (taskSlugs.length > 3 ? ` and ${taskSlugs.length - 3} more` : ""),
  ].filter(Boolean);
  return (
    <tr>
      <td class="mark-cell">{markOf(bug)}</td>
      <td class="long">
        <a href={bugPath(projectId, bug.id)}>
          <b>Bug {number}</b> {title}
        </a>
        {bug.sample ? [" ", <Tag>sample</Tag>] : null}
        {test === undefined ? null : (
          <span class="small">
            <Breakable text={shownCaseTitle(test)} />
          </span>
        )}
        <span class="small soft">{facts.join(" · ")}</span>
        {triageOf?.(bug)}
      </td>
      <td class="activity wide">
        <Activity days={days} now={now} />
      </td>
      <td>{severity}</td>
      <td class="wide long">
        {assignee ?? <span class="soft">Unassigned</span>}
        {owners.length === 0 ? null : <span class="small soft">{owners.slice(0, 3).join(", ")}</span>}
      </td>
      <AgoCell at={lastSeenAt} now={now} kind="number soft wide" never="never seen" />
    </tr>
  );
}

export const bugTable = (rows: readonly Html[]): Html => (
  <CardTable
    caption="Bugs"
    columns={[
      ["Status", "hidden"],
      "Bug",
      [`${LIST_DAYS} days`, "wide"],
      "Severity",
      ["Assignee", "wide"],
      ["Last seen", "number", "wide"],
    ]}
  >
    {rows}
  </CardTable>
);
