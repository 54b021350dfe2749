/** Playwright's JSON report: https://playwright.dev/docs/test-reporters#json-reporter */

import { hiddenFailures, type JsonObject, toAttachments, toCase, toFields, asList, asText, toTexts } from "./fields.ts";
import { FAILED_TO_LOAD, splitPlaywrightTitles, withProject } from "./js_tools.ts";
import type { CaseName, CaseStatus, FailureKind, KnownNames, Report, ReportedCase } from "./report.ts";
import { addTitle, createCutter, type Cutter, disagreement, firstLine, MAX_CASES, toMs, tooManyCases } from "./text.ts";

/** A suite and the fields inherited from the suites around it. */
type Frame = { suite: JsonObject; titles: string[]; file: string };

/** Throws a ReportError when there are too many cases. */
export function readPlaywright(json: unknown): Report {
  const { suites, stats, errors, config } = toFields(json);
  const cutter = createCutter();
  const cases: ReportedCase[] = [];
  const open = asList(suites)
    .map((suite): Frame => ({ suite: toFields(suite), titles: [], file: "" }))
    .reverse();
  for (let frame = open.pop(); frame; frame = open.pop()) {
    const { suite, titles } = frame;
    const [title, file] = [asText(suite.title), asText(suite.file) || frame.file];
    // The outermost suite is the file.
    const isLeftOut = title === "" || title === file;
    const path = isLeftOut ? titles : addTitle(titles, title);
    for (const spec of asList(suite.specs)) {
      for (const test of asList(toFields(spec).tests)) {
        if (cases.length === MAX_CASES) throw tooManyCases();
        cases.push(readTest(toFields(spec), toFields(test), path, file, cutter));
      }
    }
    for (const inner of asList(suite.suites).toReversed()) open.push({ suite: toFields(inner), titles: path, file });
  }
  const rootDir = `${asText(toFields(config).rootDir)}/`;
  const hasRun = cases.some(({ status }) => status !== "skipped");
  const faults = asList(errors).map((error) => readFault(toFields(error), toFields(config), rootDir, hasRun, cutter));
  const { startTime, duration } = toFields(stats);
  const [began, durationMs] = [Date.parse(asText(startTime)), toMs(duration)];
  return {
    format: "playwright",
    suite: null,
    cases: [...cases, ...faults, ...hiddenFailures(cutter, toFields(stats).unexpected, [...cases, ...faults])],
    countsOnly: null,
    partial: false,
    durationMs,
    completedAt: began > 0 && durationMs !== null ? new Date(began + durationMs) : null,
    context: {},
    warnings: [...declaredTotals(toFields(stats), cases), ...cutter.warnings()],
  };
}

/** Status of the test as a whole: an expected failure has passed. */
const STATUSES: Record<string, CaseStatus> = {
  expected: "passed",
  flaky: "passed",
  unexpected: "failed",
  skipped: "skipped",
};

function readTest(spec: JsonObject, test: JsonObject, path: string[], file: string, cutter: Cutter): ReportedCase {
  const results = asList(test.results).map(toFields);
  const last = results.at(-1) ?? {};
  const rawStatus = asText(test.status);
  const status = Object.hasOwn(STATUSES, rawStatus) ? STATUSES[rawStatus]! : toStatus(asText(last.status));
  const failed = status === "failed" ? last : results.find(({ error, errors }) => error || asList(errors).length > 0);
  // A failure that was expected is none.
  const errors = status === "failed" || rawStatus === "flaky" ? toErrors(failed ?? {}) : [];
  const reason = asList(test.annotations)
    .map(toFields)
    .find(({ type }) => type === "skip" || type === "fixme");
  return toCase(cutter, {
    ...toNames(asText(test.projectName), path, asText(spec.title), asText(spec.file) || file),
    line: spec.line,
    status,
    kind: toKind(asText(last.status)),
    flaky: rawStatus === "flaky",
    attempts: Math.max(1, results.length),
    durationMs: toMs(last.duration),
    message: status === "skipped" ? asText(reason?.description) : firstLine(errors[0] ?? ""),
    stack: status === "skipped" ? "" : errors.join("\n\n"),
    output: results.flatMap(({ stdout, stderr }) => [...toOutput(stdout), ...toOutput(stderr)]).join(""),
    properties: toProperties(spec, test),
    attachments: results.flatMap(({ attachments }) => toAttachments(attachments)),
  });
}

function toNames(project: string, path: string[], title: string, file: string): CaseName & KnownNames {
  const titles = splitPlaywrightTitles([...path, title]);
  const suite = withProject(project, titles.suite);
  return {
    suite,
    name: titles.name,
    file,
    // JUnit XML that another tool has rewritten has the titles in one name.
    otherNames: [{ suite: "", name: [...path, title].join(" › "), file }],
  };
}

function toStatus(result: string): CaseStatus {
  return result === "passed" || result === "skipped" ? result : "failed";
}

function toKind(result: string): FailureKind {
  return result === "timedOut" ? "timeout" : result === "interrupted" ? "error" : "failure";
}

/** The stack begins with the message, where there is one. */
function toErrors({ error, errors }: JsonObject): string[] {
  const all = asList(errors).length > 0 ? asList(errors) : error ? [error] : [];
  return all.map(toFields).map(({ stack, message, value }) => asText(stack) || asText(message) || asText(value));
}

const toOutput = (entries: unknown): string[] => asList(entries).map((entry) => asText(toFields(entry).text));

function toProperties(spec: JsonObject, test: JsonObject): [string, string][] {
  const annotations = asList(test.annotations).map(toFields);
  return [
    ["project", asText(test.projectName)],
    ...toTexts(spec.tags).map((tag): [string, string] => ["tag", tag]),
    ...annotations.map(({ type, description }): [string, string] => [asText(type), asText(description)]),
  ].filter((pair): pair is [string, string] => pair[0] !== "" && pair[1] !== "");
}

/** Reads a failure outside of all tests: a file that does not load, so no test runs, or a failed global setup or teardown. */
function readFault(
  error: JsonObject,
  { globalSetup, globalTeardown }: JsonObject,
  rootDir: string,
  hasRun: boolean,
  cutter: Cutter,
): ReportedCase {
  const text = toErrors({ error })[0] ?? "";
  const { file, line } = toFields(error.location);
  const toName = () => {
    if (file && toTexts(globalSetup).includes(asText(file))) return "(global setup failed)";
    if (file && toTexts(globalTeardown).includes(asText(file))) return "(global teardown failed)";
    return file && !hasRun ? FAILED_TO_LOAD : "(error outside of tests)";
  };
  return toCase(cutter, {
    name: toName(),
    file: asText(file).replace(rootDir, ""),
    line,
    status: "failed",
    kind: "error",
    message: firstLine(text),
    stack: text,
  });
}

function declaredTotals({ expected, unexpected, flaky, skipped }: JsonObject, cases: ReportedCase[]): string[] {
  const number = (count: unknown) => (typeof count === "number" && count >= 0 && count < 1e9 ? count : null);
  const [passed, failed, left] = [number(expected), number(unexpected), number(skipped)];
  return disagreement({ passed: passed === null ? null : passed + (number(flaky) ?? 0), failed, skipped: left }, cases);
}
