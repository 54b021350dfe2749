/** The commit that a task tests: found for executions that name none, and compared with the one that is checked out. */

import * as v from "valibot";
import { isSameCommit } from "../rules/commit.ts";
import { gitLogOf, keepCommitLines } from "../schema/commits.ts";
import { GitFetchError, type GitRun } from "./git_fetch.ts";
import { keepAsking, type ServerConnection } from "./line.ts";
import type { RunnerLease, Server } from "./protocol.ts";

const GIT_TIMEOUT_MS = 10_000;
const answered = v.object({ commit: v.string() });

/** Stores the commit with the execution, unless another runner has named one. Returns the stored one. Throws an error that says why not. */
export type SettleCommit = (commit: string) => Promise<string>;

export const createSettleCommit =
  (line: ServerConnection, { messageOf }: Server, { id }: RunnerLease, stop: AbortSignal): SettleCommit =>
  async (commit) => {
    const asking = {
      method: "POST" as const,
      path: `/leases/${id}/commit`,
      headers: { "Content-Type": "application/json", "Idempotency-Key": `${id}-commit-${commit}` },
      body: JSON.stringify({ commit }),
    };
    const answer = await keepAsking(line, asking, () => stop.aborted);
    if (!answer) throw new Error("Cannot store the commit: the server does not respond");
    if (answer.status >= 300) throw new Error(`Cannot store the commit: ${messageOf(answer)}`);
    return v.parse(answered, JSON.parse(answer.text)).commit;
  };

/** Runs git in a directory, with the git configuration of the runner's user. */
type RunGitIn = (args: readonly string[], directory: string) => Promise<GitRun>;

/**
 * Returns the newest commit of a branch, as the remote "origin" of a checkout has it, or the checkout itself if it has no such remote.
 * Throws a GitFetchError if another try may succeed, and an error if there is no such branch.
 */
export async function readBranchHead(
  run: RunGitIn,
  directory: string,
  path: string | undefined,
  branch: string,
): Promise<string> {
  const ref = `refs/heads/${branch}`;
  const missing = (where: string) =>
    new Error(
      `Cannot find the commit to test: ${where} has no branch ${JSON.stringify(branch.slice(0, 100))}; name a "commit" in the ` +
        `execution, or set "checkout: none" if the tests are in another repository`,
    );
  const hasOrigin = (await askGitIn(directory, path, ["config", "--get", "remote.origin.url"])) !== null;
  if (!hasOrigin) {
    const own = await askGitIn(directory, path, ["rev-parse", "--verify", "--quiet", "--end-of-options", ref]);
    return own ?? fail(missing("the checkout"));
  }
  const listed = await run(["ls-remote", "--exit-code", "--end-of-options", "origin", ref], directory);
  const hash = listed.output.split("\n").flatMap((line) => /^([0-9a-f]{40,64})\t(.*)$/.exec(line) ?? []);
  if (listed.exitCode === 0 && hash[2] === ref) return hash[1]!;
  if (listed.exitCode === 2) throw missing(`the remote "origin" of the checkout`);
  throw new GitFetchError("git cannot list the branches of the repository", listed);
}

/** Answers the full hash of HEAD; null where the directory is in no Git work tree, or there is no git. */
export async function readHead(directory: string, path: string | undefined): Promise<string | null> {
  const head = await askGitIn(directory, path, ["rev-parse", "--verify", "--quiet", "HEAD"]);
  return head !== null && /^[0-9a-f]{40,64}$/.test(head) ? head : null;
}

async function askGitIn(directory: string, path: string | undefined, args: readonly string[]): Promise<string | null> {
  try {
    const git = Bun.spawn(["git", ...args], {
      cwd: directory,
      env: { PATH: path ?? "", LC_ALL: "C" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
      timeout: GIT_TIMEOUT_MS,
    });
    const [text, exitCode] = await Promise.all([new Response(git.stdout).text(), git.exited]);
    return exitCode === 0 ? text.trim() : null;
  } catch {
    return null;
  }
}

/** Explains that `head` is not the commit that is to be tested; null if it is, or if either is unknown or no hash. */
export function mismatchOf(
  { commit, branch }: { commit: string | null; branch: string | null },
  head: string | null,
): string | null {
  if (commit === null || head === null || !/^[0-9a-f]{7,64}$/i.test(commit) || isSameCommit(commit, head)) return null;
  const wanted = `${commit.slice(0, 40)}${branch === null ? "" : ` of the branch ${JSON.stringify(branch.slice(0, 100))}`}`;
  return (
    `The working directory is at commit ${head.slice(0, 12)}, but the execution tests ${wanted}: check out "$ASSAY_COMMIT" in "before", ` +
    `or set "checkout: none" if the tests are in another repository`
  );
}

/** Number of commits that a report describes, and of characters of each: they are part of an address. */
const [DESCRIBED_COMMITS, MAX_LINE] = [10, 300];

/** Describes the tested commit and those before it, as lines of git. */
export async function describeTestedCommit(directory: string, path: string | undefined, head: string): Promise<string> {
  const output = await askGitIn(directory, path, [...gitLogOf(head, DESCRIBED_COMMITS), "--"]);
  return keepCommitLines(output ?? "", MAX_LINE);
}

function fail(error: Error): never {
  throw error;
}
