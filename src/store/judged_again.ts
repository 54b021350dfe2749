/** Runs whose failures are judged once more, because of what later runs show. */

import { toTextArray, type Tx } from "../database/connect.ts";
import type { JudgedRun } from "./failures.ts";
import { isTrustedBuild } from "./predicates.ts";

/** The maximum number of earlier runs that are judged once more at a time. */
const MAX_EARLIER = 20;
/** The number of the last runs of a project that are looked through, and for how many hours back. */
const LOOKED_THROUGH = 200;
const HOURS = 24;

export type EarlierRun = JudgedRun & {
  completedAt: string;
  passed: number;
  failed: number;
  flaky: number;
  outage: boolean;
  untrusted: boolean;
};

/**
 * Counted runs with failures that were put down to a change, and have the cause of an incident in these runs: many in another execution, any
 * number in another task of the same one.
 */
export const selectEarlierRuns = (sql: Tx, projectId: string, runIds: readonly string[]) => sql<EarlierRun[]>`
  with shown as materialized (
    select r.id, r.execution_id, r.task_slug, r.completed_at, array_agg(distinct f.cause) as causes
    from unnest(${toTextArray(runIds)}::uuid[]) as run (id) cross join lateral (
      select id, execution_id, task_slug, completed_at from test_run
      where project_id = ${projectId} and id = run.id and failed > 0 offset 0) r
    cross join lateral (
      select cause from failure
      where project_id = ${projectId} and run_id = r.id and explained = 'outside' and cause is not null offset 0) f
    group by 1, 2, 3, 4
  )
  select distinct r.id, r.execution_id as "executionId", r.task_slug as "taskSlug", r.completed_at as "completedAt", r.passed, r.failed,
    r.flaky, r.outage, r.untrusted
  from shown s cross join lateral (
    select * from test_run
    where project_id = ${projectId}
    order by id desc limit ${LOOKED_THROUGH}
  ) r
  where (r.task_slug = s.task_slug or r.execution_id = s.execution_id) and r.id <> s.id
    and r.failed > 0 and r.health_applied and not r.outage and ${isTrustedBuild(sql, sql`r`)}
    and r.completed_at >= s.completed_at - make_interval(hours => ${HOURS}::int)
    and exists (
      select from (
        select cause from failure f
        where f.project_id = ${projectId} and f.run_id = r.id and (f.of_many or r.execution_id = s.execution_id)
          and f.explained = 'change' offset 0) f
      where f.cause = any(s.causes))
  order by r.id desc limit ${MAX_EARLIER}`;
