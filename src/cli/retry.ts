/** Runs the tests of a wrapped command that failed again, and decides the exit code of all attempts together. */

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readReport } from "../reports/read.ts";
import { type Report, type ReportedCase, ReportError } from "../reports/report.ts";
import { foldCases } from "../rules/equal_names.ts";
import { identify, type PlacedCase } from "../rules/identity.ts";
import { withRelativePaths } from "../rules/repository_root.ts";
import { LIST_VARIABLE } from "../rules/rerun_cases.ts";
import { type RerunCommand, toRerunCommand } from "../rules/rerun_command.ts";
import { caseTitle } from "../wording/case_title.ts";
import type { Invocation } from "./invocation.ts";
import type { RetryOptions } from "./retry_options.ts";
import { findTool, toScript } from "./test_command.ts";
import type { EndedCommand } from "./wrapped_command.ts";

/** A report file, and the attempt of the tests that has written it, from 1 on. */
export type AttemptReport = { name: string; bytes: Uint8Array<ArrayBuffer>; attempt: number };

type Retry = {
  options: RetryOptions;
  command: readonly string[];
  /** The first attempt: how it ended, and its reports. */
  ended: EndedCommand;
  reports: readonly AttemptReport[];
  format: string | undefined;
  repositoryRoot: string | undefined;
  invocation: Pick<Invocation, "directory" | "environment">;
  signal: AbortSignal;
  note: (line: string) => Promise<void>;
  /** Returns those of the test cases that the default branch has never run, or why that is unknown. */
  selectNew: (cases: readonly PlacedCase[], suite: string | null) => Promise<readonly PlacedCase[] | string>;
  /** Runs a command, and returns how it ended and the reports that it has written. */
  run: (command: string[], environment: Record<string, string>) => Promise<{ ended: EndedCommand; reports: Reports }>;
};
type Reports = Omit<AttemptReport, "attempt">[];

/** The default limit of a server. */
const MAX_INFLATED_BYTES = 128 * 2 ** 20;

/** Returns the reports of all attempts, and how they ended together: with the last exit code only if every failure is over. */
export async function retryFailed(retry: Retry): Promise<{ ended: EndedCommand; reports: AttemptReport[] }> {
  const { options, note, signal } = retry;
  const reports = [...retry.reports];
  const first = { ended: retry.ended, reports };
  const begun = performance.now();
  let last = retry.ended;
  let failed = await failuresOf(retry, reports);
  if (!failed || failed.cases.length === 0) return first;
  const rerun = options.rerun ?? findTool(retry.command, retry.invocation.directory);
  if (rerun === undefined) {
    await note("Not run again: the command runs no tool whose way to select tests is known; --rerun can tell");
    return first;
  }
  const candidates = await selectCandidates(retry, failed);
  if (!candidates || candidates.size === 0) return first;
  for (let times = 1; times <= options.times && !signal.aborted; times++) {
    const again = failed.cases.filter((one) => candidates.has(keyOf(one)));
    if (again.length === 0) break;
    if (performance.now() - begun > options.budgetMs) {
      await note("Not run again: the time of --retry-budget is over");
      break;
    }
    const { directory } = retry.invocation;
    const { script } = toScript(retry.command);
    const command = toRerunCommand({ rerun, command: script, only: again, directory, exists: existsSync });
    if (command.whole) {
      await note(`Not run again: ${command.reason}`);
      break;
    }
    const what = again.length === 1 ? "The test that failed runs" : `The ${again.length} tests that failed run`;
    await note(`Retry ${times} of ${options.times}: ${what} again${command.note === null ? "" : `. ${command.note}`}`);
    const next = await runAgain(retry, command);
    last = next.ended;
    if (next.reports.length === 0) {
      await note(`Retry ${times} has written no report: it changes nothing`);
      break;
    }
    reports.push(...next.reports.map((report) => ({ ...report, attempt: times + 1 })));
    failed = await failuresOf(retry, reports);
    if (!failed) return first;
    const left = failed.cases.filter((one) => candidates.has(keyOf(one))).length;
    await note(`Retry ${times}: ${again.length - left} of ${again.length} passed`);
  }
  const isOver = failed.cases.length === 0 && last.isOwnCode && last.problem === undefined;
  if (failed.cases.length === 0 && last.exitCode !== 0)
    await note(`All tests have passed in the end, but the last command exited with ${last.exitCode}`);
  return { ended: isOver ? last : retry.ended, reports };
}

type Failures = { cases: ReportedCase[]; suite: string | null };

const keyOf = ({ suite, name, file }: PlacedCase): string => `${suite}\0${name}\0${file ?? ""}`;

/** Undefined if the reports do not say all that failed. */
async function failuresOf(
  { format, repositoryRoot, note }: Retry,
  reports: readonly AttemptReport[],
): Promise<Failures | undefined> {
  let report: Report;
  try {
    // Reading releases the bytes of what it is given.
    const files = reports.map(({ name, bytes }) => ({ name, bytes }));
    const attempts = reports.map(({ attempt }) => attempt);
    const forced = format === undefined ? {} : { format };
    report = readReport(files, { ...forced, attempts, maxInflatedBytes: MAX_INFLATED_BYTES, mayBeEmpty: true });
  } catch (error) {
    if (!(error instanceof ReportError)) throw error;
    await note(`Not run again: ${error.message}`);
    return undefined;
  }
  if (report.partial || report.countsOnly) {
    await note(`Not run again: the report ${report.partial ? "is truncated" : "does not name its test cases"}`);
    return undefined;
  }
  const { cases, suite } = withRelativePaths(report, repositoryRoot);
  const { equal } = identify("", "", cases);
  const folded = foldCases(cases, equal, { exitCode: undefined, areAttempts: false });
  return { cases: folded.cases.filter(({ status }) => status === "failed"), suite };
}

/** Returns the keys of the failed test cases that may run again; undefined: none. */
async function selectCandidates(
  { options, note, selectNew }: Retry,
  { cases, suite }: Failures,
): Promise<ReadonlySet<string> | undefined> {
  const own = cases.filter(({ isThroughChild }) => !isThroughChild);
  if (own.length === 0) return undefined;
  if (own.length > options.max) {
    await note(`Not run again: ${own.length} tests failed, more than ${options.max} (--retry-max)`);
    return undefined;
  }
  const fresh = await selectNew(own, suite);
  if (typeof fresh === "string") {
    await note(`Not run again, because it is unknown which tests are new: ${fresh}`);
    return undefined;
  }
  const excluded = new Set(fresh.map(keyOf));
  if (fresh.length > 0)
    await note(`Not run again, because the default branch has never run ${toTitles(fresh)}: a new test must be stable`);
  return new Set(own.map(keyOf).filter((key) => !excluded.has(key)));
}

function toTitles(cases: readonly PlacedCase[]): string {
  const named = cases.slice(0, 3).map((one) => `"${caseTitle(one)}"`);
  return cases.length > 3 ? `${named.join(", ")} and ${cases.length - 3} more` : named.join(" and ");
}

async function runAgain({ run, command: words }: Retry, { command, list }: Extract<RerunCommand, { whole: false }>) {
  const again = [...toScript(words).shell, command];
  if (list === null) return await run(again, {});
  const folder = mkdtempSync(join(tmpdir(), "assay-retry-"));
  try {
    const path = join(folder, "tests.json");
    writeFileSync(path, list);
    return await run(again, { [LIST_VARIABLE]: path });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
