/** Which shards of a run have come. */

import type { Fragment, Sql } from "./connect.ts";

/** The numbers that uploads of a run have named, as a JSON array; empty for one that is not sharded. `run` is a test_run. */
export const namedShards = (sql: Sql, run: Fragment): Fragment => sql`
  case when ${run}.shards = 1 then '[]'::json else (
    select coalesce(json_agg(distinct a.shard), '[]') from attempt a
    where a.project_id = ${run}.project_id and a.run_id = ${run}.id and a.shard > 0) end`;
