/** JUnit XML: no standard, but dialects, of some forty producers. */

import { elementsOf, foreignElement, toFault, type XmlPart } from "./fields.ts";
import { FAILED_TO_LOAD, isPlaywright, toolReaderOf } from "./js_tools.ts";
import {
  countCase,
  countComment,
  countOutsideFailure,
  createTally,
  createTotals,
  noteUnit,
  type SuiteTotals,
  takeUnitTime,
} from "./totals.ts";
import {
  type CaseName,
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
  localName,
  MAX_ATTACHMENTS,
  MAX_CASES,
  MAX_NAME,
  msFromSeconds,
  textOf,
  toLine,
  tooManyCases,
  type WrittenAttachment,
} from "./text.ts";
import {
  type Node,
  FAILURES,
  OUTPUTS,
  NONE,
  NOTHING,
  readInside,
  childrenNamed,
  countFailureElements,
  toOutcome,
  oddWords,
  textInside,
  failureMessage,
  SKIPS,
  PROPERTIES,
  RETRIES,
  markedAttachments,
} from "./junit_outcome.ts";
import { createUnknownResults } from "./unknown_results.ts";
import { isFile, createNamer, type Namer } from "./junit_names.ts";

/** The children of an element, the position in them, and the fields inherited from the suites around them. */
type Frame = {
  children: Node["children"];
  next: number;
  suites: string[];
  file: string | null;
  tally: SuiteTotals;
  /** Whether the tally is of this element, and not of one around it. */
  isOwn: boolean;
};

/** Texts of the parts are storable. Throws a ReportError if an unknown root contains no test case. */
export function readJunit(parts: Iterable<XmlPart>): Report {
  const cutter = createCutter();
  const namer = createNamer();
  const cases: ReportedCase[] = [];
  const push = (one: ReportedCase) => {
    if (cases.length === MAX_CASES) throw tooManyCases();
    cases.push(one);
  };
  const totals = createTotals();
  const unknown = createUnknownResults();
  let first: Node | undefined;
  let readTool: ToolReader;
  const ofSuites: WrittenAttachment[] = [];
  let roots = 0;
  let foreign: string | undefined;
  const tops = createTops();
  const open: Frame[] = [];
  // The last frame of each depth: those that the next part is inside of are among them.
  const last: Frame[] = [];
  const go = (frame: Frame) => {
    last[open.length] = frame;
    open.push(frame);
  };
  const finish = ({ tally, suites, file }: Frame) => {
    takeUnitTime(tally, msFromSeconds(tally.attributes.time));
    const toLocation = () => ({ suite: namer.toSuite(suites, "", "", file), file });
    for (const fault of totals.finish(tally, toLocation)) push(toFault(cutter, fault));
  };
  for (const { root, depth, open: after } of parts) {
    if (depth === 0) roots++;
    if (!first) {
      first = { ...root, children: [] };
      readTool = toolReaderOf(root.attributes);
    }
    if (localName(root.name) === "testsuites")
      tops.add(childrenNamed(elementsOf(root).slice(depth > 1 ? 1 : 0), SUITES_AND_CASES));
    else if (depth === 0) tops.add([root]);
    if (depth === 0) {
      go({ children: [root], next: 0, suites: [], file: null, tally: createTally({}, "", null), isOwn: false });
    } else for (const frame of reenter(last.splice(0), root, depth)) go(frame);
    const unfinished = lastOf(root, after);
    for (let frame = open.at(-1); frame; frame = open.at(-1)) {
      const node = frame.children[frame.next++];
      if (node === undefined) {
        open.pop();
        if (frame.isOwn && !unfinished.has(frame.children)) finish(frame);
      }
      if (typeof node !== "object") continue;
      if ("comment" in node) countComment(frame.tally, node.comment);
      if (!("name" in node)) continue;
      const kind = localName(node.name);
      if (kind === "testcase") {
        const one = toCase(node, frame, namer, cutter, readTool);
        push(one);
        noteUnit(frame.tally, one);
        const odd = one.status === "passed" ? oddWords(node) : NONE;
        for (const word of odd) unknown.count(word);
        if (odd.length > 0) frame.tally.odd.push(one);
        countCase(frame.tally, one.status, countFailureElements(node));
        const inner = node.children.length === 0 ? NONE : childrenNamed(elementsOf(node), CASES);
        if (inner.length > 0) go({ ...frame, children: inner, next: 0, isOwn: false });
      } else if (FAILURES.has(kind))
        countOutsideFailure(frame.tally, failureMessage(node, textInside(node)), textInside(node));
      else if (OUTPUTS.has(kind)) {
        if (ofSuites.length < MAX_ATTACHMENTS) ofSuites.push(...markedAttachments(textOf(node)));
      } else if (LEAVES.has(kind)) continue;
      else {
        if (!isRoot(kind) && open.length === DEPTH_INSIDE_ROOT) foreign ??= node.name;
        const inside =
          kind === "testsuite" ? enter(node, frame, cutter) : { ...frame, children: node.children, next: 0 };
        const isOwn = isRoot(kind);
        if (isOwn) inside.tally = createTally(node.attributes, suiteName(node) ?? "", frame.tally);
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
    ...toSpan(root, tops),
    warnings: [...totals.warnings(), ...unknown.openWarnings(), ...cutter.warnings()],
  };
}

/** Whether the children of an element are read one by one, so that it may be split over several parts. */
export const isContainer = (name: string): boolean => name !== "testcase" && !FAILURES.has(name) && !LEAVES.has(name);

/** Enters the elements around a part again, with the children that the part has for each of them. */
function reenter(frames: Frame[], root: Node, depth: number): Frame[] {
  let children: Node["children"] = [root];
  return frames.slice(0, depth + 1).map((frame, level) => {
    const entered = { ...frame, children, next: level < depth ? 1 : 0 };
    const [inner] = children;
    if (level < depth) children = (inner as Node).children;
    return entered;
  });
}

/** Returns the child lists of the elements that the next part continues. */
function lastOf(root: Node, depth: number): Set<Node["children"]> {
  const found = new Set<Node["children"]>();
  for (let node: Node | undefined = root; node && found.size < depth; node = elementsOf(node).at(-1)) {
    found.add(node.children);
  }
  return found;
}

/** The suites directly below the root, of which there may be too many to keep. */
function createTops() {
  let count = 0;
  let first: Node | undefined;
  let end = 0;
  let from: number | null = null;
  let to: number | null = null;
  return {
    add(suites: Node[]): void {
      first ??= suites[0] && { ...suites[0], children: [] };
      count += suites.length;
      for (const suite of suites) {
        end = Math.max(end, endOf(suite));
        const began = localTime(suite.attributes.timestamp);
        if (began === null) continue;
        from = Math.min(from ?? began, began);
        to = Math.max(to ?? 0, began + (msFromSeconds(suite.attributes.time) ?? 0));
      }
    },
    first: () => first,
    only: () => (count === 1 ? first! : null),
    /** Returns when the last suite ended; NaN if one has no time. */
    end: () => end,
    /** Returns when the first suite began and the last one ended, if known. */
    span: () => ({ from, to }),
  };
}

/** Returns times in the unknown zone of the machine, to be compared only with reports of the same machine. */
function toSpan(root: Node, tops: ReturnType<typeof createTops>): Pick<Report, "span"> {
  const { from, to } = tops.span();
  const began = localTime(root.attributes.timestamp) ?? from;
  if (began === null) return {};
  return { span: { from: began, to: Math.max(began + (msFromSeconds(root.attributes.time) ?? 0), to ?? 0) } };
}

/** Milliseconds; a time without an offset is taken for UTC. */
function localTime(timestamp = ""): number | null {
  const text = timestamp.trim();
  const time = Date.parse(/^\d{4}-\d\d-\d\dT[\d:.]+$/.test(text) ? `${text}Z` : text);
  return time >= Date.UTC(2000) ? time : null;
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

const CASES = new Set(["testcase"]);
const SUITES_AND_CASES = new Set(["testsuite", "testcase"]);
const LEAVES = new Set([...SKIPS, ...OUTPUTS, ...PROPERTIES, ...RETRIES]);

/** Number of open elements while the children of a root are read. */
const DEPTH_INSIDE_ROOT = 2;

/** Removes the time that unittest appends. Returns null for a name that is a settings file of the test tool. */
function suiteName({ attributes: { name = "" } }: Node): string | null {
  const plain = name.trim().replace(/-\d{14}$/, "");
  return plain === "(empty)" || SETTINGS.test(plain) ? null : plain || null;
}

const SETTINGS = /^(?:\/|[a-z]:\\)[^\n]*\.(?:xml|dist|dll|exe|jar|csproj)$/i;

function enter(node: Node, { suites, file, tally, isOwn }: Frame, cutter: Cutter): Frame {
  const { file: path, filepath } = node.attributes;
  const name = suiteName(node);
  // Bounds the length of the whole path, so that nested suites with long names are not repeated in full for each test case.
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

function toCase(node: Node, frame: Frame, namer: Namer, cutter: Cutter, readTool: ToolReader): ReportedCase {
  const { suites, file: outerFile, tally } = frame;
  const { attributes } = node;
  const name = cutter.cut("name", attributes.name?.trim() || "(no name)");
  const given = cut(attributes.classname?.trim() ?? "", MAX_NAME);
  const position = POSITION.exec(given);
  // CasperJS repeats the path of the script, which its suite calls the package.
  const classname = position || (given.includes("/") && given === tally.attributes.package) ? "" : given;
  const givenFile = attributes.file || attributes.filepath || position?.[1] || outerFile;
  const file = givenFile ? givenFile.replace(/^file:\/\//, "") : namer.toFile(suites, classname);
  // Most cases pass and have nothing inside.
  const inside = node.children.length === 0 ? NOTHING : readInside(node, cutter);
  const { status, kind } = inside.outcome ?? toOutcome(attributes, NONE, null);
  // pytest names a module that it could not load as if it were a test.
  if (status === "failed" && given === "" && inside.message === NOT_COLLECTED && suites.includes("pytest"))
    return { ...unnamed(inside, kind), file: cutter.cut("file", `${name.replaceAll(".", "/")}.py`) };
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
    // gdUnit4 lists the failures of all attempts of a test that has passed in the end.
    ...(status === "failed" && Number(tally.attributes.flaky) > 0 && countFailureElements(node) > 1
      ? { isFlakyByCount: true }
      : {}),
  };
  return readTool === undefined ? one : { ...one, ...toNames({ suite, name, file }, node, tally, readTool, cutter) };
}

const NOT_COLLECTED = "collection failure";

const unnamed = (
  { outcome: _, ...inside }: ReturnType<typeof readInside>,
  kind: ReportedCase["kind"],
): ReportedCase => ({
  ...inside,
  ...{ suite: "", name: FAILED_TO_LOAD, file: null, line: null, status: "failed", kind, durationMs: null },
});

/** Maximum length of several titles together. */
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
  return {
    suite,
    name: name || "(no name)",
    file,
    ...(own.otherNames ? { otherNames: own.otherNames.map(cutName) } : {}),
    ...(own.keepOtherNames ? { keepOtherNames: true } : {}),
  };
}

/** Busted's class name: a line there would make a test another with each edit above it. */
const POSITION = /^(\S{1,500}\.(?:lua|moon|fnl)):(\d{1,9})$/;

// A time without an offset is in the time zone of a machine that the report does not name.
const INSTANT =
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)$|^\w{3}, \d\d \w{3} \d{4} [\d:]+ GMT$/;

/** Unix milliseconds; NaN when it does not say when it began. */
const endOf = ({ attributes: { timestamp = "", time } }: Node): number =>
  INSTANT.test(timestamp.trim()) ? Date.parse(timestamp.trim()) + (msFromSeconds(time) ?? 0) : Number.NaN;

// googletest writes 1970 for a test that did not run.
const toCompletion = (end: number): Date | null => (end >= Date.UTC(2000) ? new Date(end) : null);
