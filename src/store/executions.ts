/** Executions and, with them, their tasks: the test runs of each. */

import type { Slower } from "../rules/slower.ts";
import { hasEnded, type TaskState } from "../rules/execution.ts";
import type { Flaws } from "../rules/red_reason.ts";
import type {
  ExecutionMode,
  ExecutionStatus,
  ExecutionTrigger,
  PlannedTask,
  TaskStatus,
} from "../schema/executions.ts";
import { compose, type Given } from "../database/compose.ts";
import { type Fragment, keepPlans, type Sql, toRows, toTextArray, type Tx } from "../database/connect.ts";
import { baselineOf } from "./baselines.ts";
import { hasServedFor } from "./instance.ts";
import { isAtWork, LEASE_SECONDS } from "./leases.ts";
import { takeLock, type AdvisoryLock } from "../database/locks.ts";
import { isDue } from "../database/retry_backoff.ts";
import { hasResult } from "./outcome.ts";
import { caseIndexVersionOf } from "./case_index_version.ts";
import { flaws, namedShards } from "./shards.ts";
import { isLiveBug, agreesWithBuild, isProject } from "./predicates.ts";

/** One task of an execution as it is stored; times are ISO 8601. */
export type TaskRow = {
  slug: string;
  status: TaskStatus;
  attempt: number;
  /** As announced. */
  shards: number;
  /** Those that uploads have named. */
  namedShards: number[];
  passed: number;
  failed: number;
  skipped: number;
  flaky: number;
  verdict: "passed" | "failed" | null;
  outage: boolean;
  declared: boolean;
  /** Wall time. */
  durationMs: number;
  startedAt: string | null;
  completedAt: string | null;
  runner: string | null;
  reason: string | null;
  flaws: Flaws | null;
  /** With what its wall time was compared, if it passed and took longer than usual. */
  slower: Slower | null;
};

export type ExecutionRow = {
  id: string;
  key: string | null;
  status: ExecutionStatus;
  mode: ExecutionMode;
  trigger: ExecutionTrigger;
  branch: string | null;
  commit: string | null;
  pullRequest: string | null;
  /** Of a build of a merge queue: the branch that is merged into. */
  baseBranch: string | null;
  /** The ref that a merge queue has made for the build; null for any other build. */
  queueRef: string | null;
  buildUrl: string | null;
  environment: string | null;
  createdAt: string;
  sample: boolean;
  /** It comes from a fork or is a probe: it is shown, and counted nowhere. */
  untrusted: boolean;
  /** It runs one test case at one commit: see store/probes.ts. */
  probe: boolean;
  rerunOf: string | null;
  /** In a rerun: the execution that was repeated first. */
  buildId: string | null;
  /** In a build: the outcome with its reruns, where they have changed it. */
  repeatedStatus: "passed" | "failed" | "timed_out" | null;
  baselineId: string | null;
  startedAt: string | null;
  completedAt: string | null;
  tasks: TaskRow[];
};

const executionColumns = (sql: Sql) => sql`
  id, key, status, mode, trigger, branch, commit, pull_request as "pullRequest", base_branch as "baseBranch",
  queue_ref as "queueRef", build_url as "buildUrl", environment,
  created_at as "createdAt", started_at as "startedAt", completed_at as "completedAt", sample, untrusted, probe, rerun_of as "rerunOf",
  build_id as "buildId", repeated_status as "repeatedStatus", baseline_id as "baselineId", depth, reruns, fail_fast as "failFast", (select default_branch from project p where p.id = execution.project_id) as "defaultBranch"`;

/** An execution as a writer needs it, its row locked until the end of the transaction. */
export type LockedExecution = Omit<ExecutionRow, "tasks"> & {
  /** How many automations led to it. */
  depth: number;
  /** How many executions it repeats, one after the other. */
  reruns: number;
  /** After so many failures what has not begun is cancelled. */
  failFast: number | null;
  /** Of the project: what names no branch counts as being on it. */
  defaultBranch: string;
};

export const lockExecution = async (sql: Tx, projectId: string, id: string): Promise<LockedExecution | undefined> => {
  const [execution] = await sql<LockedExecution[]>`
    select ${executionColumns(sql)} from execution where project_id = ${projectId} and id = ${id} for update`;
  return execution;
};

/**
 * A build as its CI names it. Its execution is the one with the key that agrees with commit and branch wherever both sides
 * know them; of several the one that agrees in most, then the newest.
 */
export type BuildName = {
  key: string;
  branch?: string | null | undefined;
  queueRef?: string | null | undefined;
  commit?: string | null | undefined;
  /** An untrusted report never belongs to a trusted execution, nor the other way round. */
  untrusted?: boolean;
};

/** The key of an execution that ended so long ago is free again. */
const KEY_DAYS = 7;
/** How many executions of one key are looked through. */
const NAMESAKES = 200;

type GivenBuild = { key: Given; branch: Given; commit: Given; untrusted: Given; now: Given };

/** Which have the key and are not too old at `now`. */
const haveKey = (
  sql: Sql,
  projectId: Given,
  { key, untrusted, now }: Pick<GivenBuild, "key" | "untrusted" | "now">,
) => sql`
  project_id = ${projectId} and key = ${key} and id in (
    select id from execution where project_id = ${projectId} and key = ${key} and untrusted = ${untrusted}::boolean
    order by id desc limit ${NAMESAKES})
  and (completed_at is null or completed_at > ${now}::timestamptz - ${KEY_DAYS} * interval '1 day')`;

/** The newest execution that has the key, as JSON; null without a key. */
const namesakeOf = (sql: Sql, projectId: Given, build: Pick<GivenBuild, "key" | "untrusted" | "now">): Fragment => sql`(
  select json_build_object('branch', coalesce(queue_ref, branch), 'commit', commit) from execution
  where ${haveKey(sql, projectId, build)} order by id desc limit 1)`;

/** See `Build`; `isUnclear`: the build does not name its commit, and several agree. */
const ofBuild = (
  sql: Sql,
  projectId: Given,
  { key, branch, commit, untrusted, now }: GivenBuild,
  columns = executionColumns(sql),
): Fragment => {
  const agrees = sql`
    ${haveKey(sql, projectId, { key, untrusted, now })}
    and ${agreesWithBuild(sql, sql`execution`, { branch, commit })}`;
  return sql`
    select ${columns},
      ${commit}::text is null and (select count(*) from execution where ${agrees}) > 1 as "isUnclear"
    from execution where ${agrees}
    order by
      (commit is not null and ${commit}::text is not null)::int + (coalesce(queue_ref, branch) is not null and ${branch}::text is not null)::int
        desc, id desc
    limit 1`;
};

const lockOfBuild = (
  sql: Tx,
  projectId: string,
  { key, branch = null, queueRef, commit = null, untrusted = false }: BuildName,
  now: Date,
): Fragment =>
  sql`${ofBuild(sql, projectId, { key, branch: queueRef ?? branch, commit, untrusted: String(untrusted), now: now.toISOString() })} for update`;

/** What an upload says of its execution; neither id nor key: it is one of its own. */
export type ExecutionQuery = {
  /** The id that the execution gets if it is new. */
  freshId: string;
  id: string | null;
  key: string | null;
  branch: string | null;
  /** See `Line` (rules/branch.ts). */
  baseBranch: string | null;
  queueRef: string | null;
  commit: string | null;
  untrusted: boolean;
  now: Date;
};

/** What an upload belongs to. */
export type ExecutionMatch = {
  freshId: string;
  /** Locked; undefined: it is to be inserted. */
  execution: LockedExecution | undefined;
  /** There is an execution, but it could not be locked: another transaction has it, or has deleted it. */
  isBusy: boolean;
  /** The upload does not name its commit, and several executions agree with it. */
  isUnclear: boolean;
  /** Of what is to be inserted: the newest other build with its key, and what it is to be compared with. */
  namesake: Pick<ExecutionRow, "branch" | "commit"> | null;
  baselineId: string | null;
  /** Of the project. */
  defaultBranch: string;
  timeoutMinutes: number;
  /** Whether a run may resolve a bug. */
  hasLiveBugs: boolean;
  /** False: nothing is red on the branch. */
  mayHaveRedTasks: boolean;
  /** See `caseIndexVersionOf`. */
  namesVersion: string;
};

/** Of a left join. */
type LockedRow = { [Name in keyof Omit<LockedExecution, "defaultBranch">]: LockedExecution[Name] | null } & Pick<
  LockedExecution,
  "defaultBranch"
>;

type MatchRow = Omit<ExecutionMatch, "execution"> & LockedRow;
type MatchParameters<Value> = Record<
  | "project"
  | "freshIds"
  | "ids"
  | "keys"
  | "branches"
  | "baseBranches"
  | "areQueued"
  | "commits"
  | "areUntrusted"
  | "times",
  Value
>;

/** `mayWait` false: what another transaction has locked is busy. `baseCommit` names what the new ones are compared with. */
const matchStatement = (
  sql: Sql,
  given: MatchParameters<Given>,
  { mayWait, baseCommit }: { mayWait: boolean; baseCommit?: string | undefined },
): Fragment => {
  const asked = {
    key: sql`asked.key`,
    branch: sql`asked.branch`,
    commit: sql`asked.commit`,
    untrusted: sql`asked.untrusted`,
    now: sql`asked.now`,
  };
  const { project } = given;
  return sql`
    select asked.fresh_id as "freshId", locked.*, coalesce(build."isUnclear", false) as "isUnclear",
      coalesce(asked.id, build.id) is not null and locked.id is null as "isBusy",
      p.default_branch as "defaultBranch", p.execution_timeout_minutes as "timeoutMinutes",
      case when locked.id is null
        then ${baselineOf(sql, project, {
          id: sql`asked.fresh_id`,
          branch: sql`case when not asked.is_queued then asked.branch end`,
          baseBranch: sql`asked.base_branch`,
          baseCommit,
        })}
        else locked."baselineId" end as "baselineId",
      case when locked.id is null then ${namesakeOf(sql, project, asked)} end as namesake,
      exists (select from bug_report b where b.project_id = ${project} and ${isLiveBug(sql, sql`b`)})
        as "hasLiveBugs",
      red.is_there is not null as "mayHaveRedTasks",
      ${mayWait ? sql`${keepPlans(sql)} as plans,` : sql``}
      ${caseIndexVersionOf(sql, project)} as "namesVersion"
    from project p cross join unnest(
      ${given.freshIds}::uuid[], ${given.ids}::uuid[], ${given.keys}::text[], ${given.branches}::text[],
      ${given.baseBranches}::text[], ${given.areQueued}::boolean[], ${given.commits}::text[], ${given.areUntrusted}::boolean[],
      ${given.times}::timestamptz[]
    ) as asked (fresh_id, id, key, branch, base_branch, is_queued, commit, untrusted, now)
    left join lateral (${ofBuild(sql, project, asked, sql`id`)}) build on true
    left join lateral (
      select ${executionColumns(sql)} from execution
      where project_id = ${project} and id = coalesce(asked.id, build.id) for update ${mayWait ? sql`` : sql`skip locked`}
    ) locked on true
    left join lateral (
      -- A look-up for each: what "exists" makes of it may be a hash of all red tasks.
      select true as is_there from red_task
      where project_id = ${project} and branch = coalesce(locked.branch, asked.branch, p.default_branch) limit 1
    ) red on true
    where p.id = ${project}`;
};

const composeMatch = (mayWait: boolean) =>
  compose<keyof MatchParameters<string>, MatchRow>((sql, given) =>
    matchStatement(
      sql,
      {
        project: given("project"),
        freshIds: given("freshIds"),
        ids: given("ids"),
        keys: given("keys"),
        branches: given("branches"),
        baseBranches: given("baseBranches"),
        areQueued: given("areQueued"),
        commits: given("commits"),
        areUntrusted: given("areUntrusted"),
        times: given("times"),
      },
      { mayWait },
    ),
  );
const MATCH_AT_ONCE = composeMatch(false);
const MATCH_WAITING = composeMatch(true);

/**
 * All that reports meet when they arrive, in one round trip: the execution of each with its id or key, see `Build`, and what
 * it takes to insert one. The transaction holds the locks of their keys. The answers are in any order.
 */
export async function matchExecutions(
  sql: Tx,
  projectId: string,
  queries: readonly ExecutionQuery[],
  { mayWait, baseCommit }: { mayWait: boolean; baseCommit?: string | undefined },
): Promise<ExecutionMatch[]> {
  const parameters: MatchParameters<string> = {
    project: projectId,
    freshIds: toTextArray(queries.map(({ freshId }) => freshId)),
    ids: toTextArray(queries.map(({ id }) => id)),
    // An id says all.
    keys: toTextArray(queries.map(({ id, key }) => (id === null ? key : null))),
    branches: toTextArray(queries.map(({ branch, queueRef }) => queueRef ?? branch)),
    baseBranches: toTextArray(queries.map(({ baseBranch }) => baseBranch)),
    areQueued: toTextArray(queries.map(({ queueRef }) => String(queueRef !== null))),
    commits: toTextArray(queries.map(({ commit }) => commit)),
    areUntrusted: toTextArray(queries.map(({ untrusted }) => String(untrusted))),
    times: toTextArray(queries.map(({ now }) => now.toISOString())),
  };
  const rows =
    baseCommit !== undefined
      ? await sql<MatchRow[]>`${matchStatement(sql, parameters, { mayWait, baseCommit })}`
      : await (mayWait ? MATCH_WAITING : MATCH_AT_ONCE)(sql, parameters);
  return rows.map((row) => {
    const {
      freshId,
      isBusy,
      isUnclear,
      namesake,
      timeoutMinutes,
      hasLiveBugs,
      mayHaveRedTasks,
      namesVersion,
      ...rest
    } = row;
    const { baselineId, defaultBranch } = rest;
    const execution = rest.id === null ? undefined : (rest as LockedExecution);
    const ofProject = { defaultBranch, timeoutMinutes, hasLiveBugs, mayHaveRedTasks, namesVersion };
    return { freshId, execution, isBusy, isUnclear, namesake, baselineId, ...ofProject };
  });
}

/** The execution with the key that agrees with commit and branch wherever both sides know them: see `Build`. */
export const lockExecutionOfBuild = async (
  sql: Tx,
  projectId: string,
  build: BuildName,
  now: Date,
): Promise<(LockedExecution & { isUnclear: boolean }) | undefined> => {
  const [execution] = await sql<
    (LockedExecution & { isUnclear: boolean })[]
  >`${lockOfBuild(sql, projectId, build, now)}`;
  return execution;
};

export const selectOrigin = async (
  sql: Sql,
  projectId: string,
  id: string,
): Promise<Pick<ExecutionRow, "branch" | "commit"> | undefined> => {
  const [row] = await sql<Pick<ExecutionRow, "branch" | "commit">[]>`
    select branch, commit from execution where project_id = ${projectId} and id = ${id}`;
  return row;
};

/** Who holds it is the only one who begins an execution with this key. */
export const lockOfKey = (projectId: string, key: string): AdvisoryLock => ["execution", `${projectId} ${key}`];

/** Until the end of the transaction nobody else begins an execution with this key. */
export const lockExecutionKey = (sql: Tx, projectId: string, key: string) => takeLock(sql, lockOfKey(projectId, key));

/** Undefined when it was deleted. */
export const selectExecutionStatus = async (
  sql: Sql,
  projectId: string,
  id: string,
): Promise<ExecutionStatus | undefined> => {
  const [row] = await sql<{ status: ExecutionStatus }[]>`
    select status from execution where project_id = ${projectId} and id = ${id}`;
  return row?.status;
};

type OriginField = "branch" | "commit" | "pullRequest" | "baseBranch" | "queueRef" | "buildUrl" | "environment";
export type ExecutionOrigin = { [Field in OriginField]?: string | null | undefined };

export type InsertExecution = ExecutionOrigin & {
  key: string | null;
  status: ExecutionStatus;
  mode?: ExecutionMode;
  trigger: ExecutionTrigger;
  /** null: the project's. */
  timeoutMinutes: number | null;
  depth?: number;
  untrusted?: boolean | undefined;
  /** Then it is untrusted as well. */
  probe?: boolean;
  /** Names what it is compared with. */
  baseCommit?: string | undefined;
  failFast?: number | null | undefined;
  /** Sealed. */
  variables?: Buffer | undefined;
  /** The execution that this one repeats: both are compared with the same, and have the same variables. */
  rerunOf?: Pick<LockedExecution, "id" | "buildId" | "reruns" | "baselineId"> & { failedOnly: boolean };
  now: Date;
};

/** An execution that has just begun; `namesake` is the newest other build with its key. */
export type InsertedExecution = LockedExecution & { namesake: Pick<ExecutionRow, "branch" | "commit"> | null };

/** An expression: the base branch of a build of a merge queue, by default the default branch; null for any other build. */
const baseOf = (
  sql: Sql,
  projectId: Given,
  { baseBranch, queueRef }: Record<"baseBranch" | "queueRef", Given | null>,
): Fragment => sql`
  case when ${queueRef}::text is not null
    then coalesce(${baseBranch}::text, (select default_branch from project where id = ${projectId})) end`;

/** Who gives it a key holds the lock of that. Its `createdAt` is the moment in its id. */
export const insertExecution = async (
  sql: Tx,
  projectId: string,
  {
    key,
    status,
    mode,
    trigger,
    timeoutMinutes,
    depth,
    untrusted = false,
    probe = false,
    baseCommit,
    failFast,
    variables,
    rerunOf,
    now,
    ...origin
  }: InsertExecution,
): Promise<InsertedExecution> => {
  const id = Bun.randomUUIDv7("hex", now.getTime());
  const [execution] = await sql<InsertedExecution[]>`
    insert into execution (project_id, id, key, status, trigger, branch, commit, pull_request, base_branch, queue_ref, build_url,
      environment, timeout_minutes, expires_at, created_at, mode, depth, untrusted, probe, fail_fast, failed_only, variables, rerun_of, build_id, reruns,
      baseline_id)
    select ${projectId}, ${id}, ${key}, ${status}, ${trigger}, ${origin.branch ?? null},
      ${origin.commit ?? null}, ${origin.pullRequest ?? null}, ${baseOf(sql, projectId, { baseBranch: origin.baseBranch ?? null, queueRef: origin.queueRef ?? null })},
      ${origin.queueRef ?? null}, ${origin.buildUrl ?? null}, ${origin.environment ?? null},
      minutes, now() + minutes * interval '1 minute', ${now.toISOString()}, ${mode ?? "report"}, ${depth ?? 0}, ${untrusted}, ${probe},
      ${failFast ?? null}, ${rerunOf?.failedOnly ?? false}, ${
        rerunOf
          ? sql`(select variables from execution where project_id = ${projectId} and id = ${rerunOf.id})`
          : sql`${(variables ?? null) as never}::bytea`
      },
      ${rerunOf?.id ?? null}, ${rerunOf ? (rerunOf.buildId ?? rerunOf.id) : null}, ${rerunOf ? rerunOf.reruns + 1 : 0},
      ${rerunOf ? sql`${rerunOf.baselineId}::uuid` : baselineOf(sql, projectId, { id, branch: origin.branch ?? null, baseBranch: origin.baseBranch ?? null, baseCommit })}
    from (
      select coalesce(${timeoutMinutes}::int, ${
        rerunOf
          ? sql`(select timeout_minutes from execution where project_id = ${projectId} and id = ${rerunOf.id})`
          : sql`null`
      }, execution_timeout_minutes) as minutes from project where id = ${projectId}
    ) as timeout
    returning ${executionColumns(sql)}, ${namesakeOf(sql, projectId, { key, untrusted: String(untrusted), now: now.toISOString() })} as namesake`;
  return execution!;
};

/** An execution that an upload begins, as the upload leaves it. */
export type UploadedExecution = Omit<
  ExecutionRow,
  "tasks" | "completedAt" | "mode" | "sample" | "probe" | "rerunOf" | "buildId" | "repeatedStatus"
> & {
  timeoutMinutes: number;
  /** Of its run, where that is complete: the execution, if it is over, ends no sooner. */
  runCompletedAt: string | null;
};

/** Their origin is all there. */
export const insertUploadedExecutions = (sql: Sql, projectId: Given, rows: Given) => sql`
  insert into execution (project_id, id, key, status, trigger, branch, commit, pull_request, base_branch, queue_ref, build_url,
    environment, timeout_minutes, expires_at, created_at, started_at, completed_at, baseline_id, untrusted)
  select ${projectId}, id, key, status, trigger, branch, commit, "pullRequest",
    ${baseOf(sql, projectId, { baseBranch: sql`"baseBranch"`, queueRef: sql`"queueRef"` })}, "queueRef", "buildUrl", environment, "timeoutMinutes",
    case when not ended then now() + "timeoutMinutes" * interval '1 minute' end, "createdAt", "startedAt",
    case when ended then greatest("startedAt", "runCompletedAt") end, "baselineId", untrusted
  from json_to_recordset(${rows}::text::json) as fresh (id uuid, key text, status text, trigger text, branch text,
    commit text, "pullRequest" text, "baseBranch" text, "queueRef" text, "buildUrl" text, environment text,
    "timeoutMinutes" int, ended boolean,
    "createdAt" timestamptz, "startedAt" timestamptz, "runCompletedAt" timestamptz, "baselineId" uuid, untrusted boolean)`;

export const toExecutionRows = (executions: readonly UploadedExecution[]): string =>
  toRows(executions.map((execution) => ({ ...execution, ended: hasEnded(execution.status) })));

export const insertDeclaredTasks = (
  sql: Tx,
  projectId: string,
  { id, untrusted }: Pick<ExecutionRow, "id" | "untrusted">,
  tasks: readonly Pick<PlannedTask, "slug" | "shards">[],
) => sql`
  insert into test_run ${sql(
    tasks.map(({ slug, shards }) => ({
      project_id: projectId,
      id: Bun.randomUUIDv7(),
      execution_id: id,
      task_slug: slug,
      untrusted,
      status: "queued",
      declared: true,
      shards,
    })),
  )}`;

export const selectStatus = async (
  sql: Sql,
  projectId: string,
  executionId: string,
): Promise<ExecutionStatus | undefined> => {
  const [row] = await sql<{ status: ExecutionStatus }[]>`
    select status from execution where project_id = ${projectId} and id = ${executionId}`;
  return row?.status;
};

/** The build that an execution belongs to: the one that it repeats, or itself. */
export const selectBuildStatus = async (
  sql: Sql,
  projectId: string,
  executionId: string,
): Promise<{ id: string; status: ExecutionStatus } | undefined> => {
  const [row] = await sql<{ id: string; status: ExecutionStatus }[]>`
    select b.id, b.status from execution e join execution b on b.project_id = ${projectId} and b.id = coalesce(e.build_id, e.id)
    where e.project_id = ${projectId} and e.id = ${executionId}`;
  return row;
};

/** The tasks of a locked execution. */
export const selectTasks = (sql: Sql, projectId: string, executionId: string) => sql<TaskRow[]>`
  select task_slug as slug, status, attempt, passed, failed, skipped, flaky, verdict, outage, declared, shards,
    ${namedShards(sql, sql`r`)} as "namedShards", ${flaws(sql, sql`r`)} as flaws, duration_ms as "durationMs", started_at as "startedAt", completed_at as "completedAt", reason,
    null as runner
  from test_run r where project_id = ${projectId} and execution_id = ${executionId} order by id`;

/**
 * The tasks of a build, each as its last rerun that has a result left it. What a rerun was not answered for stays as it was.
 * A build that is gone has none.
 */
export const selectTasksWithReruns = (sql: Sql, projectId: string, buildId: string) => sql<
  (TaskState & { isRepeated: boolean })[]
>`
  select distinct on (task_slug) status, declared, verdict, attempt, "isRepeated"
  from (
    select r.*, false as "isRepeated" from test_run r where r.project_id = ${projectId} and r.execution_id = ${buildId}
    union all
    select r.*, true from execution e join test_run r on r.project_id = e.project_id and r.execution_id = e.id
    where e.project_id = ${projectId} and e.build_id = ${buildId} and ${hasResult(sql, sql`r`)}
  ) r order by task_slug, execution_id desc`;

/** Null: there are no reruns, or they tell nothing else than the build itself. */
export const updateRepeatedStatus = (
  sql: Tx,
  projectId: string,
  id: string,
  status: "passed" | "failed" | "timed_out" | null,
) => sql`
  update execution set repeated_status = nullif(${status}::text, status)
  where project_id = ${projectId} and id = ${id} and repeated_status is distinct from nullif(${status}::text, status)`;

export type ExecutionChange = ExecutionOrigin & {
  status: ExecutionStatus;
  /** Whether a report has just come in: it starts the execution and puts its expiry off. */
  arrived: boolean;
  /** When its last run was completed; null: that is looked up, and what the same statement writes is not seen. */
  completedAt?: string | null;
  now: Date;
};

/**
 * Fields of the origin that are still unknown are filled in; `completedAt` is set once, and is not before that of a run.
 * `now` lies in the past where what arrived was completed there. `rows`: see `toChangeRows`.
 */
export const updateExecutions = (sql: Sql, projectId: Given, rows: Given) => sql`
  update execution e set
    status = c.status,
    -- A build of a merge queue names no branch.
    branch = case when e.queue_ref is null then coalesce(e.branch, c.branch) end,
    base_branch = coalesce(e.base_branch, case when e.branch is null
      then ${baseOf(sql, projectId, { baseBranch: sql`c."baseBranch"`, queueRef: sql`c."queueRef"` })} end),
    queue_ref = coalesce(e.queue_ref, case when e.branch is null then c."queueRef" end),
    commit = case when is_same_commit(e.commit, c.commit) and length(e.commit) < length(c.commit)
      then c.commit else coalesce(e.commit, c.commit) end,
    pull_request = coalesce(e.pull_request, c."pullRequest"),
    build_url = coalesce(e.build_url, c."buildUrl"),
    environment = coalesce(e.environment, c.environment),
    started_at = least(e.started_at, case when c.arrived then c.now end),
    completed_at = case when c.ended then coalesce(e.completed_at, greatest(c.now, coalesce(c."completedAt", (
      select max(r.completed_at) from test_run r where r.project_id = ${projectId} and r.execution_id = c.id))))
      else e.completed_at end,
    expires_at = case when c.ended then null when c.arrived then now() + e.timeout_minutes * interval '1 minute'
      else e.expires_at end
  from json_to_recordset(${rows}::text::json) as c (id uuid, status text, branch text, commit text, "pullRequest" text,
    "baseBranch" text, "queueRef" text, "buildUrl" text, environment text, arrived boolean, ended boolean, now timestamptz, "completedAt" timestamptz)
  where e.project_id = ${projectId} and e.id = c.id
    -- Looked up: the planner expects a hundred rows, and would read all executions of a small project for them.
    and e.id = any(array(select id from json_to_recordset(${rows}::text::json) as c (id uuid)))`;

export const toChangeRows = (changes: readonly (ExecutionChange & { id: string })[]): string =>
  toRows(changes.map((change) => ({ ...change, ended: hasEnded(change.status) })));

export const updateExecution = (sql: Tx, projectId: string, id: string, change: ExecutionChange) =>
  updateExecutions(sql, projectId, toChangeRows([{ ...change, id }]));

/** What tasks that were open when their execution ended have become. */
export const updateOpenTasks = (
  sql: Tx,
  projectId: string,
  executionId: string,
  tasks: readonly Pick<TaskRow, "slug" | "status" | "verdict" | "reason">[],
) => sql`
  update test_run r set status = ended.status, verdict = ended.verdict, reason = ended.reason
  from unnest(
    ${toTextArray(tasks.map(({ slug }) => slug))}::text[], ${toTextArray(tasks.map(({ status }) => status))}::text[],
    ${toTextArray(tasks.map(({ verdict }) => verdict))}::text[],
    ${toTextArray(tasks.map(({ reason }) => reason))}::text[]) as ended (slug, status, verdict, reason)
  where r.project_id = ${projectId} and r.execution_id = ${executionId} and r.task_slug = ended.slug`;

/** Whether there was one. */
export const deleteExecution = async (sql: Sql, projectId: string, id: string): Promise<boolean> =>
  (await sql`delete from execution where project_id = ${projectId} and id = ${id}`).count === 1;

/** Executions whose time is over, locked; those that another server is at are left to it. */
export const lockExpiredExecutions = (sql: Tx, limit: number) => sql<{ projectId: string; id: string }[]>`
  select project_id as "projectId", id from execution
  where expires_at < now() and not (${isAtWork(sql)}) and ${isProject(sql, sql`execution.project_id`)}
    and ${isDue(sql, "expiry", sql`execution.id::text`)}
    and ${hasServedFor(sql, LEASE_SECONDS)}
  order by expires_at limit ${limit} for update skip locked`;

/** Failures that count, over all tasks. */
export const countUnquarantined = async (sql: Sql, projectId: string, executionId: string): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select coalesce(sum(failed - quarantined), 0)::int as count from test_run
    where project_id = ${projectId} and execution_id = ${executionId}`;
  return row!.count;
};

/** The names of the keys that have sealed variables of executions, hexadecimal, with how much. */
export const selectExecutionSealKeys = (sql: Sql) => sql<{ name: string; count: number }[]>`
  select encode(substring(variables from 2 for 4), 'hex') as name, count(*)::int as count from execution
  where variables is not null group by 1 order by 1`;

export type SealedExecution = { projectId: string; id: string; sealed: Buffer };

/** In a transaction: some whose variables were sealed with another key, locked. */
export const lockExecutionsSealedOtherwise = (sql: Tx, keyName: string, limit: number) => sql<SealedExecution[]>`
  select project_id as "projectId", id, variables as sealed from execution
  where variables is not null and substring(variables from 2 for 4) <> decode(${keyName}, 'hex')
    and ${isDue(sql, "sealing", sql`concat_ws(' ', project_id, id)`)}
  limit ${limit} for update skip locked`;

export const updateExecutionSealed = (sql: Tx, { projectId, id, sealed }: SealedExecution) => sql`
  update execution set variables = ${sealed} where project_id = ${projectId} and id = ${id}`;
