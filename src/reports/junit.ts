/** JUnit XML: no standard, but dialects, of some forty producers. */

import { foreignElement, toFault, type XmlPart } from "./fields.ts";
import { isPlaywright, toolReaderOf } from "./js_tools.ts";
import { countCase, countComment, countStray, createTally, createTotals, type SuiteTotals } from "./totals.ts";
import {
  type CaseName,
  type FailureKind,
  type KnownNames,
  type Report,
  type ReportContext,
  type ReportedCase,
  ReportError,
} from "./report.ts";
import {
  createCutter,
  cut,
  type Cutter,
  firstLine,
  localName,
  MAX_ATTACHMENTS,
  MAX_CASES,
  MAX_NAME,
  MAX_PROPERTIES,
  msFromSeconds,
  textOf,
  toLine,
  tooManyCases,
  type WrittenAttachment,
} from "./text.ts";

type Node = Bun.XML.Node;

/** The children of an element, how far they are read, and what they inherit from the suites around them. */
type Place = {
  children: Node["children"];
  next: number;
  suites: string[];
  file: string | null;
  tally: SuiteTotals;
  /** Whether the tally is of this element, and not of one around it. */
  isOwn: boolean;
};

/** The parts are cleaned of what cannot be stored. Throws a ReportError when an unknown root holds no test case. */
export function readJunit(parts: Iterable<XmlPart>): Report {
  const cutter = createCutter();
  const namer = createNamer();
  const cases: ReportedCase[] = [];
  const push = (one: ReportedCase) => {
    if (cases.length === MAX_CASES) throw tooManyCases();
    cases.push(one);
  };
  const totals = createTotals();
  let first: Node | undefined;
  let readTool: ToolReader;
  const ofSuites: WrittenAttachment[] = [];
  let roots = 0;
  let foreign: string | undefined;
  const tops = createTops();
  // Suites nest as deep as the parser lets them: a recursive walk would be a way to crash us.
  const open: Place[] = [];
  // The last place of each depth: those that the next part is inside of are among them.
  const last: Place[] = [];
  const go = (place: Place) => {
    last[open.length] = place;
    open.push(place);
  };
  const finish = ({ tally, suites, file }: Place) => {
    const toPlace = () => ({ suite: namer.toSuite(suites, "", "", file), file });
    for (const fault of totals.finish(tally, toPlace)) push(toFault(cutter, fault));
  };
  for (const { root, depth, open: after } of parts) {
    if (depth === 0) roots++;
    if (!first) {
      first = { ...root, children: [] };
      readTool = toolReaderOf(root.attributes);
    }
    if (localName(root.name) === "testsuites") tops.add(named(elements(root).slice(depth > 1 ? 1 : 0), PLACES));
    else if (depth === 0) tops.add([root]);
    if (depth === 0) {
      go({ children: [root], next: 0, suites: [], file: null, tally: createTally({}, "", null), isOwn: false });
    } else for (const place of reenter(last.splice(0), root, depth)) go(place);
    const unfinished = lastOf(root, after);
    for (let place = open.at(-1); place; place = open.at(-1)) {
      const node = place.children[place.next++];
      if (node === undefined) {
        open.pop();
        if (place.isOwn && !unfinished.has(place.children)) finish(place);
      }
      if (typeof node !== "object") continue;
      if ("comment" in node) countComment(place.tally, node.comment);
      if (!("name" in node)) continue;
      const kind = localName(node.name);
      if (kind === "testcase") {
        const one = toCase(node, place, namer, cutter, readTool);
        push(one);
        countCase(place.tally, one.status, countFailures(node));
        const inner = node.children.length === 0 ? NONE : named(elements(node), CASES);
        if (inner.length > 0) go({ ...place, children: inner, next: 0, isOwn: false });
      } else if (FAILURES.has(kind)) countStray(place.tally, toMessage(node, textBelow(node)), textBelow(node));
      else if (OUTPUTS.has(kind)) {
        if (ofSuites.length < MAX_ATTACHMENTS) ofSuites.push(...markedAttachments(textOf(node)));
      } else if (LEAVES.has(kind)) continue;
      else {
        if (!isRoot(kind) && open.length === INSIDE_ROOT) foreign ??= node.name;
        const inside =
          kind === "testsuite" ? enter(node, place, cutter) : { ...place, children: node.children, next: 0 };
        const isOwn = isRoot(kind);
        if (isOwn) inside.tally = createTally(node.attributes, suiteName(node) ?? "", place.tally);
        inside.isOwn = isOwn;
        go(inside);
      }
    }
  }
  const root = roots === 1 ? first! : { ...first!, attributes: {} };
  if (cases.length === 0 && !isRoot(root.name)) {
    throw new ReportError(`its root element <${root.name.slice(0, 100)}> holds no test cases`);
  }
  if (cases.length === 0 && foreign !== undefined) throw foreignElement(root.name, foreign);

  const only = tops.only();
  const attachments = cutter.attachments(ofSuites);
  return {
    format: "junit",
    suite: cutter.cutOrNull("suite", suiteName(root) ?? (only && suiteName(only))),
    cases,
    countsOnly: null,
    partial: totals.lacksFailures(),
    durationMs: msFromSeconds(root.attributes.time) ?? msFromSeconds(only?.attributes.time),
    completedAt: toCompletion(root.attributes.timestamp ? endOf(root) : tops.end()),
    context: isPlaywright(first!.attributes) ? {} : toContext(tops.first()),
    ...(attachments ? { attachments } : {}),
    warnings: [...totals.warnings(), ...cutter.warnings()],
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

/** What is in an element of which the next part holds more. */
function lastOf(root: Node, depth: number): Set<Node["children"]> {
  const found = new Set<Node["children"]>();
  for (let node: Node | undefined = root; node && found.size < depth; node = elements(node).at(-1)) {
    found.add(node.children);
  }
  return found;
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
    first: () => first,
    only: () => (count === 1 ? first! : null),
    /** When the last of them ended; NaN when one does not say it. */
    end: () => end,
  };
}

/** The machine that wrote the report, where its first test suite says so. */
function toContext(suite: Node | undefined): ReportContext {
  const host = suite?.attributes.hostname?.trim() ?? "";
  return host === "" || /^localhost(?:\.|$)/i.test(host) ? {} : { host };
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

/** How many places are open while the children of a root are read. */
const INSIDE_ROOT = 2;

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

function enter(node: Node, { suites, file, tally, isOwn }: Place, cutter: Cutter): Place {
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
    tally,
    isOwn,
    suites: suite === null ? suites : [...suites, suite],
    file: own ? cutter.cut("file", own) : (file ?? (suite !== null && isFile(suite) ? suite : null)),
  };
}

type ToolReader = ReturnType<typeof toolReaderOf>;

function toCase(node: Node, place: Place, namer: Namer, cutter: Cutter, readTool: ToolReader): ReportedCase {
  const { suites, file: outerFile, tally } = place;
  const { attributes } = node;
  const name = cutter.cut("name", attributes.name?.trim() || "(no name)");
  const given = cut(attributes.classname?.trim() ?? "", MAX_NAME);
  const position = POSITION.exec(given);
  // CasperJS repeats where the script lies, which its suite calls the package.
  const classname = position || (given.includes("/") && given === tally.attributes.package) ? "" : given;
  const told = attributes.file || attributes.filepath || position?.[1] || outerFile;
  const file = told ? told.replace(/^file:\/\//, "") : namer.toFile(suites, classname);
  // Most cases pass and have nothing inside.
  const inside = node.children.length === 0 ? NOTHING : readInside(node, cutter);
  const { status, kind } = inside.outcome ?? toOutcome(attributes, NONE, null);
  const isUnended = attributes.incomplete === "true" && status === "failed";
  const suite = namer.toSuite(suites, classname, name, file);
  const one: ReportedCase = {
    suite: cutter.cut("suite", suite),
    name,
    file: cutter.cutOrNull("file", file),
    line: toLine(attributes.line ?? attributes.lineno ?? position?.[2]),
    status,
    kind,
    flaky: inside.flaky,
    attempts: inside.attempts,
    durationMs: msFromSeconds(attributes.time),
    message: inside.message ?? (isUnended ? "The test did not end" : null),
    stack: inside.stack,
    output: inside.output,
    properties: inside.properties,
    ...(inside.attachments ? { attachments: inside.attachments } : {}),
  };
  return readTool === undefined ? one : { ...one, ...toNames({ suite, name, file }, node, tally, readTool, cutter) };
}

/** As long as several titles together. */
const MAX_TITLES = 4 * MAX_NAME;

function toNames(
  read: CaseName,
  { attributes }: Node,
  { attributes: { hostname = "" } }: SuiteTotals,
  readTool: NonNullable<ToolReader>,
  cutter: Cutter,
): CaseName & KnownNames {
  const cutName = ({ suite, name, file }: CaseName): CaseName => ({
    suite: cutter.cut("suite", suite),
    name: cutter.cut("name", name),
    file: cutter.cutOrNull("file", file),
  });
  const plain = cutName(read);
  const titles = cut(attributes.name?.trim() ?? "", MAX_TITLES);
  const classname = cut(attributes.classname?.trim() ?? "", MAX_TITLES);
  const own = titles === "" ? undefined : readTool({ ...read, name: titles, classname, hostname });
  if (own === undefined) return plain;
  const { suite, name, file } = cutName(own);
  const isSame = suite === plain.suite && name === plain.name && file === plain.file;
  return {
    suite,
    name: name || "(no name)",
    file,
    ...(isSame ? {} : { formerName: plain }),
    ...(own.otherNames ? { otherNames: own.otherNames.map(cutName) } : {}),
    ...(own.keepOtherNames ? { keepOtherNames: true } : {}),
  };
}

/** Busted's class name: a line there would make a test another with each edit above it. */
const POSITION = /^(\S{1,500}\.(?:lua|moon|fnl)):(\d{1,9})$/;

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
  const failures = named(children, FAILURES).filter((failure) => !isRisky(failure));
  const retries = named(children, RETRIES);
  const skipped = named(children, SKIPS);
  const told = toProperties(children);
  const skip = /^\d+$/.test(node.attributes.id ?? "") ? told.find(isSkip) : undefined;
  const marks = children.flatMap((child) => toMark(child, node));
  const outcome = skip && failures.length === 0 ? SKIP : toOutcome(node.attributes, failures, skipped[0] ?? null);
  const output = named(children, OUTPUTS).map(textOf).join("\n");
  const isSkipped = outcome.status === "skipped";
  const tellers = isSkipped ? skipped : failures.length > 0 ? failures : retries;
  const texts = tellers.map(textBelow).filter((text) => text !== "");
  const reason = skip && skip[1] !== "true" ? skip[1] : null;
  const attachments = cutter.attachments(markedAttachments(output));
  return {
    outcome,
    flaky: outcome.status === "passed" && retries.length > 0,
    attempts: 1 + retries.length,
    message: cutter.cutOrNull(
      "message",
      tellers[0] ? toMessage(tellers[0], withoutName(texts[0] ?? "", node)) : reason,
    ),
    stack: isSkipped ? null : cutter.cutOrNull("stack", texts.join("\n\n")),
    output: cutter.cutOrNull("output", trimLines(withoutAttachmentLines(output))),
    properties: cutter.properties([...marks, ...told.filter((one) => one !== skip), ...markedProperties(output)]),
    ...(attachments ? { attachments } : {}),
  };
}

/** node-tap tells only so, of tests that it numbers, that one was skipped or is to be done. */
const isSkip = ([name, value]: [string, string]) => (name === "skip" || name === "todo") && !/^(?:false)?$/.test(value);

/** What PHPUnit up to 9 writes as an error, and what it ends with 0 in spite of. */
function isRisky(failure: Node): boolean {
  return RISKY.test(failure.attributes.type ?? "");
}
const RISKY =
  /^PHPUnit[\\_](?:Framework[\\_])?(?:RiskyTest(?:Error)?|OutputError|(?:Unintentionally)?CoveredCode(?:Error|NotExecutedException)|MissingCoversAnnotationException)$/;

/** PHPUnit's warnings, and that a test is risky, are no failures, and are told as properties. */
function toMark(child: Node, test: Node): [string, string][] {
  const name = localName(child.name);
  if (name !== "warning" && !(FAILURES.has(name) && isRisky(child))) return [];
  return [[name === "warning" ? name : "risky", toMessage(child, withoutName(textBelow(child), test)) ?? ""]];
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

function named(children: Node[], names: Set<string>): Node[] {
  return children.filter(({ name }) => names.has(localName(name)));
}

/** How many failures a case tells of, whatever they made of it; Qt counts what is logged, and tells of it in comments. */
function countFailures(node: Node): number {
  let count = 0;
  for (const child of node.children) {
    if (typeof child !== "object") continue;
    if (!("name" in child) || FAILURES.has(localName(child.name)) || RETRIES.has(localName(child.name))) count++;
  }
  return count;
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
  const { status = "", result = "", ignored, incomplete } = attributes;
  const failed = (kind: FailureKind): Outcome => ({ status: "failed", kind });
  // node writes the failure of a test that is known to fail beside its todo; everywhere else a failure wins.
  if (skipped?.attributes.type === "todo" && failures.length > 0) return SKIP;
  if (failures.some(isTimeout)) return failed("timeout");
  if (failures.some(({ name }) => localName(name) === "failure")) return failed("failure");
  if (failures.length > 0) return failed("error");
  // Eclipse marks tests that it did not run, and those that had not ended when its run was stopped.
  if (ignored === "true") return SKIP;
  if (incomplete === "true") return failed("error");
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

/** One more than is kept, so that there is a warning. */
const markedAttachments = (output: string): WrittenAttachment[] =>
  marksIn(output, "ATTACHMENT", MAX_ATTACHMENTS + 1).map((path) => ({ path }));

/** Without the lines that only name attachments, which are shown as files. */
const withoutAttachmentLines = (output: string): string =>
  output.includes("[[ATTACHMENT|")
    ? output
        .split("\n")
        .filter((line) => !(line.trimStart().startsWith("[[ATTACHMENT|") && line.trimEnd().endsWith("]]")))
        .join("\n")
    : output;

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
const TOOL = /^(?:pytest|mocha tests|cucumber-js|jest tests|vitest tests|bun test|alltests|run \d+ of \d+)$/i;
const DOTTED = /^[\p{L}_$][\w$]*(?:\.[\p{L}_$][\w$]*)+$/u;

/** Classes of which is remembered what they say. */
const MAX_SAID = 1_000;

/**
 * What names a test beside its own name and file, told once. The suites from the outside in, without those that only
 * repeat the file or the tool; then the classname, unless it repeats the suites, the file or the test (node's "test",
 * jest-junit's full title, bun's suites from the inside out). A dotted class of Java or Python is complete by itself,
 * so the suites around it, which change with how the run was cut, are left out.
 */
function createNamer() {
  // Neighbours mostly share their suites, and a class its file.
  let around = NONE as string[];
  const said = new Map<string, { file: string | null; alone: string; together: string }>();
  let guess = { suites: NONE as string[], classname: "", file: null as string | null };
  return {
    toSuite(suites: string[], classname: string, name: string, file: string | null): string {
      if (suites !== around || said.size > MAX_SAID) {
        around = suites;
        said.clear();
      }
      let known = said.get(classname);
      if (known?.file !== file) {
        const path = suites.filter((suite) => !isNameOf(suite, file) && !TOOL.test(suite));
        // bun's root suite is the file, and its classname the path from the inside out.
        const isBun = path.length > 0 && suites[0] === file;
        const says = !isBun && classname !== "" && classname !== "test" && !isNameOf(classname, file);
        const alone = path.join(" > ");
        known = { file, alone, together: says ? joinClass(path, classname) : alone };
        said.set(classname, known);
      }
      return name === classname || name.endsWith(` ${classname}`) ? known.alone : known.together;
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
