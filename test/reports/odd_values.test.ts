/** A reader of XML reads a report, and one of JSON reads or refuses it, whatever any of its values is and however deep it nests. */

import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "bun:test";
import { ReportError } from "../../src/reports/report.ts";
import { isFull } from "../depth.ts";
import { GREEN_REPORTS } from "./green_reports.ts";
import { oddJson, oddXml, read } from "./reading.ts";
import { WRITTEN } from "./written.ts";

const FIXTURES = ["", "_json", "_log", "_report", "_xml", "_jest"].flatMap((more) =>
  ["json", "ndjson", "xml"].map((ending) => `${more}.${ending}`),
);

/** A green report of each format, and failing ones. */
const reports = Object.entries(GREEN_REPORTS).map(([format, text]): [string, string[]] => {
  const paths = FIXTURES.map((end) => `${import.meta.dir}/../fixtures/${format}${end}`);
  const written = ["json", "ndjson", "xml"].flatMap((ending) => WRITTEN[`${format}.${ending}`] ?? []);
  return [format, [text, ...written, ...paths.filter(existsSync).map((path) => readFileSync(path, "utf8"))]];
});

/** Lines of a build may begin with "[INFO]". */
const isJson = (text: string): boolean => /^(?:\{|\[\s*[[{])/.test(text);

/** Reads each text, and fails with anything but a ReportError. */
function expectRefusals(texts: Iterable<string>): void {
  for (const text of texts)
    try {
      read(text);
    } catch (error) {
      if (!(error instanceof ReportError)) throw error;
    }
}

describe("any value of JSON may be of any type", () => {
  test.each(reports.filter(([, [green]]) => isJson(green!)))("%s", (_, texts) => {
    for (const text of texts) expectRefusals(oddJson(text, isFull || text.length < 2_000 ? 1 : 29));
  });

  test("allure", () => {
    const labels = [{ name: "a", value: "b" }];
    const more = { parameters: labels, links: labels, statusDetails: { message: "no" }, start: 1_700_000_000_000 };
    expectRefusals(oddJson(JSON.stringify({ uuid: "1", name: "a", status: "failed", labels, ...more })));
  });
});

test.each(reports.filter(([, [green]]) => green!.startsWith("<")))("any value of XML may be odd: %s", (_, texts) => {
  for (const text of texts) {
    const { format } = read(text);
    for (const odd of oddXml(text)) expect(read(odd).format).toBe(format);
  }
});

/** The formats whose suites nest: how often within the levels, and what is before, at each level, inside, and back. */
const NESTED: Record<string, string> = {
  boost: '97|<TestLog>|<TestSuite name="s">|<TestCase name="a"/>|</TestSuite>|</TestLog>',
  catch2: `97|<Catch2TestRun><TestCase name="a">|<Section name="s">||</Section>|<OverallResult success="true"/></TestCase><OverallResultsCases/></Catch2TestRun>`,
  junit: '99||<testsuite name="abc">|<testcase name="a"/>|</testsuite>|',
  mochawesome: `47|{"stats":{"testsRegistered":1},"results":[|{"title":"s","suites":[|{"tests":[{"title":"a"}]}|]}|]}`,
  newman: `48|{"collection":{"item":[|{"name":"f","item":[|{"id":"1","name":"list"}|]}|]},"run":{"stats":{},"failures":[],"executions":[{"item":{"id":"1","name":"list"},"assertions":[{"assertion":"a"}]}]}}`,
  playwright: `45|{"config":{},"stats":{},"errors":[],"suites":[|{"title":"s","suites":[|{"specs":[{"title":"a","tests":[{"results":[{"status":"passed"}]}]}]}|]}|]}`,
  xcresult: `48|{"testNodes":[|{"nodeType":"Test Suite","name":"s","children":[|{"nodeType":"Test Case","name":"a","result":"Failed"}|]}|]}`,
};

test.each(Object.entries(NESTED))("suites of %s nest up to a hundred levels", (_, written) => {
  const [count, before, begin, inner, end, after] = written.split("|") as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const levels = Number(count);
  const nested = (depth: number) => before + begin.repeat(depth) + inner + end.repeat(depth) + after;
  const { cases } = read(nested(levels));
  expect(cases.map(({ name }) => name)).toEqual(["a"]);
  expect(cases[0]!.suite.length).toBeLessThanOrEqual(1_000);
  for (const depth of [levels + 2, 20_000])
    expect(() => read(nested(depth))).toThrow("nested more than 100 levels deep");
});
