/** Reads the stored results that a search for a culprit uses as evidence. */

import type { Failure } from "../rules/fingerprint.ts";
import { blockOf } from "../rules/merge.ts";
import { type Sql, toTextArray, type Tx } from "../database/connect.ts";
import { defaultBranchOf } from "./default_branch.ts";
import { flakeResultsOf, isKnownFlaky } from "./health.ts";
import { executionsOfCommit } from "./commits.ts";
import { ownersJson } from "./owners.ts";
import { isFromOutsideCode, isOnDefault } from "./predicates.ts";

export type SearchedBug = {
  number: number;
  mergedInto: string | null;
  sample: boolean;
  /** The kinds of its fingerprints. */
  kinds: string[];
};

/** Locks a bug, so that no other search of it starts before the end of the transaction. */
export const lockSearchedBug = async (sql: Tx, projectId: string, id: string): Promise<SearchedBug | undefined> => {
  const [row] = await sql<SearchedBug[]>`
    select b.number, b.merged_into as "mergedInto", b.sample,
      (select coalesce(json_agg(distinct f.kind), '[]') from bug_fingerprint f
        where f.project_id = b.project_id and f.bug_report_id = b.id) as kinds
    from bug_report b where b.project_id = ${projectId} and b.id = ${id} for no key update of b`;
  return row;
};

export type SearchedCase = {
  number: number;
  id: string;
  taskSlug: string;
  suite: string;
  name: string;
  file: string | null;
  owners: string[];
  isFlaky: boolean;
  /** Number of its recent results on sound code that failed without a cause in the code. */
  flakeFailures: number;
  flakeResults: number;
};

const caseColumns = (sql: Sql) => sql`
  c.number, c.id, c.task_slug as "taskSlug", c.suite, c.name, c.file, ${ownersJson(sql, sql`c`)} as owners,
  ${isKnownFlaky(sql)} as "isFlaky", coalesce(h.flake_failures, 0) as "flakeFailures",
  greatest(0, ${flakeResultsOf(sql)} - coalesce(h.failing, 0)) as "flakeResults"`;

/** The first test cases of a bug. */
export const selectCasesOfBug = (sql: Sql, projectId: string, bugId: string, limit: number) => sql<SearchedCase[]>`
  select ${caseColumns(sql)}
  from (
    select test_case from bug_case where project_id = ${projectId} and bug_report_id = ${bugId}
    order by test_case limit ${limit}) k
  join test_case c on c.project_id = ${projectId} and c.number = k.test_case
  left join case_health h on h.project_id = ${projectId} and h.test_case = k.test_case
  order by c.number`;

export const selectSearchedCase = async (
  sql: Sql,
  projectId: string,
  testCase: number,
): Promise<SearchedCase | undefined> => {
  const [row] = await sql<SearchedCase[]>`
    select ${caseColumns(sql)} from test_case c
    left join case_health h on h.project_id = ${projectId} and h.test_case = c.number
    where c.project_id = ${projectId} and c.number = ${testCase}`;
  return row;
};

/** Maximum number of results that are searched for a range. */
const MAX_RANGE_RESULTS = 500;

type RangeRow = { executionId: string; commit: string | null; isPassed: boolean; isBug: boolean };

/** The last results of a test case on the default branch, newest first, without outages and skipped ones. */
export const selectRangeResults = (
  sql: Sql,
  projectId: string,
  { bugId, testCase }: { bugId: string; testCase: number },
) => sql<RangeRow[]>`
  select e.execution_id as "executionId", e.commit, h.letter in ('p', 'P') as "isPassed",
    h.letter in ('f', 'F') and exists (
      select from bug_occurrence o
      where o.project_id = ${projectId} and o.bug_report_id = ${bugId} and o.run_id = h.run_id
        and o.test_case = ${testCase}) as "isBug"
  from (
    select run_id, substr(statuses, array_position(test_cases, ${testCase}::int), 1) as letter
    from (
      select run_id, statuses, test_cases from case_result
      where project_id = ${projectId} and block = ${blockOf(testCase)}::int
      order by run_id desc limit ${MAX_RANGE_RESULTS}) b
  ) h, lateral (
    select r.execution_id, e.commit from test_run r
    join execution e on e.project_id = ${projectId} and e.id = r.execution_id
    where r.project_id = ${projectId} and r.id = h.run_id and r.completed_at is not null and not r.outage
      and ${isOnDefault(sql, sql`e`, defaultBranchOf(sql, projectId))} offset 0) e
  where h.letter in ('p', 'P', 'f', 'F') order by h.run_id desc`;

/** The digests of the fingerprints of a bug, hexadecimal. */
export const selectBugDigests = async (sql: Sql, projectId: string, bugId: string): Promise<string[]> => {
  const rows = await sql<{ digest: string }[]>`
    select replace(digest::text, '-', '') as digest from bug_fingerprint
    where project_id = ${projectId} and bug_report_id = ${bugId}`;
  return rows.map(({ digest }) => digest);
};

export type CaseFailure = Failure & { executionId: string; testCase: number };

/** Returns the failures of a test case in these executions; of several attempts the last one with a message or a stack. */
export const selectCaseFailures = (
  sql: Sql,
  projectId: string,
  { testCase, taskSlug, executionIds }: { testCase: number; taskSlug: string; executionIds: readonly string[] },
) => sql<CaseFailure[]>`
  select r.execution_id as "executionId", c.number as "testCase", c.suite, c.name, c.file, d.kind, d.message,
    left(d.stack, 20000) as stack
  from test_run r
  join test_case c on c.project_id = ${projectId} and c.number = ${testCase}
  left join lateral (
    select kind, message, stack from case_detail
    where project_id = ${projectId} and run_id = r.id and test_case = ${testCase}
      and (message is not null or stack is not null)
    order by attempt desc limit 1) d on true
  where r.project_id = ${projectId} and r.execution_id = any(${toTextArray(executionIds)}::uuid[])
    and r.task_slug = ${taskSlug}`;

type EarlierRow = { executionId: string; commit: string; result: "passed" | "failed" };

/** Maximum number of earlier results that count. */
const MAX_EARLIER = 200;

/** The results of a test case in trusted executions of these commits; failures that have a cause outside of the code are left out. */
export const selectEarlierResults = (
  sql: Sql,
  projectId: string,
  { testCase, taskSlug, commits }: { testCase: number; taskSlug: string; commits: readonly string[] },
) => sql<EarlierRow[]>`
  select r.execution_id as "executionId", k.commit,
    case when b.letter in ('p', 'P') then 'passed' else 'failed' end as result
  from unnest(${toTextArray(commits)}::text[]) as k (commit)
  cross join lateral ${sql`(${executionsOfCommit(sql, projectId, sql`k.commit`)})`} e
  join test_run r on r.project_id = ${projectId} and r.execution_id = e.id and r.task_slug = ${taskSlug}
    and r.completed_at is not null and not r.outage
  cross join lateral (
    select substr(statuses, array_position(test_cases, ${testCase}::int), 1) as letter from case_result
    where project_id = ${projectId} and run_id = r.id and block = ${blockOf(testCase)}::int offset 0) b
  where b.letter in ('p', 'P', 'f', 'F') and not exists (
    select from failure f
    where f.project_id = ${projectId} and f.run_id = r.id and f.test_case = ${testCase}
      and ${isFromOutsideCode(sql, sql`f`)})
  order by r.id desc limit ${MAX_EARLIER}`;

/** Returns the results of other probes of the test case on these commits, except those that the search shares. */
export const selectEarlierProbes = (
  sql: Sql,
  projectId: string,
  { testCase, searchId, commits }: { testCase: number; searchId: string; commits: readonly string[] },
) => sql<EarlierRow[]>`
  select distinct on (execution_id) execution_id as "executionId", commit, result from probe
  where project_id = ${projectId} and kind = 'test' and test_case = ${testCase} and result in ('passed', 'failed') and ended_at is not null
    and culprit_search_id is distinct from ${searchId} and not exists (
      select from probe own
      where own.project_id = ${projectId} and own.execution_id = probe.execution_id and own.culprit_search_id = ${searchId})
    and lower(commit) = any(${toTextArray(commits.map((commit) => commit.toLowerCase()))}::text[])
  order by execution_id desc limit ${MAX_EARLIER}`;
