/** The lines of pytest-reportlog: https://github.com/pytest-dev/pytest-reportlog */

import { asList, asText, isObject, type JsonObject, toCase, toEpochMs, toFault, toFields } from "./fields.ts";
import { FAILED_TO_LOAD } from "./js_tools.ts";
import { firstJsonLine, readJsonLines } from "./json_lines.ts";
import { createPytestNames, exitFaults, toLoadMessage, toPytestKind } from "./pytest.ts";
import { type CaseStatus, type Report, type ReportedCase, ReportError } from "./report.ts";
import { createCutter, type Cutter, firstLine, MAX_CASES, toMs, tooManyCases } from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

/** The stored part of a phase. Keywords and location are omitted, because each phase of each test repeats them. */
type Phase = { when: unknown; outcome: string; wasxfail: unknown; longrepr: unknown };
type Test = {
  nodeId: string;
  line: number | null;
  phases: Phase[];
  reruns: Phase[];
  hasEnded: boolean;
  seconds: number;
  /** The sections of the last phase. */
  sections: unknown;
  userProperties: unknown;
};

/** One session of pytest. */
type Session = { tests: Test[]; open: Map<string, Test>; collectors: JsonObject[]; finish: JsonObject | null };

export const isPytestReportlog = (text: string): boolean =>
  /"\$report_type":\s?"(?:SessionStart|CollectReport|TestReport)"/.test(firstJsonLine(text));

/** Throws a ReportError when no line is a report of pytest. */
export function readPytestReportlog(text: string): Report {
  const sessions: Session[] = [];
  let [count, ended] = [0, 0];
  const { warnings, isCut } = readJsonLines(text, (event) => {
    const type = event.$report_type;
    if (typeof type !== "string") return;
    if (type === "SessionStart" || sessions.length === 0)
      sessions.push({ tests: [], open: new Map(), collectors: [], finish: null });
    const session = sessions.at(-1)!;
    if (type === "SessionFinish") session.finish = event;
    else if (type === "CollectReport" && event.outcome !== "passed") session.collectors.push(event);
    // Subtests have reports of their own, with the name of the test that they are in.
    else if (type !== "TestReport" && SUBTEST.test(type) && (event.outcome === "passed" || event.outcome === "skipped"))
      return;
    else if (type.endsWith("Report") && type !== "CollectReport") count += readPhase(session, event);
    ended = Math.max(ended, toEpochMs(event.stop) ?? 0);
    if (count + sessions.length + session.collectors.length > MAX_CASES) throw tooManyCases();
  });
  if (sessions.length === 0) throw new ReportError("none of its lines is a report of pytest");
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const reading = { toNames: createPytestNames(), cutter, unknown };
  const cases = sessions.flatMap((session) => toCases(session, reading));
  if (cases.length > MAX_CASES) throw tooManyCases();
  return {
    format: "pytest_reportlog",
    suite: null,
    cases,
    countsOnly: null,
    partial: isCut || sessions.some(({ finish }) => finish === null),
    durationMs: null,
    completedAt: ended > 0 ? new Date(ended) : null,
    context: {},
    warnings: [...warnings, ...unknown.warnings(), ...cutter.warnings()],
  };
}

const SUBTEST = /^Sub_?[Tt]est_?[Rr]eport$/;

/** Returns the number of tests that this report adds. */
function readPhase({ tests, open }: Session, event: JsonObject): number {
  const nodeId = asText(event.nodeid);
  let test = open.get(nodeId);
  const isNew = test === undefined || (event.when === "setup" && test.hasEnded);
  if (test === undefined || isNew) {
    const line = toLineAfter(asList(event.location)[1]);
    test = {
      ...{ nodeId, line, phases: [], reruns: [], hasEnded: false, seconds: 0 },
      ...{ sections: undefined, userProperties: undefined },
    };
    tests.push(test);
    open.set(nodeId, test);
  }
  const { when, wasxfail, longrepr, sections, user_properties, duration } = event;
  const phase = { when, outcome: asText(event.outcome), wasxfail, longrepr };
  if (phase.outcome === "rerun") {
    test.reruns.push(phase);
    Object.assign(test, { phases: [], hasEnded: false, seconds: 0, sections: undefined, userProperties: undefined });
    return isNew ? 1 : 0;
  }
  test.phases.push(phase);
  if (when === "teardown") test.hasEnded = true;
  if (typeof duration === "number") test.seconds += duration;
  [test.sections, test.userProperties] = [sections, user_properties];
  return isNew ? 1 : 0;
}

type Reading = { toNames: ReturnType<typeof createPytestNames>; cutter: Cutter; unknown: UnknownResults };

function toCases({ tests, collectors, finish }: Session, reading: Reading): ReportedCase[] {
  const { cutter } = reading;
  const cases = [
    ...tests.map((test) => readTest(test, reading)),
    ...collectors.map((one) => readCollector(one, cutter)),
  ];
  if (finish !== null) return [...cases, ...exitFaults(cutter, finish.exitstatus, cases)];
  return [...cases, toFault(cutter, { name: "(session did not finish)", message: "The session did not finish" })];
}

const STATUSES: Record<string, CaseStatus> = { passed: "passed", skipped: "skipped", failed: "failed" };

function readTest(test: Test, { toNames, cutter, unknown }: Reading): ReportedCase {
  const { phases, reruns } = test;
  const failed = phases.filter(({ outcome }) => outcome === "failed" || !Object.hasOwn(STATUSES, outcome));
  const odd = failed.find(({ outcome }) => outcome !== "failed");
  if (odd) unknown.count(odd.outcome);
  const skipped = phases.find(({ outcome }) => outcome === "skipped");
  const isCut = !test.hasEnded || (skipped === undefined && !phases.some(({ when }) => when === "call"));
  const status: CaseStatus = failed.length > 0 || isCut ? "failed" : skipped ? "skipped" : "passed";
  const flaky = status === "passed" && reruns.length > 0;
  const shown = status === "failed" ? failed : flaky ? reruns.slice(-1) : [];
  const texts = shown.map(({ longrepr }) => toFailure(longrepr));
  const { suite, name, file } = toNames(test.nodeId);
  return toCase(cutter, {
    suite,
    name,
    file,
    line: test.line,
    status,
    kind: toPytestKind(shown[0]?.when === "call", texts[0]?.message ?? ""),
    flaky,
    attempts: reruns.length + (phases.length > 0 ? 1 : 0),
    durationMs: toMs(test.seconds * 1000),
    message:
      status === "skipped" ? toReason(skipped!) : (texts[0]?.message ?? (isCut ? "The test did not finish" : null)),
    stack: texts.map(({ stack }) => stack).join("\n\n"),
    output: asList(test.sections)
      .map((section) => asText(asList(section)[1]))
      .join(""),
    properties: asList(test.userProperties).map((pair) => [asText(asList(pair)[0]), asText(asList(pair)[1])]),
  });
}

/** pytest counts lines from 0. */
const toLineAfter = (line: unknown): number | null => (typeof line === "number" ? line + 1 : null);

function toReason({ wasxfail, longrepr }: { wasxfail?: unknown; longrepr: unknown }): string {
  const reason = asText(asList(longrepr)[2]).replace(/^Skipped: /, "");
  return asText(wasxfail).replace(/^reason: /, "") || reason || toFailure(longrepr).message;
}

/** The text of an exception, or its message and the lines of its traceback. */
function toFailure(longrepr: unknown): { message: string; stack: string } {
  if (!isObject(longrepr)) return { message: firstLine(asText(longrepr)), stack: asText(longrepr) };
  const entries = asList(toFields(longrepr.reprtraceback).reprentries).map((entry) => toFields(toFields(entry).data));
  const stack = entries.map(({ lines, reprfileloc }) => {
    const { path, lineno, message } = toFields(reprfileloc);
    const location = asText(path) ? [`${asText(path)}:${asText(lineno)}: ${asText(message)}`] : [];
    return [...asList(lines).map(asText), ...location].join("\n");
  });
  return { message: asText(toFields(longrepr.reprcrash).message), stack: stack.join("\n\n") };
}

/** A module that does not load, or that skips itself as a whole. */
function readCollector({ nodeid, outcome, longrepr }: JsonObject, cutter: Cutter): ReportedCase {
  const file = asText(nodeid).split("::")[0]!;
  if (outcome === "skipped")
    return toCase(cutter, { name: "(file skipped)", file, status: "skipped", message: toReason({ longrepr }) });
  const { message, stack } = toFailure(longrepr);
  return toFault(cutter, { name: FAILED_TO_LOAD, file, message: toLoadMessage(stack || message), stack });
}
