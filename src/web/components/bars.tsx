/** Results as bars across the page: the height is a value such as the duration, the colour the status. */

import { TableHead } from "./list.tsx";
import type { Href, Html } from "../../http/html.ts";
import { Legend } from "./legend.tsx";
import { wordOf } from "./status.tsx";

type Bar = {
  status: string;
  /** Null if the value is not known; the bar then has the minimum height. */
  value: number | null;
  href: Href | undefined;
  /** The subject of the bar, such as an execution. */
  name: string;
  label: string;
};

type BarsProperties = {
  title: string;
  /** The bars, oldest first. */
  bars: readonly Bar[];
  show: (value: number) => string;
  /** The headings of the table with the same figures. */
  columns: readonly [name: string, status: string, value: string];
};

const WIDTH = 10;
const HEIGHT = 60;
const MIN_HEIGHT = 4;
/** The heights of the marks below the bars: each status has its own shape as well as its own colour. */
const MARKS: Record<string, number> = { failed: 8, flaky: 4 };
const FOOT_HEIGHT = 10;

/** Bars that link to their results, the highest value as a label, and the same figures as a table. */
export function Bars({ title, bars, show, columns }: BarsProperties): Html | null {
  if (bars.length === 0) return null;
  const most = Math.max(...bars.map(({ value }) => value ?? 0), 1e-9);
  const heightOf = (value: number | null) =>
    value === null ? MIN_HEIGHT : Math.max(MIN_HEIGHT, Math.round((value / most) * HEIGHT * 10) / 10);
  const hasValues = bars.some(({ value }) => value !== null);
  return (
    <>
      <div class="bars">
        {hasValues ? (
          <span class="small soft" aria-hidden="true">
            {show(most)}
          </span>
        ) : null}
        <svg
          viewBox={`0 0 ${bars.length * WIDTH} ${HEIGHT + FOOT_HEIGHT}`}
          width="100%"
          height={HEIGHT + FOOT_HEIGHT}
          preserveAspectRatio="none"
          role="group"
          aria-label={title}
        >
          {bars.map(({ status, value, href, label }, index) => {
            const bar = (
              <>
                <title>{label}</title>
                <rect
                  class={status}
                  x={index * WIDTH + 1}
                  y={HEIGHT - heightOf(value)}
                  width={WIDTH - 2}
                  height={heightOf(value)}
                />
                {MARKS[status] === undefined ? null : (
                  <rect class={status} x={index * WIDTH + 1} y={HEIGHT + 2} width={WIDTH - 2} height={MARKS[status]} />
                )}
              </>
            );
            return href === undefined ? <g>{bar}</g> : <a href={href}>{bar}</a>;
          })}
        </svg>
        <div class="axis small soft" aria-hidden="true">
          <span>{bars[0]!.name}</span>
          <Legend statuses={[...new Set(bars.map(({ status }) => status))]} />
          <span>{bars.at(-1)!.name}</span>
        </div>
      </div>
      <details class="small">
        <summary class="soft">View as table</summary>
        <div class="scroll">
          <table>
            <TableHead columns={[columns[0], columns[1], [columns[2], "number"]]} />
            <tbody>
              {bars.map(({ name, status, value }) => (
                <tr>
                  <th scope="row">{name}</th>
                  <td>{wordOf(status)}</td>
                  <td class="number">{value === null ? "–" : show(value)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}
