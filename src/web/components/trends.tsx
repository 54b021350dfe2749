/** The trend of a branch: how its executions ended by day, and the durations of its newest executions. */

import type { Html, Path } from "../../http/html.ts";
import type { DayFigures } from "../../store/branch_days.ts";
import type { ForgivenDay } from "../../store/gate.ts";
import type { ExecutionSummary } from "../../store/execution_list.ts";
import { counted, toDuration } from "../../wording/numbers.ts";
import { Bars } from "./bars.tsx";
import { outcomeText } from "./execution_table.tsx";
import { executionName } from "../../wording/execution_name.ts";
import { type OutcomeDay, OutcomeDays } from "./outcome_days.tsx";
import { toPercent } from "./text.tsx";

const DAY_MS = 86_400_000;
/** Number of days of the chart. */
export const TREND_DAYS = 30;
/** Number of executions that are drawn as bars. */
export const TREND_EXECUTIONS = 30;

type TrendProperties = {
  branch: string;
  /** The last `TREND_DAYS` days, oldest first. */
  days: readonly DayFigures[];
  /** Failures that gates have forgiven, on all branches. */
  forgiven?: readonly ForgivenDay[];
  /** The newest executions of the branch, newest first. */
  executions: readonly ExecutionSummary[];
  now: Date;
  /** Returns the link of a day. */
  dayHref?: (day: string) => Path;
  /** Returns the link of an execution. */
  executionHref?: (id: string) => Path;
};

/** Shows nothing with fewer than two days of results. */
export function BranchTrends({
  branch,
  days,
  forgiven = [],
  executions,
  now,
  dayHref,
  executionHref,
}: TrendProperties): Html | null {
  if (days.length < 2) return null;
  const byDay = new Map(days.map((row) => [row.day, row]));
  const forgivenOn = new Map(forgiven.map((row) => [row.day, row.forgiven]));
  const dates = Array.from({ length: TREND_DAYS }, (_, index) =>
    new Date(now.getTime() - (TREND_DAYS - 1 - index) * DAY_MS).toISOString().slice(0, 10),
  );
  const ofDates = (from: number, to?: number) => dates.slice(from, to).flatMap((day) => byDay.get(day) ?? []);
  const weeks = { last: ofDates(-7), before: ofDates(-14, -7), all: days };
  return (
    <div class="columns">
      <Outcomes
        branch={branch}
        weeks={weeks}
        days={dates.map((day) => {
          const { executions = 0, passed = 0 } = byDay.get(day) ?? {};
          return {
            day,
            executions,
            passed,
            forgiven: forgivenOn.get(day) ?? 0,
            href: executions > 0 ? dayHref?.(day) : undefined,
          };
        })}
      />
      <Durations branch={branch} weeks={weeks} executions={executions} hrefOf={executionHref} />
    </div>
  );
}

/** The figures of the last seven days, of the seven days before, and of all days of the chart. */
type Weeks = { last: readonly DayFigures[]; before: readonly DayFigures[]; all: readonly DayFigures[] };

const rateOf = (figures: readonly DayFigures[]): number | null => {
  const executions = figures.reduce((sum, row) => sum + row.executions, 0);
  return executions === 0 ? null : figures.reduce((sum, row) => sum + row.passed, 0) / executions;
};

/** Returns a comparison such as "4 points higher than the previous week", or "" if one of the weeks has no results. */
function changeOf(
  last: number | null,
  before: number | null,
  { show, more, less }: { show: (difference: number) => string; more: string; less: string },
): string {
  if (last === null || before === null) return "";
  const text = show(Math.abs(last - before));
  return text === show(0)
    ? "same as the previous week"
    : `${text} ${last > before ? more : less} than the previous week`;
}

const toPoints = (share: number): string => counted(Math.round(share * 100), "point");

function Outcomes({ branch, weeks, days }: { branch: string; weeks: Weeks; days: readonly OutcomeDay[] }): Html {
  const [last, before] = [rateOf(weeks.last), rateOf(weeks.before)];
  return (
    <section class="card padded">
      <h2 class="label">
        Executions of {branch} that passed, {last === null ? `last ${TREND_DAYS} days` : "last 7 days"}
      </h2>
      <div class="big">
        {toPercent(last ?? rateOf(weeks.all)!)}{" "}
        <small class="soft">{changeOf(last, before, { show: toPoints, more: "higher", less: "lower" })}</small>
      </div>
      <OutcomeDays title={`Executions of ${branch} by day and outcome, last ${TREND_DAYS} days`} days={days} />
    </section>
  );
}

/** Returns the median of the known values; the lower one of the two in the middle of an even number. */
function medianOf(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}

/** Returns the median of the days' medians, in milliseconds. */
const medianOfDays = (figures: readonly DayFigures[]): number | null =>
  medianOf(figures.flatMap(({ p50Ms }) => (p50Ms === null ? [] : [Number(p50Ms)])));

type DurationsProperties = {
  branch: string;
  weeks: Weeks;
  executions: readonly ExecutionSummary[];
  hrefOf: ((id: string) => Path) | undefined;
};

function Durations({ branch, weeks, executions, hrefOf }: DurationsProperties): Html {
  const bars = executions.toReversed().map((execution) => ({
    status: execution.repeatedStatus ?? execution.status,
    value: execution.durationMs > 0 ? execution.durationMs : null,
    href: hrefOf?.(execution.id),
    name: executionName(execution),
    label: `${executionName(execution)}: ${outcomeText(execution)}${execution.durationMs > 0 ? `, ${toDuration(execution.durationMs)}` : ""}`,
  }));
  const values = executions.flatMap(({ durationMs }) => (durationMs > 0 ? [durationMs] : []));
  const median = medianOf(values);
  const change = changeOf(medianOfDays(weeks.last), medianOfDays(weeks.before), {
    show: toDuration,
    more: "longer",
    less: "shorter",
  });
  return (
    <section class="card padded">
      <h2 class="label">
        Duration of the last {executions.length} executions of {branch}
      </h2>
      <div class="big">
        {values[0] === undefined ? "–" : toDuration(values[0])}{" "}
        <small class="soft">
          {median === null ? "" : `latest; median ${toDuration(median)}${change === "" ? "" : `, ${change}`}`}
        </small>
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
