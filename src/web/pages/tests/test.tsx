/** The page of one test. */

import * as v from "valibot";
import type { Sql } from "../../../database/connect.ts";
import type { Path } from "../../../http/html.ts";
import { readHistory } from "../../../operations/health/case_history.ts";
import { catchUp } from "../../../operations/health/catch_up.ts";
import { branchName, caseStatus, mayBeEmpty, text } from "../../../schema/fields.ts";
import { refuseAbsent } from "../../../schema/refusal.ts";
import { selectOpenBugsOfCase } from "../../../store/bug_reports.ts";
import {
  selectCaseMessage,
  selectCaseRecord,
  selectFirstBad,
  selectRunCompletedAt,
} from "../../../store/case_record.ts";
import { selectExecutionNames } from "../../../store/execution_list.ts";
import { type HistoryRow, type TestCaseRow, selectTestCase } from "../../../store/test_cases.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { FilterBar, FilterSelect, FilterText } from "../../components/filters.tsx";
import { Pager } from "../../components/pager.tsx";
import { Mark, Tag } from "../../components/status.tsx";
import { Ago, Breakable } from "../../components/text.tsx";
import { PART, readCursor } from "../../site/cursor.ts";
import { page } from "../../site/page.ts";
import { testPath, toAddress } from "../../site/paths.ts";
import { ALL_RESULTS } from "./catalogue_tables.tsx";
import { COUNT_TIMEOUT_MS, careForms, onePath, quarantineNotice, testsPath } from "./changes.tsx";
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
import { trustOf, whereItBegan, whyFlaky } from "./verdict.tsx";

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
  return row && { row, failure: await selectCaseMessage(sql, projectId, test.id, row.runId, MAX_STACK_LENGTH) };
}

export const testPage = page(onePath, { access: "viewer", query: historyQuery }, async (context) => {
  const { sql, fast, begin, project, params, query, role, csrf, now } = context;
  const { id: projectId, defaultBranch: branch } = project;
  await catchUp(sql, begin, projectId, COUNT_TIMEOUT_MS);
  const test = (await selectTestCase(fast, projectId, params.testId)) ?? refuseAbsent();
  const { status, branch: on, cursor } = query;
  const isPlain = status === undefined && on === undefined && cursor === undefined;
  const [after] = readCursor(cursor, [PART.id]) ?? [];
  const [last, record, bugs, listed] = await Promise.all([
    readHistory(sql, projectId, test.id, { limit: STRIP_LENGTH }),
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
  const testHistory: TestHistory = { projectId, rows: last.rows, names };
  const trust = trustOf({ test, record, rows: last.rows, firstBad }, branch, now);
  const path: Path = testPath(projectId, test.id);
  const body = (
    <>
      <h1>
        <Breakable text={shownCaseTitle(test)} /> {test.quarantine ? <Tag>quarantined</Tag> : null}
        {test.sample ? <Tag>sample</Tag> : null}
      </h1>
      <p class={`verdict ${trust.status}`}>
        <Mark status={trust.status} word={false} /> {trust.text}
      </p>
      <div class="meta quiet">
        {test.file === null ? null : (
          <code>
            <Breakable text={test.file} />
          </code>
        )}

        <a href={toAddress(testsPath(projectId), { task: test.taskSlug })}>{test.taskSlug}</a>

        {test.runs === 0 ? null : (
          <span>
            failed {toCount(test.failures)} of all {counted(test.runs, "result")} {ALL_RESULTS}
          </span>
        )}

        {test.lastRunAt === null ? null : (
          <span>
            last run <Ago at={test.lastRunAt} now={now} />
          </span>
        )}

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
      {role === "viewer" ? null : careForms(path, test, csrf)}
      {quarantineNotice(test, now)}
      <LastResults testHistory={testHistory} test={test} />
      <div class="columns">
        {whereItBegan(projectId, firstBad, branch, now)}
        {whyFlaky(test, record, branch, now)}
      </div>
      {bugsOfCase(projectId, bugs)}
      {role === "viewer" ? null : (
        <p class="hint after">
          <a href={toAddress(`/projects/${projectId}/bugs/new`, { test: test.id })}>Report a bug for this test</a>
        </p>
      )}
      {failure ? lastFailure(testHistory, failure, now) : null}
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
      </FilterBar>
      {shown.length === 0 ? (
        <div class="card empty">
          <p>
            {next
              ? "No matches among the newest results. Continue with Next."
              : isPlain
                ? "No results yet."
                : "No results match the filters."}
          </p>
        </div>
      ) : (
        history({ ...testHistory, rows: shown }, now)
      )}
      <Pager path={path} query={{ status, branch: on, cursor }} cursor={next} />
    </>
  );
  return { title: test.name, body, section: "tests" };
});
