import { describe, expect, test } from "bun:test";
import { readReport } from "../../src/reports/read.ts";
import { type ReportedCase, ReportError } from "../../src/reports/report.ts";

const read = (xml: string) =>
  readReport([{ name: "a.xml", bytes: new TextEncoder().encode(xml) }], { maxInflatedBytes: 2 ** 27 });
const fixture = async (name: string) =>
  readReport([{ name, bytes: await Bun.file(`${import.meta.dir}/../fixtures/${name}`).bytes() }], {
    maxInflatedBytes: 2 ** 20,
  });
const suite = (inner: string, attributes = 'name="s"') => `<testsuite ${attributes}>${inner}</testsuite>`;
const one = (inner: string, attributes = 'name="a"'): ReportedCase =>
  read(suite(`<testcase ${attributes}>${inner}</testcase>`)).cases[0]!;
const outcome = (inner: string, attributes?: string) => {
  const { status, kind, flaky, attempts } = one(inner, attributes);
  return [status, kind, flaky, attempts];
};
const refusal = (xml: string): string => {
  try {
    read(xml);
  } catch (error) {
    if (error instanceof ReportError) return error.message.replace('Cannot read "a.xml": ', "");
    throw error;
  }
  return "accepted";
};
/** What identifies the cases: suite, name and file. */
const places = (xml: string) => read(xml).cases.map(({ suite, name, file }) => [suite, name, file]);

const bare: ReportedCase = {
  suite: "s",
  name: "a",
  file: null,
  line: null,
  status: "passed",
  kind: null,
  flaky: false,
  attempts: 1,
  durationMs: null,
  message: null,
  stack: null,
  output: null,
  properties: null,
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
      format: "junit",
      suite: "all",
      cases: [
        { ...bare, suite: "outer", file: "a.c", line: 3, durationMs: 500, output: "out\nerr" },
        {
          ...bare,
          suite: "outer > inner",
          name: "b",
          status: "failed",
          kind: "failure",
          durationMs: 1_234_500,
          message: "m",
          stack: "  at x\n  at y",
        },
      ],
      countsOnly: null,
      partial: false,
      durationMs: 2500,
      completedAt: new Date("2026-01-01T08:00:02.500Z"),
      context: {},
      warnings: [],
    });
  });

  test("may hold no test case, cases in the root, a prefix, or Eclipse's root", () => {
    expect(read("<testsuites/>").cases).toEqual([]);
    expect(read(`<testsuites><testcase name="a"/></testsuites>`).cases).toEqual([{ ...bare, suite: "" }]);
    expect(
      read(`<j:testsuite xmlns:j="x" name="s"><j:testcase name="a"><j:skipped/></j:testcase></j:testsuite>`).cases,
    ).toEqual([{ ...bare, status: "skipped" }]);
    expect(read(`<testrun name="r">${suite('<testcase name="a"/>')}</testrun>`).cases).toEqual([bare]);
  });

  test("every testcase element is a case of its own", () => {
    const { cases } = read(suite(`<testcase name="a"/><testcase name="a"><failure/></testcase><testcase name="a"/>`));
    expect(cases.map(({ status }) => status)).toEqual(["passed", "failed", "passed"]);
  });

  test("totals that disagree are one warning, and the cases count", () => {
    const xml = suite(
      '<testcase name="a"><failure/></testcase>',
      'name="s" tests="3" failures="0" errors="0" skipped="1"',
    );
    expect(read(xml).warnings).toEqual([
      "The report declares 3 tests, 0 failed, 1 skipped, but its test cases are 1 test, 1 failed, 0 skipped",
    ]);
    expect(
      read(suite('<testcase name="a" status="disabled"/>', 'tests="1" skipped="0" disabled="1"')).warnings,
    ).toEqual([]);
  });

  test("a failure outside of any case is not a case but a warning", () => {
    const { cases, warnings } = read(suite('<error message="no class"/><testcase name="a"/><failure>x</failure>'));
    expect(cases).toEqual([bare]);
    expect(warnings).toEqual(['2 failures outside of any test case, not counted, the first: "no class"']);
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

  test("properties come from elements and from marks in the output", () => {
    const { properties } = one(
      `<properties><property name="k" value="v"/><property name="__proto__">text</property></properties>
       <system-out>[[ATTACHMENT|a/b.png]] [[PROPERTY|owner=team=x]]\n[[ATTACHMENT|c.zip]] [[OTHER|x]] [[ATTACHMENT|open</system-out>`,
    );
    expect(Object.entries(properties!)).toEqual([
      ["k", "v"],
      ["__proto__", "text"],
      ["attachment", "a/b.png"],
      ["owner", "team=x"],
      ["attachment 2", "c.zip"],
    ]);
  });

  test("the output of a suite belongs to no case", () => {
    expect(read(suite('<system-out>x</system-out><testcase name="a"/>')).cases).toEqual([bare]);
  });

  test("a case without a name has one that says so", () => {
    expect([one("", "").name, one("", 'name=" "').name]).toEqual(["(no name)", "(no name)"]);
  });

  test("a name of 1 MB is cut, with one warning for all", () => {
    const long = `<testcase name="${"x".repeat(1_000_000)}"/>`;
    const { cases, warnings } = read(suite(long + long));
    expect(cases.map(({ name }) => name.length)).toEqual([1000, 1000]);
    expect(warnings).toEqual(["Cut 2 names to 1,000 characters"]);
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

  test("a path of ten thousand suites is read, and kept as far as there is room", () => {
    const xml = `${'<testsuite name="abc">'.repeat(9000)}<testcase name="a"/>${"</testsuite>".repeat(9000)}`;
    expect(read(xml).cases[0]!.suite.length).toBeLessThanOrEqual(1000);
  });
});

describe("what real tools wrote about tests with hostile names", () => {
  const QUOTED = 'outer <script> > inner ]]> & "q"';
  const facts = async (name: string) => {
    const { cases, partial } = await fixture(name);
    expect(partial).toBe(false);
    expect(JSON.stringify(cases).isWellFormed() && !/[\0\x1b]/.test(cases.map(({ name }) => name).join())).toBe(true);
    return cases.map(({ suite, name, status, file }) => [suite, name, status, file]);
  };

  test("bun", async () => {
    const file = "hostile.test.ts";
    expect(await facts("bun_junit.xml")).toEqual([
      ["", "top level", "passed", file],
      [QUOTED, "passes 😀", "passed", file],
      [QUOTED, "ansi [31mred[0m", "failed", file],
      [QUOTED, "nul  end", "passed", file],
      [QUOTED, "lone \ufffd end", "failed", file],
      [QUOTED, "skipped", "skipped", file],
      [QUOTED, "todo", "skipped", file],
    ]);
  });

  test("node, which writes raw control characters and ]]>", async () => {
    const outer = "outer <script> > inner ]]> & &quot;q&quot;";
    expect(await facts("node_junit.xml")).toEqual([
      ["", "top level", "passed", null],
      [outer, "passes 😀", "passed", null],
      [outer, "ansi red", "failed", null],
      [outer, "nul \ufffd end", "passed", null],
      [outer, "lone \ufffd end", "failed", null],
      [outer, "skipped", "skipped", null],
      [outer, "todo", "skipped", null],
      [outer, "slow", "failed", null],
    ]);
    expect((await fixture("node_junit.xml")).warnings).toEqual(["Took 5 characters literally that XML wants escaped"]);
  });

  test("pytest, whose failure and failed teardown are two cases", async () => {
    const { cases, completedAt } = await fixture("pytest_junit.xml");
    expect(completedAt).toEqual(new Date("2026-11-21T00:27:56.090Z"));
    expect(cases).toHaveLength(13);
    expect(
      cases.slice(-3).map(({ suite, name, kind, file, properties }) => [suite, name, kind, file, properties]),
    ).toEqual([
      ["tests.test_hostile", "test_both", "failure", "tests/test_hostile.py", { owner: "team <a>" }],
      ["tests.test_hostile", "test_both", "error", "tests/test_hostile.py", { owner: "team <a>" }],
      ["tests.test_hostile", "test_surrogate", "failure", "tests/test_hostile.py", null],
    ]);
  });

  test("vitest", async () => {
    const file = "t/hostile.test.mjs";
    expect(await facts("vitest_junit.xml")).toEqual([
      ["", "t/broken.test.mjs", "failed", "t/broken.test.mjs"],
      ["", `${QUOTED} > passes 😀`, "passed", file],
      ["", `${QUOTED} > ansi [31mred[0m`, "failed", file],
      ["", `${QUOTED} > nul  end`, "passed", file],
      ["", `${QUOTED} > lone  end`, "failed", file],
      ["", `${QUOTED} > skipped`, "skipped", file],
      ["", `${QUOTED} > todo`, "skipped", file],
    ]);
  });

  test("jest-junit, which writes raw control characters", async () => {
    const [outer, file] = ['outer <script> inner ]]> & "q"', "j/hostile.test.cjs"];
    expect((await facts("jest_junit.xml")).slice(0, 5)).toEqual([
      [outer, "passes 😀", "passed", file],
      [outer, "ansi red", "failed", file],
      [outer, "nul \ufffd end", "passed", file],
      [outer, "lone \ufffd end", "failed", file],
      [outer, "skipped", "skipped", file],
    ]);
  });

  test("mocha, which writes references to lone surrogates", async () => {
    const { cases } = await fixture("mocha_xunit.xml");
    expect(cases.map(({ suite, name, message }) => [suite, name, message])).toEqual([
      ["outer <script>", "passes 😀", null],
      ["outer <script>", "ansi red ]]>", "nul  lone \ufffd ]]>"],
      ["outer <script>", "skipped", null],
    ]);
  });
});

describe("a document that is not well formed", () => {
  test("loses what XML does not allow", () => {
    const { name, message } = one(
      `<failure message="&#0;&#xD800;&#xD83D;&#xDE00;&#27;[31mred&#x1b;[0m &#x10FFFFF;&#65;"/>`,
      'name="\x1b[1ma\x07\0"',
    );
    expect([name, message]).toEqual(["a\ufffd", "\ufffd\ufffd😀red \ufffdA"]);
    expect(read(`\ufeff \n<?xml version="1.0"?>${suite("")}`).cases).toEqual([]);
  });

  test("keeps what should have been escaped", () => {
    const { cases, warnings, partial } = read(
      suite(`<testcase name="a < b & c &nbsp;"><failure>x]]> & 1 < 2 <![CDATA[&<]]></failure></testcase>`),
    );
    expect([cases[0]!.name, cases[0]!.stack, partial]).toEqual(["a < b & c &nbsp;", "x]]> & 1 < 2 &<", false]);
    expect(warnings).toEqual(["Took 6 characters literally that XML wants escaped"]);
  });

  test.each([
    ["breaks off in a section", `<b><![CDATA[`, "a CDATA section is not closed"],
    ["breaks off in a tag", `<testcase name="b`, "the tag <testcase> is malformed or breaks off"],
    ["breaks off in a case", `<testcase name="b"><failure>`, "it breaks off inside <failure>"],
    ["breaks off behind the cases", `<properties/>`, "it breaks off inside <testsuite>"],
    ["closes what is not open", `</b>`, "<testsuite> is not closed"],
    [
      "has an attribute twice",
      `<testcase name="b" name="c"/></testsuite>`,
      "the tag <testcase> has the attribute name twice",
    ],
    ["goes on after its end", `</testsuite><testsuite/>`, "there is more after its end"],
  ])("is read up to the last whole case when it %s", (_, end, reason) => {
    const { cases, partial, warnings } = read(`<testsuite name="s">\n<testcase name="a"></testcase>\n${end}`);
    expect({ cases, partial, warnings }).toEqual({
      cases: [bare],
      partial: true,
      warnings: [`The report is broken at line 3: ${reason}; only what comes before it is read, 1 test case`],
    });
  });

  test("is refused when no case is whole", () => {
    expect(refusal(`\n\n${suite("").slice(0, -3)}`)).toBe("malformed XML at line 3: <testsuite> is not closed");
    expect(refusal(`<testsuite>\n<testcase name="a"><failure>`)).toBe(
      "malformed XML at line 2: it breaks off inside <failure>",
    );
    expect(refusal(`<?xml version="2.0"?><testsuite/>`)).toStartWith("malformed XML: unsupported XML version");
  });
});

describe("attacks", () => {
  test.each([
    `<!DOCTYPE t [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>`,
    `<!DOCTYPE t [<!ENTITY a SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&a;"/></testsuite>`,
    `<!DOCTYPE testsuite [<!ENTITY % a SYSTEM "http://127.0.0.1/"> %a;]><testsuite/>`,
    `<?xml version="1.0"?><!-- x --><!DOCTYPE testsuite SYSTEM "http://127.0.0.1/x.dtd"><testsuite/>`,
  ])("entities are refused: %#", (xml) => {
    expect(refusal(xml)).toBe("it declares entities or an external document type, which is refused");
  });

  test("absurd nesting is refused", () => {
    expect(refusal("<testsuite>".repeat(50_000) + "</testsuite>".repeat(50_000))).toBe(
      "its elements are nested too deeply",
    );
  });

  test("more than 200,000 cases are refused", () => {
    expect(refusal(suite('<testcase name="a"/>'.repeat(200_001)))).toBe("it has more than 200,000 cases");
  });

  test.each([
    // As many as there may be.
    ["attributes", suite(`<testcase ${Array.from({ length: 999 }, (_, n) => `a${n}="1"`).join(" ")} name="a"/>`)],
    [
      "marks in the output",
      suite(`<testcase name="a"><system-out>${"[[ATTACHMENT|".repeat(500_000)}</system-out></testcase>`),
    ],
    ["blanks in a time", suite(`<testcase name="a" time="1${" ".repeat(5_000_000)}x"/>`)],
    ["slashes in a class name", suite(`<testcase name="a" classname="${"/".repeat(5_000_000)}"/>`)],
    ["blank lines", suite(`<testcase name="a"><failure>${"\n".repeat(5_000_000)}x</failure></testcase>`)],
    ["open tags", `<testsuite><testcase name="a"/>${"<b x='".repeat(1_000_000)}`],
  ])("a document of endless %s does not take long", (_, xml) => {
    const start = performance.now();
    expect(read(xml).cases).toHaveLength(1);
    expect(performance.now() - start).toBeLessThan(2000);
  });
});
