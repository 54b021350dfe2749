/** Finds the pull request that a message becomes a comment on: that of an execution, or the one that brought a commit. */

import type { Job, Outcome } from "./sender.ts";

/** A pull request; `since`: a comment that an earlier try has made is not older, null: there can be none. ISO 8601. */
type CommentTarget = { number: string; since: string | null };

/** The merged pull requests that contain a commit, as a code host lists them, or why there is no list. */
type Merged = { number: unknown; mergedAt: string | undefined }[] | Outcome;

/** Undefined: the message belongs to no pull request. `listMerged` requests a list from the code host. */
export async function findTarget(
  { notice: { pullRequest }, comment }: Pick<Job, "notice" | "comment">,
  listMerged: (commit: string) => Promise<Merged>,
): Promise<CommentTarget | { outcome: Outcome } | undefined> {
  if (!comment) return undefined;
  const commit = comment.mergedCommit;
  if (commit === undefined)
    return pullRequest !== null && /^\d+$/.test(pullRequest)
      ? { number: pullRequest, since: comment.since }
      : undefined;
  const merged = await listMerged(commit);
  if (!Array.isArray(merged)) return { outcome: merged };
  // A commit of a branch that was merged into another branch first is in both, and the first one brought it.
  const [first] = merged
    .map(({ number, mergedAt }) => ({ number: Number(number), mergedMs: Date.parse(mergedAt ?? "") }))
    .filter(({ number, mergedMs }) => Number.isSafeInteger(number) && number > 0 && Number.isFinite(mergedMs))
    .sort((a, b) => a.mergedMs - b.mergedMs);
  if (first) return { number: String(first.number), since: new Date(first.mergedMs).toISOString() };
  const error = `Nothing to send: no merged pull request contains the commit ${commit.slice(0, 12)}`;
  return { outcome: { status: "inapplicable", error } };
}
