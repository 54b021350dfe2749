/** Failed cases with their names, and the files of the tests of a run, which show whether a failure outside of tests has ended. */

import type { PlacedCase } from "../rules/identity.ts";
import type { BugStatus } from "../schema/bug_reports.ts";
import { type Sql, toNumberArray } from "../database/connect.ts";
import { caseOfResult, failedResultsOf, lettersOf } from "./packing.ts";
import { isLiveBug } from "./predicates.ts";

/** A run has few failures outside of tests; of more failures than these the first are read. */
const MAX_FAILED = 5_000;

/** The failed results of a run. `shard` null: the upload was not for one. */
export const selectFailuresOfRun = (sql: Sql, projectId: string, runId: string) => sql<
  (PlacedCase & { testCase: number; attempt: number; shard: number | null })[]
>`
  select f.number as "testCase", f.attempt, c.suite, c.name, c.file, d.shard
  from (
    select * from ${failedResultsOf(sql, projectId, sql`select ${runId}::uuid as id`)} f order by f.number limit ${MAX_FAILED}::int) f
  cross join lateral ${caseOfResult(sql, projectId, sql`f.number`)} c
  left join lateral (
    select shard from case_detail
    where project_id = ${projectId} and run_id = ${runId} and test_case = f.number and attempt = f.attempt offset 0) d on true
  order by f.number`;

export const selectNamedCases = (sql: Sql, projectId: string, numbers: readonly number[]) => sql<
  (PlacedCase & { testCase: number })[]
>`
  select r.number as "testCase", c.suite, c.name, c.file from unnest(${toNumberArray(numbers)}::int[]) as r (number)
  cross join lateral ${caseOfResult(sql, projectId, sql`r.number`)} c order by r.number`;

/** The test cases that ran in a run, and `fresh` ones. */
export const selectCasesThatRan = (
  sql: Sql,
  projectId: string,
  runId: string | undefined,
  fresh: readonly number[],
) => sql<PlacedCase[]>`
  select c.suite, c.name, c.file from (
    select r.number from ${lettersOf(sql, projectId, sql`select ${runId ?? null}::uuid as id`)} r
    where r.letter not in ('s', 'S')
    union
    select number from unnest(${toNumberArray(fresh)}::int[]) as r (number)) r
  cross join lateral ${caseOfResult(sql, projectId, sql`r.number`)} c`;

/** Live bugs that Assay has opened, all of whose test cases are among these. */
export const selectBugsOnlyOf = (sql: Sql, projectId: string, numbers: readonly number[]) => sql<
  { id: string; status: BugStatus }[]
>`
  select b.id, b.status from bug_report b
  where b.project_id = ${projectId} and ${isLiveBug(sql, sql`b`)} and b.source = 'automatic'
    and b.id in (
      select bug_report_id from bug_case
      where project_id = ${projectId} and test_case = any(${toNumberArray(numbers)}::int[]))
    and not exists (
      select from bug_case k where k.project_id = b.project_id and k.bug_report_id = b.id
        and k.test_case <> all(${toNumberArray(numbers)}::int[]))
  order by b.id`;
