/** The runner's own clones: a task runs in a work tree of the commit that its execution asks for. */

import { existsSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { listRange } from "./commit_range.ts";
import { createGitClone, type GitClone, type RunGit, type Wanted } from "./git_clone.ts";
import { GitFetchError, gitReasonIn } from "./git_fetch.ts";
import { lockFolder } from "./folder_lock.ts";
import { copyFolder, createTreeRepository } from "./tree_repository.ts";
import { readTree, restoreTree, toTreeState } from "./tree_state.ts";
import { createWorkTrees, gitCopyOf, type WorkTrees } from "./work_trees.ts";

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
  /** What the log of the task says about the tree. */
  notes: string[];
  /** These commands have run: the next task of the commit begins with what is in the tree now. */
  prepared(): Promise<void>;
  /** Nobody uses it any more. */
  release(): void;
};

/** The work trees of one repository, in a folder of the runner. Default of `clone`: the runner's own, in the same folder. */
export function openCheckout(
  folder: string,
  host: Record<string, string | undefined>,
  clone: GitClone = createGitClone(folder, host),
) {
  const trees = createWorkTrees(join(folder, "work"));
  /** One after the other: they write the same refs and folders. */
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(action: () => Promise<T>): Promise<T> => {
    const turn = last.then(action);
    last = turn.catch(() => {});
    return turn;
  };

  /** Returns the full hash of a commit that is in the clone from then on. Throws as `take` does. */
  async function find(config: CheckoutConfig, wanted: Wanted, run: RunGit): Promise<string> {
    await clone.open(config.repository);
    return await clone.resolve(wanted, run);
  }

  return {
    /** Returns the newest commit of the branch, or of the default branch. Throws as `take` does. */
    resolveBranch: (config: CheckoutConfig, branch: string | null, run: RunGit) =>
      inTurn(() => find(config, { commit: null, branch }, run)),
    /**
     * A work tree of the commit, used by nobody else until it is released. It has what checkout, and if `isPrepared` the preparation, made,
     * and nothing else. Throws NoSuchCommitError, and GitFetchError if another try may succeed; any other error is one of the machine.
     */
    async take(config: CheckoutConfig, wanted: Wanted, run: RunGit): Promise<Tree> {
      const { submodules, lfs, prepare, build, keep } = config;
      const prepared = Bun.SHA256.hash(JSON.stringify([submodules, lfs, prepare, build]), "hex");
      const { commit, tree } = await inTurn(async () => {
        trees.open();
        const commit = await find(config, wanted, run);
        const tree = trees.reserve({ commit, prepared, keep });
        await clone.protect(basename(tree.path), commit);
        return { commit, tree };
      });
      const { path } = tree;
      const notes: string[] = [];
      let [isPrepared, checkedOut] = [false, new Map<string, string>()];
      try {
        if (tree.note) {
          const lost = await restore(trees, path, run);
          isPrepared = lost === undefined;
          if (lost !== undefined)
            notes.push(`An earlier task changed ${JSON.stringify(lost)}: the commit is prepared again`);
        }
        if (!isPrepared) {
          const problem = await trees.clear(path);
          if (problem !== undefined) notes.push(`Cannot remove the files of an earlier task: ${problem}`);
          await checkOut({ folder, clone, path, commit, config, run, inTurn });
          checkedOut = await readTree(path);
        }
      } catch (error) {
        await inTurn(() => trees.release(path, keep));
        throw error;
      }
      return {
        directory: path,
        commit,
        isPrepared,
        notes,
        async prepared() {
          await copyFolder(join(path, ".git"), gitCopyOf(path));
          trees.write(path, { commit, prepared }, toTreeState(checkedOut, await readTree(path)));
        },
        // A tree that cannot be removed is found again at the next start.
        release: () => void inTurn(() => trees.release(path, keep)).catch(() => {}),
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

/** Undoes what a task did to a prepared tree and its git directory. Returns a path that cannot be restored. */
async function restore(trees: WorkTrees, path: string, run: RunGit): Promise<string | undefined> {
  try {
    await copyFolder(gitCopyOf(path), join(path, ".git"));
    const list = `${path}.paths`;
    return await restoreTree(path, trees.readState(path), async (paths) => {
      writeFileSync(list, Buffer.from(paths.join("\0"), "latin1"));
      const from = ["--pathspec-from-file", list, "--pathspec-file-nul"];
      return (await run(["--literal-pathspecs", "checkout", "--quiet", "--force", ...from], path)).exitCode === 0;
    });
  } catch {
    return path;
  }
}

type CheckingOut = {
  folder: string;
  clone: GitClone;
  path: string;
  commit: string;
  config: CheckoutConfig;
  run: RunGit;
  inTurn: <T>(action: () => Promise<T>) => Promise<T>;
};

/** Puts the commit into a new tree. */
async function checkOut({ folder, clone, path, commit, config, run, inTurn }: CheckingOut): Promise<void> {
  const { submodules, lfs } = config;
  await createTreeRepository(path, clone, lfs ? join(folder, "lfs") : undefined);
  const problem = "git cannot check out the commit";
  const checkedOut = await run(["checkout", "--quiet", "--force", "--detach", commit], path);
  // Git LFS fetches the content of files meanwhile.
  if (checkedOut.exitCode !== 0 && lfs) throw new GitFetchError(problem, checkedOut);
  if (checkedOut.exitCode !== 0) throw new Error(`${problem}: ${gitReasonIn(checkedOut.output)}`);
  if (submodules) {
    // Their objects are kept as the last tree fetched them.
    const [own, kept] = [join(path, ".git/modules"), join(folder, "modules")];
    await inTurn(async () => existsSync(kept) && (await copyFolder(kept, own)));
    const update = ["submodule", "--quiet", "update", "--init", "--recursive", "--force"];
    await fetchWith(run, update, path, "git cannot fetch the submodules");
    await inTurn(async () => existsSync(own) && (await copyFolder(own, kept)));
  }
  if (lfs) await fetchWith(run, ["lfs", "pull"], path, "git cannot fetch the LFS files");
}

async function fetchWith(run: RunGit, args: readonly string[], path: string, problem: string): Promise<void> {
  const fetched = await run(args, path);
  if (fetched.exitCode !== 0) throw new GitFetchError(problem, fetched);
}

export type Checkout = ReturnType<typeof openCheckout>;

export type Checkouts = (config: CheckoutConfig | undefined) => Checkout | undefined;

/** Returns the clone for each configuration; configurations of one repository share it, and other runner processes do not. */
export function createCheckouts(root: string, host: Record<string, string | undefined>): Checkouts {
  const checkouts = new Map<string, Checkout>();
  return (config) => {
    if (!config) return undefined;
    const path = checkoutFolder(root, config);
    const known = checkouts.get(path) ?? openCheckout(lockFolder(path), host);
    checkouts.set(path, known);
    return known;
  };
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
