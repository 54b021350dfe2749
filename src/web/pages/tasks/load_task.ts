/** Loads the page of a task. */

import * as v from "valibot";
import type { Sql } from "../../../database/connect.ts";
import { absent } from "../../../http/problem.ts";
import { readCaseFiles } from "../../../operations/attachments/read.ts";
import { findTask, readLog, type TaskAddress } from "../../../operations/executions/logs.ts";
import { numberOfTestCase } from "../../../rules/test_case_id.ts";
import { mayBeEmpty, text, uuid } from "../../../schema/fields.ts";
import { selectRunFiles } from "../../../store/attachments.ts";
import { type CaseResultRow, selectCaseResults } from "../../../store/case_results.ts";
import { selectStoredGates } from "../../../store/gate.ts";
import { selectSlowerResults, selectSlowerTestsOfRun } from "../../../store/slower.ts";
import { selectTestRun, selectUploadsOfRun } from "../../../store/test_runs.ts";
import { readLeases } from "./attempts.tsx";
import { MAX_UPLOADS } from "./reports.tsx";

const PAGE_SIZE = 50;

/** Maximum number of files of the run as a whole. */
const MAX_RUN_FILES = 20;

/** Maximum number of tests that are named as slower than usual. */
const MAX_SLOWER_TESTS = 10;

/** Size of the end of the log below the results, in bytes. */
const TAIL_BYTES = 8_192;

export const STATUSES = ["failed", "flaky", "passed", "skipped"] as const;

const CURSOR = /^([01])\.(\d{1,9})$/;

export const taskQuery = v.strictObject({
  status: mayBeEmpty(v.picklist(STATUSES, "expected a status")),
  q: mayBeEmpty(text(200)),
  case: v.optional(uuid),
  cursor: v.optional(
    v.pipe(
      v.string(),
      v.check((value) => CURSOR.test(value), "expected a link of this page"),
    ),
  ),
});

export type TaskQuery = v.InferOutput<typeof taskQuery>;

type LoadedRun = { projectId: string; run: { id: string; untrusted: boolean } | undefined };

/** Returns a page of results, or the only result of `case`, and the cursor of the next page. */
async function loadResults(
  sql: Sql,
  { projectId, run }: LoadedRun,
  { status, q, cursor, case: testCaseId }: TaskQuery,
): Promise<{ results: readonly CaseResultRow[]; next: string | undefined }> {
  const isSingle = testCaseId !== undefined;
  const limit = isSingle ? 1 : PAGE_SIZE;
  const filter = {
    limit,
    q,
    status: status === "flaky" ? ("passed" as const) : status,
    flaky: status === "flaky" ? true : undefined,
    testCase: isSingle ? numberOfTestCase(testCaseId) : undefined,
    after: CURSOR.exec(cursor ?? "")?.slice(1),
  };
  const rows = run === undefined ? [] : await selectCaseResults(sql, projectId, run, filter);
  const results = rows.slice(0, limit).filter((row) => !isSingle || row.testCaseId === testCaseId);
  const last = rows.length > limit && !isSingle ? results.at(-1) : undefined;
  return { results, next: last && `${last.rank}.${last.number}` };
}

export async function loadTask(sql: Sql, key: TaskAddress, query: TaskQuery) {
  const { projectId, executionId, taskSlug } = key;
  const [{ execution, task }, run] = await Promise.all([
    findTask(sql, key),
    selectTestRun(sql, projectId, executionId, taskSlug),
  ]);
  const runId = run?.id;
  const [{ results, next }, uploads, log, leases, files, gates] = await Promise.all([
    loadResults(sql, { projectId, run }, query),
    run ? selectUploadsOfRun(sql, projectId, run.id, MAX_UPLOADS) : [],
    task.runner === null ? undefined : readLog(sql, key, {}, TAIL_BYTES),
    task.runner === null ? [] : readLeases(sql, key),
    run && query.case === undefined ? selectRunFiles(sql, projectId, run.id, MAX_RUN_FILES) : [],
    run ? selectStoredGates(sql, projectId, [run.id]) : undefined,
  ]);
  if (query.case !== undefined && results.length === 0) absent();
  const isFirstPage = query.case === undefined && query.cursor === undefined;
  const keyOf = ({ number }: CaseResultRow) => ({ runId: runId ?? "", number });
  const keys = runId === undefined ? [] : results.map(keyOf);
  const [filesOf, slowerOf, slowerTests] = await Promise.all([
    readCaseFiles(sql, projectId, keys),
    selectSlowerResults(sql, projectId, keys),
    runId !== undefined && isFirstPage ? selectSlowerTestsOfRun(sql, projectId, runId, MAX_SLOWER_TESTS) : [],
  ]);
  return {
    ...{ execution, task, run, results, next, uploads, log, leases, files, slowerTests },
    gates: (run && gates?.get(run.id)) ?? [],
    filesOf: (row: CaseResultRow) => filesOf(keyOf(row)),
    slowerOf: (row: CaseResultRow) => slowerOf(keyOf(row)),
  };
}

export type TaskData = Awaited<ReturnType<typeof loadTask>>;
