/** Conditions over `case_health h`: flaky, broken, new and removed test cases. */

import { RATE_RESULTS } from "../rules/flakiness.ts";
import { KNOWN_RUNS } from "../rules/health.ts";
import type { Fragment, Sql } from "../database/connect.ts";

// These stand as they are in the conditions of partial indexes: a parameter would keep the planner from them.
/** The default branch has not had it for long, see `markRemoved` (store/removed_cases.ts), nor ever, and no branch has it now. */
export const isRemoved = (sql: Sql): Fragment => sql`coalesce(
  h.removed_main_runs = h.main_runs and (h.main_runs > 0 or h.removed_run_id = h.last_run_id), false)`;
/**
 * Its last five results on the default branch failed because of a change. A flaky test only counts if so many failures in a row are
 * unlikely.
 */
export const isBroken = (sql: Sql): Fragment => sql`(
  h.broken and h.failing >= 5 and not (h.flaky and power(h.flake_rate, h.failing) >= 0.01) and not ${isRemoved(sql)})`;
/** A condition: the test is flaky, as announced. */
export const isFlaky = (sql: Sql): Fragment => sql`(h.flaky and not ${isRemoved(sql)})`;

/** The health of a case, the most urgent first: a broken case is shown as broken even if it is also flaky. */
export const healthOf = (sql: Sql): Fragment => sql`
  case
    when ${isRemoved(sql)} then 'removed'
    when ${isBroken(sql)} then 'broken'
    when ${isFlaky(sql)} then 'flaky'
    when coalesce(h.runs, 0) < ${KNOWN_RUNS}::int then 'new'
    else 'healthy'
  end`;

/** Repeats the condition of a health so that its partial index is used. */
export const healthHint = (sql: Sql, only: string | undefined): Fragment =>
  only === "flaky" ? sql`and ${isFlaky(sql)}` : only === "broken" ? sql`and ${isBroken(sql)}` : sql``;

/** A condition: the case is known to fail without a cause in the code. */
export const isKnownFlaky = (sql: Sql): Fragment => sql`coalesce(${isFlaky(sql)} and not ${isBroken(sql)}, false)`;

/** The number of results that the flake rate is of. */
export const flakeResultsOf = (sql: Sql): Fragment => sql`least(coalesce(h.runs, 0), ${RATE_RESULTS}::int)`;
