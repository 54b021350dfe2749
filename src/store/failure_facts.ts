/** What the blame of failures is decided by: see rules/assign_blame.ts. */

import { EXCUSE_RESULTS, type FailureFacts } from "../rules/assign_blame.ts";
import { compose, type Given } from "../database/compose.ts";
import { type Fragment, type Sql, toTextArray, type Tx } from "../database/connect.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import { baselineRuns, isUsable, onDefaultBranch, withReruns } from "./baselines.ts";
import { isOfIncident, type JudgedRun } from "./failures.ts";
import { episodeRate, hadEpisodes, hasFailedOnMain, isBroken, isKnownFlaky, wasMended } from "./health.ts";
import { blockOfCase, failedResultsOf, lastResults } from "./packing.ts";
import { isActiveQuarantine, isLiveBug, isOnDefault } from "./predicates.ts";

/** Number of runs on the default branch since the baseline that are asked whether they fail as well. */
const MAX_RUNS_SINCE = 20;

type Parameters<Value> = Record<"project" | "ids" | "executionIds" | "taskSlugs" | "times" | "untils", Value>;

/** A table expression: the runs that are judged, with what matters of their executions. */
const judgedRuns = (sql: Sql, given: Parameters<Fragment>) => sql`
  select asked.*, e.branch, e.pull_request, e.commit, e.baseline_id, e.rerun_of, e.created_at, e.queue_ref,
    ${isOnDefault(sql, sql`e`, sql`p.default_branch`)} as is_on_default
  from unnest(
    ${given.ids}::uuid[], ${given.executionIds}::uuid[], ${given.taskSlugs}::text[], ${given.times}::timestamptz[],
    ${given.untils}::uuid[]) as asked (id, execution_id, task_slug, completed_at, until)
  join project p on p.id = ${given.project}
  cross join lateral (
    select * from execution where project_id = ${given.project} and id = asked.execution_id offset 0) e`;

/** The failed test cases of runs, without those of incidents; `runs` is a table with `mine`, the judged run, and `id`. */
const failedWithoutIncident = (sql: Sql, projectId: Given, runs: Fragment) => sql`
  select r.mine, f.number, f.run_id
  from ${failedResultsOf(sql, projectId, sql`select distinct id from ${runs} r`)} f join ${runs} r on r.id = f.run_id
  where not ${isOfIncident(sql, projectId, sql`f.run_id`, sql`f.number`)}`;

/** One plan for all: planning it costs more than executing it, so each table is looked up row by row. */
const FACTS = compose<keyof Parameters<string>, FailureFacts>((sql, name) => {
  const projectId = name("project");
  // What ran on the same commit, or is repeated by this, shows no change of the default branch. Of two builds of the default
  // branch side by side only the earlier one explains the other: else each would, and neither failure would be new.
  const since = sql`
    id <> run.execution_id and id is distinct from run.rerun_of
    and (id < run.execution_id or not run.is_on_default)
    and id > coalesce(run.baseline_id, '00000000-0000-0000-0000-000000000000') and id < run.until
    and not coalesce(is_same_commit(commit, run.commit), false)`;
  const isAsked = sql`h.is_current and h.is_flaky`;
  const inARow = sql`
    select case when ${isAsked} then (1 + count(*))::int end as number from (
      select letter, count(*) filter (where letter in ('p', 'P')) over (order by run_id desc) as passes
      from (${lastResults(sql, projectId, sql`f.number`, sql`b.run_id < f.run_id`, EXCUSE_RESULTS)}) r
      where ${isAsked} and letter in ('p', 'P', 'f', 'F') and exists (
        select from test_run t join execution e on e.project_id = ${projectId} and e.id = t.execution_id
        where t.project_id = ${projectId} and t.id = r.run_id and not t.outage
          and e.branch is not distinct from run.branch and e.pull_request is not distinct from run.pull_request)
    ) own where passes = 0`;
  const hasOpenBug = sql`coalesce((
    select true from bug_case k cross join lateral (
      select * from bug_report where project_id = ${projectId} and id = k.bug_report_id offset 0) b
    where k.project_id = ${projectId} and k.test_case = f.number and ${isLiveBug(sql, sql`b`)} and b.created_at < run.created_at limit 1), false)`;
  const isInBaseline = sql`coalesce((
    select true from base_run r cross join lateral (
      select test_cases from case_result
      where project_id = ${projectId} and run_id = r.id and block = ${blockOfCase(sql, sql`f.number`)} offset 0) b
    where r.mine = f.run_id and f.number = any(b.test_cases) limit 1), false)`;
  const runs = judgedRuns(sql, {
    project: projectId,
    ids: name("ids"),
    executionIds: name("executionIds"),
    taskSlugs: name("taskSlugs"),
    times: name("times"),
    untils: name("untils"),
  });
  return sql`
    with run as materialized (${runs}),
    failed as materialized (
      select run_id, number from ${failedResultsOf(sql, projectId, sql`select id from run`)} f),
    base_run as materialized (
      select run.id as mine, b.id, b.execution_id from run cross join lateral (
        ${withReruns(sql, projectId, baselineRuns(sql, projectId, { executionId: sql`run.execution_id`, taskSlug: sql`run.task_slug` }))}) b),
    base as materialized (
      select distinct f.mine, f.number from (${failedWithoutIncident(sql, projectId, sql`base_run`)}) f
      join base_run own on own.mine = f.mine and own.id = f.run_id
      -- A rerun of the baseline has passed it.
      where not exists (
        select from base_run later cross join lateral (
          select test_cases, statuses from case_result
          where project_id = ${projectId} and run_id = later.id and block = ${blockOfCase(sql, sql`f.number`)} offset 0) b
        where later.mine = f.mine and later.execution_id > own.execution_id
          and substr(b.statuses, array_position(b.test_cases, f.number), 1) in ('p', 'P'))),
    main_run as materialized (
      select run.id as mine, r.id from run
      cross join lateral (${onDefaultBranch(sql, projectId, since, MAX_RUNS_SINCE)}) e
      cross join lateral (
        select * from test_run
        where project_id = ${projectId} and execution_id = e.id and task_slug = run.task_slug offset 0) r
      where ${isUsable(sql)}),
    main as materialized (
      select distinct f.mine, f.number from (${failedWithoutIncident(sql, projectId, sql`main_run`)}) f)
    select f.run_id as "runId", f.number as "testCase", q.test_case is not null as "isQuarantined",
      base.number is not null as "failedInBaseline", main.number is not null as "failedOnDefault",
      run.is_on_default as "isOnDefault", h.is_current as "isCurrent", h.is_flaky as "isFlaky",
      h.is_broken as "isBroken", h.has_failed as "hasFailedOnDefault", h.had_episodes as "hadEpisodes",
      run.queue_ref is not null as "hasNewestDefault", exists (
        select from attempt a where a.project_id = ${projectId} and a.run_id = f.run_id and a.exit_case = f.number) as "isStandIn",
      h.was_mended as "wasFixed", h.flake_rate::float8 as "flakeRate", h.episode_rate::float8 as "episodeRate",
      case when h.flaky then h.flaky_at else h.episode_at end as "flakyAt", r.number as "inARow",
      h.has_failed and ${hasOpenBug} as "hasOpenBug", h.has_failed and ${isInBaseline} as "isInBaseline"
    from failed f
    join run on run.id = f.run_id
    left join base on base.mine = f.run_id and base.number = f.number
    left join main on main.mine = f.run_id and main.number = f.number
    left join lateral (
      select test_case from quarantine q
      where project_id = ${projectId} and test_case = f.number and ${isActiveQuarantine(sql, sql`q`)} offset 0) q on true
    left join lateral (
      select * from case_health where project_id = ${projectId} and test_case = f.number offset 0) stored on true
    cross join lateral (
      select h.flaky, h.flaky_at, h.episode_at, h.flake_rate, ${episodeRate(sql)} as episode_rate,
        coalesce(h.last_run_at <= run.completed_at + interval '1 day', true) as is_current,
        ${isKnownFlaky(sql)} as is_flaky, coalesce(${isBroken(sql)}, false) as is_broken,
        ${hasFailedOnMain(sql)} as has_failed, ${hadEpisodes(sql)} as had_episodes, ${wasMended(sql)} as was_mended
      from (select stored.*) h offset 0) h
    cross join lateral (${inARow}) r
    order by f.run_id, f.number`;
});

/** The facts about the failures of these runs, whose results are stored, ordered by run and test case. */
export function selectFailureFacts(sql: Tx, projectId: string, runs: readonly JudgedRun[]): Promise<FailureFacts[]> {
  const times = runs.map(({ completedAt }) => completedAt ?? new Date().toISOString());
  return FACTS(sql, {
    project: projectId,
    ids: toTextArray(runs.map(({ id }) => id)),
    executionIds: toTextArray(runs.map(({ executionId }) => executionId)),
    taskSlugs: toTextArray(runs.map(({ taskSlug }) => taskSlug)),
    times: toTextArray(times),
    untils: toTextArray(times.map((time) => firstIdAt(Date.parse(time) + 1))),
  });
}
