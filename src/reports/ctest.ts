/** The Test.xml of CTest, of `ctest -T Test`: https://cmake.org/cmake/help/latest/manual/ctest.1.html */

import { child, named, refuseForeign, textBelow, toCase, toFault } from "./fields.ts";
import { type ReportedCase, type CaseStatus, type FailureKind, type Report, ReportError } from "./report.ts";
import {
  clean,
  createCutter,
  type Cutter,
  cut,
  firstLine,
  MAX_CASES,
  msFromSeconds,
  plural,
  toMs,
  tooManyCases,
} from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";
import { createTextInflater, type TextInflater } from "./unpack.ts";

type Node = Bun.XML.Node;

/** CTest writes its build, configure and coverage reports with the same root. `head` is the beginning of the document. */
export const isCtest = (head: string): boolean => /<Testing[\s>]/.test(head);

/** Throws a ReportError when there are no results of tests, or too many. */
export function readCtest(root: Node): Report {
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const inflater = createTextInflater();
  const testing = child(root, "Testing");
  if (!testing) throw new ReportError("its root <Site> holds no <Testing>");
  const tests = named(testing, "Test");
  if (tests.length > MAX_CASES) throw tooManyCases();
  const cases = tests.map((test) => readTest(test, inflater, unknown, cutter));
  if (cases.length === 0) refuseForeign(testing, SECTIONS);
  const missing = findMissing(testing, tests);
  const warnings: string[] = [];
  if (missing.length > 0) {
    const message = `${plural(missing.length, "listed test")} without a result, the first "${cut(missing[0]!, 200)}"`;
    if (cases.some(({ status }) => status === "failed")) warnings.push(message);
    else cases.push(toFault(cutter, { name: "(test run did not finish)", message: clean(message) }));
  }
  const [start, end] = ["StartTestTime", "EndTestTime"].map((name) => Number(textBelow(child(testing, name)) || "NaN"));
  const { Name: host } = root.attributes;
  return {
    format: "ctest",
    suite: null,
    cases,
    countsOnly: null,
    partial: false,
    durationMs: toMs((end! - start!) * 1000),
    completedAt: end! > 0 && end! < 1e11 ? new Date(end! * 1000) : null,
    context: host ? { host } : {},
    warnings: [...warnings, ...unknown.warnings(), ...inflater.warnings(), ...cutter.warnings()],
  };
}

const SECTIONS = new Set([
  "StartDateTime",
  "StartTestTime",
  "TestList",
  "EndDateTime",
  "EndTestTime",
  "ElapsedMinutes",
]);

function findMissing(testing: Node, tests: Node[]): string[] {
  const found = new Set(tests.map((test) => textBelow(child(test, "FullName"))));
  const listed = named(testing, "TestList").flatMap((list) => named(list, "Test"));
  return listed.map(textBelow).filter((name) => !found.has(name));
}

const STATUSES: Record<string, CaseStatus> = { passed: "passed", failed: "failed", notrun: "skipped" };
/** The measurements that CTest makes of each test. */
const STANDARD = new Set([
  ...["Execution Time", "Processors", "Completion Status", "Command Line", "Environment"],
  ...["Exit Code", "Exit Value", "Fail Reason", "Pass Reason"],
]);

function readTest(test: Node, inflater: TextInflater, unknown: UnknownResults, cutter: Cutter): ReportedCase {
  const results = child(test, "Results");
  const measurements = new Map<string, string>();
  const properties: [string, string][] = [];
  for (const measurement of results ? named(results, "NamedMeasurement") : []) {
    const { name = "", type = "" } = measurement.attributes;
    const value = clean(textBelow(child(measurement, "Value")));
    if (STANDARD.has(name)) measurements.set(name, value);
    // Images and files are measurements too.
    else if (/^(?:numeric|text)\//.test(type)) properties.push([name, value]);
  }
  for (const labels of named(test, "Labels"))
    for (const label of named(labels, "Label")) properties.push(["label", textBelow(label)]);
  const output = readOutput(child(child(results, "Measurement"), "Value"), inflater);
  const { status, kind, message } = toOutcome(test.attributes["Status"] ?? "", measurements, output, unknown);
  const isFailed = status === "failed";
  return toCase(cutter, {
    suite: textBelow(child(test, "Path")).replace(/^\.(?:\/|$)/, ""),
    name: textBelow(child(test, "Name")),
    status,
    kind,
    durationMs: msFromSeconds(measurements.get("Execution Time")),
    message,
    stack: isFailed ? output : null,
    output: isFailed ? null : output,
    properties,
  });
}

type Outcome = { status: CaseStatus; kind?: FailureKind; message: string | null };

/** A test that did not run was skipped where it asked for that; else something was missing, and CTest fails. */
function toOutcome(word: string, measurements: Map<string, string>, output: string, unknown: UnknownResults): Outcome {
  const [completion, code, value] = ["Completion Status", "Exit Code", "Exit Value"].map(
    (name) => measurements.get(name) ?? "",
  );
  if (word === "passed") return { status: "passed", message: null };
  if (word === "notrun") {
    if (/^(?:Disabled$|SKIP_)/.test(completion!)) return { status: "skipped", message: completion! };
    return { status: "failed", kind: "error", message: firstLine(output) || completion || "It did not run" };
  }
  if (!Object.hasOwn(STATUSES, word)) unknown.count(word);
  if (/timeout/i.test(code!)) return { status: "failed", kind: "timeout", message: "Timeout" };
  const reason = firstLine(measurements.get("Fail Reason") ?? "");
  // Anything but "Failed" is a signal, an exception, or a process that did not start.
  const isError = code !== "Failed" && code !== "" && code !== "Completed";
  const message = reason || (isError ? code! : value ? `Exit value ${value}` : "It failed");
  return { status: "failed", kind: isError ? "error" : "failure", message };
}

/** CTest writes the characters that XML does not have in this way. */
const ESCAPED = /\[NON-XML-CHAR-0x([\dA-F]{1,2})\]/gi;

function readOutput(value: Node | undefined, inflater: TextInflater): string {
  const text = textBelow(value);
  const { encoding, compression } = value?.attributes ?? {};
  const plain = encoding === "base64" ? inflater.read(text, compression !== undefined) : text;
  return clean(plain.replace(ESCAPED, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))).trimEnd();
}
