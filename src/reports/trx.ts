/** TRX, the results of Visual Studio and `dotnet test --logger trx`. */

import { child, elementsOf, FAULT, refuseForeign, textBelow, toCase, toFault } from "./fields.ts";
import { type ReportedCase, type CaseStatus, type FailureKind, type Report } from "./report.ts";
import {
  createCutter,
  type Cutter,
  disagreement,
  firstLine,
  localName,
  MAX_CASES,
  toMs,
  tooManyCases,
} from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

type Node = Bun.XML.Node;

/** The method of a test definition. */
type Definition = { className: string; storage: string };

/** Throws a ReportError when there are too many cases. */
export function readTrx(root: Node): Report {
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const parts = elementsOf(root);
  const definitions = toDefinitions(parts.filter(({ name }) => localName(name) === "TestDefinitions"));
  const cases: ReportedCase[] = [];
  const open = parts.filter(({ name }) => localName(name) === "Results").reverse();
  for (let node = open.pop(); node; node = open.pop()) {
    if (/^(?:UnitTest|TestResultAggregation|GenericTest|WebTest|Manual)?.*Result$/.test(localName(node.name))) {
      if (cases.length === MAX_CASES) throw tooManyCases();
      cases.push(readResult(node, { definitions, cutter, unknown }));
    }
    // The rows of a data-driven test are inside it, and are tests as well.
    for (const inner of elementsOf(node).toReversed()) if (!LEAVES.has(localName(inner.name))) open.push(inner);
  }
  if (cases.length === 0) refuseForeign(root, SECTIONS);
  const times = parts.find(({ name }) => localName(name) === "Times")?.attributes ?? {};
  const [began, ended] = [Date.parse(times["start"] ?? ""), Date.parse(times["finish"] ?? "")];
  const summary = parts.find(({ name }) => localName(name) === "ResultSummary");
  return {
    format: "trx",
    suite: null,
    cases: [...cases, ...(summary ? readFaults(summary, cases, cutter) : [])],
    countsOnly: null,
    partial: false,
    durationMs: toMs(ended - began),
    completedAt: ended > 0 ? new Date(ended) : null,
    ...(began > 0 && ended >= began ? { span: { from: began, to: ended } } : {}),
    context: {},
    warnings: [...declaredTotals(summary, cases), ...unknown.warnings(), ...cutter.warnings()],
  };
}

/** The elements of the root. */
const SECTIONS = new Set([
  ...["TestRunConfiguration", "TestSettings", "TestSettingsReference", "Times", "Results", "TestDefinitions"],
  ...["TestEntries", "TestLists", "ResultSummary", "Build"],
]);
const LEAVES = new Set(["Output", "ResultFiles", "CollectorDataEntries"]);

function toDefinitions(parts: Node[]): Map<string, Definition> {
  const definitions = new Map<string, Definition>();
  for (const definition of parts.flatMap(elementsOf)) {
    const method = child(definition, "TestMethod")?.attributes ?? {};
    // Assembly-qualified: "Acme.CartTests, Acme.Tests, Version=…".
    const className = (method["className"] ?? "").split(",")[0]!.trim();
    const { id = "", storage = "" } = definition.attributes;
    definitions.set(id, { className, storage });
  }
  return definitions;
}

const STATUSES: Record<string, CaseStatus> = {
  Passed: "passed",
  PassedButRunAborted: "passed",
  Warning: "passed",
  Completed: "passed",
  Failed: "failed",
  Error: "failed",
  Timeout: "failed",
  Aborted: "failed",
  Disconnected: "failed",
  // A test that began and never ended.
  InProgress: "failed",
  NotExecuted: "skipped",
  NotRunnable: "skipped",
  Inconclusive: "skipped",
  Pending: "skipped",
};

type Reading = { definitions: Map<string, Definition>; cutter: Cutter; unknown: UnknownResults };

function readResult(node: Node, { definitions, cutter, unknown }: Reading): ReportedCase {
  const { testId = "", testName = "", outcome = "", duration } = node.attributes;
  // Visual Studio leaves the outcome of an error out.
  const isKnown = outcome === "" || Object.hasOwn(STATUSES, outcome);
  if (!isKnown) unknown.count(outcome);
  const status = STATUSES[isKnown ? outcome : ""] ?? "failed";
  const output = child(node, "Output");
  const error = child(output, "ErrorInfo");
  const text = (parent: Node | undefined, name: string) => textBelow(child(parent, name));
  const [message, stack] = [text(error, "Message"), text(error, "StackTrace")];
  const className = definitions.get(testId)?.className ?? "";
  const stdout = text(output, "StdOut");
  const inner = child(node, "InnerResults");
  // The rows of a data-driven test are results as well, and the test fails if one of them fails.
  const isThroughChild =
    status === "failed" &&
    inner !== undefined &&
    elementsOf(inner).some(({ attributes }) => STATUSES[attributes["outcome"] ?? ""] === "failed");
  const result = toCase(cutter, {
    suite: className,
    name: className !== "" && testName.startsWith(`${className}.`) ? testName.slice(className.length + 1) : testName,
    status,
    kind: toKind(outcome),
    durationMs: toDuration(duration),
    message: message.trim() || firstLine(status === "skipped" ? stdout : ""),
    stack: stack || (status === "failed" ? message : ""),
    output: [stdout, text(output, "StdErr"), text(output, "DebugTrace")].filter(Boolean).join("\n"),
    properties: outcome === "" || outcome === "Passed" || outcome === "Failed" ? [] : [["outcome", outcome]],
  });
  return isThroughChild ? { ...result, isThroughChild } : result;
}

function toKind(outcome: string): FailureKind {
  return outcome === "Timeout" ? "timeout" : outcome === "Failed" ? "failure" : "error";
}

/** `hh:mm:ss.fffffff`, with days before it where a test took so long. */
function toDuration(text: string | undefined): number | null {
  const match = /^(?:(\d{1,4})\.)?(\d{1,2}):(\d{1,2}):(\d{1,2}(?:\.\d{1,9})?)$/.exec(text ?? "");
  if (!match) return null;
  const [days = 0, hours, minutes, seconds] = match.slice(1).map((part) => (part === undefined ? 0 : Number(part)));
  return toMs((((days * 24 + hours!) * 60 + minutes!) * 60 + seconds!) * 1000);
}

/** Returns failures of a run that no failed test shows: a crashed host, an outcome, a number of failures. */
function readFaults(summary: Node, cases: ReportedCase[], cutter: Cutter): ReportedCase[] {
  const failed = cases.filter(({ status }) => status === "failed").length;
  const outcome = summary.attributes["outcome"] ?? "";
  const infos = child(summary, "RunInfos");
  const entries = (infos ? elementsOf(infos) : []).map((info) => ({
    isError: !/^(?:Warning|Passed|Completed|Inconclusive)$/.test(info.attributes["outcome"] ?? ""),
    text: textBelow(child(info, "Text")),
  }));
  const errors = entries
    .filter(({ isError, text }) => isError && text !== "" && !(failed > 0 && REPEATS.test(text)))
    .map(({ text }) => text);
  const declared = declaredFailures(summary);
  const isFailed = /^(?:Failed|Aborted|Timeout|Error|Disconnected)$/.test(outcome);
  // A test that was aborted already shows the crash.
  const isShown = cases.some(({ properties }) => properties?.["outcome"] === "Aborted");
  if (errors.length > 0 && !isShown) {
    const stack = errors.join("\n");
    const kind = outcome === "Timeout" ? "timeout" : "error";
    return [toFault(cutter, { name: "(test run failed)", kind, message: firstLine(stack), stack })];
  }
  if (isFailed && failed === 0) {
    const stack = entries.map(({ text }) => text).join("\n");
    const reason = stack === "" ? ", but none of its tests failed" : `: ${firstLine(stack)}`;
    const message = `The outcome of the run is ${outcome}${reason}`;
    return [toFault(cutter, { name: "(test run failed)", kind: toKind(outcome), message, stack })];
  }
  if (declared === null || declared <= failed) return [];
  return [
    toFault(cutter, { name: FAULT, message: `The run counts ${declared} failed, but ${failed} of its tests failed` }),
  ];
}

/** Lines that repeat the results: xUnit's line for each failed test and its indented message, and the exit code for failed tests. */
const REPEATS = /^\[xUnit\.net [\d:.]+\](?: {6}|[^\n]*\[FAIL\]$)|'2'[^\n]{0,300}testingplatform\/exitcodes/m;

const FAILED = ["failed", "error", "timeout", "aborted", "disconnected"];

function toCounts(summary: Node | undefined): Map<string, number> {
  const counters = Object.entries(child(summary, "Counters")?.attributes ?? {});
  return new Map(counters.flatMap(([name, count]) => (/^\d{1,9}$/.test(count) ? [[name, Number(count)]] : [])));
}

/** `null` when it does not say. */
function declaredFailures(summary: Node | undefined): number | null {
  const counts = toCounts(summary);
  const present = FAILED.filter((name) => counts.has(name));
  return present.length === 0 ? null : present.reduce((sum, name) => sum + counts.get(name)!, 0);
}

function declaredTotals(summary: Node | undefined, cases: ReportedCase[]): string[] {
  const counts = toCounts(summary);
  const declared = {
    tests: counts.get("total") ?? null,
    passed: counts.get("passed") ?? null,
    failed: declaredFailures(summary),
  };
  const counted = { tests: cases.length, passed: 0, failed: 0, skipped: 0 };
  for (const { status } of cases) counted[status]++;
  // Rows of data-driven tests are counted by some producers and not by others.
  const isMore = (["tests", "passed", "failed"] as const).some((key) => (declared[key] ?? 0) > counted[key]);
  return isMore ? disagreement(declared, cases) : [];
}
