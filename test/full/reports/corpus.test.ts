/** Real reports of many tools, with the counts that they must be read to: a corpus that may lie beside this repository. */

import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { type CaseStatus, ReportError } from "../../../src/reports/report.ts";
import { FAULTS, read } from "../../reports/reading.ts";

type Entry = { format: string; verdict: string; expected: Record<CaseStatus, number> | null };

const CORPUS = `${import.meta.dir}/../../../../shared/corpus`;
const LIST = `${CORPUS}/expected.json`;
const entries: [string, Entry][] = existsSync(LIST) ? Object.entries(JSON.parse(readFileSync(LIST, "utf8"))) : [];

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
