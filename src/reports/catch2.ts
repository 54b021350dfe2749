/** XML of Catch2, of its reporter "xml", versions 2 and 3: https://github.com/catchorg/Catch2 */

import { type Fault, locationOf, readExpression } from "./cpp_checks.ts";
import { child, elementsOf, hiddenFailures, named, refuseForeign, textBelow, toCase, toFault } from "./fields.ts";
import { type ReportedCase, type CaseStatus, type FailureKind, type Report } from "./report.ts";
import {
  createCutter,
  type Cutter,
  disagreement,
  localName,
  MAX_CASES,
  msFromSeconds,
  parseCount,
  tooManyCases,
} from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

type Node = Bun.XML.Node;

/** Throws a ReportError when there are too many cases. */
export function readCatch2(root: Node): Report {
  const cutter = createCutter();
  const unknown = createUnknownResults();
  // Version 2 puts them into groups.
  const tests = [root, ...named(root, "Group")].flatMap((node) => named(node, "TestCase"));
  if (tests.length > MAX_CASES) throw tooManyCases();
  const cases = tests.map((test) => readTest(test, unknown, cutter));
  if (cases.length === 0) refuseForeign(root, SECTIONS);
  const totals = named(root, "OverallResultsCases").at(-1)?.attributes;
  const [passed, failed, expected] = ["successes", "failures", "expectedFailures"].map((name) =>
    parseCount(totals?.[name]),
  );
  // Failures that a test expects or allows do not fail it.
  const declared = { passed: passed === null ? null : passed! + (expected ?? 0), failed: failed! };
  const warnings = totals ? disagreement(declared, cases) : [];
  const hasEnded = totals !== undefined || child(root, "OverallResults") !== undefined;
  if (!hasEnded)
    cases.push(
      toFault(cutter, { name: "(test run did not finish)", message: "There are no totals: the run broke off" }),
    );
  return {
    format: "catch2",
    suite: cutter.cutOrNull("suite", root.attributes["name"]?.trim() ?? null),
    cases: [...cases, ...hiddenFailures(cutter, failed, cases)],
    countsOnly: null,
    partial: !hasEnded,
    durationMs: null,
    completedAt: null,
    context: {},
    warnings: [...warnings, ...unknown.warnings(), ...cutter.warnings()],
  };
}

/** The elements of the root. */
const SECTIONS = new Set(["Group", "Randomness", "OverallResults", "OverallResultsCases", "TestCase"]);

function readTest(test: Node, unknown: UnknownResults, cutter: Cutter): ReportedCase {
  const { name = "", filename, line, tags = "", description } = test.attributes;
  const elements = elementsOf(test);
  const result = elements.findLast((node) => localName(node.name) === "OverallResult");
  const faults = readFaults(elements);
  const { status, kind, message } = toOutcome(result, faults, unknown);
  const texts = faults.map(({ text }) => text).join("\n\n");
  const outputs = result ? elementsOf(result).filter(({ name }) => OUTPUTS.has(localName(name))) : [];
  const printed = outputs.map(textBelow).filter(Boolean);
  const isFailed = status === "failed";
  return toCase(cutter, {
    name,
    file: filename,
    line,
    status,
    kind,
    durationMs: msFromSeconds(result?.attributes["durationInSeconds"]),
    message,
    stack: isFailed ? texts : null,
    // Failures that are expected, and warnings.
    output: (isFailed ? printed : [...printed, texts]).filter(Boolean).join("\n"),
    properties: [
      ...[...tags.slice(0, 10_000).matchAll(/\[([^[\]]+)\]/g)].map(([, tag]): [string, string] => ["tag", tag!]),
      ...(description ? [["description", description] as [string, string]] : []),
    ],
  });
}

/** Elements with output of the test. */
const OUTPUTS = new Set(["StdOut", "StdErr"]);

type Outcome = { status: CaseStatus; kind?: FailureKind; message: string | null };

function toOutcome(result: Node | undefined, faults: CatchFault[], unknown: UnknownResults): Outcome {
  const failure = faults.find(({ type }) => type === "failure" || type === "error");
  if (!result) return { status: "failed", kind: "error", message: failure?.message ?? "It did not finish" };
  const { success, skips } = result.attributes;
  const hasError = faults.some(({ type }) => type === "error");
  if (success !== "true" && success !== "false") unknown.count(success ?? "");
  if (success !== "true") {
    const message = failure?.message ?? "It passed, although it is marked to fail";
    return { status: "failed", kind: hasError ? "error" : "failure", message };
  }
  const skip = faults.find(({ type }) => type === "skip");
  if ((parseCount(skips) ?? 0) > 0 && !failure) return { status: "skipped", message: skip?.message ?? null };
  return { status: "passed", message: null };
}

type CatchFault = Pick<Fault, "message" | "text"> & { type: "failure" | "error" | "skip" | "warning" };

const TYPES: Record<string, CatchFault["type"]> = {
  Failure: "failure",
  Exception: "error",
  FatalErrorCondition: "error",
  Skip: "skip",
  Warning: "warning",
};

/** Reads the faults of a test and its sections, in document order. */
function readFaults(elements: Node[]): CatchFault[] {
  const faults: CatchFault[] = [];
  let infos: string[] = [];
  const open = elements.toReversed();
  for (let node = open.pop(); node; node = open.pop()) {
    const name = localName(node.name);
    if (name === "Section") for (const inner of elementsOf(node).toReversed()) open.push(inner);
    else if (name === "Info") infos.push(textBelow(node));
    else {
      const fault = readFault(name, node);
      if (fault) faults.push({ ...fault, text: [fault.text, ...infos].join("\n") });
      // Infos precede the assertion that they belong to, and are repeated before the next one.
      infos = [];
    }
  }
  return faults;
}

function readFault(name: string, node: Node): CatchFault | null {
  if (name === "Expression") {
    if (node.attributes["success"] === "true") return null;
    const { message, text } = readExpression(node);
    const isError = child(node, "Exception") !== undefined || child(node, "FatalErrorCondition") !== undefined;
    return { message, text, type: isError ? "error" : "failure" };
  }
  if (!Object.hasOwn(TYPES, name)) return null;
  const written = textBelow(node) || "(no message)";
  const message = name === "Exception" ? `Exception: ${written}` : written;
  return { message, text: `${locationOf(node)}${message}`, type: TYPES[name]! };
}
