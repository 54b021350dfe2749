/** Extracts TAP from terminal output: lines of other programs before it, the output of `prove -v`, the kernel's KTAP. */

import { linesOf } from "./text.ts";

/** The beginning of plain TAP: tests may print comments and empty lines before it. "ok", two spaces and a tab is go's. */
const PLAIN =
  /^(?:[ \t]*#.*\n|[ \t\r]*\n){0,1000}[ \t]*(?:K?TAP version 1\d?\b|1\.\.\d+|(not )?ok\b( \d| -)?(?! {2}\t)|Bail out!)/i;
/** A line that only TAP has. */
const CERTAIN = /^[ \t]*(?:K?TAP version|1\.\.\d+[ \t]*(?:$|#)|not ok\b|ok (?:\d|-))/im;
/** The first line that is none of another program; any program prints a line "ok". */
const FIRST =
  /^[ \t]*(?:K?TAP version \d|1\.\.\d+[ \t]*\r?(?:$|#)|not ok\b|ok (?:\d+(?=[\s#-]|$)|-)|Bail out!|# Subtest:)/im;
const POINT = /^[ \t]*(?:not )?ok\b/m;

/**
 * The line with which prove announces a file: "t/cart.t .. ", or "t/db.t .. skipped: no database". A name without folder and extension is a
 * file only with two dots and a blank: "Connecting ..." is the output of a program.
 */
const HEADER =
  /^(?:\[\d\d:\d\d:\d\d\] )?(?!\S*:\/\/)((?=\S*[\\/]|\S*\.\w{1,10} )[^\s#]\S*(?= \.\.+ ?(?:skipped|$))|[^\s#]\S*(?= \.\. $)) \.\.+ ?(?:skipped: (.*)|skipped)?$/;
/** The word with which prove ends a file, with its time where that was asked for. */
const PASSED = /^ok(?:\s+\d+ ms\b.*)?$/;
const FAILED = /^(?:Dubious, test returned \d|Failed \d+\/\d+ subtests|No subtests run)/;
const SUMMARY = /^(?:\[\d\d:\d\d:\d\d\]|All tests successful\.)$/;
const RESULT = /^Result: (?:PASS|FAIL|NOTESTS)\s*$/m;
export { HEADER as PROVE_HEADER, RESULT as PROVE_RESULT };

/** Whether the text begins as TAP does, without lines of other programs before it. */
export function isPlainTap(text: string): boolean {
  const [beginning, not, rest] = PLAIN.exec(text) ?? [];
  if (beginning === undefined) return false;
  // Any program may print a line "ok".
  return not !== undefined || rest !== undefined || !/ok$/i.test(beginning) || CERTAIN.test(text);
}

/** Whether there is TAP in the text, which lines of other programs may come before. */
export const isTap = (text: string): boolean => isPlainTap(text) || isProve(text) || hasTap(text);

/** Whether it has a test of TAP, and more than an "ok", which any program may print. */
export const hasTap = (text: string): boolean =>
  /^Bail out!/m.test(text) ||
  (POINT.test(text) && /^[ \t]*(?:K?TAP version|1\.\.\d+[ \t]*\r?(?:$|#)|not ok\b)/m.test(text));

/** Where TAP begins, behind the lines of other programs. */
export const startOfTap = (text: string): number => Math.max(0, text.search(FIRST));

/** prove announces its files and prints the tests of each below, unless all are skipped. */
export const isProve = (text: string): boolean =>
  text.includes(" ..") && (POINT.test(text) || RESULT.test(text)) && linesOf(text).some((line) => HEADER.test(line));

/** Returns plain TAP, in which subtests are indented by four spaces and each file of prove is a subtest. */
export function toPlainTap(text: string): string {
  if (isProve(text)) return fromProve(linesOf(text));
  const plain = isPlainTap(text) ? text : text.slice(startOfTap(text));
  return /^\s*KTAP version/i.test(plain) && /^ {2}\S/m.test(plain) ? fromKtap(plain) : plain;
}

/** KTAP indents subtests by two spaces, and repeats the version in each of them. */
const fromKtap = (text: string): string =>
  text.replace(/^(?: {2})+(?=\S)/gm, (indent) => indent + indent).replace(/^ +KTAP version.*\n/gim, "");

type ProveFile = { name: string; skipped: string | undefined; lines: string[] };

/** The output of one run, or of several: each ends with a line of totals and a result. */
function fromProve(lines: Iterable<string>): string {
  const files: ProveFile[] = [];
  const outsideLines: string[] = [];
  let planned = 0;
  let section: "outside" | "file" | "summary" = "outside";
  for (const line of lines) {
    const header = HEADER.exec(line);
    if (header) {
      files.push({ name: header[1]!, skipped: line.endsWith(" ") ? undefined : (header[2] ?? ""), lines: [] });
      section = "file";
    } else if (RESULT.test(line)) section = "outside";
    else if (line === "Test Summary Report") section = "summary";
    else if (FILES.test(line)) planned += Number(FILES.exec(line)![1]);
    else if (section === "file" && !SUMMARY.test(line)) files.at(-1)!.lines.push(line);
    // No file of prove holds it, so the plan cannot be kept.
    else if (section === "outside" && OUTSIDE_LINE.test(line)) outsideLines.push(line);
  }
  const subtests = files.flatMap((file, index) => fromProveFile(file, index + 1));
  const end = section === "outside" ? [] : ["Bail out! The output of prove has no result"];
  return [`1..${planned || files.length}`, ...outsideLines, ...subtests, ...end].join("\n");
}

const FILES = /^Files=(\d{1,7}), Tests=\d+,/;
const OUTSIDE_LINE = /^(?:not ok\b|ok \d)/;

/** A file that prove ended with no word has no end: the run broke off inside it. */
function fromProveFile({ name, skipped, lines }: ProveFile, number: number): string[] {
  if (skipped !== undefined) return [`ok ${number} - ${name} # SKIP ${skipped}`];
  const end = lines.findLastIndex((line) => PASSED.test(line) || FAILED.test(line));
  const points = lines.filter((line, at) => at !== end && !FAILED.test(line)).map((line) => `    ${line}`);
  if (end === -1) return [`# Subtest: ${name}`, ...points];
  const reasons = lines.filter((line) => FAILED.test(line)).map((line) => `# ${line}`);
  return [
    `# Subtest: ${name}`,
    ...points,
    reasons.length === 0 ? `ok ${number} - ${name}` : `not ok ${number} - ${name}`,
    ...reasons,
  ];
}
