import { describe, expect, test } from "bun:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { readReport } from "../../src/reports/read.ts";
import { GREEN_REPORTS } from "./green_reports.ts";
import { readWith, refusalOf } from "./reading.ts";

const MIB = 2 ** 20;
const toBytes = (text: string) => new TextEncoder().encode(text);
const read = (body: string | Uint8Array, format?: string) =>
  readWith({ maxInflatedBytes: MIB, ...(format === undefined ? {} : { format }) }, body);
const refusal = (body: string | Uint8Array, format?: string) =>
  refusalOf(body, { maxInflatedBytes: MIB, ...(format === undefined ? {} : { format }) });

const JUNIT = `<testsuite name="s"><testcase name="a"/></testsuite>`;
const NATIVE = `{"taskSlug":"s","passed":2,"failed":1,"skipped":0}`;

describe("packing", () => {
  test("gzip and zstd are undone by their first bytes", () => {
    expect(read(gzipSync(JUNIT))).toEqual(read(JUNIT));
    expect(read(zstdCompressSync(JUNIT))).toEqual(read(JUNIT));
  });

  test("what inflates beyond the limit is refused, at the limit accepted", () => {
    expect(refusal(gzipSync(Buffer.alloc(MIB + 1, " ")))).toBe("it is larger than 1 MiB");
    expect(refusal(zstdCompressSync(Buffer.alloc(MIB + 1, " ")))).toBe("it is larger than 1 MiB");
    expect(refusal(Buffer.alloc(MIB + 1, " "))).toBe("it is larger than 1 MiB");
    expect(read(gzipSync(JUNIT.padEnd(MIB))).cases).toHaveLength(1);
  });

  test("the limit holds for all files together", () => {
    const half = () => ({ name: "half", bytes: gzipSync(JUNIT.padEnd(MIB / 2 + 1)) });
    expect(() => readReport([half(), half()], { maxInflatedBytes: MIB })).toThrow(
      'Cannot read "half": it is larger than',
    );
  });

  test("broken and doubled packing is refused", () => {
    const zstd = zstdCompressSync(JUNIT.repeat(50));
    expect(refusal(gzipSync(gzipSync(JUNIT)))).toBe("it is compressed twice");
    expect(refusal(gzipSync(JUNIT).subarray(0, -4))).toStartWith("its gzip data is broken: ");
    for (const end of [4, 9, zstd.length - 1]) {
      expect(refusal(zstd.subarray(0, end))).toBe("its zstd data breaks off");
    }
  });
});

describe("what is not a test report is refused by what it is", () => {
  test.each([
    ["it is empty", ""],
    ["it is empty", " \r\n\ufeff"],
    ["it is plain text, not a test report", "all tests passed"],
    ["it is binary data, not a test report", "\0\x01\x02"],
    ["it is a zip archive, not a test report", "PK\x03\x04..."],
    ["it is a PDF document, not a test report", "%PDF-1.7"],
    ["it is a PNG image, not a test report", new Uint8Array([0x89, 0x50, 0x4e, 0x47])],
    ["it is an HTML page, not a test report", "<!DOCTYPE html><title>502</title>"],
    ["it is an HTML page, not a test report", "<html><testsuite/></html>"],
    [
      "it is a Maven project file (pom.xml), not a test report",
      "<project><modelVersion>4.0.0</modelVersion></project>",
    ],
    [
      "it is a Cobertura coverage report, not a test report",
      `<!DOCTYPE coverage SYSTEM "x.dtd"><coverage line-rate="1"/>`,
    ],
    ["it is a Clover coverage report, not a test report", `<coverage generated="1700000000"/>`],
    ["it is a JaCoCo coverage report, not a test report", `<report name="x"><sessioninfo/></report>`],
    ["it is an LCOV coverage report, not a test report", "TN:\nSF:a.js\n"],
    ["it is an Istanbul coverage report, not a test report", `{"/a.js":{"statementMap":{},"fnMap":{}}}`],
    ["it is an Istanbul coverage summary, not a test report", `{"total":{"lines":{},"statements":{}}}`],
    ["it is a SARIF report, not a test report", `{"version":"2.1.0","runs":[]}`],
    [
      "it is the output of Mocha's json-stream (send that of --reporter json), not a test report",
      '["start",{"total":1}]\n["pass",{"title":"a"}]\n',
    ],
    ["it is an ESLint report, not a test report", `[{"filePath":"/a.js","messages":[],"errorCount":0}]`],
    [
      "it is SonarQube's generic coverage, not a test report",
      `<coverage version="1"><file path="a.js"><lineToCover lineNumber="1" covered="true"/></file></coverage>`,
    ],
    [
      "it is results of JMeter, not a test report",
      `<testResults version="1.2"><httpSample t="1" s="true"/></testResults>`,
    ],
    ["it is results of JMeter, not a test report", "timeStamp,elapsed,label,responseCode\n1,2,a,200\n"],
    [
      "it is data of a generated Allure report (send allure-results), not a test report",
      `{"uid":"a","name":"suites","children":[]}`,
    ],
    [
      "it is PHPUnit's configuration (phpunit.xml), not a test report",
      `<phpunit bootstrap="vendor/autoload.php"><testsuites><testsuite name="unit"/></testsuites></phpunit>`,
    ],
    [
      "it is the output of go test -v of Go before version 1.5, not a test report",
      "=== RUN TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \tp\t0.01s\n",
    ],
    ["it is XML of no known format, with the root <toString>", "<a:toString/>"],
    [`it is JSON of no known format, with the keys "__proto__", "b"`, `{"__proto__":1,"b":2}`],
    ["it is JSON of no known format, with no keys", "{}"],
    ["it is a JSON list of 2 elements of no known format", "[1, 1e400]"],
    [`it is JSON lines of no known format, the first with the keys "meta"`, `{"meta":{}}\n{"source":{}}\n`],
  ])("%s", (reason, body) => {
    expect(refusal(body)).toBe(reason);
  });
});

describe("JSON", () => {
  test.each([
    ['line 1: expected a key, found "malformed: "key"}"', `{"key": "val", malformed: "key"}`],
    ['line 2: expected a comma or the end, found "3]"', "[1,\n2 3]"],
    ["line 1: it breaks off", `{"a": [1, "b`],
    ["line 2: a string is not terminated", `[\n"a\nb"]`],
    ["line 1: there is more after its end", "[] []"],
    ['line 1: expected a value, found "]"', "[1,]"],
    ['line 1: expected a value, found "x01]"', "[x01]"],
  ])("a mistake is told with its place: %s", (place, body) => {
    expect(refusal(body)).toBe(`malformed JSON at ${place}`);
  });

  test("a million levels neither crash nor take long", () => {
    const deep = "[".repeat(500_000);
    const tooDeep = "its values are nested more than 100 levels deep";
    expect([refusal(deep + "]".repeat(500_000)), refusal(deep)]).toEqual([tooDeep, tooDeep]);
    expect(refusal(`["${deep}\\\"${deep}"]`)).toBe("it is a JSON list of 1 element of no known format");
  });
});

describe("format", () => {
  test("overrides recognition", () => {
    expect(read(JUNIT, "junit")).toEqual(read(JUNIT));
    expect(refusal(JUNIT, "ctrf")).toBe("it is not JSON");
    expect(refusal(NATIVE, "junit")).toBe("it is not XML");
    expect(refusal("<project/>", "junit")).toBe("its root element <project> holds no test cases");
  });

  test.each(["pdf", "toString", "", "lcov"])("%p is not a known one", (format) => {
    expect(refusal(JUNIT, format)).toBe(
      `Cannot read "format": expected "allure", "assay", "behave", "boost", "catch2", "ctest", "ctrf", "cucumber", "cucumber_messages", "dart", "doctest", "go", "jest", "junit", "k6", "libtest", "mocha", "mochawesome", "newman", "nunit", "open_test_reporting", "playwright", "playwright_blob", "pytest_json", "pytest_reportlog", "robot", "rspec", "sonar", "subunit", "surefire", "swift_testing", "tap", "teamcity", "testng", "trx", "xcresult" or "xunit", got "${format}"`,
    );
  });
});

describe("several files", () => {
  const files = (...bodies: string[]) => bodies.map((body, n) => ({ name: `${n}.xml`, bytes: toBytes(body) }));
  const merge = (...bodies: string[]) => readReport(files(...bodies), { maxInflatedBytes: MIB });

  test("become one report", () => {
    const first = `<testsuite name="s" tests="1" time="1" timestamp="2026-01-01T00:00:00Z"><testcase name="a"/></testsuite>`;
    const second = `<testsuite name="s" tests="9" time="2" timestamp="2026-01-01T00:00:09Z"><testcase name="b"/></testsuite>`;
    const { cases, ...rest } = merge(first, second);
    expect(cases.map(({ suite, name }) => [suite, name])).toEqual([
      ["s", "a"],
      ["s", "b"],
    ]);
    expect(rest).toEqual({
      format: "junit",
      suite: "s",
      countsOnly: null,
      partial: false,
      durationMs: 3000,
      completedAt: new Date("2026-01-01T00:00:11Z"),
      context: {},
      warnings: ["1.xml: The report declares 9 tests, but its test cases are 1 test"],
    });
  });

  test("what they do not agree on is left open", () => {
    const ctrf = `{"reportFormat":"CTRF","results":{"tests":[{"name":"c","status":"passed"}],"environment":{"commit":"abc"}}}`;
    const { format, suite, durationMs, completedAt, context, cases } = merge(JUNIT, ctrf);
    expect({ format, suite, durationMs, completedAt, context, cases: cases.length }).toEqual({
      format: "mixed",
      suite: null,
      durationMs: null,
      completedAt: null,
      context: { commit: "abc" },
      cases: 2,
    });
  });

  test("counts add up, but not with cases", () => {
    expect(merge(NATIVE, NATIVE).countsOnly).toEqual({ passed: 4, failed: 2, skipped: 0 });
    expect(() => merge(JUNIT, NATIVE)).toThrow(
      'Cannot read "1.xml": it lists no cases, so it cannot be merged with files',
    );
  });

  test("the one that cannot be read is named", () => {
    expect(() => merge(JUNIT, "<a/>")).toThrow('Cannot read "1.xml": it is XML of no known format, with the root <a>');
    expect(() => readReport([], { maxInflatedBytes: MIB })).toThrow("Cannot read the report: there is no file");
  });
});

describe("a document of another format with the root of a known one is refused by its name", () => {
  const unknown = (root: string, inner: string) =>
    `its root <${root}> holds <${inner}>, which this format does not have`;
  const check = `<testsuites xmlns="http://check.sourceforge.net/ns"><datetime/><suite><test result="failure"/></suite></testsuites>`;
  const cppunit = `<TestRun><FailedTests><FailedTest id="1"/></FailedTests><Statistics><Tests>1</Tests></Statistics></TestRun>`;
  const aunit = `<TestRun elapsed="1"><Statistics><Tests>1</Tests></Statistics><SuccessfulTests/></TestRun>`;
  const maven = `<assembly xmlns="http://maven.apache.org/ASSEMBLY/2.1.1"><id>bin</id></assembly>`;

  test.each([
    [check, "it is the XML of Check (libcheck), not a test report"],
    [cppunit, "it is the XML of CppUnit or AUnit, not a test report"],
    [aunit, "it is the XML of CppUnit or AUnit, not a test report"],
    [maven, "it is a Maven assembly descriptor, not a test report"],
    ["<Site><Build><Warning/></Build></Site>", "it is what CTest writes of its other steps, not a test report"],
    ['<doctest><OverallResultsTestCases unskipped="1"/></doctest>', "it lists test cases without their results"],
    ["<testsuites><suite/></testsuites>", unknown("testsuites", "suite")],
    ["<TestRun><Cases/></TestRun>", unknown("TestRun", "Cases")],
    ["<assembly><id/></assembly>", unknown("assembly", "id")],
    ["<test-results><tests/></test-results>", unknown("test-results", "tests")],
    ["<TestResult><foo/></TestResult>", unknown("TestResult", "foo")],
    ["<Catch><foo/></Catch>", unknown("Catch", "foo")],
    ["<testng-results><foo/></testng-results>", unknown("testng-results", "foo")],
    ["<Site><Testing><foo/></Testing></Site>", unknown("Testing", "foo")],
    ["<testExecutions><foo/></testExecutions>", unknown("testExecutions", "foo")],
    ['<robot name="arm"><link/></robot>', "it is XML of no known format, with the root <robot>"],
    ['{"reportFormat":"CTRF"}', 'Cannot read "results.tests" is not a list'],
    ['{"reportFormat":"CTRF","results":{"tests":[null]}}', 'Cannot read "results.tests.0" is not an object'],
    [
      '{"numTotalTests":1,"testResults":[null]}',
      'no result of its "testResults" has "assertionResults" or "testResults"',
    ],
    ["Chapters\n1..3\nare short.", "it is plain text, not a test report"],
    ["\n> jest\n[INFO] a\n<testsuites/>", "it is plain text, not a test report; a report begins at line 4: JUnit XML"],
    // Any program prints "ok": without a plan it is no TAP.
    ["ok\n<testsuites/>", "it is plain text, not a test report; a report begins at line 2: JUnit XML"],
    ["ok\nOK\n", "it is plain text, not a test report"],
    [
      '[INFO] a\r\n{"numTotalTests":0,"testResults":[]}',
      'malformed JSON at line 1: expected a value, found "INFO] a"; a report begins at line 2: Jest or Vitest JSON',
    ],
  ])("%s", (text, message) => expect(refusalOf(text)).toBe(message));

  test.each([
    [check, "junit", unknown("testsuites", "datetime")],
    ["{}", "playwright", "it holds no test cases and is not Playwright JSON"],
    ["{}", "mocha", "it holds no test cases and is not Mocha JSON"],
    ["[{}]", "cucumber", "it holds no test cases and is not Cucumber JSON"],
    ["{}", "cucumber", "it is not a list of features"],
    ["{}", "rspec", 'Cannot read "examples" is not a list'],
    ["{}\n", "dart", "none of its lines is an event of Dart's test runner"],
    ["no events\n", "go", "none of its lines is a test event"],
    ["okay", "tap", "none of its lines is TAP"],
    ["plain", "subunit", "it holds no packet of subunit version 2"],
    ["##teamcity[progressMessage 'x']", "teamcity", "it has no TeamCity service message on a test"],
    ['<robot name="arm"><link/></robot>', "robot", "its root element <robot> contains no suite"],
  ])("%s with format=%s", (text, format, message) => expect(refusalOf(text, { format })).toBe(message));

  test.each([
    "<testsuites/>",
    `<testsuites><testsuite name="a"><properties/></testsuite></testsuites>`,
    "<TestRun><Results/><ResultSummary/></TestRun>",
    "<assemblies/>",
    "<test-run><filter/><test-suite/></test-run>",
    `{"numTotalTests":0,"testResults":[]}`,
    `{"config":{},"suites":[],"errors":[]}`,
    "TAP version 13\n1..0 # skip no database\n",
  ])("an empty report is none of them: %s", (text) => {
    expect(readWith({ mayBeEmpty: true }, text).cases.every(({ status }) => status === "skipped")).toBe(true);
  });

  test("an empty list is a report of Cucumber only where the format is named", () => {
    expect(readWith({ mayBeEmpty: true, format: "cucumber" }, []).cases).toEqual([]);
  });
});

describe("a NUL in a text is stored as U+FFFD", () => {
  const reports = Object.entries(GREEN_REPORTS).filter(([, text]) => /^(?:\{|\[\s*[[{])/.test(text));
  test.each(reports)("%s", (_, text) => {
    const { cases, warnings } = read(text);
    const odd = read(
      text.replaceAll(/(?<=::|M\.|"(?:name|title|assertion|Test|description)": ?")(?=(?:a|TestA|t3)\b)/g, "\0"),
    );
    expect(odd.cases[0]!.name).toContain("\ufffd");
    expect(odd.cases.map(({ status }) => status)).toEqual(cases.map(({ status }) => status));
    expect(odd.warnings).toEqual(warnings);
  });
});
