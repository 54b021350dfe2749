/** Which shards of a run have come. */

import type { Fragment, Sql } from "./connect.ts";

/** The numbers that uploads of `test_run r` have named, as a JSON array; empty for a run that is not sharded. */
export const namedShards = (sql: Sql): Fragment => sql`
  case when r.shards = 1 then '[]'::json else (
    select coalesce(json_agg(distinct a.shard), '[]') from attempt a
    where a.project_id = r.project_id and a.run_id = r.id and a.shard > 0) end`;
