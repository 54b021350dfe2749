/** How a task has ended: by its report, the exit code or signal of its command, a limit, or trouble of the machine. */

import type { TaskConfig } from "./config.ts";
import type { ListingOutcome } from "./list_range.ts";
import { type FreeSpace, troubleOf } from "./machine_trouble.ts";
import type { RunnerLease } from "./protocol.ts";
import { absentReports, listPaths, type ReportFiles } from "./report_files.ts";
import { type TaskEnding, RUNNER_STOPPED } from "./task_limits.ts";

/** Files that a task has left for the run as a whole, by absolute path. */
type Artifacts = { directory: string; paths: string[] };

/** How a task ended, its processes being gone. */
export type TaskOutcome =
  | Extract<ListingOutcome, { kind: "commits" }>
  | {
      kind: "report";
      paths: string[];
      /** Where the task ran. */
      directory: string;
      /** The tested commit and those before it, as lines of git. */
      commitLines: string;
      /** Absent: the command did not end by itself. */
      exitCode?: number;
      /** Why it did not. */
      problem?: string;
      /** As for a failure: the report may be empty if the split gave the shard no files. */
      mayHaveNoFiles?: true;
      artifacts?: Artifacts;
    }
  | {
      kind: "failure";
      message: string;
      exitCode?: number;
      artifacts?: Artifacts;
      /** The commit cannot be checked out or built. */
      reason?: "no_build";
      /** The command has succeeded without a report, which is right if the split gave the shard no files. */
      mayHaveNoFiles?: true;
    }
  /** The machine could not run the task, which says nothing about its tests. */
  | { kind: "infrastructure"; message: string; exitCode?: number };

/** A task that the runner's stop has ended says nothing about its tests: another runner gets it. */
export const toStop = ({ message }: TaskEnding): TaskOutcome => ({
  kind: message === RUNNER_STOPPED ? "infrastructure" : "failure",
  message,
});

type TaskOfOutcome = {
  lease: Pick<RunnerLease, "shard">;
  config: TaskConfig;
  freeSpace?: ((path: string) => FreeSpace) | undefined;
};

type EndedTask = {
  exitCode: number;
  ending: TaskEnding | undefined;
  /** The signal that has ended the command. */
  signal: string | undefined;
  reports: ReportFiles;
  /** Lines of git. */
  commits: string;
  artifacts: { artifacts?: Artifacts };
};

/** How the task ends when its command has ended. */
export function toTaskOutcome(
  { lease, config, freeSpace }: TaskOfOutcome,
  { exitCode, ending, signal, reports: { fresh, stale }, commits, artifacts }: EndedTask,
): TaskOutcome {
  const directory = config.workingDirectory;
  if (ending?.isStop) return { ...toStop(ending), ...artifacts };
  const trouble = ending || exitCode === 0 ? null : troubleOf({ config, freeSpace }, exitCode, fresh.length > 0);
  const ownCode = signal === undefined ? { exitCode } : {};
  if (trouble !== null) return { kind: "infrastructure", message: trouble, ...ownCode };
  const interruption = ending?.message ?? (signal === undefined ? undefined : `The command was ended by ${signal}`);
  const mayHaveNoFiles = exitCode === 0 && lease.shard ? { mayHaveNoFiles: true as const } : {};
  if (fresh.length > 0) {
    const absent = exitCode === 0 ? absentReports(config.report, directory, fresh) : [];
    const problem = interruption ?? (absent.length > 0 ? `No report: ${listPaths(absent, directory)}` : undefined);
    // The results up to an interruption count, and what is missing makes the task fail.
    const end = problem === undefined ? { exitCode, ...mayHaveNoFiles } : { problem };
    return { kind: "report", paths: fresh, directory, commitLines: commits, ...end, ...artifacts };
  }
  const why =
    stale.length > 0
      ? `the report is older than the task: ${listPaths(stale, directory)}`
      : `no report: ${listPaths(config.report, directory)}`;
  if (interruption !== undefined)
    return { kind: "failure", message: ending ? ending.message : `${interruption}, ${why}`, ...artifacts };
  const message = `The command ended with ${exitCode}, ${why}`;
  return { kind: "failure", message, exitCode, ...mayHaveNoFiles, ...artifacts };
}
