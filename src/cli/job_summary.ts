/** A run as Markdown, for the summary of a job; names and messages of tests are always text and never markup. */

import type { AnnotatedFailure } from "./annotations.ts";
import { WORD_OF } from "../rules/blame.ts";
import { runCounts, runState, type ReportedRun } from "../wording/run_line.ts";
import type { Blame } from "../schema/failures.ts";
import { BLAME_PHRASES } from "../wording/blame.ts";
import type { GateDecision } from "../schema/gate.ts";
import { gateSummary } from "../wording/gate.ts";
import { caseTitle } from "../wording/case_title.ts";

const MAX_FAILURES = 50;
const MAX_NAME = 300;
const MAX_MESSAGE = 4_000;

/** A character reference for all that could be markup, a link or a mention. */
const toText = (text: string) =>
  text
    .slice(0, MAX_NAME)
    .toWellFormed()
    .replace(/\p{C}+/gu, " ")
    .replace(/[^\p{L}\p{N} ]/gu, (character) => `&#${character.codePointAt(0)};`);

/** Escapes text in `<pre>`, where only HTML is interpreted. */
const toPreformatted = (text: string) =>
  Bun.escapeHTML(
    text
      .slice(0, MAX_MESSAGE)
      .toWellFormed()
      .replace(/\r\n?/g, "\n")
      .replace(/[^\P{C}\n\t]+/gu, " "),
  );

/** All the ways in which a summary writes a text. */
export const SUMMARY_ENCODINGS = [toText, Bun.escapeHTML];

/** Returns "new", "still failing" and so on; empty without a blame. */
function wordOf(blame: string | null): string {
  const stored = Object.entries(WORD_OF).find(([, word]) => word === blame)?.[0] as Blame | undefined;
  return stored === undefined ? "" : BLAME_PHRASES[stored];
}

function toEntry(failure: AnnotatedFailure): string {
  const { message, file, line, blame, reason } = failure;
  const place = file === null ? "" : ` ${toText(file)}${line === null ? "" : `&#58;${line}`}`;
  const explanation = blame === "unclear" && reason ? `${wordOf(blame)}: ${toText(reason)}` : wordOf(blame);
  const head = `<code>${toText(caseTitle(failure))}</code>${explanation === "" ? "" : ` (${explanation})`}${place}`;
  if (message === null) return `<p>${head}</p>\n\n`;
  return `<details><summary>${head}</summary>\n\n<pre>${toPreformatted(message)}</pre>\n\n</details>\n\n`;
}

type SummarizedRun = ReportedRun & {
  gate?: Pick<GateDecision, "gate" | "pass" | "reasons" | "forgivenCount"> | undefined;
};

/**
 * Returns a summary of at most `maxBytes` of UTF-8, in whole entries, with at most 50 failures of the run, new ones first; empty if not
 * even the verdict fits.
 */
export function toSummary(run: SummarizedRun, failures: readonly AnnotatedFailure[], maxBytes: number): string {
  const isNew = ({ blame }: AnnotatedFailure) => Number(blame === "new");
  const head =
    `### ${toText(runState(run))} ${toText(run.taskSlug)}\n\n` +
    `${run.gate ? `${toText(`Gate ${run.gate.gate}: ${gateSummary(run.gate)}`)}\n\n` : ""}` +
    `${toText(runCounts(run))} · <a href="${Bun.escapeHTML(run.url)}">Open in Assay</a>\n\n`;
  const rest = (count: number) => (count > 0 ? `${count} more\n\n` : "");
  // The server lists the first failures; the run counts all of them.
  const all = Math.max(run.failed, failures.length);
  let room = maxBytes - Buffer.byteLength(head + rest(all));
  if (room < 0) return "";
  const entries: string[] = [];
  for (const failure of failures.toSorted((one, other) => isNew(other) - isNew(one)).slice(0, MAX_FAILURES)) {
    const entry = toEntry(failure);
    room -= Buffer.byteLength(entry);
    if (room < 0) break;
    entries.push(entry);
  }
  return head + entries.join("") + rest(all - entries.length);
}

/** The summary of a job that uploaded nothing; empty where it has no room. */
export function toProblemSummary(message: string, maxBytes: number): string {
  const text = `### Assay\n\n⚠️ ${toText(message)}\n\n`;
  return Buffer.byteLength(text) > maxBytes ? "" : text;
}
