/** What the odds of failures are weighed by: see rules/odds.ts. Each statement is about one run; `line` is the branch of its baseline. */

import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { baseRuns } from "./baselines.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import type { JudgedRun } from "./failures.ts";
import { blockOfCase, failedResultsOf } from "./packing.ts";
import { isActiveQuarantine, isOfOtherLine, isOnDefault, isTrustedBuild } from "./predicates.ts";
import type { ExplanationKind } from "../rules/odds_facts.ts";

const HOUR_MS = 3_600_000;
/** Of so many failures of a run the history is read; further ones are weighed without. */
export const MAX_WITH_HISTORY = 300;
/** So many of the last failures of a test case are read. */
const PAST_FAILURES = 60;
/** So many of the last runs of the task on the line tell which of its failures follow each other. */
const LINE_RUNS = 100;
const OWN_RUNS = 20;
/** So many other branches and pull requests are asked, and for so many days. */
const SIBLINGS = 5;
const SIBLING_DAYS = 5;
/** So many executions are looked through for them, and so many runs for the causes of a run. */
const LOOKED_THROUGH = 100;
const OUTSIDE_HOURS = 72;

/** A failed result of the run; `cause` is hexadecimal, null: the report says nothing of it. */
export type FailedRow = {
  testCase: number;
  cause: string | null;
  file: string | null;
  suite: string;
  isQuarantined: boolean;
  /** What it says, of the first failure of a cause; null for the others. */
  kind: string | null;
  message: string | null;
  stack: string | null;
};

export const selectFailed = (sql: Tx, projectId: string, runId: string) => sql<FailedRow[]>`
  select f.number as "testCase", replace(d.cause::text, '-', '') as cause, c.file, c.suite, q.is_active as "isQuarantined",
    case when f.place = 1 then d.kind end as kind, case when f.place = 1 then left(d.message, 2000) end as message,
    case when f.place = 1 then left(d.stack, 8000) end as stack
  from (
    select f.number, f.attempt, d.cause, row_number() over (partition by d.cause order by f.number) as place
    from ${failedResultsOf(sql, projectId, sql`select ${runId}::uuid as id`)} f
    left join lateral (${detailOf(sql, projectId, runId, sql`cause`)}) d on true
  ) f
  cross join lateral (
    select file, suite from test_case where project_id = ${projectId} and number = f.number offset 0) c
  left join lateral (${detailOf(sql, projectId, runId, sql`kind, message, stack, cause`)}) d on true
  cross join lateral (select exists (
    select from quarantine q
    where q.project_id = ${projectId} and q.test_case = f.number and ${isActiveQuarantine(sql, sql`q`)}) as is_active) q
  order by f.number`;

/** Of the failed result `f`. */
const detailOf = (sql: Sql, projectId: string, runId: string, columns: Fragment) => sql`
  select ${columns} from case_detail
  where project_id = ${projectId} and run_id = ${runId} and test_case = f.number and attempt = f.attempt offset 0`;

/** Where a run comes from, and what is known of its project. */
export type RunPlace = {
  baselineId: string | null;
  /** The branch of the baseline, or the default one. */
  line: string;
  isOnLine: boolean;
  isBaseNamed: boolean;
  tests: number;
  host: string | null;
  /** As fitted to the project; null: not yet. */
  rates: number[] | null;
  /** Executions of the last hours: how many, and how much of them was disturbed. */
  builds: number;
  disturbed: number;
  hostRuns: number;
  hostDisturbed: number;
  /** The task has passed at this commit before: test cases of the run that did. */
  passed: number[];
};

/** An expression: the machine of a run; null: none is named, or several are. */
const hostOf = (sql: Sql, projectId: string, runId: Fragment) => sql`(
  select case when min(host) = max(host) then min(host) end from attempt where project_id = ${projectId} and run_id = ${runId})`;

/** `numbers` are the failed test cases. */
export async function selectRunPlace(
  sql: Tx,
  projectId: string,
  { id, executionId, taskSlug, completedAt, isSeenLater }: JudgedRun,
  numbers: readonly number[],
): Promise<RunPlace> {
  const at = timeOf(completedAt);
  const until = isSeenLater ? Date.now() : at;
  const [row] = await sql<RunPlace[]>`
    with recent as materialized (
      select r.id, r.execution_id, r.disturbed from test_run r
      where r.project_id = ${projectId} and r.id >= ${firstIdAt(at - OUTSIDE_HOURS * HOUR_MS)} and r.id < ${firstIdAt(until + 1)}
        -- What arrives together does not see each other.
        and r.health_applied and r.execution_id <> ${executionId} and ${wasCompleted(sql, until)} and ${isTrustedBuild(sql, sql`r`)}
      order by r.id desc limit ${5 * LOOKED_THROUGH}
    ), build as (
      select max(disturbed) as disturbed from recent group by execution_id
    )
    select e.baseline_id as "baselineId", coalesce(b.branch, p.default_branch) as line,
      e.pull_request is null and e.queue_ref is null
        and coalesce(e.branch, p.default_branch) = coalesce(b.branch, p.default_branch) as "isOnLine",
      e.base_branch is not null as "isBaseNamed",
      r.passed + r.failed as tests, h.host, to_json(p.flaky_rates) as rates, builds.count as builds, builds.disturbed,
      hosts.count as "hostRuns", hosts.disturbed as "hostDisturbed", to_json(same.passed) as passed
    from execution e
    join project p on p.id = ${projectId}
    join test_run r on r.project_id = ${projectId} and r.id = ${id}
    left join execution b on b.project_id = ${projectId} and b.id = e.baseline_id
    cross join lateral (
      select ${hostOf(sql, projectId, sql`${id}::uuid`)} as host) h
    cross join lateral (
      select count(*)::int as count, coalesce(sum(disturbed), 0)::float8 as disturbed from build) builds
    cross join lateral (
      select count(*)::int as count, coalesce(sum(disturbed), 0)::float8 as disturbed from recent
      -- Most runs name none: then the machines of the others are not looked for.
      where h.host is not null and ${hostOf(sql, projectId, sql`recent.id`)} = h.host) hosts
    cross join lateral (
      select coalesce(array_agg(distinct n.number), '{}') as passed
      from (
        select o.id from execution o
        where o.project_id = ${projectId} and lower(o.commit) = lower(e.commit) and o.id <> e.id
          and o.id < ${firstIdAt(at + 1)} and ${isTrustedBuild(sql, sql`o`)}
        order by o.id desc limit ${SIBLINGS}
      ) o
      join test_run t on t.project_id = ${projectId} and t.execution_id = o.id and t.task_slug = ${taskSlug}
        and t.completed_at <= ${atTime(sql, at)} and not t.outage
      cross join unnest(${toNumberArray(numbers)}::int[]) as n (number)
      cross join lateral (
        select statuses, array_position(test_cases, n.number) as place from case_result
        where project_id = ${projectId} and run_id = t.id and block = ${blockOfCase(sql, sql`n.number`)} offset 0) c
      where substr(c.statuses, c.place, 1) in ('p', 'P')
    ) same
    where e.project_id = ${projectId} and e.id = ${executionId}`;
  return row!;
}

/** A condition: the execution `e` tested the same commit as `mine`, or `mine` repeats it. */
const isOfSameCommit = (sql: Sql) => sql`(
  coalesce(is_same_commit(e.commit, mine.commit), false) or coalesce(e.id = mine.rerun_of, false))`;

const atTime = (sql: Sql, at: number) => sql`${new Date(at).toISOString()}::text::timestamptz`;
/** A condition: the run `r` was complete by then. A build does not see what came after it, though it may be imported later. */
const wasCompleted = (sql: Sql, at: number) => sql`r.completed_at <= ${atTime(sql, at)}`;

const timeOf = (completedAt: string | null) => (completedAt === null ? Date.now() : Date.parse(completedAt));

/** A failure of a test case before, or a pass after a failed attempt. */
export type PastFailure = {
  testCase: number;
  runId: string;
  cause: string | null;
  isRetried: boolean;
  explained: ExplanationKind;
  isOfMany: boolean;
};

/** The last failures of test cases, newest first. */
export const selectPast = (sql: Tx, projectId: string, { id, completedAt }: JudgedRun, numbers: readonly number[]) => {
  const until = firstIdAt(timeOf(completedAt) + 1);
  return sql<PastFailure[]>`
    select n.number as "testCase", f.run_id as "runId", replace(f.cause::text, '-', '') as cause, f.retried as "isRetried",
      f.explained, f.of_many as "isOfMany"
    from unnest(${toNumberArray(numbers)}::int[]) as n (number)
    cross join lateral (
      select * from (
        (select f.run_id, f.explained, f.of_many, f.passed_again as retried, f.cause from failure f
        where f.project_id = ${projectId} and f.test_case = n.number and f.run_id < ${until} and f.run_id <> ${id}
        order by f.run_id desc limit ${PAST_FAILURES})
        union all
        (select f.run_id, 'flaky', false, true, f.cause from flake f
        where f.project_id = ${projectId} and f.test_case = n.number and f.run_id < ${until} and f.run_id <> ${id}
        order by f.run_id desc limit ${PAST_FAILURES})
      ) f order by f.run_id desc limit ${PAST_FAILURES}
    ) f
    order by f.run_id desc`;
};

/** Where a run was whose failures are evidence. */
export type PastRun = {
  id: string;
  pullRequest: string | null;
  branch: string | null;
  /** Of the same branch and pull request. */
  isMine: boolean;
  /** Of the same commit, or of the execution that this one repeats. */
  isSameCommit: boolean;
  /** ISO 8601. */
  at: string;
};

/** Those of these runs that the execution may learn from. */
export const selectPastRuns = (
  sql: Tx,
  projectId: string,
  { executionId, completedAt }: JudgedRun,
  runIds: readonly string[],
) => sql<PastRun[]>`
  with mine as materialized (
    select e.*, p.default_branch from execution e join project p on p.id = ${projectId}
    where e.project_id = ${projectId} and e.id = ${executionId}
  ), run as materialized (
    select id, execution_id, completed_at from test_run r
    where project_id = ${projectId} and id = any(${toTextArray(runIds)}::uuid[]) and not outage
      and ${wasCompleted(sql, timeOf(completedAt))}
  )
  select r.id, o.pull_request as "pullRequest", o.branch, o.is_mine as "isMine", o.is_same_commit as "isSameCommit",
    r.completed_at as at
  from mine, run r cross join lateral (
    select e.pull_request, e.branch, e.branch is not distinct from mine.branch and e.pull_request is not distinct from mine.pull_request as is_mine,
      ${isOfOtherLine(sql, sql`e`, sql`mine`)}
        -- The branch of a fork's pull request may have its name.
        or ${isOnDefault(sql, sql`e`, sql`mine.default_branch`)} as is_of_other_line,
      ${isOfSameCommit(sql)} as is_same_commit
    from execution e where e.project_id = ${projectId} and e.id = r.execution_id and ${isTrustedBuild(sql, sql`e`)} offset 0) o
  -- A build does not show what came before it on its branch; those in front of it in a merge queue have its change.
  where case when o.is_mine then r.execution_id <= mine.id else o.is_of_other_line end`;

/** How many results test cases have had, those of this run not included where it is not counted yet. */
export const selectResultCounts = (sql: Tx, projectId: string, numbers: readonly number[]) => sql<
  { testCase: number; runs: number }[]
>`
  select test_case as "testCase", runs from case_health
  where project_id = ${projectId} and test_case = any(${toNumberArray(numbers)}::int[])`;

/**
 * A run that shows the state of test cases: of those that the baseline is made of, on the line, on this branch or pull request, or
 * on another one.
 */
export type StateRun = {
  id: string;
  executionId: string;
  of: "base" | "line" | "mine" | "sibling";
  /** Of a run on the line. */
  commit: string | null;
  /** It is of the same commit as the judged one: it shows no change of the line. */
  isSameCommit: boolean;
  /** A sibling that is the default branch or a long-lived one. */
  isLine: boolean;
  /** A rerun may have passed what failed in it. */
  hasRerun: boolean;
};

/** The last runs of the task on the line and on this branch, and the last one of each of a few other branches, oldest first. */
export const selectStateRuns = (
  sql: Tx,
  projectId: string,
  { executionId, taskSlug, completedAt }: JudgedRun,
  line: string,
) => {
  const at = timeOf(completedAt);
  const runOf = sql`
    select r.id from test_run r
    where r.project_id = ${projectId} and r.execution_id = e.id and r.task_slug = ${taskSlug} and not r.outage and ${wasCompleted(sql, at)}
    offset 0`;
  const hasRerun = sql`exists (select from execution again where again.project_id = ${projectId} and again.build_id = e.id)`;
  const ofLine = (branch: Fragment) => sql`(
    select e.id, e.branch, lower(e.commit) as commit, ${isOfSameCommit(sql)} as is_same_commit
    from execution e, mine
    where e.project_id = ${projectId} and e.branch ${branch} and e.pull_request is not distinct from mine.base_pull and e.build_id is null
      and not e.sample and ${isTrustedBuild(sql, sql`e`)} and e.id < ${firstIdAt(at + 1)} and e.id <> mine.id
      -- Of two builds of the line side by side only the earlier one explains the other.
      and (e.id < mine.id or mine.pull_request is not null or mine.queue_ref is not null
        or coalesce(mine.branch, mine.default_branch) is distinct from ${line}::text)
    order by e.branch, e.id desc limit ${LINE_RUNS})`;
  return sql<StateRun[]>`
    with mine as materialized (
      select e.*, p.default_branch, p.long_lived_branches, (
        select pull_request from execution where project_id = ${projectId} and id = e.baseline_id) as base_pull
      from execution e join project p on p.id = ${projectId}
      where e.project_id = ${projectId} and e.id = ${executionId}
    )
    select r.id, e.id as "executionId", 'base' as of, null as commit, false as "isSameCommit", true as "isLine",
      ${hasRerun} as "hasRerun"
    from (${baseRuns(sql, projectId, { baseline: sql`(select baseline_id from mine)`, taskSlug })}) r
    cross join lateral (select r.execution_id as id) e
    union all
    select r.id, e.id, 'line', e.commit, e.is_same_commit, true, ${hasRerun}
    from (
      ${ofLine(sql`= ${line}::text`)} union all
      select * from ${ofLine(sql`is null`)} e where ${line}::text = (select default_branch from mine)
    ) e
    cross join lateral (${runOf}) r
    union all
    select r.id, e.id, 'mine', null, false, false, false from (
      select e.id from execution e, mine
      where e.project_id = ${projectId} and e.branch = mine.branch and e.pull_request is not distinct from mine.pull_request
        and e.build_id is null and e.id < ${firstIdAt(at + 1)} and e.id <> mine.id and e.branch is distinct from ${line}::text
        and ${isTrustedBuild(sql, sql`e`)}
      order by e.id desc limit ${OWN_RUNS}
    ) e
    cross join lateral (${runOf}) r
    union all
    (select id, execution_id, 'sibling', null, false, is_line, has_rerun from (
      select distinct on (coalesce(e.pull_request, e.branch)) r.id, e.id as execution_id, ${hasRerun} as has_rerun,
        e.pull_request is null and (
          coalesce(e.branch = mine.default_branch, true) or is_long_lived(e.branch, mine.long_lived_branches)) as is_line
      from mine, (
        select e.* from execution e, mine
        where e.project_id = ${projectId} and e.id < ${firstIdAt(at + 1)}
          and e.id >= ${firstIdAt(at - SIBLING_DAYS * 24 * HOUR_MS)} and e.id <> mine.id and ${isOfOtherLine(sql, sql`e`, sql`mine`)}
          and (e.pull_request is not null or e.branch is distinct from ${line}::text) and e.build_id is null
          and not ${isOfSameCommit(sql)}
        order by e.id desc limit ${LOOKED_THROUGH}
      ) e
      cross join lateral (${runOf}) r
      order by coalesce(e.pull_request, e.branch), e.id desc
    ) r order by execution_id desc limit ${SIBLINGS})
    order by 2`;
};

/** What a test case did in a run; absent: it passed. */
export type CaseState = {
  runId: string;
  testCase: number;
  cause: string | null;
  explained: ExplanationKind | null;
  /** The share of the test itself. */
  flaky: number;
};

export const selectStates = (sql: Tx, projectId: string, runIds: readonly string[], numbers: readonly number[]) => sql<
  CaseState[]
>`
  select f.run_id as "runId", f.test_case as "testCase", replace(f.cause::text, '-', '') as cause, f.explained, f.flaky::float8 as flaky
  from unnest(${toTextArray(runIds)}::uuid[]) as run (id) cross join lateral (
    select run_id, test_case, cause, explained, flaky from failure
    where project_id = ${projectId} and run_id = run.id and test_case = any(${toNumberArray(numbers)}::int[]) offset 0) f`;

/** Which of these test cases a rerun of the build has passed, of which of these runs. */
export const selectPassedAgain = (
  sql: Tx,
  projectId: string,
  runIds: readonly string[],
  numbers: readonly number[],
) => sql<{ runId: string; testCase: number }[]>`
  select distinct b.id as "runId", n.number as "testCase"
  from unnest(${toTextArray(runIds)}::uuid[]) as run (id) cross join lateral (
    select id, execution_id, task_slug from test_run where project_id = ${projectId} and id = run.id offset 0) b
  cross join lateral (
    select id from execution where project_id = ${projectId} and build_id = b.execution_id offset 0) e
  cross join lateral (
    select id from test_run where project_id = ${projectId} and execution_id = e.id and task_slug = b.task_slug offset 0) r
  cross join unnest(${toNumberArray(numbers)}::int[]) as n (number)
  cross join lateral (
    select substr(statuses, array_position(test_cases, n.number), 1) as letter from case_result
    where project_id = ${projectId} and run_id = r.id and block = ${blockOfCase(sql, sql`n.number`)} offset 0) c
  where c.letter in ('p', 'P')`;

/** Which of these runs have no result of which of these test cases. */
export const selectAbsent = (sql: Tx, projectId: string, runIds: readonly string[], numbers: readonly number[]) => sql<
  { runId: string; testCase: number }[]
>`
  select run.id as "runId", n.number as "testCase"
  from unnest(${toTextArray(runIds)}::uuid[]) as run (id) cross join unnest(${toNumberArray(numbers)}::int[]) as n (number)
  where not exists (
    select from (
      select statuses, array_position(test_cases, n.number) as place from case_result
      where project_id = ${projectId} and run_id = run.id and block = ${blockOfCase(sql, sql`n.number`)} offset 0
    ) b where lower(substr(b.statuses, b.place, 1)) in ('p', 'f'))`;

/** How often causes were seen in another run of the task in the last hours. */
export type Sighting = { cause: string; hits: number };

/** The results of those runs, and of each of them the causes that it has. */
export async function selectSightings(
  sql: Tx,
  projectId: string,
  { executionId, taskSlug, completedAt, isSeenLater }: JudgedRun,
  causes: readonly string[],
): Promise<{ results: number; sightings: Sighting[] }> {
  const at = timeOf(completedAt);
  const until = isSeenLater ? Date.now() : at;
  const [row] = await sql<{ results: number; sightings: Sighting[] }[]>`
    with other as materialized (
      select r.id, r.passed + r.failed as tests, r.failed + r.flaky > 0 as has_failed
      from execution mine, lateral (
        select e.* from execution e
        where e.project_id = ${projectId} and e.id >= ${firstIdAt(at - OUTSIDE_HOURS * HOUR_MS)} and e.id < ${firstIdAt(until + 1)}
          and e.id <> mine.id and ${isOfOtherLine(sql, sql`e`, sql`mine`)}
          and not coalesce(is_same_commit(e.commit, mine.commit), false)
        order by e.id desc limit ${LOOKED_THROUGH}
      ) e cross join lateral (
        select * from test_run
        where project_id = ${projectId} and execution_id = e.id and task_slug = ${taskSlug} and completed_at <= ${atTime(sql, until)} offset 0
      ) r
      where mine.project_id = ${projectId} and mine.id = ${executionId}
    )
    select coalesce((select sum(tests) from other), 0)::int as results, coalesce((
      select json_agg(json_build_object('cause', replace(d.cause::text, '-', ''), 'hits', d.hits))
      from other o cross join lateral (
        select cause, count(distinct test_case)::int as hits from case_detail d
        where project_id = ${projectId} and run_id = o.id and cause = any(${toTextArray(causes)}::uuid[])
          -- What was a change's there says nothing of the surroundings; of many at once nobody knows whose they were.
          and not coalesce((
            select explained in ('change', 'inherited') and not of_many from failure f
            where f.project_id = ${projectId} and f.run_id = o.id and f.test_case = d.test_case offset 0), false)
        group by cause) d
      where o.has_failed), '[]') as sightings`;
  return row!;
}
