/** What a result changes of what is remembered of its test case: when it is flaky, broken or recovered. The one definition. */

/** So many results of a case are looked back at. */
const RECENT_RESULTS = 50;
/** A case with fewer results is new. */
export const KNOWN_RUNS = 5;

/** So many failures in a row on the default branch, and a case is broken; fewer are a short episode, once they are over. */
export const BROKEN_RESULTS = 5;
/**
 * What failed so many times in a row on the default branch and then passes on the same commit was mended from outside: a flaky
 * case of 20 % fails three times in a row with odds of 1 in 125.
 */
const MENDED = 3;
/**
 * So many short episodes within so many results on the default branch, and a case is flaky. Where one build in ten breaks
 * 5 of 1,000 cases for less than 5 builds, a sound case has 0.05 such episodes in 100 builds: three of them come to one
 * case in 50,000, two would to one in 800. A case that fails one time in twenty shows three with odds of 88 %.
 */
const EPISODES = 3;
export const EPISODE_RESULTS = 100;
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
const KEPT = 1 - 1 / RATE_RESULTS;
/** As sums and rates are kept: in 32 bits. */
const KEPT_REAL = Math.fround(KEPT);
const EVIDENCE_REAL = Math.fround(1 / RATE_RESULTS);

/** The slowest tenth of so many durations is looked at. */
const TIMED = 20;

/** Runs side by side are completed in any order: a result that is older than the last one by more than this is history. */
const SIDE_BY_SIDE_MS = 10 * 60_000;

/** What is remembered of a test case; sql/ says what each of it is. Times are ISO 8601 in UTC with milliseconds. */
export type CaseHealth = {
  runs: number;
  failures: number;
  recent: string;
  flaky: boolean;
  flakyAt: string | null;
  flakySince: string | null;
  /** `r`: it has passed in a retry, `c`: both on one commit, `e`: short episodes. */
  flakySigns: string;
  recoversAfter: number;
  flakeRate: number;
  clean: number;
  flakiness: number;
  mainRuns: number;
  episodes: readonly number[];
  episodeAt: string | null;
  longEpisodeEnd: number | null;
  broken: number;
  timed: number;
  totalMs: number;
  recentMs: readonly number[];
  p95Ms: number | null;
  lastStatus: string | null;
  lastRunId: string | null;
  lastRunAt: string | null;
  lastPassedAt: string | null;
  lastFailedAt: string | null;
};

/** Of a case that has had no result yet. */
export const NO_HEALTH: CaseHealth = {
  runs: 0,
  failures: 0,
  recent: "",
  flaky: false,
  flakyAt: null,
  flakySince: null,
  flakySigns: "",
  recoversAfter: MIN_PASSES,
  flakeRate: 0,
  clean: 0,
  flakiness: 0,
  mainRuns: 0,
  episodes: [],
  episodeAt: null,
  longEpisodeEnd: null,
  broken: 0,
  timed: 0,
  totalMs: 0,
  recentMs: [],
  p95Ms: null,
  lastStatus: null,
  lastRunId: null,
  lastRunAt: null,
  lastPassedAt: null,
  lastFailedAt: null,
};

/** A complete run, as far as its results tell of their cases. */
export type CountedRun = {
  id: string;
  /** ISO 8601 in UTC with milliseconds. */
  completedAt: string;
  /** Nearly everything failed. */
  outage: boolean;
  /** A retry that has passed says that the outage is over, and nothing of the cases. */
  wasOutage: boolean;
  onDefaultBranch: boolean;
  /** True if so many of its cases look flaky at once that its machine is to blame, see `isDisturbed`. */
  disturbed: boolean;
};

/**
 * A run in which so many cases look flaky for the first time at once, and so large a share of them, says nothing of the cases.
 * Where one run in three shows a new flaky case, five at once befall one run in 50,000.
 */
const DISTURBED = { cases: 5, share: 0.03 };

/**
 * `evidence`: how many of its cases, without those that are known as flaky, passed after a failure, or had the other outcome on
 * the same commit.
 */
export const isDisturbed = (evidence: number, { passed, failed }: { passed: number; failed: number }): boolean =>
  evidence >= Math.max(DISTURBED.cases, DISTURBED.share * (passed + failed));

/** A letter as in rules/merge.ts. */
type Outcome = { letter: string; durationMs: number | null };

/** `contradicted`: the case had the other outcome on the same commit, see rules/contradiction.ts. */
export type CountedResult = Outcome & { contradicted: boolean };

/** `before`: in whose place it comes. */
export type ChangedOutcome = Outcome & { before: string | null };

/** When a run is counted: what a clock that is ahead has dated is no later than that. */
export type CountedAt = {
  now: string;
  /** Of a run that was completed long ago: what ran later than this makes its results history. */
  overtakenBy: string | null;
};

export function countedAt(run: CountedRun, now: Date): CountedAt {
  const bound = Date.parse(run.completedAt) + SIDE_BY_SIDE_MS;
  return { now: now.toISOString(), overtakenBy: now.getTime() > bound ? new Date(bound).toISOString() : null };
}

const hasPassed = (letter: string) => letter === "p" || letter === "P";
const hasFailed = (letter: string) => letter === "f" || letter === "F";
/** In the place of its letter: it failed, as many others did, for a cause outside of the code. */
export const INCIDENT = "i";
const isCounted = (letter: string) => hasPassed(letter) || hasFailed(letter);

/** It failed only through a case that it contains. */
const isThroughChild = (letter: string) => letter === "c" || letter === "C";
/** The status of a result; undefined: it failed only through a case that it contains, which says nothing of the case itself. */
const statusOf = (letter: string): string | undefined =>
  hasPassed(letter)
    ? "passed"
    : hasFailed(letter) || letter === INCIDENT
      ? "failed"
      : isThroughChild(letter)
        ? undefined
        : "skipped";
/** Whether the case itself failed, also if a later attempt has another result. */
const hasFailedOnce = (letter: string) => letter !== "p" && letter !== "s" && letter !== "c";

/** What is remembered of a case after a result of a run that is counted now. */
export function countResult(health: CaseHealth, run: CountedRun, at: CountedAt, result: CountedResult): CaseHealth {
  const isLate = at.overtakenBy !== null && health.lastRunAt !== null && health.lastRunAt > at.overtakenBy;
  return isLate ? countLate(health, run, result) : count(health, run, at, result, null);
}

/** What is remembered of a case after a further attempt has changed its result in a run that has been counted. */
export const countChange = (
  health: CaseHealth,
  run: CountedRun,
  at: CountedAt,
  { before, letter, durationMs }: ChangedOutcome,
): CaseHealth => count(health, run, at, { letter, durationMs, contradicted: false }, before);

/** What a result says of the case being flaky by itself, whatever others say. */
const isEvidence = (run: CountedRun, { letter, contradicted }: CountedResult): boolean =>
  !run.outage && !run.disturbed && ((letter === "P" && !run.wasOutage) || contradicted);

/**
 * A result that takes the place of another one in the run that a case had last replaces it in `recent`; in an older run it
 * only changes the sums.
 */
function count(
  h: CaseHealth,
  run: CountedRun,
  { now }: CountedAt,
  result: CountedResult,
  before: string | null,
): CaseHealth {
  const { completedAt } = run;
  const { letter, durationMs: ms } = result;
  const counted = !run.outage && isCounted(letter);
  const wasCounted = before !== null && !run.outage && isCounted(before);
  const failed = counted && hasFailed(letter);
  const failedBefore = wasCounted && hasFailed(before);
  const passes = hasPassed(letter);
  const isMore = counted && !wasCounted;
  const isNewest =
    (before === null || h.lastRunId === run.id) &&
    (h.lastRunAt === null || h.lastRunAt <= completedAt || h.lastRunAt > now);

  // A failure of this very run that a retry has undone is no episode: it is told as what it is.
  const isMain = run.onDefaultBranch && counted && isNewest;
  const mainRuns = run.onDefaultBranch ? h.mainRuns + Number(counted) - Number(wasCounted) : h.mainRuns;
  const brokenBefore = h.broken - Number(failedBefore);
  const endsEpisode = isMain && !failed && brokenBefore >= 1;
  const endsShort = endsEpisode && brokenBefore < BROKEN_RESULTS;
  const endsLong = endsEpisode && brokenBefore >= BROKEN_RESULTS;
  const episodes = endsShort ? [...h.episodes, mainRuns].slice(-EPISODES_KEPT) : h.episodes;
  const number = episodes.length < EPISODES ? 0 : withinLast(episodes, mainRuns);
  const hasEpisodes = number >= EPISODES;

  // What has failed so often in a row was broken, though what mended it is not in the commit.
  const isMended = letter === "p" && isMain && brokenBefore >= MENDED;
  const isSign = isEvidence(run, result) && !isMended;
  const evidence = isSign || (endsShort && hasEpisodes);
  const recovers = h.flaky && !evidence && !failed && isMore && h.clean + 1 >= h.recoversAfter;
  const clean = evidence || failed ? 0 : isMore ? h.clean + 1 : h.clean;
  const faded = isMore ? Math.fround(h.flakiness * KEPT_REAL) : h.flakiness;
  const flakiness = evidence ? Math.fround(faded + EVIDENCE_REAL) : faded;

  let recent = h.recent;
  if (counted && isNewest) {
    const mark = evidence ? (passes ? "P" : "F") : passes ? "p" : "f";
    recent = wasCounted ? recent.slice(0, -1) + mark : (recent + mark).slice(-RECENT_RESULTS);
  }

  let rate = 0;
  if (evidence || h.flaky || h.flakeRate !== 0) {
    rate = flakeRateOf(recent);
    // What has shown nothing for longer than is looked back at fails less often than that, not never.
    if (!recovers && (evidence || h.flaky))
      rate = Math.max(
        rate,
        1 / Math.max(RECENT_RESULTS, clean + 1),
        hasEpisodes ? number / Math.min(mainRuns, EPISODE_RESULTS) : 0,
      );
  }

  let { recoversAfter } = h;
  if (evidence) {
    const runs = h.runs + Number(counted) - Number(wasCounted);
    // Of fewer results the weights do not add up to 1 yet.
    const ownRate = hasEpisodes ? rate : Math.min(rate, flakiness / (1 - Math.pow(KEPT, Math.max(1, runs))));
    const passesAtOdds = Math.ceil(Math.log(ODDS) / Math.log(1 - Math.min(0.9, ownRate)));
    recoversAfter = Math.min(MAX_PASSES, Math.max(MIN_PASSES, passesAtOdds));
  }

  let flakySigns = h.flakySigns;
  if (evidence) {
    const sign = letter === "P" ? "r" : isSign ? "c" : "e";
    flakySigns = !h.flaky ? sign : flakySigns.includes(sign) ? flakySigns : flakySigns + sign;
  }

  let { timed, totalMs, recentMs, p95Ms } = h;
  if (counted && before === null && ms !== null) {
    recentMs = timed < TIMED ? [...recentMs, ms] : [...recentMs.slice(1), ms];
    // Of fewer than 20 it is the greatest. Then it is exact whenever it can have grown, and every ten results: sorting for
    // every case of every run would cost more than the rest.
    if (timed < TIMED - 1 || p95Ms === null) p95Ms = Math.max(p95Ms ?? ms, ms);
    else if (ms > p95Ms || timed % 10 === 9) p95Ms = secondGreatest(recentMs);
    timed++;
    totalMs += ms;
  }

  return {
    runs: h.runs + Number(counted) - Number(wasCounted),
    failures: h.failures + Number(failed) - Number(failedBefore),
    recent,
    flaky: evidence || (h.flaky && !recovers),
    flakyAt: evidence ? later(h.flakyAt, completedAt) : h.flakyAt,
    flakySince: evidence && !h.flaky ? completedAt : h.flakySince,
    flakySigns,
    recoversAfter,
    flakeRate: Math.fround(rate),
    clean,
    flakiness,
    mainRuns,
    episodes,
    episodeAt: endsShort ? completedAt : h.episodeAt,
    longEpisodeEnd: endsLong ? mainRuns : h.longEpisodeEnd,
    broken: !isMain ? h.broken : !failed ? 0 : failedBefore ? h.broken : h.broken + 1,
    timed,
    totalMs,
    recentMs,
    p95Ms,
    lastStatus: (isNewest ? statusOf(letter) : undefined) ?? h.lastStatus,
    lastRunId: before === null ? run.id : h.lastRunId,
    lastRunAt: isNewest ? completedAt : h.lastRunAt,
    lastPassedAt: passes ? later(h.lastPassedAt, completedAt) : h.lastPassedAt,
    lastFailedAt: hasFailedOnce(letter) ? later(h.lastFailedAt, completedAt) : h.lastFailedAt,
  };
}

/** A result that comes late only adds to the sums: what the case is now was decided by newer ones. */
function countLate(h: CaseHealth, run: CountedRun, result: CountedResult): CaseHealth {
  const { completedAt } = run;
  const { letter, durationMs: ms } = result;
  const counted = !run.outage && isCounted(letter);
  const isTimed = counted && ms !== null;
  return {
    ...h,
    runs: h.runs + Number(counted),
    failures: h.failures + Number(counted && hasFailed(letter)),
    flakyAt: isEvidence(run, result) ? later(h.flakyAt, completedAt) : h.flakyAt,
    timed: h.timed + Number(isTimed),
    totalMs: h.totalMs + (isTimed ? ms : 0),
    recentMs: isTimed && h.timed < TIMED ? [ms, ...h.recentMs] : h.recentMs,
    p95Ms: isTimed && h.timed < TIMED - 1 ? Math.max(h.p95Ms ?? ms, ms) : h.p95Ms,
    lastPassedAt: hasPassed(letter) ? later(h.lastPassedAt, completedAt) : h.lastPassedAt,
    lastFailedAt: hasFailedOnce(letter) ? later(h.lastFailedAt, completedAt) : h.lastFailedAt,
  };
}

/** Whichever order runs come in, the newest stays. */
const later = (one: string | null, other: string): string => (one !== null && one > other ? one : other);

const withinLast = (marks: readonly number[], total: number): number =>
  marks.reduce((sum, mark) => (mark > total - EPISODE_RESULTS ? sum + 1 : sum), 0);

/** The share of evidence, in 32 bits. */
function flakeRateOf(recent: string): number {
  let evidence = 0;
  for (const mark of recent) if (mark < "a") evidence++;
  return recent === "" ? 0 : Math.fround(evidence / recent.length);
}

/** Of at least two. */
function secondGreatest(values: readonly number[]): number {
  let [first, second] = [-Infinity, -Infinity];
  for (const value of values) {
    if (value > first) [first, second] = [value, first];
    else if (value > second) second = value;
  }
  return second;
}
