/** Whether a test case or a task took longer than usual: the one definition. Durations are in milliseconds. */

/** A duration must exceed this to be slower than usual: nobody waits for less. */
export const SLOW_MS = 1_000;
/**
 * A slowdown is found by the first of these signs: `slow` of the last `of` durations, the newest among them, are at least `factor`
 * times the median of those before, and longer than a share `quantile` of those.
 */
const SIGNS = [
  /** On a branch one result is enough: a pull request may have one build only. */
  { slow: 1, of: 1, factor: 5, quantile: 1, where: "branch" },
  /** A pause is no slowdown: on the default branch a second result confirms it. */
  { slow: 2, of: 2, factor: 5, quantile: 1, where: "default" },
  /** The durations of a slowdown by five vary as well: some of them are below that. */
  { slow: 3, of: 5, factor: 3, quantile: 0.95, where: "both" },
] as const;
/** The number of last passes on the default branch that a duration is compared with. */
const MAX_HISTORY = 100;
/** With fewer passes it is not known what is usual. */
const MIN_HISTORY = 10;
/**
 * Durations of test cases are stored from this one on: a case that takes `SLOW_MS` is longer than all others by the largest
 * factor of `SIGNS`.
 */
export const TRACKED_MS = SLOW_MS / 5;
/** The slowness of a run is known from at least this many test cases. */
const MIN_COMPARED = 10;

const quantileOf = (sorted: readonly number[], quantile: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * quantile))]!;
const ascending = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b);
const medianOf = (values: readonly number[]): number => quantileOf(ascending(values), 0.5);

/** What a duration that is slower than usual is compared with. */
export type Slower = {
  /** The median. */
  usualMs: number;
  longestMs: number;
};

export type ComparedDuration = {
  durationMs: number;
  /** Durations of the last passes on the default branch, the newest last. */
  history: readonly number[];
};

export type ComparedIn = {
  /** How many times longer than usual the whole run took, see `slownessOf`. */
  slowness: number;
  /** The last duration of the history is the one before this one. */
  onDefaultBranch: boolean;
};

/** Returns undefined if the duration is usual, or if too little is known. */
export function findSlower(
  { durationMs, history }: ComparedDuration,
  { slowness, onDefaultBranch }: ComparedIn,
): Slower | undefined {
  const ms = durationMs / Math.max(1, slowness);
  if (ms <= SLOW_MS) return undefined;
  const other = onDefaultBranch ? "branch" : "default";
  for (const { slow, of, factor, quantile, where } of SIGNS) {
    const start = history.length - of + 1;
    if (start < MIN_HISTORY || where === other) continue;
    const before = ascending(history.slice(0, start));
    const usualMs = quantileOf(before, 0.5);
    const isSlow = (one: number) => one > SLOW_MS && one >= factor * usualMs && one > quantileOf(before, quantile);
    if (isSlow(ms) && history.slice(start).filter(isSlow).length >= slow - 1)
      return { usualMs, longestMs: before.at(-1)! };
  }
  return undefined;
}

/** How many times longer than usual the test cases of a run took, by the median; 1 if too few of them are known. */
export function slownessOf(cases: readonly ComparedDuration[]): number {
  const known = cases.filter(({ history }) => history.length >= MIN_HISTORY);
  if (known.length < MIN_COMPARED) return 1;
  return medianOf(known.map(({ durationMs, history }) => durationMs / Math.max(1, medianOf(history))));
}

/** The history with a further pass, bounded. `slowness` is that of its run. */
export const addPass = (history: readonly number[], durationMs: number, slowness = 1): number[] =>
  [...history, Math.round(durationMs / Math.max(1, slowness))].slice(-MAX_HISTORY);

/**
 * The history of a test case whose passes on the default branch were all below `TRACKED_MS`: of those, only the last results of
 * all branches are known.
 */
export const untrackedHistory = (recentMs: readonly number[], mainRuns: number): number[] =>
  mainRuns === 0 ? [] : recentMs.slice(-mainRuns).map((ms) => Math.min(ms, TRACKED_MS - 1));
