/** The runner's own clones: a task runs in a work tree of the commit that its execution asks for. */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";

export type CheckoutConfig = {
  /** As git takes it: an address or a path. */
  repository: string;
  submodules: boolean;
  lfs: boolean;
  /** Commands that run once for each commit, before its first task. */
  prepare: string[];
  /** So many work trees that nobody uses are kept. */
  keep: number;
};

export type Wanted = { commit: string | null; branch: string | null };

/** Runs git so that it is logged, and ended with the task; answers its exit code. */
export type RunGit = (args: readonly string[], directory: string) => Promise<number>;

export type Tree = {
  directory: string;
  /** The full hash that is checked out. */
  commit: string;
  /** The commands of `prepare` have run in it, for this commit. */
  isPrepared: boolean;
  /** The commands of `prepare` have run: what they have made is kept for the next task of the commit. */
  prepared(): Promise<void>;
  /** Nobody uses it any more. */
  release(): void;
};

/** What the execution asks for is not in the repository: another runner would not find it either. */
export class NoSuchCommitError extends Error {
  override name = "NoSuchCommitError";
}

const ALL_BRANCHES = "+refs/heads/*:refs/assay/heads/*";
/** For what git does without the network. */
const LOCAL_TIMEOUT_MS = 60_000;
/** Of what preparing has made outside of what is ignored, each is a word of a command. */
const MAX_MADE = 1_000;
/** No hook of the repository runs, no helper of an address is started, and nobody is asked for a password. */
export const GIT_OPTIONS = [
  ...["-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never"],
  ...["-c", "gc.autoDetach=false", "-c", "advice.detachedHead=false"],
];
export const GIT_ENVIRONMENT = { GIT_TERMINAL_PROMPT: "0", LC_ALL: "C" };

/** `prepared` tells which preparation has run in it for the commit; "": none. */
type Kept = {
  path: string;
  commit: string;
  prepared: string;
  /** What that has made beside what is ignored: patterns as in .gitignore. */
  made: string[];
  usedAt: number;
};

/** The work trees of one repository, in a folder of the runner. */
export function openCheckout(folder: string, host: Record<string, string | undefined>) {
  const repository = join(folder, "repository.git");
  const work = join(folder, "work");
  const busy = new Set<string>();
  /** One after the other: they write the same refs and the list of work trees. */
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(action: () => Promise<T>): Promise<T> => {
    const turn = last.then(action);
    last = turn.catch(() => {});
    return turn;
  };

  /** Its output; null where it fails. */
  async function ask(args: readonly string[], directory = repository): Promise<string | null> {
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
  }
  const find = (revision: string) =>
    ask(["rev-parse", "--verify", "--quiet", "--end-of-options", `${revision}^{commit}`]);

  async function openRepository(address: string): Promise<void> {
    mkdirSync(work, { recursive: true });
    if (!existsSync(join(repository, "HEAD"))) {
      rmSync(repository, { recursive: true, force: true });
      if ((await ask(["init", "--quiet", "--bare", "--", repository], folder)) === null)
        throw new Error(`Cannot make the clone in ${JSON.stringify(repository)}`);
    }
    await ask(["config", "remote.origin.url", address]);
    await ask(["worktree", "prune"]);
  }

  /** The full hash of what is wanted, which is in the clone from then on. */
  async function resolve({ commit, branch }: Wanted, run: RunGit): Promise<string> {
    const fetchRefs = async (...refs: string[]) => {
      const options = ["--no-tags", "--force", "--quiet", ...(refs[0] === ALL_BRANCHES ? ["--prune"] : [])];
      return (await run(["fetch", ...options, "--end-of-options", "origin", ...refs], repository)) === 0;
    };
    const ofBranch = branch === null ? null : `refs/heads/${branch}`;
    if (ofBranch !== null && (await ask(["check-ref-format", ofBranch])) === null)
      throw new NoSuchCommitError(`The execution names the branch ${show(branch!)}, which no branch can be called`);
    if (commit === null) {
      const ref = ofBranch ?? "HEAD";
      const own = refOf(branch);
      if (await fetchRefs(`+${ref}:${own}`)) return (await find(own)) ?? fail("git has fetched no commit");
      const isThere = await run(["ls-remote", "--quiet", "--exit-code", "--end-of-options", "origin", ref], repository);
      if (isThere === 2) throw new NoSuchCommitError(`The repository has no branch ${show(branch ?? "HEAD")}`);
      return fail("git cannot fetch from the repository");
    }
    if (!/^[0-9a-f]{7,64}$/i.test(commit))
      throw new NoSuchCommitError(`The execution asks for the commit ${show(commit)}, which is no hash`);
    const isWhole = commit.length === 40 || commit.length === 64;
    const ways: string[][] = [
      ...(isWhole ? [[commit.toLowerCase()]] : []),
      ...(ofBranch === null ? [] : [[`+${ofBranch}:${refOf(branch)}`]]),
      [ALL_BRANCHES],
    ];
    let hasFetched = true;
    for (const refs of [[], ...ways]) {
      if (refs.length > 0) hasFetched = await fetchRefs(...refs);
      const found = await find(commit);
      if (found !== null) return found;
    }
    if (!hasFetched) return fail("git cannot fetch from the repository");
    throw new NoSuchCommitError(`The repository has no commit ${show(commit)}, or several that begin so`);
  }

  const noteOf = (path: string) => `${path}.json`;
  const holderOf = (path: string) => `${path}.pid`;

  /** Those on the disk that no process uses. */
  function free(): Kept[] {
    return readdirSync(work, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(work, name))
      .filter((path) => !busy.has(path) && !isHeld(holderOf(path)))
      .map((path) => ({ path, commit: "", prepared: "", made: [], usedAt: 0, ...readNote(noteOf(path)) }))
      .sort((a, b) => b.usedAt - a.usedAt);
  }

  function nextPath(): string {
    for (let number = 1; ; number++) {
      const path = join(work, String(number));
      if (!busy.has(path) && !existsSync(path) && !isHeld(holderOf(path))) return path;
    }
  }

  async function remove(path: string): Promise<void> {
    rmSync(path, { recursive: true, force: true });
    for (const file of [noteOf(path), holderOf(path)]) rmSync(file, { force: true });
    await ask(["worktree", "prune"]);
  }

  /** An unused tree of the commit, else the one that was used least recently, else a new one. */
  function hold(commit: string, prepared: string, keep: number): Kept {
    const unused = free();
    const same = unused.find((tree) => tree.commit === commit && tree.prepared === prepared);
    const oldest = unused.length >= keep ? unused.at(-1) : undefined;
    const tree = same ?? oldest ?? { path: nextPath(), commit: "", prepared: "", made: [], usedAt: 0 };
    busy.add(tree.path);
    writeFileSync(holderOf(tree.path), String(process.pid));
    // Until it is released nothing is known of it: a runner that is killed leaves it in any state.
    rmSync(noteOf(tree.path), { force: true });
    return tree;
  }

  async function letGo(path: string, keep: number, note?: Omit<Kept, "path">): Promise<void> {
    if (note) writeFileSync(noteOf(path), JSON.stringify(note));
    rmSync(holderOf(path), { force: true });
    busy.delete(path);
    for (const tree of free().slice(keep)) await remove(tree.path);
  }

  async function fill(path: string, commit: string, made: readonly string[] | undefined, run: RunGit): Promise<void> {
    const inTree = async () =>
      existsSync(join(path, ".git")) &&
      (await run(["checkout", "--quiet", "--force", "--detach", commit], path)) === 0 &&
      // What is ignored, such as installed packages, is the work of `prepare` for this commit.
      (await run(
        ["clean", "--quiet", ...(made ? ["-ffd", ...made.flatMap((one) => ["-e", one])] : ["-ffdx"])],
        path,
      )) === 0;
    if (await inTree()) return;
    rmSync(path, { recursive: true, force: true });
    await ask(["worktree", "prune"]);
    const isAdded = (await run(["worktree", "add", "--quiet", "--force", "--detach", path, commit], repository)) === 0;
    if (!isAdded) fail("git cannot make the work tree");
  }

  return {
    /**
     * A work tree of the commit, used by nobody else until it is released. Throws NoSuchCommitError; any other error is one of the
     * machine or the network.
     */
    async take(config: CheckoutConfig, wanted: Wanted, run: RunGit): Promise<Tree> {
      const { repository: address, submodules, lfs, prepare, keep } = config;
      const prepared = Bun.SHA256.hash(JSON.stringify([submodules, lfs, prepare]), "hex");
      const { commit, tree } = await inTurn(async () => {
        await openRepository(address);
        const commit = await resolve(wanted, run);
        return { commit, tree: hold(commit, prepared, keep) };
      });
      const { path } = tree;
      try {
        const isSame = tree.commit === commit && tree.prepared === prepared;
        const isKept = isSame && existsSync(join(path, ".git"));
        await fill(path, commit, isKept ? tree.made : undefined, run);
        const note = { commit, prepared: isKept ? prepared : "", made: isKept ? tree.made : [] };
        if (
          config.submodules &&
          (await run(["submodule", "--quiet", "update", "--init", "--recursive", "--force"], path)) !== 0
        )
          fail("git cannot fetch the submodules");
        const clean = ["clean", isKept ? "-ffdq" : "-ffdxq"];
        if (submodules && (await run(["submodule", "--quiet", "foreach", "--recursive", "git", ...clean], path)) !== 0)
          fail("git cannot clean the submodules");
        if (lfs && (await run(["lfs", "pull"], path)) !== 0) fail("git cannot fetch the files of LFS");
        return {
          directory: path,
          commit,
          isPrepared: isKept,
          async prepared() {
            const made = (await ask(["ls-files", "--others", "--exclude-standard", "--directory"], path)) ?? "";
            note.made = made.split("\n").filter(Boolean).slice(0, MAX_MADE).map(toPattern);
            note.prepared = prepared;
          },
          // What cannot be put away is found again at the next start.
          release: () => void inTurn(() => letGo(path, keep, { ...note, usedAt: Date.now() })).catch(() => {}),
        };
      } catch (error) {
        await inTurn(() => letGo(path, keep));
        throw error;
      }
    },
    /** When all that was released is put away. */
    settled: () => inTurn(async () => {}),
  };
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

/** Where the head of a branch is kept: not by its name, because "a" and "a/b" cannot be refs at the same time. */
const refOf = (branch: string | null) =>
  `refs/assay/branch/${branch === null ? "default" : Bun.SHA256.hash(branch, "hex")}`;

function fail(message: string): never {
  throw new Error(message);
}

/** A name as a pattern for exactly that. */
const toPattern = (path: string) => `/${path.replace(/[\\*?[\]!# ]/g, "\\$&")}`;

const show = (text: string) => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…`.toWellFormed() : text);

/** Whether the process that the file names is alive. */
function isHeld(file: string): boolean {
  try {
    const pid = Number(readFileSync(file, "utf8"));
    // Our own number is that of an earlier process: what this one holds is known.
    if (!(pid > 0) || pid === process.pid) return false;
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const note = v.object({ commit: v.string(), prepared: v.string(), made: v.array(v.string()), usedAt: v.number() });

function readNote(file: string): Partial<Kept> {
  try {
    return v.parse(note, JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return {};
  }
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
