/** Explains in one sentence why a failure is in its list: the strongest explanation with its counts, and the share of the change. */

import { explainedBlame } from "../rules/blame.ts";
import type { ExplanationKind } from "../rules/odds_facts.ts";
import type { Blame, OddsEvidence } from "../schema/failures.ts";
import { counted } from "./numbers.ts";

type Judged = {
  /** Null: the failure was not judged. */
  blame: Blame | null;
  /** The infrastructure rule that the failure matches. */
  ruleName: string | null;
  /** The share of the change among the explanations, 0 to 1. */
  change: number | null;
  /** The share of each explanation; absent: the blame says which one is the strongest. */
  shares?: Readonly<Record<ExplanationKind, number>> | null;
  evidence: OddsEvidence | null;
};

/** Returns the reason without a full stop; null if the failure was not judged. */
export function failureReason(judged: Judged, defaultBranch = "the default branch"): string | null {
  const { blame, ruleName, change, shares, evidence } = judged;
  if (blame === null || change === null || evidence === null) return null;
  if (blame === "quarantined")
    return `Quarantined: its failures do not count${ruleName === null ? "" : `. It also ${lowered(matchesRule(ruleName))}`}`;
  if (ruleName !== null) return matchesRule(ruleName);
  if (blame !== "unclear") return `${explanationOf(blame, evidence, change, defaultBranch)}: ${oddsOf(change)}`;
  // The explanation as if the odds were clear.
  const other = shares && shares.inherited > shares.flaky ? "inherited" : "flaky";
  const explained = change >= 0.5 ? "new" : explainedBlame(other, { ...evidence, onlyIn: null }, change);
  return `${explanationOf(explained, evidence, change, defaultBranch)}: ${oddsOf(change)}; a rerun tells`;
}

function explanationOf(blame: Blame, evidence: OddsEvidence, change: number, defaultBranch: string): string {
  const { failed, results, inARow, passedAtCommit, base, siblings, elsewhere, onlyIn, isNewMessage, isSeenLater } =
    evidence;
  const streak = inARow > 1 ? `, failed ${inARow} times in a row on this branch` : "";
  const where =
    onlyIn === "pull requests"
      ? ", all in pull requests or branches"
      : onlyIn === "fixed rows"
        ? ", each time until it was fixed"
        : "";
  const inResults = `It failed in ${failed} of ${counted(results, "result")} of other builds${where}${isNewMessage ? ", never with this message" : ""}`;
  const onLine = `It passed in the baseline, and fails on ${defaultBranch} since then, with the same message${streak}`;
  const outside = `${change > 0.2 ? "probably " : ""}for a cause outside the code`;
  switch (blame) {
    case "still":
      return base === "other cause"
        ? "It failed in the baseline, with another message"
        : "It failed in the baseline, with the same message";
    case "main":
      return siblings > 0
        ? `${counted(siblings, "other branch", "other branches")} ${siblings === 1 ? "fails" : "fail"} with the same message`
        : `It also fails on ${defaultBranch} since then, with the same message`;
    case "incident":
      return elsewhere > 0
        ? `${isSeenLater ? "Decided again: " : ""}${counted(elsewhere, "failure")} in other builds or tasks ${elsewhere === 1 ? "has" : "have"} the same message, ${outside}`
        : `Many tests failed together in this run, ${outside}`;
    case "flaky":
      if (passedAtCommit) return "It passed in another build of the same commit";
      if (onlyIn === "line") return onLine;
      return `${failed > 0 ? inResults : "Tests of this project fail like this without a change"}${streak}`;
    default:
      if (onlyIn === "line") return onLine;
      if (results === 0) return `No other build has results of this test${streak}`;
      if (failed > 0) return inResults + streak;
      return `It passed in ${results === 1 ? "the only result" : `all ${results} results`} of other builds${streak}`;
  }
}

const matchesRule = (name: string): string => `Matches the infrastructure rule ${JSON.stringify(name)}`;

const lowered = (sentence: string): string => sentence[0]!.toLowerCase() + sentence.slice(1);

/** Never certain. */
function oddsOf(change: number): string {
  const percent = Math.min(99, Math.max(1, Math.round(100 * (change >= 0.5 ? change : 1 - change))));
  return `${percent} % ${change >= 0.5 ? "this change" : "not this change"}`;
}
