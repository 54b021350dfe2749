/** The trend of a branch by week: how many executions passed, how long it was red, flaky failures and durations. */

import type { Html } from "../../http/html.ts";
import { toWeeks, type Week } from "../../rules/weeks.ts";
import type { DayFigures } from "../../store/branch_days.ts";
import type { ForgivenDay } from "../../store/gate.ts";
import { counted, toDay, toDuration } from "../../wording/numbers.ts";
import { TableHead } from "./list.tsx";
import { toPercent } from "./text.tsx";

/** Number of days of the charts: eight weeks. */
export const TREND_DAYS = 56;
const HOUR_MS = 3_600_000;

/** Returns "31 h" or "40 min". */
const toHours = (ms: number): string =>
  ms > 0 && ms < HOUR_MS ? `${Math.ceil(ms / 60_000)} min` : `${Math.round(ms / HOUR_MS)} h`;

const toPoints = (share: number): string => counted(Math.round(share * 100), "point");

type Measure = {
  /** Names the measure, above its chart. */
  title: (branch: string) => string;
  column: string;
  /** Null: unknown. */
  of: (week: Week) => number | null;
  show: (value: number) => string;
  /** Shows a difference. Default: as a value. */
  showChange?: (difference: number) => string;
  words: readonly [more: string, less: string];
};

const shareOf =
  (part: "passed" | "flaky") =>
  (week: Week): number | null =>
    week.executions === 0 ? null : week[part] / week.executions;

const MEASURES: readonly Measure[] = [
  {
    title: (branch) => `Executions of ${branch} that passed`,
    column: "Passed",
    of: shareOf("passed"),
    show: toPercent,
    showChange: toPoints,
    words: ["higher", "lower"],
  },
  {
    title: () => "Red: from a failed execution to the next that passed",
    column: "Red",
    of: ({ redMs }) => redMs,
    show: toHours,
    words: ["more", "less"],
  },
  {
    title: () => "Executions with a flaky failure",
    column: "Flaky",
    of: shareOf("flaky"),
    show: toPercent,
    showChange: toPoints,
    words: ["higher", "lower"],
  },
  {
    title: () => "Duration, median of the days",
    column: "Duration",
    of: ({ p50Ms }) => p50Ms,
    show: toDuration,
    words: ["longer", "shorter"],
  },
];

/** The share of a value up to which a change is not worth its number. */
const SMALL_CHANGE = 0.05;

/** Returns a comparison such as "4 points higher than the week before", or "" if one of the weeks has no results. */
function changeOf({ of, show, showChange = show, words }: Measure, weeks: readonly Week[]): string {
  const [before, last] = weeks.slice(-2).map(of);
  if (before === undefined || before === null || last === undefined || last === null) return "";
  const text = showChange(Math.abs(last - before));
  return Math.abs(last - before) <= SMALL_CHANGE * Math.max(last, before)
    ? "about the same as the week before"
    : `${text} ${last > before ? words[0] : words[1]} than the week before`;
}

const SLOT = 34;
const BAR = 24;
const BASE = 66;
const HIGHEST = 50;
const HEIGHT = 82;

function WeekBars({
  measure: { of, show },
  weeks,
  label,
}: {
  measure: Measure;
  weeks: readonly Week[];
  label: string;
}) {
  const values = weeks.map(of);
  const most = Math.max(...values.map((value) => value ?? 0), 1e-9);
  const lastIndex = weeks.length - 1;
  return (
    <svg class="weeks" viewBox={`0 0 ${8 * SLOT} ${HEIGHT}`} role="img" aria-label={label}>
      <line x1="0" y1={BASE + 0.5} x2={weeks.length * SLOT} y2={BASE + 0.5} stroke="var(--line)" />
      {values.map((value, index) => {
        const middle = index * SLOT + SLOT / 2;
        const height = Math.round(((value ?? 0) / most) * HIGHEST);
        return (
          <>
            {height === 0 ? null : (
              <rect
                x={middle - BAR / 2}
                y={BASE - height}
                width={BAR}
                height={height}
                class={index === lastIndex ? "last" : undefined}
              />
            )}
            <text x={middle} y={BASE - height - 4}>
              {value === null ? "–" : show(value)}
            </text>
            {index % 2 === lastIndex % 2 ? (
              <text class="day" x={middle} y={HEIGHT - 3}>
                {toDay(weeks[index]!.from)}
              </text>
            ) : null}
          </>
        );
      })}
    </svg>
  );
}

function MeasureCard({ branch, measure, weeks }: { branch: string; measure: Measure; weeks: readonly Week[] }): Html {
  const last = measure.of(weeks.at(-1)!);
  const title = measure.title(branch);
  const change = changeOf(measure, weeks);
  return (
    <section class="card padded">
      <h3>{title}</h3>
      <div class="big">
        {last === null ? "–" : measure.show(last)} <small class="soft">{change}</small>
      </div>
      <WeekBars measure={measure} weeks={weeks} label={`${title}, by week, oldest first`} />
    </section>
  );
}

type TrendProperties = {
  branch: string;
  /** The last `TREND_DAYS` days with executions, oldest first. */
  days: readonly DayFigures[];
  /** Failures that gates have forgiven, on all branches. */
  forgiven?: readonly ForgivenDay[];
  now: Date;
};

/** Shows nothing with fewer than two days of results. */
export function BranchTrends({ branch, days, forgiven = [], now }: TrendProperties): Html | null {
  if (days.length < 2) return null;
  const weeks = toWeeks(days, now);
  const forgivenIn = ({ from, to }: Week) =>
    forgiven.reduce((sum, row) => sum + (row.day >= from && row.day <= to ? row.forgiven : 0), 0);
  return (
    <>
      <h2>
        Trend <small>by week of seven days until today (UTC); large: the last one</small>
      </h2>
      <div class="columns trends">
        {MEASURES.map((measure) => (
          <MeasureCard branch={branch} measure={measure} weeks={weeks} />
        ))}
      </div>
      <details class="bare small">
        <summary>View as table</summary>
        <div class="card scroll">
          <table>
            <TableHead
              caption={`Executions of ${branch} by week, newest first`}
              columns={[
                "Week",
                ["Executions", "number"],
                ...MEASURES.map(({ column }) => [column, "number"] as const),
                forgiven.length > 0 && ["Failures forgiven by gates, all branches", "number"],
              ]}
            />
            <tbody>
              {weeks.toReversed().map((week) => (
                <tr>
                  <th scope="row">
                    {toDay(week.from)} – {toDay(week.to)}
                  </th>
                  <td class="number">{week.executions}</td>
                  {MEASURES.map(({ of, show }) => {
                    const value = of(week);
                    return <td class="number">{value === null ? "–" : show(value)}</td>;
                  })}
                  {forgiven.length > 0 ? <td class="number">{forgivenIn(week)}</td> : null}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}
