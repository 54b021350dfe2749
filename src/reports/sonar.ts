/** SonarQube's generic test execution report: https://docs.sonarsource.com */

import { elementsOf, named, refuseForeign, textBelow, toCase, toFault } from "./fields.ts";
import { type ReportedCase, type CaseStatus, type FailureKind, type Report } from "./report.ts";
import { createCutter, type Cutter, firstLine, localName, MAX_CASES, toMs, tooManyCases } from "./text.ts";
import { FAILURES, SKIPS } from "./junit_outcome.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

type Node = Bun.XML.Node;

/** Throws a ReportError when there are too many cases. */
export function readSonar(root: Node): Report {
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const cases: ReportedCase[] = [];
  for (const file of named(root, "file")) {
    const path = file.attributes["path"] ?? "";
    const tests = named(file, "testCase");
    if (cases.length + Math.max(1, tests.length) > MAX_CASES) throw tooManyCases();
    for (const test of tests) cases.push(readTest(test, path, unknown, cutter));
    // jest-sonar writes this of a file that fails to load.
    if (tests.length === 0)
      cases.push(
        toFault(cutter, { name: "(file without test cases)", file: path, message: "The file holds no test case" }),
      );
  }
  if (cases.length === 0) refuseForeign(root, new Set(["file"]));
  return {
    format: "sonar",
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

const OUTCOMES: Record<string, { status: CaseStatus; kind?: FailureKind }> = {
  error: { status: "failed", kind: "error" },
  failure: { status: "failed", kind: "failure" },
  skipped: { status: "skipped" },
};

/** A test case without an element inside has passed. */
function readTest(test: Node, file: string, unknown: UnknownResults, cutter: Cutter): ReportedCase {
  const { name = "", duration } = test.attributes;
  const outcomes = elementsOf(test).map((node) => {
    const word = localName(node.name);
    const known = Object.hasOwn(OUTCOMES, word) ? OUTCOMES[word] : SKIPS.has(word) ? OUTCOMES.skipped : undefined;
    if (!known && !FAILURES.has(word)) unknown.count(word);
    return { node, ...(known ?? { status: "failed" as const }) };
  });
  const outcome = outcomes.find(({ status }) => status === "failed") ?? outcomes[0];
  const texts = outcomes.map(({ node }) => textBelow(node)).filter(Boolean);
  const [message, stack] = [outcome?.node.attributes["message"]?.trim() ?? "", texts.join("\n\n")];
  return toCase(cutter, {
    name,
    file,
    status: outcome?.status ?? "passed",
    kind: outcome?.kind,
    durationMs: /^\d{1,12}$/.test(duration ?? "") ? toMs(Number(duration)) : null,
    // Reporters that have no message write the name of the exception, or repeat that of the test case.
    message: outcome && (isMessage(message, name) ? message : firstLine(stack) || message),
    stack: outcome ? stack : null,
  });
}

const isMessage = (message: string, name: string): boolean => !/^(?:Error|error|)$/.test(message) && message !== name;
