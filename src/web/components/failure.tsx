/** The evidence of a failure: message, stack, expected against received, output and history. */

import type { Html, Piece } from "../../http/html.ts";
import { stripAnsi } from "../../rules/ansi.ts";
import { readDiff } from "../../rules/diff.ts";
import { readStack, type StackLine } from "../../rules/stack.ts";
import { Terminal } from "./terminal.tsx";

/** The limits of what is shown. A link leads to the whole failure. */
export type Measure = { isWhole?: boolean; message: number; stackLines: number; diffLines: number; output: number };
export const FULL: Measure = { message: 4_000, stackLines: 60, diffLines: 60, output: 3_000 };
export const BRIEF: Measure = { message: 400, stackLines: 6, diffLines: 8, output: 0 };

const MAX_LINE_LENGTH = 600;
/** A box with more lines may scroll, so it must be reachable by keyboard. */
const SCROLL_LINES = 18;

const box = (name: string, lines: number, content: Piece, isFullWidth = false): Html => (
  <div class={isFullWidth ? "full-width" : undefined}>
    <h3>{name}</h3>
    <pre
      tabindex={lines > SCROLL_LINES ? 0 : undefined}
      role={lines > SCROLL_LINES ? "group" : undefined}
      aria-label={lines > SCROLL_LINES ? name : undefined}
    >
      {content}
    </pre>
  </div>
);

const clip = (line: string): string => (line.length > MAX_LINE_LENGTH ? `${line.slice(0, MAX_LINE_LENGTH)} …` : line);

const countLines = (text: string): number => text.split("\n").length;

/** Returns a summary of hidden frames, such as "3 frames of node_modules". */
function fold(lines: readonly StackLine[]): string {
  const isOf = (folder: string) => lines.every(({ text }) => text.includes(`${folder}/`));
  const whose = ["node_modules", "site-packages", "vendor"].find(isOf) ?? "packages and the runtime";
  return `${lines.length} ${lines.length === 1 ? "frame" : "frames"} of ${whose}\n`;
}

/** Highlights the project's own frames and counts the others. */
function stackLines(lines: readonly StackLine[], limit: number): Piece[] {
  const pieces: Piece[] = [];
  for (let index = 0; index < lines.length && pieces.length < limit;) {
    const end = lines.findIndex(({ kind }, at) => at >= index && kind !== "foreign");
    const foreign = lines.slice(index, end === -1 ? lines.length : end);
    if (foreign.length > 0) {
      pieces.push(<span class="soft">{fold(foreign)}</span>);
      index += foreign.length;
      continue;
    }
    const { text, kind } = lines[index++]!;
    pieces.push(
      kind === "own" ? (
        <>
          <b>{clip(text)}</b>
          {"\n"}
        </>
      ) : (
        `${clip(text)}\n`
      ),
    );
  }
  if (pieces.length === limit) pieces.push(<span class="soft"> and more{"\n"}</span>);
  return pieces;
}

/** Returns the stack without the message that it repeats. */
function withoutMessage(stack: string, message: string): string {
  const [first = ""] = message.split("\n", 1);
  for (const repeated of [message, first]) {
    const at = repeated === "" ? -1 : stack.slice(0, 500).indexOf(repeated);
    if (at !== -1 && !stack.slice(0, at).includes("\n")) return stack.slice(at + repeated.length).replace(/^\s*\n/, "");
  }
  return stack;
}

/** Matches the line with which assertion libraries begin a diff. */
const DIFF_START = /^\s*(?:--?-? ?Expected\b|\+ (?:actual - expected|expected - actual)\b)/;

/** Returns the message without the diff at its end, which is shown separately. */
function withoutDiff(message: string): string {
  const lines = message.split("\n");
  const start = lines.findIndex((line, index) => index > 0 && DIFF_START.test(line));
  return (start === -1 ? message : lines.slice(0, start).join("\n")).trimEnd();
}

function dedent(text: string): string {
  const indents = text.split("\n", 200).flatMap((line) => (/\S/.test(line) ? line.search(/\S/) : []));
  const least = Math.min(...indents, 40);
  return least > 0 ? text.replaceAll(new RegExp(`^ {1,${least}}`, "gm"), "") : text;
}

type FailureText = { message: string | null; stack: string | null; output?: string | null };

/** Shows message, stack, diff and output of a failure. A message that equals the `title` of the failure is left out. */
export function Evidence({
  failure: { message, stack, output = null },
  measure,
  title,
}: {
  failure: FailureText;
  measure: Measure;
  title: string;
}): Html {
  const wholeMessage = stripAnsi(message ?? "").trim();
  const trace = withoutMessage(stripAnsi(stack ?? "").replace(/^\s*\n/, ""), wholeMessage).trimEnd();
  const lines = readStack(dedent(trace)).filter(({ text }) => text.trim() !== "");
  const shownLines = stackLines(lines, measure.stackLines);
  const diff = readDiff(message, stack);
  const messageText = diff !== null && !measure.isWhole ? withoutDiff(wholeMessage) : wholeMessage;
  const shown = messageText.slice(0, measure.message);
  return (
    <>
      {[
        shown === "" || shown === title
          ? null
          : box("Message", countLines(shown), [
              shown,
              shown.length < messageText.length ? <span class="soft"> …</span> : null,
            ]),
        shownLines.length === 0 ? null : box("Stack", shownLines.length, shownLines),
        diff === null
          ? null
          : box(
              `− ${diff.minus}   + ${diff.plus}`,
              diff.lines.length,
              [
                diff.lines.slice(0, measure.diffLines).map(({ sign, text }) => {
                  const line = `${sign === "-" ? "−" : sign} ${clip(text)}`;
                  return sign === "-" ? <del>{line}</del> : sign === "+" ? <ins>{line}</ins> : `${line}\n`;
                }),
                diff.lines.length > measure.diffLines ? <span class="soft">and more</span> : null,
              ],
              true,
            ),
        output === null || measure.output === 0 || output.trim() === ""
          ? null
          : box("End of the output", countLines(output), <Terminal text={output.slice(-measure.output)} />),
      ]}
    </>
  );
}

const KINDS: readonly (readonly [letters: string, kind: string, word: string])[] = [
  ["fF", "failed", "failed"],
  ["P", "flaky", "flaky"],
  ["sS", "skipped", "skipped"],
  ["p", "passed", "passed"],
];
const WIDTH = 6;
const HEIGHT = 15;

/**
 * Draws results that are packed as one letter each, oldest first. The bars differ in height as well as in colour, and a title
 * describes them for screen readers.
 */
export function History({ letters }: { letters: string }): Html | null {
  if (letters.length < 2) return null;
  const counts = KINDS.map(([set, kind, word]) => ({
    kind,
    word,
    at: [...letters].flatMap((letter, index) => (set.includes(letter) ? [index] : [])),
  }));
  const words = counts.filter(({ at }) => at.length > 0).map(({ word, at }) => `${at.length} ${word}`);
  const label = `The last ${letters.length} results: ${words.join(", ")}`;
  const tops: Record<string, number> = { failed: 0, flaky: 6, passed: 3, skipped: 12 };
  return (
    <svg
      class="history"
      width={letters.length * WIDTH}
      height={HEIGHT}
      viewBox={`0 0 ${letters.length * WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      {counts.map(({ kind, at }) =>
        at.length === 0 ? null : (
          <path class={kind} d={at.map((index) => `M${index * WIDTH + 2} ${tops[kind]}V15`).join("")} />
        ),
      )}
    </svg>
  );
}
