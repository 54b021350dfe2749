/** The commits between a good and a bad one, as git lists them along first parents. */

import type { RangeCommit, SearchedCommit } from "../rules/culprit_range.ts";
import { MAX_COMMIT_FILES, MAX_RANGE_COMMITS } from "../schema/culprit_searches.ts";
import type { AskGit } from "./git_clone.ts";

const FORMAT = "--format=%H%x00%an%x00%cI%x00%s";
/** Begins the hash of a commit before the names of its files; no path of a repository begins with it. */
const MARK = "\x02";

/** There is no such range, whichever runner lists it. */
export class NoSuchRangeError extends Error {
  override name = "NoSuchRangeError";
}

/** Throws a NoSuchRangeError unless the good commit is an ancestor of the bad one. `show` names them. */
export async function requireAncestor(
  ask: AskGit,
  { good, bad }: { good: string; bad: string },
  show = { good, bad },
): Promise<void> {
  if ((await ask(["merge-base", "--is-ancestor", good, bad])) === null)
    throw new NoSuchRangeError(
      `The good commit ${JSON.stringify(show.good)} is not an ancestor of the bad commit ${JSON.stringify(show.bad)}`,
    );
}

/**
 * Returns the commits after the good one, and before them the first parent of the oldest, which is the good one unless that lies on a
 * merged branch. Empty: there are none. Throws a NoSuchRangeError if there are more than `max`. Takes hashes.
 */
export async function listSince(
  ask: AskGit,
  { good, bad }: { good: string; bad: string },
  max: number,
): Promise<SearchedCommit[]> {
  const commits = await listCommits(ask, [`--max-count=${max + 1}`, `${good}..${bad}`]);
  if (commits.length === 0) return [];
  if (commits.length > max) throw new NoSuchRangeError(`There are more than ${max} commits to search`);
  return [...(await listCommits(ask, ["--max-count=1", `${commits[0]!.hash}^1`])), ...commits];
}

/** The oldest first. */
export async function listCommits(ask: AskGit, args: readonly string[]): Promise<SearchedCommit[]> {
  const output = await ask(["log", "--first-parent", "--no-show-signature", FORMAT, ...args, "--"]);
  if (output === null) throw new Error("git cannot list the commits");
  const lines = output.split("\n").filter((line) => line !== "");
  return lines.reverse().map((line) => {
    const [hash = "", author = "", date = "", subject = ""] = line.split("\0");
    return { hash, author, date, subject };
  });
}

/** Returns the commits of a range with the files that they change, the good one first. Throws a NoSuchRangeError. Takes hashes. */
export async function listRange(ask: AskGit, range: { good: string; bad: string }): Promise<RangeCommit[]> {
  await requireAncestor(ask, range);
  const commits = await listSince(ask, range, MAX_RANGE_COMMITS);
  if (commits.length < 2) throw new NoSuchRangeError("There are no commits between the good and the bad one");
  const filesOf = await listFilesOfRange(ask, range);
  return commits.map((commit) => ({ ...commit, files: (filesOf.get(commit.hash) ?? []).slice(0, MAX_COMMIT_FILES) }));
}

/** Returns for each commit of a range the files that it changes, compared with its first parent. */
async function listFilesOfRange(
  ask: AskGit,
  { good, bad }: { good: string; bad: string },
): Promise<Map<string, string[]>> {
  const diff = ["--first-parent", "-m", "--no-renames", "--name-only", "-z", "--no-ext-diff"];
  const output = await ask(["log", ...diff, "--no-show-signature", `--format=${MARK}%H`, `${good}..${bad}`, "--"]);
  const parts = (output ?? "").split(MARK).filter((part) => part !== "");
  return new Map(
    parts.map((part) => {
      const [hash = "", ...files] = part.split("\0").map((text) => text.replace(/^\n/, ""));
      return [hash, files.filter((file) => file !== "")];
    }),
  );
}

/** Returns the files that a commit changes, compared with its first parent. */
export async function listChangedFiles(ask: AskGit, hash: string): Promise<string[]> {
  const output = await ask(["diff", "--name-only", "-z", "--no-ext-diff", `${hash}^1`, hash, "--"]);
  return (output ?? "").split("\0").filter((name) => name !== "");
}
