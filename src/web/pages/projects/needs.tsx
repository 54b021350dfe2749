/** The page section that lists what needs attention besides a red default branch: the visitor's own tests and bugs, flaky tests, and bugs that came back. */

import type { Html } from "../../../http/html.ts";
import { toSearchWord } from "../../../rules/search_words.ts";
import type { UrgentBug } from "../../../store/bug_reports.ts";
import type { TestCaseRow } from "../../../store/test_cases.ts";
import { shownTaskTitle } from "../../../wording/case_title.ts";
import { flakeWords } from "../../../wording/flake_rate.ts";
import { counted, toDay } from "../../../wording/numbers.ts";
import { ActionForm, Hidden } from "../../components/form.tsx";
import { CardTable, MarkCell } from "../../components/list.tsx";
import { Tag } from "../../components/status.tsx";
import { Ago, Breakable } from "../../components/text.tsx";
import { bugPath, testPath, toAddress } from "../../site/paths.ts";

const DAY_MS = 86_400_000;
/** The length of a quarantine that this page begins, in days. */
const QUARANTINE_DAYS = 14;

export type NeedsContext = {
  projectId: string;
  /** Undefined for viewers, who may change nothing. */
  csrf: string | undefined;
  now: Date;
};

const Owners = ({ projectId, owners }: { projectId: string; owners: readonly string[] }): Html => (
  <>
    {owners.map((owner) => (
      <>
        {" · "}
        <a href={toAddress(`/projects/${projectId}/tests`, { q: toSearchWord("owner", owner) })}>{owner}</a>
      </>
    ))}
  </>
);

/** A button that quarantines a test, or ends its quarantine, and comes back to this page. */
function QuarantineButton({ projectId, csrf, now, test }: NeedsContext & { test: TestCaseRow }): Html | null {
  if (csrf === undefined) return null;
  const from = <Hidden name="from" value="overview" />;
  const path = testPath(projectId, test.id);
  const of = <span class="visually-hidden"> {shownTaskTitle(test)}</span>;
  if (test.quarantine)
    return <ActionForm action={`${path}/release`} csrf={csrf} label={["End quarantine", of]} fields={from} />;
  const fields = [
    from,
    <Hidden name="reason" value={`Flaky: ${flakeWords(test)}`} />,
    <Hidden name="until" value={new Date(now.getTime() + QUARANTINE_DAYS * DAY_MS).toISOString().slice(0, 10)} />,
  ];
  const label = [`Quarantine for ${QUARANTINE_DAYS} days`, of];
  return <ActionForm action={`${path}/quarantine`} csrf={csrf} label={label} fields={fields} />;
}

function TestRow({ test, ...context }: NeedsContext & { test: TestCaseRow }): Html {
  const { projectId, now } = context;
  const isBroken = test.health === "broken";
  const { quarantine } = test;
  return (
    <tr>
      <MarkCell status={test.health} />
      <td class="long">
        <a href={testPath(projectId, test.id)}>
          <Breakable text={shownTaskTitle(test)} />
        </a>{" "}
        {quarantine ? (
          <Tag>{quarantine.until === null ? "quarantined" : `quarantined until ${toDay(quarantine.until)}`}</Tag>
        ) : null}
        <span class="small soft">
          {isBroken ? "broken" : flakeWords(test)}
          {test.lastFailedAt === null ? null : [", last failure ", <Ago at={test.lastFailedAt} now={now} />]}
          <Owners projectId={projectId} owners={test.owners} />
        </span>
      </td>
      <td class="number">{isBroken ? null : <QuarantineButton {...context} test={test} />}</td>
    </tr>
  );
}

const BugRow = ({ projectId, bug, now }: { projectId: string; bug: UrgentBug; now: Date }): Html => (
  <tr>
    <MarkCell status={bug.isRegressed ? "regressed" : "open"} />
    <td class="long">
      <a href={bugPath(projectId, bug.id)}>
        <b>Bug {bug.number}</b> {bug.isMine && bug.isRegressed ? "came back: " : ""}
        {bug.title}
      </a>{" "}
      <span class="small soft">
        {counted(bug.occurrences, "failure")}
        {bug.isMine || bug.assignee === null ? "" : `, ${bug.assignee}`}
      </span>
    </td>
    <td class="number soft">{bug.lastSeenAt === null ? null : <Ago at={bug.lastSeenAt} now={now} />}</td>
  </tr>
);

export type Needs = { own: readonly TestCaseRow[]; flaky: readonly TestCaseRow[]; bugs: readonly UrgentBug[] };

/** Shows tests that the visitor owns and bugs that are assigned to the visitor, then other flaky tests and bugs that came back. */
export function NeedsAttention({ needs, ...context }: NeedsContext & { needs: Needs }): Html {
  const { projectId, now } = context;
  const toTestRow = (test: TestCaseRow) => <TestRow test={test} {...context} />;
  const toBugRow = (bug: UrgentBug) => <BugRow projectId={projectId} bug={bug} now={now} />;
  const [mine, others] = [needs.bugs.filter(({ isMine }) => isMine), needs.bugs.filter(({ isMine }) => !isMine)];
  return (
    <>
      {needs.own.length + mine.length === 0 ? null : (
        <>
          <h2>
            Yours <small>tests that you own, bugs that are assigned to you</small>
          </h2>
          <CardTable caption="Your tests and bugs" kind="projects">
            {needs.own.map(toTestRow)}
            {mine.map(toBugRow)}
          </CardTable>
        </>
      )}
      {needs.flaky.length === 0 ? null : (
        <>
          <h2 id="flaky">
            Flaky tests{" "}
            <small>
              <a href={`/projects/${projectId}/tests?q=is:flaky`}>all flaky tests</a>
            </small>
          </h2>
          <CardTable caption="Flaky tests, the most failures first" kind="projects">
            {needs.flaky.map(toTestRow)}
          </CardTable>
        </>
      )}
      {others.length === 0 ? null : (
        <>
          <h2>Bugs that came back</h2>
          <CardTable caption="Bugs that came back" kind="projects">
            {others.map(toBugRow)}
          </CardTable>
        </>
      )}
    </>
  );
}
