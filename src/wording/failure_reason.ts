/** Explains in one sentence why a failure is in its list. */

import type { Blame, IncidentSign } from "../schema/failures.ts";

export type Judged = {
  /** Null: the failure was not judged. */
  blame: Blame | null;
  incident: IncidentSign | null;
  /** The infrastructure rule that the failure matches. */
  ruleName: string | null;
  /** Number of failures in a row on this branch, this one included; null if the case was not known to be flaky. */
  inARow: number | null;
  /** Share of the case's results that failed without a reason, 0 to 1; null if unknown. */
  flakeRate: number | null;
};

/** Returns the reason without a full stop; null if the failure was not judged. */
export function failureReason(judged: Judged, defaultBranch = "the default branch"): string | null {
  const { blame, incident, ruleName, inARow, flakeRate } = judged;
  switch (blame) {
    case "incident":
      return incident === "rule" ? matchesRule(ruleName) : INCIDENTS[incident ?? "cause"];
    case "quarantined":
      return `Quarantined: its failures do not count${ruleName === null ? "" : `. It also ${lowered(matchesRule(ruleName))}`}`;
    case "still":
      return "It failed in the baseline";
    case "main":
      return `It also fails on ${defaultBranch} or on a long-lived branch, or did until recently`;
    case "flaky":
    case "new":
      if (inARow !== null && flakeRate !== null) return ofFlaky(inARow, flakeRate);
      return blame === "new"
        ? `It did not fail in the baseline or on ${defaultBranch} since then, and is not known to be flaky`
        : `It failed briefly on ${defaultBranch} or on unrelated branches before${shareOf(flakeRate)}`;
    case null:
      return null;
  }
}

const matchesRule = (name: string | null): string => `Matches the infrastructure rule ${JSON.stringify(name ?? "")}`;

const lowered = (sentence: string): string => sentence[0]!.toLowerCase() + sentence.slice(1);

const INCIDENTS: Record<Exclude<IncidentSign, "rule">, string> = {
  cause: "Many tests in several files failed at once with the same message, for a cause outside the code",
  machine: "Recent runs on this machine failed far more often than runs on other machines",
  retries: "Many tests in this run passed only on retry, so its machine is suspect",
};

/** Returns "Fails 6 % of the time without a code change; 2 failures in a row on this branch have odds of 1 in 280". */
function ofFlaky(inARow: number, rate: number): string {
  const odds = inARow < 2 ? "" : `; ${inARow} failures in a row on this branch have odds of ${oddsOf(rate ** inARow)}`;
  return `Fails ${percentOf(rate)} of the time without a code change${odds}`;
}

const shareOf = (rate: number | null) => (rate === null || rate === 0 ? "" : `: ${percentOf(rate)} of its results`);

/** Formats a rate; rates below 10 % have one decimal. */
const percentOf = (rate: number): string => `${Number((rate * 100).toFixed(rate < 0.1 ? 1 : 0))} %`;

/** Formats odds as "1 in 280", rounded to two digits. */
function oddsOf(odds: number): string {
  const of = Math.min(1e9, 1 / odds);
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(of)) - 1);
  return `1 in ${(Math.round(of / unit) * unit).toLocaleString("en-US")}`;
}
