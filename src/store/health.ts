/** What flaky, broken and new mean, for statements over `case_health h`: the one definition. */

import type { Fragment, Sql } from "./connect.ts";

/** So many results of a case are looked back at. */
export const RECENT_RESULTS = 50;
/** A case with fewer results is new. */
const KNOWN_RUNS = 5;

/** So many failures in a row on the default branch, and a case is broken; fewer are a short episode, once they are over. */
const BROKEN = 5;
/**
 * So many short episodes within so many results on the default branch, and a case is flaky. Where one build in ten breaks
 * 5 of 1,000 cases for less than 5 builds, a sound case has 0.05 such episodes in 100 builds: three of them come to one
 * case in 50,000, two would to one in 800. A case that fails one time in twenty shows three with odds of 88 %.
 */
const EPISODES = 3;
const EPISODE_RESULTS = 100;
/** So many of the last are kept. */
const EPISODES_KEPT = 30;

/** Never fewer passes in a row end it. */
const MIN_PASSES = 20;
/** The odds of so many passes in a row at the case's own flake rate, below which it is flaky no longer. */
const ODDS = 0.01;
/** What fails more rarely than that would be told of for months. */
const MAX_PASSES = 300;
/**
 * The share of evidence that tells a case's own rate is one of about so many results: in 50 a case of 5 % shows 2 % or 10 %
 * by chance, and would recover by chance.
 */
const RATE_RESULTS = 200;
/** What evidence adds to `flakiness`. */
export const FIRST_EVIDENCE = 1 / RATE_RESULTS;

// These stand as they are in the conditions of partial indexes: a parameter would keep the planner from them.
const isBroken = (sql: Sql) => sql`h.broken >= 5`;
/** As announced. */
export const isFlaky = (sql: Sql): Fragment => sql`h.flaky`;

/** Of a case: in the order in which people look at it; that a broken one is flaky as well need not be told now. */
export const healthOf = (sql: Sql): Fragment => sql`
  case
    when ${isBroken(sql)} then 'broken'
    when ${isFlaky(sql)} then 'flaky'
    when coalesce(h.runs, 0) < ${KNOWN_RUNS}::int then 'new'
    else 'healthy'
  end`;

/** What partial indexes need to be of use to those of one health. */
export const healthHint = (sql: Sql, only: string | undefined): Fragment =>
  only === "flaky" ? sql`and ${isFlaky(sql)}` : only === "broken" ? sql`and ${isBroken(sql)}` : sql``;

/** A case that fails now for no reason of its own: it is known for that. */
export const isKnownFlaky = (sql: Sql): Fragment => sql`coalesce(h.flaky and not ${isBroken(sql)}, false)`;

/** It has failed for a short time on the default branch again and again, if not so often that it is flaky. */
export const hadEpisodes = (sql: Sql): Fragment =>
  sql`coalesce(within_last(h.episodes, h.main_runs, ${EPISODE_RESULTS}::int) > 1, false)`;

/** Of the results on the default branch, the share that began such an episode. */
export const episodeRate = (sql: Sql): Fragment => sql`
  within_last(h.episodes, h.main_runs, ${EPISODE_RESULTS}::int)::real
    / greatest(1, least(h.main_runs, ${EPISODE_RESULTS}::int))`;

/** So many results on the default branch after the end of a failure, a branch that began before it may fail as well. */
const MENDED_RESULTS = { long: 20, short: 5 };

/** The default branch was broken until not long ago. */
export const wasMended = (sql: Sql): Fragment => sql`coalesce(
  h.main_runs - h.mended < ${MENDED_RESULTS.long}::int
    or h.main_runs - h.episodes[cardinality(h.episodes)] < ${MENDED_RESULTS.short}::int, false)`;

/** What a result changes of the health of its case, in the order in which `healthAfter` answers it. */
export const HEALTH_COLUMNS = [
  ...["recent", "flaky", "flaky_at", "flaky_since", "flaky_signs", "recovers_after", "flake_rate", "clean"],
  ...["flakiness", "main_runs", "episodes", "episode_at", "mended", "broken", "turn"],
] as const;

export type Counting = {
  /** On the default branch. */
  onMain: boolean;
  /** Whether the result of row `r` is the newest that case `h` has; a boolean expression. */
  isNewest: Fragment;
  /** When the run was completed; ISO 8601. */
  at: string;
  /** Marks the cases that become flaky, or recover. */
  turn: string;
};

/** The columns of `case_health h` after the result `r`, which `judge` in case_health.ts has judged. */
export const healthAfter = (sql: Sql, { onMain, isNewest, at, turn }: Counting): Fragment => sql`
  select n.recent, e.evidence or h.flaky and not t.recovers,
    case when e.evidence then greatest(h.flaky_at, ${at}::timestamptz) else h.flaky_at end,
    case when e.evidence and not h.flaky then ${at}::timestamptz else h.flaky_since end,
    case when not e.evidence then h.flaky_signs when not h.flaky then s.sign
      when position(s.sign in h.flaky_signs) > 0 then h.flaky_signs else h.flaky_signs || s.sign end,
    case when e.evidence then least(${MAX_PASSES}::int, greatest(${MIN_PASSES}::int,
      ceil(ln(${ODDS}::float8) / ln(1 - least(0.9, c.own_rate)::float8))::int)) else h.recovers_after end,
    f.flake_rate, t.clean, t.flakiness, m.main_runs, m.episodes,
    case when m.ends_short then ${at}::timestamptz else h.episode_at end,
    case when m.ends_long then m.main_runs else h.mended end,
    case when not m.is_main then h.broken when r.failed = 0 then 0
      when r.failed > r.failed_before then h.broken + 1 else h.broken end,
    case when e.evidence and not h.flaky or t.recovers then ${turn}::uuid else h.turn end
  from
    -- Without "offset 0" each of these would be computed again wherever it is used.
    lateral (
      select *, case when x.ends_short then
        (array_append(h.episodes, x.main_runs))[greatest(1, cardinality(h.episodes) + 2 - ${EPISODES_KEPT}::int):]
        else h.episodes end as episodes
      from (
        -- A failure of this very run that a retry has undone is no episode: it is told as what it is.
        select ${onMain} and r.counted = 1 and ${isNewest} as is_main,
          ${onMain} and r.counted = 1 and ${isNewest} and r.failed = 0
            and h.broken - r.failed_before between 1 and ${BROKEN - 1}::int as ends_short,
          ${onMain} and r.counted = 1 and ${isNewest} and r.failed = 0
            and h.broken - r.failed_before >= ${BROKEN}::int as ends_long,
          case when ${onMain} then h.main_runs + r.counted - r.counted_before else h.main_runs end as main_runs
        offset 0) x
      offset 0) m,
    lateral (
      select case when cardinality(m.episodes) < ${EPISODES}::int then 0
        else within_last(m.episodes, m.main_runs, ${EPISODE_RESULTS}::int) end as number
      offset 0) p,
    lateral (select r.evidence or m.ends_short and p.number >= ${EPISODES}::int as evidence offset 0) e,
    lateral (
      select case when e.evidence or r.failed = 1 then 0 when r.counted > r.counted_before then h.clean + 1
          else h.clean end as clean,
        h.flaky and not e.evidence and r.failed = 0 and r.counted > r.counted_before
          and h.clean + 1 >= h.recovers_after as recovers,
        h.flakiness * case when r.counted > r.counted_before then ${1 - 1 / RATE_RESULTS}::real else 1 end
          + case when e.evidence then ${FIRST_EVIDENCE}::real else 0 end as flakiness
      offset 0) t,
    lateral (
      select case
        when r.counted = 0 or not ${isNewest} then h.recent
        when r.counted_before = 1 then left(h.recent, -1) || case when e.evidence then upper(r.mark) else r.mark end
        else right(h.recent || case when e.evidence then upper(r.mark) else r.mark end, ${RECENT_RESULTS}::int) end as recent
      offset 0) n,
    lateral (
      select case
        when not e.evidence and not h.flaky and h.flake_rate = 0 then 0
        when t.recovers or not (e.evidence or h.flaky) then flake_rate_of(n.recent)
        -- What has shown nothing for longer than is looked back at fails less often than that, not never.
        else greatest(flake_rate_of(n.recent), 1.0 / greatest(${RECENT_RESULTS}::int, t.clean + 1),
          case when p.number >= ${EPISODES}::int then p.number::real / least(m.main_runs, ${EPISODE_RESULTS}::int) end)
        end as flake_rate
      offset 0) f,
    lateral (
      -- Of fewer results the weights do not add up to 1 yet.
      select case when not e.evidence or p.number >= ${EPISODES}::int then f.flake_rate
        else least(f.flake_rate, t.flakiness / (1 - power(${1 - 1 / RATE_RESULTS}::float8, greatest(1, h.runs + r.counted - r.counted_before))))
        end as own_rate
      offset 0) c,
    lateral (select case when r.letter = 'P' then 'r' when r.evidence then 'c' else 'e' end as sign offset 0) s`;
