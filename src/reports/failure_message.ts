/** Completes failures of all formats: a specific message, and the line of the file where the test failed. */

import type { ReportedCase } from "./report.ts";
import { cut, firstLine } from "./text.ts";

/** Messages that only say that a test failed, or where. */
const GENERIC =
  /^$|^(?:(?:the )?tests? )?(?:failed|failure|fail|error|errored)[.!]?$|^assertion failed[.!]?$|^exit(?: value |=)\d+$|^exited with (?:error )?code \d+$|^Traceback \(most recent call last\):?$|^[^\s:]+\.[cm]?[jt]sx?:\d+:\d+ \S/i;

/** Lines with a specific message, the most specific first. */
const SPECIFIC = [
  /^[ \t]*((?:panic|fatal error): .*)/m,
  // The error that testify writes below "Error Trace:".
  /^[ \t]+Error Trace:[^]{0,2000}?\n[ \t]+Error:[ \t]+(\S.*)/m,
  /^[ \t]*([^\s:]+\.go:\d+: \S.*)/m,
  /^[ \t]*((?:Uncaught )?(?:[\w.$]*(?:Error|Exception)(?: \[\w+\])?: |Test timeout of ).+)/m,
  /^(?![ \t]*[-+@]{2}|.*(?:--- FAIL|=== RUN))(?=.*\b(?:assert\w*|expected|got|error|failed|failure)\b)[ \t]*(\S.*)/im,
];

/** Maximum length of the text that a failure is read from; more is not worth the time. */
const MAX_TEXT_LENGTH = 65_536;
const MAX_LINE_LENGTH = 2_000;

/** Keeps the message of the report if it is specific. */
export function completeFailure(one: ReportedCase): void {
  if (one.stack === null && one.output === null && one.message === null) return;
  one.message = one.message && withoutColours(one.message);
  one.stack = one.stack && withoutColours(one.stack);
  if (one.status === "failed" && (one.message === null || GENERIC.test(one.message.trim()))) {
    const text = cut(one.stack || one.output || "", MAX_TEXT_LENGTH);
    one.message = specificLine(text) ?? one.message;
  }
  if (one.line === null && one.file !== null && one.stack !== null) one.line = lineOf(one.file, one.stack);
}

function specificLine(text: string): string | null {
  const lines = SPECIFIC.map((pattern) => pattern.exec(text)?.[1]?.trim() ?? "");
  const line = [lastOfTraceback(text) ?? "", ...lines].find(
    (one) => !GENERIC.test(one.replace(/^\w+: *['"]?|['"]$/g, "")),
  );
  return line === undefined ? null : cut(line, MAX_LINE_LENGTH);
}

/** Returns the exception, which Python writes below the frames. */
function lastOfTraceback(text: string): string | null {
  const at = text.lastIndexOf("Traceback (most recent call last):");
  if (at === -1) return null;
  const lines = text.slice(at).split("\n").slice(1);
  const indent = text.slice(text.lastIndexOf("\n", at) + 1, at);
  if (indent.trim() !== "") return null;
  const raised = lines.find((line) => line.startsWith(indent) && /^[A-Za-z_]/.test(line.slice(indent.length)));
  return raised === undefined ? null : firstLine(raised);
}

/**
 * Removes terminal colours whose escape character XML could not contain. The range of a query, such as "[5m]", is no colour, and source
 * code writes the character in letters.
 */
const withoutColours = (text: string): string =>
  text.includes("[")
    ? text.replace(/(?<!\\(?:x1b|033|e|u001b))(?:\ufffd|#x1B)?\[\d{1,3}(?:;\d{1,3}){0,15}m(?![\]:])/gi, "")
    : text;

const SEPARATOR = /[\s()[\]"'<>❯│]/;

/** The line of the file in a stack: the innermost frame, which Python writes last and others first. */
function lineOf(file: string, stack: string): number | null {
  const wanted = normalise(file);
  const base = wanted.slice(wanted.lastIndexOf("/") + 1);
  if (base === "") return null;
  let found: number | null = null;
  for (let at = stack.indexOf(base); at !== -1; at = stack.indexOf(base, at + base.length)) {
    const line = /^(?::(\d{1,7})\b|"?, line (\d{1,7})\b)/.exec(stack.slice(at + base.length, at + base.length + 20));
    if (!line) continue;
    let from = at;
    while (from > 0 && at - from < 1_000 && !SEPARATOR.test(stack[from - 1]!)) from--;
    const path = normalise(stack.slice(from, at + base.length));
    if (path !== wanted && !path.endsWith(`/${wanted}`) && !wanted.endsWith(`/${path}`)) continue;
    found = Number(line[1] ?? line[2]);
    if (!file.endsWith(".py")) return found;
  }
  return found;
}

const normalise = (path: string): string =>
  path
    .replaceAll("\\", "/")
    .replace(/^(?:file:\/\/\/?(?=[A-Z]:)|file:\/\/)/i, "")
    .replace(/^(?:\.\/)+/, "");
