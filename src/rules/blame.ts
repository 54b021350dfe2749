/** The words for the blame of a failure in answers. */

import type { CaseRef } from "../schema/case_ref.ts";
import type { Blame, BlamedFailures, BlameCounts, OddsEvidence } from "../schema/failures.ts";
import type { ExplanationKind, FailedTestFacts } from "./odds_facts.ts";

/** The list of an answer that has the failures of each blame. */
export const BLAME_LISTS = {
  new: "newFailures",
  unclear: "unclearFailures",
  flaky: "flakyFailures",
  main: "alsoFailingOnMain",
  still: "stillFailing",
  quarantined: "quarantinedFailures",
  incident: "incidentFailures",
} as const satisfies Record<Blame, keyof BlamedFailures>;

/** The order in which failures are listed: those that the build is responsible for come first. */
export const BLAME_ORDER = [
  "new",
  "unclear",
  "main",
  "still",
  "flaky",
  "incident",
  "quarantined",
] as const satisfies readonly Blame[];

export const isBlame = (kind: string): kind is Blame => kind in BLAME_LISTS;

/** The blame in an answer about one failure. */
export const WORD_OF = {
  new: "new",
  unclear: "unclear",
  flaky: "flaky",
  main: "also_failing_on_main",
  still: "still_failing",
  quarantined: "quarantined",
  incident: "incident",
} as const satisfies Record<Blame, string>;

export const toCounts = (counts: Partial<Record<Blame, number>>): BlameCounts => ({
  newFailures: counts.new ?? 0,
  unclearFailures: counts.unclear ?? 0,
  flakyFailures: counts.flaky ?? 0,
  alsoFailingOnMain: counts.main ?? 0,
  stillFailing: counts.still ?? 0,
  quarantinedFailures: counts.quarantined ?? 0,
  incidentFailures: counts.incident ?? 0,
});

export type Blamed = CaseRef & {
  blame: Blame;
  flakeRate: number | null;
  lastFlakyAt: string | null;
  /** Absent: no tags explain it. */
  onlyWith?: string[] | undefined;
};

/** Each failure in its list. */
export function toLists(failures: readonly Blamed[]): BlamedFailures {
  const lists: BlamedFailures = {
    ...{
      newFailures: [],
      unclearFailures: [],
      flakyFailures: [],
      alsoFailingOnMain: [],
      stillFailing: [],
      quarantinedFailures: [],
      incidentFailures: [],
    },
  };
  for (const { blame, flakeRate, lastFlakyAt, ...ref } of failures)
    if (blame === "flaky") lists.flakyFailures.push({ ...ref, flakeRate, lastFlakyAt });
    else lists[BLAME_LISTS[blame]].push(ref);
  return lists;
}

/** The minimum share at which the change is blamed. From one half on it is the likeliest explanation, but not a clear one. */
const BLAME_SHARE = 0.7;

/** Whether a failure explained by the change is clearly caused by it. */
export const isClear = (change: number): boolean => change >= BLAME_SHARE;

/** Returns the blame of a failure by its best explanation. */
export function explainedBlame(explained: ExplanationKind, { base, onlyIn }: OddsEvidence, change: number): Blame {
  if (explained === "inherited") return base === "this cause" || base === "other cause" ? "still" : "main";
  if (explained === "flaky") return onlyIn === null ? "flaky" : "unclear";
  if (explained === "outside") return "incident";
  return isClear(change) ? "new" : "unclear";
}

/**
 * Says where all other failures with the same message are, if each of them may be caused by a change: changes break some tests again and
 * again with the same message, such as a test that a generated file is up to date. Null: there are none, or the test is flaky.
 */
export function onlyInChanges(facts: FailedTestFacts): OddsEvidence["onlyIn"] {
  const { failures, episodes, pullRequests, passedAtCommit, isOpen, isOnLine } = facts;
  if (passedAtCommit || failures > 0) return null;
  if (isOpen && !isOnLine) return "line";
  return pullRequests.same > 0 ? "pull requests" : episodes.length > 0 ? "fixed rows" : null;
}
