/** The JSON of Jest's and Vitest's reporters: https://jestjs.io/docs/cli#--json */

import {
  FAULT,
  isObject,
  type JsonObject,
  toCase,
  toEpochMs,
  toFault,
  toFields,
  asList,
  asText,
  toTexts,
  asCount,
} from "./fields.ts";
import { FAILED_TO_LOAD, joinJestSuites, namesInJestJunit, splitVitestTitles } from "./js_tools.ts";
import {
  type CaseName,
  type CaseStatus,
  type KnownNames,
  type Report,
  type ReportedCase,
  ReportError,
} from "./report.ts";
import { createCutter, type Cutter, cut, disagreement, firstLine, MAX_CASES, toMs, tooManyCases } from "./text.ts";

/** Throws a ReportError when there are too many cases. */
export function readJest(json: unknown): Report {
  const report = toFields(json);
  const { testResults, startTime } = report;
  const cutter = createCutter();
  const unknown = new Set<string>();
  const cases: ReportedCase[] = [];
  const faults = new Set<ReportedCase>();
  let isForeign = asList(testResults).length > 0;
  let ended = 0;
  const isVitest = isObject(report.snapshot) && report.numRuntimeErrorTestSuites === undefined;
  for (const one of asList(testResults).map(toFields)) {
    const file = asText(one.name) || asText(one.testFilePath);
    ended = Math.max(ended, toEpochMs(one.endTime) ?? 0);
    // The results that Jest hands to a processor hold the tests under another name.
    const tests = one.assertionResults ?? one.testResults;
    isForeign &&= !Array.isArray(tests);
    const assertions = asList(tests).map(toFields);
    if (cases.length + assertions.length >= MAX_CASES) throw tooManyCases();
    const first = cases.length;
    for (const assertion of assertions) cases.push(readAssertion(assertion, { file, isVitest }, cutter, unknown));
    const [began, done] = [toEpochMs(one.startTime), toEpochMs(one.endTime)];
    const unitMs = began !== null && done !== null && done >= began ? toMs(done - began) : null;
    if (assertions.length > 0 && unitMs !== null) cases[first]!.unitMs = unitMs;
    const isFailed = assertions.some(({ status }) => status === "failed");
    // The file failed although none of its tests did: a hook, an error between tests, or a syntax error.
    if (one.status === "failed" && !isFailed) {
      const fault = readFault(one, file, assertions.length === 0, cutter);
      faults.add(fault);
      cases.push(fault);
    }
  }
  if (isForeign && cases.length === 0)
    throw new ReportError(`no result of its "testResults" has "assertionResults" or "testResults"`);
  const began = toEpochMs(startTime);
  return {
    format: "jest",
    suite: null,
    cases: [...cases, ...contradiction(report, cases, cutter)],
    countsOnly: null,
    partial: false,
    durationMs: began !== null && ended >= began ? toMs(ended - began) : null,
    completedAt: ended > 0 ? new Date(ended) : null,
    context: {},
    warnings: [
      ...[...unknown].slice(0, 5).map((status) => `The status "${status}" is not known and counts as skipped`),
      ...declaredTotals(
        report,
        cases.filter((one) => !faults.has(one)),
      ),
      ...cutter.warnings(),
    ],
  };
}

function declaredTotals({ numTotalTests, numFailedTests }: JsonObject, cases: ReportedCase[]): string[] {
  return disagreement({ tests: asCount(numTotalTests), failed: asCount(numFailedTests) }, cases);
}

/** Detects a failure that no case shows: Jest also fails below a coverage threshold. */
function contradiction({ success, numFailedTests }: JsonObject, cases: ReportedCase[], cutter: Cutter): ReportedCase[] {
  const failed = cases.filter(({ status }) => status === "failed").length;
  const declared = asCount(numFailedTests) ?? 0;
  if (declared > failed) {
    const message = `The report declares ${declared} failed, but ${failed} of its test cases failed`;
    return [toFault(cutter, { name: FAULT, message })];
  }
  if (success !== false || failed > 0) return [];
  const message = 'The report says "success": false, but none of its test cases failed: it may be a coverage threshold';
  return [toFault(cutter, { name: "(test run failed)", message })];
}

const STATUSES: Record<string, CaseStatus> = { passed: "passed", failed: "failed" };
const SKIPPED = ["pending", "skipped", "todo", "disabled", "focused"];

type Source = { file: string; isVitest: boolean };

function readAssertion(
  assertion: JsonObject,
  { file, isVitest }: Source,
  cutter: Cutter,
  unknown: Set<string>,
): ReportedCase {
  const rawStatus = asText(assertion.status);
  const status = Object.hasOwn(STATUSES, rawStatus) ? STATUSES[rawStatus]! : "skipped";
  if (status === "skipped" && !SKIPPED.includes(rawStatus)) unknown.add(cut(rawStatus, 50));
  // Jest keeps the failures of retried attempts apart, Vitest with those of the last one.
  const failures = toTexts(assertion.failureMessages);
  const retried = [...toTexts(assertion.retryReasons), ...toTexts(assertion.retryMessages)];
  const texts = (failures.length > 0 ? failures : retried).map(withTimeout);
  const invocations = typeof assertion.invocations === "number" ? Math.trunc(assertion.invocations) : 1;
  const before = status === "passed" ? Math.max(failures.length, toTexts(assertion.retryReasons).length) : 0;
  const attempts = Math.min(1_000, Math.max(1, invocations, before + 1));
  return toCase(cutter, {
    ...toNames(
      toTexts(assertion.ancestorTitles),
      asText(assertion.title) || asText(assertion.fullName),
      file,
      isVitest,
    ),
    line: toFields(assertion.location).line,
    status,
    kind: TIMED_OUT.test(cut(texts[0] ?? "", 500)) ? "timeout" : "failure",
    flaky: status === "passed" && attempts > 1,
    attempts,
    durationMs: toMs(assertion.duration),
    message: firstLine(texts[0] ?? ""),
    stack: texts.join("\n\n"),
    properties: toTexts(assertion.tags).map((tag): [string, string] => ["tag", tag]),
  });
}

function toNames(suites: string[], name: string, file: string, isVitest: boolean): CaseName & KnownNames {
  const { suite, name: title } = isVitest
    ? splitVitestTitles([...suites, name])
    : { suite: joinJestSuites(suites), name };
  return {
    suite,
    name: title,
    file,
    ...(isVitest
      ? { otherNames: [{ suite: "", name: [...suites, name].join(" > "), file }] }
      : { otherNames: namesInJestJunit(suites, name, file), keepOtherNames: true }),
  };
}

/** Vitest 3 writes the name of an internal error in place of the message of a timeout. */
const withTimeout = (text: string): string =>
  text.replace(/^Error: STACK_TRACE_ERROR(?=\n|$)/, "Error: Test timed out");

const TIMED_OUT = /\b(?:exceeded timeout of|timed out (?:in|after)|timeout of) \d+ ?m?s\b|^Error: Test timed out\n/i;

function readFault(
  { message, failureMessage }: JsonObject,
  file: string,
  isEmpty: boolean,
  cutter: Cutter,
): ReportedCase {
  const text = asText(message) || asText(failureMessage);
  // Jest puts a headline before what happened.
  const details = text.replace(/^\s*●[^\n]*\n/, "");
  return toCase(cutter, {
    name: isEmpty ? FAILED_TO_LOAD : "(file failed)",
    file,
    status: "failed",
    kind: "error",
    message: firstLine(details || text) || "The file failed, though none of its tests did",
    stack: text,
  });
}
