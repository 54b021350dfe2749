/** The page of one bug. */

import * as v from "valibot";
import { type Html, type Path, safeUrl } from "../../../http/html.ts";
import type { BugReportDetail } from "../../../schema/bug_reports.ts";
import { mayBeEmpty, text } from "../../../schema/fields.ts";
import { selectNewestFailure, selectOccurrenceDays } from "../../../store/bug_evidence.ts";
import { selectBugCases, selectBugState, selectOccurrences } from "../../../store/bug_reports.ts";
import { type ExecutionName, selectExecutionNames } from "../../../store/execution_list.ts";
import { selectTestCaseNames } from "../../../store/test_cases.ts";
import { counted } from "../../../wording/numbers.ts";
import { executionName } from "../../../wording/execution_name.ts";
import { Pager } from "../../components/pager.tsx";
import { Mark, Tag, wordOf } from "../../components/status.tsx";
import { Ago, Commit } from "../../components/text.tsx";
import { PART, readCursor, writeCursor } from "../../site/cursor.ts";
import { page } from "../../site/page.ts";
import { bugPath, executionPath } from "../../site/paths.ts";
import { statusForms } from "./edit.tsx";
import { DAYS, NewestFailureCard, OccurrenceChart } from "./evidence.tsx";
import { changesOf, groupingOf } from "./grouping.tsx";
import { caseTable, occurrenceTable } from "./occurrences.tsx";
import { STILL_OPEN, find, onePath } from "./shared.tsx";

const OCCURRENCES = 15;

const CASES = 10;

const ALL_CASES = 50;

const bugQuery = v.strictObject({ cursor: mayBeEmpty(text(200)), cases: mayBeEmpty(text(200)) });

function bugHeadline(bug: BugReportDetail): string {
  const { status, severity, regressed, assignee, occurrences } = bug;
  const parts = [
    regressed && STILL_OPEN.includes(status as never) ? `came back, ${wordOf(status)}` : wordOf(status),
    severity,
    assignee === null ? "not assigned" : `assigned to ${assignee}`,
    occurrences === 0 ? "never seen" : counted(occurrences, "failure"),
  ];
  return parts.join(", ");
}

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
          ", in an execution that has been deleted"
        )}
      </>
    );
  return (
    <dl class="facts card padded">
      {fact("First seen", at(bug.firstSeenAt, bug.firstExecutionId))}

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
      )}

      {fact("Resolved", bug.resolvedAt === null ? null : <Ago at={bug.resolvedAt} now={now} />)}

      {fact("Fixed in", bug.fixedInCommit === null ? null : <Commit hash={bug.fixedInCommit} />)}

      {fact("Tasks", bug.taskSlugs.length === 0 ? null : bug.taskSlugs.join(", "))}

      {fact("Labels", bug.labels.length === 0 ? null : <>{bug.labels.map((label) => [<Tag>{label}</Tag>, " "])}</>)}

      {fact(
        "External link",
        bug.externalUrl === null ? null : external ? (
          <a class="long" href={external} rel="noopener noreferrer">
            {bug.externalUrl}
          </a>
        ) : (
          bug.externalUrl
        ),
      )}

      {fact(
        "Opened",
        <>
          {bug.source === "manual" ? "manual" : "automatic"}, <Ago at={bug.createdAt} now={now} />
        </>,
      )}
    </dl>
  );
}

export const bugPage = page(onePath, { access: "viewer", query: bugQuery }, async (context) => {
  const { sql, fast, project, params, query, role, visitor, csrf, now } = context;
  const { id: projectId } = project;
  const bug = await find(sql, projectId, params.bugId);
  const after = readCursor(query.cursor, [PART.id, PART.number]) as [string, string] | undefined;
  const [from] = readCursor(query.cases, [PART.number]) ?? [];
  const most = from === undefined ? CASES : ALL_CASES;
  const isFirstPage = query.cursor === undefined;
  const [newest, occurrenceDays, occurrences, cases, into] = await Promise.all([
    isFirstPage ? selectNewestFailure(sql, projectId, bug.id) : undefined,
    isFirstPage ? selectOccurrenceDays(sql, projectId, [bug.id], { now, days: DAYS }) : [],
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
      ) : null}
      {role === "viewer" || into ? null : statusForms(path, bug, visitor.name, csrf)}
      {newest ? <NewestFailureCard projectId={projectId} failure={newest} now={now} /> : null}
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
      {listed.length === 0 ? null : (
        <>
          <h2>
            Tests{" "}
            <small>
              resolved automatically when all of them pass in three consecutive runs of {project.defaultBranch}
            </small>
          </h2>
          {caseTable(projectId, listed)}
          {cases.length > most ? (
            <nav class="pages" aria-label="Pages of tests">
              <a href={`${path}?cases=${from === undefined ? 0 : listed.at(-1)!.number}`}>More tests</a>
            </nav>
          ) : null}
        </>
      )}
      {shown.length === 0 ? null : (
        <>
          <h2 id="occurrences">
            Occurrences <small>{counted(bug.occurrences, "failure")}, newest first</small>
          </h2>
          {occurrenceTable(projectId, shown, names, now)}
        </>
      )}
      <Pager
        path={path}
        query={{ cursor: query.cursor }}
        cursor={last && writeCursor([last.runId, String(last.testCase)])}
      />
      {changesOf(bug, now)}
      {groupingOf(bug)}
    </>
  );
  return { title: `Bug ${bug.number}: ${bug.title}`, body, section: "bugs" };
});
