/** The commit that is checked out where a task runs, compared with the one that its execution asks for. */

import { isSameCommit } from "../rules/commit.ts";

const GIT_TIMEOUT_MS = 10_000;

/** Answers the full hash of HEAD; null where the directory is in no Git work tree, or there is no git. */
export async function readHead(directory: string, path: string | undefined): Promise<string | null> {
  try {
    const git = Bun.spawn(["git", "rev-parse", "--verify", "--quiet", "HEAD"], {
      cwd: directory,
      env: { PATH: path ?? "", LC_ALL: "C" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
      timeout: GIT_TIMEOUT_MS,
    });
    const [text, exitCode] = await Promise.all([new Response(git.stdout).text(), git.exited]);
    const head = text.trim();
    return exitCode === 0 && /^[0-9a-f]{40,64}$/.test(head) ? head : null;
  } catch {
    return null;
  }
}

/** Explains that `head` is not the commit that was asked for; null if it is, or if either is unknown or no hash. */
export function mismatchOf(asked: string | null, head: string | null): string | null {
  if (asked === null || head === null || !/^[0-9a-f]{7,64}$/i.test(asked) || isSameCommit(asked, head)) return null;
  return (
    `The working directory is at commit ${head.slice(0, 12)}, but the execution names ${asked.slice(0, 40)}: check it out in "before", ` +
    `or set "checkout: none" if the tests are in another repository`
  );
}
