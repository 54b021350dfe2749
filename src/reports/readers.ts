/** The readers of all formats, in the order in which they are tried. */

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
import { isContainer, isRoot, readJunit } from "./junit.ts";
import { readK6 } from "./k6.ts";
import { isLibtest, readLibtest } from "./libtest.ts";
import { readMocha } from "./mocha.ts";
import { readMochawesome } from "./mochawesome.ts";
import { isNative, readNative } from "./native.ts";
import { readNewman } from "./newman.ts";
import { readNunit } from "./nunit.ts";
import { isOpenTestReporting, readOpenTestReporting } from "./open_test_reporting.ts";
import { readPlaywright } from "./playwright.ts";
import { isPlaywrightBlob, readPlaywrightBlob } from "./playwright_blob.ts";
import { readPytestJson } from "./pytest_json.ts";
import { isPytestReportlog, readPytestReportlog } from "./pytest_reportlog.ts";
import { foreignKind, hasFields } from "./refusals.ts";
import { type Report, ReportError } from "./report.ts";
import { isRobot, isSuite, readRobot } from "./robot.ts";
import { readRspec } from "./rspec.ts";
import { readSonar } from "./sonar.ts";
import { readSubunit } from "./subunit.ts";
import { isSurefire, readSurefire } from "./surefire.ts";
import { isSwiftTesting, readSwiftTesting } from "./swift_testing.ts";
import { readTap } from "./tap.ts";
import { isPlainTap, isTap } from "./tap_source.ts";
import { readTeamcity } from "./teamcity.ts";
import { readTestng } from "./testng.ts";
import { cut, plural } from "./text.ts";
import { readTrx } from "./trx.ts";
import { readXcresult } from "./xcresult.ts";
import { parseXml, type XmlReading } from "./xml.ts";
import { readXunit } from "./xunit.ts";
import { needJson, type Source } from "./source.ts";

export type Reader = {
  /** The value of the parameter `format`. */
  name: string;
  title: string;
  recognise: (source: Source) => boolean;
  /** Whether a document without test cases, which nothing recognises, is of this format when `format` says so. */
  isEmpty?: (source: Source) => boolean;
  /** Reads one report from one file, or from all files of the format if each has only one result. */
  read: ((source: Source) => Report) | { together: (sources: Source[]) => Report };
};

/** Keywords call each other up to 140 levels deep, each with a branch or an iteration around it. */
const ROBOT_LEVELS = 500;

/** Tools that are not supported use the roots of others. */
const isForeign = (root: string, text: string): boolean => foreignKind(root, text.slice(0, 5_000)) !== null;

/** A new format is a file beside this one, and its entry here. */
export const READERS: Reader[] = [
  {
    name: "junit",
    title: "JUnit XML",
    recognise: ({ root, text }) => root !== null && isRoot(root) && !isForeign(root, text),
    read: (source) => readXml(source, { whole: "testcase", isDivisible: isContainer, isRoot, read: readJunit }),
  },
  {
    name: "playwright",
    title: "Playwright JSON",
    // Before version 1.38 it had no stats.
    recognise: ({ json }) => hasFields(json, "config", "suites", "errors"),
    read: (source) => readPlaywright(needJson(source)),
  },
  {
    name: "playwright_blob",
    title: "a blob report of Playwright",
    recognise: ({ root, text }) => root === null && isPlaywrightBlob(text),
    read: ({ text, resources }) => readPlaywrightBlob(text, resources),
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
    recognise: ({ json }) =>
      hasFields(toFields(json).stats, "testsRegistered") && (hasFields(json, "results") || hasFields(json, "suites")),
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
    // Flutter writes build output before the events, and events of its own.
    recognise: ({ root, text }) =>
      root === null &&
      /^(?:(?!\{).*\n){0,1000}\{.{0,1000}"type":"(?:start|allSuites|suite|group|testStart|testDone|print|error)"/.test(
        text,
      ) &&
      /"(?:protocolVersion|suiteID|testID)":/.test(text),
    read: ({ text }) => readDart(text),
  },
  {
    name: "surefire",
    title: "the text of Maven Surefire",
    recognise: ({ root, json, text }) => root === null && json === undefined && isSurefire(text),
    read: ({ text }) => readSurefire(text),
  },
  {
    name: "teamcity",
    title: "TeamCity service messages",
    // Each format ignores the lines of the other, so the one that begins first is chosen.
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
    read: (source) =>
      readXml(source, { whole: "test", isDivisible: isSuite, maxLevels: ROBOT_LEVELS, read: readRobot }),
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
    name: "open_test_reporting",
    title: "Open Test Reporting",
    recognise: ({ root, text }) => root !== null && isOpenTestReporting(root, text.slice(0, 5_000)),
    read: (source) => readXml(source, wholly(readOpenTestReporting)),
  },
  {
    name: "k6",
    title: "a summary of k6",
    recognise: ({ json }) =>
      hasFields(json, "root_group", "metrics") && hasFields(toFields(json).root_group, "checks", "groups"),
    read: (source) => readK6(needJson(source)),
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

/** For readers that need the whole document, and refuse a broken one. */
const wholly = (read: (root: Bun.XML.Node) => Report): XmlReading<Report> => ({
  whole: null,
  read: (parts) => read([...parts][0]!.root),
});

function readXml({ text, root }: Source, reading: XmlReading<Report>): Report {
  if (root === null) throw new ReportError("it is not XML");
  const { result, broken, repaired, trailing } = parseXml(text, reading);
  const kept = plural(result.cases.length, "test case");
  const warnings = [
    ...(broken ? [`The report is broken at ${broken}; only what comes before it is read, ${kept}`] : []),
    ...(trailing === null ? [] : [`Left out the text after the end of the report: "${cut(trailing, 100)}"`]),
    ...(repaired ? [`Took ${plural(repaired, "character")} literally that XML wants escaped`] : []),
  ];
  return { ...result, partial: result.partial || broken !== null, warnings: [...warnings, ...result.warnings] };
}
