import { describe, expect, test } from "bun:test";
import { inShort, read as readText } from "./reading.ts";

/** A message a line: "testStarted name='a'". */
const toText = (...messages: string[]) => messages.map((message) => `##teamcity[${message}]\n`).join("");
const read = (...messages: string[]) => readText(toText(...messages));
const passed = (name: string, more = "") => [`testStarted name='${name}'${more}`, `testFinished name='${name}'${more}`];
const failed = (name: string, more = "") => [
  `testStarted name='${name}'${more}`,
  `testFailed name='${name}' message='no'${more}`,
  `testFinished name='${name}'${more}`,
];

test("values are unescaped, and a malformed message is read as far as it goes", () => {
  const [one] = read(
    "testStarted name='a|'|[|]||'",
    "testFailed name='a|'|[|]||' message='1|n2|r|x|l|p|0x20AC|0xD800'",
    "testFinished name='a|'|[|]||' duration='12'",
  ).cases;
  expect(one).toMatchObject({ name: "a'[]|", message: "1\n2\r\u0085\u2028\u2029€\ufffd", durationMs: 12 });
  const report = read(
    "testStarted name='a'",
    "testFailed name='a' message='it's broken' details='x'",
    "testFinished name='a'",
  );
  expect(report.cases[0]).toMatchObject({ status: "failed", message: "it" });
  expect(report.warnings).toEqual(["Read as far as possible: 1 malformed service message"]);
});

test("times are those of timestamps where no duration is told", () => {
  const at = (second: number) => ` timestamp='2024-01-31T12:00:0${second}.500+0100'`;
  const report = read(`testStarted name='a'${at(1)}`, `testFinished name='a'${at(3)}`);
  expect(report).toMatchObject({ durationMs: 2000, completedAt: new Date("2024-01-31T11:00:03.500Z") });
  expect(report.cases[0]!.durationMs).toBe(2000);
  const local = read("testStarted name='a' timestamp='2024-01-31T12:00:01.000'", "testFinished name='a'");
  expect(local.completedAt).toBeNull();
});

test("flows run beside each other, inside of what their parents are in", () => {
  const report = read(
    "testSuiteStarted name='all' flowId='0'",
    "flowStarted flowId='1' parent='0'",
    "flowStarted flowId='2' parent='0'",
    "testSuiteStarted name='x' flowId='1'",
    "testStarted name='same' flowId='1'",
    "testStarted name='same' flowId='2'",
    "testFailed name='same' message='no' flowId='2'",
    "testFinished name='same' flowId='1'",
    "testFinished name='same' flowId='2'",
    "testSuiteFinished name='x' flowId='1'",
    "testSuiteFinished name='all' flowId='0'",
  );
  expect(report.partial).toBe(false);
  expect(inShort(report)).toEqual(["passed: all > x > same", "failed failure: all > same"]);
});

describe("a test that is run again", () => {
  const retry = "testRetrySupport enabled='true'";

  test("is one flaky test where retries are enabled, with its last result", () => {
    expect(inShort(read(retry, ...failed("a"), ...passed("a")))).toEqual(["passed flaky, 2 attempts: a"]);
    expect(inShort(read(retry, ...failed("a"), ...failed("a")))).toEqual(["failed failure, 2 attempts: a"]);
  });

  test("is another test where they are not, or where the first has not failed", () => {
    expect(inShort(read(...failed("a"), ...passed("a")))).toEqual(["failed failure: a", "passed: a"]);
    expect(inShort(read(retry, ...passed("a"), ...failed("a")))).toEqual(["passed: a", "failed failure: a"]);
    const disabled = "testRetrySupport enabled='false'";
    expect(inShort(read(retry, disabled, ...failed("a"), ...passed("a")))).toHaveLength(2);
  });
});

describe("no silent green", () => {
  test("what began and did not end broke off: a test, a suite, a message", () => {
    const unfinished = read("testStarted name='a'");
    expect([unfinished.partial, inShort(unfinished)]).toEqual([true, ["failed error: a"]]);
    const open = read("testSuiteStarted name='s'", ...passed("a"));
    expect([open.partial, inShort(open)]).toEqual([true, ["passed: s > a", "failed error: (test run did not finish)"]]);
    const cut = readText(`${toText(...passed("a"))}##teamcity[testSta`);
    expect([cut.partial, inShort(cut)]).toEqual([true, ["passed: a", "failed error: (test run did not finish)"]]);
  });

  test("a problem of the build is a failure where no test has failed", () => {
    const problem = "buildProblem description='coverage below 80'";
    expect(read(...passed("a"), problem).cases[1]).toMatchObject({
      name: "(build failed)",
      message: "coverage below 80",
    });
    expect(inShort(read(...failed("a"), problem))).toEqual(["failed failure: a"]);
    expect(inShort(read(...passed("a"), "buildStatus status='FAILURE' text='no'"))[1]).toBe(
      "failed error: (build failed)",
    );
    expect(inShort(read(...passed("a"), "buildStatus status='SUCCESS'"))).toEqual(["passed: a"]);
  });

  test("a failure counts without a start, and beside an ignore", () => {
    expect(inShort(read("testFailed name='a' message='no'"))).toEqual(["failed failure: a"]);
    const both = read("testStarted name='a'", "testFailed name='a'", "testIgnored name='a'", "testFinished name='a'");
    expect(inShort(both)).toEqual(["failed failure: a"]);
  });
});

describe("recognition", () => {
  const formatOf = (text: string) => readText(text).format;
  const TAP = "TAP version 13\nok 1 - a\n1..1\n";

  test("messages may follow a build's output, and stand behind what a build puts before its lines", () => {
    expect(
      formatOf(
        `npm test\n> [x] "y"\n\n12:00:01 ##teamcity[testStarted name='a']\n12:00:02 ##teamcity[testFinished name='a']\n`,
      ),
    ).toBe("teamcity");
  });

  test("after TAP they are a report of their own, and a line before or behind them is none", () => {
    expect(formatOf(`${TAP}# x\n${toText(...passed("a"))}`)).toBe("mixed");
    expect(formatOf(`${toText(...passed("a"))}ok 1 - a\n`)).toBe("teamcity");
  });

  test("a last line that is not on tests does not make a build look cut off", () => {
    const report = readText(`${toText(...passed("a"))}##teamcity[progressMessage 'done']`);
    expect([report.partial, inShort(report)]).toEqual([false, ["passed: a"]]);
  });

  test("quoted in other reports they are text", () => {
    const message = "##teamcity[testStarted name='a']";
    expect(
      formatOf(`<testsuite><testcase name="a"><system-out>\n${message}\n</system-out></testcase></testsuite>`),
    ).toBe("junit");
    expect(() => readText(`{"a": "${message}"`)).toThrow("malformed JSON");
    expect(formatOf(`{"Action":"output","Package":"p","Output":"${message}"}\n{"Action":"pass","Package":"p"}`)).toBe(
      "go",
    );
  });
});

test("as deep as anybody nests, names are cut and suites that end in a mess are closed", () => {
  const names = Array.from({ length: 20_000 }, (_, n) => `s${n}`);
  const opened = names.map((name) => `testSuiteStarted name='${name}'`);
  const report = read(...opened, ...passed("a"), "testSuiteFinished name='s0'", "testSuiteFinished name='s0'");
  expect(report.partial).toBe(false);
  expect(report.cases[0]!.suite).toHaveLength(1000);
});
