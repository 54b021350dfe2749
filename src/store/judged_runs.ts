/** Where runs that are judged together come from, and the runs beside them: see rules/odds.ts. `place` is that of a run among them. */

import { type Fragment, type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { baseRuns } from "./baselines.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import type { JudgedRun } from "./failures.ts";
import { blockOfCase } from "./packing.ts";
import { isOfOtherLine, isTrustedBuild } from "./predicates.ts";

const HOUR_MS = 3_600_000;
/** So many of the last runs of the task on the line tell which of its failures follow each other. */
const LINE_RUNS = 100;
const OWN_RUNS = 20;
/** So many other branches and pull requests are asked, and for so many days. */
export const SIBLINGS = 5;
const SIBLING_DAYS = 5;
/** So many executions are looked through for them, and so many runs for the causes of a run. */
const LOOKED_THROUGH = 100;
const OUTSIDE_HOURS = 72;

/** A run with the test cases that failed in it, and their causes, as far as their history is read. */
export type FailedRunKey = JudgedRun & {
  /** When it was completed; milliseconds. */
  at: number;
  testCases: readonly number[];
  causes: readonly string[];
};

/** Ids before this one were there when the run was completed. */
export const untilOf = ({ at }: FailedRunKey): string => firstIdAt(at + 1);
const sinceOf =
  (hours: number) =>
  ({ at }: FailedRunKey): string =>
    firstIdAt(at - hours * HOUR_MS);

/** A statement: the executions of the runs, with the branch and the pull request of their baselines, and what the project says. */
export const judgedRuns = (sql: Sql, projectId: string, runs: readonly FailedRunKey[]): Fragment => {
  const texts = (pick: (run: FailedRunKey) => string) => toTextArray(runs.map(pick));
  return sql`
    select run.place::int - 1 as place, run.run_id, run.task_slug, run.at, run.until, run.outside_since, run.siblings_since,
      run.numbers::int[], e.*, p.default_branch, p.flaky_rates, coalesce(b.branch, p.default_branch) as line, b.pull_request as base_pull
    from unnest(
      ${texts(({ id }) => id)}::uuid[], ${texts(({ executionId }) => executionId)}::uuid[], ${texts(({ taskSlug }) => taskSlug)}::text[],
      ${texts(({ at }) => new Date(at).toISOString())}::timestamptz[], ${texts(untilOf)}::uuid[],
      ${texts(sinceOf(OUTSIDE_HOURS))}::uuid[], ${texts(sinceOf(24 * SIBLING_DAYS))}::uuid[],
      ${texts(({ testCases }) => toNumberArray(testCases))}::text[]
    ) with ordinality as run (run_id, execution_id, task_slug, at, until, outside_since, siblings_since, numbers, place)
    cross join lateral (
      select * from execution where project_id = ${projectId} and id = run.execution_id offset 0) e
    join project p on p.id = ${projectId}
    left join lateral (
      select branch, pull_request from execution where project_id = ${projectId} and id = e.baseline_id offset 0) b on true`;
};

/** A condition: the execution `e` tested the same commit as `mine`, or `mine` repeats it. */
export const isOfSameCommit = (sql: Sql) => sql`(
  coalesce(is_same_commit(e.commit, mine.commit), false) or coalesce(e.id = mine.rerun_of, false))`;

/** A condition: the run `r` was complete by then. A build does not see what came after it, though it may be imported later. */
export const wasCompleted = (sql: Sql) => sql`r.completed_at <= mine.at`;

/** Where a run comes from, and what is known of its project. */
export type RunPlace = {
  commit: string | null;
  rerunOf: string | null;
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

export const selectRunPlaces = (sql: Tx, projectId: string, runs: readonly FailedRunKey[]) => sql<RunPlace[]>`
  with judged as materialized (
    select run.*, ${hostOf(sql, projectId, sql`run.run_id`)} as host from (${judgedRuns(sql, projectId, runs)}) run
  ), recent as materialized (
    select mine.at, r.* from (
      select at, until, outside_since, bool_or(host is not null) as has_host from judged group by 1, 2, 3
    ) mine cross join lateral (
      -- Most runs name no machine: then those of the others are not looked for.
      select r.id, r.execution_id, r.disturbed, case when mine.has_host then ${hostOf(sql, projectId, sql`r.id`)} end as host
      from test_run r
      where r.project_id = ${projectId} and r.id >= mine.outside_since and r.id < mine.until
        -- What arrives together does not see each other.
        and r.health_applied and ${wasCompleted(sql)} and ${isTrustedBuild(sql, sql`r`)}
      order by r.id desc limit ${5 * LOOKED_THROUGH}) r
  ), build as materialized (
    select at, execution_id, max(disturbed) as disturbed from recent group by 1, 2
  )
  select mine.commit, mine.rerun_of as "rerunOf", mine.baseline_id as "baselineId", mine.line,
    mine.pull_request is null and mine.queue_ref is null and coalesce(mine.branch, mine.default_branch) = mine.line as "isOnLine",
    mine.base_branch is not null as "isBaseNamed", r.tests, mine.host, to_json(mine.flaky_rates) as rates,
    builds.count as builds, builds.disturbed, hosts.count as "hostRuns", hosts.disturbed as "hostDisturbed",
    to_json(same.passed) as passed
  from judged mine
  cross join lateral (
    select passed + failed as tests from test_run where project_id = ${projectId} and id = mine.run_id offset 0) r
  cross join lateral (
    select count(*)::int as count, coalesce(sum(disturbed), 0)::float8 as disturbed from build
    where at = mine.at and execution_id <> mine.id) builds
  cross join lateral (
    select count(*)::int as count, coalesce(sum(disturbed), 0)::float8 as disturbed from recent
    where at = mine.at and execution_id <> mine.id and host = mine.host) hosts
  cross join lateral (
    select coalesce(array_agg(distinct n.number), '{}') as passed
    from (
      select o.id from execution o
      where o.project_id = ${projectId} and lower(o.commit) = lower(mine.commit) and o.id <> mine.id
        and o.id < mine.until and ${isTrustedBuild(sql, sql`o`)}
      order by o.id desc limit ${SIBLINGS}
    ) o cross join lateral (
      select id from test_run r
      where r.project_id = ${projectId} and r.execution_id = o.id and r.task_slug = mine.task_slug and not r.outage
        and ${wasCompleted(sql)} offset 0) t
    cross join unnest(mine.numbers) as n (number)
    cross join lateral (
      select statuses, array_position(test_cases, n.number) as place from case_result
      where project_id = ${projectId} and run_id = t.id and block = ${blockOfCase(sql, sql`n.number`)} offset 0) c
    where substr(c.statuses, c.place, 1) in ('p', 'P')
  ) same
  order by mine.place`;

/**
 * A run that shows the state of test cases: of those that a baseline is made of, on the line, on the branch or pull request of a
 * judged one, or on another one.
 */
export type StateRun = {
  id: string;
  executionId: string;
  of: "base" | "line" | "mine" | "sibling";
  commit: string | null;
  /** The pull request or the branch. */
  origin: string | null;
  /** A sibling that is the default branch or a long-lived one. */
  isLine: boolean;
  /** ISO 8601; null: of a baseline. */
  completedAt: string | null;
  /** Of the judged runs that may see it when it is complete. */
  places: number[];
};

/** The last runs of the task on the lines and on the branches of the runs, and the last ones on other branches, oldest first. */
export const selectStateRuns = (sql: Tx, projectId: string, runs: readonly FailedRunKey[]) => {
  const ofLine = (branch: Fragment) => sql`(
    select e.id from execution e
    where e.project_id = ${projectId} and e.branch ${branch} and e.pull_request is not distinct from mine.base_pull and e.build_id is null
      and not e.sample and ${isTrustedBuild(sql, sql`e`)} and e.id < mine.until and e.id <> mine.id
      -- Of two builds of the line side by side only the earlier one explains the other.
      and (e.id < mine.id or mine.pull_request is not null or mine.queue_ref is not null
        or coalesce(mine.branch, mine.default_branch) is distinct from mine.line)
    order by e.branch, e.id desc limit ${LINE_RUNS})`;
  return sql<StateRun[]>`
    with mine as materialized (${judgedRuns(sql, projectId, runs)})
    select r.id, r.execution_id as "executionId", 'base' as of, null as commit, null as origin, true as "isLine",
      null::timestamptz as "completedAt", to_json(k.places) as places
    from (
      select baseline_id, task_slug, array_agg(place) as places from mine where baseline_id is not null group by 1, 2) k
    cross join lateral (${baseRuns(sql, projectId, { baseline: sql`k.baseline_id`, taskSlug: sql`k.task_slug` })}) r
    union all
    select r.id, e.id, k.of, e.commit, coalesce(e.pull_request, e.branch), e.pull_request is null and (
      coalesce(e.branch = p.default_branch, true) or is_long_lived(e.branch, p.long_lived_branches)), r.completed_at, to_json(k.places)
    from (
      select of, task_slug, id, array_agg(place) as places from (
        select mine.place, mine.task_slug, 'line' as of, e.id from mine cross join lateral (
          ${ofLine(sql`= mine.line`)} union all
          select * from ${ofLine(sql`is null`)} e where mine.line = mine.default_branch
        ) e
        union all
        select mine.place, mine.task_slug, 'mine', e.id from mine cross join lateral (
          select e.id from execution e
          where e.project_id = ${projectId} and e.branch = mine.branch and e.pull_request is not distinct from mine.pull_request
            and e.build_id is null and e.id < mine.until and e.id <> mine.id and e.branch is distinct from mine.line
            and ${isTrustedBuild(sql, sql`e`)}
          order by e.id desc limit ${OWN_RUNS}) e
        union all
        select mine.place, mine.task_slug, 'sibling', e.id from mine cross join lateral (
          select e.id from execution e
          where e.project_id = ${projectId} and e.id < mine.until and e.id >= mine.siblings_since and e.id <> mine.id
            and ${isOfOtherLine(sql, sql`e`, sql`mine`)} and (e.pull_request is not null or e.branch is distinct from mine.line)
            and e.build_id is null and not ${isOfSameCommit(sql)}
          order by e.id desc limit ${LOOKED_THROUGH}) e
      ) near group by 1, 2, 3
    ) k cross join lateral (
      select * from execution where project_id = ${projectId} and id = k.id offset 0) e
    cross join lateral (
      select id, completed_at from test_run
      where project_id = ${projectId} and execution_id = k.id and task_slug = k.task_slug and not outage
        and completed_at is not null offset 0) r
    join project p on p.id = ${projectId}
    order by 2`;
};

/** A run of the last hours on another line. */
export type OtherRun = Pick<StateRun, "id" | "completedAt" | "places"> & {
  tests: number;
  /** Of the causes that are looked for: how many test cases had it, and which, if the run is judged now. */
  hits: [cause: string, hits: number, testCases: number[] | null][] | null;
};

/** In which runs beside those that are judged their causes were seen. */
export const selectOtherRuns = (sql: Tx, projectId: string, runs: readonly FailedRunKey[]) => sql<OtherRun[]>`
  with mine as materialized (${judgedRuns(sql, projectId, runs)})
  select r.id, r.passed + r.failed as tests, r.completed_at as "completedAt", d.hits, to_json(k.places) as places
  from (
    select e.id, mine.task_slug, array_agg(mine.place) as places
    from mine cross join lateral (
      select e.id from execution e
      where e.project_id = ${projectId} and e.id >= mine.outside_since and e.id < mine.until and e.id <> mine.id
        and ${isOfOtherLine(sql, sql`e`, sql`mine`)} and not coalesce(is_same_commit(e.commit, mine.commit), false)
      order by e.id desc limit ${LOOKED_THROUGH}
    ) e group by 1, 2
  ) k cross join lateral (
    select * from test_run
    where project_id = ${projectId} and execution_id = k.id and task_slug = k.task_slug and completed_at is not null offset 0) r
  left join lateral (
    select json_agg(json_build_array(replace(d.cause::text, '-', ''), d.hits, case when r.id = any(${toTextArray(runs.map(({ id }) => id))}::uuid[]) then d.test_cases end)) as hits
    from (
      select cause, count(distinct test_case) as hits, json_agg(test_case) as test_cases from case_detail d
      where project_id = ${projectId} and run_id = r.id
        and cause = any(${toTextArray([...new Set(runs.flatMap(({ causes }) => causes))])}::uuid[])
        -- What was a change's there says nothing of the surroundings.
        and not coalesce((
          select explained in ('change', 'inherited') from failure f
          where f.project_id = ${projectId} and f.run_id = r.id and f.test_case = d.test_case offset 0), false)
      group by cause) d
  ) d on r.failed + r.flaky > 0`;
