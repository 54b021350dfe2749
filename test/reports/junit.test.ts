import { describe, expect, test } from "bun:test";
import type { ReportedCase } from "../../src/reports/report.ts";
import { inShort, read, readFixture } from "./reading.ts";

const suite = (inner: string, attributes = 'name="s"') => `<testsuite ${attributes}>${inner}</testsuite>`;
const one = (inner: string, attributes = 'name="a"'): ReportedCase =>
  read(suite(`<testcase ${attributes}>${inner}</testcase>`)).cases[0]!;
const outcome = (inner: string, attributes?: string) => {
  const { status, kind, flaky, attempts } = one(inner, attributes);
  return [status, kind, flaky, attempts];
};
/** What identifies the cases: suite, name and file. */
const places = (xml: string) => read(xml).cases.map(({ suite, name, file }) => [suite, name, file]);

const brief = ({ suite, name, status, message }: ReportedCase) => [suite, name, status, message];

const bare: ReportedCase = {
  ...{ suite: "s", name: "a", file: null, line: null, status: "passed", kind: null, flaky: false, attempts: 1 },
  ...{ durationMs: null, message: null, stack: null, output: null, properties: null },
};

describe("a document", () => {
  test("is read whole", () => {
    const xml = `<?xml version="1.0"?>
      <testsuites name="all" time="2.5" tests="2" failures="1" errors="0">
        <testsuite name="outer" timestamp="2026-01-01T10:00:00.5+02:00" time="2">
          <testcase name="a" file="a.c" line="3" time="0.5"><system-out>out</system-out><system-err>err</system-err></testcase>
          <testsuite name="inner">
            <testcase name="b" time="1,234.5"><failure message="m" type="T">  at x
  at y
</failure></testcase>
          </testsuite>
        </testsuite>
      </testsuites>`;
    expect(read(xml)).toEqual({
      ...{ format: "junit", suite: "all", countsOnly: null, partial: false, context: {}, warnings: [] },
      ...{ durationMs: 2500, completedAt: new Date("2026-01-01T08:00:02.500Z") },
      span: { from: Date.parse("2026-01-01T08:00:00.500Z"), to: Date.parse("2026-01-01T08:00:03.000Z") },
      cases: [
        { ...bare, suite: "outer", file: "a.c", line: 3, durationMs: 500, output: "out\nerr" },
        {
          ...{ ...bare, suite: "outer > inner", name: "b", status: "failed", kind: "failure" },
          ...{ durationMs: 1_234_500, message: "m", stack: "  at x\n  at y" },
        },
      ],
    });
  });

  test("names its machine, unless it says that it was anywhere, or where Playwright names a project", () => {
    const hostOf = (host: string, more = "") => {
      const suites = `<testsuite name="s" hostname="${host}"/><testsuite name="t" hostname="b"/>`;
      return read(`<testsuites ${more}>${suites}</testsuites>`).context.host;
    };
    expect(hostOf(" ci-3 ")).toBe("ci-3");
    for (const host of ["", " ", "localhost", "Localhost.localdomain"]) expect(hostOf(host)).toBeUndefined();
    expect(hostOf("chromium", 'id="" name="" tests="2" failures="0" skipped="0" errors="0" time="1"')).toBeUndefined();
    expect(read(`<testsuite name="s" hostname="ci-3"><testcase name="a"/></testsuite>`).context.host).toBe("ci-3");
    expect(read(`<testsuite name="s"><testcase name="a"/></testsuite>`).context).toEqual({});
    expect(readFixture("same_tests/playwright_projects.xml").context).toEqual({});
    expect(readFixture("vitest_junit.xml").context).toEqual({ host: "vm" });
  });

  test("may hold no test case, cases in the root, a prefix, or Eclipse's root", () => {
    expect(read("<testsuites/>").cases).toEqual([]);
    expect(read(`<testsuites><testcase name="a"/></testsuites>`).cases).toEqual([{ ...bare, suite: "" }]);
    const prefixed = `<j:testsuite xmlns:j="x" name="s"><j:testcase name="a"><j:skipped/></j:testcase></j:testsuite>`;
    expect(read(prefixed).cases).toEqual([{ ...bare, status: "skipped" }]);
    expect(read(`<testrun name="r">${suite('<testcase name="a"/>')}</testrun>`).cases).toEqual([bare]);
  });

  test("every testcase element is a case of its own", () => {
    const { cases } = read(suite(`<testcase name="a"/><testcase name="a"><failure/></testcase><testcase name="a"/>`));
    expect(cases.map(({ status }) => status)).toEqual(["passed", "failed", "passed"]);
  });

  test("totals that disagree are one warning, and the cases count", () => {
    const totals = 'name="s" tests="3" failures="0" errors="0" skipped="1"';
    expect(read(suite('<testcase name="a"><failure/></testcase>', totals)).warnings).toEqual([
      "The report declares 3 tests, 0 failed, 1 skipped, but its test cases are 1 test, 1 failed, 0 skipped",
    ]);
    const disabled = suite('<testcase name="a" status="disabled"/>', 'tests="1" skipped="0" disabled="1"');
    expect(read(disabled).warnings).toEqual([]);
  });

  test("a suite's own failures outside of any case are one failed case of that suite", () => {
    const own = '<error message="no class"/><testcase name="a"/><failure>x</failure>';
    const { cases, warnings } = read(suite(own, 'name="s" tests="1" failures="1" errors="1"'));
    const fault = { ...bare, name: "(suite failed)", status: "failed" as const, kind: "error" as const };
    expect(cases).toEqual([bare, { ...fault, message: "no class", stack: "no class\n\nx" }]);
    expect(warnings).toEqual([]);
  });

  test("the totals of every suite are compared, whether they count what is inside it, each suite as one, or neither", () => {
    const three = '<testcase name="a"/><testcase name="b"><failure/></testcase>';
    const inner = (attributes: string) => `<testsuite name="inner" ${attributes}>${three}</testsuite>`;
    const outer = (attributes: string, inside = "") =>
      read(`<testsuites>${suite(`<testcase name="c"/>${inner(inside)}`, `name="outer" ${attributes}`)}</testsuites>`);
    for (const right of ['tests="3" failures="1"', 'tests="1" failures="0"', 'tests="2" failures="1"'])
      expect(outer(right, 'tests="2" errors="1"').warnings).toEqual([]);
    expect(outer('tests="4" failures="1"', 'tests="2" failures="0"').warnings).toEqual([
      'The suite "inner" declares 2 tests, 0 failed, but its test cases are 2 tests, 1 failed',
      'The suite "outer" declares 4 tests, 1 failed, but its test cases are 3 tests, 1 failed',
    ]);
    const many = read(`<testsuites>${suite("", 'name="s" tests="1"').repeat(8)}</testsuites>`);
    expect(many.warnings).toHaveLength(6);
    expect(many.warnings[5]).toBe("The totals of 3 more suites are not those of their test cases");
  });

  test("a suite that declares failures of which nothing in it shows one has failed", () => {
    const green = '<testcase name="a"/>';
    const hidden = suite(green, 'name="s" tests="1" errors="1"');
    const red = suite('<testcase name="b"><failure/></testcase>', 'name="t" tests="1" failures="1"');
    const fault = (suite: string, who: string, count: number) => {
      const message = `The ${who} declares ${count} failed, but none of its test cases failed`;
      return [suite, "(failure without a test case)", "failed", message];
    };
    expect(read(`<testsuites failures="1" errors="1">${hidden}${red}</testsuites>`).cases.map(brief)).toEqual([
      ["s", "a", "passed", null],
      ["t", "b", "failed", null],
      fault("s", 'suite "s"', 1),
    ]);
    const whole = read(`<testsuites failures="3">${suite(green)}</testsuites>`);
    expect(whole.cases.map(brief)[1]).toEqual(fault("", "report", 3));
  });

  test("a failure that one suite declares and another one holds is there once, where the totals of the report agree", () => {
    const declares = suite('<testcase name="a"/>', 'name="s" tests="1" failures="1"');
    const holds = suite('<testcase name="b"><failure/></testcase>', 'name="t" tests="1" failures="0"');
    for (const totals of ['failures="1"', ""]) {
      const { cases, warnings } = read(`<testsuites ${totals}>${declares}${holds}</testsuites>`);
      expect(cases).toMatchObject([
        { name: "a", status: "passed" },
        { name: "b", status: "failed" },
      ]);
      expect(warnings).toHaveLength(2);
    }
    const nested = `<testsuites failures="1"><testsuite name="o" failures="1">${declares}${holds}</testsuite></testsuites>`;
    expect(read(nested).cases).toHaveLength(2);
    expect(read(`<testsuites failures="2">${declares}${holds}</testsuites>`).cases).toHaveLength(3);
  });

  test("Eclipse marks tests that it ignored, and tests that never ended", () => {
    const cases =
      '<testcase name="a" ignored="true"/><testcase name="b" incomplete="true"/><testcase name="c" incomplete="false"/>';
    const { cases: found } = read(
      `<testrun name="r" tests="3" started="1" failures="0" errors="0" ignored="1">${suite(cases)}</testrun>`,
    );
    expect(found.map(({ name, status, message }) => [name, status, message])).toEqual([
      ["a", "skipped", null],
      ["b", "failed", "The test did not end"],
      ["c", "passed", null],
    ]);
  });

  test.each([
    ["surefire counts reruns", '<testcase name="a"><flakyFailure/></testcase>', 'tests="2" failures="1"'],
    [
      "node counts what is to be done",
      '<testcase name="a"><skipped type="todo"/><failure/></testcase>',
      'failures="1"',
    ],
    ["Qt counts what is logged", '<testcase name="a"><!-- message="x" type="qdebug" --></testcase>', 'errors="1"'],
    ["others count assertions", '<testcase name="a"><failure/><failure/></testcase>', 'failures="2"'],
    ["others count suites", '<testcase name="a"><failure/></testcase>', 'failures="2"'],
  ])("and not where its test cases show them: %s", (_, inner, attributes) => {
    expect(read(suite(inner, attributes)).cases).toHaveLength(1);
  });

  test.each([
    ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01.000Z"],
    ["2026-01-01T00:00:00.123456+00:00", "2026-01-01T00:00:01.123Z"],
    ["Fri, 20 Nov 2026 21:32:08 GMT", "2026-11-20T21:32:09.000Z"],
    ["2026-01-01T00:00:00", null],
    ["1970-01-01T00:00:00Z", null],
    ["yesterday", null],
    ["", null],
  ])("its end is known only from a time with an offset: %p", (timestamp, end) => {
    expect(read(suite("", `timestamp="${timestamp}" time="1"`)).completedAt?.toISOString() ?? null).toBe(end);
  });
});

describe("the status of a case", () => {
  test.each<[string, string, ReturnType<typeof outcome>]>([
    ["nothing", "", ["passed", null, false, 1]],
    ["a failure", "<failure/>", ["failed", "failure", false, 1]],
    ["an error", "<error/>", ["failed", "error", false, 1]],
    ["a failure and an error", "<error/><failure/>", ["failed", "failure", false, 1]],
    ["a skip", "<skipped/>", ["skipped", null, false, 1]],
    ["a failure beside a skip", "<skipped/><failure/>", ["failed", "failure", false, 1]],
    ["node's todo that fails", `<skipped type="todo"/><failure/>`, ["skipped", null, false, 1]],
    ["a flaky failure", "<flakyFailure/><flakyError/>", ["passed", null, true, 3]],
    ["a failed rerun", "<failure/><rerunFailure/><rerunError/>", ["failed", "failure", false, 3]],
    [
      "JUnit's timeout",
      `<error type="org.junit.runners.model.TestTimedOutException"/>`,
      ["failed", "timeout", false, 1],
    ],
    ["node's timeout", `<failure type="testTimeoutFailure"/>`, ["failed", "timeout", false, 1]],
    ["Playwright's timeout", `<error message="Test timeout of 100ms exceeded."/>`, ["failed", "timeout", false, 1]],
  ])("%s", (_, inner, expected) => {
    expect(outcome(inner)).toEqual(expected);
  });

  test.each([
    ['status="fail"', "failed"],
    ['status="errored"', "failed"],
    ['status="run" result="completed"', "passed"],
    ['status="disabled"', "skipped"],
    ['status="notrun" result="suppressed"', "skipped"],
    ['status="run" result="skipped"', "skipped"],
  ])("the attributes %s", (attributes, status) => {
    expect(one("", `name="a" ${attributes}`).status).toBe(status as ReportedCase["status"]);
  });
});

describe("the texts of a case", () => {
  test("the message is the attribute, else the first line, else the type", () => {
    const told = (inner: string) => [one(inner).message, one(inner).stack];
    expect(told(`<failure message="m" type="T">text</failure>`)).toEqual(["m", "text"]);
    expect(told(`<failure type="T">\n\n  first\n  second\n</failure>`)).toEqual(["first", "  first\n  second"]);
    expect(told(`<failure type="T"/>`)).toEqual(["T", null]);
    expect(told("<failure/>")).toEqual([null, null]);
    expect(told(`<failure message="1">a</failure><error message="2">b</error>`)).toEqual(["1", "a\n\nb"]);
    expect(told(`<skipped message="why">file:3</skipped>`)).toEqual(["why", null]);
    expect(told(`<flakyFailure message="m"><stackTrace>t</stackTrace></flakyFailure>`)).toEqual(["m", "t"]);
  });

  test("properties and attachments come from elements and from marks in the output", () => {
    const { properties, attachments } = one(
      `<properties><property name="k" value="v"/><property name="__proto__">text</property></properties>
       <system-out>[[ATTACHMENT|a/b.png]] [[PROPERTY|owner=team=x]]\n[[ATTACHMENT|c.zip]] [[OTHER|x]] [[ATTACHMENT|open</system-out>`,
    );
    expect(Object.entries(properties!)).toEqual([
      ["k", "v"],
      ["__proto__", "text"],
      ["owner", "team=x"],
    ]);
    expect(attachments).toEqual([
      { name: "b.png", path: "a/b.png", contentType: null, body: null },
      { name: "c.zip", path: "c.zip", contentType: null, body: null },
    ]);
  });

  test("the output of a suite belongs to no case", () => {
    expect(read(suite('<system-out>x</system-out><testcase name="a"/>')).cases).toEqual([bare]);
  });

  test("a case without a name has one that says so", () => {
    expect([one("", "").name, one("", 'name=" "').name]).toEqual(["(no name)", "(no name)"]);
  });
});

describe("where a case belongs", () => {
  test.each([
    ["a Java class names itself, whatever suite it ran in", "Gradle", "com.a.FooTest", "com.a.FooTest", null],
    ["a class name that repeats the suite", "S", "S", "S", null],
    ["a class name that continues the suite", "outer", "outer inner", "outer inner", null],
    ["a class name that ends the suite", "module.Class", "Class", "module.Class", null],
    ["a class name beside the suite", "chrome", "outer", "chrome > outer", null],
    ["node's class name", "outer", "test", "outer", null],
    ["jest-junit's class name is the test's", "outer", "a", "outer", null],
    ["vitest's class name is the file", "t/a.test.ts", "t/a.test.ts", "", "t/a.test.ts"],
    ["mocha's suite is the tool", "Mocha Tests", "outer", "outer", null],
    ["a file as suite", "t/a.test.ts", "outer", "outer", "t/a.test.ts"],
    ["pytest's module and class", "pytest", "tests.test_a.TestB", "tests.test_a.TestB", "tests/test_a.py"],
    ["pytest's class name set by hand", "pytest", "custom", "custom", null],
    ["unittest's suite with the second it ran", "TestA-20260101101010", "TestA", "TestA", null],
    ["PHPUnit's settings as suite", "/ci/phpunit.xml", "ATest", "ATest", null],
  ])("%s", (_, name, classname, suiteOfCase, file) => {
    const xml = `<testsuites>${suite(`<testcase name="a" classname="${classname}"/>`, `name="${name}"`)}</testsuites>`;
    expect(places(xml)).toEqual([[suiteOfCase, "a", file]]);
  });

  test("a file is that of the case, else of the nearest suite", () => {
    const cases = `<testcase name="a" file="file:///p/a.ts"/><testcase name="b"/>`;
    expect(places(suite(cases, 'file="s.php"'))).toEqual([
      ["", "a", "/p/a.ts"],
      ["", "b", "s.php"],
    ]);
  });
});

describe("what one tool alone writes", () => {
  test("node: a test that fails after its children is told only by a comment at the end", () => {
    const failed = '<testcase name="a"><failure/></testcase>';
    const count = (comment: string) =>
      read(`<testsuites>${suite(failed)}<!-- ${comment} --></testsuites>`).cases.length;
    // The suite is a test as well, and fails with what is in it.
    expect([count("fail 2"), count("fail 3"), count("cancelled 3"), count("fail")]).toEqual([1, 2, 2, 1]);
  });

  test("PHPUnit 9: a text begins with the name of the test, which is no message", () => {
    const told = one(
      `<error type="E">Acme\\CartTest::testA\nE: x</error>`,
      `name="testA" class="Acme\\CartTest" classname="Acme.CartTest"`,
    );
    expect(told.message).toBe("E: x");
    expect(one("<error>a</error>").message).toBe("a");
  });

  test("PHPUnit 9: a risky test has passed, and so has one with a warning, as PHPUnit ends with 0", () => {
    expect(one(`<warning type="PHPUnit\\Framework\\Warning">a\nold</warning>`)).toMatchObject({
      status: "passed",
      properties: { warning: "old" },
    });
    expect(outcome(`<error type="PHPUnit_Framework_RiskyTestError"/>`)).toEqual(["passed", null, false, 1]);
    expect(outcome(`<error type="PHPUnit\\Framework\\RiskyTestError"/><error/>`)).toEqual([
      "failed",
      "error",
      false,
      1,
    ]);
    expect(outcome(`<error type="Acme\\RiskyTestError"/>`)).toEqual(["failed", "error", false, 1]);
  });

  test("CasperJS: the class name repeats the package of its suite, which is a sentence", () => {
    const script = '<testcase name="Find an element matching: h1" classname="tests/site/home"/>';
    expect(places(suite(script, 'name="The home page greets" package="tests/site/home"'))).toEqual([
      ["The home page greets", "Find an element matching: h1", null],
    ]);
    expect(places(suite(script, 'name="s" package="tests"'))[0]![0]).toBe("s > tests/site/home");
  });

  test("node-tap: what is skipped or to be done is so by a property", () => {
    const skip = '<properties><property name="skip" value="true"/></properties>';
    expect(one(skip, 'name="a"').status).toBe("passed");
    expect(one(`${skip}<failure/>`, 'name="a" id="1"').status).toBe("failed");
  });
});

describe("words for the end of a test, as elements and attributes", () => {
  const test1 = (inside: string, attributes = "") => `<testcase name="x"${attributes}>${inside}</testcase>`;
  const statusOf = (testcase: string, totals = "") => {
    const { cases, warnings } = read(`<testsuite name="s"${totals}>${testcase}</testsuite>`);
    return [...cases.map(({ status }) => status), ...warnings];
  };

  test.each(["skipped", "ignored", "disabled", "skip", "notrun", "pending", "todo"])("<%s/> is skipped", (word) => {
    expect(statusOf(test1(`<${word}/>`))).toEqual(["skipped"]);
  });

  test.each(["failure", "failed", "fail", "error", "exception", "timeout"])("<%s/> is failed", (word) => {
    expect(statusOf(test1(`<${word} message="m"/>`))).toEqual(["failed"]);
  });

  test.each([
    ['result="failed"', "failed"],
    ['status="BROKEN"', "failed"],
    ['status="run" result="completed"', "passed"],
    ['result="not_run"', "skipped"],
    ['success="false"', "failed"],
    ['skipped="true"', "skipped"],
  ])("%s is %s", (attributes, expected) => expect(statusOf(test1("", ` ${attributes}`))).toEqual([expected]));

  test("an unknown one is a warning, and what the totals say of it", () => {
    const warning = "is unknown: 1 test case passed unless the totals say otherwise";
    const odd = test1("<broke/>");
    expect(statusOf(odd)).toEqual(["passed", `The element <broke> ${warning}`]);
    expect(statusOf(odd, ' tests="1" failures="1"')).toEqual(["failed", `The element <broke> ${warning}`]);
    expect(statusOf(test1("", ' status="odd"'), ' tests="1" skipped="1"')).toEqual([
      "skipped",
      `The status "odd" ${warning}`,
    ]);
    const outer = `<testsuites tests="3" failures="2"><testsuite>${odd}${test1("<failure/>")}${test1("")}</testsuite></testsuites>`;
    expect(inShort(read(outer))).toEqual(["failed failure: x", "failed failure: x", "passed: x"]);
  });

  test("TestNG does not count skipped tests, and pytest counts subtests", () => {
    const skipped = test1("<ignored/>");
    expect(statusOf(test1("") + skipped, ' tests="1" skipped="1" ignored="1"')).toEqual(["passed", "skipped"]);
    expect(
      read(`<testsuites><testsuite name="pytest" tests="5" failures="0">${test1("")}</testsuite></testsuites>`)
        .warnings,
    ).toEqual([]);
  });
});
