/** The runner's bare clone of one repository: finds the commit that an execution asks for, and holds its objects. */

import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { GitFetchError, type GitRun } from "./git_fetch.ts";

export type Wanted = { commit: string | null; branch: string | null };

/** Runs git so that it is logged, and ended with the task. */
export type RunGit = (args: readonly string[], directory: string) => Promise<GitRun>;

/** The commit or branch is not in the repository: another runner would not find it either. */
export class NoSuchCommitError extends Error {
  override name = "NoSuchCommitError";
}

const CANNOT_FETCH = "git cannot fetch from the repository";
const ALL_BRANCHES = "+refs/heads/*:refs/assay/heads/*";
/** For what git does without the network. */
const LOCAL_TIMEOUT_MS = 60_000;
/** No hook of the repository runs, no helper of an address is started, and nobody is asked for a password. */
export const GIT_OPTIONS = [
  ...["-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never"],
  ...["-c", "gc.autoDetach=false", "-c", "advice.detachedHead=false"],
];
export const GIT_ENVIRONMENT = { GIT_TERMINAL_PROMPT: "0", LC_ALL: "C" };

/** Runs git without the network; its output, or null where it fails. */
export type AskGit = (args: readonly string[], directory?: string) => Promise<string | null>;

export type GitClone = {
  /** Makes the clone where there is none yet, and sets the address that it fetches from. */
  open(address: string): Promise<void>;
  /** Returns the full hash of what is wanted, which is in the clone from then on. Throws NoSuchCommitError and GitFetchError. */
  resolve(wanted: Wanted, run: RunGit): Promise<string>;
  /** Keeps the commit of a work tree from the garbage collection of git; another call with the same name replaces it. */
  protect(name: string, commit: string): Promise<void>;
  /** Runs git in the clone. */
  ask: AskGit;
  /** The folder with the objects that all work trees share. */
  gitDirectory(): Promise<string>;
};

/** `folder` holds the clone and its work trees. */
export function createGitClone(folder: string, host: Record<string, string | undefined>): GitClone {
  const repository = join(folder, "repository.git");

  const ask = createAskGit(repository, host);
  const find = (revision: string) =>
    ask(["rev-parse", "--verify", "--quiet", "--end-of-options", `${revision}^{commit}`]);

  async function fetchRefs(run: RunGit, refs: readonly string[]): Promise<GitRun> {
    const options = [
      "--no-tags",
      "--force",
      "--quiet",
      "--update-shallow",
      ...(refs[0] === ALL_BRANCHES ? ["--prune"] : []),
    ];
    return await run(["fetch", ...options, "--end-of-options", "origin", ...refs], repository);
  }

  /** The newest commit of a branch; null: of the default branch. */
  async function resolveBranch(branch: string | null, run: RunGit): Promise<string> {
    const ref = branch === null ? "HEAD" : headOf(branch);
    const own = refOf(branch);
    const fetched = await fetchRefs(run, [`+${ref}:${own}`]);
    if (fetched.exitCode === 0) return (await find(own)) ?? fail("git fetched no commit");
    const listed = await run(["ls-remote", "--quiet", "--exit-code", "--end-of-options", "origin", ref], repository);
    if (listed.exitCode === 2) throw new NoSuchCommitError(`The repository has no branch ${show(branch ?? "HEAD")}`);
    throw new GitFetchError(CANNOT_FETCH, fetched);
  }

  /** Fetches as little as possible: nothing, the commit alone, its branch, or all branches. */
  async function resolveCommit(commit: string, branch: string | null, run: RunGit): Promise<string> {
    if (!/^[0-9a-f]{7,64}$/i.test(commit))
      throw new NoSuchCommitError(`The execution names the commit ${show(commit)}, which is not a commit hash`);
    const isWhole = commit.length === 40 || commit.length === 64;
    const attempts: string[][] = [
      [],
      ...(isWhole ? [[commit.toLowerCase()]] : []),
      ...(branch === null ? [] : [[`+${headOf(branch)}:${refOf(branch)}`]]),
      [ALL_BRANCHES],
    ];
    let fetched: GitRun | undefined;
    for (const refs of attempts) {
      if (refs.length > 0) fetched = await fetchRefs(run, refs);
      const found = await find(commit);
      if (found !== null) return found;
    }
    if (fetched && fetched.exitCode !== 0) throw new GitFetchError(CANNOT_FETCH, fetched);
    throw new NoSuchCommitError(`The repository has no commit ${show(commit)}, or several with this prefix`);
  }

  return {
    async open(address) {
      if (!existsSync(join(repository, "HEAD"))) {
        mkdirSync(folder, { recursive: true });
        rmSync(repository, { recursive: true, force: true });
        if ((await ask(["init", "--quiet", "--bare", "--", repository], folder)) === null)
          throw new Error(`Cannot create the clone in ${JSON.stringify(repository)}`);
      }
      await ask(["config", "remote.origin.url", address]);
    },
    async resolve({ commit, branch }, run) {
      if (branch !== null && (await ask(["check-ref-format", headOf(branch)])) === null)
        throw new NoSuchCommitError(`The execution names the branch ${show(branch)}, which is not a valid branch name`);
      return commit === null ? await resolveBranch(branch, run) : await resolveCommit(commit, branch, run);
    },
    protect: async (name, commit) => void (await ask(["update-ref", `refs/assay/tree/${name}`, commit])),
    ask,
    gitDirectory: async () => repository,
  };
}

/** Runs git in the repository, unless it is called with another directory. */
export function createAskGit(repository: string, host: Record<string, string | undefined>): AskGit {
  return async (args, directory = repository) => {
    const git = Bun.spawn(["git", ...GIT_OPTIONS, ...args], {
      cwd: directory,
      env: { PATH: host["PATH"] ?? "", HOME: host["HOME"] ?? "", ...GIT_ENVIRONMENT },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: LOCAL_TIMEOUT_MS,
    });
    const [output, , exitCode] = await Promise.all([git.stdout.text(), git.stderr.text(), git.exited]);
    return exitCode === 0 ? output.trim() : null;
  };
}

const headOf = (branch: string): string => `refs/heads/${branch}`;

/** Where the head of a branch is kept: not by its name, because "a" and "a/b" cannot be refs at the same time. */
const refOf = (branch: string | null): string =>
  `refs/assay/branch/${branch === null ? "default" : Bun.SHA256.hash(branch, "hex")}`;

function fail(message: string): never {
  throw new Error(message);
}

const show = (text: string) => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…`.toWellFormed() : text);
