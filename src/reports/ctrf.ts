/** CTRF, the Common Test Report Format: https://ctrf.io */

import {
  hiddenFailures,
  type JsonObject,
  isObject,
  toAttachments,
  toCase,
  toEpochMs,
  toFields,
  asText,
  toTexts,
  asCount,
} from "./fields.ts";
import { type ReportedCase, type CaseStatus, type FailureKind, type Report, ReportError } from "./report.ts";
import {
  clean,
  createCutter,
  type Cutter,
  cut,
  disagreement,
  MAX_CASES,
  toMs,
  tooManyCases,
  type WrittenAttachment,
} from "./text.ts";

export function isCtrf(json: unknown): boolean {
  const { reportFormat, results } = toFields(json);
  const { tool, summary, tests } = toFields(results);
  return reportFormat === "CTRF" || (isObject(tool) && isObject(summary) && Array.isArray(tests));
}

/** Throws a ReportError if there is no list of tests, or if an item is no test. */
export function readCtrf(json: unknown): Report {
  const { summary, tests, environment } = toFields(toFields(json).results);
  if (!Array.isArray(tests)) throw new ReportError(`"results.tests" is not a list`);
  if (tests.length > MAX_CASES) throw tooManyCases();
  const cutter = createCutter();
  const unknown = new Set<string>();
  const cases = tests.map((test: unknown, at) => {
    if (!isObject(test)) throw new ReportError(`"results.tests.${at}" is not an object`);
    return readTest(test, cutter, unknown);
  });
  const { start, stop } = toFields(summary);
  const [began, ended] = [toEpochMs(start), toEpochMs(stop)];
  return {
    format: "ctrf",
    suite: null,
    cases: [...cases, ...hiddenFailures(cutter, toFields(summary).failed, cases)],
    countsOnly: null,
    partial: false,
    durationMs: began !== null && ended !== null ? toMs(ended - began) : null,
    completedAt: ended === null ? null : new Date(ended),
    context: toContext(toFields(environment)),
    warnings: [
      ...declaredTotals(toFields(summary), cases),
      ...[...unknown].slice(0, 5).map((status) => `The status "${status}" is not one of CTRF and counts as skipped`),
      ...cutter.warnings(),
    ],
  };
}

function readTest(test: JsonObject, cutter: Cutter, unknown: Set<string>): ReportedCase {
  const raw = asText(test.status);
  const { status, kind } = toStatus(raw, asText(test.rawStatus));
  if (status === "skipped" && !["skipped", "pending", "other"].includes(raw)) unknown.add(cut(raw, 50));
  const earlier = Array.isArray(test.retryAttempts) ? test.retryAttempts.map(toFields) : [];
  const retries = typeof test.retries === "number" && test.retries > 0 ? Math.min(Math.trunc(test.retries), 1000) : 0;
  const failedBefore = earlier.some((attempt) => attempt.status === "failed");
  const flaky = test.flaky === true || failedBefore || (retries > 0 && test.flaky !== false);
  const failure = test.message || test.trace ? test : (earlier.find(({ message, trace }) => message || trace) ?? test);
  const [began, ended] = [toEpochMs(test.start), toEpochMs(test.stop)];
  return toCase(cutter, {
    suite: toSuite(test.suite),
    name: asText(test.name),
    file: asText(test.filePath),
    line: test.line,
    status,
    kind,
    flaky,
    attempts: 1 + Math.max(retries, earlier.length),
    durationMs: toMs(test.duration) ?? (began !== null && ended !== null ? toMs(ended - began) : null),
    message: asText(failure.message),
    stack: asText(failure.trace),
    output: [...toTexts(test.stdout), ...toTexts(test.stderr)].join("\n"),
    properties: toProperties(test, raw),
    attachments: [...earlier, test].flatMap(({ attachments, screenshot }) => [
      ...toAttachments(attachments),
      ...toScreenshot(screenshot),
    ]),
  });
}

function toStatus(raw: string, finer: string): { status: CaseStatus; kind: FailureKind | null } {
  if (raw === "passed") return { status: "passed", kind: null };
  // The last four are not in the standard, but a failure must never be read as anything else.
  if (!/^(?:failed|error|broken|time-?d?out)$/i.test(raw)) return { status: "skipped", kind: null };
  const detail = `${raw} ${finer}`;
  return {
    status: "failed",
    kind: /time-?d?out/i.test(detail) ? "timeout" : /error|broken/i.test(detail) ? "error" : "failure",
  };
}

/** A list since CTRF 0.0.2, a text "outer > inner" before. */
function toSuite(suite: unknown): string {
  const names = Array.isArray(suite) ? toTexts(suite) : asText(suite).split(" > ");
  return names
    .map((name) => name.trim())
    .filter(Boolean)
    .join(" > ");
}

function toProperties(test: JsonObject, status: string): [string, string][] {
  const { tags, browser, device, labels } = test;
  return [
    ...(["passed", "failed", "skipped"].includes(status) ? [] : [["status", status] as [string, string]]),
    ...toTexts(tags).map((tag): [string, string] => ["tag", tag]),
    ...Object.entries({ browser, device, ...toFields(labels) }).map(([key, value]): [string, string] => [
      clean(key),
      asText(value),
    ]),
  ].filter((pair): pair is [string, string] => pair[1] !== "");
}

/** A picture in base64, which may be written as a `data:` address. */
function toScreenshot(screenshot: unknown): WrittenAttachment[] {
  if (typeof screenshot !== "string" || screenshot === "") return [];
  const [head = "", contentType = "image/png"] = /^data:([\w/+.-]{1,100});base64,/.exec(screenshot) ?? [];
  return [{ name: "screenshot", contentType, base64: screenshot.slice(head.length) }];
}

function toContext({ branchName, commit, buildUrl, testEnvironment }: JsonObject): Report["context"] {
  const texts = { branch: branchName, commit, buildUrl, environment: testEnvironment };
  return Object.fromEntries(
    Object.entries(texts).flatMap(([key, value]) => {
      const text = asText(value).trim();
      return text ? [[key, cut(text, 2000)]] : [];
    }),
  );
}

function declaredTotals(
  { tests, passed, failed, skipped, pending, other }: JsonObject,
  cases: ReportedCase[],
): string[] {
  const left = [skipped, pending, other].map(asCount).filter((count) => count !== null);
  const declared = { tests: asCount(tests), passed: asCount(passed), failed: asCount(failed) };
  return disagreement({ ...declared, skipped: left.length ? left.reduce((sum, one) => sum + one) : null }, cases);
}
