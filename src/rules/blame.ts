/** What answers call the blame of a failure. */

import type { CaseRef } from "../schema/case_ref.ts";
import type { Blame, BlamedFailures, BlameCounts } from "../schema/failures.ts";

/** The blame as it is stored, and the list that it is told in. */
const LIST_OF = {
  new: "newFailures",
  flaky: "flakyFailures",
  main: "alsoFailingOnMain",
  still: "stillFailing",
  quarantined: "quarantinedFailures",
  incident: "incidentFailures",
} as const satisfies Record<Blame, keyof BlamedFailures>;

/** In which order failures are listed: those that a build has to answer for come first. */
export const BLAME_ORDER = [
  "new",
  "main",
  "still",
  "flaky",
  "incident",
  "quarantined",
] as const satisfies readonly Blame[];

export const isBlame = (kind: string): kind is Blame => kind in LIST_OF;

/** As an answer about one failure says it. */
export const WORD_OF = {
  new: "new",
  flaky: "flaky",
  main: "also_failing_on_main",
  still: "still_failing",
  quarantined: "quarantined",
  incident: "incident",
} as const satisfies Record<Blame, string>;

/** As people read it. */
export const SHORT = {
  new: "new",
  main: "failing on the default branch too",
  still: "still failing",
  flaky: "known flaky",
  incident: "of an incident",
  quarantined: "quarantined",
} as const satisfies Record<Blame, string>;

/** "1 new, 2 known flaky"; empty where nobody is blamed. */
export const toBlameWords = (counts: Partial<BlameCounts>): string =>
  Object.entries(SHORT)
    .flatMap(([blame, word]) => {
      const count = counts[LIST_OF[blame as Blame]] ?? 0;
      return count === 0 ? [] : [`${count} ${word}`];
    })
    .join(", ");

export const toCounts = (counts: Partial<Record<Blame, number>>): BlameCounts => ({
  newFailures: counts.new ?? 0,
  flakyFailures: counts.flaky ?? 0,
  alsoFailingOnMain: counts.main ?? 0,
  stillFailing: counts.still ?? 0,
  quarantinedFailures: counts.quarantined ?? 0,
  incidentFailures: counts.incident ?? 0,
});

export type Blamed = CaseRef & { blame: Blame; flakeRate: number | null; lastFlakyAt: string | null };

/** Each failure in its list. */
export function toLists(failures: readonly Blamed[]): BlamedFailures {
  const lists: BlamedFailures = {
    ...{
      newFailures: [],
      flakyFailures: [],
      alsoFailingOnMain: [],
      stillFailing: [],
      quarantinedFailures: [],
      incidentFailures: [],
    },
  };
  for (const { blame, flakeRate, lastFlakyAt, ...ref } of failures)
    if (blame === "flaky") lists.flakyFailures.push({ ...ref, flakeRate, lastFlakyAt });
    else lists[LIST_OF[blame]].push(ref);
  return lists;
}
