/** Which bugs are open, why the failures of one are one bug, and what people do about it. */

import { write } from "../site/write.ts";
import * as v from "valibot";
import { type Html, safeUrl, type Path } from "../../http/html.ts";
import { editBug, mergeBugs, openBugByHand } from "../../operations/bugs/bug_reports.ts";
import {
  type BugReportDetail,
  type BugReportPatch,
  bugReportPatch,
  type BugReportSort,
  bugStatus,
  type BugStatus,
  newBugReport,
  severity as severitySchema,
} from "../../schema/bug_reports.ts";
import { httpUrl, listText, mayBeEmpty, text, uuid } from "../../schema/fields.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import {
  type BugCaseRow,
  type BugReportRow,
  type BugState,
  countOpenBugs,
  type OccurrenceRow,
  selectBugByNumber,
  selectBugCases,
  selectBugReport,
  selectBugReports,
  selectBugState,
  selectOccurrences,
} from "../../store/bug_reports.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { selectTaskSlugs } from "../../store/facets.ts";
import { selectTestCaseNames, type TestCaseName } from "../../store/test_cases.ts";
import { shownCaseTitle } from "../../wording/case_title.ts";
import { firstLineOf } from "../../wording/first_line.ts";
import { type ExecutionName, selectExecutionNames } from "../../store/execution_list.ts";
import { bugPath, executionPath, testPath, toAddress, toQuery } from "../site/paths.ts";
import { executionName } from "../components/execution_table.tsx";
import { FilterBar, FilterName, FilterSelect, FilterText, MAX_CHOICES } from "../components/filters.tsx";
import { ActionForm, type Choice, Csrf } from "../components/form.tsx";
import { PART, readCursor, writeCursor } from "../site/cursor.ts";
import { type Page, SeeOther, form, page } from "../site/page.ts";
import { Ago, Breakable, Commit } from "../components/text.tsx";
import { counted, toCount } from "../../wording/numbers.ts";
import { Mark, Tag, standingOf, wordOf } from "../components/status.tsx";
import { Pager } from "../components/pager.tsx";

const ROWS = 20;
const STATUSES = ["open", "in_progress", "resolved", "ignored"] as const;
const SEVERITIES = ["critical", "major", "minor", "trivial"] as const;
const bugsPath = (projectId: string): Path => `/projects/${projectId}/bugs`;

const toOptions = (first: string, values: readonly string[]): Choice[] => [
  ["", first],
  ...values.map((value): Choice => [value, wordOf(value)]),
];

// The list

const STILL_OPEN = ["open", "in_progress"] as const;
const STATUS_OPTIONS: readonly Choice[] = [
  ["", "open"],
  ["open", "not begun"],
  ["in_progress", "in progress"],
  ["resolved", "resolved"],
  ["ignored", "ignored"],
  ["open,in_progress,resolved,ignored", "any"],
];
const SORT_OPTIONS: readonly Choice[] = [
  ["", "came back, severity"],
  ["newest", "newest"],
  ["lastSeenAt", "seen last"],
  ["occurrences", "most failures"],
];
const SORTS = ["newest", "lastSeenAt", "occurrences"] as const;

const listQuery = v.strictObject({
  q: mayBeEmpty(text(200)),
  status: v.optional(v.string()),
  severity: mayBeEmpty(severitySchema),
  source: mayBeEmpty(v.picklist(["automatic", "manual"], `expected "automatic" or "manual"`)),
  task: mayBeEmpty(text(200)),
  assignee: mayBeEmpty(text(200)),
  sort: mayBeEmpty(v.picklist(SORTS, "expected a known order")),
  cursor: mayBeEmpty(text(200)),
});
type ListQuery = v.InferOutput<typeof listQuery>;

const statusesText = listText(STATUSES);
const readStatuses = (given: string | undefined): readonly BugStatus[] => {
  if (!given) return STILL_OPEN;
  const read = v.safeParse(statusesText, given);
  return read.success ? read.output : refuse(`Cannot read "status": ${read.issues[0].message}`);
};

const KEYS = { newest: PART.number, lastSeenAt: PART.time, occurrences: PART.number, severity: PART.number } as const;

/** What came back stands first where nothing else is asked for: these are two lists, one behind the other. */
async function selectList(sql: Sql, projectId: string, query: ListQuery) {
  const { q, severity, source, task, assignee, sort, cursor } = query;
  const by: BugReportSort = sort ?? "severity";
  const isPart = sort === undefined ? (text: string) => text === "back" || text === "" : PART.none;
  const [part, ...after] = readCursor(cursor, [isPart, KEYS[by], PART.number]) ?? [sort === undefined ? "back" : ""];
  const select = (regressed: boolean | undefined, limit: number, from: readonly string[]) =>
    selectBugReports(sql, projectId, {
      limit,
      q,
      status: readStatuses(query.status),
      severity,
      source,
      task_slug: task,
      assignee,
      sort: by,
      regressed,
      after: from.length > 0 ? from : undefined,
    });
  const first = part === "back" ? await select(true, ROWS, after) : [];
  const rest =
    first.length > ROWS
      ? []
      : await select(sort === undefined ? false : undefined, ROWS - first.length, part === "back" ? [] : after);
  const rows = [...first, ...rest];
  const shown = rows.slice(0, ROWS);
  const last = rows.length > ROWS ? shown.at(-1) : undefined;
  const place = last && [
    shown.length <= first.length && sort === undefined ? "back" : "",
    last.key,
    String(last.number),
  ];
  return { shown, next: place && writeCursor(place) };
}

const markOf = ({ status, regressed }: Pick<BugReportRow, "status" | "regressed">): Html => (
  <Mark status={regressed && (status === "open" || status === "in_progress") ? "regressed" : status} />
);

/** What a button of the list does to a bug. */
const MOVES: Record<string, (me: string) => BugReportPatch> = {
  start: () => ({ status: "in_progress" }),
  resolve: () => ({ status: "resolved" }),
  ignore: () => ({ status: "ignored" }),
  reopen: () => ({ status: "open" }),
  take: (me) => ({ assignee: me }),
  ...Object.fromEntries(SEVERITIES.map((severity) => [severity, () => ({ severity })])),
};

const move = (verb: string, number: number, label: string): Html => (
  <button name="do" value={`${verb} ${number}`}>
    {label}
  </button>
);

function triage({ number, status, severity, assignee }: BugReportRow, me: string): Html {
  const isLive = status === "open" || status === "in_progress";
  return (
    <div class="row-actions" role="group" aria-label={`Bug ${number}`}>
      {isLive
        ? [
            assignee === me ? null : move("take", number, "Assign to me"),
            move("resolve", number, "Resolve"),
            move("ignore", number, "Ignore"),
          ]
        : move("reopen", number, "Reopen")}
      <details class="panel">
        <summary>More</summary>
        <div class="row-actions">
          {status === "open"
            ? move("start", number, "Start")
            : status === "in_progress"
              ? move("reopen", number, "Not in progress")
              : null}
          {SEVERITIES.filter((one) => one !== severity).map((one) => move(one, number, `Make ${one}`))}
        </div>
      </details>
    </div>
  );
}

function bugRow(
  projectId: string,
  bug: BugReportRow,
  triageOf: ((bug: BugReportRow) => Html) | undefined,
  now: Date,
): Html {
  const { number, title, severity, occurrences, assignee, taskSlugs, lastSeenAt, regressed, status, testCaseIds } = bug;
  const tests = testCaseIds.length >= 100 ? "100 tests or more" : counted(testCaseIds.length, "test");
  const facts = [
    regressed && STILL_OPEN.includes(status as never) && "came back",
    status === "open" ? null : wordOf(status),
    occurrences > 0 && counted(occurrences, "failure"),
    testCaseIds.length > 0 && tests,
    taskSlugs.slice(0, 3).join(", ") + (taskSlugs.length > 3 ? ` and ${taskSlugs.length - 3} more` : ""),
  ].filter(Boolean);
  return (
    <tr>
      <td class="mark-cell">{markOf(bug)}</td>
      <td class="long">
        <a href={bugPath(projectId, bug.id)}>
          <b>Bug {number}</b> {title}
        </a>
        {bug.sample ? (
          <>
            {" "}
            <Tag>sample</Tag>
          </>
        ) : null}
        <span class="small soft">{facts.join(" · ")}</span>
        {triageOf?.(bug)}
      </td>
      <td>{severity}</td>
      <td class="wide long">{assignee ?? <span class="soft">nobody</span>}</td>
      <td class="number soft wide">{lastSeenAt === null ? "never seen" : <Ago at={lastSeenAt} now={now} />}</td>
    </tr>
  );
}

const bugTable = (rows: readonly Html[]): Html => (
  <div class="card">
    <table>
      <caption class="visually-hidden">Bugs</caption>
      <thead>
        <tr>
          <th scope="col">
            <span class="visually-hidden">Status</span>
          </th>
          <th scope="col">Bug</th>
          <th scope="col">Severity</th>
          <th scope="col" class="wide">
            Assignee
          </th>
          <th scope="col" class="number wide">
            Seen
          </th>
        </tr>
      </thead>
      <tbody>{rows}</tbody>
    </table>
  </div>
);

/** "12 open bugs: 1 critical, 8 major; 2 came back". */
function openOf(tally: Awaited<ReturnType<typeof countOpenBugs>>): { status: string; text: string } {
  const open = tally.reduce((sum, row) => sum + row.open, 0);
  const back = tally.reduce((sum, row) => sum + row.regressed, 0);
  if (open === 0) return { status: "passed", text: "No open bug" };
  const parts = SEVERITIES.flatMap((severity) => {
    const found = tally.find((row) => row.severity === severity);
    return found ? [`${toCount(found.open)} ${severity}`] : [];
  });
  const text = `${counted(open, "open bug")}: ${parts.join(", ")}${back > 0 ? `; ${toCount(back)} came back` : ""}`;
  return { status: back > 0 ? "regressed" : "open", text };
}

const moveForm = v.strictObject({
  do: v.pipe(v.string(), v.regex(/^[a-z]{4,8} [1-9]\d{0,8}$/, "expected a known operation")),
  back: v.pipe(v.string(), v.maxLength(2_000, "expected the address of the list")),
});

// One bug

const OCCURRENCES = 15;
const CASES = 10;
const ALL_CASES = 50;

const bugQuery = v.strictObject({ cursor: mayBeEmpty(text(200)), cases: mayBeEmpty(text(200)) });

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

const groupingOf = ({ grouping, source }: BugReportDetail): Html | null =>
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

const changesOf = ({ history }: BugReportDetail, now: Date): Html => (
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

type Names = { builds: ReadonlyMap<string, ExecutionName>; tests: ReadonlyMap<number, TestCaseName> };

/** Longer first lines of messages are cut. */
const MAX_MESSAGE_LENGTH = 200;

const occurrenceTable = (
  projectId: string,
  rows: readonly OccurrenceRow[],
  { builds, tests }: Names,
  now: Date,
): Html => (
  <div class="card">
    <table>
      <caption class="visually-hidden">Where it occurred, newest first</caption>
      <thead>
        <tr>
          <th scope="col">Test and message</th>
          <th scope="col">Execution</th>
          <th scope="col" class="number">
            When
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => {
          const build = builds.get(row.executionId);
          const test = tests.get(row.testCase);
          return (
            <tr>
              <td class="long">
                <a href={testPath(projectId, row.testCaseId)}>
                  <Breakable text={test ? shownCaseTitle(test) : row.taskSlug} />
                </a>
                <span class="small soft">{firstLineOf(row.message, MAX_MESSAGE_LENGTH)}</span>
              </td>
              <td class="long">
                <a href={executionPath(projectId, row.executionId)}>{build ? executionName(build) : "its execution"}</a>
                {row.branch === null ? null : (
                  <>
                    {" "}
                    <code class="wide">{row.branch}</code>
                  </>
                )}
                {row.commit === null ? null : (
                  <>
                    {" "}
                    <span class="soft wide">
                      <Commit hash={row.commit} />
                    </span>
                  </>
                )}
              </td>
              <td class="number soft">
                <Ago at={row.seenAt} now={now} />
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  </div>
);

const caseTable = (projectId: string, rows: readonly BugCaseRow[]): Html => (
  <div class="card">
    <table>
      <caption class="visually-hidden">The tests of this bug</caption>
      <thead>
        <tr>
          <th scope="col">
            <span class="visually-hidden">Health</span>
          </th>
          <th scope="col">Test</th>
          <th scope="col" class="number">
            Passed since
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr>
            <td class="mark-cell">
              <Mark status={standingOf(row)} />
            </td>
            <td class="long">
              <a href={testPath(projectId, row.id)}>
                <Breakable text={shownCaseTitle(row)} />
              </a>
              <span class="small soft">{[row.file, row.taskSlug].filter(Boolean).join(" · ")}</span>
            </td>
            <td class="number">{row.clean === 0 ? "–" : counted(row.clean, "time")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

function bugHeadline(bug: BugReportDetail): string {
  const { status, severity, regressed, assignee, occurrences } = bug;
  const told = [
    regressed && STILL_OPEN.includes(status as never) ? `came back, ${wordOf(status)}` : wordOf(status),
    severity,
    assignee === null ? "not assigned" : `assigned to ${assignee}`,
    occurrences === 0 ? "never seen" : counted(occurrences, "failure"),
  ];
  return told.join(", ");
}

const state = (to: BugStatus): Html => <input type="hidden" name="status" value={to} />;

function statusForms(path: Path, bug: BugReportDetail, me: string, csrf: string): Html {
  const { status, fixedInCommit, assignee } = bug;
  const isLive = status === "open" || status === "in_progress";
  const to: Path = `${path}/status`;
  return (
    <div class="actions">
      {isLive ? (
        <details class="panel">
          <summary class="button main">Resolve</summary>
          <form class="fields card padded" method="post" action={to}>
            <Csrf token={csrf} />
            {state("resolved")}{" "}
            <label>
              Fixed in commit, if you know
              <input name="fixedInCommit" maxlength={200} value={fixedInCommit ?? ""} />
            </label>
            <p class="hint">
              When it fails again on the default branch, in an execution that began later, it is opened again.
            </p>
            <div>
              <button class="main">Resolve</button>
            </div>
          </form>
        </details>
      ) : (
        <ActionForm action={to} csrf={csrf} label="Reopen" kind="main" fields={state("open")} />
      )}{" "}
      {status === "open" ? (
        <ActionForm action={to} csrf={csrf} label="Start" fields={state("in_progress")} />
      ) : status === "in_progress" ? (
        <ActionForm action={to} csrf={csrf} label="Not in progress" fields={state("open")} />
      ) : null}{" "}
      {isLive ? <ActionForm action={to} csrf={csrf} label="Ignore" fields={state("ignored")} /> : null}{" "}
      {assignee === me ? null : <ActionForm action={`${path}/take`} csrf={csrf} label="Assign to me" />}{" "}
      <a class="button" href={`${path}/merge`}>
        Merge…
      </a>
      <details class="panel">
        <summary class="button">Edit</summary>
        <form class="fields card padded" method="post" action={path}>
          <Csrf token={csrf} />
          {bugFields(bug)}
          <div>
            <button class="main">Save</button>
          </div>
        </form>
      </details>
    </div>
  );
}

const editFields = {
  title: text(300),
  description: v.optional(v.string(), ""),
  severity: severitySchema,
  assignee: mayBeEmpty(text(200)),
  /** With commas between them. */
  labels: v.optional(v.string(), ""),
  externalUrl: mayBeEmpty(httpUrl),
  fixedInCommit: mayBeEmpty(text(200)),
};
const editForm = v.strictObject(editFields);
const newForm = v.strictObject({ ...editFields, tests: v.optional(v.string(), "") });
type Edited = v.InferOutput<typeof editForm>;

const toEdited = ({ title, description, severity, assignee, labels, externalUrl, fixedInCommit }: Edited) => ({
  title,
  // A form's lines end as those of HTTP do.
  description: description.replaceAll("\r\n", "\n"),
  severity,
  assignee: assignee ?? null,
  labels: labels
    .split(",")
    .map((label) => label.trim())
    .filter((label) => label !== ""),
  externalUrl: externalUrl ?? null,
  fixedInCommit: fixedInCommit ?? null,
});

/** As the API would: what the fields of a form cannot say is refused in its words. */
function hold<Schema extends v.GenericSchema>(schema: Schema, value: unknown): v.InferOutput<Schema> {
  const read = v.safeParse(schema, value);
  if (read.success) return read.output;
  const [issue] = read.issues;
  return refuse(`Cannot read "${String(issue.path?.[0]?.key ?? "")}": ${issue.message}`);
}

type Editable = Pick<
  BugReportDetail,
  "title" | "description" | "severity" | "assignee" | "labels" | "externalUrl" | "fixedInCommit"
>;

const bugFields = (bug: Editable): Html => (
  <>
    <label>
      Title
      <input name="title" required maxlength={300} value={bug.title} />
    </label>{" "}
    <label>
      Description
      <textarea name="description" rows={6} maxlength={65536}>
        {"\n"}
        {bug.description}
      </textarea>
    </label>{" "}
    <label>
      Severity
      <select name="severity">
        {SEVERITIES.map((one) => (
          <option selected={one === bug.severity}>{one}</option>
        ))}
      </select>
    </label>{" "}
    <label>
      Assignee
      <input name="assignee" maxlength={200} value={bug.assignee ?? ""} />
    </label>{" "}
    <label>
      Labels, with commas between them
      <input name="labels" maxlength={5000} value={bug.labels.join(", ")} />
    </label>{" "}
    <label>
      Address in another tracker
      <input type="url" name="externalUrl" maxlength={2000} value={bug.externalUrl ?? ""} />
    </label>{" "}
    <label>
      Fixed in commit
      <input name="fixedInCommit" maxlength={200} value={bug.fixedInCommit ?? ""} />
    </label>
  </>
);

const fact = (name: string, value: Html | string | null): Html | null =>
  value === null ? null : (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );

function factsOf(
  projectId: string,
  bug: BugReportDetail,
  { builds }: { builds: ReadonlyMap<string, ExecutionName> },
  now: Date,
): Html {
  const external = safeUrl(bug.externalUrl);
  const at = (when: string | null, execution: string | null) =>
    when === null ? null : (
      <>
        <Ago at={when} now={now} />
        {execution === null ? null : builds.has(execution) ? (
          <>
            , <a href={executionPath(projectId, execution)}>in {executionName(builds.get(execution)!)}</a>
          </>
        ) : (
          ", in an execution that was deleted since"
        )}
      </>
    );
  return (
    <dl class="facts card padded">
      {fact("First seen", at(bug.firstSeenAt, bug.firstExecutionId))}{" "}
      {fact(
        "Last seen",
        bug.lastSeenAt === null ? null : (
          <>
            {at(bug.lastSeenAt, bug.lastExecutionId)}
            {bug.branch === null ? null : (
              <>
                {" "}
                on <code>{bug.branch}</code>
              </>
            )}
            {bug.commit === null ? null : (
              <>
                {" "}
                <Commit hash={bug.commit} />
              </>
            )}
          </>
        ),
      )}{" "}
      {fact("Resolved", bug.resolvedAt === null ? null : <Ago at={bug.resolvedAt} now={now} />)}{" "}
      {fact("Fixed in", bug.fixedInCommit === null ? null : <Commit hash={bug.fixedInCommit} />)}{" "}
      {fact("Tasks", bug.taskSlugs.length === 0 ? null : bug.taskSlugs.join(", "))}{" "}
      {fact("Labels", bug.labels.length === 0 ? null : <>{bug.labels.map((label) => [<Tag>{label}</Tag>, " "])}</>)}{" "}
      {fact(
        "Elsewhere",
        bug.externalUrl === null ? null : external ? (
          <a class="long" href={external} rel="noopener noreferrer">
            {bug.externalUrl}
          </a>
        ) : (
          bug.externalUrl
        ),
      )}{" "}
      {fact(
        "Opened",
        <>
          {bug.source === "manual" ? "by hand" : "by itself"}, <Ago at={bug.createdAt} now={now} />
        </>,
      )}
    </dl>
  );
}

const onePath = "/projects/:projectId/bugs/:bugId";

const find = async (sql: Sql, projectId: string, id: string): Promise<BugReportDetail> =>
  (await selectBugReport(sql, projectId, id)) ?? refuseAbsent();

/** Undefined: no bug was meant. */
const toNumber = (q: string): number | undefined => {
  const digits = /^\s*(?:bug\s*)?#?(\d{1,9})\s*$/i.exec(q)?.[1];
  return digits === undefined ? undefined : Number(digits);
};

export const bugs: Page[] = [
  page("/projects/:projectId/bugs", { access: "viewer", query: listQuery }, async (context) => {
    const { sql, project, query, role, visitor, csrf, now } = context;
    const { id } = project;
    const path: Path = bugsPath(id);
    const { cursor, ...filters } = query;
    const [{ shown, next }, tally, tasks] = await Promise.all([
      selectList(sql, id, query),
      countOpenBugs(sql, id),
      selectTaskSlugs(sql, id, MAX_CHOICES + 1),
    ]);
    const { q, status, severity, source, task, assignee, sort } = filters;
    const isFiltered = Object.values(filters).some(Boolean);
    const open = openOf(tally);
    const mayChange = role !== "viewer";
    const triageOf = mayChange ? (bug: BugReportRow) => triage(bug, visitor.name) : undefined;
    const table = bugTable(shown.map((bug) => bugRow(id, bug, triageOf, now)));
    const body = (
      <>
        <h1>
          <Mark status={open.status} word={false} /> {open.text}
        </h1>
        <div class="meta quiet">
          <a href={toAddress(path, { assignee: visitor.name })}>assigned to me</a>{" "}
          <a href={`${path}?status=resolved&sort=lastSeenAt`}>resolved</a>{" "}
          <a href={`${path}?status=ignored`}>ignored</a>{" "}
          {mayChange ? <a href={`${path}/new`}>open one by hand</a> : null}
        </div>
        <FilterBar path={path} isFiltered={isFiltered}>
          {[
            <FilterText label="Title or description" name="q" value={q} type="search" />,
            <FilterSelect label="Status" name="status" options={STATUS_OPTIONS} value={status} />,
            <FilterSelect label="Severity" name="severity" options={toOptions("any", SEVERITIES)} value={severity} />,
            <FilterSelect
              label="Found"
              name="source"
              options={[
                ["", "either way"],
                ["automatic", "by itself"],
                ["manual", "by hand"],
              ]}
              value={source}
            />,
            <FilterName label="Task" name="task" names={tasks} value={task} />,
            <FilterText label="Assignee" name="assignee" value={assignee} />,
            <FilterSelect label="Order" name="sort" options={SORT_OPTIONS} value={sort} />,
          ]}
        </FilterBar>{" "}
        {shown.length === 0 ? (
          <div class="card empty">
            {isFiltered ? (
              <>
                <p>No bug is like that.</p>
                <p>
                  <a href={path}>All open bugs</a>
                </p>
              </>
            ) : (
              <p>Nothing is open. What fails on {project.defaultBranch} is opened here by itself, grouped by cause.</p>
            )}
          </div>
        ) : mayChange ? (
          <form method="post" action={`${path}/triage`}>
            <Csrf token={csrf} />
            <input type="hidden" name="back" value={toQuery({ ...filters, cursor })} />
            {table}
          </form>
        ) : (
          table
        )}{" "}
        <Pager path={path} query={{ ...filters, cursor }} cursor={next} />
      </>
    );
    return { title: "Bugs", body, section: "bugs" };
  }),

  form("/projects/:projectId/bugs/triage", { access: "member", fields: moveForm }, async (context) => {
    const { project, fields, visitor } = context;
    const [verb, number] = fields.do.split(" ") as [string, string];
    const patch = Object.hasOwn(MOVES, verb) ? MOVES[verb]!(visitor.name) : refuse(`There is no operation "${verb}"`);
    await change(context, patch, async (sql) => {
      const bug = await selectBugByNumber(sql, project.id, Number(number));
      return bug?.id ?? refuse(`There is no bug ${number} here`);
    });
    return new SeeOther(toAddress(bugsPath(project.id), Object.fromEntries(new URLSearchParams(fields.back))));
  }),

  page(
    "/projects/:projectId/bugs/new",
    { access: "member", query: v.strictObject({ test: mayBeEmpty(uuid) }) },
    async ({ fast, project, query, csrf }) => {
      const name =
        query.test === undefined ? undefined : (await selectTestCaseNames(fast, project.id, [query.test]))[0];
      const blank = {
        title: "",
        description: "",
        severity: "major" as const,
        assignee: null,
        labels: [],
        externalUrl: null,
        fixedInCommit: null,
      };
      const body = (
        <>
          <h1>Open a bug</h1>
          <form class="fields after" method="post" action={bugsPath(project.id)}>
            <Csrf token={csrf} /> {bugFields(blank)}{" "}
            {name ? (
              <>
                <p>
                  It is about the test{" "}
                  <a href={testPath(project.id, name.id)}>
                    <Breakable text={shownCaseTitle(name)} />
                  </a>
                  : when that passes in three runs of {project.defaultBranch} in a row, the bug is resolved.
                </p>
                <input type="hidden" name="tests" value={name.id} />
              </>
            ) : null}
            <div>
              <button class="main">Open the bug</button>{" "}
              <a class="button" href={bugsPath(project.id)}>
                Cancel
              </a>
            </div>
          </form>
        </>
      );
      return { title: "Open a bug", body, section: "bugs" };
    },
  ),

  form("/projects/:projectId/bugs", { access: "member", fields: newForm }, async (context) => {
    const { project, fields } = context;
    const { tests, ...edited } = fields;
    const testCaseIds = tests.split(",").filter((id) => id !== "");
    const bug = hold(newBugReport, { ...toEdited(edited), testCaseIds });
    const { id } = await write(
      context,
      "member",
      (sql) => openBugByHand(sql, project.id, bug),
      ({ id, number }) => ({
        action: "bug.created",
        subject: `Bug ${number}`,
        details: { projectId: project.id, bugReportId: id },
      }),
    );
    return new SeeOther(bugPath(project.id, id));
  }),

  page(onePath, { access: "viewer", query: bugQuery }, async (context) => {
    const { sql, fast, project, params, query, role, visitor, csrf, now } = context;
    const { id: projectId } = project;
    const bug = await find(sql, projectId, params.bugId);
    const after = readCursor(query.cursor, [PART.id, PART.number]) as [string, string] | undefined;
    const [from] = readCursor(query.cases, [PART.number]) ?? [];
    const most = from === undefined ? CASES : ALL_CASES;
    const [occurrences, cases, into] = await Promise.all([
      selectOccurrences(sql, projectId, bug.id, OCCURRENCES, after),
      selectBugCases(sql, projectId, bug.id, most, Number(from ?? 0)),
      bug.mergedInto === null ? undefined : selectBugState(fast, projectId, bug.mergedInto),
    ]);
    const shown = occurrences.slice(0, OCCURRENCES);
    const [builds, testNames] = await Promise.all([
      selectExecutionNames(sql, projectId, [
        ...shown.map(({ executionId }) => executionId),
        bug.firstExecutionId,
        bug.lastExecutionId,
      ]),
      selectTestCaseNames(
        sql,
        projectId,
        shown.map(({ testCaseId }) => testCaseId),
      ),
    ]);
    const names = { builds, tests: new Map(testNames.map((test) => [test.number, test])) };
    const last = occurrences.length > OCCURRENCES ? shown.at(-1) : undefined;
    const listed = cases.slice(0, most);
    const path: Path = bugPath(projectId, bug.id);
    const isRegressed = bug.regressed && STILL_OPEN.includes(bug.status as never);
    const body = (
      <>
        <p class="over">
          Bug {bug.number}: {bugHeadline(bug)}
          {bug.sample ? (
            <>
              {" "}
              <Tag>sample</Tag>
            </>
          ) : null}
        </p>
        <h1>
          <Mark status={isRegressed ? "regressed" : bug.status} word={false} /> {bug.title}
        </h1>
        {into ? (
          <p class="message after">
            Merged into <a href={bugPath(projectId, into.id)}>bug {into.number}</a>: {into.title}
          </p>
        ) : null}{" "}
        {role === "viewer" || into ? null : statusForms(path, bug, visitor.name, csrf)}
        <div class="columns">
          {factsOf(projectId, bug, names, now)}
          {bug.description === "" ? null : (
            <section class="card padded">
              <h2 class="first">Description</h2>
              <pre class="text">{bug.description}</pre>
            </section>
          )}
        </div>
        {groupingOf(bug)}{" "}
        {listed.length === 0 ? null : (
          <>
            <h2>
              Tests{" "}
              <small>
                it is resolved when all of them have passed in three runs of {project.defaultBranch} in a row
              </small>
            </h2>
            {caseTable(projectId, listed)}
            {cases.length > most ? (
              <nav class="pages" aria-label="Pages of tests">
                <a href={`${path}?cases=${from === undefined ? 0 : listed.at(-1)!.number}`}>More tests</a>
              </nav>
            ) : null}
          </>
        )}{" "}
        {shown.length === 0 ? null : (
          <>
            <h2 id="occurrences">
              Where it occurred <small>{counted(bug.occurrences, "failure")}, newest first</small>
            </h2>
            {occurrenceTable(projectId, shown, names, now)}
          </>
        )}{" "}
        <Pager
          path={path}
          query={{ cursor: query.cursor }}
          cursor={last && writeCursor([last.runId, String(last.testCase)])}
        />{" "}
        {changesOf(bug, now)}
      </>
    );
    return { title: `Bug ${bug.number}: ${bug.title}`, body, section: "bugs" };
  }),

  form(onePath, { access: "member", fields: editForm }, async (context) => {
    const { project, params, fields } = context;
    await change(context, hold(bugReportPatch, toEdited(fields)), params.bugId);
    return new SeeOther(bugPath(project.id, params.bugId));
  }),

  form(
    `${onePath}/status`,
    { access: "member", fields: v.strictObject({ status: bugStatus, fixedInCommit: mayBeEmpty(text(200)) }) },
    async (context) => {
      const { project, params } = context;
      const { status, fixedInCommit } = context.fields;
      await change(context, fixedInCommit === undefined ? { status } : { status, fixedInCommit }, params.bugId);
      return new SeeOther(bugPath(project.id, params.bugId));
    },
  ),

  form(`${onePath}/take`, { access: "member" }, async (context) => {
    const { project, params, visitor } = context;
    await change(context, { assignee: visitor.name }, params.bugId);
    return new SeeOther(bugPath(project.id, params.bugId));
  }),

  page(
    `${onePath}/merge`,
    { access: "member", query: v.strictObject({ q: mayBeEmpty(text(200)) }) },
    async ({ sql, project, params, query: { q }, csrf }) => {
      const { id: projectId } = project;
      const bug = await find(sql, projectId, params.bugId);
      const path: Path = bugPath(projectId, bug.id);
      const number = q === undefined ? undefined : toNumber(q);
      const [named, titled] = await Promise.all([
        number === undefined ? undefined : selectBugByNumber(sql, projectId, number),
        selectBugReports(sql, projectId, {
          limit: 10,
          q: number === undefined ? q : undefined,
          status: q === undefined ? STILL_OPEN : undefined,
          sort: "newest",
        }),
      ]);
      const found: Pick<BugState, "id" | "number" | "title" | "status">[] =
        number === undefined ? titled.slice(0, 10) : named && named.mergedInto === null ? [named] : [];
      const others = found.filter(({ id }) => id !== bug.id);
      const body = (
        <>
          <h1>Merge bug {bug.number} into another</h1>
          <p class="after">
            <b>{bug.title}</b>
          </p>
          <p>
            Its {counted(bug.occurrences, "failure")} and all that it is known by become the other bug’s; it is
            resolved, and points to the other. This cannot be undone.
          </p>
          <form class="filters" action={`${path}/merge`}>
            <FilterText label="Number or title of the other bug" name="q" value={q} type="search" />
            <button>Search</button>
          </form>
          {others.length === 0 ? (
            <div class="card empty">
              <p>{q === undefined ? "No other bug is open." : "No other bug is like that."}</p>
            </div>
          ) : (
            <div class="card">
              <table>
                <caption class="visually-hidden">Bugs to merge it into</caption>
                <tbody>
                  {others.map((other) => (
                    <tr>
                      <td class="mark-cell">
                        <Mark status={other.status} />
                      </td>
                      <td class="long">
                        <a href={bugPath(projectId, other.id)}>
                          <b>Bug {other.number}</b> {other.title}
                        </a>
                      </td>
                      <td class="number">
                        <ActionForm
                          action={`${path}/merge`}
                          csrf={csrf}
                          label={`Merge into bug ${other.number}`}
                          kind="danger"
                          fields={<input type="hidden" name="into" value={other.id} />}
                        />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
          <p class="after">
            <a class="button" href={path}>
              Cancel
            </a>
          </p>
        </>
      );
      return { title: `Merge bug ${bug.number}`, body, section: "bugs" };
    },
  ),

  form(`${onePath}/merge`, { access: "member", fields: v.strictObject({ into: uuid }) }, async (context) => {
    const { project, params, fields } = context;
    await write(
      context,
      "member",
      (sql) => mergeBugs(sql, project.id, params.bugId, fields.into),
      ({ from, into }) => ({
        action: "bug.merged",
        subject: `Bug ${from.number}`,
        details: { projectId: project.id, bugReportId: from.id, into: into.id },
      }),
    );
    return new SeeOther(bugPath(project.id, fields.into));
  }),
];

type Changing = Parameters<typeof write>[0] & { project: { id: string } };

/** `bug`: its id, or how it is found in the transaction. */
const change = (context: Changing, patch: BugReportPatch, bug: string | ((sql: Tx) => Promise<string>)) =>
  write(
    context,
    "member",
    async (sql) => editBug(sql, context.project.id, typeof bug === "string" ? bug : await bug(sql), patch),
    ({ id, number }) => ({
      action: "bug.changed",
      subject: `Bug ${number}`,
      details: { projectId: context.project.id, bugReportId: id, fields: Object.keys(patch) },
    }),
  );
