/** Go's test2json, the lines of `go test -json`: https://pkg.go.dev/cmd/test2json */

import { type JsonObject, isObject, toCase, asText } from "./fields.ts";
import { parseLine } from "./json.ts";
import { type ReportedCase, type CaseStatus, type FailureKind, type Report, ReportError } from "./report.ts";
import {
  clean,
  createCutter,
  type Cutter,
  firstLine,
  linesOf,
  MAX_CASES,
  msFromSeconds,
  toMs,
  tooManyCases,
} from "./text.ts";

type Test = {
  name: string;
  output: string;
  /** The line "--- PASS: …", for tests whose end is reported nowhere else. */
  printed: { status: CaseStatus; durationMs: number | null } | null;
  ends: CaseStatus[];
  unfinished: boolean;
  /** The output of the last failed attempt. */
  failure: string;
  durationMs: number | null;
  attributes: [string, string][];
};

type Package = {
  tests: Map<string, Test>;
  running: Set<Test>;
  output: string;
  end: CaseStatus | null;
  failedBuild: string;
  timedOut: boolean;
  durationMs: number | null;
};

const ENDS: Record<string, CaseStatus> = { pass: "passed", bench: "passed", fail: "failed", skip: "skipped" };
const PRINTED: Record<string, CaseStatus> = { PASS: "passed", BENCH: "passed", FAIL: "failed", SKIP: "skipped" };
const TIMED_OUT = "panic: test timed out after";

/** Whether there are events; lines that the build wrote may come first. */
export const isGoJson = (text: string): boolean =>
  /^(?:(?!\{).*\n){0,1000}\{.{0,1000}"Action":"/.test(text) && /"(?:Package|ImportPath)":"/.test(text);

/** Throws a ReportError when no line is an event. */
export const readGo = (text: string): Report => readGoEvents(linesOf(text).map((line) => toEvent(line) ?? line));

/**
 * Reads events, and the lines of the build between them. Parents of subtests count as tests, like in Go. Throws a ReportError if there is
 * no event.
 */
export function readGoEvents(events: Iterable<JsonObject | string>): Report {
  const packages = new Map<string, Package>();
  const builds = createBuilds();
  let [count, began, ended] = [0, Number.POSITIVE_INFINITY, 0];
  let lastLine = "";
  for (const event of events) {
    lastLine = typeof event === "string" ? event : "";
    if (typeof event === "string") {
      const broken = builds.readLine(event);
      if (broken !== null) {
        const one = enter(packages, broken);
        one.end = "failed";
        one.output += `${event}\n`;
      }
      continue;
    }
    const time = Date.parse(asText(event.Time));
    if (time > 0) [began, ended] = [Math.min(began, time), Math.max(ended, time)];
    if (event.ImportPath !== undefined && event.Package === undefined) builds.readEvent(event);
    else count += readEvent(enter(packages, asText(event.Package)), event);
    if (count + packages.size > MAX_CASES) {
      throw tooManyCases();
    }
  }
  const cutter = createCutter();
  const cases: ReportedCase[] = [];
  for (const [path, one] of packages) {
    settle(one);
    const first = cases.length;
    for (const test of one.tests.values()) cases.push(toResult(path, test, one.timedOut, cutter));
    if (one.tests.size > 0 && one.durationMs !== null) cases[first]!.unitMs = one.durationMs;
    // The build of a package that passed, or had no tests, may have failed all the same.
    const build = one.end === "failed" || one.end === null ? builds.take(one.failedBuild || path) : "";
    const synthetic = toSynthetic(path, one, build, cutter);
    if (synthetic) cases.push(synthetic);
  }
  for (const [path, stack] of builds.rest()) cases.push(toFault(path, "(build failed)", stack, cutter));
  if (packages.size === 0 && cases.length === 0) throw new ReportError("none of its lines is a test event");
  return {
    format: "go",
    suite: packages.size === 1 ? cutter.cutOrNull("suite", [...packages.keys()][0]!) : null,
    cases,
    countsOnly: null,
    partial: isBeginning(lastLine) || [...packages.values()].some(({ end }) => end === null),
    durationMs: ended > 0 ? toMs(ended - began) : null,
    completedAt: ended > 0 ? new Date(ended) : null,
    context: {},
    warnings: cutter.warnings(),
  };
}

const RUN = "=== RUN   ";

/** Whether the last line, which ends no package, is the beginning of a truncated event. */
const isBeginning = (line: string): boolean =>
  (line.startsWith("{") && parseLine(line) === null) || (line !== "" && RUN.startsWith(line));

/** Returns `null` for lines that go and the build write between the events. */
function toEvent(line: string): JsonObject | null {
  const event = line.startsWith("{") ? parseLine(line) : null;
  return isObject(event) && typeof event.Action === "string" ? event : null;
}

/** Collects the compiler's output for each package: as text before Go 1.24, as events since. */
function createBuilds() {
  const outputs = new Map<string, string>();
  const failed = new Set<string>();
  let current = "";
  const add = (path: string, text: string) => void outputs.set(path, (outputs.get(path) ?? "") + text);
  /** Removes the test binary that a package was built for: "pkg [pkg.test]". */
  const plain = (path: string) => {
    const start = path.endsWith("]") ? path.indexOf(" [", path.lastIndexOf("]", path.length - 2) + 1) : -1;
    return start === -1 ? path : path.slice(0, start);
  };
  return {
    /** The package that a line declares broken. */
    readLine(line: string): string | null {
      const broken = /^FAIL\t([^\t ]+) \[(?:build|setup) failed\]\s*$/.exec(line)?.[1];
      if (broken !== undefined) return clean(broken);
      if (line.startsWith("# ")) current = plain(clean(line.slice(2).trim()));
      else add(current, `${line}\n`);
      return null;
    },
    readEvent({ Action, ImportPath, Output }: JsonObject): void {
      const path = plain(asText(ImportPath));
      if (Action === "build-output" && !asText(Output).startsWith("# ")) add(path, asText(Output));
      if (Action === "build-fail") failed.add(path);
    },
    take(path: string): string {
      failed.delete(plain(path));
      return outputs.get(plain(path)) ?? "";
    },
    /** Builds that failed without a package that waits for them. */
    rest: (): [string, string][] => [...failed].map((path) => [path, outputs.get(path) ?? ""]),
  };
}

function enter(packages: Map<string, Package>, path: string): Package {
  const known = packages.get(path);
  if (known) return known;
  const one = {
    tests: new Map(),
    running: new Set<Test>(),
    output: "",
    end: null,
    failedBuild: "",
    timedOut: false,
    durationMs: null,
  };
  packages.set(path, one);
  return one;
}

/** Returns the number of tests that this event adds. */
function readEvent(one: Package, event: JsonObject): number {
  const [action, name, output] = [asText(event.Action), asText(event.Test), asText(event.Output)];
  const end = Object.hasOwn(ENDS, action) ? ENDS[action]! : null;
  if (output.startsWith(TIMED_OUT)) one.timedOut = true;
  if (name === "") {
    if (action === "output") one.output += output;
    if (action === "start") one.end = null;
    if (end === null) return 0;
    settle(one, end);
    one.durationMs = msFromSeconds(event.Elapsed);
    one.failedBuild = asText(event.FailedBuild);
    return 0;
  }
  const known = one.tests.get(name);
  const test = known ?? newTest(name);
  if (!known) one.tests.set(name, test);
  if (action === "run") {
    Object.assign(test, { output: "", printed: null, durationMs: null });
    one.running.add(test);
    // A package that runs again has not ended.
    one.end = null;
  } else if (action === "output") addOutput(test, output);
  else if (action === "attr") test.attributes.push([asText(event.Key), asText(event.Value)]);
  else if (end !== null) {
    finish(test, end, msFromSeconds(event.Elapsed));
    one.running.delete(test);
  }
  return known ? 0 : 1;
}

function newTest(name: string): Test {
  const [printed, durationMs] = [null, null];
  return { name, output: "", printed, ends: [], unfinished: false, failure: "", durationMs, attributes: [] };
}

function addOutput(test: Test, output: string): void {
  if (/^=== (?:RUN|PAUSE|CONT|NAME)\b/.test(output)) return;
  // The line may follow output without a line end. Go 1.19 and earlier then report no end event.
  const at = output.lastIndexOf("--- ");
  const [, word = "", name, seconds] =
    /^--- (PASS|FAIL|SKIP|BENCH): (.*) \((\d+\.\d+)s\)\s*$/.exec(output.slice(Math.max(at, 0))) ?? [];
  if (at < 0 || name !== test.name) return void (test.output += output);
  test.printed = { status: PRINTED[word]!, durationMs: msFromSeconds(seconds) };
  test.output += output.slice(0, at).trim() && output.slice(0, at);
}

function finish(test: Test, status: CaseStatus, durationMs: number | null): void {
  test.ends.push(status);
  test.durationMs = durationMs;
  if (status === "failed") test.failure = test.output;
}

/** A test without an end ran when its package ended; `end` is null where the report broke off before that. */
function settle(one: Package, end: CaseStatus | null = one.end): void {
  one.end = end;
  for (const test of one.running) {
    test.unfinished = test.printed === null && end !== "passed";
    finish(test, test.unfinished ? "failed" : (test.printed?.status ?? "passed"), test.printed?.durationMs ?? null);
  }
  one.running.clear();
}

function toResult(suite: string, test: Test, timedOut: boolean, cutter: Cutter): ReportedCase {
  // A test with nothing but output has an unknown end, but no failure.
  const status = test.ends.at(-1) ?? test.printed?.status ?? "skipped";
  const flaky = status === "passed" && test.ends.includes("failed");
  const stack = clean(status === "failed" || flaky ? test.failure : "").trimEnd();
  const output = clean(test.output).trimEnd();
  const unfinished = status === "failed" && test.unfinished;
  return toCase(cutter, {
    suite,
    name: test.name,
    status,
    kind: toKind(stack, unfinished, timedOut),
    flaky,
    attempts: Math.max(1, test.ends.length),
    durationMs: test.durationMs,
    message: toMessage(stack || (status === "skipped" ? output : "")) || (unfinished ? "It did not finish" : null),
    stack,
    output: stack === output ? null : output,
    properties: test.attributes,
  });
}

function toKind(stack: string, unfinished: boolean, timedOut: boolean): FailureKind {
  if (stack.includes(TIMED_OUT) || (unfinished && timedOut)) return "timeout";
  return unfinished || PANIC.test(stack) ? "error" : "failure";
}

const PANIC = /^[ \t]*(?:panic|fatal error): .*/m;

/** Returns the line of a panic, the error of testify, or the text after the first "file.go:12:". */
function toMessage(output: string): string {
  const panic = PANIC.exec(output)?.[0];
  const testify = output.includes("Error Trace:") ? /^[ \t]+Error:[ \t]+(\S.*)/m.exec(output)?.[1] : undefined;
  const location = /^[ \t]*[^\s:]+\.go:\d+:/m.exec(output);
  return (panic ?? testify ?? firstLine(location ? output.slice(location.index + location[0].length) : output)).trim();
}

function toSynthetic(suite: string, one: Package, build: string, cutter: Cutter): ReportedCase | null {
  const broken = /^FAIL\t[^\t ]+ \[(build|setup) failed\]/m.exec(one.output)?.[1] ?? (one.failedBuild && "build");
  if (broken && one.end === "failed") return toFault(suite, `(${broken} failed)`, build || one.output, cutter);
  if (one.end === null) return toFault(suite, "(package did not finish)", one.output, cutter);
  if (one.end !== "failed") return null;
  for (const { ends } of one.tests.values()) if (ends.includes("failed")) return null;
  return toFault(suite, "(package failed)", one.output, cutter, one.timedOut ? "timeout" : "error");
}

function toFault(suite: string, name: string, text: string, cutter: Cutter, kind: FailureKind = "error"): ReportedCase {
  const stack = clean(text).trimEnd();
  return toCase(cutter, { suite, name, status: "failed", kind, message: firstLine(stack), stack });
}
