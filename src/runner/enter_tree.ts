/** The first step of a task that has a repository: the commit is checked out, prepared and built. */

import { join } from "node:path";
import { quoted } from "../rules/shell.ts";
import type { Checkout, CheckoutConfig, Tree } from "./checkout.ts";
import type { TaskConfig } from "./config.ts";
import { GIT_ENVIRONMENT, GIT_OPTIONS, NoSuchCommitError, type RunGit } from "./git_clone.ts";
import type { GitRun, RetryFetch } from "./git_fetch.ts";
import type { RunnerLease } from "./protocol.ts";
import type { SettleCommit } from "./tested_commit.ts";

export type Run<Result = number> = (
  command: string,
  directory: string,
  stop: AbortSignal,
  more?: Record<string, string>,
) => Promise<Result>;

/** Where the task runs, once that is known. */
export type Place = { directory: string; tree?: Tree };

/** `note` writes a line into the log of the task. */
export type Runs = { run: Run; runGit: Run<GitRun>; retryFetch: RetryFetch; note: (text: string) => void };

type Entering = {
  lease: RunnerLease;
  config: TaskConfig;
  checkout?: Checkout | undefined;
  settleCommit: SettleCommit;
  stop: AbortSignal;
};
/** "failure": what the execution asks for cannot be run by any runner. */
type Problem =
  | { kind: "failure"; message: string; exitCode?: number; reason: "no_build" }
  | { kind: "infrastructure"; message: string; exitCode?: number };

/** Runs git with the settings of a checkout; its commands are logged and ended with the task. */
export const toRunGit = (runGit: Run<GitRun>, { lfs }: Pick<CheckoutConfig, "lfs">, stop: AbortSignal): RunGit => {
  const settings = { ...GIT_ENVIRONMENT, ...(lfs ? {} : { GIT_LFS_SKIP_SMUDGE: "1" }) };
  return (args, directory) => runGit(["git", ...GIT_OPTIONS, ...args].map(quoted).join(" "), directory, stop, settings);
};

/** Finds the commit if the execution names none, checks it out, and prepares and builds it where that has not been done. Answers how the task ends where that fails. */
export async function enterTree(
  { lease: { execution }, config, checkout, settleCommit, stop }: Entering,
  { run, runGit, retryFetch, note }: Runs,
  place: Place,
  quote: (command: string) => string,
): Promise<Problem | undefined> {
  const { git } = config;
  if (!git || !checkout) return undefined;
  try {
    const ofGit = toRunGit(runGit, git, stop);
    const { branch } = execution;
    execution.commit ??= await settleCommit(await retryFetch(() => checkout.resolveBranch(git, branch, ofGit), stop));
    place.tree = await retryFetch(() => checkout.take(git, execution, ofGit), stop);
  } catch (error) {
    const message = `Cannot check out: ${(error as Error).message}`;
    return error instanceof NoSuchCommitError
      ? { kind: "failure", message, reason: "no_build" }
      : { kind: "infrastructure", message };
  }
  const { directory, isPrepared, notes } = place.tree;
  for (const text of notes) note(text);
  place.directory = join(directory, config.workingDirectory);
  if (isPrepared) return undefined;
  for (const command of git.prepare) {
    const exitCode = await run(command, directory, stop);
    const message = `The prepare command ${quote(command)} ended with ${exitCode}`;
    if (exitCode !== 0) return { kind: "infrastructure", message, exitCode };
  }
  for (const command of git.build) {
    const exitCode = await run(command, directory, stop);
    const message = `The commit does not build: ${quote(command)} ended with ${exitCode}`;
    if (exitCode !== 0) return { kind: "failure", message, exitCode, reason: "no_build" };
  }
  await place.tree.prepared();
  return undefined;
}
