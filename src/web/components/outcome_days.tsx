/** The executions of each day as stacked bars: those that passed below those that did not. */

import { TableHead } from "./list.tsx";
import type { Href, Html } from "../../http/html.ts";
import { counted, toDay } from "../../wording/numbers.ts";
import { Legend } from "./legend.tsx";

export type OutcomeDay = {
  /** The date in UTC, such as 2026-01-31. */
  day: string;
  executions: number;
  passed: number;
  /** Failures that gates have forgiven, on all branches. */
  forgiven: number;
  href: Href | undefined;
};

const WIDTH = 10;
const HEIGHT = 60;
/** Failed executions have a mark below their day as well: a status has a shape of its own and not only a colour. */
const FOOT = 10;
const FAILED_MARK_HEIGHT = 8;

/** Bars that link to the executions of their day, the highest number as a label, and the same figures as a table. */
export function OutcomeDays({ title, days }: { title: string; days: readonly OutcomeDay[] }): Html {
  const most = Math.max(...days.map(({ executions }) => executions), 1);
  const hasForgiven = days.some(({ forgiven }) => forgiven > 0);
  const tall = (count: number) => Math.round((count / most) * HEIGHT * 10) / 10;
  return (
    <>
      <div class="bars">
        <span class="small soft" aria-hidden="true">
          {counted(most, "execution")}
        </span>
        <svg
          viewBox={`0 0 ${days.length * WIDTH} ${HEIGHT + FOOT}`}
          width="100%"
          height={HEIGHT + FOOT}
          preserveAspectRatio="none"
          role="group"
          aria-label={title}
        >
          <line x1="0" y1={HEIGHT + 0.5} x2={days.length * WIDTH} y2={HEIGHT + 0.5} stroke="var(--line)" />
          {days.map(({ day, executions, passed, href }, index) => {
            if (executions === 0) return null;
            const [x, width] = [index * WIDTH + 1, WIDTH - 2];
            const failed = executions - passed;
            const bar = (
              <>
                <title>
                  {toDay(day)}: {passed} of {executions} passed
                </title>
                <rect class="passed" x={x} y={HEIGHT - tall(passed)} width={width} height={tall(passed)} />
                {failed === 0 ? null : (
                  <>
                    <rect class="failed" x={x} y={HEIGHT - tall(executions)} width={width} height={tall(failed)} />
                    <rect class="failed" x={x} y={HEIGHT + 2} width={width} height={FAILED_MARK_HEIGHT} />
                  </>
                )}
              </>
            );
            return href === undefined ? <g>{bar}</g> : <a href={href}>{bar}</a>;
          })}
        </svg>
        <div class="axis small soft" aria-hidden="true">
          <span>{toDay(days[0]!.day)}</span>
          <Legend statuses={["passed", "failed"]} />
          <span>{toDay(days.at(-1)!.day)}</span>
        </div>
      </div>
      <details class="small">
        <summary class="soft">View as table</summary>
        <div class="scroll">
          <table>
            <TableHead
              columns={[
                "Day",
                ["Executions", "number"],
                ["Passed", "number"],
                hasForgiven && ["Failures forgiven by gates, all branches", "number"],
              ]}
            />
            <tbody>
              {days.map(({ day, executions, passed, forgiven }) =>
                executions === 0 && forgiven === 0 ? null : (
                  <tr>
                    <th scope="row">{toDay(day)}</th>
                    <td class="number">{executions}</td>
                    <td class="number">{passed}</td>
                    {hasForgiven ? <td class="number">{forgiven}</td> : null}
                  </tr>
                ),
              )}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}
