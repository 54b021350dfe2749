/** JUnit XML: no standard, but dialects, of some forty producers. */

import { elementsOf, foreignElement, toFault, type XmlPart } from "./fields.ts";
import { betterToolOf, isPlaywright, toolReaderOf } from "./js_tools.ts";
import { type ToolReader, toJunitCase } from "./junit_case.ts";
import { createTops, suiteEnd, toCompletion, toTestSpan } from "./junit_times.ts";
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
import { type Report, type ReportContext, type ReportedCase, ReportError } from "./report.ts";
import {
  createCutter,
  type Cutter,
  localName,
  MAX_ATTACHMENTS,
  MAX_CASES,
  MAX_NAME,
  msFromSeconds,
  textOf,
  tooManyCases,
  type WrittenAttachment,
} from "./text.ts";
import {
  type Node,
  FAILURES,
  OUTPUTS,
  NONE,
  childrenNamed,
  countFailureElements,
  oddWords,
  textInside,
  failureMessage,
  SKIPS,
  PROPERTIES,
  RETRIES,
  markedAttachments,
} from "./junit_outcome.ts";
import { createUnknownResults } from "./unknown_results.ts";
import { isFile, createNamer } from "./junit_names.ts";

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
        const one = toJunitCase(node, frame, namer, cutter, readTool);
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
    tool: betterToolOf(first!.attributes),
    suite: cutter.cutOrNull("suite", suiteName(root) ?? (only && suiteName(only))),
    cases,
    countsOnly: null,
    partial: totals.lacksFailures(),
    durationMs: msFromSeconds(root.attributes.time) ?? msFromSeconds(only?.attributes.time),
    completedAt: toCompletion(root.attributes.timestamp ? suiteEnd(root) : tops.end()),
    context: isPlaywright(first!.attributes) ? {} : toContext(tops.first()),
    ...(attachments ? { attachments } : {}),
    ...toTestSpan(root, tops),
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
