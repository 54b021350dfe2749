/** Expressions about a run: shards that have arrived, machines of their latest uploads, and their problems. */

import { MAX_RAN_ON } from "../rules/ran_on.ts";
import type { Fragment, Sql } from "../database/connect.ts";

/** The numbers of shards that uploads of a run have named, as a JSON array; empty if it is not sharded. `run` is a test_run. */
export const namedShards = (sql: Sql, run: Fragment): Fragment => sql`
  case when ${run}.shards = 1 then '[]'::json else (
    select coalesce(json_agg(distinct a.shard), '[]') from attempt a
    where a.project_id = ${run}.project_id and a.run_id = ${run}.id and a.shard > 0) end`;

/** Selects the problems of the latest uploads of a red run as `Flaws` (rules/red_reason.ts); null if the run is not red. */
export const flaws = (sql: Sql, run: Fragment): Fragment => sql`
  case when ${run}.verdict = 'failed' then (
    select json_build_object('brokeOff', coalesce(bool_or(a.partial), false), 'standIns', count(a.exit_case),
      'exitCode', (array_agg(a.exit_code order by a.shard) filter (where a.exit_case is not null and a.exit_code is not null))[1],
      'notRerun', cardinality(${run}.not_rerun),
      'says', (array_agg(left(d.message, 500) order by a.shard) filter (where d.message is not null))[1])
    from (
      select distinct on (a.shard) a.shard, a.number, a.partial, a.exit_case, a.exit_code from attempt a
      where a.project_id = ${run}.project_id and a.run_id = ${run}.id order by a.shard, a.number desc) a
    left join lateral (
      select message from case_detail where project_id = ${run}.project_id and run_id = ${run}.id
        and test_case = a.exit_case and attempt = a.number and a.exit_case is not null offset 0) d on true) end`;

/** The machines of the latest uploads of a run, as a JSON array of `RanOn`, without unknown ones. */
export const ranOn = (sql: Sql, run: Fragment): Fragment => sql`(
  select coalesce(json_agg(json_build_object('shard', nullif(a.shard, 0), 'host', a.host, 'system', a.system,
    'image', a.image) order by a.shard), '[]')
  from (
    select * from (
      select distinct on (a.shard) a.shard, a.host, a.system, a.image from attempt a
      where a.project_id = ${run}.project_id and a.run_id = ${run}.id order by a.shard, a.number desc) latest
    where coalesce(host, system, image) is not null order by shard limit ${MAX_RAN_ON}) a)`;

/** The latest upload of a shard of a task. */
export type ShardRow = {
  taskSlug: string;
  /** From 1; 0: the task is not sharded. */
  shard: number;
  /** The machine; null: unknown. */
  host: string | null;
  /** The number of its failed tests. */
  failed: number;
};

/** Maximum number of shards that are read of one execution. */
const MAX_SHARDS = 500;

/** Returns the shards of all tasks of an execution, at most 500. */
export const selectShards = (sql: Sql, projectId: string, executionId: string) => sql<ShardRow[]>`
  select r.task_slug as "taskSlug", a.shard, a.host, a.failed_cases as failed
  from test_run r cross join lateral (
    select distinct on (shard) shard, host, failed_cases from attempt
    where project_id = ${projectId} and run_id = r.id order by shard, number desc) a
  where r.project_id = ${projectId} and r.execution_id = ${executionId}
  order by r.id, a.shard limit ${MAX_SHARDS}::int`;

/** An expression: the names of the machines of a run as a JSON array, at most four. */
export const hostsOf = (sql: Sql, run: Fragment): Fragment => sql`to_json(array(
  select distinct host from attempt a
  where a.project_id = ${run}.project_id and a.run_id = ${run}.id and host is not null order by host limit 4))`;
