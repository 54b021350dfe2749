/** The attempts of a wrapped command: runs some of its tests again, and reads what all attempts say. */

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DEFAULT_MAX_INFLATED_BYTES, readReport } from "../reports/read.ts";
import { type Report, type ReportedCase, ReportError } from "../reports/report.ts";
import { foldCases } from "../rules/equal_names.ts";
import { identify, type PlacedCase } from "../rules/identity.ts";
import { withRelativePaths } from "../rules/repository_root.ts";
import { LIST_VARIABLE } from "../rules/rerun_cases.ts";
import { toRerunCommand } from "../rules/rerun_command.ts";
import { caseTitle } from "../wording/case_title.ts";
import type { Invocation } from "./invocation.ts";
import { findTool, toScript } from "./test_command.ts";
import type { EndedCommand } from "./wrapped_command.ts";

/** A report file, and the attempt of the tests that has written it, from 1 on. */
export type AttemptReport = { name: string; bytes: Uint8Array<ArrayBuffer>; attempt: number };

/** How a command ended, and the reports that it has written. */
type Ran = { ended: EndedCommand; reports: Omit<AttemptReport, "attempt">[] };

export type TestedCommand = {
  command: readonly string[];
  /** A preset or a template; undefined: the tool of the command decides. */
  rerun: string | undefined;
  format: string | undefined;
  repositoryRoot: string | undefined;
  invocation: Pick<Invocation, "directory" | "environment">;
  signal: AbortSignal;
  note: (line: string) => Promise<void>;
  /** Returns those of the test cases that the default branch has never run, or why that is unknown. */
  selectNew: (cases: readonly PlacedCase[], suite: string | null) => Promise<readonly PlacedCase[] | string>;
  run: (command: string[], environment: Record<string, string>) => Promise<Ran>;
};

/** Quotes the titles of the first ones. */
export function toTitles(cases: readonly PlacedCase[]): string {
  const named = cases.slice(0, 3).map((one) => `"${caseTitle({ suite: one.suite, name: one.name })}"`);
  return cases.length > 3 ? `${named.join(", ")} and ${cases.length - 3} more` : named.join(" and ");
}

/** Returns the test cases after all attempts, as the server will see them, or why they are not known. */
export function readAttempts(
  { format, repositoryRoot }: Pick<TestedCommand, "format" | "repositoryRoot">,
  reports: readonly AttemptReport[],
): { cases: ReportedCase[]; suite: string | null } | string {
  let report: Report;
  try {
    // Reading releases the bytes of what it is given.
    const files = reports.map(({ name, bytes }) => ({ name, bytes }));
    const attempts = reports.map(({ attempt }) => attempt);
    const forced = format === undefined ? {} : { format };
    report = readReport(files, { ...forced, attempts, maxInflatedBytes: DEFAULT_MAX_INFLATED_BYTES, mayBeEmpty: true });
  } catch (error) {
    if (!(error instanceof ReportError)) throw error;
    return error.message;
  }
  if (report.partial) return "the report is truncated";
  if (report.countsOnly) return "the report does not name its test cases";
  const { cases, suite } = withRelativePaths(report, repositoryRoot);
  const { equal } = identify("", "", cases);
  return { cases: foldCases(cases, equal, { exitCode: undefined, areAttempts: false }).cases, suite };
}

/** Returns a function that runs some tests alone, and a note if more will run; or why this is not possible. */
export function prepareSome(
  { command, rerun, invocation, run }: TestedCommand,
  only: readonly PlacedCase[],
): { note: string | null; run: () => Promise<Ran> } | string {
  const { directory } = invocation;
  const tool = rerun ?? findTool(command, directory);
  if (tool === undefined) return "the command runs no tool whose way to select tests is known; --rerun can tell";
  const { shell, script } = toScript(command);
  const again = toRerunCommand({ rerun: tool, command: script, only, directory, exists: existsSync });
  if (again.whole) return again.reason;
  const { command: text, list, note } = again;
  return {
    note,
    async run() {
      if (list === null) return await run([...shell, text], {});
      const folder = mkdtempSync(join(tmpdir(), "assay-retry-"));
      try {
        const path = join(folder, "tests.json");
        writeFileSync(path, list);
        return await run([...shell, text], { [LIST_VARIABLE]: path });
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  };
}
