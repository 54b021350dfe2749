/** The trend of a branch: the share of its executions that passed by day, and its newest executions as bars. */

import type { Html, Path } from "../../http/html.ts";
import type { DayFigures } from "../../store/branch_days.ts";
import type { ExecutionSummary } from "../../store/execution_list.ts";
import { toDuration } from "../../wording/numbers.ts";
import { Bars } from "./bars.tsx";
import { Chart } from "./chart.tsx";
import { executionName, outcomeText } from "./execution_table.tsx";
import { toDay, toPercent } from "./text.tsx";

const DAY_MS = 86_400_000;
/** The number of days of the chart. */
export const TREND_DAYS = 30;
/** The number of executions that are drawn as bars. */
export const TREND_EXECUTIONS = 30;

type TrendProperties = {
  branch: string;
  /** Of the last `TREND_DAYS` days, oldest first. */
  days: readonly DayFigures[];
  /** The newest executions of the branch, newest first. */
  executions: readonly ExecutionSummary[];
  now: Date;
  /** Where the point of a day leads. */
  dayHref?: (day: string) => Path;
  /** Where the bar of an execution leads. */
  executionHref?: (id: string) => Path;
};

/** Nothing for less than two days with results. */
export function BranchTrends({ branch, days, executions, now, dayHref, executionHref }: TrendProperties): Html | null {
  if (days.length < 2) return null;
  return (
    <div class="columns">
      <PassRate branch={branch} figures={days} now={now} hrefOf={dayHref} />
      <Durations branch={branch} executions={executions} hrefOf={executionHref} />
    </div>
  );
}

const rateOf = (figures: readonly DayFigures[]): number | null => {
  const executions = figures.reduce((sum, row) => sum + row.executions, 0);
  return executions === 0 ? null : figures.reduce((sum, row) => sum + row.passed, 0) / executions;
};

/** "+4 points against the week before"; empty without results in both weeks. */
function changeOf(week: number | null, before: number | null): string {
  if (week === null || before === null) return "";
  const points = Math.round((week - before) * 100);
  return points === 0
    ? "as in the week before"
    : `${points > 0 ? "+" : "−"}${Math.abs(points)} ${Math.abs(points) === 1 ? "point" : "points"} against the week before`;
}

type PassRateProperties = {
  branch: string;
  figures: readonly DayFigures[];
  now: Date;
  hrefOf: ((day: string) => Path) | undefined;
};

function PassRate({ branch, figures, now, hrefOf }: PassRateProperties): Html {
  const byDay = new Map(figures.map((row) => [row.day, row]));
  const days = Array.from({ length: TREND_DAYS }, (_, index) =>
    new Date(now.getTime() - (TREND_DAYS - 1 - index) * DAY_MS).toISOString().slice(0, 10),
  );
  const points = days.map((day) => {
    const row = byDay.get(day);
    const value = row ? row.passed / row.executions : null;
    const label = value === null ? "" : `${toDay(day)}: ${toPercent(value)}`;
    return { day, value, href: row ? hrefOf?.(day) : undefined, label };
  });
  const lowest = points.reduce((low, point) => ((point.value ?? 2) < (low.value ?? 2) ? point : low));
  const ofDays = (from: number, to?: number) => rateOf(days.slice(from, to).flatMap((day) => byDay.get(day) ?? []));
  const [week, before] = [ofDays(-7), ofDays(-14, -7)];
  return (
    <section class="card padded">
      <h2 class="label">
        Executions of {branch} that passed, {week === null ? `last ${TREND_DAYS} days` : "last 7 days"}
      </h2>
      <div class="big">
        {toPercent(week ?? rateOf(figures)!)} <small class="soft">{changeOf(week, before)}</small>
      </div>
      <Chart
        title={`Share of executions of ${branch} that passed, by day; lowest: ${lowest.label}`}
        lines={[{ name: "Passed", points }]}
        show={toPercent}
        min={0}
        max={1}
      />
    </section>
  );
}

type DurationsProperties = {
  branch: string;
  executions: readonly ExecutionSummary[];
  hrefOf: ((id: string) => Path) | undefined;
};

/** The middle of those that are known; of an even number the lower one. */
function medianOf(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}

function Durations({ branch, executions, hrefOf }: DurationsProperties): Html {
  const bars = executions.toReversed().map((execution) => ({
    status: execution.repeatedStatus ?? execution.status,
    value: execution.durationMs > 0 ? execution.durationMs : null,
    href: hrefOf?.(execution.id),
    name: executionName(execution),
    label: `${executionName(execution)}: ${outcomeText(execution)}${execution.durationMs > 0 ? `, ${toDuration(execution.durationMs)}` : ""}`,
  }));
  const values = executions.flatMap(({ durationMs }) => (durationMs > 0 ? [durationMs] : []));
  const median = medianOf(values);
  return (
    <section class="card padded">
      <h2 class="label">
        Duration of the last {executions.length} executions of {branch}
      </h2>
      <div class="big">
        {values[0] === undefined ? "–" : toDuration(values[0])}{" "}
        <small class="soft">{median === null ? "" : `the latest; median ${toDuration(median)}`}</small>
      </div>
      <Bars
        title={`Duration and outcome of the last executions of ${branch}, oldest first`}
        bars={bars}
        show={toDuration}
        columns={["Execution", "Outcome", "Duration"]}
      />
    </section>
  );
}
