/** Reads a folder of reports with an `expected.json` and prints, per format, how many are read as it says. */

import { join } from "node:path";
import { ReportError } from "../../../src/reports/report.ts";
import { FAULTS, read } from "../../reports/reading.ts";

type Entry = { format: string; verdict: string; expected: { passed: number; failed: number; skipped: number } | null };

const folder = process.argv[2] ?? join(import.meta.dir, "../../../../shared/corpus");
const entries: [string, Entry][] = Object.entries(await Bun.file(join(folder, "expected.json")).json());
const scores = new Map<string, { right: number; all: number }>();
const wrong: string[] = [];

for (const [path, { format, verdict, expected }] of entries) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  let refusal: string | undefined;
  try {
    for (const { status } of read(await Bun.file(join(folder, path)).bytes()).cases) counts[status]++;
  } catch (error) {
    if (!(error instanceof ReportError)) throw error;
    refusal = error.message;
  }
  const isAsExpected =
    refusal === undefined &&
    expected !== null &&
    counts.passed === expected.passed &&
    counts.failed === expected.failed + (FAULTS[path] ?? 0) &&
    counts.skipped === expected.skipped;
  // "optional" and "partial-or-reject" may be refused.
  const isRight = verdict.startsWith("accept")
    ? isAsExpected
    : refusal !== undefined || (verdict !== "reject" && isAsExpected);
  const score = scores.get(format) ?? { right: 0, all: 0 };
  scores.set(format, { right: score.right + Number(isRight), all: score.all + 1 });
  if (!isRight)
    wrong.push(`${path}: expected ${verdict} ${JSON.stringify(expected)}, got ${refusal ?? JSON.stringify(counts)}`);
}

for (const [format, { right, all }] of [...scores].sort()) console.log(`${format.padEnd(20)} ${right} of ${all}`);
for (const line of wrong) console.log(line);
process.exit(wrong.length > 0 ? 1 : 0);
