/** Collects reasons other than failing tests why a task is red; `wording/reasons.ts` puts them into words. */

import type { TaskStatus } from "../schema/executions.ts";

/** The problems of the latest uploads of a run. */
export type Flaws = {
  /** A report broke off. */
  brokeOff: boolean;
  /** The number of failures that stand for a test runner that failed although none of its tests did. */
  standIns: number;
  /** The exit code of that runner, or null. */
  exitCode: number | null;
  /** The message of such a failure. */
  says: string | null;
  /** The number of tests that failed in the build and have no result in this rerun of it. */
  notRerun: number;
};

export type TaskEnd = {
  slug: string;
  status: TaskStatus;
  attempt: number;
  /** As announced. */
  shards: number;
  /** Those that uploads have named. */
  namedShards: readonly number[];
  completedAt: string | null;
  failed: number;
  verdict: "passed" | "failed" | null;
  /** The reason stored when the task ended. */
  reason: string | null;
  /** null: the run is not red. */
  flaws: Flaws | null;
};

/** `attempts` are the latest of each shard, `says` is the message of their stand-in, if known. */
export const flawsOf = (
  attempts: readonly { partial: boolean; exitCase: number | null; exitCode: number | null }[],
  says: string | null,
  notRerun = 0,
): Flaws => {
  const standIns = attempts.filter(({ exitCase }) => exitCase !== null);
  return {
    brokeOff: attempts.some(({ partial }) => partial),
    standIns: standIns.length,
    exitCode: standIns.find(({ exitCode }) => exitCode !== null)?.exitCode ?? null,
    says: standIns.length === 0 ? null : says,
    notRerun,
  };
};
