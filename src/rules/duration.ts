/** Computes the duration of a run whose shards ran in parallel, and whose attempts ran one after the other. */

export type TimedAttempt = {
  number: number;
  durationMs: number;
  /** When its tests began, ISO 8601; null: unknown. */
  startedAt: string | null;
};

type RunTimes = {
  /** Wall time: of the shards from the first start to the last end, and of further attempts in addition. */
  durationMs: number;
  /** The sum over all shards and attempts. */
  machineTimeMs: number;
  /** When the tests of the first attempts began, ISO 8601; null: unknown. */
  testsStartedAt: string | null;
};

/** `before` are the times of the run without the newest attempt, which is the last. */
export function timesOf(attempts: readonly TimedAttempt[], before: Pick<RunTimes, "machineTimeMs">): RunTimes {
  const newest = attempts.at(-1)?.durationMs ?? 0;
  const machineTimeMs = before.machineTimeMs + newest;
  const rounds = [...Map.groupBy(attempts, ({ number }) => number)].sort(([a], [b]) => a - b);
  const spans = rounds.map(([, shards]) => spanOf(shards));
  const startedMs = spans[0]?.startedMs ?? null;
  return {
    durationMs: spans.reduce((sum, { durationMs }) => sum + durationMs, 0),
    machineTimeMs,
    testsStartedAt: startedMs === null ? null : new Date(startedMs).toISOString(),
  };
}

/** Returns the span of parallel shards: from the first start to the last end, at least the longest of them. */
function spanOf(shards: readonly TimedAttempt[]): { durationMs: number; startedMs: number | null } {
  let [longest, startedMs, endedMs] = [0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { durationMs, startedAt } of shards) {
    longest = Math.max(longest, durationMs);
    if (startedAt === null) continue;
    startedMs = Math.min(startedMs, Date.parse(startedAt));
    endedMs = Math.max(endedMs, Date.parse(startedAt) + durationMs);
  }
  if (startedMs > endedMs) return { durationMs: longest, startedMs: null };
  return { durationMs: Math.max(longest, endedMs - startedMs), startedMs };
}

/** A report is uploaded within this time after its tests ended: an older end is that of a clock in another time zone. */
const MAX_DELAY_MS = 3 * 3_600_000;
/** Maximum plausible duration. A longer one would lead to a start that no timestamp can represent. */
const MAX_DURATION_MS = 30 * 24 * 3_600_000;
/** Maximum difference between clocks. */
const MAX_SKEW_MS = 60_000;

/**
 * Returns when the tests of a report began, in ISO 8601; null: unknown. `endedAt` is the end in the report, `at` when the run was completed
 * or the report arrived. `isAtEnd`: the tests are known to have ended then.
 */
export function startOf(
  { durationMs, endedAt }: { durationMs: number; endedAt: Date | null },
  at: Date,
  isAtEnd: boolean,
): string | null {
  const delay = endedAt === null ? Number.NaN : at.getTime() - endedAt.getTime();
  const isTrusted = delay >= -MAX_SKEW_MS && delay <= MAX_DELAY_MS;
  const ended = isTrusted ? endedAt : isAtEnd ? at : null;
  return ended === null || durationMs > MAX_DURATION_MS ? null : new Date(ended.getTime() - durationMs).toISOString();
}
