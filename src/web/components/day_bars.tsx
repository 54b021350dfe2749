/** Numbers by day as bars. */

import type { Html } from "../../http/html.ts";
import { counted, toDay } from "../../wording/numbers.ts";

const DAY_MS = 86_400_000;
const WIDTH = 8;
const MIN_HEIGHT = 2;

type DayBarsProperties = {
  /** Values by day, such as 2026-01-31. A day without occurrences has no entry. */
  figures: ReadonlyMap<string, number>;
  days: number;
  now: Date;
  height: number;
  /** The counted noun in the singular, such as "failure". */
  noun: string;
};

/** The newest day is on the right. Screen readers announce the total and the maximum of one day. */
export function DayBars({ figures, days, now, height, noun }: DayBarsProperties): Html {
  const names = Array.from({ length: days }, (_, index) =>
    new Date(now.getTime() - (days - 1 - index) * DAY_MS).toISOString().slice(0, 10),
  );
  const values = names.map((day) => figures.get(day) ?? 0);
  const most = Math.max(...values);
  const total = values.reduce((sum, value) => sum + value, 0);
  const when = most === 0 ? "" : `, most on ${toDay(names[values.indexOf(most)]!)}: ${most}`;
  const label = `${counted(total, noun)} in ${days} days${when}`;
  const tall = (value: number) => (value === 0 ? 0 : Math.max(MIN_HEIGHT, Math.round((value / most) * (height - 1))));
  return (
    <svg
      class="day-bars"
      width={days * WIDTH}
      height={height}
      viewBox={`0 0 ${days * WIDTH} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      <line x1="0" y1={height - 0.5} x2={days * WIDTH} y2={height - 0.5} stroke="var(--line)" />
      {values.map((value, index) =>
        value === 0 ? null : (
          <rect x={index * WIDTH + 1} y={height - 1 - tall(value)} width={WIDTH - 2} height={tall(value)} />
        ),
      )}
    </svg>
  );
}
