/** Updates the record of a test case with a result. Whether the case is flaky is in flakiness.ts. */

/** A case with fewer results is new. */
export const KNOWN_RUNS = 5;

/** Number of recent durations that the 95th percentile is computed from. */
const MAX_RECENT_DURATIONS = 20;

/** Runs side by side are completed in any order: a result that is older than the last one by more than this is history. */
const SIDE_BY_SIDE_MS = 10 * 60_000;

/** The record of a test case; sql/ describes the columns. Times are ISO 8601 in UTC with milliseconds. */
export type CaseHealth = {
  runs: number;
  failures: number;
  clean: number;
  mainRuns: number;
  failing: number;
  broken: boolean;
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

/** The record of a case without a result. */
export const NO_HEALTH: CaseHealth = {
  runs: 0,
  failures: 0,
  clean: 0,
  mainRuns: 0,
  failing: 0,
  broken: false,
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

/** A complete run, as far as its results concern the records of their cases. */
export type CountedRun = {
  id: string;
  /** ISO 8601 in UTC with milliseconds. */
  completedAt: string;
  /** Nearly everything failed. */
  outage: boolean;
  onDefaultBranch: boolean;
};

/** If at least this many test cases, and this share of them, look flaky for the first time in a run, its machine is the cause. */
export const DISTURBED = { cases: 5, share: 0.03 };

export const isDisturbed = (fresh: number, { passed, failed }: { passed: number; failed: number }): boolean =>
  fresh >= Math.max(DISTURBED.cases, DISTURBED.share * (passed + failed));

/** A letter as in rules/merge.ts, `INCIDENT` or `BY_ITSELF`. */
export type CountedResult = { letter: string; durationMs: number | null };

/** `before`: the letter that it replaces. */
type ChangedOutcome = CountedResult & { before: string | null };

/** The time at which a run is counted. Completion times after it come from a clock that is ahead. */
export type CountedAt = {
  now: string;
  /** Only for a run completed long ago: if the case has a result later than this, those of the run are history. */
  overtakenBy: string | null;
};

export function countedAt(run: CountedRun, now: Date): CountedAt {
  const bound = Date.parse(run.completedAt) + SIDE_BY_SIDE_MS;
  return { now: now.toISOString(), overtakenBy: now.getTime() > bound ? new Date(bound).toISOString() : null };
}

/** Stands for the letter of a failure with a cause outside of the code. */
export const INCIDENT = "i";
/** Stands for the letter of a failure that is explained as flaky. */
export const BY_ITSELF = "x";
const hasPassed = (letter: string) => letter === "p" || letter === "P";
const hasFailed = (letter: string) => letter === "f" || letter === "F" || letter === BY_ITSELF;
const isCounted = (letter: string) => hasPassed(letter) || hasFailed(letter);

/** Whether the case failed only through a case that it contains. */
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

/** The record after a result of a run that is counted now. */
export function countResult(health: CaseHealth, run: CountedRun, at: CountedAt, result: CountedResult): CaseHealth {
  const isLate = at.overtakenBy !== null && health.lastRunAt !== null && health.lastRunAt > at.overtakenBy;
  return isLate ? countLate(health, run, result) : count(health, run, at, result, null);
}

/** The record after a further attempt has changed a result of a run that has been counted. */
export const countChange = (
  health: CaseHealth,
  run: CountedRun,
  at: CountedAt,
  { before, ...result }: ChangedOutcome,
): CaseHealth => count(health, run, at, result, before);

function count(
  h: CaseHealth,
  run: CountedRun,
  { now }: CountedAt,
  { letter, durationMs: ms }: CountedResult,
  before: string | null,
): CaseHealth {
  const { completedAt } = run;
  const counted = !run.outage && isCounted(letter);
  const wasCounted = before !== null && !run.outage && isCounted(before);
  const failed = counted && hasFailed(letter);
  const failedBefore = wasCounted && hasFailed(before);
  const isMore = counted && !wasCounted;
  const isNewest =
    (before === null || h.lastRunId === run.id) &&
    (h.lastRunAt === null || h.lastRunAt <= completedAt || h.lastRunAt > now);
  const isMain = run.onDefaultBranch && counted && isNewest;
  // A pass on retry is a failure as well.
  const isClean = counted && letter === "p" && !failedBefore;
  const isTimed = counted && before === null && ms !== null;
  return {
    runs: h.runs + Number(counted) - Number(wasCounted),
    failures: h.failures + Number(failed) - Number(failedBefore),
    clean: !counted ? h.clean : isClean ? h.clean + Number(isMore) : 0,
    mainRuns: run.onDefaultBranch ? h.mainRuns + Number(counted) - Number(wasCounted) : h.mainRuns,
    failing: !isMain ? h.failing : !failed ? 0 : h.failing + Number(!failedBefore),
    broken: !isMain ? h.broken : failedBefore && failed ? h.broken : failed && letter !== BY_ITSELF,
    ...(isTimed ? addDuration(h, ms) : { timed: h.timed, totalMs: h.totalMs, recentMs: h.recentMs, p95Ms: h.p95Ms }),
    lastStatus: (isNewest ? statusOf(letter) : undefined) ?? h.lastStatus,
    lastRunId: before === null ? run.id : h.lastRunId,
    lastRunAt: isNewest ? completedAt : h.lastRunAt,
    lastPassedAt: hasPassed(letter) ? later(h.lastPassedAt, completedAt) : h.lastPassedAt,
    lastFailedAt: hasFailedOnce(letter) ? later(h.lastFailedAt, completedAt) : h.lastFailedAt,
  };
}

function addDuration({ timed, totalMs, recentMs, p95Ms }: CaseHealth, ms: number) {
  const recent = timed < MAX_RECENT_DURATIONS ? [...recentMs, ms] : [...recentMs.slice(1), ms];
  // Below 20 results it is the greatest. Then it is exact whenever it can have grown, and every ten results: sorting for
  // every case of every run would cost more than the rest.
  const isExact = timed >= MAX_RECENT_DURATIONS - 1 && p95Ms !== null;
  const isDue = isExact && (ms > p95Ms || timed % 10 === 9);
  return {
    timed: timed + 1,
    totalMs: totalMs + ms,
    recentMs: recent,
    p95Ms: !isExact ? Math.max(p95Ms ?? ms, ms) : isDue ? secondGreatest(recent) : p95Ms,
  };
}

/** Counts a late result, which only changes the sums: newer results have decided the current state. */
function countLate(h: CaseHealth, run: CountedRun, { letter, durationMs: ms }: CountedResult): CaseHealth {
  const { completedAt } = run;
  const counted = !run.outage && isCounted(letter);
  const isTimed = counted && ms !== null;
  return {
    ...h,
    runs: h.runs + Number(counted),
    failures: h.failures + Number(counted && hasFailed(letter)),
    timed: h.timed + Number(isTimed),
    totalMs: h.totalMs + (isTimed ? ms : 0),
    recentMs: isTimed && h.timed < MAX_RECENT_DURATIONS ? [ms, ...h.recentMs] : h.recentMs,
    p95Ms: isTimed && h.timed < MAX_RECENT_DURATIONS - 1 ? Math.max(h.p95Ms ?? ms, ms) : h.p95Ms,
    lastPassedAt: hasPassed(letter) ? later(h.lastPassedAt, completedAt) : h.lastPassedAt,
    lastFailedAt: hasFailedOnce(letter) ? later(h.lastFailedAt, completedAt) : h.lastFailedAt,
  };
}

/** Returns the later time, because runs are counted in any order. */
const later = (one: string | null, other: string): string => (one !== null && one > other ? one : other);

/** Expects at least two values. */
function secondGreatest(values: readonly number[]): number {
  let [first, second] = [-Infinity, -Infinity];
  for (const value of values) {
    if (value > first) [first, second] = [value, first];
    else if (value > second) second = value;
  }
  return second;
}
