/** NUnit's XML, of version 3 (`test-run`) and of version 2 (`test-results`). */

import { hiddenFailures, refuseForeign, toFault, child, elementsOf, textBelow, toCase } from "./fields.ts";
import { type ReportedCase, type CaseStatus, type FailureKind, type Report } from "./report.ts";
import {
  addTitle,
  createCutter,
  cut,
  type Cutter,
  disagreement,
  firstLine,
  localName,
  MAX_CASES,
  MAX_NAME,
  msFromSeconds,
  parseCount,
  tooManyCases,
} from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

type Node = Bun.XML.Node;

/** Suites around the next node: their class or namespace path, or their names. `own`: those in the file that Pester names. */
type Frame = { node: Node; fixture: string; names: string[]; file: string | null; own: string };

/** Throws a ReportError when there are too many cases. */
export function readNunit(root: Node): Report {
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const cases: ReportedCase[] = [];
  const open: Frame[] = [{ node: root, fixture: "", names: [], file: null, own: "" }];
  for (let frame = open.pop(); frame; frame = open.pop()) {
    const { node } = frame;
    const name = localName(node.name);
    if (name === "test-case") {
      if (cases.length === MAX_CASES) throw tooManyCases();
      cases.push(readTest(node, frame, cutter, unknown));
      continue;
    }
    const inside = name === "test-suite" ? enter(frame) : frame;
    for (const inner of elementsOf(node).toReversed())
      if (PLACES.has(localName(inner.name))) open.push({ ...inside, node: inner });
  }
  if (cases.length === 0) refuseForeign(root, SECTIONS);
  const suites = elementsOf(root).filter(({ name }) => localName(name) === "test-suite");
  const ended = Date.parse((root.attributes["end-time"] ?? "").replace(/^(\S+) (\S+?)(Z?)$/, "$1T$2$3"));
  return {
    format: "nunit",
    suite: null,
    cases: cases.some(({ status }) => status === "failed") ? cases : [...cases, ...readAll(root, suites, cutter)],
    countsOnly: null,
    partial: false,
    durationMs: msFromSeconds(root.attributes["duration"]) ?? (suites[0] ? timeOf(suites[0]) : null),
    // A time without a zone is of a machine that the report does not name.
    completedAt: ended > 0 && /Z$/.test(root.attributes["end-time"] ?? "") ? new Date(ended) : null,
    context: {},
    warnings: [...totalsWarning(root, cases), ...unknown.warnings(), ...cutter.warnings()],
  };
}

/** The elements of the root. */
const SECTIONS = new Set([
  ...["command-line", "filter", "environment", "settings", "properties", "culture-info", "test-suite", "test-case"],
  ...["attachments", "output", "categories"],
]);
const PLACES = new Set(["test-suite", "test-case", "results"]);

const timeOf = ({ attributes }: Node): number | null => msFromSeconds(attributes["duration"] ?? attributes["time"]);

/** Version 3 has the class of each case; version 2 only nests namespaces and fixtures. */
function enter(frame: Frame): Frame {
  const { node, fixture, names, file, own } = frame;
  const { type = "", name = "", fullname = "", classname = "" } = node.attributes;
  const script = [name, fullname].find((path) => /\.ps1$/i.test(path));
  // A block repeats those around it, and a test with parameters is no block.
  const block = script !== undefined || type === "ParameterizedTest" ? own : inside(own, name);
  const inner =
    script === undefined ? { file, own: file === null ? "" : block } : { file: script.replaceAll("\\", "/"), own };
  if (type === "Assembly" || type === "Project" || type === "Test Project") return { ...frame, ...inner };
  return { node, fixture: cut(classname, MAX_NAME + 1) || fixture, names: addTitle(names, name), ...inner };
}

const inside = (outer: string, name: string): string =>
  cut(outer === "" || name.startsWith(`${outer}.`) ? name : `${outer}.${name}`, MAX_NAME + 1);

function readTest(
  node: Node,
  { fixture, names, file, own }: Frame,
  cutter: Cutter,
  unknown: UnknownResults,
): ReportedCase {
  const { attributes } = node;
  const failure = child(node, "failure") ?? child(node, "error");
  const { status, kind } = toOutcome(attributes, failure, unknown);
  const details = failure ?? child(node, "reason");
  const [message, stack] = [textBelow(child(details, "message")), textBelow(child(details, "stack-trace"))];
  const listed = attributes["classname"] || fixture || names.join(".");
  const suite = file === null ? listed : own || listed;
  const written = attributes["name"] ?? attributes["fullname"] ?? "";
  const assertions = child(node, "assertions");
  return toCase(cutter, {
    suite,
    // Version 2 writes the whole path before the name.
    name: suite !== "" && written.startsWith(`${suite}.`) ? written.slice(suite.length + 1) : written,
    ...(file === null ? {} : { file }),
    status,
    kind,
    durationMs: timeOf(node),
    message: message || firstLine(textBelow(child(assertions && elementsOf(assertions)[0], "message"))),
    stack: status === "failed" ? stack || message : "",
    output: textBelow(child(node, "output")),
    properties: toProperties(node, attributes),
  });
}

function toProperties(node: Node, { result = "", label = "" }: Node["attributes"]): [string, string][] {
  const properties = child(node, "properties");
  const pairs = (properties ? elementsOf(properties) : []).map(({ attributes }): [string, string] => [
    attributes["name"] ?? "",
    attributes["value"] ?? "",
  ]);
  const outcome = label || (["Inconclusive", "Warning", "NotRunnable", "Ignored"].includes(result) ? result : "");
  return [...(outcome ? [["result", outcome] as [string, string]] : []), ...pairs].filter(
    // Names that begin with an underscore are NUnit's own.
    ([name, value]) => name !== "" && value !== "" && !name.startsWith("_"),
  );
}

type Outcome = { status: CaseStatus; kind: FailureKind | null };

/** A test case that holds a failure has failed, whatever its attributes say. */
function toOutcome(attributes: Node["attributes"], failure: Node | undefined, unknown: UnknownResults): Outcome {
  const stated = statedOutcome(attributes, unknown);
  if (!failure || stated.status === "failed") return stated;
  return { status: "failed", kind: localName(failure.name) === "error" ? "error" : "failure" };
}

function statedOutcome({ result, label, executed, success }: Node["attributes"], unknown: UnknownResults): Outcome {
  const failed = (kind: FailureKind): Outcome => ({ status: "failed", kind });
  switch (result) {
    case "Passed":
    case "Success":
    case "Warning":
      return { status: "passed", kind: null };
    case "Failed":
      return failed(label === "Error" || label === "Invalid" ? "error" : label === "Cancelled" ? "timeout" : "failure");
    case "Failure":
      return failed("failure");
    case "Error":
    case "Cancelled":
      return failed("error");
    case undefined:
      // Before version 2.5 there was no result, and some writers leave success out as well.
      if (/^False$/i.test(success ?? "") && !/^False$/i.test(executed ?? "")) return failed("failure");
      return /^True$/i.test(executed ?? "") && /^(?:True)?$/i.test(success ?? "")
        ? { status: "passed", kind: null }
        : { status: "skipped", kind: null };
    case "Skipped":
    case "Ignored":
    case "Inconclusive":
    case "NotRunnable":
      return { status: "skipped", kind: null };
    default:
      unknown.count(result);
      return failed("error");
  }
}

/** Version 2 counts errors beside failures. Null if the report does not say. */
function declaredFailures({ failed, failures, errors }: Node["attributes"]): number | null {
  const counts = [failed, failures, errors].map(parseCount).filter((count) => count !== null);
  return counts.length === 0 ? null : counts.reduce((sum, count) => sum + count, 0);
}

/** Version 2 counts the tests that did not run beside `total`. */
function totalsWarning({ attributes }: Node, cases: ReportedCase[]): string[] {
  const [total, failed] = [parseCount(attributes["total"]), declaredFailures(attributes)];
  const notRun = parseCount(attributes["not-run"]) ?? 0;
  const tests = total !== null && total + notRun === cases.length ? cases.length : total;
  return disagreement({ tests, failed }, cases);
}

/** The suites that failed, or else that the run says so of itself. */
function readAll(root: Node, suites: Node[], cutter: Cutter): ReportedCase[] {
  const faults = readFaults(suites, cutter);
  if (faults.length > 0) return faults;
  const declared = hiddenFailures(cutter, declaredFailures(root.attributes), []);
  if (declared.length > 0) return declared;
  const failed = [root, ...suites].find(saysFailed);
  if (!failed) return [];
  const { result = "failed", name = "" } = failed.attributes;
  const subject = failed === root ? "The run" : `The suite "${cut(name, 200)}"`;
  return [
    toFault(cutter, { name: "(test run failed)", message: `${subject} has the result ${result}, but no test failed` }),
  ];
}

/** Before version 2.5 there was no result; an inconclusive suite is no success and no failure. */
function saysFailed({ attributes: { result, success } }: Node): boolean {
  return result === undefined ? /^False$/i.test(success ?? "") : FAILED.test(result);
}

const FAILED = /^(?:Failed|Failure|Error)/;

/** A set-up or an assembly that failed while no test did. */
function readFaults(suites: Node[], cutter: Cutter): ReportedCase[] {
  const faults: ReportedCase[] = [];
  const open = [...suites];
  for (let node = open.pop(); node && faults.length < 100; node = open.pop()) {
    const failure = child(node, "failure");
    if (saysFailed(node) && failure && node.attributes["site"] !== "Child" && node.attributes["site"] !== "Parent") {
      const message = textBelow(child(failure, "message"));
      faults.push(
        toCase(cutter, {
          suite: node.attributes["classname"] ?? node.attributes["name"] ?? "",
          name: "(suite failed)",
          status: "failed",
          kind: "error",
          message: firstLine(message),
          stack: textBelow(child(failure, "stack-trace")) || message,
        }),
      );
    }
    for (const inner of elementsOf(node)) if (PLACES.has(localName(inner.name))) open.push(inner);
  }
  return faults;
}
