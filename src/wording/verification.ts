/** Puts the result of a verification into words. */

import { CONFIDENCE, failureInterval } from "../rules/failure_rate.ts";
import type { VerificationStatus } from "../schema/verifications.ts";
import { counted, toCount } from "./numbers.ts";

type Found = { status: VerificationStatus; passed: number; failed: number; noBuild: number; noResult: number };

const CERTAINTY = `with ${Math.round(CONFIDENCE * 100)} % certainty`;

/** Returns "1.5 %", with two digits: rounded up for an upper bound and down for a lower one, so that it stays true. */
function toPercent(rate: number, round: (value: number) => number): string {
  const percent = rate * 100;
  if (percent <= 0 || percent >= 100) return `${percent} %`;
  const unit = 10 ** (Math.floor(Math.log10(Math.min(percent, 100 - percent))) - 1);
  // A bound such as 0.3 is not 0.30000000000000004.
  const rounded = round(Number((percent / unit).toPrecision(12))) * unit;
  return `${Number(rounded.toPrecision(12))} %`;
}

/** Returns "0 of 200 runs failed: with 95 % certainty it fails in less than 1.5 % of its runs". */
export function failureRateWords(failed: number, runs: number): string {
  const { lower, upper } = failureInterval(failed, runs);
  const low = toPercent(lower, Math.floor);
  const high = toPercent(upper, Math.ceil);
  const range = failed === 0 ? `less than ${high}` : failed === runs ? `more than ${low}` : `${low} to ${high}`;
  return `${toCount(failed)} of ${counted(runs, "run")} failed: ${CERTAINTY} it fails in ${range} of its runs`;
}

type NewTest = Pick<Found, "status" | "passed" | "failed"> & { runs: number };

/** Returns "New test, failed 2 of 10 more runs: flaky from the start". */
export function newTestWords({ status, passed, failed, runs }: NewTest): string {
  const done = passed + failed;
  if (status === "passed") return `New test, passed ${counted(passed, "more run")}`;
  if (status === "flaky") return `New test, failed ${failed} of ${counted(done, "more run")}: flaky from the start`;
  if (status === "failed") return `New test, failed ${failed} of ${counted(done, "more run")}, in which it ran alone`;
  if (status === "running")
    return `New test, ${done} of ${counted(runs, "more run")} done${failed > 0 ? `, ${failed} failed` : ""}`;
  return `New test, ${status === "cancelled" ? "more runs were cancelled" : "more runs had no result"}`;
}

export function verificationWords({ status, passed, failed, noBuild, noResult }: Found): string {
  const runs = passed + failed;
  const rate = runs === 0 ? null : failureRateWords(failed, runs);
  if (status === "inconclusive" && runs === 0 && noBuild > 0) return "The commit cannot be checked out or built";
  if (status === "inconclusive" || rate === null)
    return [noResult === 0 ? "No results yet" : `${counted(noResult, "run")} had no result`, rate]
      .filter(Boolean)
      .join("; ");
  return rate;
}

/** Returns why a verification ended before all its runs: "Stopped after 5 of 200 runs: 3 failed and 2 passed, so it is flaky". */
export function stopWords({
  status,
  runs,
  passed,
  failed,
  noBuild,
  noResult,
}: Found & { runs: number }): string | null {
  const done = passed + failed;
  if (status === "running" || status === "passed" || (status !== "cancelled" && done >= runs)) return null;
  const after = `after ${toCount(done)} of ${counted(runs, "run")}`;
  if (status === "cancelled") return `Cancelled ${after}`;
  if (status === "flaky") return `Stopped ${after}: ${failed} failed and ${toCount(passed)} passed, so it is flaky`;
  if (status === "failed") return `Stopped ${after}: all failed, so it is broken and not flaky`;
  const lacking =
    done === 0 && noBuild > 0
      ? `the commit could not be checked out or built ${counted(noBuild, "time")}`
      : `${counted(noResult, "other run")} had no result`;
  return `Stopped ${after}: ${lacking}`;
}
