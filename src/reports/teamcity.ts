/** TeamCity service messages in the output of a build: https://www.jetbrains.com/help/teamcity/service-messages.html */

import { toCase } from "./fields.ts";
import { type Report, ReportError } from "./report.ts";
import { type TeamcityTest, toTeamcityCase } from "./teamcity_cases.ts";
import {
  type MessageAttributes,
  isMessageStart,
  type ServiceMessage,
  MESSAGE_START,
  parseServiceMessage,
} from "./teamcity_messages.ts";
import {
  clean,
  createCutter,
  cut,
  disagreement,
  firstLine,
  MAX_CASES,
  MAX_NAME,
  plural,
  toMs,
  tooManyCases,
} from "./text.ts";

/** An open suite; the path is that of all suites around it, files left out. */
type Suite = { name: string; path: string; file: string | null; outer: Suite | null };

/** Suites and tests that run beside those of other flows. */
type Flow = { suite: Suite | null; names: Map<string, number>; last: TeamcityTest | null };

type Build = {
  flows: Map<string, Flow>;
  tests: TeamcityTest[];
  /** Open tests by flow and name. */
  open: Map<string, TeamcityTest>;
  /** Tests by suite and name while failed tests are retried. */
  retried: Map<string, TeamcityTest> | null;
  suites: number;
  declared: number | null;
  problems: string[];
  began: number;
  ended: number;
  /** The last time with a zone. */
  completed: number;
};

/** Throws a ReportError when there is no message on a test, or there are too many. */
export function readTeamcity(text: string): Report {
  const build: Build = {
    flows: new Map(),
    tests: [],
    open: new Map(),
    retried: null,
    suites: 0,
    declared: null,
    problems: [],
    began: Number.POSITIVE_INFINITY,
    ended: 0,
    completed: 0,
  };
  const lastLine = text.lastIndexOf("\n");
  let [malformed, isCut, isBuild] = [0, false, false];
  let from = 0;
  for (let at = text.indexOf(MESSAGE_START); at !== -1; at = text.indexOf(MESSAGE_START, from)) {
    addOutput(build, text.slice(from, at));
    const message = parseServiceMessage(text, at);
    from = message.end;
    if (message.kind === "") continue;
    const isOnTests = readMessage(build, message);
    if (isOnTests && !message.whole) malformed++;
    isCut = !message.whole && from > lastLine;
    isBuild ||= isOnTests;
    if (build.tests.length > MAX_CASES) throw tooManyCases();
  }
  if (!isBuild) throw new ReportError("it has no TeamCity service message on a test");
  const cutter = createCutter();
  for (const test of build.open.values()) test.unfinished = test.failures.length === 0 && test.ignored === null;
  const cases = build.tests.map((test) => toTeamcityCase(test, cutter));
  const tooFew = build.declared !== null && build.declared > cases.length;
  isCut ||= isMessageStart(text.slice(lastLine + 1));
  const partial = isCut || tooFew || build.suites > 0 || build.tests.some(({ unfinished }) => unfinished);
  const warnings = tooFew ? disagreement({ tests: build.declared }, cases) : [];
  if (malformed > 0) warnings.push(`Read as far as possible: ${plural(malformed, "malformed service message")}`);
  const fault = toFault(build, partial);
  if (fault && !cases.some(({ status }) => status === "failed"))
    cases.push(toCase(cutter, { ...fault, status: "failed", kind: "error" }));
  return {
    format: "teamcity",
    suite: null,
    cases,
    countsOnly: null,
    partial,
    durationMs: build.ended > 0 ? toMs(build.ended - build.began) : null,
    completedAt: build.completed > 0 ? new Date(build.completed) : null,
    context: {},
    warnings: [...warnings, ...cutter.warnings()],
  };
}

/** Whether it is one on tests. */
function readMessage(build: Build, { kind, attributes }: ServiceMessage): boolean {
  const of = (key: string) => attributes.get(key) ?? "";
  const time = toTime(of("timestamp"));
  if (time) {
    [build.began, build.ended] = [Math.min(build.began, time.at), Math.max(build.ended, time.at)];
    if (time.isZoned) build.completed = Math.max(build.completed, time.at);
  }
  const flow = enter(build, of("flowId"));
  switch (kind) {
    case "flowStarted":
      // A flow runs inside the suite of its parent.
      Object.assign(flow, { suite: build.flows.get(of("parent"))?.suite ?? flow.suite });
      return false;
    case "testCount":
      build.declared = (build.declared ?? 0) + (/^\d{1,9}$/.test(of("count")) ? Number(of("count")) : 0);
      return true;
    case "testRetrySupport":
      build.retried = of("enabled") === "false" ? null : (build.retried ?? new Map());
      return true;
    case "buildProblem":
      build.problems.push(of("description") || "The build has a problem");
      return false;
    case "buildStatus":
      if (/^(?:FAILURE|ERROR)$/i.test(of("status"))) build.problems.push(of("text") || "The build failed");
      return false;
    case "testSuiteStarted":
      openSuite(build, flow, of("name"), toFile(of("locationHint")));
      return true;
    case "testSuiteFinished":
      closeSuite(build, flow, of("name"));
      return true;
    case "testStarted":
      start(build, flow, attributes, time?.at ?? Number.NaN);
      return true;
    case "testFinished":
      finish(build, flow, attributes, time?.at ?? Number.NaN);
      return true;
    case "testMetadata": {
      const test = build.open.get(toKey(of("flowId"), of("testName"))) ?? flow.last;
      if (test && of("name") && of("value") && test.properties.length < MAX_METADATA)
        test.properties.push([of("name"), of("value")]);
      return true;
    }
    case "testFailed":
    case "testIgnored":
    case "testStdOut":
    case "testStdErr": {
      // A failed hook and an ignored test need not have begun.
      const test = build.open.get(toKey(of("flowId"), of("name"))) ?? start(build, flow, attributes, Number.NaN);
      if (kind === "testIgnored") test.ignored = of("message");
      else if (kind !== "testFailed") test.output += of("out");
      else if (RISKY.test(of("message")) && test.file?.endsWith(".php"))
        test.properties.push(["risky", firstLine(of("message"))]);
      else test.failures.push({ message: of("message"), details: of("details"), isError: of("error") === "true" });
      return true;
    }
    default:
      return false;
  }
}

const MAX_METADATA = 100;
/** Messages that PHPUnit reports as failures although they do not fail its run. */
const RISKY =
  /^(?:This test did not perform any assertions|This test printed output: |TeamcityTest code or tested code )/;

const toKey = (flowId: string, name: string): string => `${flowId.replace(/_hook$/, "")}\0${name}`;

/** mocha reports hooks in a separate flow. */
function enter(build: Build, flowId: string): Flow {
  const id = flowId.replace(/_hook$/, "");
  const known = build.flows.get(id);
  if (known) return known;
  const flow: Flow = { suite: null, names: new Map(), last: null };
  build.flows.set(id, flow);
  return flow;
}

function openSuite(build: Build, flow: Flow, name: string, hintedFile: string | null): void {
  const outer = flow.suite;
  // PHPUnit, Jest and Vitest call the outermost suite after the folder or the file that the tests are in.
  const isFolder = (outer === null || (outer.path === "" && outer.file === null)) && PATH.test(name);
  const isFile = SOURCE.test(name);
  const own = isFolder || (isFile && outer === null) ? "" : name;
  const path = !outer || outer.path === "" ? own : own === "" ? outer.path : `${outer.path} > ${own}`;
  const file = hintedFile ?? (isFile && outer === null ? name : (outer?.file ?? null));
  const isFull = outer !== null && outer.path.length > MAX_NAME;
  flow.suite = { name, path: isFull ? outer.path : cut(path, MAX_NAME + 1), file, outer };
  flow.names.set(name, (flow.names.get(name) ?? 0) + 1);
  build.suites++;
}

const PATH = /^(?:\/|[a-z]:[\\/])/i;
const SOURCE = /^[^\s]{1,500}\.(?:[cm]?[jt]sx?|vue|svelte|php|py|rb)$/i;

/** Vitest's reporter ends a suite by another name than it began with: then the innermost is meant. */
function closeSuite(build: Build, flow: Flow, name: string): void {
  const isKnown = (flow.names.get(name) ?? 0) > 0;
  for (let suite = flow.suite; suite; suite = suite.outer) {
    flow.suite = suite.outer;
    // The parent flow ends suites that a flow has inherited.
    const count = flow.names.get(suite.name) ?? 0;
    if (count > 0) {
      flow.names.set(suite.name, count - 1);
      build.suites--;
    } else flow.suite = suite;
    if (!isKnown || suite.name === name || count === 0) return;
  }
}

function start(build: Build, flow: Flow, attributes: MessageAttributes, began: number): TeamcityTest {
  const name = attributes.get("name") ?? "";
  const key = toKey(attributes.get("flowId") ?? "", name);
  const suite = flow.suite?.path ?? "";
  const running = build.open.get(key);
  const before = running?.suite === suite ? running : build.retried?.get(`${suite}\0${name}`);
  // mocha does not end what it tries again.
  if (before && (before === running || before.failures.length > 0)) {
    const failure = before.failures.length > 0 || before === running;
    Object.assign(before, { attempts: before.attempts + 1, failures: [], ignored: null, output: "", began });
    before.hasFailedBefore ||= failure;
    build.open.set(key, before);
    flow.last = before;
    return before;
  }
  if (running) running.unfinished = running.failures.length === 0 && running.ignored === null;
  const test: TeamcityTest = {
    suite,
    name,
    file: toFile(attributes.get("locationHint") ?? "") ?? flow.suite?.file ?? null,
    attempts: 1,
    hasFailedBefore: false,
    failures: [],
    ignored: null,
    output: "",
    began,
    durationMs: null,
    unfinished: false,
    properties: [],
  };
  build.tests.push(test);
  build.open.set(key, test);
  build.retried?.set(`${suite}\0${name}`, test);
  flow.last = test;
  return test;
}

function finish(build: Build, flow: Flow, attributes: MessageAttributes, ended: number): void {
  const name = attributes.get("name") ?? "";
  const key = toKey(attributes.get("flowId") ?? "", name);
  const test = build.open.get(key) ?? start(build, flow, attributes, Number.NaN);
  build.open.delete(key);
  const duration = attributes.get("duration") ?? "";
  test.durationMs = /^\d{1,12}(?:\.\d{1,30})?$/.test(duration) ? toMs(Number(duration)) : toMs(ended - test.began);
}

/** Output between the messages belongs to the running test, as long as there is only one. */
function addOutput(build: Build, text: string): void {
  if (build.open.size !== 1 || text.trim() === "") return;
  const [test] = build.open.values();
  test!.output += clean(text).replace(/^\r?\n/, "");
}

/** PHPUnit's `php_qn:///app/tests/CartTest.php::\CartTest::testAdds`, and URLs of files. */
function toFile(hint: string): string | null {
  return /^(?:php_qn|file):\/\/([^:\n]{1,900}(?::[\\/][^:\n]{1,900})?)/.exec(hint)?.[1] ?? null;
}

/** A time without a zone is only used for durations. */
function toTime(timestamp: string): { at: number; isZoned: boolean } | null {
  const [, time, zone] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?)(Z|[+-]\d\d:?\d\d)?$/.exec(timestamp) ?? [];
  if (time === undefined) return null;
  const at = Date.parse(time + (zone ?? "Z").replace(/(\d\d)(\d\d)$/, "$1:$2"));
  return at > 0 ? { at, isZoned: zone !== undefined } : null;
}

/** A build that broke off, or that has a problem of its own, must not be green. */
function toFault({ problems }: Build, isCut: boolean): { name: string; message: string; stack?: string } | null {
  if (problems.length > 0) {
    return { name: "(build failed)", message: firstLine(problems[0]!), stack: problems.slice(0, 100).join("\n") };
  }
  return isCut ? { name: "(test run did not finish)", message: "The service messages break off" } : null;
}
