/** What flaky, broken and new mean, for statements over `case_health h`: the one definition. */

import type { Fragment, Sql } from "./connect.ts";

/** So many passes in a row, and a case is flaky no longer. */
const PASSES_TO_RECOVER = 20;
/** So many results of a case are looked back at. */
export const RECENT_RESULTS = 50;
/** A case with fewer results is new. */
const KNOWN_RUNS = 5;

// These stand as they are in the conditions of partial indexes: a parameter would keep the planner from them.
const isBroken = (sql: Sql) => sql`h.broken >= 5`;
const mayBeFlaky = (sql: Sql) => sql`h.flaky_at is not null`;

/** There was evidence in the results that are looked back at, or not long ago. */
export const hasEvidence = (sql: Sql): Fragment => sql`(h.flake_rate > 0 or h.flaky_at > now() - interval '14 days')`;

/** Whether a pass that comes now is the last that is needed. */
export const recoversNext = (sql: Sql): Fragment => sql`h.clean >= ${PASSES_TO_RECOVER - 1}::int`;

/** Of a case: in the order in which people look at it; that a broken one is flaky as well need not be told now. */
export const healthOf = (sql: Sql): Fragment => sql`
  case
    when ${isBroken(sql)} then 'broken'
    when ${mayBeFlaky(sql)} and h.clean < ${PASSES_TO_RECOVER}::int and ${hasEvidence(sql)} then 'flaky'
    when coalesce(h.runs, 0) < ${KNOWN_RUNS}::int then 'new'
    else 'healthy'
  end`;

/** What partial indexes need to be of use to those of one health. */
export const healthHint = (sql: Sql, only: string | undefined): Fragment =>
  only === "flaky" ? sql`and ${mayBeFlaky(sql)}` : only === "broken" ? sql`and ${isBroken(sql)}` : sql``;

/** Those that have been told of as flaky and have not recovered. */
export const isToldFlaky = (sql: Sql): Fragment => sql`${mayBeFlaky(sql)} and h.flaky`;
