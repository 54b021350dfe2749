/** Complete runs that are not counted for the health of their test cases yet. */

import type { CountedRun } from "../rules/health.ts";
import { type Sql, toTextArray, type Tx } from "../database/connect.ts";
import { isDue } from "../database/retry_backoff.ts";
import { takeLock } from "../database/locks.ts";
import { isOvertaken } from "./default_branch.ts";
import { isOnDefault, isProject } from "./predicates.ts";

/** Only one server at a time counts for a project. Readers count pending runs first. */
export const lockHealth = (sql: Tx, projectId: string) => takeLock(sql, ["counting", projectId]);

export const selectHasPendingHealth = async (sql: Sql, projectId: string): Promise<boolean> =>
  (
    await sql`
      select from test_run r where project_id = ${projectId} and not health_applied
        and ${isDue(sql, "counting", sql`r.id::text`)} limit 1`
  ).length === 1;

/** Projects with runs that are not counted yet. From one to the next: a flood in one of them costs no more than a run. */
export const selectProjectsWithPendingHealth = async (sql: Sql): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    with recursive waiting as (
      (select project_id from test_run where not health_applied order by project_id limit 1)
      union all
      select (
        select project_id from test_run where not health_applied and project_id > w.project_id order by project_id limit 1)
      from waiting w where w.project_id is not null)
    select project_id as id from waiting w
    where ${isProject(sql, sql`w.project_id`)} and ${isDue(sql, "counting", sql`w.project_id::text`)}
      and exists (
        select from test_run r where r.project_id = w.project_id and not r.health_applied
          and ${isDue(sql, "counting", sql`r.id::text`)})
    limit 100`;
  return rows.map(({ id }) => id);
};

/** A run with the number of its results. */
type WaitingRun = { id: string; results: number };

/** Returns some pending runs in the order of completion. */
export const selectPendingRuns = (sql: Sql, projectId: string, limit: number) => sql<WaitingRun[]>`
  select id, passed + failed + skipped as results from test_run r where project_id = ${projectId} and not health_applied
    and ${isDue(sql, "counting", sql`r.id::text`)}
  order by completed_at, id limit ${limit}::int`;

export type PendingRun = CountedRun & {
  taskSlug: string;
  hasFailed: boolean;
  passed: number;
  failed: number;
  flaky: number;
  isPassed: boolean;
  /** Wall time. */
  durationMs: number;
};

/** Locks these runs, in that order. A run that an upload is changing right now is skipped until the next time. */
export const lockPendingRuns = (sql: Tx, projectId: string, ids: readonly string[]) => sql<PendingRun[]>`
  select r.id, r.task_slug as "taskSlug", r.completed_at as "completedAt", r.outage,
    ${isOnDefault(sql, sql`e`, sql`p.default_branch`)} and not ${isOvertaken(sql, projectId, { r: sql`r`, e: sql`e` })} as "onDefaultBranch", r.failed > 0 as "hasFailed",
    r.passed, r.failed, r.flaky, r.status = 'passed' as "isPassed", r.duration_ms as "durationMs"
  from test_run r
  join execution e on e.project_id = r.project_id and e.id = r.execution_id
  join project p on p.id = r.project_id
  where r.project_id = ${projectId} and r.id = any(${toTextArray(ids)}::uuid[]) and not r.health_applied
  order by r.completed_at, r.id for no key update of r skip locked`;

export const markHealthApplied = (sql: Tx, projectId: string, ids: readonly string[]) => sql`
  update test_run set health_applied = true where project_id = ${projectId} and id = any(${toTextArray(ids)}::uuid[])`;
