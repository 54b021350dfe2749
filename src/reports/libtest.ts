/** The JSON of Rust's libtest, `cargo test -- -Z unstable-options --format json`, and of `cargo nextest` in the same form. */

import { asText, isObject, type JsonObject, toCase, toFault, toFields, asCount } from "./fields.ts";
import { parseLine } from "./json.ts";
import { firstJsonLine, readJsonLines } from "./json_lines.ts";
import { type CaseStatus, type Report, type ReportedCase, ReportError } from "./report.ts";
import { createCutter, type Cutter, disagreement, firstLine, MAX_CASES } from "./text.ts";
import { msFromSeconds, toMs, tooManyCases } from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

/** `attempts`: how often it began, or as nextest counts them. */
type Test = { name: string; end: JsonObject | null; isSlow: boolean; attempts: number };

/** One test binary. */
type Suite = {
  /** The name of the binary; "" if it is unknown. */
  name: string;
  /** Tests in the order of their first events. */
  tests: Test[];
  /** The tests that began and have not ended, by name. */
  running: Map<string, Test>;
  declared: number | null;
  end: JsonObject | null;
};

export const isLibtest = (text: string): boolean =>
  firstJsonLine(text).replaceAll(" ", "").startsWith('{"type":"suite","event":"started","test_count":');

/** Throws a ReportError when no line begins a suite. */
export function readLibtest(text: string): Report {
  const suites: Suite[] = [];
  const open = new Map<string, Suite>();
  let [binary, count] = ["", 0];
  const read = (event: JsonObject) => {
    const { type } = event;
    if (type === "suite" || event.event === "started") count++;
    if (count > MAX_CASES) throw tooManyCases();
    if (type === "test" || type === "bench") {
      const written = asText(event.name);
      // With nextest the events of several suites may be interleaved; test names begin with the name of their suite.
      const at = written.indexOf("$");
      const suite = (at === -1 ? undefined : open.get(written.slice(0, at))) ?? suites.at(-1);
      if (suite) readTest(suite, written, event);
      return;
    }
    if (type !== "suite") return;
    const { crate, test_binary } = toFields(event.nextest);
    const name = crate === undefined ? binary : `${asText(crate)}::${asText(test_binary)}`;
    if (event.event === "started") {
      const suite = { name, tests: [], running: new Map(), declared: asCount(event.test_count), end: null };
      suites.push(suite);
      open.set(name, suite);
      binary = "";
    } else {
      const suite = crate === undefined ? suites.at(-1) : open.get(name);
      if (suite) suite.end ??= event;
    }
  };
  const { warnings, isCut } = readJsonLines(text, read, (line) => {
    const running = RUNNING.exec(line);
    if (running) binary = running[1] ?? "doc-tests";
    // A test that prints no line end, which --nocapture shows, has its event on the same line.
    const at = line.lastIndexOf('{ "type": "');
    const event = at > 0 ? parseLine(line.slice(at)) : null;
    if (isObject(event)) read(event);
  });
  if (binary !== "") suites.push({ name: binary, tests: [], running: new Map(), declared: null, end: null });
  if (suites.length === 0) throw new ReportError("none of its lines begins a suite of libtest");
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const all = suites.map((suite) => ({ suite, cases: toCases(suite, cutter, unknown) }));
  const cases = all.length === 1 ? all[0]!.cases : all.flatMap((one) => one.cases);
  const totals = all.flatMap((one) => toDisagreement(one.suite, one.cases));
  const faults = all.flatMap(({ suite, cases: own }) => toFaults(suite, own, cutter));
  if (cases.length + faults.length > MAX_CASES) throw tooManyCases();
  const times = suites.map(({ end }) => msFromSeconds(end?.exec_time));
  return {
    format: "libtest",
    suite: null,
    cases: [...cases, ...faults],
    countsOnly: null,
    partial: isCut || suites.some(({ end }) => end === null),
    durationMs: times.every((time) => time !== null) ? toMs(times.reduce((sum, time) => sum + time, 0)) : null,
    completedAt: null,
    context: {},
    warnings: [...warnings, ...totals.slice(0, 5), ...unknown.warnings(), ...cutter.warnings()],
  };
}

/** The line that cargo writes to stderr before it starts a binary: "     Running tests/cart.rs (target/debug/deps/cart-0f2)". */
const RUNNING =
  /^ {3,5}(?:Running .{1,500}\(.{0,1000}[/\\]([^/\\()]{1,200})-[\da-f]{16}(?:\.exe)?\)|Doc-tests .{1,500})\s*$/;

function readTest({ tests, running }: Suite, written: string, event: JsonObject): void {
  const isStart = event.event === "started";
  const retry = isStart ? null : toRetry(written);
  const name = retry && running.has(retry.name) ? retry.name : written;
  let test = running.get(name);
  if (!test) {
    test = { name, end: null, isSlow: false, attempts: isStart ? 1 : 0 };
    tests.push(test);
    running.set(name, test);
  }
  if (isStart) return;
  if (event.event === "timeout") {
    test.isSlow = true;
    return;
  }
  if (retry && name !== written) test.attempts = retry.attempts;
  test.end = event.type === "bench" ? { event: "ok" } : event;
  running.delete(name);
}

/** nextest appends the number of attempts to the end of a test that was retried. */
function toRetry(written: string): { name: string; attempts: number } | null {
  const match = written.includes("$") ? /^(.*)#(\d{1,3})$/s.exec(written) : null;
  return match && { name: match[1]!, attempts: Number(match[2]) };
}

function toCases(suite: Suite, cutter: Cutter, unknown: UnknownResults): ReportedCase[] {
  const cases: ReportedCase[] = [];
  for (const test of joinRuns(suite)) cases.push(readEnd(suite, test, cutter, unknown));
  return cases;
}

/**
 * Whether the totals of the suite equal those of its runs. The number of runs alone may be equal by chance, if one test ran twice and
 * another is lost.
 */
function hasOneRunPerTest({ tests, declared, end }: Suite): boolean {
  if (end === null || tests.length !== declared) return false;
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const test of tests) {
    if (test.end === null) return false;
    counts[STATUSES.get(test.end.event) ?? "failed"]++;
  }
  return counts.passed === end.passed && counts.failed === end.failed && counts.skipped === end.ignored;
}

/** A test that ran several times is one test. */
function joinRuns(suite: Suite): Test[] {
  const { tests } = suite;
  if (hasOneRunPerTest(suite)) return tests;
  const joined = new Map<string, Test>();
  for (const test of tests) {
    const retry = test.attempts === 0 ? toRetry(test.name) : null;
    const retried = retry && joined.get(retry.name);
    const earlier = retried ?? joined.get(test.name);
    if (!earlier) joined.set(test.name, test);
    else {
      earlier.end = test.end ?? earlier.end;
      earlier.isSlow ||= test.isSlow;
      earlier.attempts = retried ? retry!.attempts : earlier.attempts + test.attempts;
    }
  }
  return [...joined.values()];
}

const STATUSES: ReadonlyMap<unknown, CaseStatus> = new Map([
  ["ok", "passed"],
  ["failed", "failed"],
  ["ignored", "skipped"],
  ["allowed_failure", "skipped"],
] as const);

const DOCTEST = /^([^\s]{1,500}) - (.{0,500}?) ?\(line (\d{1,9})\)(.*)$/s;

function readEnd(suite: Suite, { name, end, isSlow, attempts }: Test, cutter: Cutter, unknown: UnknownResults) {
  const word = end?.event;
  const known = STATUSES.get(word);
  if (end !== null && known === undefined) unknown.count(asText(word));
  const status = known ?? "failed";
  const output = asText(end?.stdout).trim();
  const reason = asText(end?.message) || (end?.reason === undefined ? "" : `Failed: ${asText(end.reason)}`);
  const isTimeout = end?.reason === "time limit exceeded" || (end === null && isSlow);
  const names = toNames(suite.name, name);
  return toCase(cutter, {
    suite: names.suite,
    name: names.name,
    file: names.file,
    line: names.line,
    status,
    kind: isTimeout ? "timeout" : end === null ? "error" : "failure",
    flaky: attempts > 1,
    attempts: Math.max(1, attempts),
    durationMs: msFromSeconds(end?.exec_time),
    message: reason || (end === null ? "The test did not finish" : status === "failed" ? toMessage(output) : null),
    stack: status === "failed" ? output : null,
    output: status === "failed" ? null : output,
  });
}

/** Modules are part of the suite; the line of a doc test is no part of its name, because it moves. */
function toNames(binary: string, written: string) {
  const isPrefixed = written[binary.length] === "$" && written.startsWith(binary);
  const name = isPrefixed ? written.slice(binary.length + 1) : written;
  const docTest = name.includes(" - ") ? DOCTEST.exec(name) : null;
  if (docTest) {
    const [, file = "", item, line, rest = ""] = docTest;
    return { suite: binary, name: `${item || file}${rest}`, file, line };
  }
  const at = name.lastIndexOf("::");
  const module = at === -1 ? "" : name.slice(0, at);
  const suite = binary && module ? `${binary} > ${module}` : binary || module;
  return { suite, name: at === -1 ? name : name.slice(at + 2), file: null, line: null };
}

/** Returns the text after "panicked at src/lib.rs:13:73:", or before Rust 1.73 the quoted text after "panicked at". */
function toMessage(output: string): string {
  const at = output.indexOf(" panicked at ");
  const panic = at === -1 ? "" : output.slice(at + " panicked at ".length);
  const quoted = /^'(.{1,2000})', [^\n]{1,500}:\d+:\d+$/m.exec(panic.slice(0, 5_000))?.[1];
  return quoted ?? (firstLine(panic.slice(panic.indexOf("\n") + 1)) || firstLine(output));
}

function toDisagreement({ end, declared }: Suite, cases: ReportedCase[]): string[] {
  if (end === null) return [];
  const [passed, failed, ignored] = [asCount(end.passed), asCount(end.failed), asCount(end.ignored)];
  // Allowed failures are counted among the failed, and benchmarks are measured.
  const isPlain = !asCount(end.measured) && !asCount(end.allowed_fail);
  return isPlain ? disagreement({ tests: declared, passed, failed, skipped: ignored }, cases) : [];
}

/** Returns failures without a test: a binary that did not end, or that reports a failure of its own. */
function toFaults({ name, end }: Suite, cases: ReportedCase[], cutter: Cutter): ReportedCase[] {
  const fields = { suite: name };
  if (end === null)
    return [toFault(cutter, { ...fields, name: "(suite did not finish)", message: "The test binary did not finish" })];
  if (end.event === "ok" && !asCount(end.failed)) return [];
  if (cases.some(({ status }) => status === "failed") || (end.event === "ok" && asCount(end.allowed_fail))) return [];
  return [
    toFault(cutter, { ...fields, message: "The report says that the suite failed, but none of its tests failed" }),
  ];
}
