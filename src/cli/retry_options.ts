/** The options of `assay upload` that run failed tests again. */

import { mistakeInRerun } from "../rules/rerun_command.ts";
import { readCount, readSpan, UsageError } from "./usage.ts";

export const RETRY_NAMES = ["retry", "retry-max", "retry-budget", "rerun"] as const;

export const RETRY_HELP = `  --retry N               run the tests that failed up to N times again (1 to 5); a test that then passes is flaky
  --retry-max N           if more tests failed, none runs again (default: 20)
  --retry-budget TIME     no retry begins later than this after the first run, such as 90s or 5m (default: 5m)
  --rerun PRESET|COMMAND  how some tests run again, as "rerun" of assay.yaml (default: the tool that the command runs)`;

export type RetryOptions = {
  times: number;
  max: number;
  budgetMs: number;
  /** A preset or a template; undefined: the tool of the command decides. */
  rerun: string | undefined;
};

/** Also the maximum number of test cases that the server is asked about at once. */
const MAX_RETRIED = 100;
const DEFAULT_MAX = 20;
const DEFAULT_BUDGET_MS = 5 * 60_000;

type Values = Partial<Record<(typeof RETRY_NAMES)[number], string>>;

/** Undefined: nothing runs again. Throws UsageError. */
export function readRetryOptions(values: Values, hasCommand: boolean): RetryOptions | undefined {
  const times = readCount("retry", values.retry, [0, 5]) ?? 0;
  const max = readCount("retry-max", values["retry-max"], [1, MAX_RETRIED]) ?? DEFAULT_MAX;
  const budgetMs = readSpan("retry-budget", values["retry-budget"]) ?? DEFAULT_BUDGET_MS;
  const rerun = values.rerun?.trim() || undefined;
  const mistake = rerun === undefined ? null : mistakeInRerun(rerun);
  if (mistake !== null) throw new UsageError(`--rerun: ${mistake}, got "${rerun}"`);
  if (times > 0 && !hasCommand) throw new UsageError("--retry needs the command of the tests after --");
  return times === 0 ? undefined : { times, max, budgetMs, rerun };
}
