/** What is rotten among the tests, and whether one of them can be trusted. */

import { write } from "../site/write.ts";
import * as v from "valibot";
import type { Href, Html, Path } from "../../http/html.ts";
import { changeTestCases } from "../../operations/projects/catalogue.ts";
import { catchUp } from "../../operations/health/catch_up.ts";
import { readHistory } from "../../operations/health/case_history.ts";
import { branchName, caseStatus, integerText, mayBeEmpty, text, uuid } from "../../schema/fields.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import { type FlakySign, health, type TestCasePatch, type TestCaseSort } from "../../schema/test_cases.ts";
import { type BugOfCase, selectOpenBugsOfCase } from "../../store/bug_reports.ts";
import {
  type CaseMessage,
  type CaseRecord,
  type FirstBad,
  type OwnerTally,
  selectCaseMessage,
  selectCaseRecord,
  selectFirstBad,
  selectOwnerTally,
  selectRunCompletedAt,
} from "../../store/case_record.ts";
import type { Sql } from "../../database/connect.ts";
import { selectOwners, selectTaskSlugs } from "../../store/facets.ts";
import { selectTally, type ProjectCounts } from "../../store/overview.ts";
import { type HistoryRow, selectTestCase, selectTestCases, type TestCaseRow } from "../../store/test_cases.ts";
import { shownCaseTitle } from "../../wording/case_title.ts";
import { firstLineOf } from "../../wording/first_line.ts";
import { type ExecutionName, selectExecutionNames } from "../../store/execution_list.ts";
import { bugPath, executionPath, testPath, toAddress, toQuery } from "../site/paths.ts";
import { executionName } from "../components/execution_table.tsx";
import { FilterBar, FilterName, FilterSelect, FilterText, MAX_CHOICES } from "../components/filters.tsx";
import { ActionForm, type Choice, Csrf } from "../components/form.tsx";
import { PART, readCursor, writeCursor } from "../site/cursor.ts";
import { type Page, SeeOther, form, page } from "../site/page.ts";
import { Ago, Breakable, Commit, toDay, toExact, toPercent, toSpan } from "../components/text.tsx";
import { Chart } from "../components/chart.tsx";
import { counted, toCount, toDuration } from "../../wording/numbers.ts";
import { Mark, Tag, standingOf, wordOf } from "../components/status.tsx";
import { Pager } from "../components/pager.tsx";
import { Strip } from "../components/strip.tsx";

const ROWS = 20;
const BROKEN = 5;
/** While counting goes on the page tells what is counted so far. */
const PATIENCE_MS = 500;

const testsPath = (projectId: string): Path => `/projects/${projectId}/tests`;

// The catalogue

const SORTS = ["flakeRate", "failures", "p95Ms", "lastRunAt", "firstSeen"] as const;
const SORT_OPTIONS: readonly Choice[] = [
  ["", "flakiest first"],
  ["failures", "most failures first"],
  ["p95Ms", "slowest first"],
  ["lastRunAt", "last run first"],
  ["firstSeen", "as first seen"],
];
const HEALTH_OPTIONS: readonly Choice[] = [
  ["", "any"],
  ["flaky", "flaky"],
  ["broken", "broken"],
  ["new", "new"],
  ["healthy", "healthy"],
  ["removed", "removed"],
];

const catalogueQuery = v.strictObject({
  q: mayBeEmpty(text(200)),
  health: mayBeEmpty(health),
  task: mayBeEmpty(text(200)),
  owner: mayBeEmpty(text(200)),
  quarantined: mayBeEmpty(v.picklist(["true", "false"], `expected "true" or "false"`)),
  sort: mayBeEmpty(v.picklist(SORTS, "expected a known order")),
  cursor: mayBeEmpty(text(200)),
  /** After a form: how many test cases are different now. */
  changed: v.optional(integerText(0, 100)),
});
type CatalogueQuery = v.InferOutput<typeof catalogueQuery>;

const KEYS: Record<TestCaseSort, (text: string) => boolean> = {
  flakeRate: PART.real,
  failures: PART.number,
  p95Ms: PART.number,
  lastRunAt: PART.time,
};

async function selectCatalogue(sql: Sql, projectId: string, query: CatalogueQuery) {
  const { q, health, task, owner, quarantined, sort = "flakeRate", cursor } = query;
  const by = sort === "firstSeen" ? undefined : sort;
  const isKey = by === undefined ? PART.none : (text: string) => text === "" || KEYS[by](text);
  const rows = await selectTestCases(sql, projectId, {
    limit: ROWS,
    q,
    health: health && [health],
    task_slug: task,
    owner,
    quarantined: quarantined && quarantined === "true",
    sort: by,
    after: readCursor(cursor, [isKey, PART.number]),
  });
  const shown = rows.slice(0, ROWS);
  const last = rows.length > ROWS ? shown.at(-1) : undefined;
  return { shown, next: last && writeCursor([last.key ?? "", String(last.number)]) };
}

function rotOf({ broken, flaky, quarantined }: ProjectCounts): { status: string; text: string } {
  const parts = [
    broken > 0 && counted(broken, "broken test"),
    flaky > 0 && `${counted(flaky, "flaky test")}`,
    quarantined > 0 && `${toCount(quarantined)} quarantined`,
  ].filter((part) => part !== false);
  const status = broken > 0 ? "broken" : flaky > 0 ? "flaky" : "passed";
  return { status, text: parts.length === 0 ? "No flaky, no broken test" : parts.join(", ") };
}

const ownerLinks = (base: Path, owners: readonly OwnerTally[]): Html | null =>
  owners.length === 0 || owners.every(({ owner }) => owner === null) ? null : (
    <span>
      whose:{" "}
      {owners.map(({ owner, flaky, broken }, index) => [
        index === 0 ? "" : ", ",
        owner === null ? "nobody" : <a href={toAddress(base, { owner })}>{owner}</a>,
        ` ${toCount(flaky + broken)}`,
      ])}
    </span>
  );

const isTicked = (index: number) => `case${index}`;

function catalogueRow(projectId: string, test: TestCaseRow, index: number, mayChange: boolean, now: Date): Html {
  return (
    <tr>
      {mayChange ? (
        <td class="mark-cell">
          <input type="checkbox" name={isTicked(index)} value={test.id} aria-labelledby={`t${index}`} />
        </td>
      ) : null}
      <td class="mark-cell">
        <Mark status={standingOf(test)} />
      </td>
      <td class="long">
        <a id={`t${index}`} href={testPath(projectId, test.id)}>
          <Breakable text={shownCaseTitle(test)} />
        </a>
        {test.quarantine ? (
          <>
            {" "}
            <Tag>quarantined</Tag>
          </>
        ) : null}
        {test.sample ? (
          <>
            {" "}
            <Tag>sample</Tag>
          </>
        ) : null}
        <span class="small soft">{[test.file, test.taskSlug].filter(Boolean).join(" · ")}</span>
      </td>
      <td class="wide">
        {test.lastStatus === null ? (
          "–"
        ) : test.lastStatus === "failed" ? (
          <span class="failed">failed</span>
        ) : (
          wordOf(test.lastStatus)
        )}
      </td>
      <td class="number">{test.flakeRate > 0 ? toPercent(test.flakeRate) : "–"}</td>
      <td class="number wide">{test.runs === 0 ? "–" : `${toCount(test.failures)} of ${toCount(test.runs)}`}</td>
      <td class="number wide">{test.averageMs === null ? "–" : toDuration(test.averageMs)}</td>
      <td class="number">{test.p95Ms === null ? "–" : toDuration(test.p95Ms)}</td>
      <td class="number soft wide">{test.lastRunAt === null ? "–" : <Ago at={test.lastRunAt} now={now} />}</td>
      <td class="wide long">{test.owner ?? ""}</td>
    </tr>
  );
}

/** The set that the figures of a test are over, as the API counts them. */
const ALL_RESULTS = "on all branches, without skips and outages";

const catalogueTable = (projectId: string, tests: readonly TestCaseRow[], mayChange: boolean, now: Date): Html => (
  <>
    <div class="card scroll">
      <table>
        <caption class="visually-hidden">Tests</caption>
        <thead>
          <tr>
            {mayChange ? (
              <th scope="col">
                <span class="visually-hidden">Tick</span>
              </th>
            ) : null}
            <th scope="col">
              <span class="visually-hidden">Health</span>
            </th>
            <th scope="col">Test</th>
            <th scope="col" class="wide">
              Last
            </th>
            <th scope="col" class="number">
              <abbr title="Share of the last results that showed it to be flaky">Flaky</abbr>
            </th>
            <th scope="col" class="number wide">
              Failed
            </th>
            <th scope="col" class="number wide">
              Average
            </th>
            <th scope="col" class="number">
              <abbr title="95th percentile of the last 20 durations">p95</abbr>
            </th>
            <th scope="col" class="number wide">
              Last run
            </th>
            <th scope="col" class="wide">
              Owner
            </th>
          </tr>
        </thead>
        <tbody>{tests.map((test, index) => catalogueRow(projectId, test, index, mayChange, now))}</tbody>
      </table>
    </div>
    <p class="hint">“Failed” counts all results {ALL_RESULTS}.</p>
  </>
);

/** What fails on the default branch all the time comes before what fails now and then. */
const brokenTable = (projectId: string, tests: readonly TestCaseRow[], hasMore: boolean, now: Date): Html | null =>
  tests.length === 0 ? null : (
    <>
      <h2>
        Broken{" "}
        {hasMore ? (
          <small>
            the first {tests.length}: <a href={`${testsPath(projectId)}?health=broken`}>all</a>
          </small>
        ) : null}
      </h2>
      <div class="card">
        <table>
          <caption class="visually-hidden">Broken tests</caption>
          <tbody>
            {tests.map((test) => (
              <tr>
                <td class="mark-cell">
                  <Mark status="broken" />
                </td>
                <td class="long">
                  <a href={testPath(projectId, test.id)}>
                    <Breakable text={shownCaseTitle(test)} />
                  </a>
                  {test.quarantine ? (
                    <>
                      {" "}
                      <Tag>quarantined</Tag>
                    </>
                  ) : null}
                </td>
                <td class="wide long">{test.owner ?? <span class="soft">no owner</span>}</td>
                <td class="number soft">
                  {test.lastPassedAt === null ? (
                    "never passed"
                  ) : (
                    <>
                      passed last <Ago at={test.lastPassedAt} now={now} />
                    </>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>All tests</h2>
    </>
  );

/** What is done to the ticked ones: the button says which. */
const bulkFields = (
  <fieldset class="filters">
    <legend>The ticked ones</legend>
    <label>
      Why
      <input name="reason" maxlength={1000} />
    </label>{" "}
    <label>
      Until, if it is to end
      <input type="date" name="until" />
    </label>{" "}
    <button name="do" value="quarantine">
      Quarantine
    </button>{" "}
    <button name="do" value="release">
      End quarantine
    </button>{" "}
    <label>
      Owner
      <input name="owner" maxlength={200} />
    </label>{" "}
    <button name="do" value="own">
      Give to owner
    </button>
  </fieldset>
);

/** A day ends when it does in UTC. */
const day = v.pipe(
  v.string(),
  v.regex(/^\d{4}-\d\d-\d\d$/, "expected a date, such as 2026-01-31"),
  v.check((value) => !Number.isNaN(Date.parse(value)), "expected a date, such as 2026-01-31"),
);
const toEnd = (day: string | undefined): string | null => (day === undefined ? null : `${day}T23:59:59.999Z`);

function toQuarantine(reason: string | undefined, until: string | undefined): TestCasePatch {
  if (reason === undefined) refuse("A quarantine needs a reason");
  return { quarantine: { reason: reason!, until: toEnd(until) } };
}

const bulkForm = v.strictObject({
  ...Object.fromEntries(Array.from({ length: ROWS }, (_, index) => [isTicked(index), v.optional(uuid)])),
  do: v.picklist(["quarantine", "release", "own"], "expected a known operation"),
  reason: mayBeEmpty(text(1_000)),
  until: mayBeEmpty(day),
  owner: mayBeEmpty(text(200)),
  back: v.pipe(v.string(), v.maxLength(2_000, "expected the address of the list")),
});

// One test

const HISTORY_ROWS = 15;
const STRIP = 50;
const CHART = 30;
const STACK = 6_000;

const historyQuery = v.strictObject({
  status: mayBeEmpty(caseStatus),
  branch: mayBeEmpty(branchName),
  cursor: mayBeEmpty(text(200)),
});

/** A result that says that something is wrong, be it only before it passed; what an outage made fail says nothing. */
const isFailure = ({ status, flaky, outage }: HistoryRow): boolean => (status === "failed" || flaky) && !outage;
const isCounted = ({ status, outage }: HistoryRow): boolean => status !== "skipped" && !outage;
const statusOf = ({ status, flaky }: HistoryRow): string => (flaky ? "flaky" : status);
/** As the strip of results has it: an outage is no result of the test. */
const shownAs = (row: HistoryRow): string => (row.outage ? "outage" : statusOf(row));

/** "2 flaky, 1 failed": each result once. */
const tallyOf = (rows: readonly HistoryRow[]): string =>
  ["passed", "flaky", "failed", "skipped", "outage"]
    .flatMap((shown) => {
      const number = rows.filter((row) => shownAs(row) === shown).length;
      return number === 0 ? [] : [shown === "outage" ? counted(number, "outage") : `${toCount(number)} ${shown}`];
    })
    .join(", ");

const commitAt = (hash: string | null, at: string | null, now: Date): (Html | string)[] => [
  ...(hash === null
    ? []
    : [
        <>
          {" "}
          at <Commit hash={hash} />
        </>,
      ]),
  ...(at === null
    ? []
    : [
        now.getTime() - Date.parse(at) < 86_400_000 ? (
          <>
            {" "}
            <Ago at={at} now={now} />
          </>
        ) : (
          ` on ${toDay(at)}`
        ),
      ]),
];

type Trust = {
  test: TestCaseRow;
  record: CaseRecord | undefined;
  rows: readonly HistoryRow[];
  firstBad: FirstBad | undefined;
};

/** Whether it can be trusted, in words. */
function trustOf({ test, record, rows, firstBad }: Trust, branch: string, now: Date): { status: string; text: Html } {
  const results = rows.filter(isCounted);
  const failures = results.filter(isFailure);
  const clean = record?.clean ?? 0;
  const passes = clean === 1 ? "passed the last time" : `passed the last ${toCount(clean)} times`;
  const since = firstBad?.isFirst ? <>, first{commitAt(firstBad.bad.commit, firstBad.bad.completedAt, now)}</> : null;
  if (test.health === "removed")
    return {
      status: "removed",
      text: (
        <>
          Removed: the last runs of <code>{test.taskSlug}</code> on {branch} did not have it
        </>
      ),
    };
  if (test.health === "broken")
    return {
      status: "broken",
      text: (
        <>
          Broken on {branch}: failed the last {toCount(record?.broken ?? 0)} times{since}
        </>
      ),
    };
  if (test.health === "flaky") {
    const first = failures.at(-1);
    const text =
      first === undefined ? (
        <>Flaky, and quiet lately: {passes}</>
      ) : (
        <>
          Flaky: {tallyOf(failures)} of its last {counted(results.length, "result")}, first
          {commitAt(first.commit, first.completedAt, now)}
        </>
      );
    return { status: "flaky", text };
  }
  if (record && record.broken > 0)
    return {
      status: "failed",
      text: (
        <>
          Fails on {branch} now:{" "}
          {record.broken === 1 ? "for the first time" : `${toCount(record.broken)} times in a row`}
          {since}
        </>
      ),
    };
  if (results.length === 0)
    return { status: "new", text: <>New: {rows.length > 0 ? "always skipped so far" : "no result yet"}</> };
  if (test.health === "new")
    return {
      status: "new",
      text: (
        <>
          New:{" "}
          {failures.length === 0
            ? `passed all ${toCount(results.length)} times`
            : `${tallyOf(failures)} of ${counted(results.length, "result")}`}{" "}
          so far
        </>
      ),
    };
  if (clean === 0) {
    const { branch: where } = results[0]!;
    return {
      status: "passed",
      text: (
        <>
          Healthy on {branch}, failed last
          {where === null ? null : (
            <>
              {" "}
              on <code>{where}</code>
            </>
          )}
        </>
      ),
    };
  }
  return { status: "passed", text: <>Healthy: {passes}</> };
}

const SIGNS: Record<FlakySign, (branch: string) => string> = {
  retry: () => "it passed after a failure within one run, on the same code",
  same_commit: () => "it both passed and failed on one commit",
  episodes: (branch) => `it failed on ${branch} in separate short episodes that nobody fixed`,
};

function whyFlaky({ flaky }: TestCaseRow, record: CaseRecord | undefined, branch: string, now: Date): Html | null {
  if (!flaky) return null;
  const left = record ? Math.max(1, record.recoversAfter - record.clean) : 0;
  return (
    <section class="card padded prose">
      <h2 class="first">Why it counts as flaky</h2>
      <ul>
        {flaky.signs.map((sign) => (
          <li>{SIGNS[sign](branch)}</li>
        ))}
      </ul>
      <p>
        {flaky.since === null ? null : (
          <>
            Since {toDay(flaky.since)}
            {flaky.lastSeenAt === null ? (
              ""
            ) : (
              <>
                , seen last <Ago at={flaky.lastSeenAt} now={now} />
              </>
            )}
            .{" "}
          </>
        )}
        {record ? (
          <>
            It recovers after{" "}
            <b>
              {toCount(left)} more {left === 1 ? "pass" : "passes"}
            </b>{" "}
            in a row{record.clean > 0 ? `: ${toCount(record.clean)} of ${toCount(record.recoversAfter)} so far` : ""}.
          </>
        ) : null}
      </p>
    </section>
  );
}

/** Seen from the page of a test, which holds very many of them. */
const near = ({ executionId }: { executionId: string }): Href => `../executions/${executionId}`;

const buildLink = (projectId: string, { executionId, ...build }: NonNullable<FirstBad["good"]>): Html => (
  <>
    <a href={executionPath(projectId, executionId)}>{executionName(build)}</a>
    {build.commit === null ? null : (
      <>
        {" "}
        <Commit hash={build.commit} />
      </>
    )}
  </>
);

function whereItBegan(projectId: string, firstBad: FirstBad | undefined, branch: string, now: Date): Html | null {
  if (!firstBad) return null;
  const { bad, good, isFirst } = firstBad;
  return (
    <section class="card padded prose">
      <h2 class="first">Where it began to fail on {branch}</h2>
      <dl class="facts">
        <dt>passed last</dt>
        <dd>
          {good ? (
            <>
              {buildLink(projectId, good)}{" "}
              <span class="soft">{good.completedAt === null ? null : <Ago at={good.completedAt} now={now} />}</span>
            </>
          ) : isFirst ? (
            "in none of the results that are kept"
          ) : (
            "longer ago than is looked back here"
          )}
        </dd>
        <dt>{isFirst ? "failed first" : "failed already"}</dt>
        <dd>
          {buildLink(projectId, bad)}{" "}
          <span class="soft">{bad.completedAt === null ? null : <Ago at={bad.completedAt} now={now} />}</span>
        </dd>
      </dl>
      {good?.commit && bad.commit && good.commit !== bad.commit ? (
        <p>
          What broke it lies between the two:{" "}
          <code>
            git log {good.commit.slice(0, 12)}..{bad.commit.slice(0, 12)}
          </code>
        </p>
      ) : null}
    </section>
  );
}

type Told = { projectId: string; rows: readonly HistoryRow[]; names: ReadonlyMap<string, ExecutionName> };

const buildNameOf = ({ executionId }: HistoryRow, names: Told["names"]): string => {
  const name = names.get(executionId);
  return name ? executionName(name) : "";
};

function record50({ rows, names }: Told): Html | null {
  if (rows.length === 0) return null;
  const items = rows.toReversed().map((row) => ({
    status: statusOf(row),
    href: near(row),
    label: `${shownAs(row)}, ${[buildNameOf(row, names), row.branch].filter(Boolean).join(" ")}`,
  }));
  return (
    <section class="card padded">
      <h2 class="first">
        The last {counted(rows.length, "result")} <small>on all branches: {tallyOf(rows)}; newest right</small>
      </h2>
      <div class="scroll">
        <Strip items={items} label={`The last ${counted(rows.length, "result")}, newest right`} />
      </div>
    </section>
  );
}

function durations({ rows, names }: Told, test: TestCaseRow): Html | null {
  const timed = rows
    .filter(({ durationMs }) => durationMs !== null)
    .slice(0, CHART)
    .toReversed();
  if (timed.length < 2) return null;
  const points = timed.map((row) => ({
    day: row.completedAt ?? "",
    name: buildNameOf(row, names) || (row.completedAt === null ? "" : toDay(row.completedAt)),
    value: row.durationMs,
    href: near(row),
    label: `${toDuration(row.durationMs!)}, ${buildNameOf(row, names)}`,
  }));
  const worst = Math.max(...points.map(({ value }) => value!));
  const facts = [
    test.averageMs !== null && `${toDuration(test.averageMs)} on average`,
    test.p95Ms !== null && `95th percentile ${toDuration(test.p95Ms)}`,
  ].filter(Boolean);
  return (
    <section class="card padded">
      <h2 class="first">
        Duration <small>{facts.join(", ")}</small>
      </h2>
      <Chart
        title={`Duration of the last ${counted(points.length, "result")}, newest right; longest ${toDuration(worst)}`}
        lines={[{ name: "Duration", points }]}
        show={toDuration}
        min={0}
        of="Execution"
      />
    </section>
  );
}

type LastFailure = { row: HistoryRow; said: CaseMessage | undefined };

function lastFailure({ projectId, names }: Told, { row, said }: LastFailure, now: Date): Html {
  const { message = null, stack = null } = said ?? {};
  const holds = message !== null && stack?.startsWith(message);
  return (
    <>
      <h2>
        Last failure{" "}
        <small>
          <a href={executionPath(projectId, row.executionId)}>{buildNameOf(row, names) || "its execution"}</a>
          {row.branch === null ? null : (
            <>
              {" "}
              <code>{row.branch}</code>
            </>
          )}
          {row.commit === null ? null : (
            <>
              {" "}
              <Commit hash={row.commit} />
            </>
          )}{" "}
          {row.completedAt === null ? null : <Ago at={row.completedAt} now={now} />}
          {row.flaky ? ", and passed when it was tried again" : ""}
        </small>
      </h2>
      {message === null && stack === null ? <p class="soft">It said nothing.</p> : null}{" "}
      {message === null || holds ? null : <pre>{message}</pre>} {stack === null ? null : <pre>{stack}</pre>}{" "}
      {(stack ?? message ?? "").length >= STACK ? (
        <p class="hint">Cut here: the whole of it is on the page of its execution.</p>
      ) : null}
    </>
  );
}

export const severityOf = (severity: string): Html => <span class="nowrap">{severity}</span>;

const bugsOfCase = (projectId: string, bugs: readonly BugOfCase[]): Html | null =>
  bugs.length === 0 ? null : (
    <>
      <h2>Open bugs</h2>
      <div class="card">
        <table>
          <caption class="visually-hidden">Open bugs that it belongs to</caption>
          <tbody>
            {bugs.map((bug) => (
              <tr>
                <td class="mark-cell">
                  <Mark status={bug.regressed ? "regressed" : bug.status} />
                </td>
                <td class="long">
                  <a href={bugPath(projectId, bug.id)}>
                    <b>Bug {bug.number}</b> {bug.title}
                  </a>
                </td>
                <td class="number">{severityOf(bug.severity)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );

function history({ rows, names }: Told, now: Date): Html {
  return (
    <div class="card">
      <table>
        <caption class="visually-hidden">Results, newest first</caption>
        <thead>
          <tr>
            <th scope="col">
              <span class="visually-hidden">Status</span>
            </th>
            <th scope="col">Execution</th>
            <th scope="col" class="wide">
              Message
            </th>
            <th scope="col" class="number">
              Duration
            </th>
            <th scope="col" class="number">
              When
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              <td class="mark-cell">
                <Mark status={statusOf(row)} />
              </td>
              <td class="long">
                <a href={near(row)}>{buildNameOf(row, names)}</a>
                {row.branch === null ? null : (
                  <>
                    {" "}
                    <code>{row.branch}</code>
                  </>
                )}
                {row.commit === null ? null : (
                  <>
                    {" "}
                    <span class="soft">
                      <Commit hash={row.commit} />
                    </span>
                  </>
                )}
                {row.outage ? (
                  <>
                    {" "}
                    <Tag>outage</Tag>
                  </>
                ) : null}
                {row.attempt > 1 ? (
                  <>
                    {" "}
                    <Tag>{`attempt ${row.attempt}`}</Tag>
                  </>
                ) : null}
              </td>
              <td class="wide long small">{firstLineOf(row.message, MAX_MESSAGE_LENGTH)}</td>
              <td class="number">{row.durationMs === null ? "–" : toDuration(row.durationMs)}</td>
              <td class="number soft">
                {row.completedAt === null ? "running" : <Ago at={row.completedAt} now={now} />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Longer first lines of messages are cut. */
const MAX_MESSAGE_LENGTH = 140;

function quarantineTold({ quarantine }: TestCaseRow, now: Date): Html | null {
  if (!quarantine) return null;
  const { until, createdAt, reason } = quarantine;
  const end =
    until === null
      ? "until somebody ends it"
      : `until ${toExact(until)}, ${toSpan(Date.parse(until) - now.getTime())} from now`;
  return (
    <div class="message after">
      <b>Quarantined</b> <Ago at={createdAt} now={now} />, {end}: its failures count for no verdict. {reason}
    </div>
  );
}

function careForms(base: Path, test: TestCaseRow, csrf: string): Html {
  const { quarantine, owner } = test;
  return (
    <div class="actions">
      <details class="panel">
        <summary class="button">{quarantine ? "Change quarantine" : "Quarantine"}</summary>
        <form class="fields card padded" method="post" action={`${base}/quarantine`}>
          <Csrf token={csrf} />
          <p class="hint">It goes on running, and its failures fail no build.</p>
          <label>
            Why
            <input name="reason" maxlength={1000} required value={quarantine?.reason ?? ""} />
          </label>{" "}
          <label>
            Until the end of the day (UTC); empty: until somebody ends it
            <input type="date" name="until" value={quarantine?.until?.slice(0, 10) ?? ""} />
          </label>
          <div>
            <button class="main">{quarantine ? "Change" : "Quarantine"}</button>
          </div>
        </form>
      </details>
      {quarantine ? <ActionForm action={`${base}/release`} csrf={csrf} label="End quarantine" /> : null}
      <details class="panel">
        <summary class="button">{owner === null ? "Give an owner" : "Change owner"}</summary>
        <form class="fields card padded" method="post" action={`${base}/owner`}>
          <Csrf token={csrf} />{" "}
          <label>
            Owner; empty: nobody
            <input name="owner" maxlength={200} value={owner ?? ""} />
          </label>
          <div>
            <button class="main">Save</button>
          </div>
        </form>
      </details>
    </div>
  );
}

/** The UUID after this one, so that a page that ends before it holds this one. */
const idBehind = (id: string): string => (BigInt(`0x${id.replaceAll("-", "")}`) + 1n).toString(16).padStart(32, "0");

/** The newest failure: of what is read already, else looked for where the record says that there was one. */
async function findLastFailure(
  sql: Sql,
  projectId: string,
  test: TestCaseRow,
  rows: readonly HistoryRow[],
): Promise<LastFailure | undefined> {
  let row = rows.find(isFailure);
  if (!row && test.lastFailedAt !== null) {
    // From the run that it is known to have failed in: it may be thousands of results away.
    const runId = await selectRunCompletedAt(sql, projectId, test.taskSlug, test.lastFailedAt);
    const query = { limit: 1, status: "failed", after: runId && idBehind(runId) } as const;
    row = (await readHistory(sql, projectId, test.id, query, { inAll: 2_000 })).rows[0];
  }
  return row && { row, said: await selectCaseMessage(sql, projectId, test.id, row.runId, STACK) };
}

const onePath = "/projects/:projectId/tests/:testId";

export const tests: Page[] = [
  page("/projects/:projectId/tests", { access: "viewer", query: catalogueQuery }, async (context) => {
    const { sql, begin, project, query, role, csrf, now } = context;
    const { id } = project;
    const path: Path = testsPath(id);
    const mayChange = role !== "viewer";
    await catchUp(sql, begin, id, PATIENCE_MS);
    const { cursor, changed, ...filters } = query;
    const isFiltered = Object.values(filters).some((value) => value !== undefined);
    const [{ shown, next }, tally, owners, tasks, names, slowest, broken] = await Promise.all([
      selectCatalogue(sql, id, query),
      selectTally(sql, id),
      selectOwnerTally(sql, id, 6),
      selectTaskSlugs(sql, id, MAX_CHOICES + 1),
      selectOwners(sql, id, MAX_CHOICES + 1),
      // One row more than the limit is answered.
      selectTestCases(sql, id, { limit: 0, sort: "p95Ms" }),
      isFiltered || cursor !== undefined ? [] : selectTestCases(sql, id, { limit: BROKEN, health: ["broken"] }),
    ]);
    const { q, health, task, owner, quarantined, sort } = filters;
    const rot = rotOf(tally);
    const [slow] = slowest;
    const table = catalogueTable(id, shown, mayChange, now);
    const none = (
      <div class="card empty">
        {isFiltered ? (
          <>
            <p>No test is like that.</p>
            <p>
              <a href={path}>All tests</a>
            </p>
          </>
        ) : (
          <>
            <p>No test has been reported yet.</p>
            <p>
              <a class="button main" href={`/projects/${id}/onboarding`}>
                Send the first report
              </a>
            </p>
          </>
        )}
      </div>
    );
    const body = (
      <>
        <h1>
          <Mark status={rot.status} word={false} /> {rot.text}
        </h1>
        <div class="meta quiet">
          {tally.broken > 0 ? <a href={`${path}?health=broken`}>broken</a> : null}{" "}
          {tally.flaky > 0 ? <a href={`${path}?health=flaky`}>flaky</a> : null}{" "}
          {tally.quarantined > 0 ? <a href={`${path}?quarantined=true`}>quarantined</a> : null}{" "}
          {slow && slow.p95Ms !== null ? (
            <span>
              <a href={`${path}?sort=p95Ms`}>slowest</a>: <a href={testPath(id, slow.id)}>{slow.name}</a>,{" "}
              {toDuration(slow.p95Ms)}
            </span>
          ) : null}{" "}
          {ownerLinks(path, owners)}
        </div>
        {changed === undefined ? null : (
          <p class="message good" role="status">
            {changed === 0 ? "Nothing had to be changed." : `${counted(changed, "test")} changed.`}
          </p>
        )}{" "}
        {brokenTable(id, broken.slice(0, BROKEN), broken.length > BROKEN, now)}{" "}
        <FilterBar path={path} isFiltered={isFiltered}>
          {[
            <FilterText label="Name or file" name="q" value={q} type="search" />,
            <FilterSelect label="Health" name="health" options={HEALTH_OPTIONS} value={health} />,
            <FilterName label="Task" name="task" names={tasks} value={task} />,
            <FilterName label="Owner" name="owner" names={names} value={owner} />,
            <FilterSelect
              label="Quarantine"
              name="quarantined"
              options={[
                ["", "either"],
                ["true", "quarantined"],
                ["false", "not quarantined"],
              ]}
              value={quarantined}
            />,
            <FilterSelect label="Order" name="sort" options={SORT_OPTIONS} value={sort === "flakeRate" ? "" : sort} />,
          ]}
        </FilterBar>{" "}
        {shown.length === 0 ? (
          none
        ) : mayChange ? (
          <form method="post" action={`${path}/change`}>
            <Csrf token={csrf} />
            <input type="hidden" name="back" value={toQuery({ ...filters, cursor })} />
            {table}
            {bulkFields}
          </form>
        ) : (
          table
        )}{" "}
        <Pager path={path} query={{ ...filters, cursor }} cursor={next} />
      </>
    );
    return { title: "Tests", body, section: "tests" };
  }),

  form("/projects/:projectId/tests/change", { access: "member", fields: bulkForm }, async (context) => {
    const { project, fields } = context;
    const { do: what, reason, until, owner, back, ...ticked } = fields;
    const ids = Object.values(ticked as Record<string, string | undefined>).filter((id) => id !== undefined);
    if (ids.length === 0) refuse("No test was ticked");
    const patch: TestCasePatch =
      what === "own"
        ? { owner: owner ?? null }
        : what === "release"
          ? { quarantine: null }
          : toQuarantine(reason, until);
    const { changed } = await change(context, [...new Set(ids)], patch);
    const view = Object.fromEntries(new URLSearchParams(back));
    return new SeeOther(toAddress(testsPath(project.id), { ...view, changed: String(changed) }));
  }),

  page(onePath, { access: "viewer", query: historyQuery }, async (context) => {
    const { sql, fast, begin, project, params, query, role, csrf, now } = context;
    const { id: projectId, defaultBranch: branch } = project;
    await catchUp(sql, begin, projectId, PATIENCE_MS);
    const test = (await selectTestCase(fast, projectId, params.testId)) ?? refuseAbsent();
    const { status, branch: on, cursor } = query;
    const isPlain = status === undefined && on === undefined && cursor === undefined;
    const [after] = readCursor(cursor, [PART.id]) ?? [];
    const [last, record, bugs, listed] = await Promise.all([
      readHistory(sql, projectId, test.id, { limit: STRIP }),
      selectCaseRecord(sql, projectId, test.id),
      selectOpenBugsOfCase(sql, projectId, test.id, 10),
      isPlain ? undefined : readHistory(sql, projectId, test.id, { limit: HISTORY_ROWS, status, branch: on, after }),
    ]);
    const shown = listed?.rows ?? last.rows.slice(0, HISTORY_ROWS);
    const next = listed ? listed.last : last.rows.length > HISTORY_ROWS ? shown.at(-1)!.runId : undefined;
    const firstBad = record && record.broken > 0 ? await selectFirstBad(sql, projectId, test.id) : undefined;
    const failure = await findLastFailure(sql, projectId, test, last.rows);
    const all = [...last.rows, ...shown, ...(failure ? [failure.row] : [])];
    const names = await selectExecutionNames(
      sql,
      projectId,
      all.map(({ executionId }) => executionId),
    );
    const told: Told = { projectId, rows: last.rows, names };
    const trust = trustOf({ test, record, rows: last.rows, firstBad }, branch, now);
    const path: Path = testPath(projectId, test.id);
    const body = (
      <>
        <p class="over">
          <Breakable text={shownCaseTitle(test)} />
          {test.quarantine ? (
            <>
              {" "}
              <Tag>quarantined</Tag>
            </>
          ) : null}
          {test.sample ? (
            <>
              {" "}
              <Tag>sample</Tag>
            </>
          ) : null}
        </p>
        <h1>
          <Mark status={trust.status} word={false} /> {trust.text}
        </h1>
        <div class="meta quiet">
          {test.file === null ? null : (
            <code>
              <Breakable text={test.file} />
            </code>
          )}{" "}
          <a href={toAddress(testsPath(projectId), { task: test.taskSlug })}>{test.taskSlug}</a>{" "}
          {test.runs === 0 ? null : (
            <span>
              failed {toCount(test.failures)} of all {counted(test.runs, "result")} {ALL_RESULTS}
            </span>
          )}{" "}
          {test.lastRunAt === null ? null : (
            <span>
              last run <Ago at={test.lastRunAt} now={now} />
            </span>
          )}{" "}
          <span>
            {test.owner === null ? (
              "no owner"
            ) : (
              <>
                owner <a href={toAddress(testsPath(projectId), { owner: test.owner })}>{test.owner}</a>
              </>
            )}
          </span>
        </div>
        {role === "viewer" ? null : careForms(path, test, csrf)} {quarantineTold(test, now)}
        <div class="columns">
          {record50(told)}
          {durations(told, test)}
          {whereItBegan(projectId, firstBad, branch, now)}
          {whyFlaky(test, record, branch, now)}
        </div>
        {bugsOfCase(projectId, bugs)}{" "}
        {role === "viewer" ? null : (
          <p class="hint after">
            <a href={toAddress(`/projects/${projectId}/bugs/new`, { test: test.id })}>Open a bug about this test</a>
          </p>
        )}{" "}
        {failure ? lastFailure(told, failure, now) : null}
        <h2 id="history">History</h2>
        <FilterBar path={path} isFiltered={!isPlain}>
          {[
            <FilterSelect
              label="Result"
              name="status"
              options={[
                ["", "any"],
                ["passed", "passed"],
                ["failed", "failed"],
                ["skipped", "skipped"],
              ]}
              value={status}
            />,
            <FilterText label="Branch" name="branch" value={on} />,
          ]}
        </FilterBar>{" "}
        {shown.length === 0 ? (
          <div class="card empty">
            <p>
              {next
                ? "Nothing like that among the newest results: go on with Next."
                : isPlain
                  ? "No result yet."
                  : "No result is like that."}
            </p>
          </div>
        ) : (
          history({ ...told, rows: shown }, now)
        )}{" "}
        <Pager path={path} query={{ status, branch: on, cursor }} cursor={next} />
      </>
    );
    return { title: test.name, body, section: "tests" };
  }),

  form(
    `${onePath}/quarantine`,
    { access: "member", fields: v.strictObject({ reason: mayBeEmpty(text(1_000)), until: mayBeEmpty(day) }) },
    (context) => changeOne(context, toQuarantine(context.fields.reason, context.fields.until)),
  ),

  form(`${onePath}/release`, { access: "member" }, (context) => changeOne(context, { quarantine: null })),

  form(`${onePath}/owner`, { access: "member", fields: v.strictObject({ owner: mayBeEmpty(text(200)) }) }, (context) =>
    changeOne(context, { owner: context.fields.owner ?? null }),
  ),
];

type Changing = Parameters<typeof write>[0] & { project: { id: string } };

const change = (context: Changing, ids: readonly string[], patch: TestCasePatch) =>
  write(
    context,
    "member",
    (sql) => changeTestCases(sql, context.project.id, ids, patch),
    ({ changed }) =>
      changed === 0
        ? undefined
        : {
            action: "test_case.changed",
            subject: ids.length === 1 ? ids[0]! : `${ids.length} tests`,
            details: { projectId: context.project.id, testCaseIds: ids.slice(0, 100), fields: Object.keys(patch) },
          },
  );

async function changeOne(
  context: Changing & { sql: Sql; params: { testId: string } },
  patch: TestCasePatch,
): Promise<SeeOther> {
  const { testId } = context.params;
  if (!(await selectTestCase(context.sql, context.project.id, testId))) refuseAbsent();
  await change(context, [testId], patch);
  return new SeeOther(testPath(context.project.id, testId));
}
