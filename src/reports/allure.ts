/** Allure's results, a file each: https://allurereport.org/docs/how-it-works-test-result-file/ */

import { type JsonObject, toCase, toEpochMs, toFields, asList, asText } from "./fields.ts";
import type { ReportedCase, CaseStatus, FailureKind, Report } from "./report.ts";
import { createCutter, firstLine, joinAttachments, toMs, type WrittenAttachment } from "./text.ts";

type AllureResult = {
  result: ReportedCase;
  /** An id that results of one test share; "" if the file has none. */
  historyId: string;
  /** Milliseconds since 1970; null if the file has no time. */
  start: number | null;
  stop: number | null;
  warnings: string[];
};

const STATUSES: Record<string, CaseStatus> = { passed: "passed", failed: "failed", broken: "failed" };

/** Whether the file lies beside Allure results and holds none itself: fixtures, or errors outside of tests. */
export const isAllureContainer = (json: unknown): boolean => {
  const { uuid, status, children, errors, attachments } = toFields(json);
  const isGlobal = uuid === undefined && Array.isArray(errors) && Array.isArray(attachments);
  return isGlobal || (uuid !== undefined && status === undefined && Array.isArray(children));
};

/** Whatever an Allure directory holds. */
export function readAllure(json: unknown): AllureResult[] {
  if (!isAllureContainer(json)) return [readResult(json)];
  const { errors, attachments } = toFields(json);
  return asList(errors).map((error, index) =>
    readResult({ ...toFields(error), ...OUTSIDE, statusDetails: error, attachments: index === 0 ? attachments : [] }),
  );
}

const OUTSIDE = { name: "(error outside of tests)", status: "broken" };

function readResult(json: unknown): AllureResult {
  const fields = toFields(json);
  const cutter = createCutter();
  const labels = asList(fields.labels)
    .map(toFields)
    .map(({ name, value }): [string, string] => [asText(name), asText(value)]);
  const label = (wanted: string) => labels.find(([name]) => name === wanted)?.[1] ?? "";
  const rawStatus = asText(fields.status);
  const status = Object.hasOwn(STATUSES, rawStatus) ? STATUSES[rawStatus]! : "skipped";
  const { message, trace } = toFields(fields.statusDetails);
  const [start, stop] = [toEpochMs(fields.start), toEpochMs(fields.stop)];
  const suites = ["parentSuite", "suite", "subSuite"].map(label).filter(Boolean);
  const parameters = asList(fields.parameters)
    .map(toFields)
    .filter(({ excluded }) => excluded !== true)
    .map(({ name, value }): [string, string] => [asText(name), asText(value)]);
  const stack = asText(trace);
  const result = toCase(cutter, {
    suite: suites.length > 0 ? suites.join(" > ") : label("testClass") || label("class"),
    name: toName(asText(fields.name), parameters),
    status,
    kind: toKind(rawStatus, asText(message)),
    durationMs: start !== null && stop !== null ? toMs(stop - start) : null,
    message: firstLine(asText(message)) || firstLine(stack),
    stack: status === "failed" ? stack || asText(message) : "",
    properties: toProperties(fields, labels, parameters, status, rawStatus),
    attachments: toWrittenAttachments(fields),
  });
  return { result, historyId: asText(fields.historyId), start, stop, warnings: cutter.warnings() };
}

/** Runs of one test with other parameters are other test cases. */
const toName = (name: string, parameters: [string, string][]): string =>
  parameters.length === 0 ? name : `${name} [${parameters.map(([key, value]) => `${key}=${value}`).join(", ")}]`;

function toKind(status: string, message: string): FailureKind {
  if (/\btime(?:d )?out\b/i.test(message.slice(0, 300))) return "timeout";
  return status === "broken" ? "error" : "failure";
}

const WORDS_OF_MACHINES = new Set(["host", "thread", "language", "framework", "parentSuite", "suite", "subSuite"]);

function toProperties(
  { links }: JsonObject,
  labels: [string, string][],
  parameters: [string, string][],
  status: CaseStatus,
  rawStatus: string,
): [string, string][] {
  return [
    ...(status === "skipped" && rawStatus !== "skipped" ? [["status", rawStatus] as [string, string]] : []),
    ...labels.filter(([name]) => !WORDS_OF_MACHINES.has(name) && !name.startsWith("_")),
    ...parameters,
    ...asList(links)
      .map(toFields)
      .map(({ type, url }): [string, string] => [asText(type) || "link", asText(url)]),
  ].filter(([name, value]) => name !== "" && value !== "");
}

/** Collects the attachments of the result and of its steps. */
function toWrittenAttachments(result: JsonObject): WrittenAttachment[] {
  const found: WrittenAttachment[] = [];
  const open = [result];
  for (let step = open.pop(); step; step = open.pop()) {
    for (const { name, type, source } of asList(step.attachments).map(toFields))
      found.push({ name: asText(name), path: asText(source), contentType: asText(type) });
    open.push(...asList(step.steps).map(toFields).reverse());
  }
  return found;
}

/** Results of one test, which are its attempts, become one; the last one to begin counts. */
export function joinAllureResults(results: readonly AllureResult[]): Report {
  const groups = Map.groupBy(results, ({ historyId }, index) => historyId || index);
  const cases = [...groups.values()].map((group): ReportedCase => {
    const attempts = group.toSorted((a, b) => (a.start ?? 0) - (b.start ?? 0)).map(({ result }) => result);
    const last = attempts.at(-1)!;
    const failed = attempts.findLast(({ status }) => status === "failed");
    const flaky = last.status === "passed" && failed !== undefined;
    const attachments = joinAttachments(attempts);
    return {
      ...last,
      ...(attachments ? { attachments } : {}),
      flaky,
      attempts: attempts.length,
      message: flaky ? failed.message : last.message,
      stack: flaky ? failed.stack : last.stack,
    };
  });
  const starts = results.flatMap(({ start }) => start ?? []);
  const stops = results.flatMap(({ stop }) => stop ?? []);
  const ended = stops.reduce((latest, stop) => Math.max(latest, stop), 0);
  const began = starts.reduce((first, start) => Math.min(first, start), ended);
  return {
    format: "allure",
    suite: null,
    cases,
    countsOnly: null,
    partial: false,
    durationMs: ended > 0 ? toMs(ended - began) : null,
    completedAt: ended > 0 ? new Date(ended) : null,
    context: {},
    warnings: [...new Set(results.flatMap(({ warnings }) => warnings))].slice(0, 20),
  };
}
