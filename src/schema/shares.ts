/** Links that anyone who has them may open, and badges: their kinds, and their fields in lists. */

import * as v from "valibot";
import { branchName, mayBeEmpty } from "./fields.ts";

const BADGE_KINDS = ["status", "tests"] as const;
type BadgeKind = (typeof BADGE_KINDS)[number];

/** The form of a badge. */
export const newBadge = v.strictObject({
  shows: v.picklist(BADGE_KINDS, `expected "status" or "tests"`),
  branch: v.pipe(mayBeEmpty(branchName), v.description("The branch; empty: the current default branch")),
});

/** The object to share. */
export type NewShare =
  | { kind: "execution"; executionId: string }
  | { kind: "project" }
  | { kind: "badge"; shows: BadgeKind; branch: string | null };
export type ShareKind = NewShare["kind"];

/** A share in lists, without its address. */
export type Share = {
  id: string;
  kind: ShareKind;
  /** The execution fields are set only if `kind` is execution. */
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

/** The target of a shared address. */
export type SharedTarget = {
  kind: ShareKind;
  projectId: string;
  projectName: string;
  defaultBranch: string;
  executionId: string | null;
  branch: string | null;
  shows: BadgeKind | null;
};
