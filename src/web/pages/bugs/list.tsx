/** The list of bugs of a project, with filters and triage. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { BUG_KEYS, type BugCondition, readBugSearch } from "../../../rules/bug_search.ts";
import { type SearchProblem, addSearchWords, toSearchWord } from "../../../rules/search_words.ts";
import { type BugReportSort, SEVERITIES } from "../../../schema/bug_reports.ts";
import { mayBeEmpty, text } from "../../../schema/fields.ts";
import { refuse } from "../../../schema/refusal.ts";
import { selectOccurrenceDays } from "../../../store/bug_evidence.ts";
import { type BugReportRow, countOpenBugs, selectBugByNumber, selectBugReports } from "../../../store/bug_reports.ts";
import { selectTestCaseNames } from "../../../store/test_cases.ts";
import { selectOwners, selectTaskSlugs } from "../../../store/filter_options.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { Empty, Pager } from "../../components/list.tsx";
import { MAX_CHOICES } from "../../components/filters.tsx";
import { Csrf } from "../../components/form.tsx";
import { Mark } from "../../components/status.tsx";
import { type ProjectRef, SeeOther, type View, form, page, type ProjectContext } from "../../site/page.ts";
import { toAddress, toQuery } from "../../site/paths.ts";
import { LIST_DAYS } from "./evidence.tsx";
import { BugSearch, bugSearchFields, chosenBugWords } from "./list_search.tsx";
import { TRIAGE_CHANGES, TRIAGE_NOTICES, bugRow, bugTable, triage, undoOf } from "./list_table.tsx";
import { STILL_OPEN, bugsPath, change } from "./shared.tsx";

const PAGE_SIZE = 20;

const listQuery = v.strictObject({
  ...bugSearchFields,
  cursor: mayBeEmpty(text(200)),
  // The last change: what was done to which bug, and how to undo it
  changed: v.optional(v.picklist(Object.keys(TRIAGE_NOTICES), "expected a known operation")),
  bug: v.optional(v.pipe(v.string(), v.regex(/^[1-9]\d{0,8}$/, "expected the number of a bug"))),
  undo: v.optional(v.picklist(Object.keys(TRIAGE_CHANGES), "expected a known operation")),
});

type ListQuery = v.InferOutput<typeof listQuery>;

/** Without a status, the list has the bugs that are not resolved or ignored. */
function toConditions(q: string | undefined): { conditions: BugCondition[] } | SearchProblem {
  const search = q === undefined ? { conditions: [] } : readBugSearch(q);
  if ("problem" in search || search.conditions.some(({ field }) => field === "status")) return search;
  return { conditions: [{ field: "status", is: STILL_OPEN }, ...search.conditions] };
}

/** By severity, regressed bugs come first, so the list is two keyset queries in sequence. */
async function selectList({ sql, project, query, cursors }: Context) {
  const projectId = project.id;
  const { q, sort, cursor } = query;
  const search = toConditions(q);
  if ("problem" in search) return { shown: [], next: undefined, problem: search.problem };
  const { conditions } = search;
  const by: BugReportSort = sort ?? "impact";
  const bySeverity = by === "severity";
  const list = `bugs ${projectId} ${by}`;
  const [part, ...after] = cursor === undefined ? [bySeverity ? "back" : ""] : cursors.read(list, cursor);
  const select = (regressed: boolean | undefined, limit: number, from: readonly string[]) =>
    selectBugReports(sql, projectId, {
      limit,
      conditions: regressed === undefined ? conditions : [...conditions, { field: "regressed", is: regressed }],
      sort: by,
      after: from.length > 0 ? from : undefined,
    });
  const first = part === "back" ? await select(true, PAGE_SIZE, after) : [];
  const rest =
    first.length > PAGE_SIZE
      ? []
      : await select(bySeverity ? false : undefined, PAGE_SIZE - first.length, part === "back" ? [] : after);
  const rows = [...first, ...rest];
  const shown = rows.slice(0, PAGE_SIZE);
  const last = rows.length > PAGE_SIZE ? shown.at(-1) : undefined;
  const lastKeys = last && [shown.length <= first.length && bySeverity ? "back" : "", last.key, String(last.number)];
  return { shown, next: lastKeys && cursors.write(list, lastKeys), problem: undefined };
}

/** Returns a headline such as "12 open bugs: 1 critical, 8 major; 2 regressed". */
function openOf(tally: Awaited<ReturnType<typeof countOpenBugs>>): { status: string; text: string } {
  const open = tally.reduce((sum, row) => sum + row.open, 0);
  const back = tally.reduce((sum, row) => sum + row.regressed, 0);
  if (open === 0) return { status: "passed", text: "No open bugs" };
  const parts = SEVERITIES.flatMap((severity) => {
    const found = tally.find((row) => row.severity === severity);
    return found ? [`${toCount(found.open)} ${severity}`] : [];
  });
  const text = `${counted(open, "open bug")}: ${parts.join(", ")}${back > 0 ? `; ${toCount(back)} regressed` : ""}`;
  return { status: back > 0 ? "regressed" : "open", text };
}

const moveForm = v.strictObject({
  do: v.pipe(v.string(), v.regex(/^[a-z]{4,8} [1-9]\d{0,8}$/, "expected a known operation")),
  back: v.pipe(v.string(), v.maxLength(6_000, "expected the address of the list")),
});

type Context = ProjectContext & { query: ListQuery };

/** `tests` has the names of the tests of bugs with a single test. */
async function loadList(context: Context) {
  const {
    sql,
    project: { id },
    now,
  } = context;
  const [{ shown, next, problem }, tally, tasks, owners] = await Promise.all([
    selectList(context),
    countOpenBugs(sql, id),
    selectTaskSlugs(sql, id, MAX_CHOICES + 1),
    selectOwners(sql, id, MAX_CHOICES + 1),
  ]);
  const ids = shown.map((bug) => bug.id);
  const testIds = shown.flatMap(({ testCaseIds }) => (testCaseIds.length === 1 ? testCaseIds : []));
  const [occurred, tests] = await Promise.all([
    selectOccurrenceDays(sql, id, ids, { now, days: LIST_DAYS }),
    selectTestCaseNames(sql, id, testIds),
  ]);
  return { bugs: shown, next, problem, tally, tasks, owners, days: Map.groupBy(occurred, ({ bugId }) => bugId), tests };
}

type ListData = Awaited<ReturnType<typeof loadList>>;

/** The part of the query that selects and orders bugs. */
const viewOf = ({ changed: _, bug: __, undo: ___, ...view }: ListQuery) => view;

const isFiltered = (query: ListQuery): boolean => {
  const { cursor: _, ...filters } = viewOf(query);
  return Object.values(filters).some(Boolean);
};

function NoBugs({ project, isFiltered }: { project: ProjectRef; isFiltered: boolean }): Html {
  if (isFiltered)
    return <Empty action={<a href={bugsPath(project.id)}>Show all open bugs</a>}>No bugs match the filters.</Empty>;
  return <Empty>No open bugs. Failures on {project.defaultBranch} create bugs automatically, grouped by cause.</Empty>;
}

/** The table of bugs; for members, as a form with buttons for triage. */
function Bugs({ context, data: { bugs, days, tests } }: { context: Context; data: ListData }): Html {
  const { project, query, role, visitor, csrf, now } = context;
  if (bugs.length === 0) return <NoBugs project={project} isFiltered={isFiltered(query)} />;
  const mayChange = role !== "viewer";
  const triageOf = mayChange ? (bug: BugReportRow) => triage(bug, visitor.name) : undefined;
  const testOf = ({ testCaseIds }: BugReportRow) =>
    testCaseIds.length === 1 ? tests.find((test) => test.id === testCaseIds[0]) : undefined;
  const rows = bugs.map((bug) =>
    bugRow(project.id, bug, { triageOf, days: days.get(bug.id) ?? [], test: testOf(bug), now }),
  );
  if (!mayChange) return bugTable(rows);
  return (
    <form method="post" action={`${bugsPath(project.id)}/triage`}>
      <Csrf token={csrf} />
      <input type="hidden" name="back" value={toQuery(viewOf(query))} />
      {bugTable(rows)}
    </form>
  );
}

/** Says what the last change did, with a button that reverts it. */
function Changed({ project, query, role, csrf }: Context): Html | null {
  const { changed, bug, undo } = query;
  if (changed === undefined || bug === undefined) return null;
  return (
    <form class="message good" role="status" method="post" action={`${bugsPath(project.id)}/triage`}>
      <Csrf token={csrf} />
      <input type="hidden" name="back" value={toQuery(viewOf(query))} />
      Bug {bug} {TRIAGE_NOTICES[changed]}.{" "}
      {undo === undefined || role === "viewer" ? null : (
        <button class="quiet" name="do" value={`${undo} ${bug}`}>
          Undo
        </button>
      )}
    </form>
  );
}

function listView(context: Context, data: ListData): View {
  const { project, query, role, visitor } = context;
  const path: Path = bugsPath(project.id);
  const open = openOf(data.tally);
  const body = (
    <>
      {Changed(context)}
      <h1>
        <Mark status={open.status} word={false} /> {open.text}
      </h1>
      <div class="meta quiet">
        <a href={toAddress(path, { q: toSearchWord("assignee", visitor.name) })}>assigned to me</a>
        <a href={`${path}?q=is:resolved&sort=lastSeenAt`}>resolved</a>
        <a href={`${path}?q=is:ignored`}>ignored</a> {role === "viewer" ? null : <a href={`${path}/new`}>new bug</a>}
      </div>
      <BugSearch
        {...{ path, query }}
        problem={data.problem}
        isFiltered={isFiltered(query)}
        tasks={data.tasks}
        owners={data.owners}
      />
      {data.problem === undefined ? <Bugs context={context} data={data} /> : null}
      <Pager path={path} query={viewOf(query)} cursor={data.next} />
    </>
  );
  return { title: "Bugs", body, section: "bugs", ...(data.problem === undefined ? {} : { status: 400 }) };
}

export const bugListPage = page(
  "/projects/:projectId/bugs",
  { access: "viewer", query: listQuery },
  async (context) => {
    const { query, project } = context;
    const chosen = chosenBugWords(query);
    if (chosen.length > 0) {
      const { sort, changed, bug, undo } = query;
      const q = addSearchWords(query.q ?? "", BUG_KEYS, chosen);
      return new SeeOther(toAddress(bugsPath(project.id), { q, sort, changed, bug, undo }));
    }
    return listView(context, await loadList(context));
  },
);

export const triageForm = form(
  "/projects/:projectId/bugs/triage",
  { access: "member", fields: moveForm },
  async (context) => {
    const { project, fields, visitor } = context;
    const [verb, number] = fields.do.split(" ") as [string, string];
    const patch = Object.hasOwn(TRIAGE_CHANGES, verb)
      ? TRIAGE_CHANGES[verb]!(visitor.name)
      : refuse(`There is no operation "${verb}"`);
    let undo: string | undefined;
    await change(context, patch, async (sql) => {
      const bug = (await selectBugByNumber(sql, project.id, Number(number))) ?? refuse(`There is no bug ${number}`);
      undo = undoOf(verb, bug);
      return bug.id;
    });
    const view = Object.fromEntries(new URLSearchParams(fields.back));
    return new SeeOther(toAddress(bugsPath(project.id), { ...view, changed: verb, bug: number, undo }));
  },
);
