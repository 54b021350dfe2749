/** XML of doctest for C++, of its reporter "xml": https://github.com/doctest/doctest */

import { type Fault, locationOf, readExpression } from "./cpp_checks.ts";
import { child, elementsOf, named, textBelow, toCase } from "./fields.ts";
import { type ReportedCase, type CaseStatus, type FailureKind, type Report, ReportError } from "./report.ts";
import {
  createCutter,
  type Cutter,
  cut,
  disagreement,
  localName,
  MAX_CASES,
  msFromSeconds,
  parseCount,
  tooManyCases,
} from "./text.ts";

type Node = Bun.XML.Node;

/** Throws a ReportError when there are too many cases, or only a list of them without results. */
export function readDoctest(root: Node): Report {
  const cutter = createCutter();
  const cases: ReportedCase[] = [];
  const totals = child(root, "OverallResultsTestCases");
  // Written by --list-test-cases, --count and --list-test-suites.
  if (totals?.attributes["unskipped"] !== undefined || child(root, "OverallResultsTestSuites"))
    throw new ReportError("it lists test cases without their results");
  const add = (node: Node, suite: string) => {
    if (cases.length >= MAX_CASES) throw tooManyCases();
    cases.push(readTest(node, suite, cutter));
  };
  for (const node of elementsOf(root)) {
    if (localName(node.name) === "TestCase") add(node, node.attributes["testsuite"] ?? "");
    if (localName(node.name) === "TestSuite")
      for (const test of named(node, "TestCase")) add(test, node.attributes["name"] ?? "");
  }
  const declared = {
    passed: parseCount(totals?.attributes["successes"]),
    failed: parseCount(totals?.attributes["failures"]),
    skipped: parseCount(totals?.attributes["skipped"]),
  };
  const warnings = totals ? disagreement(declared, cases) : [];
  const fault = toFault(totals, declared.failed);
  if (fault && !(totals && cases.some(({ status }) => status === "failed")))
    cases.push(toCase(cutter, { ...fault, status: "failed", kind: "error" }));
  return {
    format: "doctest",
    suite: cutter.cutOrNull("suite", toProgram(root.attributes["binary"] ?? "")),
    cases,
    countsOnly: null,
    partial: totals === undefined,
    durationMs: null,
    completedAt: null,
    context: {},
    warnings: [...warnings, ...cutter.warnings()],
  };
}

/** The totals come last. Tests that a crash kept from running are only in their number of skipped ones. */
function toFault(totals: Node | undefined, failed: number | null): { name: string; message: string } | null {
  if (!totals) return { name: "(test run did not finish)", message: "There are no totals: the run broke off" };
  if (!failed) return null;
  return { name: "(test run failed)", message: `The totals tell of ${failed} failed, but none of the tests is` };
}

const toProgram = (binary: string): string =>
  binary
    .slice(Math.max(binary.lastIndexOf("/"), binary.lastIndexOf("\\")) + 1)
    .replace(/\.exe$/i, "")
    .trim();

type Outcome = { status: CaseStatus; kind?: FailureKind; reason?: string };

function readTest(node: Node, suite: string, cutter: Cutter): ReportedCase {
  const { name = "", filename = null, line, description = "" } = node.attributes;
  const faults = readFaults(node);
  const results = child(node, "OverallResultsAsserts");
  const { status, kind, reason } = toOutcome(node, results, faults);
  const stack = faults.map(({ text }) => text).join("\n\n");
  const isFailed = status === "failed";
  return toCase(cutter, {
    suite,
    name,
    file: filename,
    line,
    status,
    kind,
    durationMs: msFromSeconds(results?.attributes["duration"]),
    message: isFailed ? reason || faults[0]?.message : null,
    stack: isFailed ? stack : null,
    // Expected failures and warnings.
    output: isFailed ? null : stack,
    properties: description ? [["description", description]] : [],
  });
}

function toOutcome({ attributes }: Node, results: Node | undefined, faults: Fault[]): Outcome {
  if (attributes["skipped"] === "true") return { status: "skipped" };
  if (!results) return { status: "failed", kind: "error", reason: faults[0]?.message ?? "It did not finish" };
  const failures = faults.filter(({ isWarning }) => !isWarning);
  const declared = results.attributes["test_case_success"];
  const count = parseCount(results.attributes["failures"]) ?? 0;
  const isRed = count > 0 || failures.length > 0;
  const [mayFail, shouldFail] = ["may_fail", "should_fail"].map((key) => attributes[key] === "true");
  // Before 2.4.1 it was left to the reader.
  const success = declared === undefined ? mayFail || isRed === (shouldFail === true) : declared === "true";
  if (success) return { status: "passed" };
  const exception = failures.find(({ isException }) => isException);
  if (exception) return { status: "failed", kind: "error", reason: exception.message };
  if (shouldFail && !isRed)
    return { status: "failed", kind: "failure", reason: "It passed, although it is marked to fail" };
  const expected = results.attributes["expected_failures"];
  if (expected !== undefined)
    return { status: "failed", kind: "failure", reason: `It failed ${count} times, expected ${cut(expected, 20)}` };
  if (!isRed && attributes["timeout"] !== undefined)
    return { status: "failed", kind: "timeout", reason: `It took longer than ${cut(attributes["timeout"], 20)} s` };
  return { status: "failed", kind: "failure" };
}

/** Reads the faults of a test and its subcases, in document order. */
function readFaults(test: Node): Fault[] {
  const faults: Fault[] = [];
  const open = elementsOf(test).toReversed();
  for (let node = open.pop(); node; node = open.pop()) {
    const name = localName(node.name);
    if (name === "SubCase") for (const inner of elementsOf(node).toReversed()) open.push(inner);
    else if (name === "Expression" && node.attributes["success"] !== "true") faults.push(readExpression(node));
    else if (name === "Message") faults.push(readMessage(node));
    else if (name === "Exception") {
      const exception = textBelow(node) || "unknown exception";
      const message = node.attributes["crash"] === "true" ? exception : `Exception: ${exception}`;
      faults.push({ message, text: message, isException: true, isWarning: false });
    }
  }
  return faults;
}

function readMessage(node: Node): Fault {
  const message = textBelow(child(node, "Text"));
  const text = [`${locationOf(node)}${message}`, ...named(node, "Info").map(textBelow)].join("\n");
  return { message, text, isException: false, isWarning: node.attributes["type"] === "WARNING" };
}
