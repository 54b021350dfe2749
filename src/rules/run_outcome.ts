/** Derives completeness, verdict and outage of a run from its attempts and counts. */

/** The shard number of an upload that is not one of several. */
export const WHOLE = 0;

/** One upload; the counts are of a report that lists no cases. */
export type RunAttempt = {
  shard: number;
  number: number;
  /** The report broke off. */
  partial: boolean;
  passed: number;
  failed: number;
  skipped: number;
  /** Failed test cases of the report, listed or counted. */
  failedCases: number;
};

/** Returns how many of the failures that uploads count besides their cases are further rows of a case that failed. */
export const furtherRows = (attempts: readonly Pick<RunAttempt, "failed" | "failedCases">[]): number =>
  attempts.reduce((sum, { failed, failedCases }) => sum + (failed < failedCases ? failed : 0), 0);

type Counts = { passed: number; failed: number; skipped: number };

/** A whole run posted again is an attempt after every shard's; a shard's comes after its own and after those. */
export function nextNumber(attempts: readonly Pick<RunAttempt, "shard" | "number">[], shard: number): number {
  const before = attempts.filter((attempt) => shard === WHOLE || attempt.shard === shard || attempt.shard === WHOLE);
  return Math.max(0, ...before.map(({ number }) => number)) + 1;
}

/** Returns the attempts whose own counts apply: the last one of each shard, and of the whole run if it is later. */
export function latestAttempts<A extends Pick<RunAttempt, "shard" | "number">>(attempts: readonly A[]): A[] {
  const latest = new Map<number, A>();
  for (const attempt of attempts.toSorted((a, b) => a.number - b.number)) latest.set(attempt.shard, attempt);
  return [...latest.values()].sort((a, b) => a.shard - b.shard);
}

const isSharded = (attempts: readonly Pick<RunAttempt, "shard">[]) => attempts.some(({ shard }) => shard !== WHOLE);

/** `attempts` with the newest last; `shards` as announced. */
export function isComplete(attempts: readonly Pick<RunAttempt, "shard">[], shards: number): boolean {
  const isWhole = attempts.some(({ shard }) => shard === WHOLE) && !isSharded(attempts.slice(0, -1));
  const arrived = new Set(attempts.filter(({ shard }) => shard !== WHOLE).map(({ shard }) => shard));
  return shards === 1 || isWhole || arrived.size === shards;
}

const MIN_FAILED = 10;
const OUTAGE_SHARE = 0.8;

/**
 * The share of failures from which a run after an outage still belongs to it: if half of the services are up again, no change is to blame.
 */
const SHARE_AFTER_OUTAGE = 0.2;

/** Whether a run says more about its environment: at least ten cases failed, and more than four in five of those that ran. */
export const isOutageRun = ({ passed, failed }: Pick<Counts, "passed" | "failed">, wasOutage = false): boolean =>
  failed >= MIN_FAILED && failed > (wasOutage ? SHARE_AFTER_OUTAGE : OUTAGE_SHARE) * (passed + failed);

/** Whether four in five tests failed, but too few for an outage of their own: they may be part of an outage of the execution. */
export const mayBeOutage = ({ passed, failed }: Pick<Counts, "passed" | "failed">): boolean =>
  failed > 0 && failed < MIN_FAILED && failed > OUTAGE_SHARE * (passed + failed);

/** Tells whether the complete runs of an execution are an outage together. Then those belong to it that `mayBeOutage` names. */
export const isOutageTogether = (runs: readonly Pick<Counts, "passed" | "failed">[]): boolean => {
  const sumOf = (name: "passed" | "failed") => runs.reduce((sum, run) => sum + run[name], 0);
  return isOutageRun({ passed: sumOf("passed"), failed: sumOf("failed") });
};

export type RunSoFar = {
  completedAt: string | null;
  status: string;
  outage: boolean;
  /** Whether it was an outage after an earlier attempt. */
  wasOutage: boolean;
  /** Whether its results are counted in the health of its cases; null: it was not complete. */
  healthApplied: boolean | null;
};

export type RunOutcome = {
  verdict: "passed" | "failed";
  /** All announced shards are in, or were before. */
  isIn: boolean;
  status: "passed" | "failed" | "running" | "cancelled" | "timed_out" | "incomplete";
  outage: boolean;
  wasOutage: boolean;
  /** Whether its results stay counted, so that only changes are counted again. */
  staysApplied: boolean;
};

/**
 * `counts` are of all results and of all attempts without cases, `others` those of the complete runs of other tasks of the execution.
 * `shadowed` failures are no failures of their own. `notRerun` counts cases that failed in the build that a rerun repeats, and have no
 * result in the rerun: they still count as failed.
 */
export function outcomeOf(
  run: RunSoFar,
  attempts: readonly RunAttempt[],
  shards: number,
  counts: Counts & { quarantined: number; shadowed?: number; notRerun?: number },
  others: readonly Pick<Counts, "passed" | "failed">[] = [],
): RunOutcome {
  const isIn = run.completedAt !== null || isComplete(attempts, shards);
  const isBroken = latestAttempts(attempts).some(({ partial }) => partial);
  // The execution has ended, so later reports do not make the run complete either.
  const isIncomplete = !isIn && (run.status === "incomplete" || run.status === "timed_out");
  const isRed = counts.failed - (counts.shadowed ?? 0) > counts.quarantined || (counts.notRerun ?? 0) > 0;
  const verdict = isRed || isBroken || isIncomplete ? "failed" : "passed";
  const ended = isIncomplete ? "incomplete" : run.status === "cancelled" ? run.status : "running";
  // Once its results are counted the outcome stays, unless a retry shows that the outage has ended.
  const mayBe = isIn && (run.healthApplied !== true || run.outage);
  const isPart = mayBeOutage(counts) && isOutageTogether([...others, counts]);
  const outage = mayBe && (isOutageRun(counts, run.wasOutage) || isPart);
  const staysApplied = run.healthApplied === true && !(run.outage && !outage);
  return { verdict, isIn, status: isIn ? verdict : ended, outage, wasOutage: run.wasOutage || outage, staysApplied };
}
