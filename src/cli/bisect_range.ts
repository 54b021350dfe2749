/** The commits between a good and a bad one, as git lists them, and how probable each of them is before the first probe. */

import { posix } from "node:path";
import { weighCommits } from "../rules/culprit.ts";
import type { AskGit } from "../runner/git_clone.ts";
import { DEFAULT_REACH } from "./bisect_options.ts";

export type BisectCommit = { hash: string; author: string; date: string; subject: string };

export type BisectRange = {
  /** The good commit first, the bad one last; each is the first parent of the next. */
  commits: BisectCommit[];
  /** The weights of all commits but the first. */
  weights: number[];
  isGoodKnown: boolean;
};

export type RangeQuery = {
  good: string | undefined;
  bad: string;
  command: readonly string[];
  /** The directory that the command runs in, within the repository. */
  directory: string;
};

const MAX_COMMITS = 100_000;
/** Words of the command that are looked up as files. */
const MAX_WORDS = 100;
const FORMAT = "--format=%H%x00%an%x00%cI%x00%s";

/** Throws an error if a commit is missing, or if the good one is no ancestor of the bad one. */
export async function readRange(ask: AskGit, { good, bad, command, directory }: RangeQuery): Promise<BisectRange> {
  const badHash = await resolveCommit(ask, bad);
  const goodHash = good === undefined ? undefined : await resolveCommit(ask, good);
  if (goodHash !== undefined && (await ask(["merge-base", "--is-ancestor", goodHash, badHash])) === null)
    throw new Error(
      `The good commit ${JSON.stringify(good)} is not an ancestor of the bad commit ${JSON.stringify(bad)}`,
    );
  const commits =
    goodHash === undefined
      ? await listCommits(ask, [`--max-count=${DEFAULT_REACH + 1}`, badHash])
      : await listSince(ask, goodHash, badHash);
  if (commits.length < 2) throw new Error(`There are no commits between the good and the bad one`);
  const changing = await findChanging(ask, { commits, files: await findFiles(ask, badHash, command, directory) });
  const overlaps = weighCommits(commits.slice(1).map(({ hash }) => changing.has(hash)));
  // Where no good commit is known, most faults are recent: each doubling of the distance is as probable as the one before.
  const weights = goodHash === undefined ? overlaps.map((weight, at) => weight / (overlaps.length - at)) : overlaps;
  return { commits, weights, isGoodKnown: goodHash !== undefined };
}

async function resolveCommit(ask: AskGit, ref: string): Promise<string> {
  const hash = await ask(["rev-parse", "--verify", "--quiet", "--end-of-options", `${ref}^{commit}`]);
  if (hash === null) throw new Error(`The repository has no commit ${JSON.stringify(ref)}`);
  return hash;
}

/** With the first parent of the oldest commit, which is the good one unless that lies on a merged branch. */
async function listSince(ask: AskGit, good: string, bad: string): Promise<BisectCommit[]> {
  const commits = await listCommits(ask, [`--max-count=${MAX_COMMITS + 1}`, `${good}..${bad}`]);
  if (commits.length === 0) return [];
  if (commits.length > MAX_COMMITS) throw new Error(`There are more than ${MAX_COMMITS} commits to search`);
  return [...(await listCommits(ask, ["--max-count=1", `${commits[0]!.hash}^1`])), ...commits];
}

/** The oldest first. */
async function listCommits(ask: AskGit, args: readonly string[]): Promise<BisectCommit[]> {
  const output = await ask(["log", "--first-parent", "--no-show-signature", FORMAT, ...args, "--"]);
  if (output === null) throw new Error("git cannot list the commits");
  const lines = output.split("\n").filter((line) => line !== "");
  return lines.reverse().map((line) => {
    const [hash = "", author = "", date = "", subject = ""] = line.split("\0");
    return { hash, author, date, subject };
  });
}

/** The files that the command names, such as the file of the test. */
async function findFiles(ask: AskGit, bad: string, command: readonly string[], directory: string): Promise<string[]> {
  const words = command.flatMap((word) => word.split(/\s+/)).slice(0, MAX_WORDS);
  const paths = words
    .filter((word) => word !== "" && !word.startsWith("-") && !posix.isAbsolute(word))
    .map((word) => posix.normalize(posix.join(directory, word)))
    .filter((path) => path !== "." && path !== "./" && !path.startsWith(".."));
  if (paths.length === 0) return [];
  const output = await ask(["ls-tree", "--full-tree", "-z", bad, "--", ...new Set(paths)]);
  return (output ?? "").split("\0").flatMap((line) => {
    const [entry = "", path = ""] = line.split("\t");
    return / blob /.test(entry) ? [path] : [];
  });
}

async function findChanging(
  ask: AskGit,
  { commits, files }: { commits: readonly BisectCommit[]; files: readonly string[] },
): Promise<Set<string>> {
  if (files.length === 0) return new Set();
  const range = `${commits[0]!.hash}..${commits.at(-1)!.hash}`;
  const paths = files.map((file) => `:(top,literal)${file}`);
  const output = await ask(["rev-list", "--first-parent", range, "--", ...paths]);
  return new Set((output ?? "").split("\n"));
}

/** Returns the files that a commit changes, compared with its first parent. */
export async function listChangedFiles(ask: AskGit, hash: string): Promise<string[]> {
  const output = await ask(["diff", "--name-only", "-z", "--no-ext-diff", `${hash}^1`, hash, "--"]);
  return (output ?? "").split("\0").filter((name) => name !== "");
}
