import { expect, test } from "bun:test";
import { emptyReport, type Report, type ReportedCase } from "../../src/reports/report.ts";
import { probeOnly, repeatOnly } from "../../src/rules/repeat.ts";
import { readFixture } from "../reports/reading.ts";

const named = (name: string, more: Partial<ReportedCase> = {}): ReportedCase => ({
  ...readFixture("same_tests/jest.json").cases[0]!,
  ...{ suite: "", name, file: "a.ts", status: "passed" },
  ...more,
});
const reportOf = (...cases: ReportedCase[]): Report => ({ ...emptyReport("junit"), cases });
const at = (name: string, suite = "", file: string | null = "a.ts") => ({ suite, name, file });
const inShort = ({ cases }: Report) => cases.map(({ suite, name, status }) => [suite, name, status]);

test("what was to run again and is not in the report, or is skipped, has failed", () => {
  const report = reportOf(named("a"), named("b", { status: "skipped" }));
  expect(inShort(repeatOnly(report, [at("a"), at("b"), at("c"), at("a", "", "b.ts")]))).toEqual([
    ["", "a", "passed"],
    ["", "b", "failed"],
    ["", "c", "failed"],
    ["", "a", "failed"],
  ]);
});

test.each([
  ["in another directory", { file: "/home/ci/shop/a.ts" }, at("t")],
  ["in the workspace of a CI system", { file: "/builds/acme/shop/a.ts" }, at("t")],
  ["that names no file", { file: null }, at("t")],
  ["in a format that joins titles with blanks", { suite: "", name: "s u t" }, at("t", "s > u")],
  ["in a format that lists titles", { suite: "s > u", name: "t" }, at("s u t")],
  [
    "without the root of the repository",
    { suite: "a.ts > s", name: "t", reportedName: at("t", "/x/a.ts > s") },
    at("t", "/x/a.ts > s"),
  ],
])("a test is found in a report %s", (_, one, asked) => {
  const report = reportOf(named("t", one));
  expect(repeatOnly(report, [asked]).cases).toEqual(report.cases);
});

test.each([
  ["jest.json", "jest_default.xml"],
  ["jest.json", "jest_separated.xml"],
  ["vitest.json", "vitest.xml"],
  ["mocha.json", "mocha.xml"],
  ["playwright.json", "playwright.xml"],
])("the failed tests of %s are found in %s", (json, junit) => {
  const [one, other] = [readFixture(`same_tests/${json}`), readFixture(`same_tests/${junit}`)];
  const isTest = ({ status, name }: ReportedCase) => status === "failed" && !name.startsWith("(");
  for (const [stored, report] of [
    [one, other],
    [other, one],
  ] as const) {
    const asked = stored.cases.filter(isTest).filter(({ name }) => name !== "with a broken hook");
    expect(asked.length).toBeGreaterThan(4);
    const ran = report.cases.filter(({ status }) => status !== "skipped");
    expect(
      repeatOnly(
        report,
        asked.filter(({ suite }) => suite !== "with a broken hook"),
      ).cases,
    ).toEqual(ran);
  }
});

test("each of the tests that a probe runs gets the names that it is stored with", () => {
  const report = reportOf(
    named("t", { suite: "s > u", file: "/home/ci/shop/a.ts" }),
    named("v", { suite: "s > u", status: "failed" }),
    named("w", { status: "skipped" }),
    named("x"),
  );
  expect(probeOnly(report, [at("t", "s u"), at("v", "s u"), at("w")]).cases).toEqual([
    named("t", { suite: "s u" }),
    named("v", { suite: "s u", status: "failed" }),
    named("x"),
  ]);
});

test("a result that may be of two tests of a probe keeps its name, and so do two results of one test", () => {
  const twice = reportOf(named("t", { file: null }));
  expect(probeOnly(twice, [at("t", "", "a.ts"), at("t", "", "b.ts")]).cases).toEqual(twice.cases);
  const both = reportOf(named("t", { file: "a.ts" }), named("t", { file: "b.ts" }));
  expect(probeOnly(both, [at("t", "", null)]).cases).toEqual(both.cases);
  expect(probeOnly(both, [at("t", "", "x/b.ts"), at("t", "", "x/a.ts")]).cases).toEqual([
    named("t", { file: "x/a.ts" }),
    named("t", { file: "x/b.ts" }),
  ]);
});
