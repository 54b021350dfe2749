/** Red builds of the last days, with the facts that a gate of any share decides by. */

import type { RedBuild } from "../rules/gate_preview.ts";
import type { Sql } from "../database/connect.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import { isBaselineShared, isOnSharedBranch } from "./gate.ts";
import { isTrustedBuild } from "./predicates.ts";

/** Maximum number of the newest red executions, of failures per run, and of failures in total that are read. */
const MAX_BUILDS = 2_000;
const MAX_RUN_FAILURES = 100;
const MAX_FAILURES = 50_000;

type RedBuildRow = RedBuild & { createdAt: string; /** There are more. */ isLimited: boolean };

/**
 * Returns red builds with judged failures since a time in milliseconds, newest first. A build is guilty if one of its failures was last
 * explained by the change for this test and message on its pull request or branch, and no rerun has passed. Failures inherited from an
 * earlier build of the same branch are judged there.
 */
export const selectRedBuilds = (sql: Sql, projectId: string, fromMs: number) => sql<RedBuildRow[]>`
  with build as materialized (
    select r.*, ${isOnSharedBranch(sql)} as is_shared, ${isBaselineShared(sql)} as has_shared_baseline from (
      select project_id, id as execution_id, coalesce('#' || pull_request, branch, '') as line from execution e
      where project_id = ${projectId} and status = 'failed' and id >= ${firstIdAt(fromMs)}
        and not sample and ${isTrustedBuild(sql, sql`e`)}
      order by id desc limit ${MAX_BUILDS}::int) r
  ), failed as materialized (
    select b.execution_id as id, b.line, b.is_shared, b.has_shared_baseline, f.test_case, f.cause, f.change,
      case when f.blame <> 'unclear' or f.explained = 'flaky' and f.evidence->>'onlyIn' is not null then f.blame
        when f.explained = 'flaky' then 'flaky' when f.explained = 'change' then 'new'
        when f.evidence->>'base' in ('this cause', 'other cause') then 'still' else 'main' end as blame,
      case when f.explained = 'inherited' and (b.is_shared or not b.has_shared_baseline) then null else f.explained end as explained
    from build b cross join lateral (
      select id from test_run where project_id = ${projectId} and execution_id = b.execution_id and failed > 0 offset 0) r
    cross join lateral (
      select * from failure where project_id = ${projectId} and run_id = r.id
      order by test_case limit ${MAX_RUN_FAILURES}::int) f
    limit ${MAX_FAILURES}::int
  ), judged as (
    select *, first_value(explained) over (partition by line, test_case, cause order by explained is null, id desc) as finally
    from failed
  ), explained as (
    select id, is_shared, has_shared_baseline, json_object_agg(blame, change) as shares,
      coalesce(bool_or(is_guilty) filter (where blame <> 'quarantined'), false) as is_guilty
    from (
      select id, is_shared, has_shared_baseline, blame, max(change) as change,
        coalesce(bool_or(finally = 'change'), false) as is_guilty
      from judged group by 1, 2, 3, 4) by_blame
    group by 1, 2, 3
  )
  -- Looked up for each: joined, builds would be compared with all others.
  select e.created_at as "createdAt", x.shares,
    (select count(*) from build) = ${MAX_BUILDS}::int or (select count(*) from failed) = ${MAX_FAILURES}::int as "isLimited",
    x.is_guilty and e.repeated_status is distinct from 'passed' as "isGuilty",
    x.is_shared as "isOnSharedBranch", x.has_shared_baseline as "isBaselineShared", r.red as "isRedAnyway", r.absences
  from explained x cross join lateral (
    select * from execution where project_id = ${projectId} and id = x.id and build_id is null offset 0) e
  cross join lateral (
    select bool_or(r.outage or r.status not in ('passed', 'failed') or r.verdict = 'failed' and exists (
        select from attempt a
        where a.project_id = ${projectId} and a.run_id = r.id and (a.exit_case is not null or a.partial))) as red,
      coalesce(json_agg(r.absence) filter (where r.absence is not null and r.failed > 0), '[]') as absences
    from test_run r where r.project_id = ${projectId} and r.execution_id = x.id
  ) r
  order by x.id desc`;
