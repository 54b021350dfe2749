/** The event stream of Swift Testing: https://github.com/swiftlang/swift-testing/blob/main/Documentation/ABI/JSON.md */

import { asList, asText, type JsonObject, toCase, toFault, toFields, toTexts } from "./fields.ts";
import { firstJsonLine, readJsonLines } from "./json_lines.ts";
import { type CaseStatus, type Report, type ReportedCase, ReportError } from "./report.ts";
import { createCutter, type Cutter, firstLine, MAX_CASES, toMs, tooManyCases } from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

/** One start of a test; `end` is the symbol of its end. */
type Attempt = { issues: string[]; began: number | null; ended: number | null; end: string | null };
type Test = { id: string; record: TestRecord; attempts: Attempt[]; skipped: string | null };
/** The fields of a test's record that are kept; keeping the whole record took a quarter of the time. */
type TestRecord = { name: string; file: string; line: unknown; properties: [string, string][] | undefined };
type Run = {
  tests: Map<string, Test>;
  suites: Set<string>;
  outsideIssues: string[];
  end: JsonObject | null;
  began: number | null;
};

export function isSwiftTesting(text: string): boolean {
  const first = firstJsonLine(text);
  return /^\{\s?"(?:kind|payload|version)":/.test(first) && RECORD.test(text);
}

const RECORD = /"kind"\s?:\s?"(?:runStarted|testStarted|testEnded|runEnded|function|suite)"/;

/** Throws a ReportError when no line is a record. */
export function readSwiftTesting(text: string): Report {
  const runs: Run[] = [];
  let [count, ended] = [0, 0];
  const { warnings, isCut } = readJsonLines(text, ({ kind, payload }) => {
    if (kind !== "test" && kind !== "event") return;
    const fields = toFields(payload);
    // The records of tests precede the start of their run.
    if (runs.length === 0 || runs.at(-1)!.end !== null)
      runs.push({ tests: new Map(), suites: new Set(), outsideIssues: [], end: null, began: null });
    const run = runs.at(-1)!;
    if (kind === "test" && fields.kind === "suite") run.suites.add(asText(fields.id));
    else if (kind === "test") enter(run, asText(fields.id)).record = readRecord(fields);
    const time = toTime(fields);
    if (kind === "event") readEvent(run, fields, time);
    if (time !== null && time > ended) ended = time;
    if (kind === "test" || fields.kind === "testStarted" || fields.kind === "runEnded") count++;
    if (count > 2 * MAX_CASES) throw tooManyCases();
  });
  if (runs.length === 0) throw new ReportError("none of its lines is a record of Swift Testing");
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const cases = runs.flatMap((run) => toCases(run, cutter, unknown));
  if (cases.length > MAX_CASES) throw tooManyCases();
  const began = runs[0]!.began;
  const isTime = ended >= Date.UTC(2000) && ended < Date.UTC(2200);
  return {
    format: "swift_testing",
    suite: null,
    cases,
    countsOnly: null,
    partial: isCut || runs.some(({ end }) => end === null),
    durationMs: began === null ? null : toMs(ended - began),
    completedAt: isTime ? new Date(ended) : null,
    context: {},
    warnings: [...warnings, ...unknown.warnings(), ...cutter.warnings()],
  };
}

const NO_RECORD: TestRecord = { name: "", file: "", line: null, properties: undefined };

function readRecord(record: JsonObject): TestRecord {
  const { filePath, _filePath, fileID, line } = toFields(record.sourceLocation);
  const file = asText(filePath) || asText(_filePath) || asText(fileID);
  return { name: asText(record.name), file, line, properties: toProperties(record) };
}

function enter({ tests }: Run, id: string): Test {
  const known = tests.get(id);
  if (known) return known;
  const test = { id, record: NO_RECORD, attempts: [], skipped: null };
  tests.set(id, test);
  return test;
}

function toTime({ instant }: JsonObject): number | null {
  const { since1970 } = toFields(instant);
  return typeof since1970 === "number" && since1970 > 0 && since1970 < 1e11 ? Math.round(since1970 * 1000) : null;
}

const toMessages = ({ messages }: JsonObject): JsonObject[] => asList(messages).map(toFields);
const toMessageText = (event: JsonObject): string => toTexts(toMessages(event).map(({ text }) => text)).join("\n");

function readEvent(run: Run, event: JsonObject, time: number | null): void {
  const { kind } = event;
  const id = asText(event.testID);
  if (kind === "runStarted") run.began = time;
  if (kind === "runEnded") run.end = event;
  if (kind === "issueRecorded" && isFailure(toFields(event.issue))) {
    const issue = toIssue(event);
    const attempt = run.suites.has(id) || id === "" ? undefined : enter(run, id).attempts.at(-1);
    if (attempt) attempt.issues.push(issue);
    else run.outsideIssues.push(issue);
  }
  if (id === "" || run.suites.has(id)) return;
  if (kind === "testStarted") enter(run, id).attempts.push({ issues: [], began: time, ended: null, end: null });
  if (kind === "testSkipped" || kind === "testCancelled") enter(run, id).skipped = toMessageText(event) || "Skipped";
  if (kind !== "testEnded") return;
  const attempt = enter(run, id).attempts.at(-1);
  if (!attempt) return;
  attempt.ended = time;
  attempt.end = asText(toFields(asList(event.messages)[0]).symbol);
}

/** Known issues and warnings fail no test. */
const isFailure = ({ isKnown, isFailure, severity }: JsonObject): boolean =>
  typeof isFailure === "boolean" ? isFailure : isKnown !== true && severity !== "warning";

/** Returns the text of an issue with the arguments of a parameterised test and the location. */
function toIssue(event: JsonObject): string {
  const { fileID, line } = toFields(toFields(event.issue).sourceLocation ?? event.sourceLocation);
  const argument = asText(toFields(event._testCase).displayName);
  const location = asText(fileID) ? [`at ${asText(fileID)}:${asText(line)}`] : [];
  const text = toMessageText(event) || "An issue was recorded";
  return [text, ...(argument ? [`with ${argument}`] : []), ...location].join("\n");
}

function toCases({ tests, outsideIssues, end }: Run, cutter: Cutter, unknown: UnknownResults): ReportedCase[] {
  const cases = [...tests.values()].map((test) => readTest(test, cutter, unknown));
  const faults = outsideIssues.map((stack) =>
    toFault(cutter, { name: "(issue outside of tests)", message: firstLine(stack), stack }),
  );
  const isRed = [...cases, ...faults].some(({ status }) => status === "failed");
  if (end === null) faults.push(toFault(cutter, { name: "(run did not finish)", message: "The run did not finish" }));
  else if (!isRed && toMessages(end).some(({ symbol }) => symbol === "fail"))
    faults.push(
      toFault(cutter, { message: firstLine(toMessageText(end)) || "The run failed", stack: toMessageText(end) }),
    );
  return [...cases, ...faults];
}

const GOOD_ENDS = new Set(["pass", "passWithKnownIssue", "passWithWarnings", "warning", "default", "skip", ""]);

function readTest({ id, record, attempts, skipped }: Test, cutter: Cutter, unknown: UnknownResults): ReportedCase {
  const results = attempts.map(({ issues, end }): CaseStatus => {
    if (end !== null && end !== "fail" && !GOOD_ENDS.has(end)) unknown.count(end);
    return issues.length > 0 || end === null || !GOOD_ENDS.has(end) ? "failed" : "passed";
  });
  // A test that is skipped does not end, and one that is cancelled does.
  const isSkipped = attempts.length === 0 || (skipped !== null && attempts.at(-1)!.issues.length === 0);
  const status = isSkipped ? "skipped" : results.at(-1)!;
  const flaky = status === "passed" && results.includes("failed");
  const last = attempts.at(-1);
  const shown = flaky ? attempts[results.lastIndexOf("failed")] : last;
  const texts = isSkipped ? [] : (shown?.issues ?? []);
  const isTimeout = /^Time limit was exceeded/.test(texts[0] ?? "");
  const isCut = status === "failed" && last!.end === null;
  const { suite, name } = toNames(id, record.name);
  return toCase(cutter, {
    suite,
    name,
    file: record.file,
    line: record.line,
    status,
    kind: isTimeout ? "timeout" : isCut && texts.length === 0 ? "error" : "failure",
    flaky,
    attempts: Math.max(1, attempts.length),
    durationMs: last && last.began !== null && last.ended !== null ? toMs(last.ended - last.began) : null,
    message: isSkipped ? skipped : firstLine(texts[0] ?? "") || (isCut ? "The test did not finish" : null),
    stack: texts.join("\n\n"),
    properties: record.properties,
  });
}

function toProperties({ displayName, tags }: JsonObject): [string, string][] | undefined {
  if (displayName === undefined && tags === undefined) return undefined;
  const properties = toTexts(tags).map((tag): [string, string] => ["tag", tag.replace(/^\.?/, "")]);
  if (asText(displayName)) properties.unshift(["title", asText(displayName)]);
  return properties;
}

const PLACE = /^.{1,500}:\d{1,9}:\d{1,9}$/s;

/** Builds names like Swift's own JUnit XML: "Shop.CartTests/Inner/adds()/CartTests.swift:5:3" has module and suites joined with dots. */
function toNames(id: string, name: string): { suite: string; name: string } {
  const last = id.lastIndexOf("/");
  const path = last !== -1 && PLACE.test(id.slice(last + 1)) ? id.slice(0, last) : id;
  const [suite, own] =
    name !== "" && path.endsWith(name)
      ? [path.slice(0, path.length - name.length), name]
      : [path.slice(0, path.lastIndexOf("/") + 1), path.slice(path.lastIndexOf("/") + 1)];
  return { suite: suite.replace(/[/.]$/, "").replaceAll("/", "."), name: own };
}
