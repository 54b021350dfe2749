/** The options of `assay upload` that run failed tests again, and new ones several times. */

import { mistakeInRerun } from "../rules/rerun_command.ts";
import { readCount, readSpan, UsageError } from "./usage.ts";

export const RETRY_NAMES = ["retry", "retry-max", "retry-budget", "rerun", "new-tests", "new-tests-budget"] as const;

export const RETRY_HELP = `  --retry N               run the tests that failed up to N times again (1 to 5); a test that then passes is flaky
  --retry-max N           if more tests failed, none runs again (default: 20)
  --retry-budget TIME     no retry begins later than this after the first run, such as 90s or 5m (default: 5m)
  --new-tests N           run the tests that the default branch has never run up to N times more (1 to 50)
  --new-tests-budget TIME no further run begins later than this after the first one (default: 3m)
  --strict-new            a new test that fails in one of these runs fails the run and the job
  --rerun PRESET|COMMAND  how some tests run again, as "rerun" of assay.yaml (default: the tool that the command runs)`;

export type RetryOptions = { times: number; max: number; budgetMs: number };
export type NewTestOptions = { runs: number; budgetMs: number; isStrict: boolean };

export type AttemptOptions = {
  /** A preset or a template; undefined: the tool of the command decides. */
  rerun: string | undefined;
  /** Undefined: no failed test runs again. */
  retry: RetryOptions | undefined;
  /** Undefined: no new test runs several times. */
  newTests: NewTestOptions | undefined;
};

/** Also the maximum number of test cases that the server is asked about at once. */
const MAX_RETRIED = 100;
const DEFAULT_MAX = 20;
const DEFAULT_BUDGET_MS = 5 * 60_000;
const MAX_NEW_RUNS = 50;
const DEFAULT_NEW_BUDGET_MS = 3 * 60_000;

type Values = Partial<Record<(typeof RETRY_NAMES)[number], string>>;

/** Throws UsageError. */
export function readAttemptOptions(values: Values, isStrict: boolean, hasCommand: boolean): AttemptOptions {
  const times = readCount("retry", values.retry, [0, 5]) ?? 0;
  const max = readCount("retry-max", values["retry-max"], [1, MAX_RETRIED]) ?? DEFAULT_MAX;
  const budgetMs = readSpan("retry-budget", values["retry-budget"]) ?? DEFAULT_BUDGET_MS;
  const rerun = values.rerun?.trim() || undefined;
  const mistake = rerun === undefined ? null : mistakeInRerun(rerun);
  if (mistake !== null) throw new UsageError(`--rerun: ${mistake}, got "${rerun}"`);
  const runs = readCount("new-tests", values["new-tests"], [0, MAX_NEW_RUNS]) ?? 0;
  const newBudgetMs = readSpan("new-tests-budget", values["new-tests-budget"]) ?? DEFAULT_NEW_BUDGET_MS;
  if (times > 0 && !hasCommand) throw new UsageError("--retry needs the command of the tests after --");
  if (runs > 0 && !hasCommand) throw new UsageError("--new-tests needs the command of the tests after --");
  if (isStrict && runs === 0) throw new UsageError("--strict-new needs --new-tests");
  return {
    rerun,
    retry: times === 0 ? undefined : { times, max, budgetMs },
    newTests: runs === 0 ? undefined : { runs, budgetMs: newBudgetMs, isStrict },
  };
}
