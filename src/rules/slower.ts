/** Whether a test case or a task took longer than usual: the one definition. Durations are in milliseconds. */

/** Minimum duration of a slow result; shorter ones do not matter to people. */
export const SLOW_MS = 1_000;
/**
 * A slowdown is recognised by the first of these signs: `slow` of the last `of` durations of the branch, the newest among them, are at
 * least `factor` times the median of the passes before, and longer than a share `quantile` of those. One long result is a pause of
 * the machine more often than a slowdown, so every sign needs a second one.
 */
const SIGNS = [
  { slow: 2, of: 2, factor: 5, quantile: 1 },
  /** The durations of a slowdown by five vary as well: some of them are below that. */
  { slow: 3, of: 5, factor: 3, quantile: 0.97 },
] as const;
/** A duration below this multiple of the median is usual. */
export const LEAST_FACTOR = Math.min(...SIGNS.map(({ factor }) => factor));
/** The number of earlier results on its branch that confirm a duration. */
export const MAX_RECENT = Math.max(...SIGNS.map(({ of }) => of)) - 1;
/** The number of last passes on the default branch that a duration is compared with. */
const MAX_HISTORY = 100;
/** Minimum number of passes for a usual duration. */
const MIN_HISTORY = 10;
/** Minimum stored duration of test cases: a case that takes `SLOW_MS` exceeds all shorter ones by the largest factor of `SIGNS`. */
export const TRACKED_MS = SLOW_MS / 5;
/** The slowness of a run is known from at least this many test cases. */
const MIN_COMPARED = 10;

const quantileOf = (sorted: ArrayLike<number>, quantile: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * quantile))]!;
const ascending = (values: readonly number[]): Float64Array => Float64Array.from(values).sort();

const medianOf = (values: readonly number[]): number => quantileOf(ascending(values), 0.5);

/** The median of the last passes on the default branch; undefined: there are too few. */
export const usualOf = (history: readonly number[]): number | undefined =>
  history.length < MIN_HISTORY ? undefined : Math.round(medianOf(history));

/** The usual durations that a slower one is compared with. */
export type Slower = {
  /** The median. */
  usualMs: number;
  longestMs: number;
};

export type ComparedDuration = {
  durationMs: number;
  /** Durations of the last passes on the default branch, the newest last. */
  history: readonly number[];
  /** Durations of the last passes on its own branch, the newest last; undefined: it is the default branch. */
  recent?: readonly number[] | undefined;
};

/** Whether a duration has to be compared with its history at all; `usualMs` is the median. */
export const mayBeSlower = (durationMs: number, usualMs: number): boolean =>
  durationMs > SLOW_MS && durationMs >= LEAST_FACTOR * usualMs;

/**
 * Returns undefined if the duration is usual, or if too little is known. `slowness`: how many times longer than usual the whole run
 * took, see `slownessOf`.
 */
export function findSlower({ durationMs, history, recent }: ComparedDuration, slowness: number): Slower | undefined {
  const ms = durationMs / Math.max(1, slowness);
  if (ms <= SLOW_MS) return undefined;
  for (const { slow, of, factor, quantile } of SIGNS) {
    const start = recent ? history.length : history.length - of + 1;
    if (start < MIN_HISTORY) continue;
    const before = ascending(history.slice(0, start));
    const usualMs = quantileOf(before, 0.5);
    const isSlow = (one: number) => one >= factor * usualMs && one > quantileOf(before, quantile);
    const confirming = recent ? recent.slice(1 - of) : history.slice(start);
    if (isSlow(ms) && confirming.filter(isSlow).length >= slow - 1) return { usualMs, longestMs: before.at(-1)! };
  }
  return undefined;
}

export type ComparedWithUsual = { durationMs: number; usualMs: number };

/** Returns the median factor by which the test cases of a run took longer than usual; 1 if too few of them are known. */
export const slownessOf = (cases: readonly ComparedWithUsual[]): number =>
  cases.length < MIN_COMPARED ? 1 : medianOf(cases.map(({ durationMs, usualMs }) => durationMs / Math.max(1, usualMs)));

/** The history with a further pass, bounded. `slowness` is that of its run. */
export const addPass = (history: readonly number[], durationMs: number, slowness = 1): number[] =>
  [...history, Math.round(durationMs / Math.max(1, slowness))].slice(-MAX_HISTORY);

/**
 * Returns the history of a test case whose passes on the default branch were all below `TRACKED_MS`: only the last results of all branches
 * are known.
 */
export const untrackedHistory = (recentMs: readonly number[], mainRuns: number): number[] =>
  mainRuns === 0 ? [] : recentMs.slice(-mainRuns).map((ms) => Math.min(ms, TRACKED_MS - 1));
