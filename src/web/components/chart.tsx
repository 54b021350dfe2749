/** A line chart. */

import type { Href, Html } from "../../http/html.ts";
import { toDay } from "./text.tsx";

export type Point = {
  day: string;
  /** In the table, in the place of the day. */
  name?: string;
  value: number | null;
  href?: Href | undefined;
  label: string;
};
export type ChartLine = { name: string; points: readonly Point[]; isMain?: boolean };

const CHART = { width: 520, height: 96, top: 8, bottom: 84 };

type ChartProperties = {
  title: string;
  lines: readonly ChartLine[];
  show: (value: number) => string;
  /** The ends of the axis; default: those of the values. */
  min?: number;
  max?: number;
  /** What the points are. */
  of?: string;
};

/** A line chart, with the same figures as a table below it. */
export function Chart({ title, lines, show, min, max, of = "Day" }: ChartProperties): Html {
  const values = lines.flatMap(({ points }) => points.flatMap(({ value }) => (value === null ? [] : [value])));
  const low = min ?? Math.min(...values);
  const high = Math.max(max ?? Math.max(...values), low + 1e-9);
  const days = lines[0]?.points ?? [];
  const isLinked = lines.some((line) => line.isMain !== false && line.points.some(({ href }) => href));
  const x = (index: number) => Math.round((index * CHART.width) / Math.max(1, days.length - 1));
  const y = (value: number) =>
    Math.round((CHART.bottom - ((value - low) / (high - low)) * (CHART.bottom - CHART.top)) * 10) / 10;
  const path = ({ points }: ChartLine) => {
    let isDrawing = false;
    return points
      .map(({ value }, index) => {
        const command = value === null ? "" : `${isDrawing ? "L" : "M"}${x(index)},${y(value)}`;
        isDrawing = value !== null;
        return command;
      })
      .join("");
  };
  return (
    <>
      <div class="chart">
        <div class="axis small soft" aria-hidden="true">
          <span>{show(high)}</span>
          <span>{show(low)}</span>
        </div>
        <svg
          viewBox={`0 0 ${CHART.width} ${CHART.height}`}
          width="100%"
          height={CHART.height}
          preserveAspectRatio="none"
          role={isLinked ? "group" : "img"}
          aria-label={title}
        >
          <title>{title}</title>
          <line x1="0" y1={CHART.bottom + 4} x2={CHART.width} y2={CHART.bottom + 4} stroke="var(--line)" />
          {lines.map((line) =>
            line.isMain === false ? (
              <path
                d={path(line)}
                fill="none"
                stroke="var(--soft)"
                stroke-width="1.25"
                stroke-dasharray="3 3"
                vector-effect="non-scaling-stroke"
              />
            ) : (
              <path
                d={path(line)}
                fill="none"
                stroke="var(--ink)"
                stroke-width="1.75"
                vector-effect="non-scaling-stroke"
              />
            ),
          )}{" "}
          {lines
            .filter(({ isMain }) => isMain !== false)
            .flatMap(({ points }) =>
              points.map(({ value, href, label }, index) =>
                value === null || !href ? null : (
                  <a href={href}>
                    <title>{label}</title>
                    <circle cx={x(index)} cy={y(value)} r="4" fill="transparent" />
                  </a>
                ),
              ),
            )}
        </svg>
      </div>
      <details class="small">
        <summary class="soft">View as table</summary>
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">{of}</th>
                {lines.map(({ name }) => (
                  <th scope="col" class="number">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {days.map(({ day, name }, index) =>
                lines.every(({ points }) => (points[index]?.value ?? null) === null) ? null : (
                  <tr>
                    <th scope="row">{name ?? toDay(day)}</th>
                    {lines.map(({ points }) => {
                      const value = points[index]?.value ?? null;
                      return <td class="number">{value === null ? "–" : show(value)}</td>;
                    })}
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
