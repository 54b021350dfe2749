/** Cucumber Messages, the lines of Cucumber's formatter "message": https://github.com/cucumber/messages */

import { FINISHED_BADLY, joinAttempts, toStepKind, toStepMessage } from "./cucumber_steps.ts";
import { asList, asText, type JsonObject, toCase, toFault, toFields } from "./fields.ts";
import { FAILED_TO_LOAD } from "./js_tools.ts";
import { firstJsonLine, readJsonLines } from "./json_lines.ts";
import { type CaseStatus, type Report, type ReportedCase, ReportError } from "./report.ts";
import { createCutter, type Cutter, firstLine, MAX_CASES, plural, toMs, tooManyCases } from "./text.ts";
import type { WrittenAttachment } from "./text.ts";
import { createUnknownResults } from "./unknown_results.ts";

type Step = { id: string; hidden: boolean; text: string };
type TestCase = { pickle: JsonObject; steps: Step[]; open: Attempt | null; result: ReportedCase | null };
/** Lives until it ends: a large report has many. */
type Attempt = {
  testCase: TestCase;
  results: Map<string, JsonObject>;
  output: string[];
  attachments: WrittenAttachment[];
};

/** One run of Cucumber; ids are unique only within it. */
type Run = {
  features: Map<string, string>;
  /** The lines of scenarios and rows of examples by their ids. */
  lines: Map<string, unknown>;
  pickles: Map<string, JsonObject>;
  testCases: Map<string, TestCase>;
  attempts: Map<string, Attempt>;
  faults: { name: string; file?: string; line?: unknown; text: string }[];
  started: JsonObject;
  finished: JsonObject | null;
};

export function isCucumberMessages(text: string): boolean {
  const first = firstJsonLine(text);
  return /^\{\s?"(?:meta|source|parseError|gherkinDocument|pickle|testRunStarted)":/.test(first) && ENVELOPE.test(text);
}

const ENVELOPE = /^\{\s?"(?:meta":\s?\{.{0,5000}"protocolVersion|gherkinDocument|pickle|testRunStarted|parseError)"/m;

/** Throws a ReportError when no line is a message of Cucumber. */
export function readCucumberMessages(text: string): Report {
  const runs: Run[] = [];
  const cutter = createCutter();
  const reading = { cutter, unknown: createUnknownResults(), withoutResult: 0 };
  let count = 0;
  const { warnings, isCut } = readJsonLines(text, (envelope) => {
    if (envelope.meta !== undefined || runs.length === 0) runs.push(newRun());
    readEnvelope(runs.at(-1)!, envelope, reading);
    if (envelope.testCase !== undefined || envelope.testCaseStarted !== undefined) count++;
    if (count + runs.length > 2 * MAX_CASES) throw tooManyCases();
  });
  if (runs.length === 0) throw new ReportError("none of its lines is a message of Cucumber");
  const cases = runs.flatMap((run) => toCases(run, reading));
  if (cases.length > MAX_CASES) throw tooManyCases();
  const [began, ended] = [toTime(runs[0]!.started), toTime(runs.at(-1)!.finished ?? {})];
  const { withoutResult } = reading;
  return {
    format: "cucumber_messages",
    suite: null,
    cases,
    countsOnly: null,
    partial: isCut || runs.some(({ finished }) => finished === null),
    durationMs: began !== null && ended !== null ? toMs(ended - began) : null,
    completedAt: ended === null ? null : new Date(ended),
    context: {},
    warnings: [
      ...warnings,
      ...reading.unknown.warnings(),
      ...(withoutResult > 0
        ? [`${plural(withoutResult, "scenario")} with a step without a result counted as skipped`]
        : []),
      ...cutter.warnings(),
    ],
  };
}

const newRun = (): Run => ({
  ...{ features: new Map(), lines: new Map(), pickles: new Map(), testCases: new Map(), attempts: new Map() },
  ...{ faults: [], started: {}, finished: null },
});

function readEnvelope(run: Run, envelope: JsonObject, reading: Reading): void {
  const kind = firstKey(envelope);
  const message = toFields(envelope[kind]);
  const attempt = run.attempts.get(asText(message.testCaseStartedId));
  if (kind === "gherkinDocument") readDocument(run, message);
  else if (kind === "pickle") run.pickles.set(asText(message.id), message);
  else if (kind === "testCase") {
    const id = asText(message.id);
    if (!run.testCases.has(id)) run.testCases.set(id, toTestCase(run, message));
  } else if (kind === "testCaseStarted") startAttempt(run, message, reading);
  else if (kind === "testStepFinished")
    attempt?.results.set(asText(message.testStepId), toFields(message.testStepResult));
  else if (kind === "testCaseFinished" && attempt) {
    endAttempt(run, attempt, true, reading);
    run.attempts.delete(asText(message.testCaseStartedId));
  } else if (kind === "attachment" || kind === "externalAttachment") attach(attempt, message);
  else if (kind === "testRunStarted") run.started = message;
  else if (kind === "testRunFinished") run.finished = message;
  else if (kind === "testRunHookFinished") {
    const { status, message: text } = toFields(message.result);
    if (FINISHED_BADLY.has(asText(status).toLowerCase()))
      run.faults.push({ name: "(hook failed)", text: asText(text) });
  } else if (kind === "parseError") {
    const { uri, location } = toFields(message.source);
    const { line } = toFields(location);
    run.faults.push({ name: FAILED_TO_LOAD, file: toFile(uri), line, text: asText(message.message) });
  }
}

function firstKey(envelope: JsonObject): string {
  for (const key in envelope) return key;
  return "";
}

const toFile = (uri: unknown): string => asText(uri).replace(/^file:(?:\/\/)?/, "");

/** Scenarios are in a feature and in the rules of a feature, not deeper. */
function readDocument({ features, lines }: Run, { uri, feature }: JsonObject): void {
  const { name, children } = toFields(feature);
  features.set(asText(uri), asText(name));
  const outer = asList(children).map(toFields);
  const inner = outer.flatMap(({ rule }) => asList(toFields(rule).children)).map(toFields);
  for (const scenario of [...outer, ...inner].map((one) => toFields(one.scenario))) {
    const rows = asList(scenario.examples).flatMap((one) => asList(toFields(one).tableBody));
    for (const { id, location } of [scenario, ...rows.map(toFields)]) lines.set(asText(id), toFields(location).line);
  }
}

function toTestCase({ pickles }: Run, { pickleId, testSteps }: JsonObject): TestCase {
  const pickle = pickles.get(asText(pickleId)) ?? {};
  const texts = new Map(asList(pickle.steps).map((one) => [asText(toFields(one).id), asText(toFields(one).text)]));
  const steps = asList(testSteps)
    .map(toFields)
    .map(({ id, pickleStepId }) => ({
      id: asText(id),
      hidden: pickleStepId === undefined,
      text: texts.get(asText(pickleStepId)) ?? "",
    }));
  return { pickle, steps, open: null, result: null };
}

function startAttempt(run: Run, { id, testCaseId }: JsonObject, reading: Reading): void {
  const known = run.testCases.get(asText(testCaseId));
  const testCase = known ?? { pickle: {}, steps: [], open: null, result: null };
  if (!known) run.testCases.set(asText(testCaseId), testCase);
  if (testCase.open) endAttempt(run, testCase.open, false, reading);
  testCase.open = { testCase, results: new Map(), output: [], attachments: [] };
  run.attempts.set(asText(id), testCase.open);
}

function endAttempt(run: Run, attempt: Attempt, isWhole: boolean, reading: Reading): void {
  const { testCase } = attempt;
  const result = readAttempt(run, testCase, attempt, isWhole, reading);
  testCase.result = testCase.result ? joinAttempts(testCase.result, result) : result;
  if (testCase.open === attempt) testCase.open = null;
}

function attach(attempt: Attempt | undefined, { mediaType, body, contentEncoding, fileName, url }: JsonObject): void {
  const isLog = mediaType === "text/x.cucumber.log+plain" || mediaType === "text/uri-list";
  if (isLog) return void attempt?.output.push(asText(body));
  const text = typeof body === "string" ? body : "";
  const base64 = contentEncoding === "BASE64" ? text : Buffer.from(text).toString("base64");
  attempt?.attachments.push({ name: asText(fileName), path: asText(url), contentType: asText(mediaType), base64 });
}

type Reading = { cutter: Cutter; unknown: ReturnType<typeof createUnknownResults>; withoutResult: number };

function toCases(run: Run, reading: Reading): ReportedCase[] {
  const { cutter } = reading;
  const cases = [...run.testCases.values()].map((one) => {
    if (one.open) endAttempt(run, one.open, false, reading);
    return one.result ?? readAttempt(run, one, null, false, reading);
  });
  const faults = run.faults.map(({ name, file, line, text }) =>
    toFault(cutter, { name, file, line, message: firstLine(text) || name, stack: text }),
  );
  const { success, message } = run.finished ?? {};
  const isRed = [...cases, ...faults].some(({ status }) => status === "failed");
  if (run.finished === null)
    faults.push(toFault(cutter, { name: "(run did not finish)", message: "The run did not finish" }));
  else if (success !== true && !isRed) {
    const stack = asText(message);
    faults.push(toFault(cutter, { message: firstLine(stack) || "The report says that the run failed", stack }));
  }
  return [...cases, ...faults];
}

/** `null` is a test case that never began. */
function readAttempt(
  run: Run,
  { pickle, steps: known }: TestCase,
  attempt: Attempt | null,
  isWhole: boolean,
  reading: Reading,
): ReportedCase {
  const results = attempt?.results ?? new Map<string, JsonObject>();
  const steps = known.length > 0 ? known : [...results.keys()].map((id) => ({ id, hidden: false, text: "" }));
  const words = steps.map(({ id }) => asText(results.get(id)?.status).toLowerCase());
  const index = words.findIndex((word) => FINISHED_BADLY.has(word) || !KNOWN.has(word));
  const [step, word = ""] = [steps[index], words[index]];
  if (step && !FINISHED_BADLY.has(word)) reading.unknown.count(word.toUpperCase());
  const isCut = attempt !== null && !isWhole;
  const ran = steps.some(({ hidden }) => !hidden) && words.every((word) => word === "passed");
  if (attempt && isWhole && !step && words.some((word) => word === "" || word === "unknown")) reading.withoutResult++;
  const status: CaseStatus = step || isCut ? "failed" : ran && attempt ? "passed" : "skipped";
  const stack = step ? asText(results.get(step.id)?.message) : "";
  let durationMs: number | null = null;
  for (const { duration } of results.values()) {
    const ms = toMsOf(toFields(duration));
    if (ms !== null) durationMs = (durationMs ?? 0) + ms;
  }
  const nodeLines = asList(pickle.astNodeIds).map((id) => run.lines.get(asText(id)));
  return toCase(reading.cutter, {
    suite: (run.features.get(asText(pickle.uri)) ?? "").trim(),
    name: asText(pickle.name),
    file: toFile(pickle.uri),
    line: nodeLines.at(-1) ?? toFields(pickle.location).line,
    status,
    kind: step ? toStepKind(step.hidden, word, stack) : "error",
    durationMs: toMs(durationMs),
    message: step
      ? firstLine(stack) || toStepMessage(step.hidden, word, step.text)
      : isCut
        ? "The scenario did not finish"
        : null,
    stack,
    output: attempt?.output.join("\n"),
    properties: asList(pickle.tags).map((tag): [string, string] => ["tag", asText(toFields(tag).name)]),
    attachments: attempt?.attachments,
  });
}

const KNOWN = new Set([...FINISHED_BADLY, "passed", "skipped", "unknown", ""]);

function toMsOf({ seconds, nanos }: JsonObject): number | null {
  return typeof seconds === "number" && typeof nanos === "number" ? seconds * 1000 + nanos / 1e6 : null;
}

function toTime({ timestamp }: JsonObject): number | null {
  const time = toMsOf(toFields(timestamp)) ?? 0;
  return time >= Date.UTC(2000) && time < Date.UTC(2200) ? Math.round(time) : null;
}
