/** JSON lines of Dart's and Flutter's tests: https://github.com/dart-lang/test/blob/master/pkgs/test/doc/json_reporter.md */

import { asText, isObject, type JsonObject, toCase, toFields, asList } from "./fields.ts";
import { type ReportedCase, type FailureKind, type Report, ReportError } from "./report.ts";
import { parseLine } from "./json.ts";
import { createCutter, type Cutter, cut, linesOf, MAX_CASES, MAX_NAME, plural, toMs, tooManyCases } from "./text.ts";

type Failure = { message: string; stack: string; isFailure: boolean };

type Test = {
  /** The name including the names of all groups, as the report has it. */
  fullName: string;
  name: string;
  suite: string;
  file: string | null;
  line: unknown;
  isLoading: boolean;
  began: number | null;
  ended: number | null;
  /** The result in `testDone`. */
  result: string | null;
  hidden: boolean;
  skipped: boolean;
  skipReason: string;
  retries: number;
  /** Failures of the last attempt. An error may also follow the end of the test. */
  failures: Failure[];
  output: string[];
};

/** One start of the runner; ids are unique only within it. */
type Run = {
  suites: Map<string, string>;
  groups: Map<string, { name: string; path: string }>;
  tests: Map<string, Test>;
  declaredSuites: number | null;
  /** `undefined` where there is no such event. */
  success: boolean | null | undefined;
  ended: number;
};

/** Lines of other programs are passed over. Throws a ReportError when none is an event of the runner. */
export function readDart(text: string): Report {
  const runs: Run[] = [];
  let count = 0;
  for (const line of linesOf(text)) {
    const event = toEvent(line);
    if (event === null) continue;
    if (event.type === "start" || runs.length === 0) runs.push(newRun());
    readEvent(runs.at(-1)!, event);
    if (event.type === "testStart" && ++count > MAX_CASES) throw tooManyCases();
    if (runs.length > MAX_CASES) throw tooManyCases();
  }
  if (runs.length === 0) throw new ReportError("none of its lines is an event of Dart's test runner");
  const cutter = createCutter();
  const cases: ReportedCase[] = [];
  const warnings: string[] = [];
  for (const run of runs) {
    const own = [...run.tests.values()].filter(isShown).map((test) => toResult(test, cutter));
    const failed = own.filter(({ status }) => status === "failed").length;
    const fault = toFault(run, failed > 0);
    cases.push(...own);
    if (fault) cases.push(toCase(cutter, { ...fault, status: "failed", kind: "error" }));
    if (run.success === true && failed > 0)
      warnings.push(`The report says that all tests succeeded, but ${plural(failed, "test")} failed`);
    if (run.declaredSuites !== null && run.declaredSuites > run.suites.size)
      warnings.push(`The report declares ${plural(run.declaredSuites, "suite")}, but tells of ${run.suites.size}`);
  }
  if (cases.length > MAX_CASES) throw tooManyCases();
  return {
    format: "dart",
    suite: null,
    cases,
    countsOnly: null,
    partial: runs.some(({ success }) => typeof success !== "boolean"),
    durationMs: toMs(runs.reduce((sum, { ended }) => sum + ended, 0)),
    completedAt: null,
    context: {},
    warnings: [...warnings, ...cutter.warnings()],
  };
}

const newRun = (): Run => ({
  suites: new Map(),
  groups: new Map(),
  tests: new Map(),
  declaredSuites: null,
  success: undefined,
  ended: 0,
});

/** Returns `null` for lines of other programs; flutter's own events are lists. */
function toEvent(line: string): JsonObject | null {
  if (!line.trimStart().startsWith("{")) return null;
  const event = parseLine(line);
  return isObject(event) && typeof event.type === "string" && EVENTS.has(event.type) ? event : null;
}

const EVENTS = new Set([
  "start",
  "allSuites",
  "suite",
  "debug",
  "group",
  "testStart",
  "print",
  "error",
  "testDone",
  "done",
]);

function readEvent(run: Run, event: JsonObject): void {
  const time = typeof event.time === "number" && event.time >= 0 ? event.time : null;
  run.ended = Math.max(run.ended, time ?? 0);
  const test = run.tests.get(asText(event.testID));
  if (event.type === "suite") {
    const { id, path } = toFields(event.suite);
    run.suites.set(asText(id), cut(asText(path), MAX_PATH));
  } else if (event.type === "group") addGroup(run, toFields(event.group));
  else if (event.type === "testStart") {
    const { id } = toFields(event.test);
    run.tests.set(asText(id), toTest(run, toFields(event.test), time));
  } else if (event.type === "allSuites")
    run.declaredSuites = typeof event.count === "number" && Number.isSafeInteger(event.count) ? event.count : null;
  else if (event.type === "done") run.success = typeof event.success === "boolean" ? event.success : null;
  else if (test && event.type === "print") addMessage(test, asText(event.messageType), asText(event.message));
  else if (test && event.type === "error") {
    const [message, trace] = [asText(event.error).trim(), asText(event.stackTrace).trimEnd()];
    test.failures.push({ message, stack: `${message}\n${trace}`.trim(), isFailure: event.isFailure === true });
  } else if (test && event.type === "testDone") {
    Object.assign(test, { result: asText(event.result), hidden: event.hidden === true, ended: time });
    test.skipped = event.skipped === true;
  }
}

/** Each name repeats those of the groups around it. */
const without = (outer: string, name: string): string =>
  outer !== "" && name.startsWith(`${outer} `) ? name.slice(outer.length + 1) : name;

function addGroup(run: Run, { id, name, parentID }: JsonObject): void {
  const outer = run.groups.get(asText(parentID)) ?? { name: "", path: "" };
  const own = cut(asText(name), MAX_NAME + 1);
  const path = [outer.path, without(outer.name, own)].filter(Boolean).join(" > ");
  run.groups.set(asText(id), { name: own || outer.name, path: cut(path, MAX_NAME + 1) });
}

function toTest(run: Run, test: JsonObject, began: number | null): Test {
  const fullName = asText(test.name);
  const groups = asList(test.groupIDs);
  const { name: outer, path } = run.groups.get(asText(groups.at(-1))) ?? { name: "", path: "" };
  const file = run.suites.get(asText(test.suiteID)) || null;
  // A test declared outside of the file itself, for example by a wrapper around test(), also has the line in the file.
  const isElsewhere = test.root_line === undefined && file !== null && !isSame(asText(test.url), file);
  return {
    fullName,
    name: without(outer, fullName),
    suite: path,
    file,
    line: isElsewhere ? null : (test.root_line ?? test.line),
    isLoading: groups.length === 0 && fullName.startsWith("loading "),
    began,
    ended: null,
    result: null,
    hidden: false,
    skipped: false,
    skipReason: "",
    retries: 0,
    failures: [],
    output: [],
  };
}

function isSame(url: string, file: string): boolean {
  const path = file.replaceAll("\\", "/").replace(/^\.\//, "");
  return url.endsWith(path) || url.endsWith(encodeURI(path.toWellFormed()));
}

function addMessage(test: Test, type: string, message: string): void {
  if (type === "skip") test.skipReason = message.replace(/^Skip: ?/, "");
  else if (message === `Retry: ${test.fullName}`) {
    test.retries++;
    test.failures = [];
  } else test.output.push(message);
}

/** Loading a file and hooks are reported as tests, which only count if they failed. */
const isShown = (test: Test): boolean => !test.hidden || test.failures.length > 0;

function toResult(test: Test, cutter: Cutter): ReportedCase {
  const unfinished = test.result === null;
  const failed = unfinished || test.result !== "success" || test.failures.length > 0;
  const [first] = test.failures;
  const time = test.began === null || test.ended === null ? null : toMs(test.ended - test.began);
  return toCase(cutter, {
    suite: test.suite,
    name: test.isLoading ? "(file failed to load)" : test.name,
    file: test.file,
    line: test.line,
    status: failed ? "failed" : test.skipped ? "skipped" : "passed",
    kind: toKind(test, unfinished),
    flaky: test.retries > 0,
    attempts: test.retries + 1,
    durationMs: time,
    message: failed ? first?.message || (unfinished ? "It did not finish" : null) : test.skipReason,
    stack: failed ? test.failures.map(({ stack }) => stack).join("\n\n") : null,
    output: test.output.join("\n").trimEnd(),
  });
}

function toKind({ failures, isLoading, result }: Test, unfinished: boolean): FailureKind {
  if (failures.some(({ message }) => TIMED_OUT.test(cut(message, 500)))) return "timeout";
  if (unfinished || isLoading) return "error";
  return failures.some(({ isFailure }) => !isFailure) || (failures.length === 0 && result !== "failure")
    ? "error"
    : "failure";
}

/** Characters; each test compares its own with it. */
const MAX_PATH = 4_096;

const TIMED_OUT = /^TimeoutException\b|\bTest timed out after \d/;

/** A run that did not end, or that says of itself that it failed, must not be green. */
function toFault({ success }: Run, hasFailed: boolean): { name: string; message: string } | null {
  const name = "(test run did not finish)";
  if (success === undefined) return { name, message: 'There is no "done" event: the run broke off' };
  if (success === null) return { name, message: "The test runner was closed before all tests had run" };
  if (success || hasFailed) return null;
  return { name: "(test run failed)", message: "The run says that it failed, but none of its tests did" };
}
