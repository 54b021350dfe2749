/** Real reports of many producers, with the counts that they must be read to; they are not part of this repository. */

import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { readReport } from "../../src/reports/read.ts";
import { type CaseStatus, ReportError } from "../../src/reports/report.ts";

type Entry = { format: string; verdict: string; expected: Record<CaseStatus, number> | null };

const CORPUS = `${import.meta.dir}/../../../shared/corpus`;
const LIST = `${CORPUS}/expected.json`;
const entries: [string, Entry][] = existsSync(LIST) ? Object.entries(JSON.parse(readFileSync(LIST, "utf8"))) : [];

test.skipIf(entries.length > 0)("there is no corpus beside this repository", () => {});

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
      expect({ refused, ...counts }).toEqual({ refused: false, passed, failed, skipped });
    }
  });
}
