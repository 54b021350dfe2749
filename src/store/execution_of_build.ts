/** Finds the execution that a build belongs to, by its id, or by its key, commit and branch. */

import { compose, type Given } from "../database/compose.ts";
import { type Fragment, type Sql, toTextArray, type Tx } from "../database/connect.ts";
import { baselineOf } from "./baselines.ts";
import { takeLock, type AdvisoryLock } from "../database/locks.ts";
import { isLiveBug, agreesWithBuild } from "./predicates.ts";
import { type ExecutionRow, executionColumns, type LockedExecution } from "./executions.ts";

/**
 * A build as its CI identifies it. Its execution is the one with the key that agrees with commit and branch where both are known; of
 * several the one that agrees in most fields, then the newest.
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
/** Maximum number of executions of one key that are searched. */
const MAX_NAMESAKES = 200;

type GivenBuild = { key: Given; branch: Given; commit: Given; untrusted: Given; now: Given };

/** Selects executions that have the key and are recent enough at `now`. */
const haveKey = (
  sql: Sql,
  projectId: Given,
  { key, untrusted, now }: Pick<GivenBuild, "key" | "untrusted" | "now">,
) => sql`
  project_id = ${projectId} and key = ${key} and id in (
    select id from execution where project_id = ${projectId} and key = ${key} and untrusted = ${untrusted}::boolean
    order by id desc limit ${MAX_NAMESAKES})
  and (completed_at is null or completed_at > ${now}::timestamptz - ${KEY_DAYS} * interval '1 day')`;

/** The newest execution that has the key, as JSON; null without a key. */
export const namesakeOf = (
  sql: Sql,
  projectId: Given,
  build: Pick<GivenBuild, "key" | "untrusted" | "now">,
): Fragment => sql`(
  select json_build_object('branch', coalesce(queue_ref, branch), 'commit', commit) from execution
  where ${haveKey(sql, projectId, build)} order by id desc limit 1)`;

/** See `BuildName`; `isUnclear`: the build does not name its commit, and several agree. */
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

/** The fields of an upload that determine its execution. Without id and key, the upload gets an execution of its own. */
export type ExecutionQuery = {
  /** The id that the execution gets if it is new. */
  freshId: string;
  id: string | null;
  key: string | null;
  branch: string | null;
  pullRequest: string | null;
  /** See `Line` (rules/branch.ts). */
  baseBranch: string | null;
  /** See `baselineOf`. */
  baseCommit: string | null;
  queueRef: string | null;
  commit: string | null;
  untrusted: boolean;
  now: Date;
};

/** The execution that an upload belongs to, and facts about its project. */
export type ExecutionMatch = {
  freshId: string;
  /** Locked; undefined: it is to be inserted. */
  execution: LockedExecution | undefined;
  /** There was an execution, which has been deleted while its lock was waited for. */
  isGone: boolean;
  /** The upload does not name its commit, and several executions agree with it. */
  isUnclear: boolean;
  /** The newest other build with the same key, if the execution is new. */
  namesake: Pick<ExecutionRow, "branch" | "commit"> | null;
  baselineId: string | null;
  /** The default branch of the project. */
  defaultBranch: string;
  timeoutMinutes: number;
  /** Whether a run may resolve a bug. */
  hasLiveBugs: boolean;
  /** False: nothing is red on the branch. */
  mayHaveRedTasks: boolean;
};

/** A locked execution from a left join: all fields are null if there is none. */
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
  | "pullRequests"
  | "baseBranches"
  | "baseCommits"
  | "areQueued"
  | "commits"
  | "areUntrusted"
  | "times",
  Value
>;

/** `namesBase`: a report names its target branch or base commit. */
const matchStatement = (sql: Sql, given: MatchParameters<Given>, namesBase: boolean): Fragment => {
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
      coalesce(asked.id, build.id) is not null and locked.id is null as "isGone",
      p.default_branch as "defaultBranch", p.execution_timeout_minutes as "timeoutMinutes",
      case when locked.id is null
        then ${baselineOf(sql, project, {
          id: sql`asked.fresh_id`,
          branch: sql`case when not asked.is_queued then asked.branch end`,
          pullRequest: sql`asked.pull_request`,
          base: namesBase ? { branch: sql`asked.base_branch`, commit: sql`asked.base_commit` } : undefined,
        })}
        else locked."baselineId" end as "baselineId",
      case when locked.id is null then ${namesakeOf(sql, project, asked)} end as namesake,
      exists (select from bug_report b where b.project_id = ${project} and ${isLiveBug(sql, sql`b`)})
        as "hasLiveBugs",
      red.is_there is not null as "mayHaveRedTasks"
    from project p cross join unnest(
      ${given.freshIds}::uuid[], ${given.ids}::uuid[], ${given.keys}::text[], ${given.branches}::text[],
      ${given.pullRequests}::text[], ${given.baseBranches}::text[], ${given.baseCommits}::text[], ${given.areQueued}::boolean[], ${given.commits}::text[], ${given.areUntrusted}::boolean[],
      ${given.times}::timestamptz[]
    ) as asked (fresh_id, id, key, branch, pull_request, base_branch, base_commit, is_queued, commit, untrusted, now)
    left join lateral (${ofBuild(sql, project, asked, sql`id`)}) build on true
    left join lateral (
      select ${executionColumns(sql)} from execution
      where project_id = ${project} and id = coalesce(asked.id, build.id) for update
    ) locked on true
    left join lateral (
      -- A look-up for each: what "exists" makes of it may be a hash of all red tasks.
      select true as is_there from red_task
      where project_id = ${project} and branch = coalesce(locked.branch, asked.branch, p.default_branch) limit 1
    ) red on true
    where p.id = ${project}`;
};

const composeMatch = (namesBase: boolean) =>
  compose<keyof MatchParameters<string>, MatchRow>((sql, given) =>
    matchStatement(
      sql,
      {
        project: given("project"),
        freshIds: given("freshIds"),
        ids: given("ids"),
        keys: given("keys"),
        branches: given("branches"),
        pullRequests: given("pullRequests"),
        baseBranches: given("baseBranches"),
        baseCommits: given("baseCommits"),
        areQueued: given("areQueued"),
        commits: given("commits"),
        areUntrusted: given("areUntrusted"),
        times: given("times"),
      },
      namesBase,
    ),
  );
/** The plan of a statement with a base is twice as large, so other reports do without. */
const MATCH = composeMatch(false);
const MATCH_WITH_BASE = composeMatch(true);

/**
 * Loads what reports need when they arrive, in one round trip: the execution of each by its id or key, see `BuildName`, and the data to
 * insert one. The transaction holds the locks of their keys. The rows are in any order.
 */
export async function matchExecutions(
  sql: Tx,
  projectId: string,
  queries: readonly ExecutionQuery[],
): Promise<ExecutionMatch[]> {
  const parameters: MatchParameters<string> = {
    project: projectId,
    freshIds: toTextArray(queries.map(({ freshId }) => freshId)),
    ids: toTextArray(queries.map(({ id }) => id)),
    // An id is sufficient.
    keys: toTextArray(queries.map(({ id, key }) => (id === null ? key : null))),
    branches: toTextArray(queries.map(({ branch, queueRef }) => queueRef ?? branch)),
    pullRequests: toTextArray(queries.map(({ pullRequest }) => pullRequest)),
    baseBranches: toTextArray(queries.map(({ baseBranch }) => baseBranch)),
    baseCommits: toTextArray(queries.map(({ baseCommit }) => baseCommit)),
    areQueued: toTextArray(queries.map(({ queueRef }) => String(queueRef !== null))),
    commits: toTextArray(queries.map(({ commit }) => commit)),
    areUntrusted: toTextArray(queries.map(({ untrusted }) => String(untrusted))),
    times: toTextArray(queries.map(({ now }) => now.toISOString())),
  };
  const namesBase = queries.some(({ baseBranch, baseCommit }) => baseBranch !== null || baseCommit !== null);
  const rows = await (namesBase ? MATCH_WITH_BASE : MATCH)(sql, parameters);
  return rows.map((row) => {
    const { freshId, isGone, isUnclear, namesake, timeoutMinutes, hasLiveBugs, mayHaveRedTasks, ...rest } = row;
    const { baselineId, defaultBranch } = rest;
    const execution = rest.id === null ? undefined : (rest as LockedExecution);
    const ofProject = { defaultBranch, timeoutMinutes, hasLiveBugs, mayHaveRedTasks };
    return { freshId, execution, isGone, isUnclear, namesake, baselineId, ...ofProject };
  });
}

/** The execution with the key that agrees with commit and branch wherever both sides know them: see `BuildName`. */
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

/** The holder of this lock is the only one that can begin an execution with the key. */
export const lockOfKey = (projectId: string, key: string): AdvisoryLock => ["execution", `${projectId} ${key}`];

/** Locks the key until the end of the transaction, so that no other execution with it begins. */
export const lockExecutionKey = (sql: Tx, projectId: string, key: string) => takeLock(sql, lockOfKey(projectId, key));
