/** What is remembered of a test case, read: what flaky, broken and new mean for statements over `case_health h`. */

import { BROKEN_RESULTS, EPISODE_RESULTS, KNOWN_RUNS } from "../rules/health.ts";
import type { Fragment, Sql } from "../database/connect.ts";

// These stand as they are in the conditions of partial indexes: a parameter would keep the planner from them.
/** The default branch has not had it for long, see `markRemoved` (store/removed_cases.ts), nor ever, and no branch has it now. */
export const isRemoved = (sql: Sql): Fragment => sql`coalesce(
  h.removed_main_runs = h.main_runs and (h.main_runs > 0 or h.removed_run_id = h.last_run_id), false)`;
/** So many of its last results on the default branch failed in a row. */
export const isBroken = (sql: Sql): Fragment =>
  sql`(h.broken >= ${sql.unsafe(String(BROKEN_RESULTS))} and not ${isRemoved(sql)})`;
/** As announced. */
export const isFlaky = (sql: Sql): Fragment => sql`(h.flaky and not ${isRemoved(sql)})`;

/** Of a case: in the order in which people look at it; that a broken one is flaky as well need not be told now. */
export const healthOf = (sql: Sql): Fragment => sql`
  case
    when ${isRemoved(sql)} then 'removed'
    when ${isBroken(sql)} then 'broken'
    when ${isFlaky(sql)} then 'flaky'
    when coalesce(h.runs, 0) < ${KNOWN_RUNS}::int then 'new'
    else 'healthy'
  end`;

/** What partial indexes need to be of use to those of one health. */
export const healthHint = (sql: Sql, only: string | undefined): Fragment =>
  only === "flaky" ? sql`and ${isFlaky(sql)}` : only === "broken" ? sql`and ${isBroken(sql)}` : sql``;

/** A case that fails now for no reason of its own: it is known for that. */
export const isKnownFlaky = (sql: Sql): Fragment => sql`coalesce(${isFlaky(sql)} and not ${isBroken(sql)}, false)`;

/** It has failed for a short time on the default branch again and again, if not so often that it is flaky. */
export const hadEpisodes = (sql: Sql): Fragment =>
  sql`coalesce(within_last(h.episodes, h.main_runs, ${EPISODE_RESULTS}::int) > 1, false)`;

/** Of the results on the default branch, the share that began such an episode. */
export const episodeRate = (sql: Sql): Fragment => sql`
  within_last(h.episodes, h.main_runs, ${EPISODE_RESULTS}::int)::real
    / greatest(1, least(h.main_runs, ${EPISODE_RESULTS}::int))`;

/** So many results on the default branch after the end of a failure, a branch that began before it may fail as well. */
const MENDED_RESULTS = { long: 20, short: 5 };

/** It fails on the default branch, or did so before. */
export const hasFailedOnMain = (sql: Sql): Fragment =>
  sql`coalesce(h.broken > 0 or h.long_episode_end is not null or cardinality(h.episodes) > 0, false)`;

/** The default branch was broken until not long ago. */
export const wasMended = (sql: Sql): Fragment => sql`coalesce(
  h.main_runs - h.long_episode_end < ${MENDED_RESULTS.long}::int
    or h.main_runs - h.episodes[cardinality(h.episodes)] < ${MENDED_RESULTS.short}::int, false)`;
