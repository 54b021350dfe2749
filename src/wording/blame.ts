/** Says the blame of failures in words. */

import { BLAME_LISTS } from "../rules/blame.ts";
import type { Blame, BlameCounts } from "../schema/failures.ts";

/** Says each blame as people read it. */
export const BLAME_PHRASES = {
  new: "new",
  unclear: "unclear",
  main: "failing on the default branch too",
  still: "still failing",
  flaky: "known flaky",
  incident: "part of an incident",
  quarantined: "quarantined",
} as const satisfies Record<Blame, string>;

/** Returns "1 new, 2 known flaky"; "" if there is no blame. */
export const blameCountWords = (counts: { [Name in keyof BlameCounts]?: number | undefined }): string =>
  Object.entries(BLAME_PHRASES)
    .flatMap(([blame, word]) => {
      const count = counts[BLAME_LISTS[blame as Blame]] ?? 0;
      return count === 0 ? [] : [`${count} ${word}`];
    })
    .join(", ");
