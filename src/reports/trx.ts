/** TRX, the results of Visual Studio and `dotnet test --logger trx`. */

import { child, elementsOf, textBelow, toCase } from "./fields.ts";
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

type Node = Bun.XML.Node;

/** What a test definition tells of its method. */
type Definition = { className: string; storage: string };

/** Throws a ReportError when there are too many cases. */
export function readTrx(root: Node): Report {
  const cutter = createCutter();
  const parts = elementsOf(root);
  const definitions = toDefinitions(parts.filter(({ name }) => localName(name) === "TestDefinitions"));
  const cases: ReportedCase[] = [];
  const open = parts.filter(({ name }) => localName(name) === "Results").reverse();
  for (let node = open.pop(); node; node = open.pop()) {
    if (/^(?:UnitTest|TestResultAggregation|GenericTest|WebTest|Manual)?.*Result$/.test(localName(node.name))) {
      if (cases.length === MAX_CASES) throw tooManyCases();
      cases.push(readResult(node, definitions, cutter));
    }
    // The rows of a data-driven test are inside it, and are tests as well.
    for (const inner of elementsOf(node).toReversed()) if (!LEAVES.has(localName(inner.name))) open.push(inner);
  }
  const times = parts.find(({ name }) => localName(name) === "Times")?.attributes ?? {};
  const [began, ended] = [Date.parse(times["start"] ?? ""), Date.parse(times["finish"] ?? "")];
  const summary = parts.find(({ name }) => localName(name) === "ResultSummary");
  const aborted = summary && /^(?:Aborted|Timeout|Error)$/.test(summary.attributes["outcome"] ?? "");
  return {
    format: "trx",
    suite: null,
    cases: aborted && !cases.some(({ status }) => status === "failed") ? [...cases, readFault(summary, cutter)] : cases,
    countsOnly: null,
    partial: false,
    durationMs: toMs(ended - began),
    completedAt: ended > 0 ? new Date(ended) : null,
    context: {},
    warnings: [...declaredTotals(summary, cases), ...cutter.warnings()],
  };
}

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
};

function readResult(node: Node, definitions: Map<string, Definition>, cutter: Cutter): ReportedCase {
  const { testId = "", testName = "", outcome = "", duration } = node.attributes;
  // Visual Studio leaves the outcome of an error out.
  const status = outcome === "" ? "failed" : Object.hasOwn(STATUSES, outcome) ? STATUSES[outcome]! : "skipped";
  const output = child(node, "Output");
  const error = child(output, "ErrorInfo");
  const text = (parent: Node | undefined, name: string) => textBelow(child(parent, name));
  const [message, stack] = [text(error, "Message"), text(error, "StackTrace")];
  const className = definitions.get(testId)?.className ?? "";
  const told = text(output, "StdOut");
  return toCase(cutter, {
    suite: className,
    name: className !== "" && testName.startsWith(`${className}.`) ? testName.slice(className.length + 1) : testName,
    status,
    kind: toKind(outcome),
    durationMs: toDuration(duration),
    message: message.trim() || firstLine(status === "skipped" ? told : ""),
    stack: stack || (status === "failed" ? message : ""),
    output: [told, text(output, "StdErr"), text(output, "DebugTrace")].filter(Boolean).join("\n"),
    properties: outcome === "" || outcome === "Passed" || outcome === "Failed" ? [] : [["outcome", outcome]],
  });
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

/** A run that broke off without a failed test must not be green. */
function readFault(summary: Node, cutter: Cutter): ReportedCase {
  const infos = child(summary, "RunInfos");
  const text = (infos ? elementsOf(infos) : []).map((info) => textBelow(child(info, "Text"))).join("\n");
  const outcome = summary.attributes["outcome"] ?? "";
  return toCase(cutter, {
    name: "(test run failed)",
    status: "failed",
    kind: toKind(outcome),
    message: firstLine(text) || `The outcome of the run is ${outcome}`,
    stack: text,
  });
}

function declaredTotals(summary: Node | undefined, cases: ReportedCase[]): string[] {
  const { total } = child(summary, "Counters")?.attributes ?? {};
  // Rows of data-driven tests are counted by some producers and not by others.
  return total !== undefined && Number(total) > cases.length ? disagreement({ tests: Number(total) }, cases) : [];
}
