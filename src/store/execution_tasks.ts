/** Stores the tasks of executions. */

import type { TaskEnd } from "../rules/red_reason.ts";
import type { MissingRunner } from "../schema/leases.ts";
import type { Slower } from "../rules/slower.ts";
import type { TaskState } from "../rules/execution.ts";
import type { PlannedTask } from "../schema/planned_tasks.ts";
import { type Sql, toTextArray, type Tx } from "../database/connect.ts";
import { hasResult } from "./outcome.ts";
import { flaws, namedShards } from "./shards.ts";

/** One task of an execution as it is stored; times are ISO 8601. */
export type TaskRow = TaskEnd & {
  passed: number;
  skipped: number;
  flaky: number;
  outage: boolean;
  declared: boolean;
  /** Wall time. */
  durationMs: number;
  startedAt: string | null;
  runner: string | null;
  /** Why it stays queued, if it is queued; read with the executions only. */
  missingRunner?: MissingRunner | null;
  /** The number of its failures that the gates of its latest uploads have forgiven; read with the executions only. */
  forgiven?: number;
  /** The usual durations, if it passed and took longer. */
  slower: Slower | null;
};

export const insertDeclaredTasks = (
  sql: Tx,
  projectId: string,
  { id, untrusted }: { id: string; untrusted: boolean },
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

/** The tasks of a locked execution. */
export const selectTasks = (sql: Sql, projectId: string, executionId: string) => sql<TaskRow[]>`
  select task_slug as slug, status, attempt, passed, failed, skipped, flaky, verdict, outage, declared, shards,
    ${namedShards(sql, sql`r`)} as "namedShards", ${flaws(sql, sql`r`)} as flaws, duration_ms as "durationMs", started_at as "startedAt", completed_at as "completedAt", reason,
    null as runner
  from test_run r where project_id = ${projectId} and execution_id = ${executionId} order by id`;

/**
 * Returns the tasks of a build, each as its last rerun with a result left it. Tasks that a rerun did not run stay as they were. A deleted
 * build has none.
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

/** Stores the final state of tasks that were open when their execution ended. */
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

/** Failures that count, over all tasks. */
export const countUnquarantined = async (sql: Sql, projectId: string, executionId: string): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select coalesce(sum(failed - shadowed - quarantined), 0)::int as count from test_run
    where project_id = ${projectId} and execution_id = ${executionId}`;
  return row!.count;
};
