/** Why a failure is in its list, in one sentence. */

import type { Blame } from "../schema/failures.ts";
import type { IncidentSign } from "./incident.ts";

export type Judged = {
  /** Null: it was not judged. */
  blame: Blame | null;
  incident: IncidentSign | null;
  /** Of a case that was known to be flaky: its failures in a row on this branch, this one among them. */
  inARow: number | null;
  /** The share of its results that failed without a reason; null where that is not known. */
  flakeRate: number | null;
};

/** Why it is in its list; null where it was not judged. */
export function failureReason(judged: Judged, defaultBranch = "the default branch"): string | null {
  const { blame, incident, inARow, flakeRate } = judged;
  switch (blame) {
    case "incident":
      return INCIDENTS[incident ?? "cause"];
    case "quarantined":
      return "Quarantined: its failures do not count";
    case "still":
      return "It failed in the baseline";
    case "main":
      return `It fails on ${defaultBranch} as well, or did until a short time ago`;
    case "flaky":
    case "new":
      if (inARow !== null && flakeRate !== null) return ofFlaky(inARow, flakeRate);
      return blame === "new"
        ? `It did not fail in the baseline, nor on ${defaultBranch} since then, and is not known to be flaky`
        : `It has failed for a short time on ${defaultBranch}, or on several branches, with nothing in common${shareOf(flakeRate)}`;
    case null:
      return null;
  }
}

const INCIDENTS: Record<IncidentSign, string> = {
  cause: "Many tests in several files failed at once with these words, for a cause outside of the code",
  machine: "The last runs on this machine failed far more often than those on others",
  retries: "Many tests of this run passed only when they were tried again: its machine was not well",
};

/** "Fails 6 % of the time without a change; 2 times in a row on this branch has odds of 1 in 280". */
function ofFlaky(inARow: number, rate: number): string {
  const odds = inARow < 2 ? "" : `; ${inARow} times in a row on this branch has odds of ${oddsOf(rate ** inARow)}`;
  return `Fails ${percentOf(rate)} of the time without a change${odds}`;
}

const shareOf = (rate: number | null) => (rate === null || rate === 0 ? "" : `: ${percentOf(rate)} of its results`);

/** Small rates have a decimal. */
const percentOf = (rate: number): string => `${Number((rate * 100).toFixed(rate < 0.1 ? 1 : 0))} %`;

/** "1 in 280": two digits of it. */
function oddsOf(odds: number): string {
  const of = Math.min(1e9, 1 / odds);
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(of)) - 1);
  return `1 in ${(Math.round(of / unit) * unit).toLocaleString("en-US")}`;
}
