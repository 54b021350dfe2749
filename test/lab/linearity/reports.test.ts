/** Readers of reports take linear time, whatever text stands at whatever place of a report. */

import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  addTitle,
  msFromSeconds,
  clean,
  createCutter,
  cut,
  decode,
  firstLine,
  headOf,
  lineAt,
} from "../../../src/reports/text.ts";
import { linesOf, localName, toLine } from "../../../src/reports/text.ts";
import { asText, toTexts } from "../../../src/reports/fields.ts";
import { joinJestSuites, namesInJestJunit, splitPlaywrightTitles } from "../../../src/reports/js_tools.ts";
import { splitVitestTitles, toolReaderOf } from "../../../src/reports/js_tools.ts";
import { parseJson } from "../../../src/reports/json.ts";
import { isContainer, isRoot } from "../../../src/reports/junit.ts";
import { readReport } from "../../../src/reports/read.ts";
import { binaryKind, textKind, xmlKind } from "../../../src/reports/refusals.ts";
import { isRobot, isSuite } from "../../../src/reports/robot.ts";
import { countComment, createTally } from "../../../src/reports/totals.ts";
import { unpack } from "../../../src/reports/unpack.ts";
import { parseXml } from "../../../src/reports/xml.ts";
import { divide } from "../../../src/reports/xml_divide.ts";
import { prolog } from "../../../src/reports/xml_syntax.ts";
import { GREEN_REPORTS } from "../../reports/green_reports.ts";
import { WRITTEN } from "../../reports/written.ts";
import { findSteep, testLinearity, TIMEOUT_MS, withFewTexts } from "./growth.ts";

const FIXTURES = join(import.meta.dir, "../../fixtures");
const MAX_INFLATED_BYTES = 2 ** 26;

type Place = { before: string; after: string; escape: (text: string) => string };

const MAX_PLACES = 24;

/** Where a text of others may stand, once for each kind of place: the values of JSON and XML, and the lines of the rest. */
function placesOf(report: string): Map<string, Place> {
  const places = new Map<string, Place>();
  const add = (kind: string, from: number, to: number, escape: Place["escape"]) => {
    if (!places.has(kind) && places.size < MAX_PLACES)
      places.set(kind, { before: report.slice(0, from), after: report.slice(to), escape });
  };
  const isXml = report.trimStart().startsWith("<");
  // Lines of a build may begin with "[INFO]".
  const isJson = /^\s*(?:\{|\[\s*[[{])/.test(report);
  const inJson = (text: string) => JSON.stringify(text).slice(1, -1);
  if (isJson)
    for (const { 0: all, 1: key, 2: value, index } of report.matchAll(/"(\w+)"\s*:\s*"((?:[^"\\]|\\.)*)"/g))
      add(`"${key}"`, index + all.length - 1 - value!.length, index + all.length - 1, inJson);
  else if (isXml) {
    for (const { 0: all, 1: key, 2: value, index } of report.matchAll(/([\w:-]+)="([^"]*)"/g))
      add(`@${key}`, index + all.length - 1 - value!.length, index + all.length - 1, Bun.escapeHTML);
    for (const { 0: all, 1: name, index } of report.matchAll(/<([\w:-]+)(?:\s[^<>]*)?(?<!\/)>/g)) {
      add(`<${name}>`, index + all.length, index + all.length, Bun.escapeHTML);
      // As it is: no tool writes that, and everybody can send it.
      add(`<${name}> raw`, index + all.length, index + all.length, (text) => text);
    }
  } else {
    for (const { 0: all, 1: key, 2: value, index } of report.matchAll(/(\w+)='((?:[^'|]|\|.)*)'/g))
      add(`'${key}'`, index + all.length - 1 - value!.length, index + all.length - 1, (text) => text);
    for (const { 0: line, index } of report.matchAll(/^.+$/gm)) {
      add(line.replace(/[\d'"].*/, ""), index + line.length, index + line.length, (text) => text);
      add(`below ${line.replace(/[\d'"].*/, "")}`, index + line.length + 1, index + line.length + 1, (text) => text);
    }
  }
  return places;
}

const read = (report: string) =>
  readReport([{ name: "report", bytes: new TextEncoder().encode(report) }], { maxInflatedBytes: MAX_INFLATED_BYTES });

const reports: Record<string, string> = {
  ...Object.fromEntries(
    readdirSync(FIXTURES)
      .filter((name) => /\.(?:xml|json|tap|txt|ndjson)$/.test(name))
      .map((name) => [name, readFileSync(join(FIXTURES, name), "utf8")]),
  ),
  ...WRITTEN,
  "playwright_blob.ndjson": GREEN_REPORTS["playwright_blob"]!,
};
// Allure writes a file for each result: the fixture holds them by their names.
const results: object[] = Object.values(JSON.parse(reports["allure_results.json"]!));
reports["allure_results.json"] = JSON.stringify(results.find((one) => "status" in one && one.status === "failed"));

test("there is a report of every format", () => {
  const formats = new Set(Object.values(reports).map((report) => read(report).format));
  let known: string[] = [];
  try {
    readReport([{ name: "report", bytes: new Uint8Array() }], { format: "?", maxInflatedBytes: 1 });
  } catch (error) {
    // The refusal names the formats that there are.
    known = [...(error as Error).message.matchAll(/"(\w+)"/g)].map(([, name]) => name!);
  }
  expect(known).toEqual(expect.arrayContaining([...formats]));
  // The report of subunit is no text.
  expect(known.filter((name) => !formats.has(name))).toEqual(["format", "subunit"]);
});

for (const [name, report] of Object.entries(reports))
  test(
    `${name} with a hostile text in each place`,
    async () => {
      const steep: string[] = [];
      for (const [kind, { before, after, escape }] of placesOf(report)) {
        const found = await findSteep(withFewTexts((text) => read(before + escape(text) + after)));
        steep.push(...found.map((text) => `${kind}: ${text}`));
      }
      expect(steep).toEqual([]);
    },
    TIMEOUT_MS,
  );

/** The root elements of JUnit XML that name a tool. */
const ROOTS: Record<string, string>[] = [
  { name: "vitest tests" },
  { name: "jest tests" },
  { name: "Mocha Tests" },
  { id: "", name: "", tests: "1", failures: "0", skipped: "0", errors: "0", time: "0" },
];

const bytes = (text: string) => new TextEncoder().encode(text);

testLinearity("reports", {
  // Readers are called through readReport, above.
  "allure.ts": { isAllureContainer: null, joinAllureResults: null, readAllure: null },
  "behave.ts": { isBehave: null, readBehave: null },
  "boost_test.ts": { readBoostTest: null },
  "catch2.ts": { readCatch2: null },
  "cpp_checks.ts": { locationOf: null, readExpression: null },
  "ctest.ts": { isCtest: null, readCtest: null },
  "ctrf.ts": { isCtrf: null, readCtrf: null },
  "cucumber.ts": { readCucumber: null },
  "cucumber_messages.ts": { isCucumberMessages: null, readCucumberMessages: null },
  "cucumber_steps.ts": { joinAttempts: null, toStepKind: null, toStepMessage: null },
  "dart.ts": { readDart: null },
  "doctest.ts": { readDoctest: null },
  "fields.ts": {
    ...{ foreignElement: null, refuseForeign: null, toAttachments: null },
    ...{ asText, toTexts },
    ...{ child: null, elementsOf: null, hiddenFailures: null, isObject: null, named: null, textBelow: null },
    ...{ toCase: null, toEpochMs: null, toFault: null, asList: null, toFields: null },
  },
  "go.ts": { ...{ isGoJson: null, readGoEvents: null }, readGo: null },
  "go_text.ts": { isGoText: null, readGoText: null },
  "jest.ts": { readJest: null },
  "js_tools.ts": {
    ...{ isMochaTimeout: null },
    isPlaywright: null,
    joinJestSuites: (text) => joinJestSuites([text, text]),
    namesInJestJunit: (text) => namesInJestJunit([text, text], text, text),
    splitPlaywrightTitles: (text) => splitPlaywrightTitles([text, text]),
    splitVitestTitles: (text) => splitVitestTitles([text, text]),
    toolReaderOf: (text) => {
      const one = { suite: text, name: text, classname: text, file: text, hostname: text };
      for (const root of ROOTS) {
        toolReaderOf(root)?.(one);
        toolReaderOf(root)?.({ ...one, name: `${text} a`, classname: `a ${text}` });
      }
    },
    withProject: null,
  },
  "json.ts": {
    parseJson: (text) => {
      for (const before of ["", "[", '["', '{"a":']) parseJson(before + text);
    },
  },
  "json_lines.ts": { firstJsonLine: null, isJsonLines: null, parseLine: null, readJsonLines: null },
  "junit.ts": { isContainer, isRoot, readJunit: null },
  "junit_names.ts": { createNamer: null, isFile: null },
  "junit_outcome.ts": {
    ...{ childrenNamed: null, countFailureElements: null, failureMessage: null, markedAttachments: null },
    ...{ readInside: null, textInside: null, toOutcome: null },
  },
  "libtest.ts": { isLibtest: null, readLibtest: null },
  "mocha.ts": { readMocha: null },
  "mochawesome.ts": { readMochawesome: null },
  "native.ts": { isNative: null, readNative: null },
  "newman.ts": { readNewman: null },
  "nunit.ts": { readNunit: null },
  "playwright.ts": { readPlaywright: null },
  "pytest.ts": { createPytestNames: null, exitFaults: null, toLoadMessage: null, toPytestKind: null },
  "pytest_json.ts": { readPytestJson: null },
  "pytest_reportlog.ts": { isPytestReportlog: null, readPytestReportlog: null },
  // Covered by the call of readReport
  "merge_reports.ts": { mergeReports: null },
  "source.ts": { needJson: null, toRefusal: null, toSource: null, toText: null },
  "read.ts": {
    // It reads no further than recognition, which readReport begins with.
    findFormat: null,
    // No report at all, or one that only begins.
    readReport: withFewTexts((text) => {
      for (const before of ["", "<testsuite>", "<?xml ", "<!DOCTYPE ", '{"', "TAP version 13\n", "{\n", "ok 1 "])
        try {
          read(before + text);
        } catch {
          // A refusal is an answer.
        }
    }),
  },
  "refusals.ts": {
    ...{ foreignKind: null },
    binaryKind: (text) => binaryKind(bytes(text)),
    hasFields: null,
    jsonKind: null,
    textKind,
    xmlKind: (text) => ["report", "project", "coverage"].map((root) => xmlKind(root, text)),
  },
  "report.ts": { emptyReport: null, erroredCase: null, nestedTooDeeply: null },
  "rounds.ts": { casesInRounds: null, casesOfRounds: null },
  "robot.ts": { isRobot: (text) => isRobot(text.slice(0, 5_000)), isSuite, readRobot: null },
  "rspec.ts": { readRspec: null },
  "sonar.ts": { readSonar: null },
  "subunit.ts": { readSubunit: null },
  "subunit_packets.ts": { isSubunit: null, readPackets: null },
  "swift_testing.ts": { isSwiftTesting: null, readSwiftTesting: null },
  "tap.ts": { readTap: null },
  "tap_source.ts": { isPlainTap: null, isTap: null, toPlainTap: null },
  "teamcity.ts": { readTeamcity: null },
  "testng.ts": { readTestng: null },
  "text.ts": {
    addTitle: (text) => addTitle([text], text),
    ...{ joinAttachments: null, parseCount: null },
    clean,
    createCutter: (text) => createCutter().cut("message", text),
    cut: (text) => cut(text, 1_000),
    decode: (text) => decode(bytes(text)),
    describeTotals: null,
    disagreement: null,
    firstLine,
    headOf: (text) => headOf(bytes(text), 1_000),
    lineAt: (text) => lineAt(text, text.length),
    linesOf,
    localName,
    msFromSeconds,
    plural: null,
    textOf: null,
    toLine,
    toMs: null,
    tooManyCases: null,
  },
  "totals.ts": {
    ...{ noteUnit: null, takeUnitTime: null },
    countCase: null,
    countComment: (text) => countComment(createTally({}, "", null), text),
    countOutsideFailure: null,
    createTally: null,
    createTotals: null,
  },
  "trx.ts": { readTrx: null },
  "unknown_results.ts": { createUnknownResults: null },
  "surefire.ts": { isSurefire: null, readSurefire: null },
  "playwright_blob.ts": { isPlaywrightBlob: null, readPlaywrightBlob: null },
  "zip.ts": { isZip: null, listZip: null, readZipEntry: null },
  "unpack.ts": {
    ...{ createTextInflater: null, openResources: null },
    unpack: (text) => unpack(bytes(text), MAX_INFLATED_BYTES),
  },
  "xcresult.ts": { readXcresult: null },
  "xml_divide.ts": { divide: (text) => [...divide(`<a><b>${text}</b></a>`, () => true)], tryParse: null },
  "xml_limits.ts": { countElements: null, excessAt: null, isLarge: null, refuseExcess: null },
  "xml_repair.ts": { repairXml: null },
  "xml.ts": {
    parseXml: (text) => parseXml(`<a>${text}</a>`, { whole: "b", read: (parts) => [...parts].length }),
  },
  "xml_syntax.ts": {
    ...{ after: null, cleanXml: null, match: null, tagEnd: null },
    prolog: (text) => ["", "<?", "<!--", "<!DOCTYPE ", "<!DOCTYPE a ["].map((before) => prolog(before + text)),
  },
  "xunit.ts": { readXunit: null },
});
