/** Depth times count: what stands around test cases, however long and however deep, is not paid for again by each of them. */

import { expect, test } from "bun:test";
import { readReport } from "../../../src/reports/read.ts";
import { createOwnership } from "../../../src/rules/owners.ts";
import { parseOwners } from "../../../src/rules/codeowners.ts";
import { isSteep, TIMEOUT_MS } from "./growth.ts";

const read = (report: string) =>
  readReport([{ name: "report", bytes: new TextEncoder().encode(report) }], { maxInflatedBytes: 2 ** 28 });

/** The length of a title that stands around all test cases. */
const L = "s".repeat(5_000);

/** Reports of so many test cases, or levels. */
const NESTED: Record<string, (n: number) => string> = {
  teamcity: (n) =>
    Array.from(
      { length: n },
      (_, i) =>
        `##teamcity[testSuiteStarted name='s${i}']\n##teamcity[testStarted name='t']\n##teamcity[testFinished name='t' duration='1']\n`,
    ).join("") + Array.from({ length: n }, (_, i) => `##teamcity[testSuiteFinished name='s${n - 1 - i}']\n`).join(""),
  teamcityFlows: (n) =>
    Array.from(
      { length: n },
      (_, i) =>
        `##teamcity[flowStarted flowId='${i}' parent='${i - 1}']\n##teamcity[testSuiteStarted name='s${i}' flowId='${i}']\n##teamcity[testStarted name='t' flowId='${i}']\n##teamcity[testFinished name='t' flowId='${i}']\n`,
    ).join(""),
  teamcityUnended: (n) =>
    Array.from({ length: n }, (_, i) => `##teamcity[testSuiteStarted name='s${i}']\n`).join("") +
    `##teamcity[testSuiteFinished name='x']\n`.repeat(n),
  tap: (n) =>
    "TAP version 14\n" +
    Array.from({ length: n }, (_, i) => `${"    ".repeat(i)}# Subtest: s${i}\n`).join("") +
    Array.from({ length: n }, (_, i) => `${"    ".repeat(n - i)}ok 1 - a\n${"    ".repeat(n - i)}1..1\n`).join("") +
    "ok 1 - s0\n1..1\n",
  gojson: (n) =>
    Array.from({ length: n }, (_, i) => `{"Action":"run","Package":"p","Test":"T${"/a".repeat(i)}"}\n`).join("") +
    Array.from({ length: n }, (_, i) => `{"Action":"fail","Package":"p","Test":"T${"/a".repeat(n - 1 - i)}"}\n`).join(
      "",
    ),
  gotext: (n) =>
    Array.from({ length: n }, (_, i) => `=== RUN   T${"/a".repeat(i)}\n`).join("") +
    Array.from({ length: n }, (_, i) => `${"    ".repeat(i)}--- FAIL: T${"/a".repeat(i)} (0.00s)\n`).join("") +
    "FAIL\nFAIL\tp\t0.1s\n",
  dart: (n) =>
    `{"protocolVersion":"0.1.1","type":"start","time":0}\n` +
    Array.from(
      { length: n },
      (_, i) =>
        `{"group":{"id":${i + 1},"suiteID":0,"parentID":${i || null},"name":"${"a ".repeat(Math.min(i, 50))}","testCount":1},"type":"group","time":0}\n{"test":{"id":${i + 1e6},"name":"t","suiteID":0,"groupIDs":[${Array.from({ length: i + 1 }, (_, j) => j + 1).join()}]},"type":"testStart","time":0}\n{"testID":${i + 1e6},"result":"success","skipped":false,"hidden":false,"type":"testDone","time":1}\n`,
    ).join("") +
    `{"success":true,"type":"done","time":1}\n`,
  pytestlog: (n) =>
    Array.from(
      { length: n },
      (_, i) =>
        `{"nodeid":"${"a/".repeat(200)}t.py::t${i}","outcome":"failed","when":"call","duration":1,"$report_type":"TestReport","longrepr":${"[".repeat(200)}${"]".repeat(200)}}\n`,
    ).join(""),
  messagesDeep: (n) =>
    `{"meta":{"protocolVersion":"1"}}\n{"gherkinDocument":${'{"feature":{"children":['.repeat(n)}${"]}}".repeat(n)}}\n`,
  jest: (n) =>
    JSON.stringify({
      numTotalTests: n,
      testResults: [
        {
          name: "/a.js",
          assertionResults: Array.from({ length: n }, (_, i) => ({
            ancestorTitles: Array.from({ length: Math.min(n, 2000) }, () => "a"),
            title: "t" + i,
            status: "passed",
          })),
        },
      ],
    }),
  playwrightNested: (n) =>
    `{"config":{},"errors":[],"stats":{},"suites":[` +
    `{"title":"${"s".repeat(5000)}","suites":[`.repeat(44) +
    `{"specs":[${Array.from({ length: n * 10 }, (_, i) => `{"title":"t${i}","tests":[{"results":[{"status":"passed"}]}]}`).join()}]}` +
    "]}".repeat(44) +
    "]}",
  junitNested: (n) =>
    `<testsuite name="${L}">`.repeat(95) + '<testcase name="a"/>'.repeat(n * 10) + "</testsuite>".repeat(95),
  allure: (n) =>
    JSON.stringify({
      uuid: "1",
      name: "a",
      status: "failed",
      labels: Array.from({ length: n * 50 }, () => ({ name: "suite", value: "a" })),
      steps: Array.from({ length: n * 50 }, () => ({ name: "s", attachments: [] })),
    }),
  robotKw: (n) =>
    `<robot generator="Robot 7" generated="x"><suite name="s">${`<test name="t">${'<kw name="k">'.repeat(480)}${'<status status="FAIL">x</status></kw>'.repeat(480)}<status status="FAIL">x</status></test>`.repeat(Math.ceil(n / 50))}<status status="FAIL"/></suite></robot>`,
  mochaTimes: (n) =>
    JSON.stringify({
      stats: {},
      tests: Array.from({ length: n * 10 }, () => ({ title: "t", fullTitle: "a t", err: {} })),
      passes: Array.from({ length: n * 10 }, () => ({ title: "t", fullTitle: "a t", err: {} })),
    }),

  mochawesomeNested: (n) =>
    `{"stats":{"testsRegistered":1},"results":[` +
    `{"title":"${L}","suites":[`.repeat(44) +
    `{"tests":[${Array.from({ length: n * 10 }, (_, i) => `{"title":"t${i}","pass":true}`).join()}]}` +
    "]}".repeat(44) +
    "]}",
  newmanNested: (n) =>
    `{"collection":{"item":[${`{"name":"${L}","item":[`.repeat(44)}${Array.from({ length: n * 10 }, (_, i) => `{"id":"${i}","name":"r"}`).join()}${"]}".repeat(44)}]},"run":{"stats":{},"failures":[],"executions":[${Array.from({ length: n * 10 }, (_, i) => `{"item":{"id":"${i}","name":"r"},"assertions":[{"assertion":"a"}]}`).join()}]}}`,
  xcresultNested: (n) =>
    `{"testNodes":[${`{"nodeType":"Test Suite","name":"${L}","children":[`.repeat(44)}${Array.from({ length: n * 10 }, (_, i) => `{"nodeType":"Test Case","name":"t${i}","result":"Passed"}`).join()}${"]}".repeat(44)}]}`,
  boostNested: (n) =>
    `<TestLog>${`<TestSuite name="${L}">`.repeat(90)}${'<TestCase name="a"/>'.repeat(n * 10)}${"</TestSuite>".repeat(90)}</TestLog>`,
  catch2Nested: (n) =>
    `<Catch2TestRun><TestCase name="a">${`<Section name="${L}">`.repeat(90)}${'<Section name="x"><OverallResults successes="1" failures="0"/></Section>'.repeat(n * 10)}${"</Section>".repeat(90)}<OverallResult success="true"/></TestCase></Catch2TestRun>`,
  robotNested: (n) =>
    `<robot generator="Robot 7" generated="x">${`<suite name="${L}">`.repeat(90)}${'<test name="t"><status status="PASS"/></test>'.repeat(n * 10)}${'<status status="PASS"/></suite>'.repeat(90)}</robot>`,
  nunitNested: (n) =>
    `<test-run id="1">${`<test-suite type="Suite" name="${L}">`.repeat(90)}${'<test-case name="t" fullname="t" result="Passed"/>'.repeat(n * 10)}${"</test-suite>".repeat(90)}</test-run>`,
  behaveNested: (n) =>
    JSON.stringify([
      {
        keyword: "Feature",
        name: L,
        status: "passed",
        location: "a:1",
        elements: Array.from({ length: n * 10 }, () => ({
          type: "scenario",
          keyword: "Scenario",
          name: "s",
          steps: [],
        })),
      },
    ]),
  teamcityLong: (n) =>
    `##teamcity[testSuiteStarted name='${L}']\n`.repeat(90) +
    `##teamcity[testStarted name='t']\n##teamcity[testFinished name='t' duration='1']\n`.repeat(n * 10),
  tapLong: (n) =>
    "TAP version 14\n" +
    Array.from({ length: 90 }, (_, i) => `${"    ".repeat(i)}# Subtest: ${L}\n`).join("") +
    `${"    ".repeat(90)}ok - a\n`.repeat(n * 10) +
    `${"    ".repeat(90)}1..${n * 10}\n` +
    Array.from({ length: 90 }, (_, i) => `${"    ".repeat(89 - i)}ok 1 - ${L}\n${"    ".repeat(89 - i)}1..1\n`).join(
      "",
    ),
  jestLong: (n) =>
    JSON.stringify({
      numTotalTests: n,
      testResults: [
        {
          name: "/" + L.repeat(20),
          assertionResults: Array.from({ length: n * 10 }, (_, i) => ({
            ancestorTitles: [L],
            title: "t" + i,
            status: "passed",
          })),
        },
      ],
    }),
  dartLong: (n) =>
    `{"protocolVersion":"0.1.1","type":"start","time":0}\n{"suite":{"id":0,"path":"${L.repeat(20)}"},"type":"suite","time":0}\n` +
    Array.from(
      { length: 40 },
      (_, i) =>
        `{"group":{"id":${i + 1},"suiteID":0,"parentID":${i || null},"name":"${L}${i}","testCount":1},"type":"group","time":0}\n`,
    ).join("") +
    Array.from(
      { length: n * 10 },
      (_, i) =>
        `{"test":{"id":${i + 1e6},"name":"t","suiteID":0,"groupIDs":[${Array.from({ length: 40 }, (_, j) => j + 1).join()}]},"type":"testStart","time":0}\n{"testID":${i + 1e6},"result":"success","skipped":false,"hidden":false,"type":"testDone","time":1}\n`,
    ).join(""),
  rspecLong: (n) =>
    JSON.stringify({
      version: "3",
      summary_line: "",
      summary: {},
      examples: Array.from({ length: n * 10 }, (_, i) => ({
        id: "a[" + i + "]",
        description: "d",
        full_description: "a d",
        status: "passed",
        file_path: "./a_spec.rb",
        line_number: 1,
      })),
    }),
};

const TITLED = Object.entries(NESTED).filter(([name]) => /Nested|Long/.test(name));

test.each(Object.entries(NESTED))(
  "twice the size takes twice as long: %s",
  async (_, of) => {
    const [part, whole] = [of(500), of(1_000)];
    // Where each level is repeated in the report, its length is quadratic itself.
    const factor = Math.max(2, whole.length / part.length);
    expect(
      await isSteep(
        () => read(part),
        () => read(whole),
        { factor },
      ),
    ).toBe(false);
  },
  TIMEOUT_MS,
);

test.each(TITLED)(
  "titles around ten thousand test cases cost little: %s",
  async (_, of) => {
    const long = of(1_000);
    const short = long.replaceAll(L, "s");
    // Titles of 5,000 characters, of which 1,000 are kept in each test case, against titles of one.
    expect(
      await isSteep(
        () => read(short),
        () => read(long),
        { factor: 20, negligibleMs: 300 },
      ),
    ).toBe(false);
  },
  TIMEOUT_MS,
);

test("rules times segments times characters", () => {
  for (const [pattern, file] of [
    ["/**/*b", `${"a/".repeat(90)}c`],
    [`**/${"a/".repeat(40)}*b`, `${"a/".repeat(90)}c`],
    [`*a${"a".repeat(200)}?b?`, "a".repeat(4_000)],
  ] as const) {
    const ownersOf = createOwnership(parseOwners(`${pattern} @x\n`.repeat(20_000)));
    const steps = { taken: 0 };
    expect(ownersOf({ suite: "s", file }, steps)).toBeUndefined();
    expect(steps.taken).toBeLessThan(2_000_000);
  }
});
