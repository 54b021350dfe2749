/** The text of Maven's Surefire and Failsafe: their .txt files and what they print. It names the tests that failed, and counts the others. */

import { type RawCase, toCase, toFault } from "./fields.ts";
import { type Report, type ReportedCase, ReportError } from "./report.ts";
import {
  clean,
  createCutter,
  type Cutter,
  describeTotals,
  firstLine,
  linesOf,
  MAX_CASES,
  msFromSeconds,
  parseCount,
  plural,
  tooManyCases,
} from "./text.ts";

/** Maven's level before a line, which versions before 3.5 do not print. */
const LEVEL = /^\[(?:INFO|WARNING|ERROR)\] ?/;
const COUNTS = String.raw`Tests run: (\d{1,9}), Failures: (\d{1,9}), Errors: (\d{1,9}), Skipped: (\d{1,9})`;
/** The counts of a test set, which is a class or, with TestNG, a suite. */
const SET = new RegExp(`^${COUNTS}, Time elapsed: .*?(?: --? in (.+))?$`);
const TOTAL = new RegExp(`^${COUNTS}(?:, Flakes: \\d{1,9})?$`);
const TEST = /^(\S.*?)(?: --|  ?)? ?Time elapsed: ([\d.,]+) (?:s|sec)(?:\s+<<< (FAILURE|ERROR)!)?$/;
const ANNOUNCED_SET = /^(?:(Test set: )|Running )(\S.*)$/;
/** A class, or TestNG's suite without a name: programs print other lines that begin with "Running". */
const CLASS = /^(?:(?:[\w$]+\.)+[A-Z][\w$]*|[\w$]*(?:Test|Suite|Spec|IT)[\w$]*)$/;
const BUILD_END = /^BUILD (SUCCESS|FAIL|ERROR)/;

/** A line that only these texts have. */
const MARK = new RegExp(
  `^(?:\\[\\w+\\] )?(?:-{40,}\n(?:Test set: \\S|(?:\\[INFO\\] )? T E S T S)|${COUNTS}, Time elapsed: )`,
  "m",
);

export const isSurefire = (text: string): boolean => MARK.test(text.includes("\x1b") ? clean(text) : text);

type Counts = { tests: number; failed: number; skipped: number };
type Test = {
  suite: string;
  name: string;
  outcome: string | undefined;
  ms: number | null;
  lines: string[];
  runs: number;
};
type TestSet = Counts & { name: string; named: Test[] };
/** The test sets between the heading and the total of one run; a .txt file has neither. */
type Run = {
  sets: TestSet[];
  isPrinted: boolean;
  /** The classes that were announced and have no counts yet. */
  open: Set<string>;
  total: Counts | null;
  flaky: Map<string, number>;
};

type Reading = {
  runs: Run[];
  /** The test set that was announced last, and whether it is that of a .txt file without counts. */
  announced: string;
  isOpen: boolean;
  /** Whether a line "Running" was the last one of test sets. */
  isRunning: boolean;
  /** The test that the lines of a stack trace belong to. */
  last: Test | null;
  section: "sets" | "results" | "flakes" | "end";
  flake: string;
  build: { isDone: boolean; failure: string | null };
  completedAt: Date | null;
};

/** Throws a ReportError if there are no test sets. */
export function readSurefire(text: string): Report {
  const reading: Reading = {
    ...{
      runs: [],
      announced: "",
      isOpen: false,
      isRunning: false,
      last: null,
      section: "sets",
      flake: "",
      completedAt: null,
    },
    build: { isDone: !/^(?:\[INFO\] )?Scanning for projects/m.test(text), failure: null },
  };
  for (const line of linesOf(clean(text))) readLine(reading, line);
  const { runs, build, isOpen } = reading;
  if (runs.length === 0) throw new ReportError("it has no counts of tests by Surefire");
  const [open] = runs.flatMap((run) => [...run.open]);
  const isCut =
    isOpen || open !== undefined || !build.isDone || runs.some(({ isPrinted, total }) => isPrinted && !total);
  requireNames(runs);
  const cutter = createCutter();
  const warnings: string[] = [];
  const cases = runs.flatMap((run) => casesOf(run, cutter, warnings));
  const end = open === undefined ? "The output breaks off" : `${open} began and has no result`;
  const failure = build.failure ?? (isCut ? end : null);
  if (failure !== null && !cases.some(({ status }) => status === "failed"))
    cases.push(toFault(cutter, { name: isCut ? "(test run did not finish)" : "(build failed)", message: failure }));
  const unnamed = cases.filter(({ name }) => UNNAMED.test(name)).length;
  if (unnamed > 0)
    warnings.push(`The text does not name ${plural(unnamed, "test")}: the files TEST-*.xml of Surefire name all tests`);
  return {
    ...{ format: "surefire", suite: null, cases, countsOnly: null, partial: isCut, durationMs: null },
    completedAt: reading.completedAt,
    context: {},
    warnings: [...warnings, ...cutter.warnings()],
  };
}

function readLine(reading: Reading, written: string): void {
  const line = written.replace(LEVEL, "").trimEnd();
  const run = () => reading.runs.at(-1) ?? startRun(reading, false);
  const set = SET.exec(line);
  const announced = ANNOUNCED_SET.exec(line);
  const isClass = announced?.[1] === undefined && CLASS.test(announced?.[2] ?? "");
  const total = reading.section === "sets" ? TOTAL.exec(line) : null;
  if (line === " T E S T S" || line === "T E S T S") startRun(reading, true);
  else if (/^\[ERROR\] COMPILATION ERROR\b/.test(written)) reading.build.failure = "Compilation error";
  else if (reading.section === "end" && isClass) {
    // Failsafe and other executions have no heading in a log that was filtered.
    startRun(reading, run().isPrinted);
    announce(reading, announced![2]!, true);
  } else if (reading.section !== "sets") readResults(reading, written, line);
  else if (announced) {
    announce(reading, announced[2]!, isClass);
    reading.isOpen = announced[1] !== undefined;
  } else if (set) {
    const name = set[5] ?? reading.announced;
    const { sets, open } = run();
    sets.push({ ...toCounts(set), name, named: [] });
    // In parallel and without its name, or with another one than was announced, it is the result of any.
    open.delete(open.has(name) ? name : (open.values().next().value ?? ""));
    [reading.isOpen, reading.isRunning, reading.last] = [false, false, null];
  } else if (total && !reading.isRunning && reading.runs.at(-1)?.sets.length && run().open.size === 0) {
    // While a class runs, its tests may print such a line.
    [run().total, reading.section] = [toCounts(total), "end"];
  } else if (/^Results ?:$/.test(line)) [reading.section, reading.last] = ["results", null];
  else readTest(reading, written, line);
}

function announce(reading: Reading, name: string, isClass: boolean): void {
  Object.assign(reading, { announced: name, isRunning: true, last: null });
  if (isClass) (reading.runs.at(-1) ?? startRun(reading, false)).open.add(name);
}

function startRun(reading: Reading, isPrinted: boolean): Run {
  const run: Run = { sets: [], isPrinted, open: new Set(), total: null, flaky: new Map() };
  reading.runs.push(run);
  Object.assign(reading, { section: "sets", last: null });
  return run;
}

/** Lines below the counts of a set: its tests, each with a stack trace, and what tests of the next set print. */
function readTest(reading: Reading, written: string, line: string): void {
  const set = reading.runs.at(-1)?.sets.at(-1);
  const [, name, seconds, outcome] = TEST.exec(line) ?? [];
  if (set && name !== undefined) {
    reading.last = { ...toName(name), outcome, ms: msFromSeconds(seconds), lines: [], runs: 1 };
    set.named.push(reading.last);
  } else if (LEVEL.test(written) || line.endsWith(" skipped")) reading.last = null;
  else reading.last?.lines.push(line);
}

/** The summary of a run, up to its total; then what Maven prints about the build. */
function readResults(reading: Reading, written: string, line: string): void {
  const total = reading.section === "end" ? null : TOTAL.exec(line);
  const [run] = reading.runs.slice(-1);
  const build = BUILD_END.exec(line);
  if (total && run) [run.total, reading.section] = [toCounts(total), "end"];
  else if (line === "Flakes:" || line === "Flaked tests:") reading.section = "flakes";
  else if (/^(?:Failures|Failed tests|Errors|Tests in error):/.test(line)) reading.section = "results";
  else if (reading.section === "flakes" && run) {
    if (/^ *Run \d+: /.test(line)) run.flaky.set(reading.flake, (run.flaky.get(reading.flake) ?? 0) + 1);
    else if (line !== "") reading.flake = keyOf(toName(line));
  } else if (build) {
    reading.build = { isDone: true, failure: build[1] === "SUCCESS" ? null : "The build failed" };
  } else if (reading.build.failure === "The build failed" && written.startsWith("[ERROR] "))
    reading.build.failure = firstLine(line);
  const end = /^Finished at: (\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))$/.exec(line)?.[1];
  if (end) reading.completedAt = new Date(end);
}

const toCounts = ([, tests, failures, errors, skipped]: RegExpExecArray): Counts => ({
  tests: parseCount(tests)!,
  failed: parseCount(failures)! + parseCount(errors)!,
  skipped: parseCount(skipped)!,
});

/** `com.acme.CartTest.adds(int)[1]`, and before version 3 `adds(com.acme.CartTest)`; the class alone if one of its hooks failed. */
function toName(text: string): { suite: string; name: string } {
  const [, name = "", suite = ""] = /^(.+)\(((?:[\w$]+\.)+[\w$]+|[A-Z][\w$]*)\)$/.exec(text) ?? [];
  if (suite !== "") return { suite, name };
  const [owner = ""] = /^(?:[\p{Ll}_][\w$]*\.)*\p{Lu}[\w$]*(?=\.|$)/u.exec(text) ?? [];
  return owner === "" ? { suite: "", name: text } : { suite: owner, name: text.slice(owner.length + 1) };
}

const keyOf = ({ suite, name }: { suite: string; name: string }): string => `${suite}\0${name}`;

/** Maximum numbers of tests that the whole text counts and does not name: a line can count any number. */
const MAX_UNNAMED = { failed: 1_000, others: 20_000 };

/** Throws a ReportError before too many test cases are made of counts. */
function requireNames(runs: Run[]): void {
  const sum = { failed: 0, others: 0 };
  let named = 0;
  for (const set of runs.flatMap(({ sets }) => sets)) {
    const { failed, passed, skipped } = countUnnamed(set);
    sum.failed += failed;
    sum.others += passed + skipped;
    named += set.named.length;
  }
  for (const [kind, adjective] of [
    ["failed", "failed "],
    ["others", "passed or skipped "],
  ] as const)
    if (sum[kind] > MAX_UNNAMED[kind])
      throw new ReportError(
        `it counts more than ${MAX_UNNAMED[kind].toLocaleString("en")} ${adjective}tests that it does not name: ` +
          `send the files TEST-*.xml of Surefire, which name all tests`,
      );
  if (named + sum.failed + sum.others > MAX_CASES) throw tooManyCases();
}

const UNNAMED = /^\((?:passed|failed|skipped) test \d+\)$/;

function casesOf({ sets, total, flaky }: Run, cutter: Cutter, warnings: string[]): ReportedCase[] {
  const sum = { tests: 0, failed: 0, skipped: 0 };
  const seen = new Set<string>();
  const named = new Map<string, Test>();
  const cases: ReportedCase[] = [];
  for (const set of sets) {
    // Surefire runs the tests of a class that failed again at the end, and does not count them in its total.
    const isRerun = total !== null && seen.has(set.name) && sum.tests >= total.tests;
    for (const test of set.named) {
      const before = named.get(keyOf(test));
      if (before && isRerun) before.runs++;
      else named.set(before ? `${keyOf(test)}\0${named.size}` : keyOf(test), test);
    }
    seen.add(set.name);
    if (isRerun) continue;
    for (const key of ["tests", "failed", "skipped"] as const) sum[key] += set[key];
    cases.push(...unnamedCases(set, cutter));
  }
  for (const test of named.values()) cases.push(toCase(cutter, toResult(test, flaky.get(keyOf(test)))));
  const declared = total && { tests: total.tests, failed: total.failed, skipped: total.skipped };
  const counted = { tests: cases.length, passed: 0, failed: 0, skipped: 0 };
  for (const { status } of cases) counted[status]++;
  if (declared && (["tests", "failed", "skipped"] as const).some((key) => declared[key] !== counted[key]))
    warnings.push(describeTotals("The report", declared, counted));
  if (declared && declared.failed > 0 && counted.failed === 0)
    cases.push(toFault(cutter, { message: `The report declares ${declared.failed} failed, but names none` }));
  return cases;
}

function countUnnamed(set: TestSet): Record<"passed" | "failed" | "skipped", number> {
  const named = set.named.filter(({ outcome }) => outcome !== undefined).length;
  const passed = set.tests - set.failed - set.skipped - (set.named.length - named);
  return { passed: Math.max(0, passed), failed: Math.max(0, set.failed - named), skipped: set.skipped };
}

/** The tests of a set that the text counts and does not name, each with a number instead. */
function unnamedCases(set: TestSet, cutter: Cutter): ReportedCase[] {
  const counts = countUnnamed(set);
  return (["passed", "failed", "skipped"] as const).flatMap((status) =>
    Array.from({ length: counts[status] }, (_, index) =>
      toCase(cutter, { suite: set.name, name: `(${status} test ${index + 1})`, status }),
    ),
  );
}

/** `flakyRuns`: how often a test ran that passed in the end. */
function toResult({ suite, name, outcome, ms, lines, runs }: Test, flakyRuns: number | undefined): RawCase {
  const stack = lines.join("\n").trim();
  const [head = ""] = stack.split(/\n[ \t]+at |\nCaused by: /, 1);
  const [, type = "", message = ""] = /^((?:[\w$]+\.)+[\w$]+)(?::\s*([^]*))?$/.exec(head.trim()) ?? [];
  const isFailed = outcome !== undefined && flakyRuns === undefined;
  const isTimeout = /\btimed out after \d+ ?(?:ms|milliseconds|seconds)\b|TestTimedOutException/.test(head);
  return {
    ...{ suite, name, status: isFailed ? "failed" : "passed", flaky: flakyRuns !== undefined },
    kind: isTimeout ? "timeout" : outcome === "ERROR" ? "error" : "failure",
    attempts: flakyRuns ?? runs,
    durationMs: ms,
    message: message.trim() || type || firstLine(head),
    stack,
  };
}
