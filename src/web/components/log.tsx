/** The log of a task: numbered lines with anchors, errors and matches of a search marked. */

import type { Html, Piece } from "../../http/html.ts";
import { readAnsiLines, type Stretch } from "../../rules/ansi.ts";
import { isErrorLine } from "../../rules/log_errors.ts";
import { Stretches, Terminal } from "./terminal.tsx";

/** Maximum number of lines that browsers render well. The last lines are shown. */
export const MAX_LOG_LINES = 10_000;
const MAX_MATCHES_PER_LINE = 100;

type Range = readonly [start: number, end: number];
/** A line, its number in the log, and the matches of a search in it. */
export type LogLine = { number: number; stretches: readonly Stretch[]; isError: boolean; matches: readonly Range[] };

/** Finds a text regardless of case. */
function findMatches(line: string, search: RegExp): Range[] {
  const matches: Range[] = [];
  for (const { index, 0: found } of line.matchAll(search)) {
    matches.push([index, index + found.length]);
    if (matches.length === MAX_MATCHES_PER_LINE) break;
  }
  return matches;
}

/** Returns the last lines of a text whose first line has the number `firstLine`. */
export function readLogLines(text: string, firstLine: number, search?: string): LogLine[] {
  const pattern = search ? new RegExp(RegExp.escape(search), "gi") : undefined;
  const lines = readAnsiLines(text.endsWith("\n") ? text.slice(0, -1) : text);
  const skipped = Math.max(0, lines.length - MAX_LOG_LINES);
  return lines.slice(skipped).map((stretches, index) => {
    const plain = stretches.map(({ text }) => text).join("");
    const matches = pattern ? findMatches(plain, pattern) : [];
    return { number: firstLine + skipped + index, stretches, isError: isErrorLine(plain), matches };
  });
}

/** Marks the matches in a part of a line that begins at `start`. A match may continue in the next part. */
function markMatches(text: string, start: number, matches: readonly Range[]): Piece {
  const pieces: Piece[] = [];
  let shown = 0;
  for (const [from, to] of matches) {
    const [first, last] = [Math.max(shown, from - start), Math.min(text.length, to - start)];
    if (first >= last) continue;
    pieces.push(text.slice(shown, first), <mark>{text.slice(first, last)}</mark>);
    shown = last;
  }
  return [...pieces, text.slice(shown)];
}

function lineContent({ stretches, matches }: LogLine): Html {
  if (matches.length === 0) return <Stretches stretches={stretches} />;
  const starts: number[] = [];
  let start = 0;
  for (const { text } of stretches) {
    starts.push(start);
    start += text.length;
  }
  return <Stretches stretches={stretches} show={(text, index) => markMatches(text, starts[index]!, matches)} />;
}

/** A box that is scrolled to its end and stays there while the log grows (script/log.js). */
const LogBox = ({ name, children }: { name: string; children: Piece }): Html => (
  <div class="log" id="log" data-tail tabindex={0} role="region" aria-label={name}>
    {children}
  </div>
);

/** The style sheet draws the numbers, which the list counts: a line costs no more markup than its anchor. */
export const LogLines = ({ lines, name }: { lines: readonly LogLine[]; name: string }): Html => (
  <LogBox name={name}>
    <ol class="numbered" start={lines[0]?.number ?? 1}>
      {lines.map((line) => (
        <li id={`L${line.number}`} class={line.isError ? "err" : undefined}>
          {lineContent(line)}
        </li>
      ))}
    </ol>
  </LogBox>
);

/** Shows a log without line numbers. */
export const LogText = ({ text, name }: { text: string; name: string }): Html => (
  <LogBox name={name}>
    <pre>
      <Terminal text={text} />
    </pre>
  </LogBox>
);
