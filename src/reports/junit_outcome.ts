/** Reads the elements inside a test case of JUnit XML: its outcome, its failures and its output. */

import { elementsOf } from "./fields.ts";
import type { FailureKind, ReportedCase } from "./report.ts";
import {
  type Cutter,
  firstLine,
  localName,
  MAX_ATTACHMENTS,
  MAX_NAME,
  MAX_PROPERTIES,
  textOf,
  type WrittenAttachment,
} from "./text.ts";

export type Node = Bun.XML.Node;

/** Failure elements of the first tools and of other writers of this format. */
export const FAILURES = new Set(["failure", "error", "fail", "failed", "exception", "broken", "aborted", "timeout"]);
const ERRORS = new Set(["error", "exception", "broken", "aborted"]);
export const RETRIES = new Set(["flakyFailure", "flakyError", "rerunFailure", "rerunError"]);
export const SKIPS = new Set(["skipped", "skip", "ignored", "ignore", "disabled", "notrun", "pending", "todo"]);
export const OUTPUTS = new Set(["system-out", "system-err"]);
export const PROPERTIES = new Set(["properties"]);
const PROPERTY = new Set(["property"]);
/** Elements that say nothing about the outcome of a test, or that it passed. */
const OTHERS = new Set([
  ...["testcase", "testsuite", "warning", "passed", "success", "properties", "property", "attachments", "attachment"],
  ...["categories", "category", "tags", "tag", "output", "stdout", "stderr", "log", "description", "steps", "step"],
  ...[
    "metadata",
    "parameters",
    "parameter",
    "requirements",
    "requirement",
    "measurement",
    "assertions",
    "links",
    "link",
  ],
]);

export const NONE: never[] = [];

type Outcome = Pick<ReportedCase, "status" | "kind">;
type Inside = Omit<ReportedCase, "suite" | "name" | "file" | "line" | "durationMs" | keyof Outcome> & {
  outcome: Outcome | null;
};

export const NOTHING: Inside = {
  outcome: null,
  flaky: false,
  attempts: 1,
  message: null,
  stack: null,
  output: null,
  properties: null,
};

export function readInside(node: Node, cutter: Cutter): Inside {
  const children = elementsOf(node);
  const failures = childrenNamed(children, FAILURES).filter((failure) => !isRisky(failure));
  const retries = childrenNamed(children, RETRIES);
  const skipped = childrenNamed(children, SKIPS);
  const properties = toProperties(children);
  const skip = /^\d+$/.test(node.attributes.id ?? "") ? properties.find(isSkip) : undefined;
  const marks = children.flatMap((child) => toMark(child, node));
  const outcome = skip && failures.length === 0 ? SKIP : toOutcome(node.attributes, failures, skipped[0] ?? null);
  const output = childrenNamed(children, OUTPUTS).map(textOf).join("\n");
  const isSkipped = outcome.status === "skipped";
  const elements = isSkipped ? skipped : failures.length > 0 ? failures : retries;
  const texts = elements.map(textInside).filter((text) => text !== "");
  const reason = skip && skip[1] !== "true" ? skip[1] : null;
  const attachments = cutter.attachments(markedAttachments(output));
  return {
    outcome,
    flaky: outcome.status === "passed" && retries.length > 0,
    attempts: 1 + retries.length,
    message: cutter.cutOrNull(
      "message",
      elements[0] ? failureMessage(elements[0], withoutName(texts[0] ?? "", node)) : reason,
    ),
    stack: isSkipped ? null : cutter.cutOrNull("stack", texts.join("\n\n")),
    output: cutter.cutOrNull("output", trimLines(withoutAttachmentLines(output))),
    properties: cutter.properties([...marks, ...properties.filter((one) => one !== skip), ...markedProperties(output)]),
    ...(attachments ? { attachments } : {}),
  };
}

/** node-tap marks skipped and todo tests, which it numbers, only in this way. */
const isSkip = ([name, value]: [string, string]) => (name === "skip" || name === "todo") && !/^(?:false)?$/.test(value);

/** Matches what PHPUnit up to 9 reports as an error although it exits with 0. */
function isRisky(failure: Node): boolean {
  return RISKY.test(failure.attributes.type ?? "");
}

const RISKY =
  /^PHPUnit[\\_](?:Framework[\\_])?(?:RiskyTest(?:Error)?|OutputError|(?:Unintentionally)?CoveredCode(?:Error|NotExecutedException)|MissingCoversAnnotationException)$/;

/** PHPUnit's warnings and risky tests are no failures; they become properties. */
function toMark(child: Node, test: Node): [string, string][] {
  const name = localName(child.name);
  if (name !== "warning" && !(FAILURES.has(name) && isRisky(child))) return [];
  return [[name === "warning" ? name : "risky", failureMessage(child, withoutName(textInside(child), test)) ?? ""]];
}

/** PHPUnit up to 9 has the name of the test, with its data, on the first line of a text. */
function withoutName(text: string, { attributes }: Node): string {
  const { name = "", classname = "" } = attributes;
  const owner = attributes.class ?? classname.replaceAll(".", "\\");
  const own = owner === "" ? name : `${owner}::${name}`;
  const end = text.indexOf("\n");
  const line = end === -1 ? "" : text.slice(0, end).trimEnd();
  return own !== "" && (line === own || line.startsWith(`${own} (`)) ? text.slice(end + 1) : text;
}

export function childrenNamed(children: Node[], names: Set<string>): Node[] {
  return children.filter(({ name }) => names.has(localName(name)));
}

/** Counts the failure elements and texts of a case, regardless of its outcome. Qt writes logged messages as comments and counts them. */
export function countFailureElements(node: Node): number {
  let count = 0;
  for (const child of node.children) {
    if (typeof child !== "object") continue;
    if (!("name" in child) || FAILURES.has(localName(child.name)) || RETRIES.has(localName(child.name))) count++;
  }
  return count;
}

function toProperties(children: Node[]): [string, string][] {
  return childrenNamed(childrenNamed(children, PROPERTIES).flatMap(elementsOf), PROPERTY).map((property) => {
    const { name = "", value = textOf(property) } = property.attributes;
    return [name, value];
  });
}

const FAILED =
  /^(?:fail(?:ed|ure|ing)?|error(?:ed)?|exception|broken|crash(?:ed)?|abort(?:ed)?|timeout|timed[-_ ]?out)$/i;
const SKIPPED =
  /^(?:disabled|skip(?:ped)?|not[-_ ]?run|not[-_ ]?executed|ignored?|suppressed|pending|todo|inactive|excluded)$/i;
const RAN = /^(?:pass(?:ed)?|ok|success(?:ful)?|succeeded|run|ran|executed|completed?|finished|done|true)?$/i;

const PASSED: Outcome = { status: "passed", kind: null };
const SKIP: Outcome = { status: "skipped", kind: null };

export function toOutcome(attributes: Node["attributes"], failures: Node[], skipped: Node | null): Outcome {
  const { status = "", result = "", ignored, disabled, incomplete, success, skipped: isSkipped } = attributes;
  const failed = (kind: FailureKind): Outcome => ({ status: "failed", kind });
  // node writes the failure of an expected failure beside its todo; in other formats a failure takes precedence.
  if (skipped?.attributes.type === "todo" && failures.length > 0) return SKIP;
  if (failures.some(isTimeout)) return failed("timeout");
  if (failures.some(({ name }) => !ERRORS.has(localName(name)))) return failed("failure");
  if (failures.length > 0) return failed("error");
  // Eclipse marks tests that it did not run, and those that had not ended when its run was stopped.
  if (ignored === "true" || disabled === "true" || isSkipped === "true") return SKIP;
  if (success === "false") return failed("failure");
  if (incomplete === "true") return failed("error");
  if (status === "" && result === "") return skipped ? SKIP : PASSED;
  const word = [status, result].find((one) => FAILED.test(one));
  if (word !== undefined)
    return failed(/^time/i.test(word) ? "timeout" : /^(?:fail|broken)/i.test(word) ? "failure" : "error");
  if (skipped || SKIPPED.test(status) || SKIPPED.test(result)) return SKIP;
  return PASSED;
}

/** Returns attributes and elements that may mean that the test did not pass, but that no known tool writes. */
export function oddWords({ attributes, children }: Node): string[] {
  const words: string[] = [];
  for (const key of ["status", "result"]) {
    const value = attributes[key];
    if (value && ![RAN, FAILED, SKIPPED].some((known) => known.test(value.trim()))) words.push(`${key} "${value}"`);
  }
  for (const child of children) {
    if (typeof child !== "object" || !("name" in child)) continue;
    const name = localName(child.name);
    if (![OTHERS, FAILURES, SKIPS, OUTPUTS, RETRIES].some((known) => known.has(name))) words.push(`element <${name}>`);
  }
  return words;
}

/** Whether a failure is a timeout, by its type (JUnit's TestTimedOutException), or by the message of node, Playwright, Vitest or Jest. */
function isTimeout({ name, attributes: { type = "", message = "" } }: Node): boolean {
  return (
    localName(name) === "timeout" ||
    /timeout|timedout/i.test(type) ||
    /\b(?:timeout of|timed out (?:in|after)) \d+ ?m?s\b/i.test(message.slice(0, 200))
  );
}

/** surefire puts the text of a rerun into a `<stackTrace>`. */
export function textInside(node: Node): string {
  const own = textOf(node);
  const trace = own.trim() ? null : elementsOf(node).find(({ name }) => localName(name) === "stackTrace");
  return trimLines(trace ? textOf(trace) : own);
}

/** Removes blank lines around the text; the first line keeps its indentation. */
function trimLines(text: string): string {
  return text.slice(text.lastIndexOf("\n", text.search(/\S/)) + 1).trimEnd();
}

export function failureMessage(element: Node, text: string | undefined): string | null {
  const { type } = element.attributes;
  // node writes "true" for a todo or skip that has no reason.
  const message =
    element.attributes.message === "true" && localName(element.name) === "skipped"
      ? ""
      : (element.attributes.message ?? "");
  return message.trim() || (text ? firstLine(text) : "") || type?.trim() || null;
}

/** `[[ATTACHMENT|path]]` and `[[PROPERTY|key=value]]`, as Playwright and GitLab write them into the output. */
function marksIn(output: string, kind: "ATTACHMENT" | "PROPERTY", max: number): string[] {
  const opening = `[[${kind}|`;
  const marks: string[] = [];
  for (let at = output.indexOf(opening); at !== -1 && marks.length < max; at = output.indexOf(opening, at + 1)) {
    // Not one pattern for both ends: it would walk on in search of the second one from every first one.
    const rest = output.slice(at + opening.length, at + 2 * MAX_NAME);
    const text = rest.slice(0, Math.max(0, rest.indexOf("]]")));
    if (text.trim() !== "" && !text.includes("\n")) marks.push(text.trim());
  }
  return marks;
}

const markedProperties = (output: string): [string, string][] =>
  marksIn(output, "PROPERTY", 2 * MAX_PROPERTIES).map((text) => {
    const [key = "", ...value] = text.split("=");
    return [key.trim(), value.join("=").trim()];
  });

/** Returns one more than is kept, so that there is a warning. */
export const markedAttachments = (output: string): WrittenAttachment[] =>
  marksIn(output, "ATTACHMENT", MAX_ATTACHMENTS + 1).map((path) => ({ path }));

/** Removes lines that only name attachments, because attachments are shown as files. */
const withoutAttachmentLines = (output: string): string =>
  output.includes("[[ATTACHMENT|")
    ? output
        .split("\n")
        .filter((line) => !(line.trimStart().startsWith("[[ATTACHMENT|") && line.trimEnd().endsWith("]]")))
        .join("\n")
    : output;
