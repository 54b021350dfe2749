/** Reads, changes and deletes executions. */

import { hasEnded } from "../rules/execution.ts";
import type { ExecutionMode, ExecutionStatus, ExecutionTrigger } from "../schema/executions.ts";
import type { ExecutionData } from "../schema/events.ts";
import type { Given } from "../database/compose.ts";
import { type Fragment, type Sql, toRows, type Tx } from "../database/connect.ts";
import { hasServedFor } from "./instance.ts";
import { isAtWork, LEASE_SECONDS } from "./leases.ts";
import { isDue } from "../database/retry_backoff.ts";
import { discardDays } from "./past_days.ts";
import { isProject } from "./predicates.ts";
import type { TaskRow } from "./execution_tasks.ts";

export type ExecutionRow = ExecutionData & {
  mode: ExecutionMode;
  trigger: ExecutionTrigger;
  createdAt: string;
  sample: boolean;
  /** Whether it comes from a fork or is a probe: it is shown, but not counted. */
  untrusted: boolean;
  /** Whether it runs one test case at one commit: see store/probes.ts. */
  probe: boolean;
  rerunOf: string | null;
  /** Only in a rerun: the execution that was repeated first. */
  buildId: string | null;
  /** Only in a build: the outcome with its reruns, if they changed it. */
  repeatedStatus: "passed" | "failed" | "timed_out" | null;
  baselineId: string | null;
  startedAt: string | null;
  completedAt: string | null;
  tasks: TaskRow[];
};

export const executionColumns = (sql: Sql) => sql`
  id, key, status, mode, trigger, branch, commit, pull_request as "pullRequest", base_branch as "baseBranch",
  queue_ref as "queueRef", build_url as "buildUrl", environment,
  created_at as "createdAt", started_at as "startedAt", completed_at as "completedAt", sample, untrusted, probe, rerun_of as "rerunOf",
  build_id as "buildId", repeated_status as "repeatedStatus", baseline_id as "baselineId", depth, reruns, fail_fast as "failFast", (select default_branch from project p where p.id = execution.project_id) as "defaultBranch"`;

/** An execution whose row is locked until the end of the transaction. */
export type LockedExecution = Omit<ExecutionRow, "tasks"> & {
  /** Number of automations that led to it. */
  depth: number;
  /** Number of executions that it repeats, one after the other. */
  reruns: number;
  /** Number of failures after which tasks that have not begun are cancelled. */
  failFast: number | null;
  /** The default branch of the project. An execution without a branch counts as being on it. */
  defaultBranch: string;
};

export const lockExecution = async (sql: Tx, projectId: string, id: string): Promise<LockedExecution | undefined> => {
  const [execution] = await sql<LockedExecution[]>`
    select ${executionColumns(sql)} from execution where project_id = ${projectId} and id = ${id} for update`;
  return execution;
};

/** Undefined when it was deleted, or another transaction holds it. */
export const lockExecutionIfFree = async (
  sql: Tx,
  projectId: string,
  id: string,
): Promise<LockedExecution | undefined> => {
  const [execution] = await sql<LockedExecution[]>`
    select ${executionColumns(sql)} from execution where project_id = ${projectId} and id = ${id} for update skip locked`;
  return execution;
};

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

/** An expression: the target branch; for a build of a merge queue, by default the default branch. */
export const baseOf = (
  sql: Sql,
  projectId: Given,
  { baseBranch, queueRef }: Record<"baseBranch" | "queueRef", Given | null>,
): Fragment => sql`
  coalesce(${baseBranch}::text, case when ${queueRef}::text is not null
    then (select default_branch from project where id = ${projectId}) end)`;

/** Returns the build that an execution belongs to: the one that it repeats, or itself. */
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

/** `null` if there are no reruns, or if they do not change the outcome. */
export async function updateRepeatedStatus(
  sql: Tx,
  projectId: string,
  id: string,
  status: "passed" | "failed" | "timed_out" | null,
): Promise<void> {
  const { count } = await sql`
    update execution set repeated_status = nullif(${status}::text, status)
    where project_id = ${projectId} and id = ${id} and repeated_status is distinct from nullif(${status}::text, status)`;
  if (count > 0) await discardDays(sql, projectId, [id]);
}

export const updateExecutionCommit = (sql: Tx, projectId: string, id: string, commit: string) => sql`
  update execution set commit = ${commit} where project_id = ${projectId} and id = ${id} and commit is null`;

export type ExecutionChange = ExecutionOrigin & {
  status: ExecutionStatus;
  /** Whether a report has just come in: it starts the execution and puts its expiry off. */
  arrived: boolean;
  /** When its last run was completed. Null: it is looked up, without runs that the same statement writes. */
  completedAt?: string | null;
  now: Date;
};

/**
 * Fills fields of the origin that are still unknown; `completedAt` is set once, and is not before that of a run. `now` is in the past if
 * the report was completed then. `rows`: see `toChangeRows`. The caller calls `discardDays`.
 */
export const updateExecutions = (sql: Sql, projectId: Given, rows: Given) => sql`
  update execution e set
    status = c.status,
    -- A build of a merge queue names no branch.
    branch = case when e.queue_ref is null then coalesce(e.branch, c.branch) end,
    base_branch = coalesce(e.base_branch, case when e.branch is null or c."queueRef" is null
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

export async function updateExecution(sql: Tx, projectId: string, id: string, change: ExecutionChange): Promise<void> {
  await updateExecutions(sql, projectId, toChangeRows([{ ...change, id }]));
  await discardDays(sql, projectId, [id]);
}

/** Whether there was one. */
export async function deleteExecution(sql: Tx, projectId: string, id: string): Promise<boolean> {
  await discardDays(sql, projectId, [id]);
  return (await sql`delete from execution where project_id = ${projectId} and id = ${id}`).count === 1;
}

/** Returns and locks expired executions, skipping those that another server is processing. */
export const lockExpiredExecutions = (sql: Tx, limit: number) => sql<
  { projectId: string; id: string; timeoutMinutes: number }[]
>`
  select project_id as "projectId", id, timeout_minutes as "timeoutMinutes" from execution
  where expires_at < now() and not (${isAtWork(sql)}) and ${isProject(sql, sql`execution.project_id`)}
    and ${isDue(sql, "expiry", sql`execution.id::text`)}
    and ${hasServedFor(sql, LEASE_SECONDS)}
  order by expires_at limit ${limit} for update skip locked`;
