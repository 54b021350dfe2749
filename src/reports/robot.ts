/** Robot Framework's output.xml, of version 3 and later: https://robotframework.org */

import { child, elementsOf, named, textBelow, toCase, type XmlPart } from "./fields.ts";
import { type ReportedCase, type CaseStatus, type FailureKind, type Report, ReportError } from "./report.ts";
import {
  clean,
  createCutter,
  type Cutter,
  cut,
  disagreement,
  firstLine,
  localName,
  MAX_CASES,
  MAX_NAME,
  msFromSeconds,
  plural,
  toMs,
  tooManyCases,
} from "./text.ts";

type Node = Bun.XML.Node;

type Suite = {
  path: string;
  file: string | null;
  /** Number of cases before those of the suite. */
  first: number;
  hasFailedTeardown: boolean;
};

/** An element whose children are read from `next` on; `suite` is null in the root. */
type Frame = { children: Node["children"]; next: number; suite: Suite | null };

/** State of the whole run. */
type Run = {
  cases: ReportedCase[];
  /** Indexes of the cases that no failed teardown has affected yet. */
  untouched: number[];
  /** Number of failed tests that were not critical, before version 4. */
  uncritical: number;
  suite: string | null;
  status: Node | null;
  statistics: Node | null;
  errors: string[];
  /** Whether rebot has already applied the teardowns of suites to their tests. */
  isSettled: boolean;
};

/** URDF describes robots under the same root. `head` is the beginning of the document. */
export const isRobot = (head: string): boolean => /<robot\s[^>]{0,1000}\bgenerator=/.test(head);

/** Whether an element may lie in several parts. */
export const isSuite = (name: string): boolean => name === "robot" || name === "suite";

/** Throws a ReportError when there is no suite, or too many cases. */
export function readRobot(parts: Iterable<XmlPart>): Report {
  const cutter = createCutter();
  const run: Run = {
    cases: [],
    untouched: [],
    uncritical: 0,
    suite: null,
    status: null,
    statistics: null,
    errors: [],
    isSettled: false,
  };
  const open: Frame[] = [];
  // The last frame of each depth: those that the next part is inside of are among them.
  const last: Frame[] = [];
  const go = (frame: Frame) => {
    last[open.length] = frame;
    open.push(frame);
  };
  for (const { root, depth } of parts) {
    if (depth === 0) {
      run.isSettled = /^rebot/i.test(root.attributes["generator"] ?? "");
      go({ children: root.children, next: 0, suite: null });
    } else for (const frame of reenter(last.splice(0), root, depth)) go(frame);
    for (let frame = open.at(-1); frame; frame = open.at(-1)) {
      const node = frame.children[frame.next++];
      if (node === undefined) open.pop();
      if (typeof node !== "object" || !("name" in node)) continue;
      if (localName(node.name) === "suite") go(enter(node, frame, run));
      else if (frame.suite) readInSuite(node, frame.suite, open.length === 2, run, cutter);
      else readInRoot(node, run);
    }
  }
  if (run.suite === null) throw new ReportError("its root element <robot> contains no suite");
  const { cases, status } = run;
  const warnings = [...declaredTotals(run), ...toldErrors(run.errors)];
  const fault = toFault(run);
  if (fault) cases.push(toCase(cutter, { ...fault, status: "failed", kind: "error" }));
  if (cases.length > MAX_CASES) throw tooManyCases();
  return {
    format: "robot",
    suite: cutter.cutOrNull("suite", run.suite),
    cases,
    countsOnly: null,
    partial: run.statistics === null,
    durationMs: status && timeOf(status),
    // The times have no time zone, and the report does not name the machine.
    completedAt: null,
    context: {},
    warnings: [...warnings, ...cutter.warnings()],
  };
}

/** Enters the suites around a part again, with the children that the part has for each of them. */
function reenter(frames: Frame[], root: Node, depth: number): Frame[] {
  let node = root;
  return frames.slice(0, depth).map((frame, level) => {
    const { children } = node;
    const isInnermost = level === depth - 1;
    if (!isInnermost) node = children[0] as Node;
    return { ...frame, children, next: isInnermost ? 0 : 1 };
  });
}

function enter({ attributes, children }: Node, { suite: outer }: Frame, run: Run): Frame {
  const { name = "", source } = attributes;
  if (!outer) run.suite ??= name;
  // Several sources given at once get a suite around them, whose name depends on what was given.
  const isMade = !outer && source === undefined && name.includes(" & ");
  const path = [outer?.path ?? "", isMade ? "" : name].filter(Boolean).join(" > ");
  const suite: Suite = {
    path: outer && outer.path.length > MAX_NAME ? outer.path : cut(path, MAX_NAME + 1),
    file: source ?? outer?.file ?? null,
    first: run.cases.length,
    hasFailedTeardown: false,
  };
  return { children, next: 0, suite };
}

function readInRoot(node: Node, run: Run): void {
  const name = localName(node.name);
  if (name === "statistics") run.statistics = node;
  if (name === "errors")
    for (const message of named(node, "msg"))
      if (message.attributes["level"] === "ERROR") run.errors.push(firstLine(textBelow(message)));
}

function readInSuite(node: Node, suite: Suite, isTop: boolean, run: Run, cutter: Cutter): void {
  const name = localName(node.name);
  if (name === "test" || name === "task") {
    if (run.cases.length === MAX_CASES) throw tooManyCases();
    if (isUncritical(child(node, "status"))) run.uncritical++;
    run.untouched.push(run.cases.length);
    run.cases.push(readTest(node, suite, cutter));
  } else if (name === "kw" && /^teardown$/i.test(node.attributes["type"] ?? "")) {
    suite.hasFailedTeardown = child(node, "status")?.attributes["status"] === "FAIL";
  } else if (name === "status") {
    if (isTop) run.status = node;
    if (suite.hasFailedTeardown && !run.isSettled) failAll(run, suite, textBelow(node), cutter);
  }
}

/** Tests are written down before their suite's teardown fails, which for Robot Framework fails them all. */
function failAll({ cases, untouched }: Run, { first }: Suite, statusText: string, cutter: Cutter): void {
  const reason = /(?:^|\n)Suite teardown failed:\n([^]*)/i.exec(statusText)?.[1] ?? statusText;
  const message = cutter.cutOrNull("message", `Parent suite teardown failed:\n${plain(reason)}`.trim());
  while (untouched.length > 0 && untouched.at(-1)! >= first) {
    const one = cases[untouched.pop()!]!;
    if (one.status === "passed") Object.assign(one, { status: "failed", kind: "error", message, stack: message });
  }
}

const isUncritical = (status: Node | undefined): boolean =>
  status?.attributes["critical"] === "no" && status.attributes["status"] === "FAIL";

const STATUSES: Record<string, CaseStatus> = {
  PASS: "passed",
  FAIL: "failed",
  SKIP: "skipped",
  "NOT RUN": "skipped",
  NOT_RUN: "skipped",
};

function readTest(node: Node, { path, file }: Suite, cutter: Cutter): ReportedCase {
  const ending = child(node, "status");
  const name = ending?.attributes["status"] ?? "";
  const given = Object.hasOwn(STATUSES, name) ? STATUSES[name]! : "failed";
  // Since version 4, such tests are reported as skipped.
  const status = isUncritical(ending) ? "skipped" : given;
  const message = plain(textBelow(ending)) || (ending ? "" : "It did not finish");
  const failed = status === "failed";
  const tags = [...named(node, "tag"), ...named(node, "tags").flatMap((list) => named(list, "tag"))];
  return toCase(cutter, {
    suite: path,
    name: node.attributes["name"] ?? "",
    file,
    line: node.attributes["line"],
    status,
    kind: ending ? toKind(message) : "error",
    durationMs: ending ? timeOf(ending) : null,
    message: status === "passed" ? null : message,
    stack: failed ? toStack(node, message) : null,
    output: toOutput(node),
    properties: tags.map((tag): [string, string] => ["tag", textBelow(tag)]).filter(([, tag]) => tag !== ""),
  });
}

/** Messages may be marked as HTML. */
const plain = (text: string): string => clean(text).replace(/^\*HTML\*\s*/, "");

function toKind(message: string): FailureKind {
  const head = cut(message, 2000);
  if (/\b(?:Test|Task|Keyword) timeout \S[^\n]{0,60} exceeded\b/i.test(head)) return "timeout";
  return /^(?:Parent suite (?:setup|teardown) failed|No keyword with name )/.test(head) ? "error" : "failure";
}

const MAX_DEPTH = 100;

/** Returns the failed keywords, the innermost first, and the Python error of the innermost. */
function toStack(test: Node, message: string): string {
  const names: string[] = [];
  let trace = "";
  for (let node: Node | undefined = failedIn(test), depth = 0; node && depth < MAX_DEPTH; depth++) {
    const { name, library, owner, type } = node.attributes;
    if (name !== undefined && localName(node.name) === "kw")
      names.unshift(`  in keyword ${[library ?? owner, name].filter(Boolean).join(".")}${type ? ` (${type})` : ""}`);
    for (const entry of named(node, "msg")) {
      const text = textBelow(entry);
      if (text.startsWith("Traceback (most recent call last)")) trace = text;
    }
    node = failedIn(node);
  }
  return [message, ...names, trace].filter(Boolean).join("\n");
}

const failedIn = (node: Node): Node | undefined =>
  elementsOf(node).findLast((inner) => child(inner, "status")?.attributes["status"] === "FAIL");

const MAX_OUTPUT = 2 ** 20;

/** Returns the log messages of a test, in order. */
function toOutput(test: Node): string {
  const lines: string[] = [];
  let length = 0;
  const open = elementsOf(test).toReversed();
  // Reads one character more than is kept, so that the truncation is reported.
  for (let node = open.pop(); node && length <= MAX_OUTPUT; node = open.pop()) {
    if (localName(node.name) === "msg") {
      const { level = "INFO" } = node.attributes;
      if (level === "TRACE") continue;
      lines.push(`${level}: ${plain(textBelow(node))}`);
      length += lines.at(-1)!.length + 1;
    } else for (const inner of elementsOf(node).toReversed()) open.push(inner);
  }
  return lines.join("\n");
}

/** Version 7 writes the start and the seconds, earlier versions start and end: "20240131 12:00:00.123". */
function timeOf({ attributes: { elapsed, starttime, endtime } }: Node): number | null {
  if (elapsed !== undefined) return msFromSeconds(elapsed);
  const [began, ended] = [starttime, endtime].map((text) =>
    Date.parse((text ?? "").replace(/^(\d{4})(\d\d)(\d\d) ([\d:.]{8,20})$/, "$1-$2-$3T$4Z")),
  );
  return toMs(ended! - began!);
}

/** Robot Framework writes its statistics last. */
function toFault({ cases, status, statistics }: Run): { name: string; message: string; stack?: string } | null {
  if (statistics === null) {
    return { name: "(test run did not finish)", message: "There are no statistics: the run broke off" };
  }
  if (cases.some((one) => one.status === "failed")) return null;
  const text = status ? plain(textBelow(status)) : "";
  if (status?.attributes["status"] === "FAIL")
    return { name: "(suite failed)", message: firstLine(text) || "The suite failed", stack: text };
  const failed = declaredIn(statistics)?.failed ?? 0;
  const minded = failed > 0 && status?.attributes["status"] !== "PASS";
  return minded
    ? { name: "(test run failed)", message: `The statistics tell of ${failed} failed, but none of the tests is` }
    : null;
}

function declaredIn(statistics: Node): { passed: number; failed: number; skipped: number | null } | null {
  // Before version 4 there are also statistics of critical tests.
  const all = named(child(statistics, "total") ?? statistics, "stat").at(-1)?.attributes;
  const [passed, failed, skipped] = [all?.["pass"], all?.["fail"], all?.["skip"]].map((text) =>
    /^\d{1,9}$/.test(text ?? "") ? Number(text) : null,
  );
  return typeof passed === "number" && typeof failed === "number" ? { passed, failed, skipped: skipped ?? null } : null;
}

function declaredTotals({ cases, statistics, uncritical }: Run): string[] {
  const declared = statistics && declaredIn(statistics);
  return declared ? disagreement({ ...declared, failed: declared.failed - uncritical }, cases) : [];
}

/** Returns errors about missing libraries and settings, which may be why tests are missing. */
function toldErrors(errors: string[]): string[] {
  if (errors.length === 0) return [];
  return [`Robot Framework tells of ${plural(errors.length, "error")}, the first: ${cut(errors[0]!, 200)}`];
}
