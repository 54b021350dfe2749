/** Real reports of many tools, with the counts that they must be read to: some of our fixtures, and more that may lie beside this repository. */

import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { type CaseStatus, ReportError } from "../../../src/reports/report.ts";
import { FAULTS, read, readFixture } from "../../reports/reading.ts";

type Entry = { format: string; verdict: string; expected: Record<CaseStatus, number> | null };

const CORPUS = `${import.meta.dir}/../../../../shared/corpus`;
const LIST = `${CORPUS}/expected.json`;
const entries: [string, Entry][] = existsSync(LIST) ? Object.entries(JSON.parse(readFileSync(LIST, "utf8"))) : [];

/** Fixtures whose cases no test of a reader lists. */
const FIXTURES: Record<string, [format: string, passed: number, failed: number, skipped: number]> = {
  "catch2_teamcity.txt": ["teamcity", 1, 3, 2],
  "jest_junit.xml": ["junit", 3, 4, 1],
  "jest_teamcity.txt": ["teamcity", 2, 3, 1],
  "mocha_xunit.xml": ["junit", 1, 1, 1],
  "pytest_junit.xml": ["junit", 7, 4, 2],
  "vitest_teamcity.txt": ["teamcity", 1, 3, 1],
};

test.each(Object.entries(FIXTURES))("%s", (name, [format, passed, failed, skipped]) => {
  const report = readFixture(name);
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
      for (const { status } of read(readFileSync(`${CORPUS}/${path}`)).cases) counts[status]++;
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
