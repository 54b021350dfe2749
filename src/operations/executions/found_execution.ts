/** Finds the execution of a build, or inserts it. */

import { isSameCommit } from "../../rules/commit.ts";
import type { Tx } from "../../database/connect.ts";
import { type BuildName, lockExecutionKey, lockExecutionOfBuild } from "../../store/execution_of_build.ts";
import type { LockedExecution } from "../../store/executions.ts";
import { insertExecution, type InsertExecution } from "../../store/new_executions.ts";

/** An execution, locked; what its caller should know of how it was found. */
export type FoundExecution = { execution: LockedExecution; isNew: boolean; warnings: string[] };

/**
 * In a transaction: the execution of a build, inserted when it is not there. A number is not a build: what names the same
 * key with another commit or branch is another one.
 */
export async function findOrInsertExecution(
  sql: Tx,
  projectId: string,
  fresh: InsertExecution,
): Promise<FoundExecution> {
  const { key, queueRef, commit, untrusted = false } = fresh;
  const branch = queueRef ?? fresh.branch;
  if (key === null) return { execution: await insertExecution(sql, projectId, fresh), isNew: true, warnings: [] };
  const build = { key, branch, commit, untrusted };
  // Before any execution with the key, as uploads do: a row that was waited for stays locked even when it does not match any
  // more, and whoever held it and then waited for the key would deadlock with an upload.
  await lockExecutionKey(sql, projectId, key);
  const known = await lockExecutionOfBuild(sql, projectId, build, fresh.now);
  if (known) return toFound(build, known);
  const { namesake, ...execution } = await insertExecution(sql, projectId, fresh);
  return { execution, isNew: true, warnings: namesake ? [otherBuild(build, namesake)] : [] };
}

/** As an upload or a client names it; neither key: it is one of its own. */
type NamedBuild = { key: string | null; branch?: string | null | undefined; commit?: string | null | undefined };

const toFound = (
  build: BuildName,
  { isUnclear, ...execution }: LockedExecution & { isUnclear: boolean },
): FoundExecution => ({ execution, isNew: false, warnings: warningsOf(build, { isUnclear }) });

export function warningsOf({ key, branch }: NamedBuild, { isUnclear }: { isUnclear: boolean }): string[] {
  if (!isUnclear) return [];
  const unnamed = branch == null ? "neither commit nor branch" : "no commit";
  return [
    `Several builds have the execution_key "${key}", and this upload names ${unnamed}: it was taken for the newest`,
  ];
}

/** Usually jobs of one build that name a merge commit and a head commit. */
export function otherBuild(
  { key, branch, commit }: NamedBuild,
  namesake: Pick<LockedExecution, "branch" | "commit">,
): string {
  const isCommit = commit != null && namesake.commit !== null && !isSameCommit(namesake.commit, commit);
  const [what, theirs, ours] = isCommit ? ["commit", namesake.commit, commit] : ["branch", namesake.branch, branch];
  return (
    `The execution_key "${key}" is known with ${what} "${theirs}", and this is ${what} "${ours}": ` +
    `it began another execution. The jobs of one build name the same ${what}${isCommit ? ", the head's" : ""}`
  );
}
