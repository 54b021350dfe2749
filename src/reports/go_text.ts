/** The text that `go test -v` writes for people, turned into the events that test2json makes of it. */

import { type JsonObject, toFault } from "./fields.ts";
import { isGoJson, readGoEvents } from "./go.ts";
import type { Report } from "./report.ts";
import { clean, createCutter, linesOf } from "./text.ts";
import { isPlainTap } from "./tap_source.ts";

/** Lines of other programs may come first, but no event: those lines belong to test2json. */
const RUN = /^(?:(?!\{).*\n){0,1000}?=== RUN {3}\S/;
const FAILED_BUILD = /^(?:(?!\{).*\n){0,1000}?FAIL\t\S+ \[(?:build|setup) failed\]/;

/** Whether a test or a failed build is announced as go does it. */
export const isGoText = (text: string): boolean =>
  (RUN.test(text) || (FAILED_BUILD.test(text) && !isGoJson(text))) && !isPlainTap(text);

const MARKER = /^=== (RUN|PAUSE|CONT|NAME) {2,3}(\S.*)$/;
const END = /^--- (PASS|FAIL|SKIP|BENCH): (\S.*) \((\d+\.\d+)s\)$/;
const PACKAGE_END =
  /^(ok {2}|FAIL|\? {3})\t([^\t ]+)(?:\t(?:\d+\.\d+s|\(cached\)|\[no test files\]|\(cached\)\t\[.*\])(?:[\t ].*)?)$/;
const BUILD_END = /^FAIL\t[^\t ]+ \[(?:build|setup) failed\]$/;

/** Throws a ReportError when no line is an event. */
export function readGoText(text: string): Report {
  const state = { declaresFailure: false };
  const report = readGoEvents(toEvents(linesOf(text), state));
  if (!state.declaresFailure || report.cases.some(({ status }) => status === "failed")) return report;
  const fault = toFault(createCutter(), { message: `The output ends with "FAIL", but none of its tests failed` });
  return { ...report, cases: [...report.cases, fault] };
}

/** The events of one package, whose name stands in the line that ends it. */
type Pending = {
  events: JsonObject[];
  /** Tests that have begun and not ended. */
  running: Set<string>;
  /** Ends that wait for the output below them, the innermost last. */
  ends: JsonObject[];
  /** The test that output belongs to, "" when it is that of the package. */
  current: string;
  /** The test binary has said how it ended. */
  hasEnded: boolean;
};

const createPending = (): Pending => ({ events: [], running: new Set(), ends: [], current: "", hasEnded: false });

function* toEvents(lines: Iterable<string>, state: { declaresFailure: boolean }): Generator<JsonObject | string> {
  let pending = createPending();
  const finish = function* (path: string, action: string | null): Generator<JsonObject> {
    flushEnds(pending);
    for (const event of pending.events) yield Object.assign(event, { Package: path });
    if (action !== null) yield { Action: action, Package: path };
    pending = createPending();
  };
  for (const line of lines) {
    const end = PACKAGE_END.exec(line);
    if (BUILD_END.test(line)) yield line;
    else if (end && isEnd(end[1]!, pending)) {
      pending.events.push({ Action: "output", Output: `${line}\n` });
      yield* finish(clean(end[2]!), ACTIONS[end[1]!.trimEnd()]!);
    } else if (pending.events.length === 0 && !MARKER.test(line)) {
      // The bare word ends the output of several packages.
      if (line === "FAIL") state.declaresFailure = true;
      yield line;
    } else readLine(line, pending);
  }
  if (pending.events.length > 0) yield* finish("", null);
}

const ACTIONS: Record<string, string> = { ok: "pass", FAIL: "fail", "?": "skip" };

/** A test may print such a line too: a package does not end well while its tests run. */
const isEnd = (word: string, { running, hasEnded }: Pending): boolean =>
  word === "FAIL" || running.size === 0 || hasEnded;

function readLine(line: string, pending: Pending): void {
  const { events, running, ends } = pending;
  const marker = MARKER.exec(line);
  if (marker) {
    flushEnds(pending);
    const [, word, written] = marker;
    const name = clean(written!);
    pending.current = name;
    if (word !== "RUN") return;
    running.add(name);
    events.push({ Action: "run", Test: name });
    return;
  }
  // A test that prints no line end has it on the same line.
  const end = line.endsWith("s)") ? END.exec(line.slice(Math.max(0, line.lastIndexOf("--- ")))) : null;
  const name = end ? clean(end[2]!) : "";
  if (end && running.delete(name)) {
    // The ends of subtests are indented below that of their parent.
    if (!line.startsWith(" ")) flushEnds(pending);
    pending.current = name;
    events.push({ Action: "output", Test: name, Output: `${line.trimStart()}\n` });
    ends.push({ Action: end[1]!.toLowerCase(), Test: name, Elapsed: Number(end[3]) });
    return;
  }
  if (line === "PASS" || line === "FAIL") {
    flushEnds(pending);
    [pending.current, pending.hasEnded] = ["", pending.running.size === 0 || line === "PASS"];
  }
  events.push({ Action: "output", Test: pending.current, Output: `${line}\n` });
}

function flushEnds({ events, ends }: Pending): void {
  for (let end = ends.pop(); end; end = ends.pop()) events.push(end);
}
