/** The commits between a good and a bad one, as git lists them, and how probable each of them is before the first probe. */

import { posix } from "node:path";
import { weighCommits } from "../rules/culprit.ts";
import type { SearchedCommit } from "../rules/culprit_range.ts";
import { listCommits, listSince, requireAncestor } from "../runner/commit_range.ts";
import type { AskGit } from "../runner/git_clone.ts";
import { DEFAULT_REACH } from "./bisect_options.ts";

export type BisectRange = {
  /** The good commit first, the bad one last; each is the first parent of the next. */
  commits: SearchedCommit[];
  /** The weights of all commits but the first. */
  weights: number[];
  isGoodKnown: boolean;
};

type RangeQuery = {
  good: string | undefined;
  bad: string;
  command: readonly string[];
  /** The file of the test, if it is known; its path may be relative to any directory. */
  file: string | null;
  /** The directory that the command runs in, within the repository. */
  directory: string;
};

const MAX_COMMITS = 100_000;
/** Words of the command that are looked up as files. */
const MAX_WORDS = 100;

/** Throws an error if a commit is missing, or if the good one is no ancestor of the bad one. */
export async function readRange(
  ask: AskGit,
  { good, bad, command, file, directory }: RangeQuery,
): Promise<BisectRange> {
  const badHash = await resolveCommit(ask, bad);
  const goodHash = good === undefined ? undefined : await resolveCommit(ask, good);
  if (goodHash !== undefined) await requireAncestor(ask, { good: goodHash, bad: badHash }, { good: good!, bad });
  const commits =
    goodHash === undefined
      ? await listCommits(ask, [`--max-count=${DEFAULT_REACH + 1}`, badHash])
      : await listSince(ask, { good: goodHash, bad: badHash }, MAX_COMMITS);
  if (commits.length < 2) throw new Error(`There are no commits between the good and the bad one`);
  const changing = await findChanging(ask, {
    commits,
    files: await findFiles(ask, badHash, [...command, file ?? ""], directory),
  });
  const overlaps = weighCommits(commits.slice(1).map(({ hash }) => (changing.has(hash) ? "test" : "none")));
  // Without a known good commit, most faults are recent: each doubling of the distance is as probable as the one before.
  const weights = goodHash === undefined ? overlaps.map((weight, at) => weight / (overlaps.length - at)) : overlaps;
  return { commits, weights, isGoodKnown: goodHash !== undefined };
}

async function resolveCommit(ask: AskGit, ref: string): Promise<string> {
  const hash = await ask(["rev-parse", "--verify", "--quiet", "--end-of-options", `${ref}^{commit}`]);
  if (hash === null) throw new Error(`The repository has no commit ${JSON.stringify(ref)}`);
  return hash;
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
  { commits, files }: { commits: readonly SearchedCommit[]; files: readonly string[] },
): Promise<Set<string>> {
  if (files.length === 0) return new Set();
  const range = `${commits[0]!.hash}..${commits.at(-1)!.hash}`;
  const paths = files.map((file) => `:(top,literal)${file}`);
  const output = await ask(["rev-list", "--first-parent", range, "--", ...paths]);
  return new Set((output ?? "").split("\n"));
}
