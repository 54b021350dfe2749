/** The runner's own clones: a task runs in a work tree of the commit that its execution asks for. */

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { listRange } from "./commit_range.ts";
import { createGitClone, type GitClone, type RunGit, type Wanted } from "./git_clone.ts";
import { GitFetchError } from "./git_fetch.ts";
import { createWorkTrees, type WorkTree } from "./work_trees.ts";

export type CheckoutConfig = {
  /** As git takes it: an address or a path. */
  repository: string;
  submodules: boolean;
  lfs: boolean;
  /** Commands that run once for each commit, before its first task. */
  prepare: string[];
  /** Commands that run after those; the commit itself is at fault if one fails. */
  build: string[];
  /** The number of unused work trees to keep. */
  keep: number;
};

export type Tree = {
  directory: string;
  /** The full hash that is checked out. */
  commit: string;
  /** The commands of `prepare` and `build` have run in it, for this commit. */
  isPrepared: boolean;
  /** These commands have run: what they have made is kept for the next task of the commit. */
  prepared(): Promise<void>;
  /** Nobody uses it any more. */
  release(): void;
};

/** Maximum files and folders that the preparation may leave besides ignored ones: each is a word of a command. */
const MAX_MADE = 1_000;

/** The work trees of one repository, in a folder of the runner. Default of `clone`: the runner's own, in the same folder. */
export function openCheckout(
  folder: string,
  host: Record<string, string | undefined>,
  clone: GitClone = createGitClone(folder, host),
) {
  const trees = createWorkTrees(join(folder, "work"), clone.pruneTrees);
  /** One after the other: they write the same refs and the list of work trees. */
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(action: () => Promise<T>): Promise<T> => {
    const turn = last.then(action);
    last = turn.catch(() => {});
    return turn;
  };

  return {
    /**
     * A work tree of the commit, used by nobody else until it is released. Throws NoSuchCommitError, and GitFetchError if another try
     * may succeed; any other error is one of the machine.
     */
    async take(config: CheckoutConfig, wanted: Wanted, run: RunGit): Promise<Tree> {
      const { repository: address, submodules, lfs, prepare, build, keep } = config;
      const prepared = Bun.SHA256.hash(JSON.stringify([submodules, lfs, prepare, build]), "hex");
      const { commit, tree } = await inTurn(async () => {
        trees.open();
        await clone.open(address);
        const commit = await clone.resolve(wanted, run);
        return { commit, tree: trees.reserve({ commit, prepared, keep }) };
      });
      const { path } = tree;
      const isSame = tree.commit === commit && tree.prepared === prepared;
      const isPrepared = isSame && existsSync(join(path, ".git"));
      const note = { commit, prepared: isPrepared ? prepared : "", made: isPrepared ? tree.made : [] };
      try {
        await checkOut({ clone, tree, commit, isPrepared, run, inTurn });
        if (submodules) await checkOutSubmodules(path, isPrepared, run);
        if (lfs) await fetchWith(run, ["lfs", "pull"], path, "git cannot fetch the LFS files");
      } catch (error) {
        await inTurn(() => trees.release(path, keep));
        throw error;
      }
      return {
        directory: path,
        commit,
        isPrepared,
        async prepared() {
          note.made = (await clone.listUntracked(path)).slice(0, MAX_MADE).map(toPattern);
          note.prepared = prepared;
        },
        // A tree that cannot be removed is found again at the next start.
        release: () => void inTurn(() => trees.release(path, keep, { ...note, usedAt: Date.now() })).catch(() => {}),
      };
    },
    /** The commits of a range, with the files that they change. Throws NoSuchCommitError, NoSuchRangeError and GitFetchError. */
    listRange: ({ repository }: CheckoutConfig, { good, bad }: { good: string; bad: string }, run: RunGit) =>
      inTurn(async () => {
        await clone.open(repository);
        const resolve = (commit: string) => clone.resolve({ commit, branch: null }, run);
        return await listRange(clone.ask, { good: await resolve(good), bad: await resolve(bad) });
      }),
    /** When all that was released is put away. */
    settled: () => inTurn(async () => {}),
  };
}

type CheckingOut = {
  clone: GitClone;
  tree: WorkTree;
  commit: string;
  isPrepared: boolean;
  run: RunGit;
  inTurn: <T>(action: () => Promise<T>) => Promise<T>;
};

/** Puts the commit into the tree; a tree that git cannot use any more is made anew. */
async function checkOut({ clone, tree: { path, made }, commit, isPrepared, run, inTurn }: CheckingOut): Promise<void> {
  const checkout = ["checkout", "--quiet", "--force", "--detach", commit];
  // Ignored files, such as installed packages, are the work of `prepare` for this commit.
  const options = isPrepared ? ["-ffd", ...made.flatMap((one) => ["-e", one])] : ["-ffdx"];
  const isDone =
    existsSync(join(path, ".git")) &&
    (await run(checkout, path)).exitCode === 0 &&
    (await run(["clean", "--quiet", ...options], path)).exitCode === 0;
  if (isDone) return;
  rmSync(path, { recursive: true, force: true });
  await inTurn(async () => {
    await clone.pruneTrees();
    await clone.addTree(path, commit, run);
  });
  if ((await run(checkout, path)).exitCode !== 0) fail("git cannot check out the work tree");
}

async function checkOutSubmodules(path: string, isPrepared: boolean, run: RunGit): Promise<void> {
  const update = ["submodule", "--quiet", "update", "--init", "--recursive", "--force"];
  await fetchWith(run, update, path, "git cannot fetch the submodules");
  const clean = ["git", "clean", isPrepared ? "-ffdq" : "-ffdxq"];
  if ((await run(["submodule", "--quiet", "foreach", "--recursive", ...clean], path)).exitCode !== 0)
    fail("git cannot clean the submodules");
}

async function fetchWith(run: RunGit, args: readonly string[], path: string, problem: string): Promise<void> {
  const fetched = await run(args, path);
  if (fetched.exitCode !== 0) throw new GitFetchError(problem, fetched);
}

export type Checkout = ReturnType<typeof openCheckout>;

export type Checkouts = (config: CheckoutConfig | undefined) => Checkout | undefined;

/** Returns the clone for each configuration; configurations of one repository share it. */
export function createCheckouts(root: string, host: Record<string, string | undefined>): Checkouts {
  const checkouts = new Map<string, Checkout>();
  return (config) => {
    if (!config) return undefined;
    const path = checkoutFolder(root, config);
    const known = checkouts.get(path) ?? openCheckout(path, host);
    checkouts.set(path, known);
    return known;
  };
}

/** A name as a pattern for exactly that. */
const toPattern = (path: string) => `/${path.replace(/[\\*?[\]!# ]/g, "\\$&")}`;

function fail(message: string): never {
  throw new Error(message);
}

/** The folder of a repository's clone, beside those of others. */
export function checkoutFolder(root: string, { repository }: CheckoutConfig): string {
  const digest = Bun.SHA256.hash(repository, "hex").slice(0, 12);
  const name = /([A-Za-z0-9_-]{1,40})(?:\.git)?\/?$/.exec(repository)?.[1] ?? "repository";
  return join(root, ".assay", `${name}-${digest}`);
}

/** The user and password in an address, which belong in no log. */
export function passwordsOf({ repository }: CheckoutConfig): string[] {
  if (!URL.canParse(repository)) return [];
  const { username, password } = new URL(repository);
  const decode = (text: string) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  // A token may stand in either place.
  return [...new Set([password, username].filter(Boolean).flatMap((text) => [text, decode(text)]))];
}
