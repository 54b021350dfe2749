/** Real reports of many tools, with the counts that they must be read to: our fixtures, and more that may lie beside this repository. */

import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { readReport } from "../../../src/reports/read.ts";
import { type CaseStatus, ReportError } from "../../../src/reports/report.ts";
import { FAULTS } from "../../reports/reading.ts";

type Entry = { format: string; verdict: string; expected: Record<CaseStatus, number> | null };

const CORPUS = `${import.meta.dir}/../../../../shared/corpus`;
const LIST = `${CORPUS}/expected.json`;
const entries: [string, Entry][] = existsSync(LIST) ? Object.entries(JSON.parse(readFileSync(LIST, "utf8"))) : [];

const FIXTURES: Record<string, [format: string, passed: number, failed: number, skipped: number]> = {
  "behave.json": ["behave", 5, 6, 2],
  "cucumber_messages.ndjson": ["cucumber_messages", 8, 7, 3],
  "libtest.ndjson": ["libtest", 4, 5, 2],
  "libtest_aborted.ndjson": ["libtest", 1, 2, 0],
  "mochawesome.json": ["mochawesome", 10, 5, 5],
  "newman.json": ["newman", 6, 12, 2],
  "pytest_json.json": ["pytest_json", 8, 10, 4],
  "pytest_reportlog.ndjson": ["pytest_reportlog", 8, 10, 4],
  "swift_testing.ndjson": ["swift_testing", 5, 4, 2],
  "xcresult.json": ["xcresult", 5, 6, 1],
  "bats_tap.tap": ["tap", 3, 2, 1],
  "bats_tap13.tap": ["tap", 3, 2, 1],
  "busted_junit.xml": ["junit", 2, 3, 1],
  "busted_tap.tap": ["tap", 2, 3, 1],
  "cmocka_groups.xml": ["junit", 2, 2, 1],
  "deno_tap14.tap": ["tap", 3, 2, 1],
  "glib_tap.tap": ["tap", 1, 2, 2],
  "jest_json_threshold.json": ["jest", 1, 1, 0],
  "node-tap_junit.xml": ["junit", 2, 0, 4],
  "node_junit_parent.xml": ["junit", 2, 1, 0],
  "phpunit9_junit.xml": ["junit", 2, 3, 2],
  "phpunit9_junit_risky.xml": ["junit", 2, 0, 0],
  "playwright_global_teardown.json": ["playwright", 1, 1, 0],
  "bun_junit.xml": ["junit", 3, 2, 2],
  "catch2_teamcity.txt": ["teamcity", 1, 3, 2],
  "cucumber_json.json": ["cucumber", 6, 6, 1],
  "doctest_xml.xml": ["doctest", 6, 7, 1],
  "doctest_xml_cut.xml": ["doctest", 1, 1, 0],
  "go_test2json.ndjson": ["go", 12, 7, 1],
  "jest_json.json": ["jest", 2, 4, 2],
  "jest_junit.xml": ["junit", 3, 4, 1],
  "jest_teamcity.txt": ["teamcity", 2, 3, 1],
  "mocha_json.json": ["mocha", 2, 4, 2],
  "mocha_tap.tap": ["tap", 3, 2, 2],
  "mocha_teamcity.txt": ["teamcity", 3, 4, 2],
  "mocha_xunit.xml": ["junit", 1, 1, 1],
  "node-tap_tap14.tap": ["tap", 1, 4, 2],
  "node_junit.xml": ["junit", 3, 3, 2],
  "node_tap13.tap": ["tap", 4, 4, 2],
  "perl_tap.tap": ["tap", 2, 2, 2],
  "phpunit_teamcity.txt": ["teamcity", 4, 3, 2],
  "phpunit_teamcity_cut.txt": ["teamcity", 1, 1, 0],
  "playwright_json.json": ["playwright", 5, 2, 1],
  "playwright_load_error.json": ["playwright", 0, 1, 0],
  "pytest_junit.xml": ["junit", 7, 4, 2],
  "rspec_json.json": ["rspec", 3, 5, 3],
  "rspec_json_load_error.json": ["rspec", 0, 1, 0],
  "tape_tap13.tap": ["tap", 2, 1, 1],
  "vitest_json.json": ["jest", 2, 5, 3],
  "vitest_junit.xml": ["junit", 2, 3, 2],
  "vitest_teamcity.txt": ["teamcity", 1, 3, 1],
};

test.each(Object.entries(FIXTURES))("%s", (name, [format, passed, failed, skipped]) => {
  const bytes = readFileSync(`${import.meta.dir}/../../fixtures/${name}`);
  const report = readReport([{ name, bytes }], { maxInflatedBytes: 2 ** 27 });
  const count = (status: CaseStatus) => report.cases.filter((one) => one.status === status).length;
  expect([report.format, count("passed"), count("failed"), count("skipped")]).toEqual([
    format,
    passed,
    failed,
    skipped,
  ]);
});

for (const [path, entry] of entries) {
  test(path, () => {
    const counts: Record<CaseStatus, number> = { passed: 0, failed: 0, skipped: 0 };
    let refused = false;
    try {
      const files = [{ name: path, bytes: readFileSync(`${CORPUS}/${path}`) }];
      for (const { status } of readReport(files, { maxInflatedBytes: 2 ** 27 }).cases) counts[status]++;
    } catch (error) {
      expect(error).toBeInstanceOf(ReportError);
      refused = true;
    }
    if (entry.verdict === "reject") expect(refused).toBe(true);
    if (entry.verdict.startsWith("accept")) {
      const { passed, failed, skipped } = entry.expected!;
      const faults = FAULTS[path] ?? 0;
      expect({ refused, ...counts }).toEqual({ refused: false, passed, failed: failed + faults, skipped });
    }
  });
}
