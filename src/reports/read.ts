/** Reads any test report: unpacks it, recognises its format and hands it to the one file that knows that format. */

import { toStorable } from "../schema/fields.ts";
import { isAllureContainer, joinAllureResults, readAllure } from "./allure.ts";
import { isBehave, readBehave } from "./behave.ts";
import { readBoostTest } from "./boost_test.ts";
import { readCatch2 } from "./catch2.ts";
import { isCtest, readCtest } from "./ctest.ts";
import { isCtrf, readCtrf } from "./ctrf.ts";
import { readCucumber } from "./cucumber.ts";
import { isCucumberMessages, readCucumberMessages } from "./cucumber_messages.ts";
import { readDart } from "./dart.ts";
import { readDoctest } from "./doctest.ts";
import { toFields } from "./fields.ts";
import { isGoJson, readGo } from "./go.ts";
import { isGoText, readGoText } from "./go_text.ts";
import { readJest } from "./jest.ts";
import { parseJson } from "./json.ts";
import { isJsonLines } from "./json_lines.ts";
import { isPlace, isRoot, readJunit } from "./junit.ts";
import { isLibtest, readLibtest } from "./libtest.ts";
import { readMocha } from "./mocha.ts";
import { readMochawesome } from "./mochawesome.ts";
import { isNative, readNative } from "./native.ts";
import { readNewman } from "./newman.ts";
import { readNunit } from "./nunit.ts";
import { readPlaywright } from "./playwright.ts";
import { readPytestJson } from "./pytest_json.ts";
import { isPytestReportlog, readPytestReportlog } from "./pytest_reportlog.ts";
import { binaryKind, foreignKind, hasFields, jsonKind, textKind, xmlKind } from "./refusals.ts";
import { emptyReport, type Report, ReportError } from "./report.ts";
import { isRobot, isSuite, readRobot } from "./robot.ts";
import { readRspec } from "./rspec.ts";
import { readSonar } from "./sonar.ts";
import { readSubunit } from "./subunit.ts";
import { isSubunit } from "./subunit_packets.ts";
import { isSwiftTesting, readSwiftTesting } from "./swift_testing.ts";
import { readTap } from "./tap.ts";
import { isPlainTap, isTap } from "./tap_source.ts";
import { readTeamcity } from "./teamcity.ts";
import { readTestng } from "./testng.ts";
import { cut, decode, localName, MAX_CASES, MAX_COUNT, plural } from "./text.ts";
import { readTrx } from "./trx.ts";
import { unpack } from "./unpack.ts";
import { readXcresult } from "./xcresult.ts";
import { parseXml, prolog, type XmlReading } from "./xml.ts";
import { readXunit } from "./xunit.ts";

/** A file as text, and what its beginning tells. */
type Source = {
  text: string;
  /** The bytes of a format that is no text; then `text` is empty. */
  binary: Uint8Array | null;
  /** The root element without its prefix, when this is XML. */
  root: string | null;
  /** `undefined` when this is not JSON. */
  json: unknown;
  /** Why it is not JSON, when it begins like JSON. */
  fault: ReportError | null;
  /** Whether `text` and `json` have U+FFFD in place of NUL, which no JSON may hold as it is; XML is cleaned by its reader. */
  hadNul: boolean;
};

type Reader = {
  /** What `format` is set to. */
  name: string;
  title: string;
  recognise: (source: Source) => boolean;
  /** Whether a document without test cases, which nothing recognises, is of this format when `format` says so. */
  isEmpty?: (source: Source) => boolean;
  /** One report from one file, or from all files of the format where each holds only one result. */
  read: ((source: Source) => Report) | { together: (sources: Source[]) => Report };
};

/** Tools that are not supported use the roots of others. */
const isForeign = (root: string, text: string): boolean => foreignKind(root, text.slice(0, 5_000)) !== null;

/** Every format, in the order in which they are tried. A new one is a file beside this one and its `read` here. */
const READERS: Reader[] = [
  {
    name: "junit",
    title: "JUnit XML",
    recognise: ({ root, text }) => root !== null && isRoot(root) && !isForeign(root, text),
    read: (source) => readXml(source, { whole: "testcase", isDivisible: isPlace, isRoot, read: readJunit }),
  },
  {
    name: "playwright",
    title: "Playwright JSON",
    // Before version 1.38 it had no stats.
    recognise: ({ json }) => hasFields(json, "config", "suites", "errors"),
    read: (source) => readPlaywright(needJson(source)),
  },
  {
    name: "jest",
    title: "Jest or Vitest JSON",
    recognise: ({ json }) => hasFields(json, "testResults", "numTotalTests"),
    read: (source) => readJest(needJson(source)),
  },
  {
    name: "ctrf",
    title: "CTRF",
    recognise: ({ json }) => isCtrf(json),
    read: (source) => readCtrf(needJson(source)),
  },
  {
    name: "mocha",
    title: "Mocha JSON",
    recognise: ({ json }) => hasFields(json, "stats", "tests", "passes"),
    read: (source) => readMocha(needJson(source)),
  },
  {
    name: "mochawesome",
    title: "mochawesome JSON",
    recognise: ({ json }) => hasFields(json, "stats", "results") && hasFields(toFields(json).stats, "testsRegistered"),
    read: (source) => readMochawesome(needJson(source)),
  },
  {
    name: "pytest_json",
    title: "the JSON of pytest-json-report",
    recognise: ({ json }) => hasFields(json, "exitcode", "summary", "created"),
    read: (source) => readPytestJson(needJson(source)),
  },
  {
    name: "newman",
    title: "Newman JSON",
    recognise: ({ json }) => hasFields(json, "run") && hasFields(toFields(json).run, "stats", "executions", "failures"),
    read: (source) => readNewman(needJson(source)),
  },
  {
    name: "xcresult",
    title: "the test results of xcresulttool",
    recognise: ({ json }) => hasFields(json, "testNodes"),
    read: (source) => readXcresult(needJson(source)),
  },
  {
    name: "behave",
    title: "behave JSON",
    recognise: ({ json }) => isBehave(json),
    isEmpty: ({ json }) => Array.isArray(json) && json.length === 0,
    read: (source) => readBehave(needJson(source)),
  },
  {
    name: "cucumber_messages",
    title: "Cucumber Messages",
    recognise: ({ root, text }) => root === null && isCucumberMessages(text),
    read: ({ text }) => readCucumberMessages(text),
  },
  {
    name: "libtest",
    title: "the JSON of Rust's libtest",
    recognise: ({ root, text }) => root === null && isLibtest(text),
    read: ({ text }) => readLibtest(text),
  },
  {
    name: "pytest_reportlog",
    title: "pytest-reportlog",
    recognise: ({ root, text }) => root === null && isPytestReportlog(text),
    read: ({ text }) => readPytestReportlog(text),
  },
  {
    name: "swift_testing",
    title: "the event stream of Swift Testing",
    recognise: ({ root, text }) => root === null && isSwiftTesting(text),
    read: ({ text }) => readSwiftTesting(text),
  },
  {
    name: "go",
    title: "Go test2json or the output of go test -v",
    recognise: ({ root, text }) => root === null && (isGoJson(text) || isGoText(text)),
    read: ({ text }) => (isGoText(text) ? readGoText(text) : readGo(text)),
  },
  {
    name: "dart",
    title: "Dart or Flutter test JSON lines",
    // Flutter writes what it builds before them, and lists of events of its own.
    recognise: ({ root, text }) =>
      root === null &&
      /^(?:(?!\{).*\n){0,1000}\{.{0,1000}"type":"(?:start|allSuites|suite|group|testStart|testDone|print|error)"/.test(
        text,
      ) &&
      /"(?:protocolVersion|suiteID|testID)":/.test(text),
    read: ({ text }) => readDart(text),
  },
  {
    name: "teamcity",
    title: "TeamCity service messages",
    // To TAP they are comments, and to them it is output: what comes first is meant.
    recognise: ({ root, text }) => {
      const first = root === null ? /^[^"\n]{0,100}##teamcity\[test[A-Z]/m.exec(text) : null;
      return first !== null && !isPlainTap(text.slice(0, first.index));
    },
    read: ({ text }) => readTeamcity(text),
  },
  {
    name: "tap",
    title: "TAP",
    recognise: ({ text, root, json }) => isPlainTap(text) || (root === null && json === undefined && isTap(text)),
    read: ({ text }) => readTap(text),
  },
  {
    name: "trx",
    title: "TRX",
    recognise: ({ root, text }) => root === "TestRun" && !isForeign(root, text),
    read: (source) => readXml(source, wholly(readTrx)),
  },
  {
    name: "nunit",
    title: "NUnit XML",
    recognise: ({ root }) => root === "test-run" || root === "test-results",
    read: (source) => readXml(source, wholly(readNunit)),
  },
  {
    name: "xunit",
    title: "xUnit XML",
    recognise: ({ root, text }) => root === "assemblies" || (root === "assembly" && !isForeign(root, text)),
    read: (source) => readXml(source, wholly(readXunit)),
  },
  {
    name: "robot",
    title: "Robot Framework's output.xml",
    recognise: ({ root, text }) => root === "robot" && isRobot(text.slice(0, 5000)),
    read: (source) => readXml(source, { whole: "test", isDivisible: isSuite, read: readRobot }),
  },
  {
    name: "doctest",
    title: "doctest XML",
    recognise: ({ root }) => root === "doctest",
    read: (source) => readXml(source, { whole: "TestCase", read: (parts) => readDoctest([...parts][0]!.root) }),
  },
  {
    name: "testng",
    title: "TestNG's testng-results.xml",
    recognise: ({ root }) => root === "testng-results",
    read: (source) => readXml(source, { whole: "test-method", read: (parts) => readTestng([...parts][0]!.root) }),
  },
  {
    name: "ctest",
    title: "CTest's Test.xml",
    recognise: ({ root, text }) => root === "Site" && isCtest(text.slice(0, 100_000)),
    read: (source) => readXml(source, { whole: "Test", read: (parts) => readCtest([...parts][0]!.root) }),
  },
  {
    name: "boost",
    title: "Boost.Test XML",
    recognise: ({ root }) => root === "TestLog" || root === "TestResult",
    read: (source) => readXml(source, { whole: "TestCase", read: (parts) => readBoostTest([...parts][0]!.root) }),
  },
  {
    name: "catch2",
    title: "Catch2 XML",
    recognise: ({ root }) => root === "Catch2TestRun" || root === "Catch",
    read: (source) => readXml(source, { whole: "TestCase", read: (parts) => readCatch2([...parts][0]!.root) }),
  },
  {
    name: "sonar",
    title: "SonarQube's generic test execution",
    recognise: ({ root }) => root === "testExecutions" || root === "unitTest",
    read: (source) => readXml(source, { whole: "testCase", read: (parts) => readSonar([...parts][0]!.root) }),
  },
  {
    name: "subunit",
    title: "subunit version 2",
    recognise: ({ binary }) => binary !== null,
    read: ({ binary }) => readSubunit(binary),
  },
  {
    name: "cucumber",
    title: "Cucumber JSON",
    recognise: ({ json }) => Array.isArray(json) && hasFields(json[0], "elements", "uri"),
    isEmpty: ({ json }) => Array.isArray(json) && json.length === 0,
    read: (source) => readCucumber(needJson(source)),
  },
  {
    name: "rspec",
    title: "RSpec JSON",
    recognise: ({ json }) => hasFields(json, "examples", "summary_line"),
    read: (source) => readRspec(needJson(source)),
  },
  {
    name: "allure",
    title: "an Allure result",
    recognise: ({ json }) =>
      (hasFields(json, "uuid", "status") && ["historyId", "stage", "start"].some((key) => hasFields(json, key))) ||
      isAllureContainer(json),
    read: {
      together: (sources) => joinAllureResults(sources.map(needJson).flatMap(readAllure)),
    },
  },
  {
    name: "assay",
    title: "Assay JSON",
    recognise: ({ json }) => isNative(json),
    read: (source) => {
      if (source.hadNul) throw new ReportError("it holds a NUL character");
      return readNative(needJson(source));
    },
  },
];

/**
 * Several files become one report. `format` names one of READERS and overrides recognition; `maxInflatedBytes` bounds
 * all files together; `mayBeEmpty`: a file that holds nothing is a report without test cases. The bytes of `files` are given back while they are read. Throws a ReportError that says which
 * file, where in it, and why.
 */
export function readReport(
  files: { name: string; bytes: Uint8Array }[],
  options: { format?: string; maxInflatedBytes: number; mayBeEmpty?: boolean },
): Report {
  if (files.length === 0) throw new ReportError("Cannot read the report: there is no file");
  const forced = options.format === undefined ? null : findReader(options.format);
  let room = options.maxInflatedBytes;
  const reports: [string, Report][] = [];
  const together = new Map<Together, [string, Source][]>();
  for (const file of files) {
    const { name } = file;
    const naming = <T>(read: () => T): T => withName(name, files.length > 1, read);
    const plain = naming(() => unpack(file.bytes, room));
    room -= plain.length;
    if (options.mayBeEmpty && isBlank(plain)) {
      reports.push([name, EMPTY]);
      continue;
    }
    const text = naming(() => toText(plain));
    // As a text it is there once more, and the tree of a large one takes several times as much.
    file.bytes = NOTHING;
    if (text !== null && text.length > LARGE_TEXT) Bun.gc(true);
    const source = naming(() => (text === null ? { ...NO_TEXT, binary: plain } : toSource(text)));
    const reader = forced ?? naming(() => recognise(source));
    const { read } = reader;
    if (typeof read === "function") reports.push([name, naming(() => readOne(reader, read, source))]);
    else together.set(read, [...(together.get(read) ?? []), [name, source]]);
  }
  for (const [read, sources] of together) {
    const [name] = sources[0]!;
    const report = withName(name, files.length > 1, () => read.together(sources.map(([, source]) => source)));
    reports.push([name, report]);
  }
  return reports.length === 1 ? reports[0]![1] : merge(reports);
}

const LOOKS = 16;
const LOOK_BYTES = 4_096;
const LARGE_BYTES = 1_000_000;

/**
 * About how many test cases large files hold, as a look at parts of them tells: only what can be got ready meanwhile may
 * depend on it. 0 for what is small, or no plain JUnit XML.
 */
export function guessCases(files: readonly { bytes: Uint8Array }[]): number {
  let cases = 0;
  for (const { bytes } of files) {
    if (bytes.length < LARGE_BYTES) continue;
    let seen = 0;
    for (let look = 0; look < LOOKS; look++) {
      const from = Math.floor((look * (bytes.length - LOOK_BYTES)) / (LOOKS - 1));
      const text = Buffer.from(bytes.buffer, bytes.byteOffset + from, LOOK_BYTES).toString("latin1");
      seen += text.split("<testcase ").length - 1;
    }
    cases += Math.round((seen * bytes.length) / (LOOKS * LOOK_BYTES));
  }
  return cases;
}

const NOTHING = new Uint8Array();

/** What a runner that died has left of its report. */
const EMPTY = emptyReport("empty", ["The report is empty"]);

const isBlank = (bytes: Uint8Array): boolean => bytes.length < 1_000 && decode(bytes).trim() === "";
/** From here on what has been read is given back at once, and not when the collector comes round to it. */
const LARGE_TEXT = 32 * 2 ** 20;

type Together = Exclude<Reader["read"], (source: Source) => Report>;

/** Says which file it is that cannot be read. */
function withName<T>(name: string, isOneOfMany: boolean, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ReportError)) throw error;
    // A message that begins with a field stands by itself as long as there is no other file to be meant.
    if (error.message.startsWith('"') && !isOneOfMany) throw new ReportError(`Cannot read ${error.message}`);
    throw new ReportError(`Cannot read "${cut(name, 200)}": ${error.message}`);
  }
}

function findReader(format: string): Reader {
  const reader = READERS.find(({ name }) => name === format);
  if (reader) return reader;
  const known = READERS.map(({ name }) => `"${name}"`).toSorted();
  const list = `${known.slice(0, -1).join(", ")} or ${known.at(-1)}`;
  throw new ReportError(`Cannot read "format": expected ${list}, got ${JSON.stringify(cut(format, 50))}`);
}

/** A document of another format that `format` names holds no test cases either, but is no empty report. */
function readOne({ recognise, isEmpty, title }: Reader, read: (source: Source) => Report, source: Source): Report {
  const report = read(source);
  const hasNone = report.cases.length === 0 && report.countsOnly === null;
  if (hasNone && !recognise(source) && !isEmpty?.(source))
    throw new ReportError(`it holds no test cases and is not ${title}`);
  return report;
}

const NO_TEXT: Source = { text: "", binary: null, root: null, json: undefined, fault: null, hadNul: false };

/** `null` for a format that is no text. */
function toText(bytes: Uint8Array): string | null {
  if (isSubunit(bytes)) return null;
  const kind = binaryKind(bytes);
  if (kind) throw new ReportError(`it is ${kind}, not a test report`);
  return decode(bytes);
}

function recognise(source: Source): Reader {
  const reader = READERS.find(({ recognise }) => recognise(source));
  if (reader) return reader;
  throw new ReportError(toRefusal(source));
}

function toSource(raw: string): Source {
  const start = raw.slice(0, 100).trimStart() || raw.trimStart();
  if (start === "") throw new ReportError("it is empty");
  if (start.startsWith("<")) {
    const text = raw.trimStart();
    const { root, doctype } = prolog(text);
    const name = /^<!doctype\s+html/i.test(doctype ?? "") ? "html" : root && localName(root);
    return { ...NO_TEXT, text: raw, root: name };
  }
  const plain = raw.includes("\0") ? toStorable(raw) : raw;
  const source: Source = { ...NO_TEXT, text: plain.trimStart(), hadNul: plain !== raw };
  if (!start.startsWith("{") && !start.startsWith("[")) return source;
  if (isJsonLines(source.text))
    return { ...source, fault: new ReportError("malformed JSON at line 2: there is more after its end") };
  try {
    return { ...source, json: parseJson(plain) };
  } catch (error) {
    return { ...source, fault: error as ReportError };
  }
}

function toRefusal({ text, root, json, fault }: Source): string {
  if (fault) return jsonLines(text) ?? fault.message;
  if (json !== undefined) {
    const kind = jsonKind(json);
    if (kind) return `it is ${kind}, not a test report`;
    if (Array.isArray(json)) return `it is a JSON list of ${plural(json.length, "element")} of no known format`;
    return `it is JSON of no known format, ${tellKeys(json as object)}`;
  }
  if (root !== null) {
    const kind = xmlKind(root, text.slice(0, 5000));
    return kind
      ? `it is ${kind}, not a test report`
      : `it is XML of no known format, with the root <${cut(root, 100)}>`;
  }
  if (text.trimStart().startsWith("<")) return "it is malformed XML without a root element";
  return `it is ${textKind(text)}, not a test report`;
}

function tellKeys(json: object): string {
  const keys = Object.keys(json);
  const some = keys.slice(0, 8).map((key) => JSON.stringify(cut(key, 40)));
  const rest = keys.length > 8 ? ` and ${keys.length - 8} more` : "";
  return keys.length > 0 ? `with the keys ${some.join(", ")}${rest}` : "with no keys";
}

/** One JSON object per line is not malformed JSON, and a refusal should not say so. */
function jsonLines(text: string): string | null {
  const [first = "", second = ""] = text.slice(0, 10_000).split("\n");
  if (!first.startsWith("{") || !second.startsWith("{")) return null;
  try {
    return `it is JSON lines of no known format, the first ${tellKeys(JSON.parse(first))}`;
  } catch {
    return null;
  }
}

function needJson({ json, fault }: Source): unknown {
  if (fault) throw fault;
  if (json === undefined) throw new ReportError("it is not JSON");
  return json;
}

/** For a reader that needs the document as one, and refuses what is broken. */
const wholly = (read: (root: Bun.XML.Node) => Report): XmlReading<Report> => ({
  whole: null,
  read: (parts) => read([...parts][0]!.root),
});

function readXml({ text, root }: Source, reading: XmlReading<Report>): Report {
  if (root === null) throw new ReportError("it is not XML");
  const { result, broken, mended, trailing } = parseXml(text, reading);
  const kept = plural(result.cases.length, "test case");
  const warnings = [
    ...(broken ? [`The report is broken at ${broken}; only what comes before it is read, ${kept}`] : []),
    ...(trailing === null ? [] : [`Left out the text after the end of the report: "${cut(trailing, 100)}"`]),
    ...(mended ? [`Took ${plural(mended, "character")} literally that XML wants escaped`] : []),
  ];
  return { ...result, partial: result.partial || broken !== null, warnings: [...warnings, ...result.warnings] };
}

function merge(named: [string, Report][]): Report {
  const reports = named.map(([, report]) => report);
  const cases = reports.flatMap((report) => report.cases);
  if (cases.length > MAX_CASES) {
    throw new ReportError(
      `Cannot read the files: together they have more than ${MAX_CASES.toLocaleString("en")} cases`,
    );
  }
  const countsOnly = reports.filter((report) => report.countsOnly);
  if (countsOnly.length > 0 && countsOnly.length < reports.length) {
    const [name] = named.find(([, report]) => report.countsOnly)!;
    throw new ReportError(
      `Cannot read "${cut(name, 200)}": it lists no cases, so it cannot be merged with files that do`,
    );
  }
  const counts = countsOnly.length === 0 ? null : countsOnly.map((report) => report.countsOnly!).reduce(add);
  if (counts && counts.passed + counts.failed + counts.skipped > MAX_COUNT) {
    throw new ReportError(
      `Cannot read the files: together they count more than ${MAX_COUNT.toLocaleString("en")} cases`,
    );
  }
  const agreed = <T>(values: T[]): T | null => (values.every((value) => value === values[0]) ? values[0]! : null);
  const complete = (values: (number | null)[]) => values.filter((value) => value !== null);
  const durations = complete(reports.map(({ durationMs }) => durationMs));
  const ends = complete(reports.map(({ completedAt }) => completedAt && completedAt.getTime()));
  const attachments = reports.flatMap((report) => report.attachments ?? []);
  return {
    format: agreed(reports.map(({ format }) => format)) ?? "mixed",
    suite: agreed(reports.map(({ suite }) => suite)),
    cases,
    countsOnly: counts,
    partial: reports.some(({ partial }) => partial),
    durationMs: durations.length < reports.length ? null : durations.reduce((sum, ms) => sum + ms, 0),
    completedAt: ends.length < reports.length ? null : new Date(ends.reduce((latest, end) => Math.max(latest, end))),
    // The first file that says something is believed.
    context: Object.assign({}, ...reports.map(({ context }) => context).reverse()),
    ...(attachments.length > 0 ? { attachments } : {}),
    warnings: named.flatMap(([name, { warnings, cases, countsOnly }]) => {
      const told = cases.length > 0 || countsOnly || warnings.length > 0 ? warnings : ["It holds no test case"];
      return told.map((warning) => `${cut(name, 200)}: ${warning}`);
    }),
  };
}

function add(a: NonNullable<Report["countsOnly"]>, b: typeof a): typeof a {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}
