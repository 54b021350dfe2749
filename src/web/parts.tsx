/** The small parts of pages: status marks, times, durations, strips of results, charts, links to the next page. */

import type { Html, Piece, Href, Path } from "../http/html.ts";
import { toCount, counted, toDuration } from "../wording/numbers.ts";

export { toCount, counted, toDuration };

/** Shape and word of each status: never colour alone. */
const MARKS: Record<string, readonly [shape: string, word: string]> = {
  passed: ["●", "passed"],
  failed: ["✕", "failed"],
  flaky: ["◐", "flaky"],
  skipped: ["–", "skipped"],
  running: ["◌", "running"],
  queued: ["○", "queued"],
  cancelled: ["⊘", "cancelled"],
  timed_out: ["✕", "timed out"],
  incomplete: ["✕", "incomplete"],
  broken: ["✕", "broken"],
  healthy: ["●", "healthy"],
  new: ["○", "new"],
  removed: ["–", "removed"],
  open: ["○", "open"],
  in_progress: ["◌", "in progress"],
  resolved: ["●", "resolved"],
  ignored: ["–", "ignored"],
  regressed: ["▲", "came back"],
};

export const wordOf = (status: string): string => MARKS[status]?.[1] ?? status.replaceAll("_", " ");

/** The shape in its colour; `word` false where the word stands beside it anyway. */
export function mark(status: string, { word = true }: { word?: boolean } = {}): Html {
  const [shape, name] = MARKS[status] ?? ["○", status];
  const colour = status === "healthy" ? "passed" : status === "new" ? "queued" : status;
  return (
    <>
      <span class={`mark ${colour}`} aria-hidden="true">
        {shape}
      </span>
      {word ? <span class="visually-hidden">{name}</span> : null}
    </>
  );
}

/** Of a test: its health, but what has just failed is not shown as sound. */
export const standingOf = ({ health, lastStatus }: { health: string; lastStatus: string | null }): string =>
  lastStatus === "failed" && (health === "healthy" || health === "new") ? "failed" : health;

export const tag = (text: string, kind = ""): Html => <span class={`tag ${kind}`}>{text}</span>;

const STEPS: readonly (readonly [seconds: number, name: string])[] = [
  [86_400 * 365, "year"],
  [86_400 * 30, "month"],
  [86_400, "day"],
  [3_600, "hour"],
  [60, "minute"],
];

const plural = (value: number, name: string) => `${value} ${name}${value === 1 ? "" : "s"}`;

/** "2 hours", "5 minutes", "moments". */
export function toSpan(ms: number): string {
  const seconds = ms / 1_000;
  for (const [size, name] of STEPS) if (seconds >= size) return plural(Math.floor(seconds / size), name);
  return "moments";
}

/** How long ago; exactly in the title. `iso` is a time of ours. */
export function ago(iso: string, now: Date): Html {
  const ms = now.getTime() - Date.parse(iso);
  const text = ms < 60_000 ? "just now" : `${toSpan(ms)} ago`;
  return (
    <time datetime={iso} title={toExact(iso)} data-ago>
      {text}
    </time>
  );
}

/** `22 Nov 2026, 14:03:07 UTC`. */
export function toExact(iso: string): string {
  const date = new Date(iso);
  const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
  return `${day}, ${iso.slice(11, 19)} UTC`;
}

export const toDay = (iso: string): string =>
  new Date(iso).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

export const toPercent = (share: number): string =>
  `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0).replace(/\.0$/, "")} %`;

export const commitCode = (hash: string): Html => (
  <code title={hash}>{/^[0-9a-f]{8,}$/i.test(hash) ? hash.slice(0, 7) : hash}</code>
);

/** Long names may break at their joints. */
export const breakable = (name: string): Piece[] =>
  name.split(/(?<=[/.>_:])/).flatMap((part, index): Piece[] => (index === 0 ? [part] : [<wbr />, part]));

/** One result in a strip or a grid. */
export type StripItem = { status: string; href: Href; label: string };

/** Oldest first. A table of links, so that keyboard and screen reader walk it. */
export const strip = (items: readonly StripItem[], label: string): Html =>
  items.length === 0 ? (
    <></>
  ) : (
    <table class="strip">
      <caption class="visually-hidden">{label}</caption>
      <tbody>
        <tr>
          {items.map(({ status, href, label }) => (
            <td>
              <a class={status} href={href} title={label} />
            </td>
          ))}
        </tr>
      </tbody>
    </table>
  );

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

/** A line chart of days, or of what else `of` names, with its table as a twin. `show` words a value; `min` and `max` bound the axis. */
export function chart(
  title: string,
  lines: readonly ChartLine[],
  { show, min, max, of = "Day" }: { show: (value: number) => string; min?: number; max?: number; of?: string },
): Html {
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
      {" "}
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
      <details class="small">
        <summary class="soft">Show as table</summary>
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

/** Links to what comes before and after on a list; the filters stay in the address. */
export function pager(path: Path, query: Record<string, string | undefined>, cursor: string | undefined): Html | null {
  const first =
    query["cursor"] === undefined ? null : (
      <a href={toAddress(path, { ...query, cursor: undefined })}>From the beginning</a>
    );
  const next =
    cursor === undefined ? null : (
      <a rel="next" href={toAddress(path, { ...query, cursor })}>
        Next
      </a>
    );
  return first || next ? (
    <nav class="pages" aria-label="Pages">
      {first}
      {next}
    </nav>
  ) : null;
}

/** Path and query; what is undefined or empty is left out. */
export function toAddress(path: Path, query: Record<string, string | undefined>): Path {
  const text = toQuery(query);
  return text === "" ? path : `${path}?${text}`;
}

export const toQuery = (query: Record<string, string | undefined>): string =>
  String(new URLSearchParams(Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]))));
