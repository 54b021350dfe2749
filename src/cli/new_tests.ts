/** Runs the tests that a change adds several times, before they are merged. */

import { caseKey, type ReportedCase } from "../reports/report.ts";
import type { PlacedCase } from "../rules/identity.ts";
import { caseTitle } from "../wording/case_title.ts";
import { type AttemptReport, type TestedCommand, prepareSome, readAttempts } from "./attempts.ts";
import type { NewTestOptions } from "./retry_options.ts";

/** `unstable`: what to say of the new tests that failed; undefined: none did, or none ran. */
type NewTestRuns = { reports: AttemptReport[]; unstable: string | undefined };

/** Maximum number of test cases of which the server is asked whether they are new, and of new ones that run. */
const MAX_ASKED = 10_000;
const MAX_RUN = 100;
/** The server is asked about so many at once. */
const BATCH = 1_000;

/**
 * Returns the reports of all runs. The one that the tests have passed comes last, so that a test that failed in another one is flaky, and
 * no failure of its own.
 */
export async function runNewTests(
  attempts: TestedCommand,
  options: NewTestOptions,
  reports: readonly AttemptReport[],
): Promise<NewTestRuns> {
  const { note, signal } = attempts;
  const nothing = { reports: [...reports], unstable: undefined };
  const fresh = await findNewTests(attempts, reports);
  if (typeof fresh === "string") {
    await note(`New tests do not run several times: ${fresh}`);
    return nothing;
  }
  if (fresh.length === 0) return nothing;
  const only = fresh.slice(0, MAX_RUN);
  if (fresh.length > MAX_RUN) await note(`${fresh.length} tests are new: the first ${MAX_RUN} run several times`);
  const some = prepareSome(attempts, only);
  if (typeof some === "string") {
    await note(`New tests do not run several times: ${some}`);
    return nothing;
  }
  await note(`${countOf(only.length)} up to ${options.runs} times${some.note === null ? "" : `. ${some.note}`}`);
  const begun = performance.now();
  const failures = new Map<string, number>();
  const further: AttemptReport[] = [];
  let runs = 0;
  while (runs < options.runs && !signal.aborted && performance.now() - begun <= options.budgetMs) {
    const next = await some.run();
    const own = next.reports.map((report) => ({ ...report, attempt: runs + 1 }));
    const read = own.length === 0 ? "a run has written no report" : readAttempts(attempts, own);
    if (typeof read === "string") {
      await note(`The new tests do not run any more: ${read}`);
      break;
    }
    runs++;
    further.push(...own);
    const failed = new Set(read.cases.filter(({ status }) => status === "failed").map(caseKey));
    for (const one of only)
      if (failed.has(caseKey(one))) failures.set(caseKey(one), (failures.get(caseKey(one)) ?? 0) + 1);
  }
  const all = [...further, ...reports.map((report) => ({ ...report, attempt: report.attempt + runs }))];
  const unstable = only.flatMap((one) => toLine(one, failures.get(caseKey(one)) ?? 0, runs));
  for (const line of unstable) await note(line);
  if (unstable.length === 0 && runs > 0)
    await note(`${only.length === 1 ? "The new test has" : "All new tests have"} passed ${runs} times`);
  return { reports: all, unstable: unstable.length === 0 ? undefined : unstable.join("; ") };
}

const countOf = (count: number): string =>
  count === 1 ? "1 test is new, and runs" : `${count} tests are new, and run`;

const toLine = ({ suite, name }: PlacedCase, failed: number, runs: number): string[] =>
  failed === 0
    ? []
    : [`The new test "${caseTitle({ suite, name })}" is unstable: it failed in ${failed} of ${runs} runs`];

/** Returns the tests that passed and that the default branch has never run, or why they are not known. */
async function findNewTests(
  attempts: TestedCommand,
  reports: readonly AttemptReport[],
): Promise<ReportedCase[] | string> {
  const read = readAttempts(attempts, reports);
  if (typeof read === "string") return read;
  const passed = read.cases.filter(({ status }) => status === "passed");
  if (passed.length > MAX_ASKED) return `they are not looked for among more than ${MAX_ASKED} tests`;
  const fresh = new Set<string>();
  for (let start = 0; start < passed.length; start += BATCH) {
    const found = await attempts.selectNew(passed.slice(start, start + BATCH), read.suite);
    if (typeof found === "string") return found;
    for (const one of found) fresh.add(caseKey(one));
  }
  return passed.filter((one) => fresh.has(caseKey(one)));
}
