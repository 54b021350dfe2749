/** The page of one test. */

import * as v from "valibot";
import { selectCommitsBetween } from "../../../store/commits.ts";
import type { Sql } from "../../../database/connect.ts";
import type { Html, Path } from "../../../http/html.ts";
import { readCaseFiles } from "../../../operations/attachments/read.ts";
import { readOnlyWith } from "../../../operations/executions/only_with.ts";
import { readHistory } from "../../../operations/health/case_history.ts";
import { readCaseVariants } from "../../../operations/health/case_variants.ts";
import { catchUp } from "../../../operations/health/catch_up.ts";
import { explainOwners } from "../../../operations/projects/owners.ts";
import { toSearchWord } from "../../../rules/search_words.ts";
import { numberOfTestCase } from "../../../rules/test_case_id.ts";
import { branchName, caseStatus, mayBeEmpty, text } from "../../../schema/fields.ts";
import { refuseAbsent } from "../../../schema/refusal.ts";
import { selectOpenBugsOfCase } from "../../../store/bug_cases.ts";
import {
  selectCaseMessage,
  selectCaseRecord,
  selectFirstBad,
  selectRunCompletedAt,
} from "../../../store/case_record.ts";
import { selectCaseWeeks } from "../../../store/case_weeks.ts";
import { selectExecutionNames } from "../../../store/execution_list.ts";
import { selectSlowerResults } from "../../../store/slower.ts";
import { type HistoryRow, type TestCaseRow, selectTestCase } from "../../../store/test_cases.ts";
import { selectVerifications } from "../../../store/verifications.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { FilterBar, FilterSelect, FilterText } from "../../components/filters.tsx";
import type { Choice } from "../../components/form.tsx";
import { Empty, Pager } from "../../components/list.tsx";
import { Mark, Tag } from "../../components/status.tsx";
import { Ago, Breakable } from "../../components/text.tsx";
import { type View, page, type Page, type ProjectContext } from "../../site/page.ts";
import { testPath, toAddress } from "../../site/paths.ts";
import { bulkChangeForm, cataloguePage } from "./catalogue.tsx";
import { ALL_RESULTS } from "./catalogue_tables.tsx";
import {
  COUNT_TIMEOUT_MS,
  careForms,
  onePath,
  quarantineNotice,
  quarantineTag,
  testsPath,
  ownerForm,
  quarantineForm,
  releaseForm,
} from "./changes.tsx";
import { Owners, type OwnerSources } from "./owners.tsx";
import {
  HISTORY_ROWS,
  type LastFailure,
  MAX_STACK_LENGTH,
  STRIP_LENGTH,
  type TestHistory,
  bugsOfCase,
  history,
  isFailure,
  lastFailure,
  LastResults,
} from "./results.tsx";
import { Variants } from "./variants.tsx";
import { FailuresByWeek, WEEKS } from "./weeks.tsx";
import { trustOf, whereItBegan, whyFlaky } from "./verdict.tsx";
import {
  SHOWN_VERIFICATIONS,
  Verifications,
  VerifyForm,
  cancelVerificationForm,
  verifyForm,
} from "./verifications.tsx";

const MAX_BUGS = 10;

const historyQuery = v.strictObject({
  status: mayBeEmpty(caseStatus),
  branch: mayBeEmpty(branchName),
  cursor: mayBeEmpty(text(200)),
});

/** Returns the UUID after this one, so that a page with an exclusive bound includes this one. */
const idBehind = (id: string): string => (BigInt(`0x${id.replaceAll("-", "")}`) + 1n).toString(16).padStart(32, "0");

/** Returns the newest failure from the loaded rows, or loads it if the record says that there was one. */
async function findLastFailure(
  sql: Sql,
  projectId: string,
  test: TestCaseRow,
  rows: readonly HistoryRow[],
): Promise<LastFailure | undefined> {
  let row = rows.find(isFailure);
  if (!row && test.lastFailedAt !== null) {
    // The run of the last failure is known, because the failure may be thousands of results back.
    const runId = await selectRunCompletedAt(sql, projectId, test.taskSlug, test.lastFailedAt);
    const query = { limit: 1, status: "failed", after: runId && idBehind(runId) } as const;
    row = (await readHistory(sql, projectId, test.id, query, { inAll: 2_000 })).rows[0];
  }
  if (!row) return undefined;
  const result = { runId: row.runId, number: numberOfTestCase(test.id) };
  const [failure, filesOf, onlyWithOf] = await Promise.all([
    selectCaseMessage(sql, projectId, test.id, row.runId, MAX_STACK_LENGTH),
    readCaseFiles(sql, projectId, [result]),
    readOnlyWith(sql, projectId, row.executionId, [test]),
  ]);
  return { row, failure, files: filesOf(result), onlyWith: onlyWithOf(test) };
}

type Query = v.InferOutput<typeof historyQuery>;

type Context = ProjectContext & { params: { testId: string }; query: Query };

const isUnfiltered = ({ status, branch, cursor }: Query): boolean =>
  status === undefined && branch === undefined && cursor === undefined;

/** `last` is the newest results of all branches, `listed` the results that match the filters. */
async function loadTest({ sql, fast, begin, project, params, query, cursors, now }: Context) {
  const { id: projectId } = project;
  await catchUp(sql, begin, projectId, COUNT_TIMEOUT_MS);
  const test = (await selectTestCase(fast, projectId, params.testId)) ?? refuseAbsent();
  const { status, branch, cursor } = query;
  const list = testPath(projectId, test.id);
  const [after] = cursor === undefined ? [] : cursors.read(list, cursor);
  const [last, record, bugs, filtered, ownerSource, variants, verifications, weeks] = await Promise.all([
    readHistory(sql, projectId, test.id, { limit: STRIP_LENGTH }),
    selectCaseRecord(sql, projectId, test.id),
    selectOpenBugsOfCase(sql, projectId, test.id, MAX_BUGS),
    isUnfiltered(query)
      ? undefined
      : readHistory(sql, projectId, test.id, { limit: HISTORY_ROWS, status, branch, after }),
    test.isOwnerSet || test.owners.length === 0 ? undefined : explainOwners(sql, projectId, test),
    readCaseVariants(sql, projectId, test),
    selectVerifications(sql, projectId, test.id, { limit: SHOWN_VERIFICATIONS }),
    selectCaseWeeks(sql, projectId, test.id, { now, weeks: WEEKS }),
  ]);
  const listed = filtered?.rows ?? last.rows.slice(0, HISTORY_ROWS);
  const next = filtered ? filtered.last : last.rows.length > HISTORY_ROWS ? listed.at(-1)!.runId : undefined;
  const firstBad = record && record.failing > 0 ? await selectFirstBad(sql, projectId, test.id) : undefined;
  const [good, bad] = [firstBad?.good?.commit, firstBad?.bad.commit];
  const suspects = good && bad && good !== bad ? await selectCommitsBetween(sql, projectId, { good, bad }) : [];
  const failure = await findLastFailure(sql, projectId, test, last.rows);
  const all = [...last.rows, ...listed, ...(failure ? [failure.row] : [])];
  const executionIds = all.map(({ executionId }) => executionId);
  const number = numberOfTestCase(test.id);
  const keyOf = ({ runId }: HistoryRow) => ({ runId, number });
  const [names, findSlower] = await Promise.all([
    selectExecutionNames(sql, projectId, executionIds),
    selectSlowerResults(sql, projectId, all.map(keyOf)),
  ]);
  const slowerOf = (row: HistoryRow) => findSlower(keyOf(row));
  return {
    test,
    record,
    bugs,
    last: last.rows,
    listed,
    next: next && cursors.write(list, [next]),
    firstBad,
    suspects,
    failure,
    names,
    slowerOf,
    ownerSource,
    variants,
    verifications,
    weeks,
  };
}

type TestData = Awaited<ReturnType<typeof loadTest>>;

type FactsProperties = { projectId: string; test: TestCaseRow; ownerSource: OwnerSources; now: Date };

const TestFacts = ({ projectId, test, ownerSource, now }: FactsProperties): Html => (
  <div class="meta quiet">
    {test.file === null ? null : (
      <code>
        <Breakable text={test.file} />
      </code>
    )}
    <a href={toAddress(testsPath(projectId), { q: toSearchWord("task", test.taskSlug) })}>{test.taskSlug}</a>
    {test.runs === 0 ? null : (
      <span>
        failed in {toCount(test.failures)} of {counted(test.runs, "result")} {ALL_RESULTS}
      </span>
    )}
    {test.lastRunAt === null ? null : (
      <span>
        last run <Ago at={test.lastRunAt} now={now} />
      </span>
    )}
    <span>
      <Owners projectId={projectId} test={test} source={ownerSource} />
    </span>
  </div>
);

const RESULT_OPTIONS: readonly Choice[] = [
  ["", "any"],
  ["passed", "passed"],
  ["failed", "failed"],
  ["skipped", "skipped"],
];

type HistoryProperties = { path: Path; query: Query; testHistory: TestHistory; next: string | undefined; now: Date };

function HistorySection({ path, query, testHistory, next, now }: HistoryProperties): Html {
  const none = next
    ? "No matches among the newest results. Continue with Next."
    : isUnfiltered(query)
      ? "No results yet."
      : "No results match the filters.";
  return (
    <>
      <h2 id="history">History</h2>
      <FilterBar path={path} isFiltered={!isUnfiltered(query)}>
        {[
          <FilterSelect label="Result" name="status" options={RESULT_OPTIONS} value={query.status} />,
          <FilterText label="Branch" name="branch" value={query.branch} />,
        ]}
      </FilterBar>
      {testHistory.rows.length === 0 ? <Empty>{none}</Empty> : history(testHistory, now)}
      <Pager path={path} query={query} cursor={next} />
    </>
  );
}

/** Returns the newest tested commit of the default branch. */
const lastCommitOf = (rows: readonly HistoryRow[], defaultBranch: string): string | null =>
  rows.find(({ branch, commit }) => branch === defaultBranch && commit !== null)?.commit ?? null;

function testView({ project, query, role, csrf, now }: Context, data: TestData): View {
  const { id: projectId, defaultBranch: branch } = project;
  const {
    test,
    record,
    bugs,
    last,
    listed,
    next,
    firstBad,
    suspects,
    failure,
    names,
    slowerOf,
    ownerSource,
    variants,
  } = data;
  const { verifications, weeks } = data;
  const testHistory: TestHistory = { projectId, rows: last, names, slowerOf };
  const trust = trustOf({ test, record, rows: last, firstBad }, branch, now);
  const path: Path = testPath(projectId, test.id);
  const body = (
    <>
      <h1>
        <Breakable text={shownCaseTitle(test)} /> {quarantineTag(test, now)}
        {test.sample ? <Tag>sample</Tag> : null}
      </h1>
      <p class={`verdict ${trust.status}`}>
        <Mark status={trust.status} word={false} /> {trust.text}
      </p>
      <TestFacts projectId={projectId} test={test} ownerSource={ownerSource} now={now} />
      {role === "viewer"
        ? null
        : careForms(path, test, {
            ...{ csrf, now },
            verifyForm: <VerifyForm base={path} test={test} csrf={csrf} commit={lastCommitOf(last, branch)} />,
          })}
      {quarantineNotice(test, now)}
      <LastResults testHistory={testHistory} test={test} />
      <FailuresByWeek weeks={weeks} />
      <Variants projectId={projectId} test={test} found={variants} now={now} />
      <div class="columns">
        {whereItBegan(projectId, firstBad && { ...firstBad, suspects }, branch, now)}
        {whyFlaky(test, record, now)}
      </div>
      <Verifications
        projectId={projectId}
        base={path}
        verifications={verifications}
        csrf={role === "viewer" ? undefined : csrf}
        now={now}
      />
      {bugsOfCase(projectId, bugs)}
      {role === "viewer" ? null : (
        <p class="hint after">
          <a href={toAddress(`/projects/${projectId}/bugs/new`, { test: test.id })}>Report a bug for this test</a>
        </p>
      )}
      {failure ? lastFailure(testHistory, failure, now) : null}
      <HistorySection path={path} query={query} testHistory={{ ...testHistory, rows: listed }} next={next} now={now} />
    </>
  );
  return { title: test.name, body, section: "tests" };
}

const testPage = page(onePath, { access: "viewer", query: historyQuery }, async (context) =>
  testView(context, await loadTest(context)),
);

export const tests: Page[] = [
  cataloguePage,
  bulkChangeForm,
  testPage,
  quarantineForm,
  releaseForm,
  ownerForm,
  verifyForm,
  cancelVerificationForm,
];
