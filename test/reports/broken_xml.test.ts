/** JUnit XML that is not well formed, that has several roots, or that attacks its reader. */

import { describe, expect, test } from "bun:test";
import type { ReportedCase } from "../../src/reports/report.ts";
import { read, refusalOf } from "./reading.ts";

const suite = (inner: string) => `<testsuite name="s">${inner}</testsuite>`;
const brief = ({ suite, name, status, message }: ReportedCase) => [suite, name, status, message];

describe("a document that is not well formed", () => {
  test("loses what XML does not allow", () => {
    const failure = `<failure message="&#0;&#xD800;&#xD83D;&#xDE00;&#27;[31mred&#x1b;[0m &#x10FFFFF;&#65;"/>`;
    const [one] = read(suite(`<testcase name="\x1b[1ma\x07\0">${failure}</testcase>`)).cases;
    expect([one!.name, one!.message]).toEqual(["a\ufffd", "\ufffd\ufffd😀red \ufffdA"]);
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
    ["goes on after its end", `</testsuite><other/>`, "there is more after its end"],
    ["has text between its roots", `</testsuite>done<testsuite/>`, "there is more after its end"],
    ["declares something between its roots", `</testsuite><!DOCTYPE a><testsuite/>`, "there is more after its end"],
  ])("is read up to the last whole case when it %s", (_, end, reason) => {
    const { cases, partial, warnings } = read(`<testsuite name="s">\n<testcase name="a"></testcase>\n${end}`);
    expect({ cases: cases.map(brief), partial, warnings }).toEqual({
      cases: [["s", "a", "passed", null]],
      partial: true,
      warnings: [`The report is broken at line 3: ${reason}; only what comes before it is read, 1 test case`],
    });
  });

  test("is refused when no case is whole", () => {
    expect(refusalOf(`\n\n${suite("").slice(0, -3)}`)).toBe("malformed XML at line 3: <testsuite> is not closed");
    expect(refusalOf(`<testsuite>\n<testcase name="a"><failure>`)).toBe(
      "malformed XML at line 2: it breaks off inside <failure>",
    );
    expect(refusalOf(`<?xml version="2.0"?><testsuite/>`)).toStartWith("malformed XML: unsupported XML version");
  });
});

describe("several roots, one after the other", () => {
  const first = '<testsuites><testsuite name="a"><testcase name="1"/></testsuite></testsuites>';
  const second = '<testsuite name="b" time="2"><testcase name="2"><failure message="m"/></testcase></testsuite>';

  test("are read as one report, with declarations and comments between them", () => {
    const declaration = '<?xml version="1.0" encoding="UTF-8" ?>';
    const { cases, suite, partial, warnings } = read(
      `${declaration}${first}\n${declaration}\n<!-- next -->${second}<testsuites/>\n<!-- end -->`,
    );
    expect(cases.map(brief)).toEqual([
      ["a", "1", "passed", null],
      ["b", "2", "failed", "m"],
    ]);
    expect({ suite, partial, warnings }).toEqual({ suite: null, partial: false, warnings: [] });
  });

  test("are mended, and the last may break off", () => {
    const broken = read(`${first}${second.replace('"m"', '"a & b"')}<testsuite name="c"><testcase name="3"/><testcase`);
    expect(broken.cases.map(brief)).toEqual([
      ["a", "1", "passed", null],
      ["b", "2", "failed", "a & b"],
      ["c", "3", "passed", null],
    ]);
    expect(broken).toMatchObject({ partial: true, warnings: [expect.any(String), expect.any(String)] });
  });

  test("are not without number", () => {
    expect(read("<testsuite/>".repeat(10_000)).cases).toEqual([]);
    expect(refusalOf("<testsuite/>".repeat(10_001))).toBe("it has more than 10,000 root elements");
  });

  test("each declare their own totals", () => {
    const wrong = '<testsuite name="c" tests="2"><testcase name="3"/></testsuite>';
    expect(read(wrong + wrong).warnings).toEqual([
      "The report declares 2 tests, but its test cases are 1 test",
      "The report declares 2 tests, but its test cases are 1 test",
    ]);
  });
});

describe("what would take too much of a server", () => {
  test.each([
    `<!DOCTYPE t [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>`,
    `<!DOCTYPE t [<!ENTITY a SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&a;"/></testsuite>`,
    `<!DOCTYPE testsuite [<!ENTITY % a SYSTEM "http://127.0.0.1/"> %a;]><testsuite/>`,
    `<?xml version="1.0"?><!-- x --><!DOCTYPE testsuite SYSTEM "http://127.0.0.1/x.dtd"><testsuite/>`,
  ])("entities are refused: %#", (xml) => {
    expect(refusalOf(xml)).toBe("entity declarations and external document types are not accepted");
  });

  test("more than 200,000 cases are refused", () => {
    expect(refusalOf(suite('<testcase name="a"/>'.repeat(200_001)))).toBe("it has more than 200,000 cases");
  });

  test.each([
    [
      "marks in the output",
      suite(`<testcase name="a"><system-out>${"[[ATTACHMENT|".repeat(500_000)}</system-out></testcase>`),
    ],
    ["blanks in a time", suite(`<testcase name="a" time="1${" ".repeat(5_000_000)}x"/>`)],
    ["slashes in a class name", suite(`<testcase name="a" classname="${"/".repeat(5_000_000)}"/>`)],
    ["blank lines", suite(`<testcase name="a"><failure>${"\n".repeat(5_000_000)}x</failure></testcase>`)],
    ["open tags", `<testsuite><testcase name="a"/>${"<b x='".repeat(1_000_000)}`],
  ])("a document of endless %s is read", (_, xml) => {
    expect(read(xml).cases).toHaveLength(1);
  });
});
