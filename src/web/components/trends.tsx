/** How a branch has been going: the share of its executions that passed, and how long they took, by day. */

import type { Html, Path } from "../../http/html.ts";
import type { DayFigures } from "../../store/branch_days.ts";
import { Chart } from "../components/chart.tsx";
import { toDay, toPercent } from "../components/text.tsx";
import { toDuration } from "../../wording/numbers.ts";

const DAY_MS = 86_400_000;
/** So many are shown. */
export const TREND_DAYS = 30;

/** `hrefOf`: where the point of a day leads. */
export function trendCharts(
  branch: string,
  figures: readonly DayFigures[],
  now: Date,
  hrefOf: (day: string) => Path | undefined = () => undefined,
): Html | null {
  // One day is no trend.
  if (figures.length < 2) return null;
  const byDay = new Map(figures.map((row) => [row.day, row]));
  const days = Array.from({ length: TREND_DAYS }, (_, index) =>
    new Date(now.getTime() - (TREND_DAYS - 1 - index) * DAY_MS).toISOString().slice(0, 10),
  );
  const points = (value: (row: DayFigures) => number | null, show: (value: number) => string) =>
    days.map((day) => {
      const row = byDay.get(day);
      const found = row ? value(row) : null;
      const href = row ? hrefOf(day) : undefined;
      return { day, value: found, href, label: found === null ? "" : `${toDay(day)}: ${show(found)}` };
    });
  const executions = figures.reduce((sum, row) => sum + row.executions, 0);
  const passed = figures.reduce((sum, row) => sum + row.passed, 0);
  const rate = points(({ passed, executions }) => passed / executions, toPercent);
  const lowest = rate.reduce((low, point) => ((point.value ?? 2) < (low.value ?? 2) ? point : low));
  const p50 = points(({ p50Ms }) => p50Ms, toDuration);
  const p95 = points(({ p95Ms }) => p95Ms, toDuration);
  const newest = figures.at(-1)!;
  return (
    <div class="columns">
      <section class="card padded">
        <h2 class="label">
          Executions of {branch} that passed, {TREND_DAYS} days
        </h2>
        <div class="big">{toPercent(passed / executions)}</div>
        <Chart
          title={`Share of executions of ${branch} that passed, by day; lowest: ${lowest.label}`}
          lines={[{ name: "Passed", points: rate }]}
          show={toPercent}
          min={0}
          max={1}
        />
      </section>
      <section class="card padded">
        <h2 class="label">Duration on {branch}, median and 95th percentile</h2>
        <div class="big">{newest.p50Ms === null ? "–" : toDuration(newest.p50Ms)}</div>
        <Chart
          title={`Duration of executions of ${branch}, by day`}
          lines={[
            { name: "Median", points: p50 },
            { name: "95th percentile", points: p95, isMain: false },
          ]}
          show={toDuration}
          min={0}
        />
      </section>
    </div>
  );
}
