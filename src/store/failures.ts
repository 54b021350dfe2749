/** Failed results with their explanations, which are judged once, when they arrive. */

import { type Blamed, BLAME_ORDER } from "../rules/blame.ts";
import { EXPLAINED_BLAMES } from "../rules/gate.ts";
import type { ExplanationKind } from "../rules/odds_facts.ts";
import type { Blame, OddsEvidence } from "../schema/failures.ts";
import type { CaseRef } from "../schema/case_ref.ts";
import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { blockOfCase, ROWS_LOOKED_AT } from "./packing.ts";
import { isFromOutsideCode, isTrustedBuild } from "./predicates.ts";

export type JudgedRun = {
  id: string;
  executionId: string;
  taskSlug: string;
  completedAt: string | null;
  /** Whether its results are part of the records of their test cases. */
  isCounted?: boolean;
  /** Whether it is judged again with later failures of other builds. */
  isSeenLater?: boolean;
};

/** A failure with its explanation. */
export type JudgedFailure = {
  testCase: number;
  /** Hexadecimal. */
  cause: string | null;
  blame: Blame;
  explained: ExplanationKind;
  isOfMany: boolean;
  shares: Record<ExplanationKind, number>;
  evidence: OddsEvidence;
  flakeRate: number | null;
  /** ISO 8601. */
  flakyAt: string | null;
};

/** PostgreSQL refuses numbers that are too small for its type. */
const rounded = (share: number): number => Math.round(share * 1e6) / 1e6;

/** The number of failures of a run with this blame. */
export type BlameCount = { runId: string; blame: Blame; number: number };

/** Inserts failures. An explained failure becomes unclear if the share of the change exceeds the project's gate share. */
export const insertFailures = (
  sql: Tx,
  projectId: string,
  failures: readonly (JudgedFailure & { runId: string })[],
) => {
  const shares = (kind: ExplanationKind) => toNumberArray(failures.map((failure) => rounded(failure.shares[kind])));
  return sql<BlameCount[]>`
    with stored as (insert into failure (project_id, run_id, test_case, cause, blame, explained, of_many, change, flaky, inherited, outside, evidence,
      flake_rate, flaky_at)
    select ${projectId}, f.run_id, f.number, f.cause,
      case when f.blame = any(${toTextArray(EXPLAINED_BLAMES)}::text[]) and f.change > p.gate_share then 'unclear' else f.blame end, f.explained, f.of_many::bool, f.change, f.flaky, f.inherited, f.outside,
      f.evidence::json, f.flake_rate, f.flaky_at
    from unnest(
      ${toTextArray(failures.map(({ runId }) => runId))}::uuid[], ${toNumberArray(failures.map(({ testCase }) => testCase))}::int[],
      ${toTextArray(failures.map(({ cause }) => cause))}::uuid[],
      ${toTextArray(failures.map(({ blame }) => blame))}::text[],
      ${toTextArray(failures.map(({ explained }) => explained))}::text[],
      ${toTextArray(failures.map(({ isOfMany }) => String(isOfMany)))}::text[],
      ${shares("change")}::real[], ${shares("flaky")}::real[], ${shares("inherited")}::real[], ${shares("outside")}::real[],
      ${toTextArray(failures.map(({ evidence }) => JSON.stringify(evidence)))}::text[],
      ${toNumberArray(failures.map(({ flakeRate }) => (flakeRate === null ? null : rounded(flakeRate))))}::real[],
      ${toTextArray(failures.map(({ flakyAt }) => flakyAt))}::timestamptz[]
    ) as f (run_id, number, cause, blame, explained, of_many, change, flaky, inherited, outside, evidence, flake_rate, flaky_at)
    cross join (select gate_share::real from project where id = ${projectId}) p
    returning run_id, blame)
    select run_id as "runId", blame, count(*)::int as number from stored group by 1, 2`;
};

/** Inserts the cases that passed on retry in the runs. A failed attempt that matched an infrastructure rule is no longer stored. */
export const insertFlakes = (sql: Tx, projectId: string, runIds: readonly string[]) => sql`
  insert into flake (project_id, run_id, test_case, cause)
  select ${projectId}, run.id, f.number, (
    select cause from case_detail d
    where d.project_id = ${projectId} and d.run_id = run.id and d.test_case = f.number and cause is not null
    order by attempt desc limit 1)
  from unnest(${toTextArray(runIds)}::uuid[]) as run (id) cross join lateral (
    select f.number from case_result b, lateral unnest(b.test_cases, string_to_array(b.statuses, null)) as f (number, letter)
    where b.project_id = ${projectId} and b.run_id = run.id and b.statuses like '%P%' and f.letter = 'P'
    limit ${MAX_FLAKES}) f
  on conflict do nothing`;

/** Maximum number of retried cases of a run; more are not caused by the tests. */
const MAX_FLAKES = 1_000;

/** Stores the share to which runs were disturbed. */
export const updateDisturbed = (sql: Tx, projectId: string, runs: readonly { id: string; disturbed: number }[]) => sql`
  update test_run r set disturbed = fresh.disturbed
  from unnest(
    ${toTextArray(runs.map(({ id }) => id))}::uuid[], ${toNumberArray(runs.map(({ disturbed }) => disturbed))}::real[]
  ) as fresh (id, disturbed) where r.project_id = ${projectId} and r.id = fresh.id`;

export const deleteFailures = (sql: Tx, projectId: string, runIds: readonly string[]) => sql`
  with flakes as (delete from flake where project_id = ${projectId} and run_id = any(${toTextArray(runIds)}::uuid[]))
  delete from failure where project_id = ${projectId} and run_id = any(${toTextArray(runIds)}::uuid[])`;

/** Maximum number of cases listed per kind. */
export const LISTED = 100;

/** The failures of runs, by run id; of each run at most 100 of each kind. */
export async function selectFailures(
  sql: Sql,
  projectId: string,
  runIds: readonly string[],
): Promise<Map<string, Blamed[]>> {
  const rows = await sql<(Blamed & { runId: string })[]>`
    select f.run_id as "runId", f.blame, c.id as "testCaseId", c.task_slug as "taskSlug", c.suite, c.name, c.file,
      round(f.flake_rate::numeric, 4)::float8 as "flakeRate", f.flaky_at as "lastFlakyAt"
    from unnest(${toTextArray(runIds)}::uuid[]) as run (id), lateral (
      select *, row_number() over (partition by blame order by test_case) as place from failure
      where project_id = ${projectId} and run_id = run.id
    ) f cross join lateral (
      select * from test_case where project_id = ${projectId} and number = f.test_case offset 0) c
    where f.place <= ${LISTED}::int order by f.run_id, f.test_case`;
  const found = new Map<string, Blamed[]>();
  for (const { runId, ...failure } of rows) {
    const list = found.get(runId) ?? [];
    list.push(failure);
    found.set(runId, list);
  }
  return found;
}

/** Counts failures of runs by blame. */
export const countRunFailures = (sql: Sql, projectId: string, runIds: readonly string[]) => sql<BlameCount[]>`
  select run_id as "runId", blame, count(*)::int as number from failure
  where project_id = ${projectId} and run_id = any(${toTextArray(runIds)}::uuid[]) group by 1, 2`;

/** Counts failures of an execution by blame. */
export const countFailures = async (
  sql: Sql,
  projectId: string,
  executionId: string,
): Promise<Partial<Record<Blame, number>>> => {
  const rows = await sql<{ blame: Blame; number: number }[]>`
    select f.blame, count(*)::int as number
    from test_run r join failure f on f.project_id = r.project_id and f.run_id = r.id
    where r.project_id = ${projectId} and r.execution_id = ${executionId} group by 1`;
  return Object.fromEntries(rows.map(({ blame, number }) => [blame, number]));
};

/** Maximum number of results of a case that are searched for the first failure of the current streak. */
const MAX_STREAK_RESULTS = 100;

export type FailureRow = CaseRef & {
  blame: Blame | null;
  /** The share of the change among the explanations, and those of all; null: it was not judged. */
  change: number | null;
  shares: Record<ExplanationKind, number> | null;
  evidence: OddsEvidence | null;
  /** The infrastructure rule that it matches. */
  ruleId: string | null;
  ruleName: string | null;
  ruleUrl: string | null;
  flakeRate: number | null;
  lastFlakyAt: string | null;
  owners: string[];
  line: number | null;
  attempt: number;
  /** The machine that it failed on; null: unknown. */
  host: string | null;
  kind: string | null;
  message: string | null;
  stack: string | null;
  bugId: string | null;
};

/** Sorts `failure f` by blame: what the build is responsible for comes first. */
export const rank = (sql: Sql) => sql`array_position(${toTextArray(BLAME_ORDER)}::text[], f.blame)`;

/** A statement: the details of the failure `f`. */
const detailOf = (sql: Sql, projectId: string, attempt: Fragment) => sql`
  select * from case_detail
  where project_id = ${projectId} and run_id = f.run_id and test_case = f.number and attempt = ${attempt} offset 0`;

/** Maximum number of past results shown beside a failure. */
const MAX_HISTORY_RESULTS = 50;
/** Maximum characters of output shown beside a failure. */
const MAX_OUTPUT_CHARS = 3_000;

export type FailureEvidence = {
  runId: string;
  number: number;
  /** The end of its output. */
  output: string | null;
  /** The last results up to this one, one packed letter each, oldest first. Null unless the failure is `deep`. */
  letters: string | null;
  sinceExecutionId: string | null;
  sinceCommit: string | null;
  sinceAt: string | null;
  /** The commit of the last pass before them; null: unknown. */
  goodCommit: string | null;
};

/**
 * Returns the context of failures of an execution. Only `deep` failures get a history and the first failure of the current streak. Rows are
 * read once for all cases that are packed together.
 */
export const selectFailureEvidence = (
  sql: Sql,
  projectId: string,
  executionId: string,
  failures: readonly { runId: string; number: number; attempt: number; taskSlug: string; deep: boolean }[],
) => sql<FailureEvidence[]>`
  with wanted as materialized (
    select *, ${blockOfCase(sql, sql`number`)} as block from unnest(
      ${toTextArray(failures.map(({ runId }) => runId))}::uuid[], ${toNumberArray(failures.map(({ number }) => number))}::int[],
      ${toNumberArray(failures.map(({ attempt }) => attempt))}::int[],
      ${toTextArray(failures.map(({ taskSlug }) => taskSlug))}::text[],
      ${toTextArray(failures.map(({ deep }) => String(deep)))}::bool[]) as f (run_id, number, attempt, task_slug, deep)
  ), mine as materialized (
    select e.branch, e.pull_request, e.baseline_id, p.default_branch, coalesce((
      select branch from execution b where b.project_id = ${projectId} and b.id = e.baseline_id), p.default_branch) as line
    from execution e join project p on p.id = ${projectId}
    where e.project_id = ${projectId} and e.id = ${executionId}
  ), row as materialized (
    select k.block, b.*, e.*
    from (
      select block, array_agg(number) as numbers, min(number) as low, max(number) as high,
        (array_agg(run_id order by run_id desc))[1] as newest, count(distinct task_slug) as tasks
      from wanted where deep group by block
    ) k cross join lateral (
      -- What runs together is found together: tasks that share the rows take turns.
      select run_id, statuses, test_cases from (
        select run_id, statuses, test_cases from case_result
        where project_id = ${projectId} and block = k.block and run_id <= k.newest
        order by run_id desc limit ${MAX_STREAK_RESULTS * ROWS_LOOKED_AT}) last
      where test_cases[1] <= k.high and test_cases[cardinality(test_cases)] >= k.low and test_cases && k.numbers
      order by run_id desc limit ${MAX_STREAK_RESULTS} * k.tasks
    ) b cross join lateral (
      select r.execution_id, r.completed_at, e.commit, r.outage,
        e.id = ${executionId}
          or (select e.branch is not distinct from mine.branch and (e.branch is not null
            or e.pull_request is not distinct from mine.pull_request) from mine) as is_own,
        -- What the line has got after the baseline is not part of the build.
        (select coalesce(e.branch, mine.default_branch) = mine.line and e.pull_request is null
          and e.id <= coalesce(mine.baseline_id, e.id) from mine) and ${isTrustedBuild(sql, sql`e`)} as is_before
      from test_run r
      join execution e on e.project_id = ${projectId} and e.id = r.execution_id
      where r.project_id = ${projectId} and r.id = b.run_id offset 0) e
  ), seen as materialized (
    select w.run_id as mine, w.number, b.*, substr(b.statuses, x.place, 1) as letter,
      row_number() over (partition by w.run_id, w.number order by b.run_id desc) as place
    from row b
    join wanted w on w.deep and w.block = b.block and b.run_id <= w.run_id
    cross join lateral (select array_position(b.test_cases, w.number) as place) x
    where x.place is not null
  ), streak as (
    -- The branch goes on where the line was.
    select *, count(*) filter (where letter in ('p', 'P')) over (
      partition by mine, number order by is_own desc, run_id desc) as passes
    from seen where place <= ${MAX_STREAK_RESULTS} and (is_own or is_before) and not outage and letter in ('p', 'P', 'f', 'F')
  )
  select f.run_id as "runId", f.number, right(d.output, ${MAX_OUTPUT_CHARS}) as output, h.letters,
    s.execution_id as "sinceExecutionId", s.commit as "sinceCommit", s.completed_at as "sinceAt",
    g.commit as "goodCommit"
  from wanted f
  left join lateral (${detailOf(sql, projectId, sql`f.attempt`)}) d on true
  left join (
    select mine, number, string_agg(letter, '' order by run_id) as letters from seen where place <= ${MAX_HISTORY_RESULTS} group by 1, 2
  ) h on h.mine = f.run_id and h.number = f.number
  left join (
    select distinct on (mine, number) mine, number, execution_id, commit, completed_at from streak where passes = 0
    order by mine, number, is_own, run_id
  ) s on s.mine = f.run_id and s.number = f.number
  left join (
    select distinct on (mine, number) mine, number, commit from streak where passes = 1 and letter in ('p', 'P')
    order by mine, number, is_own desc, run_id desc
  ) g on g.mine = f.run_id and g.number = f.number`;

/** The test cases of a run whose failures had a cause outside of the code before this attempt. */
export const selectIncidentCases = async (sql: Tx, projectId: string, runId: string): Promise<Set<number>> => {
  const rows = await sql<{ number: number }[]>`
    select test_case as number from failure f
    where project_id = ${projectId} and run_id = ${runId} and ${isFromOutsideCode(sql, sql`f`)}`;
  return new Set(rows.map(({ number }) => number));
};
