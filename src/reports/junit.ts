/** JUnit XML: no standard, but dialects, of some forty producers. */

import type { XmlPart } from "./fields.ts";
import { type ReportedCase, type FailureKind, type Report, ReportError } from "./report.ts";
import {
  createCutter,
  cut,
  type Cutter,
  disagreement,
  firstLine,
  localName,
  MAX_CASES,
  MAX_NAME,
  MAX_PROPERTIES,
  msFromSeconds,
  plural,
  textOf,
  toLine,
  tooManyCases,
} from "./text.ts";

type Node = Bun.XML.Node;

/** The children of a suite, how far they are read, and what they inherit from the suites around them. */
type Place = { children: Node["children"]; next: number; suites: string[]; file: string | null };

/** The parts are cleaned of what cannot be stored. Throws a ReportError when an unknown root holds no test case. */
export function readJunit(parts: Iterable<XmlPart>): Report {
  const cutter = createCutter();
  const namer = createNamer();
  const cases: ReportedCase[] = [];
  const strays: { count: number; first: string } = { count: 0, first: "" };
  let first: Node | undefined;
  const tops = createTops();
  // Suites nest as deep as the parser lets them: a recursive walk would be a way to crash us.
  const open: Place[] = [];
  // The last place of each depth: those that the next part is inside of are among them.
  const last: Place[] = [];
  const go = (place: Place) => {
    last[open.length] = place;
    open.push(place);
  };
  for (const { root, depth } of parts) {
    first ??= { ...root, children: [] };
    if (localName(root.name) === "testsuites") tops.add(named(elements(root), PLACES).slice(depth > 1 ? 1 : 0));
    else if (depth === 0) tops.add([root]);
    if (depth === 0) go({ children: [root], next: 0, suites: [], file: null });
    else for (const place of reenter(last.splice(0), root, depth)) go(place);
    for (let place = open.at(-1); place; place = open.at(-1)) {
      const node = place.children[place.next++];
      if (node === undefined) open.pop();
      if (typeof node !== "object" || !("name" in node)) continue;
      const kind = localName(node.name);
      if (kind === "testcase") {
        if (cases.length === MAX_CASES) throw tooManyCases();
        cases.push(toCase(node, place, namer, cutter));
        const inner = node.children.length === 0 ? NONE : named(elements(node), CASES);
        if (inner.length > 0) go({ ...place, children: inner, next: 0 });
      } else if (FAILURES.has(kind)) {
        strays.first ||= cut(firstLine(node.attributes.message || textOf(node)), 200);
        strays.count++;
      } else if (kind === "testsuite") go(enter(node, place, cutter));
      else if (!LEAVES.has(kind)) go({ ...place, children: node.children, next: 0 });
    }
  }
  const root = first!;
  if (cases.length === 0 && !isRoot(root.name)) {
    throw new ReportError(`its root element <${root.name.slice(0, 100)}> holds no test cases`);
  }

  const only = tops.only();
  return {
    format: "junit",
    suite: cutter.cutOrNull("suite", suiteName(root) ?? (only && suiteName(only))),
    cases,
    countsOnly: null,
    partial: false,
    durationMs: msFromSeconds(root.attributes.time) ?? msFromSeconds(only?.attributes.time),
    completedAt: toCompletion(root.attributes.timestamp ? endOf(root) : tops.end()),
    context: {},
    warnings: [...declaredTotals(root, cases), ...strayFailures(strays), ...cutter.warnings()],
  };
}

/** Whether an element holds what is read by itself, so that it may lie in several parts. */
export const isPlace = (name: string): boolean => name !== "testcase" && !FAILURES.has(name) && !LEAVES.has(name);

/** The places around a part, which have been entered before, with what it holds for each of them. */
function reenter(places: Place[], root: Node, depth: number): Place[] {
  let children: Node["children"] = [root];
  return places.slice(0, depth + 1).map((place, level) => {
    const entered = { ...place, children, next: level < depth ? 1 : 0 };
    const [inner] = children;
    if (level < depth) children = (inner as Node).children;
    return entered;
  });
}

/** The suites directly below the root, of which there may be too many to keep. */
function createTops() {
  let count = 0;
  let first: Node | undefined;
  let end = 0;
  return {
    add(suites: Node[]): void {
      first ??= suites[0] && { ...suites[0], children: [] };
      count += suites.length;
      for (const suite of suites) end = Math.max(end, endOf(suite));
    },
    only: () => (count === 1 ? first! : null),
    /** When the last of them ended; NaN when one does not say it. */
    end: () => end,
  };
}

export function isRoot(name: string): boolean {
  // Eclipse wraps its export in <testrun>.
  return ["testsuites", "testsuite", "testrun"].includes(localName(name));
}

const FAILURES = new Set(["failure", "error"]);
const RETRIES = new Set(["flakyFailure", "flakyError", "rerunFailure", "rerunError"]);
const SKIPS = new Set(["skipped"]);
const OUTPUTS = new Set(["system-out", "system-err"]);
const PROPERTIES = new Set(["properties"]);
const CASES = new Set(["testcase"]);
const PLACES = new Set(["testsuite", "testcase"]);
const PROPERTY = new Set(["property"]);
const LEAVES = new Set([...SKIPS, ...OUTPUTS, ...PROPERTIES, ...RETRIES]);

const NONE: never[] = [];

function elements(node: Node): Node[] {
  return node.children.filter((child) => typeof child === "object" && "name" in child);
}

/** Without the second in which unittest ran it; a name that is a file of the test tool's settings is none. */
function suiteName({ attributes: { name = "" } }: Node): string | null {
  const plain = name.trim().replace(/-\d{14}$/, "");
  return plain === "(empty)" || SETTINGS.test(plain) ? null : plain || null;
}
const SETTINGS = /^(?:\/|[a-z]:\\)[^\n]*\.(?:xml|dist|dll|exe|jar|csproj)$/i;

function enter(node: Node, { suites, file }: Place, cutter: Cutter): Place {
  const { file: path, filepath } = node.attributes;
  const name = suiteName(node);
  // What is kept of a path is bounded as a whole: 10,000 nested suites must not become 10,000 long texts.
  const room = MAX_NAME - suites.join(" > ").length;
  const suite = name && room > 3 ? cutter.cut("suite", name, room - 3) : null;
  // unittest writes file=".py" on its suites.
  const own = [path, filepath].find((candidate) => candidate && !/^\.\w+$/.test(candidate));
  return {
    children: node.children,
    next: 0,
    suites: suite === null ? suites : [...suites, suite],
    file: own ? cutter.cut("file", own) : (file ?? (suite !== null && isFile(suite) ? suite : null)),
  };
}

function toCase(node: Node, { suites, file: outerFile }: Place, namer: Namer, cutter: Cutter): ReportedCase {
  const { attributes } = node;
  const name = cutter.cut("name", attributes.name?.trim() || "(no name)");
  const classname = cut(attributes.classname?.trim() ?? "", MAX_NAME);
  const told = attributes.file || attributes.filepath || outerFile;
  const file = told ? told.replace(/^file:\/\//, "") : namer.toFile(suites, classname);
  // Most cases pass and have nothing inside.
  const inside = node.children.length === 0 ? NOTHING : readInside(node, cutter);
  const { status, kind } = inside.outcome ?? toOutcome(attributes, NONE, null);
  return {
    suite: cutter.cut("suite", namer.toSuite(suites, classname, name, file)),
    name,
    file: cutter.cutOrNull("file", file),
    line: toLine(attributes.line ?? attributes.lineno),
    status,
    kind,
    flaky: inside.flaky,
    attempts: inside.attempts,
    durationMs: msFromSeconds(attributes.time),
    message: inside.message,
    stack: inside.stack,
    output: inside.output,
    properties: inside.properties,
  };
}

type Outcome = Pick<ReportedCase, "status" | "kind">;
type Inside = Omit<ReportedCase, "suite" | "name" | "file" | "line" | "durationMs" | keyof Outcome> & {
  outcome: Outcome | null;
};

const NOTHING: Inside = {
  outcome: null,
  flaky: false,
  attempts: 1,
  message: null,
  stack: null,
  output: null,
  properties: null,
};

function readInside(node: Node, cutter: Cutter): Inside {
  const children = elements(node);
  const failures = named(children, FAILURES);
  const retries = named(children, RETRIES);
  const skipped = named(children, SKIPS);
  const outcome = toOutcome(node.attributes, failures, skipped[0] ?? null);
  const output = named(children, OUTPUTS).map(textOf).join("\n");
  const isSkipped = outcome.status === "skipped";
  const tellers = isSkipped ? skipped : failures.length > 0 ? failures : retries;
  const texts = tellers.map(textBelow).filter((text) => text !== "");
  return {
    outcome,
    flaky: outcome.status === "passed" && retries.length > 0,
    attempts: 1 + retries.length,
    message: tellers.length === 0 ? null : cutter.cutOrNull("message", toMessage(tellers[0]!, texts[0])),
    stack: isSkipped ? null : cutter.cutOrNull("stack", texts.join("\n\n")),
    output: cutter.cutOrNull("output", trimLines(output)),
    properties: cutter.properties([...toProperties(children), ...markedProperties(output)]),
  };
}

function named(children: Node[], names: Set<string>): Node[] {
  return children.filter(({ name }) => names.has(localName(name)));
}

function toProperties(children: Node[]): [string, string][] {
  return named(named(children, PROPERTIES).flatMap(elements), PROPERTY).map((property) => {
    const { name = "", value = textOf(property) } = property.attributes;
    return [name, value];
  });
}

const FAILED = /^(?:fail(?:ed|ure)?|error(?:ed)?)$/i;
const SKIPPED = /^(?:disabled|skip(?:ped)?|notrun|ignored|suppressed|pending|todo)$/i;

const PASSED: Outcome = { status: "passed", kind: null };
const SKIP: Outcome = { status: "skipped", kind: null };

function toOutcome(attributes: Node["attributes"], failures: Node[], skipped: Node | null): Outcome {
  const { status = "", result = "" } = attributes;
  const failed = (kind: FailureKind): Outcome => ({ status: "failed", kind });
  // node writes the failure of a test that is known to fail beside its todo; everywhere else a failure wins.
  if (skipped?.attributes.type === "todo" && failures.length > 0) return SKIP;
  if (failures.some(isTimeout)) return failed("timeout");
  if (failures.some(({ name }) => localName(name) === "failure")) return failed("failure");
  if (failures.length > 0) return failed("error");
  if (status === "" && result === "") return skipped ? SKIP : PASSED;
  if (FAILED.test(status)) return failed(/^error/i.test(status) ? "error" : "failure");
  if (skipped || SKIPPED.test(status) || SKIPPED.test(result)) return SKIP;
  return PASSED;
}

/** By its type (JUnit's TestTimedOutException), or by the words of node, Playwright, Vitest and Jest. */
function isTimeout({ attributes: { type = "", message = "" } }: Node): boolean {
  return (
    /timeout|timedout/i.test(type) || /\b(?:timeout of|timed out (?:in|after)) \d+ ?m?s\b/i.test(message.slice(0, 200))
  );
}

/** surefire puts the text of a rerun into a `<stackTrace>`. */
function textBelow(node: Node): string {
  const own = textOf(node);
  const trace = own.trim() ? null : elements(node).find(({ name }) => localName(name) === "stackTrace");
  return trimLines(trace ? textOf(trace) : own);
}

/** Without blank lines around it; the first line keeps its indentation. */
function trimLines(text: string): string {
  return text.slice(text.lastIndexOf("\n", text.search(/\S/)) + 1).trimEnd();
}

function toMessage(teller: Node, text: string | undefined): string | null {
  const { type } = teller.attributes;
  // node writes "true" for a todo or skip that has no reason.
  const message =
    teller.attributes.message === "true" && localName(teller.name) === "skipped"
      ? ""
      : (teller.attributes.message ?? "");
  return message.trim() || (text ? firstLine(text) : "") || type?.trim() || null;
}

/** `[[ATTACHMENT|path]]` and `[[PROPERTY|key=value]]`, as Playwright and GitLab write them into the output. */
function markedProperties(output: string): [string, string][] {
  if (!output.includes("[[")) return [];
  const pairs: [string, string][] = [];
  for (const { 0: opening, 1: kind, index } of output.matchAll(/\[\[(ATTACHMENT|PROPERTY)\|/g)) {
    // Not one pattern for both ends: it would walk on in search of the second one from every first one.
    const rest = output.slice(index + opening.length, index + 2 * MAX_NAME);
    const text = rest.slice(0, Math.max(0, rest.indexOf("]]")));
    if (text === "" || text.includes("\n")) continue;
    const [key = "", ...value] = text.split("=");
    pairs.push(kind === "PROPERTY" ? [key.trim(), value.join("=").trim()] : ["attachment", text.trim()]);
    if (pairs.length === 2 * MAX_PROPERTIES) break;
  }
  return pairs;
}

const SOURCE = /\.(?:[cm]?[jt]sx?|py|rb|php|bats|go|rs|dart|lua|pl|t|sh|exs?|feature|vue|svelte)$/i;

function isFile(name: string): boolean {
  // A sentence may end in a file name; a path with a space in it has a slash too.
  return name.length <= 500 && SOURCE.test(name) && (/[\\/]/.test(name) || !/\s/.test(name));
}

/** pytest tells the module and the classes in one dotted name; only names of pytest's own test files are believed. */
function pytestFile(suites: string[], classname: string): string | null {
  if (!suites.includes("pytest")) return null;
  const parts = classname.split(".");
  while (/^[A-Z]/.test(parts.at(-1) ?? "")) parts.pop();
  return /^(?:test_\w*|\w+_test|tests?)$/.test(parts.at(-1) ?? "") ? `${parts.join("/")}.py` : null;
}

// What a tool calls its whole report says nothing about a test.
const TOOL = /^(?:pytest|mocha tests|cucumber-js|jest tests|vitest tests|bun test|alltests)$/i;
const DOTTED = /^[\p{L}_$][\w$]*(?:\.[\p{L}_$][\w$]*)+$/u;

/**
 * What names a test beside its own name and file, told once. The suites from the outside in, without those that only
 * repeat the file or the tool; then the classname, unless it repeats the suites, the file or the test (node's "test",
 * jest-junit's full title, bun's suites from the inside out). A dotted class of Java or Python is complete by itself,
 * so the suites around it, which change with how the run was cut, are left out.
 */
function createNamer() {
  // Neighbours mostly share their suites, class and file.
  let last = { suites: NONE as string[], classname: "", file: null as string | null, alone: "", together: "" };
  let guess = { suites: NONE as string[], classname: "", file: null as string | null };
  return {
    toSuite(suites: string[], classname: string, name: string, file: string | null): string {
      if (suites !== last.suites || classname !== last.classname || file !== last.file) {
        const path = suites.filter((suite) => !isNameOf(suite, file) && !TOOL.test(suite));
        // bun's root suite is the file, and its classname the path from the inside out.
        const isBun = path.length > 0 && suites[0] === file;
        const says = !isBun && classname !== "" && classname !== "test" && !isNameOf(classname, file);
        const alone = path.join(" > ");
        last = { suites, classname, file, alone, together: says ? joinClass(path, classname) : alone };
      }
      return name === classname || name.endsWith(` ${classname}`) ? last.alone : last.together;
    },
    /** For a case that tells no file. */
    toFile(suites: string[], classname: string): string | null {
      if (suites !== guess.suites || classname !== guess.classname) {
        guess = { suites, classname, file: isFile(classname) ? classname : pytestFile(suites, classname) };
      }
      return guess.file;
    },
  };
}

type Namer = ReturnType<typeof createNamer>;

function joinClass(path: string[], classname: string): string {
  if (DOTTED.test(classname)) return classname;
  const inner = path.at(-1) ?? "";
  const before = inner.charAt(inner.length - classname.length - 1);
  if (path.includes(classname) || (inner.endsWith(classname) && /[\s.]/.test(before))) return path.join(" > ");
  const continues = inner !== "" && classname.startsWith(inner) && !/^\w/.test(classname.slice(inner.length));
  return [...(continues ? path.slice(0, -1) : path), classname].join(" > ");
}

function isNameOf(text: string, file: string | null): boolean {
  if (file === null) return false;
  return text === file || endsPath(file, text) || (/^(?:\/|[A-Z]:)/.test(text) && endsPath(text, file));
}

function endsPath(path: string, end: string): boolean {
  return path.endsWith(end) && path[path.length - end.length - 1] === "/";
}

// A time without an offset is in the time zone of a machine that the report does not name.
const INSTANT =
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)$|^\w{3}, \d\d \w{3} \d{4} [\d:]+ GMT$/;

/** Unix milliseconds; NaN when it does not say when it began. */
const endOf = ({ attributes: { timestamp = "", time } }: Node): number =>
  INSTANT.test(timestamp.trim()) ? Date.parse(timestamp.trim()) + (msFromSeconds(time) ?? 0) : Number.NaN;

// googletest writes 1970 for a test that did not run.
const toCompletion = (end: number): Date | null => (end >= Date.UTC(2000) ? new Date(end) : null);

function declaredTotals({ attributes }: Node, cases: ReportedCase[]): string[] {
  const number = (key: string) => (/^\d{1,9}$/.test(attributes[key] ?? "") ? Number(attributes[key]) : null);
  const [tests, failures, errors, disabled] = [
    number("tests"),
    number("failures"),
    number("errors"),
    number("disabled"),
  ];
  const failed = failures === null && errors === null ? null : (failures ?? 0) + (errors ?? 0);
  const skipped = number("skipped") ?? number("skips") ?? number("ignored");
  // Some producers count what is disabled among the skipped, some beside them.
  const all = (skipped ?? 0) + (disabled ?? 0);
  const isBeside = all === cases.reduce((sum, { status }) => sum + (status === "skipped" ? 1 : 0), 0);
  return disagreement({ tests, failed, skipped: skipped !== null && isBeside ? all : skipped }, cases);
}

function strayFailures({ count, first }: { count: number; first: string }): string[] {
  return count === 0
    ? []
    : [`${plural(count, "failure")} outside of any test case, not counted, the first: "${first}"`];
}
