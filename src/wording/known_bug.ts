/** Names the bug that failures belong to, and the commit that broke its test. */

import type { JoinedBug } from "../schema/known_bugs.ts";
import { firstLineOf } from "./first_line.ts";
import { singleLine } from "./single_line.ts";

const MAX_TITLE_CHARACTERS = 120;

/** Returns `Known bug #12 "expected # items, got #"`; `Bug #12 "…"` for a bug that this execution opened, or that is not open. */
export const joinedBugTitle = ({ number, title, known }: Pick<JoinedBug, "number" | "title" | "known">): string =>
  `${known ? "Known bug" : "Bug"} #${number} "${singleLine(firstLineOf(title, MAX_TITLE_CHARACTERS))}"`;

/** Returns the title, and the sentence that proves the culprit: `Known bug #12 "…". c4d5e6f012 by Ada broke it: …`. */
export const joinedBugLine = ({ culprit, ...bug }: Pick<JoinedBug, "number" | "title" | "known" | "culprit">): string =>
  [joinedBugTitle(bug), ...(culprit === null ? [] : [singleLine(culprit.summary)])].join(". ");

/** Returns "known bug #12", as the line of a failure mentions it. */
export const knownBugMention = (number: number): string => `known bug #${number}`;
