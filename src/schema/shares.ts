/** Links that anybody may open who has them, and badges: what is made of which, and how they are listed. */

import * as v from "valibot";
import { branchName, mayBeEmpty } from "./fields.ts";

const BADGE_KINDS = ["status", "tests"] as const;
type BadgeKind = (typeof BADGE_KINDS)[number];

/** What a form of a badge says. */
export const newBadge = v.strictObject({
  shows: v.picklist(BADGE_KINDS, `expected "status" or "tests"`),
  branch: v.pipe(mayBeEmpty(branchName), v.description("The branch; empty: the current default branch")),
});

/** What is to be shared. */
export type NewShare =
  | { kind: "execution"; executionId: string }
  | { kind: "project" }
  | { kind: "badge"; shows: BadgeKind; branch: string | null };
export type ShareKind = NewShare["kind"];

/** One as it is listed: everything but its address. */
export type Share = {
  id: string;
  kind: ShareKind;
  /** Of kind execution, as are the next three. */
  executionId: string | null;
  executionKey: string | null;
  executionNumber: number | null;
  executionBranch: string | null;
  branch: string | null;
  shows: BadgeKind | null;
  /** Null: the account is gone. */
  createdBy: string | null;
  createdAt: string;
};

/** What an address leads to. */
export type SharedPlace = {
  kind: ShareKind;
  projectId: string;
  projectName: string;
  defaultBranch: string;
  executionId: string | null;
  branch: string | null;
  shows: BadgeKind | null;
};
