/** Inserts executions: those that were requested, and those that an upload begins. */

import { hasEnded } from "../rules/execution.ts";
import type { ExecutionMode, ExecutionStatus, ExecutionTrigger } from "../schema/executions.ts";
import type { Given } from "../database/compose.ts";
import { type Sql, toRows, type Tx } from "../database/connect.ts";
import { baselineOf } from "./baselines.ts";
import {
  type ExecutionRow,
  executionColumns,
  type LockedExecution,
  type ExecutionOrigin,
  baseOf,
} from "./executions.ts";
import { namesakeOf } from "./execution_of_build.ts";

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
  /** See `baselineOf`. */
  baseCommit?: string | undefined;
  failFast?: number | null | undefined;
  /** Sealed. */
  variables?: Buffer | undefined;
  /** The execution that this one repeats: both are compared with the same, and have the same variables. */
  rerunOf?: Pick<LockedExecution, "id" | "buildId" | "reruns" | "baselineId"> & { failedOnly: boolean };
  now: Date;
};

/** An execution that has just begun; `namesake` is the newest other build with its key. */
type InsertedExecution = LockedExecution & { namesake: Pick<ExecutionRow, "branch" | "commit"> | null };

/** Inserts an execution. If it has a key, the caller holds the lock of the key. `createdAt` is the time in the id. */
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
  const { branch = null, pullRequest = null, baseBranch = null, queueRef = null } = origin;
  const base = { branch: baseBranch, commit: baseCommit ?? null };
  const [execution] = await sql<InsertedExecution[]>`
    insert into execution (project_id, id, key, status, trigger, branch, commit, pull_request, base_branch, queue_ref, build_url,
      environment, timeout_minutes, expires_at, created_at, mode, depth, untrusted, probe, fail_fast, failed_only, variables, rerun_of, build_id, reruns,
      baseline_id)
    select ${projectId}, ${id}, ${key}, ${status}, ${trigger}, ${branch},
      ${origin.commit ?? null}, ${pullRequest}, ${baseOf(sql, projectId, { baseBranch, queueRef })},
      ${queueRef}, ${origin.buildUrl ?? null}, ${origin.environment ?? null},
      minutes, now() + minutes * interval '1 minute', ${now.toISOString()}, ${mode ?? "report"}, ${depth ?? 0}, ${untrusted}, ${probe},
      ${failFast ?? null}, ${rerunOf?.failedOnly ?? false}, ${
        rerunOf
          ? sql`(select variables from execution where project_id = ${projectId} and id = ${rerunOf.id})`
          : sql`${(variables ?? null) as never}::bytea`
      },
      ${rerunOf?.id ?? null}, ${rerunOf ? (rerunOf.buildId ?? rerunOf.id) : null}, ${rerunOf ? rerunOf.reruns + 1 : 0},
      ${rerunOf ? sql`${rerunOf.baselineId}::uuid` : baselineOf(sql, projectId, { id: sql`${id}::uuid`, branch, pullRequest, base })}
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

/** An execution that an upload begins, in the state after the upload. */
export type UploadedExecution = Omit<
  ExecutionRow,
  "tasks" | "completedAt" | "mode" | "sample" | "probe" | "rerunOf" | "buildId" | "repeatedStatus"
> & {
  timeoutMinutes: number;
  /** When the run of the upload was completed. An execution that has ended ends no earlier than this. */
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
