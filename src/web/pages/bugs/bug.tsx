/** The page of one bug. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { readCaseFiles } from "../../../operations/attachments/read.ts";
import { readOnlyWith } from "../../../operations/executions/only_with.ts";
import type { BugReportDetail } from "../../../schema/bug_reports.ts";
import { mayBeEmpty, text } from "../../../schema/fields.ts";
import { selectBugCases } from "../../../store/bug_cases.ts";
import { selectNewestFailure, selectOccurrenceDays } from "../../../store/bug_evidence.ts";
import { selectOccurrences } from "../../../store/bug_occurrences.ts";
import { selectBugState } from "../../../store/bug_reports.ts";
import { selectExecutionNames } from "../../../store/execution_list.ts";
import { selectTestCaseNames } from "../../../store/test_cases.ts";
import { counted } from "../../../wording/numbers.ts";
import { Pager } from "../../components/list.tsx";
import { Mark, Tag, wordOf } from "../../components/status.tsx";
import { type ProjectRef, type View, page, type Page, type ProjectContext } from "../../site/page.ts";
import { bugPath } from "../../site/paths.ts";
import { CulpritSection, loadBugSearch, cancelSearchForm, searchForm } from "./culprit.tsx";
import { statusForms, editBugForm, newBugForm, newBugPage, statusForm, takeForm } from "./edit.tsx";
import { DAYS, NewestFailureCard, OccurrenceChart } from "./evidence.tsx";
import { factsOf } from "./facts.tsx";
import { changesOf, groupingOf } from "./grouping.tsx";
import { bugListPage, triageForm } from "./list.tsx";
import { mergeForm, mergePage } from "./merge.tsx";
import { caseTable, occurrenceTable } from "./occurrences.tsx";
import { STILL_OPEN, find, onePath } from "./shared.tsx";

const MAX_OCCURRENCES = 15;

const MAX_CASES = 10;

const MAX_ALL_CASES = 50;

const bugQuery = v.strictObject({ cursor: mayBeEmpty(text(200)), cases: mayBeEmpty(text(200)) });

const isRegressed = ({ regressed, status }: BugReportDetail): boolean =>
  regressed && STILL_OPEN.includes(status as never);

function bugHeadline(bug: BugReportDetail): string {
  const { status, severity, assignee, occurrences } = bug;
  const parts = [
    isRegressed(bug) ? `came back, ${wordOf(status)}` : wordOf(status),
    severity,
    assignee === null ? "not assigned" : `assigned to ${assignee}`,
    occurrences === 0 ? "never seen" : counted(occurrences, "failure"),
  ];
  return parts.join(", ");
}

type Query = v.InferOutput<typeof bugQuery>;

type Context = ProjectContext & { params: { bugId: string }; query: Query };

async function loadBug({ sql, fast, project, params, query, cursors, now }: Context) {
  const { id: projectId } = project;
  const bug = await find(sql, projectId, params.bugId);
  const path = bugPath(projectId, bug.id);
  const casesList = `${path} cases`;
  const after = query.cursor === undefined ? undefined : (cursors.read(path, query.cursor) as [string, string]);
  const [from] = query.cases === undefined ? [] : cursors.read(casesList, query.cases);
  const maxCases = from === undefined ? MAX_CASES : MAX_ALL_CASES;
  const isFirstPage = query.cursor === undefined;
  const [newest, occurrenceDays, occurrences, cases, into, found] = await Promise.all([
    isFirstPage ? selectNewestFailure(sql, projectId, bug.id) : undefined,
    isFirstPage ? selectOccurrenceDays(sql, projectId, [bug.id], { now, days: DAYS }) : [],
    selectOccurrences(sql, projectId, bug.id, MAX_OCCURRENCES, after),
    selectBugCases(sql, projectId, bug.id, maxCases, Number(from ?? 0)),
    bug.mergedInto === null ? undefined : selectBugState(fast, projectId, bug.mergedInto),
    isFirstPage && bug.culprit !== null ? loadBugSearch(sql, projectId, bug.id) : undefined,
  ]);
  const [filesOf, onlyWithOf] = await Promise.all([
    readCaseFiles(sql, projectId, newest ? [newest] : []),
    newest ? readOnlyWith(sql, projectId, newest.executionId, [newest]) : undefined,
  ]);
  const shown = occurrences.slice(0, MAX_OCCURRENCES);
  const executionIds = [...shown.map((row) => row.executionId), bug.firstExecutionId, bug.lastExecutionId];
  const testIds = shown.map(({ testCaseId }) => testCaseId);
  const [builds, testNames] = await Promise.all([
    selectExecutionNames(sql, projectId, executionIds),
    selectTestCaseNames(sql, projectId, testIds),
  ]);
  const last = occurrences.length > MAX_OCCURRENCES ? shown.at(-1) : undefined;
  const shownCases = cases.slice(0, maxCases);
  return {
    bug,
    newest,
    files: newest ? filesOf(newest) : [],
    onlyWith: newest ? onlyWithOf!(newest) : [],
    occurrenceDays,
    occurrences: shown,
    next: last && cursors.write(path, [last.runId, String(last.testCase)]),
    cases: shownCases,
    /** The first link starts again with a longer list. */
    nextCases:
      cases.length > maxCases
        ? cursors.write(casesList, [String(from === undefined ? 0 : shownCases.at(-1)!.number)])
        : undefined,
    into,
    found,
    isFirstPage,
    names: { builds, tests: new Map(testNames.map((test) => [test.number, test])) },
  };
}

type BugData = Awaited<ReturnType<typeof loadBug>>;

const bugTitle = ({ bug, into }: Pick<BugData, "bug" | "into">, projectId: string): Html => (
  <>
    <p class="over">
      Bug {bug.number}: {bugHeadline(bug)}
      {bug.sample ? [" ", <Tag>sample</Tag>] : null}
    </p>
    <h1>
      <Mark status={isRegressed(bug) ? "regressed" : bug.status} word={false} /> {bug.title}
    </h1>
    {into ? (
      <p class="message after">
        Merged into <a href={bugPath(projectId, into.id)}>bug {into.number}</a>: {into.title}
      </p>
    ) : null}
  </>
);

function Tests({ project, data }: { project: ProjectRef; data: BugData }): Html | null {
  const { bug, cases, nextCases } = data;
  if (cases.length === 0) return null;
  return (
    <>
      <h2>
        Tests{" "}
        <small>resolved automatically when all of them pass in three consecutive runs of {project.defaultBranch}</small>
      </h2>
      {caseTable(project.id, cases)}
      {nextCases === undefined ? null : (
        <nav class="pages" aria-label="Pages of tests">
          <a href={`${bugPath(project.id, bug.id)}?cases=${nextCases}`}>More tests</a>
        </nav>
      )}
    </>
  );
}

function Occurrences({ projectId, data, now }: { projectId: string; data: BugData; now: Date }): Html | null {
  const { bug, occurrences, names } = data;
  if (occurrences.length === 0) return null;
  return (
    <>
      <h2 id="occurrences">
        Occurrences <small>{counted(bug.occurrences, "failure")}, newest first</small>
      </h2>
      {occurrenceTable(projectId, occurrences, names, now)}
    </>
  );
}

function bugView({ project, query, role, visitor, csrf, now }: Context, data: BugData): View {
  const { id: projectId } = project;
  const { bug, newest, files, onlyWith, occurrenceDays, next, into, found, isFirstPage, names } = data;
  const path: Path = bugPath(projectId, bug.id);
  const body = (
    <>
      {bugTitle(data, projectId)}
      {role === "viewer" || into ? null : statusForms(path, bug, visitor.name, csrf)}
      {isFirstPage ? (
        <CulpritSection
          projectId={projectId}
          bug={bug}
          found={found}
          csrf={role === "viewer" ? undefined : csrf}
          now={now}
        />
      ) : null}
      {newest ? (
        <NewestFailureCard projectId={projectId} failure={newest} files={files} onlyWith={onlyWith} now={now} />
      ) : null}
      {occurrenceDays.length === 0 ? null : <OccurrenceChart days={occurrenceDays} now={now} />}
      <div class="columns">
        {factsOf(projectId, bug, names, now)}
        {bug.description === "" ? null : (
          <section class="card padded">
            <h2 class="first">Description</h2>
            <pre class="text">{bug.description}</pre>
          </section>
        )}
      </div>
      <Tests project={project} data={data} />
      <Occurrences projectId={projectId} data={data} now={now} />
      <Pager path={path} query={{ cursor: query.cursor }} cursor={next} />
      {changesOf(bug, now)}
      {groupingOf(bug)}
    </>
  );
  const isRunning = found?.search.status === "running";
  return {
    ...{ title: `Bug ${bug.number}: ${bug.title}`, body, section: "bugs" },
    ...(isRunning ? { live: `${path}/live` } : {}),
  };
}

const bugPage = page(onePath, { access: "viewer", query: bugQuery }, async (context) =>
  bugView(context, await loadBug(context)),
);

export const bugs: Page[] = [
  bugListPage,
  triageForm,
  newBugPage,
  newBugForm,
  bugPage,
  editBugForm,
  statusForm,
  takeForm,
  mergePage,
  mergeForm,
  searchForm,
  cancelSearchForm,
];
