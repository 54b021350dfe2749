/** Expressions for the durations of executions, from the times of their runs. */

import type { Fragment, Sql } from "../database/connect.ts";

/** A hundred years: reports may claim times whose end no timestamp can hold. */
const MAX_MS = 3_155_760_000_000;

/**
 * An aggregate over runs `r`: from the first start to the last end, at least the length of the longest run; null without runs. A run whose
 * start is unknown only counts by its length. `over` makes it a window function.
 */
export const wallTimeOfRuns = (sql: Sql, over: Fragment = sql``): Fragment => sql`
  greatest(
    max(r.duration_ms) ${over},
    round(extract(epoch from
      max(r.tests_started_at + least(r.duration_ms, ${MAX_MS}::bigint) * interval '1 millisecond') ${over} - min(r.tests_started_at) ${over}
    ) * 1000)::bigint)`;

/** An aggregate over runs `r`: the sum over all tasks, shards and attempts; null without runs. */
export const machineTimeOfRuns = (sql: Sql, over: Fragment = sql``): Fragment =>
  sql`(sum(r.machine_ms) ${over})::bigint`;
