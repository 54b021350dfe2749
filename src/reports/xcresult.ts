/** Results of Xcode: the JSON of `xcrun xcresulttool get test-results tests`. */

import { asList, asText, type JsonObject, toCase, toFault, toFields, toTexts } from "./fields.ts";
import type { CaseStatus, FailureKind, Report, ReportedCase } from "./report.ts";
import { createCutter, type Cutter, firstLine, MAX_CASES, msFromSeconds, toMs, tooManyCases } from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

/** A node around test cases, with the titles of the bundle and the suites that lead to it. */
type Container = { node: JsonObject; suite: string; outer: Container | null; hasFailed: boolean };

const STATUSES: Record<string, CaseStatus> = {
  Passed: "passed",
  // The test passed, because it failed as declared.
  "Expected Failure": "passed",
  Failed: "failed",
  Skipped: "skipped",
};
const NAMED = new Set(["Unit test bundle", "UI test bundle", "Test Suite"]);

/** Throws a ReportError when there are too many cases. */
export function readXcresult(json: unknown): Report {
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const cases: ReportedCase[] = [];
  const containers: Container[] = [];
  const add = (one: ReportedCase, container: Container | null) => {
    cases.push(one);
    if (cases.length + containers.length > 2 * MAX_CASES || cases.length > MAX_CASES) throw tooManyCases();
    for (let at = one.status === "failed" ? container : null; at && !at.hasFailed; at = at.outer) at.hasFailed = true;
  };
  const open = toOpen(toFields(json).testNodes, null);
  for (let next = open.pop(); next; next = open.pop()) {
    const { node, outer } = next;
    const type = asText(node.nodeType);
    const suite = outer?.suite ?? "";
    if (type === "Test Case") add(readCase(node, suite, cutter, unknown), outer);
    else if (type === "Failure Message") {
      const text = asText(node.name);
      add(toFault(cutter, { suite, name: "(failure outside of tests)", message: firstLine(text), stack: text }), outer);
    } else {
      const titles = [suite, NAMED.has(type) ? asText(node.name) : ""].filter(Boolean).join(" > ");
      const container = { node, suite: titles.slice(0, MAX_TITLES), outer, hasFailed: false };
      containers.push(container);
      for (const one of toOpen(node.children, container)) open.push(one);
    }
  }
  // Inner containers first, because the outer ones fail with them.
  for (const container of containers.reverse())
    if (isBad(container.node) && !container.hasFailed) {
      const { nodeType, result } = container.node;
      const message = `${asText(nodeType)} has the result "${asText(result)}", but none of its test cases failed`;
      add(toFault(cutter, { suite: container.suite, name: "(suite failed)", message }), container);
    }
  return {
    format: "xcresult",
    suite: null,
    cases,
    countsOnly: null,
    partial: false,
    durationMs: null,
    completedAt: null,
    context: {},
    warnings: [...unknown.warnings(), ...cutter.warnings()],
  };
}

/** Maximum length of joined titles; names are cut further. */
const MAX_TITLES = 2_000;

/** Whether a container of test cases failed. Xcode itself writes "unknown". */
function isBad({ result }: JsonObject): boolean {
  const word = asText(result);
  const isKnown = word === "" || word === "unknown" || Object.hasOwn(STATUSES, word);
  return !isKnown || STATUSES[word] === "failed";
}

const toOpen = (nodes: unknown, outer: Container | null) =>
  asList(nodes)
    .map((node) => ({ node: toFields(node), outer }))
    .reverse();

/** A run of a test case: what is inside it is its own. */
const isRun = ({ nodeType }: JsonObject): boolean => nodeType === "Repetition" || nodeType === "Test Case Run";

type Inside = { messages: string[]; skips: string[]; runs: number; failedRuns: number; hasFailed: boolean };
const EMPTY: Readonly<Inside> = { messages: [], skips: [], runs: 0, failedRuns: 0, hasFailed: false };

/** Reads the children of a test case: devices, configurations and arguments, and the runs in each. */
function readInside(node: JsonObject): Inside {
  if (node.children === undefined) return EMPTY;
  const found: Inside = { messages: [], skips: [], runs: 0, failedRuns: 0, hasFailed: false };
  const open = asList(node.children)
    .map((child) => ({ child: toFields(child), inRun: false, path: "" }))
    .reverse();
  for (let next = open.pop(); next; next = open.pop()) {
    const { child, inRun, path } = next;
    const [type, name] = [asText(child.nodeType), asText(child.name)];
    if (type === "Failure Message") found.messages.push([name, path && `with ${path}`].filter(Boolean).join("\n"));
    else if (type === "Skip Message") found.skips.push(name);
    if (isRun(child)) found.runs++;
    if (child.result === "Failed" && isRun(child)) found.failedRuns++;
    else if (child.result === "Failed" && !inRun && type !== "Failure Message") found.hasFailed = true;
    const below = { inRun: inRun || isRun(child), path: type === "Arguments" ? name : path };
    for (const one of asList(child.children).toReversed()) open.push({ child: toFields(one), ...below });
  }
  return found;
}

function readCase(node: JsonObject, suite: string, cutter: Cutter, unknown: UnknownResults): ReportedCase {
  const { messages, skips, runs, failedRuns, hasFailed } = readInside(node);
  const word = asText(node.result);
  const isKnown = Object.hasOwn(STATUSES, word);
  if (!isKnown) unknown.count(word);
  // If some runs failed and others passed, the result of the test case decides.
  const isContradiction = word === "Passed" && (runs === 0 || failedRuns === 0 || failedRuns === runs);
  const isFailed = !isKnown || (isContradiction && (hasFailed || failedRuns > 0 || messages.length > 0));
  const status = isFailed ? "failed" : STATUSES[word]!;
  const flaky = status === "passed" && failedRuns > 0;
  const isShown = status === "failed" || flaky;
  const { duration, durationInSeconds } = node;
  return toCase(cutter, {
    suite,
    name: asText(node.name) || asText(node.nodeIdentifier),
    status,
    kind: toKind(messages[0] ?? ""),
    flaky,
    attempts: Math.max(1, runs),
    durationMs:
      typeof durationInSeconds === "number" ? toMs(durationInSeconds * 1000) : msFromSeconds(asText(duration)),
    message: isShown ? firstLine(messages[0] ?? "") : status === "skipped" ? (skips[0] ?? asText(node.details)) : null,
    stack: isShown ? messages.join("\n\n") : null,
    properties: toProperties(node),
  });
}

function toProperties({ nodeIdentifier, tags }: JsonObject): [string, string][] {
  const properties = toTexts(tags).map((tag): [string, string] => ["tag", tag]);
  if (asText(nodeIdentifier)) properties.unshift(["identifier", asText(nodeIdentifier)]);
  return properties;
}

function toKind(message: string): FailureKind {
  const text = message.slice(0, 300);
  if (
    /exceeded execution time allowance|Asynchronous wait failed: Exceeded timeout|Time limit was exceeded/i.test(text)
  )
    return "timeout";
  return /^(?:.{0,200}: )?(?:Crash: |Caught error|Test crashed)/i.test(text) ? "error" : "failure";
}
