/** How often a test failed in each of the last weeks, as bars and in words. */

import type { Html } from "../../../http/html.ts";
import type { CaseWeek } from "../../../store/case_weeks.ts";
import { counted, toCount } from "../../../wording/numbers.ts";

/** The number of weeks, as in the trend of a project. */
export const WEEKS = 8;

const WIDTH = 16;
const HEIGHT = 24;
const MIN_HEIGHT = 2;

/** Shows nothing for a test that did not fail, or has results of one week only. */
export function FailuresByWeek({ weeks }: { weeks: readonly CaseWeek[] }): Html | null {
  const failures = weeks.reduce((sum, week) => sum + week.failures, 0);
  if (failures === 0 || weeks.filter(({ results }) => results > 0).length < 2) return null;
  const words = weeks.map((week) =>
    week.results === 0 ? "no results" : `${toCount(week.failures)} of ${toCount(week.results)}`,
  );
  const label = `Failed by week, this week last: ${words.join(", ")}`;
  const shareOf = ({ results, failures: failed }: CaseWeek) => (results === 0 ? 0 : failed / results);
  const most = Math.max(...weeks.map(shareOf));
  return (
    <section class="card padded">
      <h2 class="first">
        Failures by week{" "}
        <small>
          {counted(failures, "failure")} in {counted(weeks.length, "week")}, with those before a pass in the same run
        </small>
      </h2>
      <svg class="day-bars" width={weeks.length * WIDTH} height={HEIGHT} aria-hidden="true">
        <line x1="0" y1={HEIGHT - 0.5} x2={weeks.length * WIDTH} y2={HEIGHT - 0.5} stroke="var(--line)" />
        {weeks.map((week, index) => {
          if (week.failures === 0) return null;
          const tall = Math.max(MIN_HEIGHT, Math.round((shareOf(week) / most) * (HEIGHT - 1)));
          return <rect x={index * WIDTH + 1} y={HEIGHT - 1 - tall} width={WIDTH - 2} height={tall} />;
        })}
      </svg>
      <p class="small soft">{label}</p>
    </section>
  );
}
