/** Reads the origins of runs that are judged together, and other runs that are evidence: see rules/odds.ts. `place` is a run's index. */

import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { baseRuns } from "./baselines.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import type { JudgedRun } from "./failures.ts";
import { blockOfCase } from "./packing.ts";
import { isTrustedBuild } from "./predicates.ts";

const HOUR_MS = 3_600_000;
/** Maximum number of runs of the task on the line that are read, to find out which failures are consecutive. */
export const LINE_RUNS = 100;
/** Maximum number of runs of the task on the branch of the judged run, if that is not the line. */
const OWN_RUNS = 20;
/** Maximum number of other branches and pull requests whose last run is evidence. */
export const SIBLINGS = 5;
/** Maximum age of their runs, in days. */
const SIBLING_DAYS = 5;
/** Maximum number of executions that are searched for siblings, and of runs that are searched for the causes of a run. */
export const EXECUTIONS_LOOKED_AT = 100;
/** Number of executions that are read beyond EXECUTIONS_LOOKED_AT, because some are of the same branch or commit and do not count. */
const SPARE = 50;
/** Maximum age of the runs that are searched for the causes of a run, in hours. */
const OUTSIDE_HOURS = 72;
/** Minimum number of failures with one cause in a run that show that the cause is not in a single test. */
export const SPREAD = 3;

/** A run with its failed test cases and their causes, at most MAX_WITH_HISTORY of each. */
export type FailedRunKey = JudgedRun & {
  /** The completion time of the run, or now if it is not complete; ISO 8601. */
  at: string;
  /** Failures of other builds up to this time are evidence: `at`, or now if the run is judged again; ISO 8601. */
  seenAt: string;
  testCases: readonly number[];
  causes: readonly string[];
};

/** Returns the first id after the completion of the run. Ids are ordered by time, so all smaller ones existed by then. */
export const untilOf = ({ at }: FailedRunKey): string => firstIdAt(Date.parse(at) + 1);
const seenUntil = ({ seenAt }: FailedRunKey): string => firstIdAt(Date.parse(seenAt) + 1);
/** Returns the lowest id of the executions that are searched for causes (`outsideSince`) or for siblings (`siblingsSince`). */
export const outsideSince = ({ at }: FailedRunKey): string => firstIdAt(Date.parse(at) - OUTSIDE_HOURS * HOUR_MS);
export const siblingsSince = ({ at }: FailedRunKey): string => firstIdAt(Date.parse(at) - 24 * SIBLING_DAYS * HOUR_MS);

/** A subquery: the executions of the runs, with the branch and pull request of their baselines and the settings of the project. */
const judgedRuns = (sql: Sql, projectId: string, runs: readonly FailedRunKey[]): Fragment => {
  const texts = (pick: (run: FailedRunKey) => string) => toTextArray(runs.map(pick));
  return sql`
    select run.place::int - 1 as place, run.run_id, run.task_slug, run.at, run.until, run.seen_at, run.seen_until, run.outside_since,
      run.siblings_since,
      run.numbers::int[], e.*, p.default_branch, p.long_lived_branches, p.flaky_rates, coalesce(b.branch, p.default_branch) as line, b.pull_request as base_pull
    from unnest(
      ${texts(({ id }) => id)}::uuid[], ${texts(({ executionId }) => executionId)}::uuid[], ${texts(({ taskSlug }) => taskSlug)}::text[],
      ${texts(({ at }) => at)}::timestamptz[], ${texts(untilOf)}::uuid[],
      ${texts(({ seenAt }) => seenAt)}::timestamptz[], ${texts(seenUntil)}::uuid[], ${texts(outsideSince)}::uuid[], ${texts(siblingsSince)}::uuid[],
      ${texts(({ testCases }) => toNumberArray(testCases))}::text[]
    ) with ordinality as run (run_id, execution_id, task_slug, at, until, seen_at, seen_until, outside_since, siblings_since, numbers, place)
    cross join lateral (
      select * from execution where project_id = ${projectId} and id = run.execution_id offset 0) e
    join project p on p.id = ${projectId}
    left join lateral (
      select branch, pull_request from execution where project_id = ${projectId} and id = e.baseline_id offset 0) b on true`;
};

/** The branch, pull request, merge queue and commit of an execution. */
export type Origin = {
  branch: string | null;
  pullRequest: string | null;
  queueRef: string | null;
  commit: string | null;
};
/** `wasQueued`: the pull request of the execution has been in a merge queue. */
export type OtherOrigin = Origin & { executionId: string; wasQueued: boolean };

/** The origin of a judged run, and facts about its line, machine and project. */
export type RunPlace = Origin & {
  defaultBranch: string;
  longLivedBranches: string[];
  rerunOf: string | null;
  baselineId: string | null;
  /** The branch of the baseline, or the default one. */
  line: string;
  isOnLine: boolean;
  /** Whether the execution names its target branch. */
  isBaseNamed: boolean;
  /** Number of tests that passed or failed. */
  tests: number;
  /** The machine of the run; null if none or several are named. */
  host: string | null;
  /** The shares of tests by flaky rate, fitted to the project; null: not fitted yet. See rules/flaky_rates.ts. */
  rates: number[] | null;
  /** Number of other executions in the last OUTSIDE_HOURS. */
  builds: number;
  /** The sum of their probabilities to be disturbed. */
  disturbed: number;
  /** The same figures for runs on the machine. */
  hostRuns: number;
  hostDisturbed: number;
  /** The test cases that the task has already passed at the same commit. */
  passed: number[];
};

/** An expression: the machine of a run; null if none or several are named. */
const hostOf = (sql: Sql, projectId: string, runId: Fragment) => sql`(
  select case when min(host) = max(host) then min(host) end from attempt where project_id = ${projectId} and run_id = ${runId})`;

export const selectRunPlaces = (sql: Tx, projectId: string, runs: readonly FailedRunKey[]) => sql<RunPlace[]>`
  with judged as materialized (
    select run.*, ${hostOf(sql, projectId, sql`run.run_id`)} as host from (${judgedRuns(sql, projectId, runs)}) run
  ), recent as materialized (
    select mine.seen_at, r.* from (
      select seen_at, seen_until, outside_since, bool_or(host is not null) as has_host from judged group by 1, 2, 3
    ) mine cross join lateral (
      -- Most runs name no machine. Then the machines of other runs are not read either.
      select r.id, r.execution_id, r.disturbed, case when mine.has_host then ${hostOf(sql, projectId, sql`r.id`)} end as host
      from test_run r
      where r.project_id = ${projectId} and r.id >= mine.outside_since and r.id < mine.seen_until
        -- Runs that are ingested in the same transaction are not counted yet, and do not see each other.
        and r.health_applied and r.completed_at <= mine.seen_at and ${isTrustedBuild(sql, sql`r`)}
      order by r.id desc limit ${5 * EXECUTIONS_LOOKED_AT}) r
  ), builds as materialized (
    select seen_at, count(*)::int as count, sum(disturbed)::float8 as disturbed
    from (select seen_at, max(disturbed) as disturbed from recent group by seen_at, execution_id) build group by seen_at
  )
  select mine.branch, mine.pull_request as "pullRequest", mine.queue_ref as "queueRef", mine.commit,
    mine.default_branch as "defaultBranch",
    to_json(mine.long_lived_branches) as "longLivedBranches", mine.rerun_of as "rerunOf", mine.baseline_id as "baselineId", mine.line,
    mine.pull_request is null and mine.queue_ref is null and coalesce(mine.branch, mine.default_branch) = mine.line as "isOnLine",
    mine.base_branch is not null as "isBaseNamed", r.tests, mine.host, to_json(mine.flaky_rates) as rates,
    greatest(0, coalesce(builds.count, 0) - (own.disturbed is not null)::int) as builds,
    greatest(0, coalesce(builds.disturbed, 0) - coalesce(own.disturbed, 0)) as disturbed, hosts.count as "hostRuns", hosts.disturbed as "hostDisturbed",
    to_json(same.passed) as passed
  from judged mine
  cross join lateral (
    select passed + failed as tests from test_run where project_id = ${projectId} and id = mine.run_id offset 0) r
  left join builds on builds.seen_at = mine.seen_at
  -- The tasks of the same build that were counted before.
  cross join lateral (
    select max(disturbed) as disturbed from test_run r
    where r.project_id = ${projectId} and r.execution_id = mine.id and r.health_applied and r.completed_at <= mine.at
      and ${isTrustedBuild(sql, sql`r`)}) own
  cross join lateral (
    select count(*)::int as count, coalesce(sum(disturbed), 0)::float8 as disturbed from recent
    where mine.host is not null and seen_at = mine.seen_at and execution_id <> mine.id and host = mine.host) hosts
  cross join lateral (
    select coalesce(array_agg(distinct n.number), '{}') as passed
    from (
      select o.id from execution o
      where o.project_id = ${projectId} and o.commit is not null and lower(o.commit) ~>=~ lower(mine.commit)
        and lower(o.commit) ~<=~ lower(mine.commit) and o.id <> mine.id
        and o.id < mine.until and ${isTrustedBuild(sql, sql`o`)}
      -- The order makes the planner use the index of commits.
      order by lower(o.commit) using ~<~, o.id desc limit ${SIBLINGS}
    ) o cross join lateral (
      select id from test_run r
      where r.project_id = ${projectId} and r.execution_id = o.id and r.task_slug = mine.task_slug and not r.outage
        and r.completed_at <= mine.at offset 0) t
    cross join unnest(mine.numbers) as n (number)
    cross join lateral (
      select statuses, array_position(test_cases, n.number) as place from case_result
      where project_id = ${projectId} and run_id = t.id and block = ${blockOfCase(sql, sql`n.number`)} offset 0) c
    where substr(c.statuses, c.place, 1) in ('p', 'P')
  ) same
  order by mine.place`;

/** Another run that is evidence about judged runs. */
type Beside = {
  id: string;
  executionId: string;
  commit: string | null;
  /** ISO 8601; null for a run of a baseline. */
  completedAt: string | null;
  /** Indexes of the judged runs that it is evidence about. */
  places: number[];
};

/**
 * A run of a baseline ("base"), of the line ("line"), or of the same branch or pull request as a judged run that is not on the line
 * ("mine").
 */
export type LineRun = Beside & { of: "base" | "line" | "mine" };

/** A subquery: the complete run of the task of `k` in the execution `e`. */
const runOf = (sql: Sql, projectId: string) => sql`
  select r.* from test_run r
  where r.project_id = ${projectId} and r.execution_id = e.id and r.task_slug = k.task_slug and r.completed_at is not null offset 0`;

/** Returns the runs of the baselines, the lines and the own branches of the judged runs, oldest first. */
export const selectLineRuns = (sql: Tx, projectId: string, runs: readonly FailedRunKey[]) => {
  const last = (condition: Fragment, limit: number) => sql`(
    select e.id, e.commit from execution e
    where e.project_id = ${projectId} and ${condition} and e.build_id is null and ${isTrustedBuild(sql, sql`e`)} and e.id < k.until
    order by e.branch, e.id desc limit ${limit + runs.length}::int)`;
  // A range instead of an equality makes the planner use the index of branches.
  const isOn = (branch: Fragment) => sql`e.branch >= ${branch} and e.branch <= ${branch}`;
  const ofLine = (condition: Fragment) =>
    last(sql`${condition} and e.pull_request is not distinct from k.base_pull and not e.sample`, LINE_RUNS);
  return sql<LineRun[]>`
    with mine as materialized (${judgedRuns(sql, projectId, runs)})
    select r.id, r.execution_id as "executionId", 'base' as of, null as commit, null::timestamptz as "completedAt",
      to_json(k.places) as places
    from (
      select baseline_id, task_slug, array_agg(place) as places from mine where baseline_id is not null group by 1, 2) k
    cross join lateral (${baseRuns(sql, projectId, { baseline: sql`k.baseline_id`, taskSlug: sql`k.task_slug` })}) r
    union all
    select r.id, e.id, 'line', e.commit, r.completed_at, to_json(k.places)
    from (
      select line, base_pull, task_slug, until, line = default_branch as is_default, array_agg(place) as places
      from mine group by 1, 2, 3, 4, 5
    ) k cross join lateral (
      ${ofLine(isOn(sql`k.line`))} union all select * from ${ofLine(sql`e.branch is null`)} e where k.is_default
    ) e cross join lateral (${runOf(sql, projectId)}) r
    where not r.outage
    union all
    select r.id, e.id, 'mine', e.commit, r.completed_at, to_json(k.places)
    from (
      select branch, pull_request, task_slug, until, array_agg(place) as places
      from mine where branch is distinct from line group by 1, 2, 3, 4
    ) k cross join lateral (
      ${last(sql`${isOn(sql`k.branch`)} and e.pull_request is not distinct from k.pull_request`, OWN_RUNS)}
    ) e cross join lateral (${runOf(sql, projectId)}) r
    where not r.outage
    order by 2`;
};

/** A run of another execution. */
export type OtherRun = Beside &
  OtherOrigin & {
    completedAt: string;
    isRerun: boolean;
    outage: boolean;
    tests: number;
    hasFailed: boolean;
  };

/** Returns the last runs of the tasks on any branch, and their last runs outside of the lines; newest first. */
export const selectOtherRuns = (sql: Tx, projectId: string, runs: readonly FailedRunKey[]) => {
  const last = (condition: Fragment) => sql`(
    select e.id from execution e
    where e.project_id = ${projectId} and e.id < k.seen_until and e.queue_ref is null and ${isTrustedBuild(sql, sql`e`)} and ${condition}
    order by e.id desc limit ${EXECUTIONS_LOOKED_AT + SPARE}::int)`;
  return sql<OtherRun[]>`
    with mine as materialized (${judgedRuns(sql, projectId, runs)})
    select r.id, e.id as "executionId", ${originColumns(sql, projectId)}, r.completed_at as "completedAt",
      to_json(k.places) as places, e.build_id is not null as "isRerun",
      r.outage, r.passed + r.failed as tests, r.failed + r.flaky > 0 as "hasFailed"
    from (
      select line, task_slug, seen_until, outside_since, siblings_since, array_agg(place) as places from mine group by 1, 2, 3, 4, 5
    ) k cross join lateral (
      select * from ${last(sql`e.id >= k.outside_since`)} e
      union
      select * from ${last(
        sql`e.id >= k.siblings_since and (e.pull_request is not null or e.branch is distinct from k.line)`,
      )} e
    ) other cross join lateral (
      select * from execution where project_id = ${projectId} and id = other.id offset 0) e
    cross join lateral (${runOf(sql, projectId)}) r
    order by e.id desc`;
};

/** The columns of the origin of the execution `e`. */
export const originColumns = (sql: Sql, projectId: string) => sql`
  e.branch, e.pull_request as "pullRequest", e.queue_ref as "queueRef", e.commit, e.pull_request is not null and coalesce((
    select true from execution q
    where q.project_id = ${projectId} and q.pull_request = e.pull_request and q.queue_ref is not null
    limit 1), false) as "wasQueued"`;

/** A cause outside of the code that failed `hits` of the `tests` of a run, at least SPREAD. */
export type Incident = { executionId: string; runId: string; cause: string; hits: number; tests: number };

/** Returns the incidents in the executions of these runs that have the same causes as failures of these runs. */
export const selectIncidents = (sql: Tx, projectId: string, judged: readonly FailedRunKey[]) => sql<Incident[]>`
  select e.id as "executionId", r.id as "runId", replace(f.cause::text, '-', '') as cause, f.hits, r.tests
  from unnest(${toTextArray([...new Set(judged.map(({ executionId }) => executionId))])}::uuid[]) as e (id) cross join lateral (
    select id, passed + failed as tests from test_run
    where project_id = ${projectId} and execution_id = e.id and failed > 0 offset 0) r
  cross join lateral (
    select cause, count(*)::int as hits from failure
    where project_id = ${projectId} and run_id = r.id and explained = 'outside'
      and cause = any(${toTextArray([...new Set(judged.flatMap(({ causes }) => causes))])}::uuid[])
    group by 1 having count(*) >= ${SPREAD}::int) f`;

/**
 * The number of failures with a cause in a run. `testCases` are set for a run that is judged in the same transaction, because its failures
 * may be explained by the time the sighting is used.
 */
export type Sighting = { runId: string; cause: string; hits: number; testCases: number[] | null };

/** Returns how often the causes of the judged runs were seen in the runs `runIds`. */
export const selectSightings = (
  sql: Tx,
  projectId: string,
  judged: readonly FailedRunKey[],
  runIds: readonly string[],
) => sql<Sighting[]>`
  select run.id as "runId", replace(d.cause::text, '-', '') as cause, d.hits,
    case when run.id = any(${toTextArray(judged.map(({ id }) => id))}::uuid[]) then d.test_cases end as "testCases"
  from unnest(${toTextArray(runIds)}::uuid[]) as run (id) cross join lateral (
    select cause, count(distinct test_case)::int as hits, json_agg(test_case) as test_cases from case_detail d
    where project_id = ${projectId} and run_id = run.id
      and cause = any(${toTextArray([...new Set(judged.flatMap(({ causes }) => causes))])}::uuid[])
      -- A failure explained by a change is no evidence of a disturbance, except for many at once, whose explanation is uncertain.
      and not coalesce((
        select explained in ('change', 'inherited') and not of_many from failure f
        where f.project_id = ${projectId} and f.run_id = run.id and f.test_case = d.test_case offset 0), false)
    group by cause) d`;
