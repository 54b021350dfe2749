/** Selects the baselines that executions and their runs are compared with. */

import { executionsOfCommit } from "./commits.ts";
import type { Given } from "../database/compose.ts";
import type { Fragment, Sql } from "../database/connect.ts";
import { isOvertaken } from "./default_branch.ts";
import { hasResult } from "./outcome.ts";
import { isTrustedBuild } from "./predicates.ts";

/** Maximum number of builds of a branch that are searched for runs of a task. */
const MAX_BUILDS = 200;
/** The same for the builds at or before a baseline. */
const MAX_BUILDS_BEFORE = 100;
/** Maximum number of runs of a task that the results of its baseline come from. */
const MAX_RUNS = 20;
/** Number of green runs without a test after which the test counts as removed. */
const GREEN_RUNS = 3;

type Builds = { condition: Fragment; limit: number; columns?: Fragment };

/**
 * Selects builds of one branch, newest first. `branch` is a condition on it. A rerun is no build, because it only has results of what it
 * repeats.
 */
const buildsOf = (
  sql: Sql,
  projectId: Given,
  branch: Fragment,
  { condition, limit, columns = sql`id` }: Builds,
): Fragment =>
  // In the order of the index of branches, so that no other index is used: by id alone all executions are in order, and none may fit.
  sql`(
    select ${columns} from execution
    where project_id = ${projectId} and branch ${branch} and not sample and ${isTrustedBuild(sql, sql`execution`)} and build_id is null
      and ${condition}
    order by branch, id desc limit ${limit})`;

/** Executions of the default branch, newest first. */
export const onDefaultBranch = (sql: Sql, projectId: Given, condition: Fragment, limit: number): Fragment => {
  const own = { condition: sql`pull_request is null and ${condition}`, limit };
  // Executions without a branch count as being on the default branch. Each part of the union uses an index of its own.
  const named = buildsOf(sql, projectId, sql`= (select default_branch from project where id = ${projectId})`, own);
  return sql`
    select id from (${named} union all ${buildsOf(sql, projectId, sql`is null`, own)}) either order by id desc limit ${limit}`;
};

/** What an execution says of its baseline. `id` is its own; `base` undefined: it names neither target branch nor base commit. */
type BaselineQuery = {
  id: Given;
  branch: Given | null;
  pullRequest: Given | null;
  base: { branch: Given | null; commit: Given | null } | undefined;
};

/**
 * Selects the baseline of an execution: among builds that ended before it began and have results, the one of the base commit. If there is
 * none, it is the last one of the target branch before the branch saw that commit, or the last one of all if the branch has not seen it. A
 * long-lived branch is compared with itself; without results of the target branch, the default branch counts.
 */
export const baselineOf = (sql: Sql, projectId: Given, { id, branch, pullRequest, base }: BaselineQuery): Fragment => {
  const hasResults = sql`
    status in ('passed', 'failed', 'timed_out') and exists (
      select from test_run r
      where r.project_id = ${projectId} and r.execution_id = execution.id and ${isMeasure(sql, projectId)})`;
  const isOfLine = sql`case when line.is_of_pull
    then pull_request <> coalesce(${pullRequest}::text, '') else pull_request is null end`;
  /** The last build of a line at or before the base commit. A commit that the branch has left behind is not the last one. */
  const last = (isOnBranch: Fragment) => ({
    condition: sql`
      ${isOfLine} and ${hasResults} and not ${isOvertaken(sql, projectId, { e: sql`execution` })}
      and id < ${base ? sql`coalesce((select id from same where branch ${isOnBranch} and ${isOfLine} order by id limit 1), ${id})` : id}`,
    limit: 1,
  });
  const itself = sql`case when is_long_lived(${branch}::text, long_lived_branches) then ${branch}::text end`;
  // A pull request into the branch of another one is compared with the builds of that branch.
  const lines = sql`
    select 1 as rank, target as branch, false as is_of_pull from base
    ${base ? sql`union all select 2, target, true from base where not is_shared` : sql``}
    union all select 3, default_branch, false from base`;
  const nameless = sql`select 3 as rank, false as is_of_pull`;
  const newest = sql`
    select id from (
      select line.rank, b.id from (${lines}) line cross join lateral ${buildsOf(sql, projectId, sql`= line.branch`, last(sql`= line.branch`))} b
      union all
      select line.rank, b.id from (${nameless}) line cross join lateral ${buildsOf(sql, projectId, sql`is null`, last(sql`is null`))} b
    ) b order by rank, id desc limit 1`;
  const isOn = (line: Fragment) => sql`pull_request is null and coalesce(branch, base.default_branch) = ${line} desc`;
  const ofCommit = sql`
    select id from same execution cross join (select default_branch, target from base) base where ${hasResults}
    order by ${isOn(sql`coalesce(base.target, base.default_branch)`)}, ${isOn(sql`base.default_branch`)}, id desc limit 1`;
  const same = sql`, same as materialized (
    select execution.* from (${executionsOfCommit(sql, projectId, sql`${base?.commit ?? sql`null`}::text`)}) c cross join lateral (
      select * from execution where project_id = ${projectId} and id = c.id offset 0) execution
    where ${base?.commit ?? sql`null`}::text is not null and not sample and build_id is null and execution.id < ${id})`;
  return sql`(
    with base as materialized (
      select target, default_branch, is_long_lived(target, long_lived_branches) as is_shared from (
        select p.*, nullif(${base ? sql`coalesce(${base.branch}::text, ${itself})` : itself}, default_branch) as target
        from project p where id = ${projectId}) p
    ) ${base ? same : sql``}
    select ${base ? sql`coalesce((${ofCommit}), (${newest}))` : sql`(${newest})`})`;
};

/** A run that says something of its cases. */
export const isUsable = (sql: Sql) => sql`r.completed_at is not null and not r.outage`;

/**
 * A condition: the run can be a baseline because it has results of tests. It may lack some, if its report broke off or a shard is missing:
 * these come from the runs before it.
 */
const isMeasure = (sql: Sql, projectId: Given) => sql`
  not r.outage and (r.completed_at is not null or r.status in ('incomplete', 'timed_out'))
  and case when r.passed + r.skipped > 0 or r.failed = 0 then r.passed + r.skipped > 0 else r.failed > (
    select count(last.exit_case) from (
      select distinct on (a.shard) a.exit_case from attempt a
      where a.project_id = ${projectId} and a.run_id = r.id order by a.shard, a.number desc) last) end`;

/** The run of a task that others are measured by, in the execution `id`. */
const measureIn = (sql: Sql, projectId: Given, id: Fragment, taskSlug: Given) => sql`
  select * from test_run r
  where r.project_id = ${projectId} and r.execution_id = ${id} and r.task_slug = ${taskSlug} and ${isMeasure(sql, projectId)} offset 0`;

/**
 * Selects the builds of the baseline's branch at or before it, and the baseline, newest first. Commits are in the order in which the branch
 * first saw them; builds of commits that the branch has left behind are excluded.
 */
const buildsBefore = (sql: Sql, projectId: Given): Fragment => {
  const own = sql`id < base.id and pull_request is not distinct from base.line_pull`;
  const builds = (branch: Fragment, condition: Fragment) =>
    buildsOf(sql, projectId, branch, { condition, limit: MAX_BUILDS_BEFORE, columns: sql`id, commit` });
  return sql`
    select id from (
      select *, max(first) over (order by place) as newest, max(first) filter (where id = base.id) over () as base_first from (
        select *, min(place) over (partition by coalesce(lower(commit), id::text)) as first from (
          select *, row_number() over (order by id) as place from (
            select base.id, base.commit
            union all ${builds(sql`= base.line`, own)}
            union all ${builds(sql`is null`, sql`base.is_default and ${own}`)}
          ) b) numbered) ordered
    ) b where first = base_first or first < base_first and first = newest
    order by id desc`;
};

/**
 * Selects the runs that the results of a task's baseline come from, test by test: the last result of each test counts. They are of the
 * branch of the baseline or, if the task has none there, of the default branch: id, execution_id, and is_expected, which says that no later
 * run was complete, so its tests should run. `baseline` is the id of an execution.
 */
export const baseRuns = (
  sql: Sql,
  projectId: Given,
  { baseline, taskSlug }: { baseline: Fragment; taskSlug: Given },
): Fragment => sql`
  with base as materialized (
    select e.id, e.commit, coalesce(e.branch, e.base_branch, p.default_branch) as line,
      case when e.queue_ref is null then e.pull_request end as line_pull,
      e.pull_request is null and coalesce(e.branch, p.default_branch) = p.default_branch as is_default
    from execution e join project p on p.id = e.project_id where e.project_id = ${projectId} and e.id = ${baseline}
  ), own as materialized (
    select r.* from base cross join lateral (${buildsBefore(sql, projectId)}) e
    cross join lateral (${measureIn(sql, projectId, sql`e.id`, taskSlug)}) r
    order by e.id desc limit ${MAX_RUNS}
  ), run as materialized (
    select * from own
    union all
    select * from (
      select r.* from base cross join lateral (${onDefaultBranch(sql, projectId, sql`id < base.id`, MAX_BUILDS)}) e
      cross join lateral (${measureIn(sql, projectId, sql`e.id`, taskSlug)}) r
      where not base.is_default and not exists (select from own) order by e.id desc limit ${MAX_RUNS}) r
  )
  select id, execution_id, place <= coalesce(
    least(min(place) filter (where is_whole) over (), min(place) filter (where greens >= ${GREEN_RUNS}) over ()), ${MAX_RUNS}) as is_expected
  from (
    select id, execution_id, completed_at is not null and not coalesce((absence->>'isShort')::boolean, false) as is_whole,
      row_number() over newest as place, count(*) filter (where verdict = 'passed') over newest as greens
    from run window newest as (order by execution_id desc)) placed`;

/** The runs with the tests that an execution should have, of its tasks and those of its baseline. */
export const expectedRuns = (sql: Sql, projectId: Given, executionId: Given): Fragment => {
  const baseline = sql`(select baseline_id from execution where project_id = ${projectId} and id = ${executionId})`;
  return sql`
    select r.id from (
      select distinct task_slug from test_run where project_id = ${projectId} and execution_id in (${executionId}, ${baseline})) task
    cross join lateral (${baseRuns(sql, projectId, { baseline, taskSlug: sql`task.task_slug` })}) r where r.is_expected`;
};

/** The runs of a task in the reruns of a build that have a result, and began before the execution `before`, if it is not null. */
export const rerunsOf = (
  sql: Sql,
  projectId: Given,
  { buildId, taskSlug, before }: { buildId: Given; taskSlug: Given; before: Given },
): Fragment => sql`
  select r.id, r.execution_id from (
    select id from execution
    where project_id = ${projectId} and build_id = ${buildId} and (${before}::uuid is null or id < ${before}::uuid) offset 0) e
  cross join lateral (
    select * from test_run r
    where r.project_id = ${projectId} and r.execution_id = e.id and r.task_slug = ${taskSlug} and ${hasResult(sql, sql`r`)} offset 0) r`;

/**
 * Selects the runs of `runs`, a statement that selects ids of runs of builds as `id`, together with the runs of their reruns: `base`, the
 * run of the build, and `id` and `execution_id` of each. The latest result of a test case that is not skipped counts, so a rerun that began
 * after the next build is excluded.
 */
export const withReruns = (sql: Sql, projectId: Given, runs: Fragment): Fragment => sql`
  select b.id as base, r.id, r.execution_id from (
    select b.*, lag(b.execution_id) over (partition by b.task_slug order by b.execution_id desc) as next_id
    from (${runs}) given cross join lateral (
      select * from test_run where project_id = ${projectId} and id = given.id offset 0) b) b
  cross join lateral (
    select b.id, b.execution_id
    union all
    ${rerunsOf(sql, projectId, { buildId: sql`b.execution_id`, taskSlug: sql`b.task_slug`, before: sql`b.next_id` })}
  ) r`;

/** The number of results in the last run of a task on the default branch; null: there is none among its last builds. */
export const selectDefaultTotal = async (sql: Sql, projectId: string, taskSlug: string): Promise<number | null> => {
  const [row] = await sql<{ total: number }[]>`
    select r.total from (${onDefaultBranch(sql, projectId, sql`true`, MAX_BUILDS)}) e cross join lateral (
      select passed + failed + skipped as total from test_run r
      where project_id = ${projectId} and execution_id = e.id and task_slug = ${taskSlug} and ${isUsable(sql)} offset 0) r
    order by e.id desc limit 1`;
  return row?.total ?? null;
};
