/** Playwright's blob report, JSON lines of events in a zip archive: https://playwright.dev/docs/test-reporters#blob-reporter */

import { asList, asText, type JsonObject, toFault, toFields } from "./fields.ts";
import { readJsonLines } from "./json_lines.ts";
import { readPlaywright } from "./playwright.ts";
import { MAX_LEVELS, nestedTooDeeply, type Report, ReportError } from "./report.ts";
import { createCutter, MAX_CASES, tooManyCases } from "./text.ts";
import type { Resources } from "./zip.ts";

/** By their text, because the events of a test repeat them. */
type Annotations = Map<string, unknown>;
/** A test, with the fields that the JSON report has. */
type Test = { projectName: string; expectedStatus: string; annotations: Annotations; results: JsonObject[] };

type Run = {
  config: JsonObject;
  suites: JsonObject[];
  tests: Map<string, Test>;
  /** Attempts by their id. */
  results: Map<string, JsonObject>;
  errors: unknown[];
  stats: JsonObject;
  /** `null` until the run ends. */
  endStatus: string | null;
};

const FIRST_LINE = /^\s*\{"method":"onBlobReportMetadata"/;

export const isPlaywrightBlob = (text: string): boolean => FIRST_LINE.test(text);

/** Reads the events as the JSON report that Playwright would make of them. `resources` has the attached files. */
export function readPlaywrightBlob(text: string, resources: Resources | null): Report {
  const run: Run = {
    ...{ config: {}, suites: [], tests: new Map(), results: new Map(), errors: [], stats: {} },
    endStatus: null,
  };
  const { warnings } = readJsonLines(text, ({ method, params }) => {
    const read = typeof method === "string" && Object.hasOwn(EVENTS, method) ? EVENTS[method] : undefined;
    read?.(run, toFields(params), resources);
  });
  if (run.tests.size === 0 && run.errors.length === 0 && run.endStatus === null)
    throw new ReportError("it lists no tests of Playwright");
  for (const test of run.tests.values())
    Object.assign(test, { status: statusOf(test), annotations: [...test.annotations.values()] });
  const { stats, config, suites, errors, endStatus } = run;
  const report = readPlaywright({ config, suites, errors, stats });
  const isRed = report.cases.some(({ status }) => status === "failed");
  // Only the end says so if flaky tests fail the run, or if a signal stopped it.
  const fault = toFault(createCutter(), { name: "(test run failed)", message: `Playwright ended as "${endStatus}"` });
  return {
    ...report,
    format: "playwright_blob",
    cases: isRed || endStatus === "passed" || endStatus === null ? report.cases : [...report.cases, fault],
    partial: endStatus === null,
    warnings: [...warnings, ...report.warnings],
  };
}

type ReadEvent = (run: Run, params: JsonObject, resources: Resources | null) => void;

const EVENTS: Record<string, ReadEvent> = {
  onConfigure: (run, { config }) => void (run.config = toFields(config)),
  onProject: (run, { project }) => {
    const { name, suites } = toFields(project);
    for (const suite of asList(suites)) run.suites.push(toSuite(run, asText(name), toFields(suite), 0));
  },
  onBegin: (run, { config, projects }) => {
    // Playwright up to version 1.39 lists the projects here.
    if (config !== undefined) run.config = toFields(config);
    for (const project of asList(projects)) EVENTS["onProject"]!(run, { project }, null);
  },
  onTestBegin: (run, { testId, result }) => {
    const attempt = { ...toFields(result), stdout: [], stderr: [], attachments: [] };
    run.results.set(asText(toFields(result).id), attempt);
    run.tests.get(asText(testId))?.results.push(attempt);
  },
  onTestEnd: (run, params, resources) => {
    const [declared, ended] = [toFields(params.test), toFields(params.result)];
    const test = run.tests.get(asText(declared.testId));
    const attempt = run.results.get(asText(ended.id));
    if (!test || !attempt) return;
    test.expectedStatus = asText(declared.expectedStatus);
    // Since version 1.52 the attempt has those that the test adds while it runs.
    annotate(test, [...asList(declared.annotations), ...asList(ended.annotations)]);
    append(run, ended.id, "attachments", asList(ended.attachments).map(toAttachment(resources)));
    Object.assign(attempt, ended, { attachments: attempt.attachments, errors: asList(ended.errors).map(withSnippet) });
  },
  onAttach: (run, { resultId, attachments }, resources) =>
    append(run, resultId, "attachments", asList(attachments).map(toAttachment(resources))),
  onStdIO: (run, { resultId, type, data, isBase64 }) => {
    const text = isBase64 === true ? Buffer.from(asText(data), "base64").toString() : data;
    append(run, resultId, type === "stderr" ? "stderr" : "stdout", [{ text }]);
  },
  onError: (run, { error }) => void run.errors.push(withSnippet(error)),
  onEnd: (run, { result }) => {
    const { startTime, duration, status } = toFields(result);
    const began = new Date(typeof startTime === "number" ? startTime : Number.NaN);
    run.stats = { startTime: began.getTime() > 0 ? began.toISOString() : "", duration };
    run.endStatus = asText(status);
  },
};

function append(run: Run, resultId: unknown, field: "attachments" | "stdout" | "stderr", more: unknown[]): void {
  const list = run.results.get(asText(resultId))?.[field];
  if (Array.isArray(list)) for (const one of more) list.push(one);
}

function annotate({ annotations }: Test, more: readonly unknown[]): void {
  for (const one of more) annotations.set(JSON.stringify(one), one);
}

/** Up to version 1.43 the tests and the suites of a suite are in lists of their own. */
function toSuite(run: Run, projectName: string, suite: JsonObject, level: number): JsonObject {
  if (level === MAX_LEVELS) throw nestedTooDeeply("values");
  const entries = [...asList(suite.entries), ...asList(suite.tests), ...asList(suite.suites)].map(toFields);
  const isTest = ({ testId }: JsonObject) => testId !== undefined;
  return {
    title: asText(suite.title),
    file: fileOf(suite),
    specs: entries.filter(isTest).map((entry) => toSpec(run, projectName, entry)),
    suites: entries.filter((entry) => !isTest(entry)).map((entry) => toSuite(run, projectName, entry, level + 1)),
  };
}

function toSpec(run: Run, projectName: string, entry: JsonObject): JsonObject {
  if (run.tests.size >= MAX_CASES) throw tooManyCases();
  const test: Test = { projectName, expectedStatus: "passed", annotations: new Map(), results: [] };
  annotate(test, asList(entry.annotations));
  run.tests.set(asText(entry.testId), test);
  const { title, tags } = entry;
  const line = toFields(entry.location).line;
  return { title, file: fileOf(entry), line, tags: asList(tags).map(withoutAt), tests: [test] };
}

/** The JSON report has tags without the sign that they begin with in the source. */
const withoutAt = (tag: unknown): string => asText(tag).replace(/^@/, "");

/** The JSON report has the lines of the source between the message and the frames. */
function withSnippet(error: unknown): JsonObject {
  const { message, stack, snippet, ...rest } = toFields(error);
  const [text, trace] = [asText(message), asText(stack)];
  if (!snippet || !trace.startsWith(text)) return { message, stack, ...rest };
  return { message, stack: `${text}\n\n${asText(snippet)}\n${trace.slice(text.length).replace(/^\n/, "")}`, ...rest };
}

const fileOf = ({ location }: JsonObject): string => asText(toFields(location).file).replaceAll("\\", "/");

/** Returns the status of a test as Playwright computes it from all its attempts. */
function statusOf({ expectedStatus, results }: Test): string {
  let [expected, unexpected, skipped] = [0, 0, 0];
  for (const { status } of results) {
    if (status === undefined) unexpected++;
    else if (status === "skipped") skipped += expectedStatus === "skipped" ? 1 : 0;
    else if (status === expectedStatus) expected++;
    else if (status !== "interrupted") unexpected++;
  }
  if (unexpected === 0) return expected > 0 ? "expected" : "skipped";
  return expected === 0 && skipped === 0 ? "unexpected" : "flaky";
}

const toAttachment = (resources: Resources | null) => (attachment: unknown) => {
  const { name, contentType, path, base64, body } = toFields(attachment);
  const content = base64 ?? body ?? (resources && resources(asText(path))?.toString("base64"));
  return { name, contentType, ...(typeof content === "string" ? { body: content } : { path }) };
};
