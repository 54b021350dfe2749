/** Executions for lists and pages: one filter, and the columns of the selected ones. */

import type { TaskEnd } from "../rules/red_reason.ts";
import type { ExecutionProbe, ExecutionStatus, TaskStatus } from "../schema/executions.ts";
import { type Fragment, type Sql, toTextArray } from "../database/connect.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import { type CommitWords, isCommit, wordsOfCommit } from "./commits.ts";
import { machineTimeOfRuns, wallTimeOfRuns } from "./durations.ts";
import type { ExecutionRow } from "./executions.ts";
import type { TaskRow } from "./execution_tasks.ts";
import { selectTasksWithTags } from "./filter_options.ts";
import { lastRunner, missingRunner } from "./leases.ts";
import { probeOf } from "./probes.ts";
import { type NewTestRow, newTestsOf } from "./verifications.ts";
import { flaws, namedShards } from "./shards.ts";

type ExecutionListFilter = {
  status?: ExecutionStatus | string | undefined;
  key?: string | undefined;
  branch?: string | undefined;
  commit?: string | undefined;
  pull_request?: string | undefined;
  environment?: string | undefined;
  untrusted?: boolean | undefined;
  /** True: only probes; otherwise there are none. */
  probe?: boolean | undefined;
  /** Only executions with a run of this task. */
  task_slug?: string | undefined;
  tag?: string[] | undefined;
  /** ISO 8601. */
  created_after?: string | undefined;
  /** ISO 8601. */
  created_before?: string | undefined;
  /** A key, or the beginning of a commit. */
  q?: string | undefined;
  /** An id: only older executions. */
  before?: string | undefined;
  /** An id: only this and newer executions. */
  from?: string | undefined;
  /** Reruns are left out. */
  buildsOnly?: boolean | undefined;
};

/** The greatest id. With this bound the planner chooses the index in the order of ids, whatever the statistics are. */
const NEWEST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff";
/** Maximum number of executions with one key, or of one commit, that are searched. */
const MAX_FOUND = 1_000;

/** The tasks that have the tags of a filter; undefined: it has none. */
const taggedTasks = async (sql: Sql, projectId: string, { tag = [] }: ExecutionListFilter) =>
  tag.length === 0 ? undefined : await selectTasksWithTags(sql, projectId, tag);

/**
 * A statement: the ids of the executions that match a filter, newest first, one more than `limit`. `tasks`: they have one of these tasks.
 */
function chosenIds(
  sql: Sql,
  projectId: string,
  filter: ExecutionListFilter,
  limit: number,
  tasks: readonly string[] | undefined,
): Fragment {
  const { status, key, branch, commit, pull_request, environment, task_slug, created_after, created_before } = filter;
  const { q, before, from, buildsOnly, untrusted, probe } = filter;
  const hasTask = (condition: Fragment) => sql`and exists (
    select from test_run r
    where r.project_id = execution.project_id and r.execution_id = execution.id and ${condition})`;
  // Few are of one commit, or have one key: looked up by themselves, because the planner would rather look through all from the
  // newest on.
  const found = (condition: Fragment) => sql`
    select id from execution where project_id = ${projectId} and ${condition}`;
  const newest = (condition: Fragment) => sql`(${found(condition)} order by id desc limit ${MAX_FOUND})`;
  return sql`
    select id from execution
    where project_id = ${projectId}
      ${tasks?.length === 0 ? sql`and false` : sql``}
      ${status ? sql`and status = ${status}` : sql``}
      ${key ? sql`and key = ${key}` : sql``}
      ${branch ? sql`and branch = ${branch}` : sql``}
      ${commit ? sql`and id = any(array(${found(isCommit(sql, commit))}))` : sql``}
      ${pull_request ? sql`and pull_request = ${pull_request}` : sql``}
      ${environment ? sql`and environment = ${environment}` : sql``}
      and ${probe ? sql`probe` : sql`not probe`}
      ${untrusted === undefined || probe ? sql`` : sql`and untrusted = ${untrusted}`}
      ${
        q === undefined
          ? sql``
          : sql`and id = any(array(
              ${newest(sql`key = any(${toTextArray([q, q.replace(/^#/, "")])}::text[])`)}
              union all ${newest(isCommit(sql, q))}))`
      }
      ${buildsOnly ? sql`and rerun_of is null` : sql``}
      ${created_after ? sql`and id >= ${firstIdAt(Date.parse(created_after) + 1)}` : sql``}
      ${created_before ? sql`and id < ${firstIdAt(Date.parse(created_before))}` : sql``}
      ${from ? sql`and id >= ${from}` : sql``}
      and id < ${before ?? NEWEST_ID}
      ${task_slug ? hasTask(sql`r.task_slug = ${task_slug}`) : sql``}
      ${tasks ? hasTask(sql`r.task_slug = any(${toTextArray(tasks)}::text[])`) : sql``}
    order by id desc limit ${limit + 1}`;
}

/** An execution with the wall time of all its tasks, and the sum over tasks, shards and attempts. */
export type TimedExecutionRow = ExecutionRow &
  CommitWords & {
    number: number;
    durationMs: number;
    machineTimeMs: number;
    /** The test case and the result of a probe; null for any other execution. */
    probeOf: ExecutionProbe | null;
    /** The tests that it has added and that are run again, in the order of their verifications. */
    newTests: NewTestRow[];
  };

type Joined = Omit<TimedExecutionRow, "tasks"> & { [K in keyof TaskRow as `task_${K}`]: TaskRow[K] | null };

/** `ids` is a statement that selects ids of executions; their tasks come along in the same round trip. Newest first. */
async function selectWithTasks(sql: Sql, projectId: string, ids: Fragment): Promise<TimedExecutionRow[]> {
  const ofExecution = sql`over (partition by e.id)`;
  const rows = await sql<Joined[]>`
    with chosen as materialized (
      select e.* from (${ids}) chosen cross join lateral (
        select * from execution where project_id = ${projectId} and id = chosen.id offset 0) e)
    select e.id, e.key, e.number, e.status, e.mode, e.trigger, e.branch, e.commit, e.pull_request as "pullRequest",
      e.base_branch as "baseBranch", e.queue_ref as "queueRef", e.build_url as "buildUrl", e.environment, e.created_at as "createdAt", e.started_at as "startedAt",
      e.completed_at as "completedAt", e.sample, e.untrusted, e.probe, case when e.probe then ${probeOf(sql, sql`e`)} end as "probeOf",
      ${newTestsOf(sql, sql`e`)} as "newTests", k."commitAuthor", k."commitSubject",
      e.rerun_of as "rerunOf", e.build_id as "buildId",
      e.repeated_status as "repeatedStatus", e.baseline_id as "baselineId",
      coalesce(${wallTimeOfRuns(sql, ofExecution)}, 0) as "durationMs",
      coalesce(${machineTimeOfRuns(sql, ofExecution)}, 0) as "machineTimeMs",
      r.task_slug as task_slug, r.status as task_status, r.attempt as task_attempt, r.passed as task_passed,
      r.failed as task_failed, r.skipped as task_skipped, r.flaky as task_flaky, r.verdict as task_verdict, r.outage as task_outage,
      r.declared as task_declared, r.shards as task_shards, ${namedShards(sql, sql`r`)} as "task_namedShards", ${flaws(sql, sql`r`)} as task_flaws, r.started_at as "task_startedAt", r.completed_at as "task_completedAt",
      r.duration_ms as "task_durationMs", r.slower as task_slower, r.forgiven as task_forgiven, case when not (e.mode = 'run' and r.status = 'queued') then r.reason end as task_reason,
      case when e.mode = 'run' and r.status = 'queued' then ${missingRunner(sql, sql`r`)} end as "task_missingRunner", case when e.mode = 'run' then ${lastRunner(sql, sql`r`)} end as task_runner
    from chosen e cross join ${wordsOfCommit(sql, projectId, sql`e.commit`)} k
      left join test_run r on r.project_id = e.project_id and r.execution_id = e.id
    order by e.id desc, r.id`;
  const found = new Map<string, TimedExecutionRow>();
  for (const row of rows) {
    const execution: TimedExecutionRow = { ...row, tasks: [] };
    for (const name of Object.keys(execution)) if (name.startsWith("task_")) delete execution[name as never];
    if (!found.has(row.id)) found.set(row.id, execution);
    if (row.task_slug !== null)
      found.get(row.id)!.tasks.push({
        slug: row.task_slug,
        status: row.task_status!,
        attempt: row.task_attempt!,
        passed: row.task_passed!,
        failed: row.task_failed!,
        skipped: row.task_skipped!,
        flaky: row.task_flaky!,
        verdict: row.task_verdict,
        outage: row.task_outage!,
        declared: row.task_declared!,
        shards: row.task_shards!,
        namedShards: row.task_namedShards!,
        durationMs: row.task_durationMs!,
        startedAt: row.task_startedAt,
        completedAt: row.task_completedAt,
        runner: row.task_runner,
        reason: row.task_reason,
        missingRunner: row.task_missingRunner ?? null,
        flaws: row.task_flaws,
        forgiven: row.task_forgiven!,
        slower: row.task_slower,
      });
  }
  return [...found.values()];
}

export const selectExecution = async (
  sql: Sql,
  projectId: string,
  id: string,
): Promise<TimedExecutionRow | undefined> => (await selectWithTasks(sql, projectId, sql`select ${id}::uuid as id`))[0];

/** The fields that identify an execution to people. */
export type ExecutionName = Pick<TimedExecutionRow, "id" | "key" | "number" | "branch" | "commit" | "createdAt">;

/** Returns names by id, without deleted executions. */
export const selectExecutionNames = async (
  sql: Sql,
  projectId: string,
  ids: readonly (string | null)[],
): Promise<Map<string, ExecutionName>> => {
  const wanted = [...new Set(ids.filter((id) => id !== null))];
  if (wanted.length === 0) return new Map();
  const rows = await sql<ExecutionName[]>`
    select id, key, number, branch, commit, created_at as "createdAt" from execution
    where project_id = ${projectId} and id = any(${toTextArray(wanted)}::uuid[])`;
  return new Map(rows.map((row) => [row.id, row]));
};

/** Maximum number of reruns that are listed. */
const MAX_RERUNS = 20;

export type RerunRow = ExecutionName & Pick<ExecutionRow, "status">;

/** The newest reruns of a build, newest first. */
export const selectReruns = async (sql: Sql, projectId: string, buildId: string): Promise<RerunRow[]> =>
  await sql<RerunRow[]>`
  select id, key, number, branch, commit, created_at as "createdAt", status from execution
  where project_id = ${projectId} and build_id = ${buildId} order by id desc limit ${MAX_RERUNS}`;

/** Newest first, one row more than `limit`. */
export const selectExecutions = async (
  sql: Sql,
  projectId: string,
  limit: number,
  filter: ExecutionListFilter,
): Promise<TimedExecutionRow[]> => {
  const tasks = await taggedTasks(sql, projectId, filter);
  return await selectWithTasks(sql, projectId, chosenIds(sql, projectId, filter, limit, tasks));
};

/** An execution as a row of a page, with sums over its tasks. */
export type ExecutionSummary = CommitWords & {
  id: string;
  key: string | null;
  /** Ascending within a project, not without gaps. */
  number: number;
  status: string;
  branch: string | null;
  commit: string | null;
  pullRequest: string | null;
  /** The branch that the pull request or the merge queue merges into. */
  baseBranch: string | null;
  environment: string | null;
  mode: string;
  passed: number;
  failed: number;
  skipped: number;
  flaky: number;
  tasks: number;
  openTasks: number;
  /** Statuses in the order of the tasks. */
  taskStatuses: TaskStatus[];
  newFailures: number;
  unclearFailures: number;
  /** The tasks that make the execution red; empty if it is not red. */
  redTasks: TaskEnd[];
  /** Failed tests of the tasks that are an outage; 0: none of them is. */
  outageFailures: number;
  /** Wall time of all runs. */
  durationMs: number;
  createdAt: string;
  startedAt: string | null;
  completedAt: string | null;
  /** The outcome with its reruns; null: they have not changed it. */
  repeatedStatus: "passed" | "failed" | "timed_out" | null;
  /** Whether it repeats another execution, and is no build of its own. */
  isRerun: boolean;
  sample: boolean;
  /** Whether it comes from a fork or is a probe: it is shown, but not counted. */
  untrusted: boolean;
  probe: boolean;
};

/** `ids` is a statement that selects ids of executions; newest first. */
export const summariesOf = (sql: Sql, projectId: string, ids: Fragment) => sql<ExecutionSummary[]>`
  select e.id, e.key, e.number, e.status, e.branch, e.commit, e.pull_request as "pullRequest", e.base_branch as "baseBranch", e.environment,
    e.mode,
    coalesce(r.passed, 0)::int as passed, coalesce(r.failed, 0)::int as failed, coalesce(r.skipped, 0)::int as skipped,
    coalesce(r.flaky, 0)::int as flaky, coalesce(r.tasks, 0)::int as tasks, coalesce(r.open, 0)::int as "openTasks",
    coalesce(r.statuses, '[]'::json) as "taskStatuses",
    coalesce(r.fresh, 0)::int as "newFailures", coalesce(r.unclear, 0)::int as "unclearFailures", coalesce(r.outage_failures, 0)::int as "outageFailures",
    coalesce(r.red, '[]'::json) as "redTasks", coalesce(r.ms, 0)::bigint as "durationMs", e.created_at as "createdAt", e.started_at as "startedAt",
    e.completed_at as "completedAt", e.repeated_status as "repeatedStatus", e.rerun_of is not null as "isRerun", e.sample, e.untrusted, e.probe,
    k."commitAuthor", k."commitSubject"
  from (${ids}) chosen join execution e on e.project_id = ${projectId} and e.id = chosen.id
  cross join ${wordsOfCommit(sql, projectId, sql`e.commit`)} k
  left join lateral (
    select sum(r.passed) as passed, json_agg(r.status order by r.id) as statuses, sum(r.failed - r.shadowed) as failed, sum(r.skipped) as skipped, sum(r.flaky) as flaky,
      count(*) as tasks, count(*) filter (where r.status in ('queued', 'running')) as open, sum(r.failed) filter (where r.outage) as outage_failures,
      ${wallTimeOfRuns(sql)} as ms,
      json_agg(json_build_object('slug', r.task_slug, 'status', r.status, 'attempt', r.attempt, 'shards', r.shards,
        'namedShards', ${namedShards(sql, sql`r`)}, 'completedAt', r.completed_at, 'failed', r.failed, 'verdict', r.verdict,
        'reason', r.reason, 'flaws', ${flaws(sql, sql`r`)}) order by r.id) filter (
          where e.status in ('failed', 'timed_out') and r.status <> 'passed') as red,
      sum(f.fresh) as fresh, sum(f.unclear) as unclear
    from test_run r left join lateral (
      select count(*) filter (where blame = 'new') as fresh, count(*) filter (where blame = 'unclear') as unclear from failure
      where project_id = r.project_id and run_id = r.id and blame in ('new', 'unclear') offset 0) f on r.failed > 0
    where r.project_id = ${projectId} and r.execution_id = e.id
  ) r on true
  order by e.id desc`;

/** Newest first, one row more than `limit`. */
export const selectSummaries = async (
  sql: Sql,
  projectId: string,
  limit: number,
  filter: ExecutionListFilter = {},
): Promise<ExecutionSummary[]> => {
  const tasks = await taggedTasks(sql, projectId, filter);
  return await summariesOf(sql, projectId, chosenIds(sql, projectId, filter, limit, tasks));
};
