/** Sums up the executions of a branch by week: periods of seven days in UTC, of which the last one ends today. */

const DAY_MS = 86_400_000;
const DAYS = 7;

/** A day on which executions of the branch ended. */
type Day = {
  /** The date in UTC, such as 2026-01-31. */
  day: string;
  executions: number;
  passed: number;
  /** Executions with a flaky failure. */
  flaky: number;
  firstEndedAt: string;
  lastEndedAt: string;
  lastPassed: boolean;
  /** Milliseconds from each execution that did not pass to the next one of the day. */
  redMs: number;
  p50Ms: number | null;
};

export type Week = {
  /** The first and the last day. */
  from: string;
  to: string;
  executions: number;
  passed: number;
  flaky: number;
  /** Milliseconds from an execution that did not pass to the next one that did, as far as they are in the week. */
  redMs: number;
  /** The lower median of the medians of the days; null: unknown. */
  p50Ms: number | null;
};

/** Returns the median of the known values; the lower one of the two in the middle of an even number. */
function medianOf(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}

/** Returns the weeks since the first of the days, oldest first. `days`: ascending, those with executions. */
export function toWeeks(days: readonly Day[], now: Date): Week[] {
  const [first] = days;
  if (first === undefined) return [];
  const end = Math.floor(now.getTime() / DAY_MS) + 1;
  const count = Math.ceil((end - Date.parse(first.day) / DAY_MS) / DAYS);
  // An execution that did not pass is red until the first one of the next day, or until now.
  const nights = days.flatMap(({ lastEndedAt, lastPassed }, index) => {
    const until = days[index + 1]?.firstEndedAt ?? now.toISOString();
    return lastPassed ? [] : { from: Date.parse(lastEndedAt), until: Date.parse(until) };
  });
  return Array.from({ length: count }, (_, index) => {
    const start = (end - DAYS * (count - index)) * DAY_MS;
    const stop = start + DAYS * DAY_MS;
    const mine = days.filter(({ day }) => Date.parse(day) >= start && Date.parse(day) < stop);
    const sum = (of: (day: Day) => number) => mine.reduce((total, day) => total + of(day), 0);
    const isoDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);
    return {
      from: isoDay(start),
      to: isoDay(stop - DAY_MS),
      executions: sum(({ executions }) => executions),
      passed: sum(({ passed }) => passed),
      flaky: sum(({ flaky }) => flaky),
      redMs: nights.reduce(
        (total, { from, until }) => total + Math.max(0, Math.min(until, stop) - Math.max(from, start)),
        sum(({ redMs }) => Number(redMs)),
      ),
      p50Ms: medianOf(mine.flatMap(({ p50Ms }) => (p50Ms === null ? [] : Number(p50Ms)))),
    };
  });
}
