/** The XML of xUnit.net, versions 2 and 3: https://xunit.net/docs/format-xml-v2 */

import { hiddenFailures, named, refuseForeign, textBelow, toCase } from "./fields.ts";
import { type ReportedCase, type CaseStatus, type Report } from "./report.ts";
import {
  createCutter,
  type Cutter,
  disagreement,
  firstLine,
  localName,
  MAX_CASES,
  msFromSeconds,
  tooManyCases,
} from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

type Node = Bun.XML.Node;

/** Throws a ReportError when there are too many cases. */
export function readXunit(root: Node): Report {
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const cases: ReportedCase[] = [];
  const assemblies = localName(root.name) === "assembly" ? [root] : named(root, "assembly");
  for (const assembly of assemblies) {
    // Version 1 calls its collections classes.
    const collections = [...named(assembly, "collection"), ...named(assembly, "class")];
    for (const test of collections.flatMap((collection) => named(collection, "test"))) {
      if (cases.length === MAX_CASES) throw tooManyCases();
      cases.push(readTest(test, cutter, unknown));
    }
  }
  if (cases.length === 0) for (const one of new Set([root, ...assemblies])) refuseForeign(one, SECTIONS);
  const failed = sum(assemblies, "failed");
  const totals = disagreement({ tests: sum(assemblies, "total"), failed }, cases);
  const faults = assemblies.flatMap((assembly) => readFaults(assembly, cutter));
  const durations = assemblies.map(({ attributes }) => msFromSeconds(attributes["time"]));
  const ends = assemblies.map(({ attributes }) => Date.parse(attributes["finish-rtf"] ?? ""));
  return {
    format: "xunit",
    suite: null,
    cases: [...cases, ...faults, ...hiddenFailures(cutter, failed, [...cases, ...faults])],
    countsOnly: null,
    partial: false,
    durationMs: durations.includes(null) ? null : durations.reduce<number>((all, ms) => all + ms!, 0),
    completedAt:
      ends.length > 0 && ends.every((end) => end > 0) ? new Date(ends.reduce((a, b) => Math.max(a, b))) : null,
    context: {},
    warnings: [...totals, ...unknown.warnings(), ...cutter.warnings()],
  };
}

/** The elements of a root and of an assembly. */
const SECTIONS = new Set(["assembly", "collection", "class", "errors", "environment", "traits"]);

function sum(assemblies: Node[], name: string): number | null {
  const numbers = assemblies.map(({ attributes }) => Number(attributes[name] ?? Number.NaN));
  return numbers.every((number) => number >= 0 && number < 1e9) ? numbers.reduce((all, one) => all + one, 0) : null;
}

const STATUSES: Record<string, CaseStatus> = { Pass: "passed", Fail: "failed", Skip: "skipped", NotRun: "skipped" };

function readTest(test: Node, cutter: Cutter, unknown: UnknownResults): ReportedCase {
  const { name = "", type = "", result = "", time, "source-file": file, "source-line": line } = test.attributes;
  const failure = named(test, "failure")[0];
  const isKnown = Object.hasOwn(STATUSES, result);
  if (!isKnown) unknown.count(result);
  const status = isKnown && !failure ? STATUSES[result]! : "failed";
  const reason = named(test, "reason")[0];
  const [message, stack] = failure
    ? [textBelow(named(failure, "message")[0]), textBelow(named(failure, "stack-trace")[0])]
    : ["", ""];
  const exception = failure?.attributes["exception-type"] ?? "";
  return toCase(cutter, {
    suite: type,
    name: type !== "" && name.startsWith(`${type}.`) ? name.slice(type.length + 1) : name,
    file: file ?? null,
    line,
    status,
    kind: /timeout/i.test(exception) ? "timeout" : "failure",
    durationMs: msFromSeconds(time),
    message: message || (reason ? textBelow(reason) : exception),
    stack: failure ? [exception && `${exception}: ${message}`, stack].filter(Boolean).join("\n") : "",
    output: textBelow(named(test, "output")[0]),
    properties: named(test, "traits")
      .flatMap((traits) => named(traits, "trait"))
      .map(({ attributes }) => [attributes["name"] ?? "", attributes["value"] ?? ""]),
  });
}

/** Reads failures outside of tests: fixtures, clean-ups, the assembly itself. */
function readFaults(assembly: Node, cutter: Cutter): ReportedCase[] {
  return named(assembly, "errors")
    .flatMap((errors) => named(errors, "error"))
    .slice(0, 1_000)
    .map((error) => {
      const failure = named(error, "failure")[0];
      const message = failure ? textBelow(named(failure, "message")[0]) : "";
      return toCase(cutter, {
        suite: error.attributes["name"] ?? "",
        name: `(${error.attributes["type"] || "assembly"} failed)`,
        status: "failed",
        kind: "error",
        message: firstLine(message),
        stack: (failure && textBelow(named(failure, "stack-trace")[0])) || message,
      });
    });
}
