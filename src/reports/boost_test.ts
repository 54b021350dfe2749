/** XML of Boost.Test: its log (`TestLog`) and its report (`TestResult`): https://www.boost.org/libs/test */

import {
  elementsOf,
  hiddenFailures,
  named,
  refuseForeign,
  textBelow,
  toCase,
  toFault,
  type RawCase,
} from "./fields.ts";
import { type ReportedCase, type CaseStatus, type FailureKind, type Report } from "./report.ts";
import {
  createCutter,
  cut,
  disagreement,
  localName,
  MAX_CASES,
  MAX_COUNT,
  MAX_NAME,
  parseCount,
  toMs,
  tooManyCases,
} from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

type Node = Bun.XML.Node;

/** A test case, or a fault outside of test cases, with the names of the suites around it, without the test module. */
type Found = { node: Node; suite: string };

/** Throws a ReportError when there are too many cases. */
export function readBoostTest(root: Node): Report {
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const isLog = localName(root.name) === "TestLog";
  const { tests, looseErrors } = find(root);
  const cases = tests.map(({ node, suite }) =>
    toCase(cutter, { suite, ...(isLog ? readLogged(node) : readResult(node, unknown)) }),
  );
  // With the log level "error", only the errors are written, without the test cases that they belong to.
  for (const { node, suite } of looseErrors)
    cases.push(toFault(cutter, { name: "(error outside of a test case)", suite, ...readError(node) }));
  if (cases.length > MAX_CASES) throw tooManyCases();
  const modules = named(root, "TestSuite");
  if (cases.length === 0) refuseForeign(root, new Set(["TestSuite"]));
  const counts = isLog ? null : countAll(modules);
  const faults = isLog || (cases.length === 0 && counts?.failed) ? [] : readStated(modules, cases, cutter);
  const isListed = cases.length + faults.length > 0 || counts === null;
  const declared = counts ?? { passed: null, failed: null };
  return {
    format: "boost",
    suite: modules.length === 1 ? cutter.cutOrNull("suite", modules[0]!.attributes["name"] ?? null) : null,
    cases: [...cases, ...faults],
    // The report levels "short" and "confirm" list no test cases.
    countsOnly: isListed ? null : counts,
    partial: false,
    durationMs: null,
    completedAt: null,
    context: {},
    // Test cases that are disabled are counted as skipped, but not listed.
    warnings: [
      ...(isListed ? disagreement({ passed: declared.passed, failed: declared.failed }, cases) : []),
      ...unknown.warnings(),
      ...cutter.warnings(),
    ],
  };
}

const ERRORS: Record<string, FailureKind> = { Error: "failure", FatalError: "failure", Exception: "error" };

function find(root: Node): { tests: Found[]; looseErrors: Found[] } {
  const [tests, looseErrors]: [Found[], Found[]] = [[], []];
  const open: (Found & { depth: number })[] = [{ node: root, suite: "", depth: 0 }];
  for (let item = open.pop(); item; item = open.pop()) {
    const { node, suite, depth } = item;
    const name = localName(node.name);
    if (name === "TestCase") tests.push(item);
    else if (Object.hasOwn(ERRORS, name)) looseErrors.push(item);
    else if (depth === 0 || name === "TestSuite") {
      const path = depth < 2 ? "" : [suite, node.attributes["name"] ?? ""].filter(Boolean).join(" > ");
      const inside = suite.length > MAX_NAME ? suite : cut(path, MAX_NAME + 1);
      for (const inner of elementsOf(node).toReversed()) open.push({ node: inner, suite: inside, depth: depth + 1 });
    }
  }
  return { tests, looseErrors };
}

const NOTES = new Set(["Warning", "Message"]);

type CaseFields = Omit<RawCase, "suite">;

/** The log does not say which errors a test expects: each fails its test. */
function readLogged(test: Node): CaseFields {
  const { name = "", file, line, skipped, reason } = test.attributes;
  const elements = elementsOf(test);
  const errors = elements.filter((node) => Object.hasOwn(ERRORS, localName(node.name)));
  const notes = elements.filter((node) => NOTES.has(localName(node.name)));
  const [first] = errors;
  const time = parseCount(textBelow(elements.findLast((node) => localName(node.name) === "TestingTime")));
  const isSkipped = errors.length === 0 && skipped === "yes";
  const texts = (nodes: Node[]) => nodes.map((node) => readError(node).stack).join("\n\n");
  return {
    name,
    file,
    line,
    status: first ? "failed" : isSkipped ? "skipped" : "passed",
    ...(first ? { kind: readError(first).kind } : {}),
    durationMs: time === null ? null : toMs(time / 1000),
    message: first ? readError(first).message : isSkipped ? (reason ?? null) : null,
    stack: texts(errors),
    output: texts(notes),
  };
}

function readError(node: Node): { message: string; stack: string; kind: FailureKind } {
  const { file, line } = node.attributes;
  const name = localName(node.name);
  const message = textBelow(node) || name;
  const context = named(node, "Context").flatMap((inner) => named(inner, "Frame"));
  const checkpoints = named(node, "LastCheckpoint").map(
    (inner) => `last checkpoint: ${locationOf(inner)}${textBelow(inner)}`,
  );
  const stack = [locationOf({ attributes: { file, line } }) + message, ...context.map(textBelow), ...checkpoints].join(
    "\n",
  );
  const kind = /\btimeout\b/i.test(message) && name === "Exception" ? "timeout" : (ERRORS[name] ?? "failure");
  return { message, stack, kind };
}

const locationOf = ({ attributes: { file, line } }: { attributes: Record<string, string | undefined> }): string =>
  file && line !== "0" ? `${file}:${line ?? "?"}: ` : "";

const RESULTS: Record<string, { status: CaseStatus; kind?: FailureKind }> = {
  passed: { status: "passed" },
  failed: { status: "failed" },
  aborted: { status: "failed", kind: "error" },
  "timed-out": { status: "failed", kind: "timeout" },
  skipped: { status: "skipped" },
};

function readResult(test: Node, unknown: UnknownResults): CaseFields {
  const { name = "", result = "", assertions_failed: failed } = test.attributes;
  const isKnown = Object.hasOwn(RESULTS, result);
  if (!isKnown) unknown.count(result);
  const outcome = isKnown ? RESULTS[result]! : { status: "failed" as const };
  return {
    name,
    ...outcome,
    message: outcome.status === "failed" ? `${cut(result, 50)}: ${failed ?? "?"} failed assertions` : null,
  };
}

/** Sums the totals of all test modules; null if a module has none. A test that timed out is not counted among the failed ones. */
function countAll(modules: Node[]): { passed: number; failed: number; skipped: number } | null {
  const all = { passed: 0, failed: 0, skipped: 0 };
  for (const { attributes } of modules) {
    const [passed, warned, failed, skipped, late] = [
      "passed",
      "passed_with_warnings",
      "failed",
      "skipped",
      "timed_out",
    ].map((name) => parseCount(attributes[`test_cases_${name}`]));
    if (typeof passed !== "number" || typeof failed !== "number") return null;
    all.passed += passed + (warned ?? 0);
    all.failed += failed + (late ?? 0);
    all.skipped += skipped ?? 0;
  }
  const isCount = modules.length > 0 && all.passed + all.failed + all.skipped <= MAX_COUNT;
  return isCount ? all : null;
}

/** A module that has failed without a test case that has. */
function readStated(modules: Node[], cases: ReportedCase[], cutter: ReturnType<typeof createCutter>): ReportedCase[] {
  const counts = countAll(modules);
  const hidden = hiddenFailures(cutter, counts?.failed, cases);
  if (hidden.length > 0 || cases.some(({ status }) => status === "failed")) return hidden;
  const red = modules.find(({ attributes: { result } }) => result !== "passed" && result !== "skipped");
  return red
    ? [toFault(cutter, { message: `The test module has the result "${cut(red.attributes["result"] ?? "", 50)}"` })]
    : [];
}
