/** The work of a lease that lists the commits of a range: it runs git, and no command of the task. */

import type { RangeCommit } from "../rules/culprit_range.ts";
import {
  MAX_COMMIT_AUTHOR,
  MAX_COMMIT_FILES,
  MAX_COMMIT_PATH,
  MAX_COMMIT_SUBJECT,
} from "../schema/culprit_searches.ts";
import type { Checkout } from "./checkout.ts";
import { NoSuchRangeError } from "./commit_range.ts";
import type { TaskConfig } from "./config.ts";
import { type Runs, toRunGit } from "./enter_tree.ts";
import { NoSuchCommitError } from "./git_clone.ts";
import type { RunnerLease } from "./protocol.ts";

/** The maximum size of the commits as JSON: the server reads all of them at each step of the search. */
const MAX_LISTING_BYTES = 1_000_000;
/** The maximum number of files that are sent of each commit: less if the list is larger. */
const FILES_SENT = [MAX_COMMIT_FILES, 50, 10, 0];

type Listing = {
  lease: RunnerLease;
  config: TaskConfig;
  checkout?: Checkout | undefined;
  stop: AbortSignal;
};

/** "failure": no runner could list them; "infrastructure": another one may. */
export type ListingOutcome =
  | { kind: "commits"; commits: RangeCommit[] }
  | { kind: "failure"; message: string }
  | { kind: "infrastructure"; message: string };

export async function listLeaseRange(
  { lease, config, checkout, stop }: Listing,
  { runGit, retryFetch }: Runs,
): Promise<ListingOutcome> {
  const { git } = config;
  if (!git || !checkout) return { kind: "failure", message: "Cannot list the commits: the task has no checkout" };
  try {
    const list = () => checkout.listRange(git, lease.commits!, toRunGit(runGit, git, stop));
    return { kind: "commits", commits: fitCommits(await retryFetch(list, stop)) };
  } catch (error) {
    const message = `Cannot list the commits: ${(error as Error).message}`;
    const isFinal = error instanceof NoSuchCommitError || error instanceof NoSuchRangeError;
    return { kind: isFinal ? "failure" : "infrastructure", message };
  }
}

/** Shortens texts, and leaves out files until the list is small enough. */
function fitCommits(commits: readonly RangeCommit[]): RangeCommit[] {
  const cut = (text: string, max: number) => text.slice(0, max).toWellFormed();
  const toSent = (files: number) =>
    commits.map((commit) => ({
      ...commit,
      author: cut(commit.author, MAX_COMMIT_AUTHOR),
      subject: cut(commit.subject, MAX_COMMIT_SUBJECT),
      files: commit.files.slice(0, files).map((file) => cut(file, MAX_COMMIT_PATH)),
    }));
  const fitting = FILES_SENT.map(toSent).find((sent) => Buffer.byteLength(JSON.stringify(sent)) <= MAX_LISTING_BYTES);
  return fitting ?? toSent(0);
}
