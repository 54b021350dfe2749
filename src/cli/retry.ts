/** Runs the tests of a wrapped command that failed again, and decides the exit code of all attempts together. */

import { caseKey, type ReportedCase } from "../reports/report.ts";
import { type AttemptReport, type TestedCommand, prepareSome, readAttempts, toTitles } from "./attempts.ts";
import type { RetryOptions } from "./retry_options.ts";
import { findTool } from "./test_command.ts";
import type { EndedCommand } from "./wrapped_command.ts";

/** The command, how it ended, and its reports. */
type Tested = { ended: EndedCommand; reports: readonly AttemptReport[] };

/** Returns the reports of all attempts, and how they ended together: with the last exit code only if every failure is over. */
export async function retryFailed(
  attempts: TestedCommand,
  options: RetryOptions,
  given: Tested,
): Promise<{ ended: EndedCommand; reports: AttemptReport[] }> {
  const { note, signal } = attempts;
  const reports = [...given.reports];
  const first = { ended: given.ended, reports };
  const begun = performance.now();
  let last = given.ended;
  let failed = await failuresOf(attempts, reports);
  if (!failed || failed.cases.length === 0) return first;
  const candidates = await selectCandidates(attempts, options, failed);
  if (!candidates || candidates.size === 0) return first;
  for (let times = 1; times <= options.times && !signal.aborted; times++) {
    const again = failed.cases.filter((one) => candidates.has(caseKey(one)));
    if (again.length === 0) break;
    const some = performance.now() - begun > options.budgetMs ? LATE : prepareSome(attempts, again);
    if (typeof some === "string") {
      await note(`Not run again: ${some}`);
      break;
    }
    const what = again.length === 1 ? "The test that failed runs" : `The ${again.length} tests that failed run`;
    await note(`Retry ${times} of ${options.times}: ${what} again${some.note === null ? "" : `. ${some.note}`}`);
    const next = await some.run();
    last = next.ended;
    if (next.reports.length === 0) {
      await note(`Retry ${times} has written no report: it changes nothing`);
      break;
    }
    reports.push(...next.reports.map((report) => ({ ...report, attempt: times + 1 })));
    failed = await failuresOf(attempts, reports);
    if (!failed) return first;
    const left = failed.cases.filter((one) => candidates.has(caseKey(one))).length;
    await note(`Retry ${times}: ${again.length - left} of ${again.length} passed`);
  }
  const isOver = failed.cases.length === 0 && last.isOwnCode && last.problem === undefined;
  if (failed.cases.length === 0 && last.exitCode !== 0)
    await note(`All tests have passed in the end, but the last command exited with ${last.exitCode}`);
  return { ended: isOver ? last : given.ended, reports };
}

const LATE = "the time of --retry-budget is over";

type Failures = { cases: ReportedCase[]; suite: string | null };

/** Undefined if the reports do not say all that failed. */
async function failuresOf(attempts: TestedCommand, reports: readonly AttemptReport[]): Promise<Failures | undefined> {
  const read = readAttempts(attempts, reports);
  if (typeof read !== "string") return { ...read, cases: read.cases.filter(({ status }) => status === "failed") };
  await attempts.note(`Not run again: ${read}`);
  return undefined;
}

/** Returns the keys of the failed test cases that may run again; undefined: none. */
async function selectCandidates(
  { command, rerun, invocation, note, selectNew }: TestedCommand,
  { max }: RetryOptions,
  { cases, suite }: Failures,
): Promise<ReadonlySet<string> | undefined> {
  const own = cases.filter(({ isThroughChild }) => !isThroughChild);
  if (own.length === 0) return undefined;
  if (own.length > max) {
    await note(`Not run again: ${own.length} tests failed, more than ${max} (--retry-max)`);
    return undefined;
  }
  if (rerun === undefined && findTool(command, invocation.directory) === undefined) {
    await note("Not run again: the command runs no tool whose way to select tests is known; --rerun can tell");
    return undefined;
  }
  const fresh = await selectNew(own, suite);
  if (typeof fresh === "string") {
    await note(`Not run again, because it is unknown which tests are new: ${fresh}`);
    return undefined;
  }
  const excluded = new Set(fresh.map(caseKey));
  if (fresh.length > 0)
    await note(`Not run again, because the default branch has never run ${toTitles(fresh)}: a new test must be stable`);
  return new Set(own.map(caseKey).filter((key) => !excluded.has(key)));
}
