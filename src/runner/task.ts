/** One lease at work: its commands, one after the other, and how it ended. */

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cgroups } from "./cgroups.ts";
import type { Checkout } from "./checkout.ts";
import { enterTree, type Place, type Run, type Runs, toRunGit } from "./enter_tree.ts";
import { requireDirectory, runTaskCommand } from "./command.ts";
import type { TaskConfig } from "./config.ts";
import { environmentOf, LEASE_VARIABLE } from "./environment.ts";
import { type AskFiles, QUEUE_VARIABLE, serveFileQueue } from "./file_queue.ts";
import { collectOutput, createFetchRetry, type FetchRetries, type GitRun } from "./git_fetch.ts";
import { startGuard } from "./processes.ts";
import type { FreeSpace } from "./machine_trouble.ts";
import { listLeaseRange } from "./list_range.ts";
import type { Mask } from "../secrets/mask.ts";
import type { RunnerLease } from "./protocol.ts";
import { watchReports } from "./report_files.ts";
import { commandOf } from "./task_command.ts";
import { type TaskLimits, watchTask } from "./task_limits.ts";
import { toLogNote } from "./task_log.ts";
import { type TaskOutcome, toTaskOutcome, toStop } from "./task_outcome.ts";
import { describeTestedCommit, mismatchOf, readBranchHead, readHead, type SettleCommit } from "./tested_commit.ts";

/** Names the file with the plan of the shard, for `assay split`. */
const PLAN_VARIABLE = "ASSAY_PLAN";
/** For clearing up, all together: the server waits for the report meanwhile. */
const AFTER_SECONDS = 120;

/** The maximum length of a command in a message, in characters. */
const MAX_QUOTED = 200;
/** The maximum number of variables in a message. */
const MAX_NAMES = 20;

export type TaskOptions = {
  lease: RunnerLease;
  config: TaskConfig;
  /** The plan of a shard, as the server answered it. */
  plan?: string | undefined;
  /** For `assay split` in the task; undefined: the server does not split it. */
  askFiles?: AskFiles | undefined;
  settleCommit: SettleCommit;
  /** The runner's environment. */
  host: Record<string, string | undefined>;
  onOutput: (bytes: Uint8Array) => void;
  /** For what a message tells of the task's commands. */
  mask: Mask;
  /** For a rerun: what runs, and why it is more than the failed tests; the task's log has it as well. */
  onNote: (note: string) => void;
  /** Ends it; the reason is why, a text. */
  stop: AbortSignal;
  /** Ends it at once: nobody waits for what it clears up. */
  hurry: AbortSignal;
  graceMs: number;
  /** undefined: the system has none. */
  cgroups: Cgroups | undefined;
  /** Descriptors of locks, which last until the processes of the task are gone, also if the runner is killed. */
  locks?: readonly number[];
  /** For a task with `git`: the runner's clone of its repository. */
  checkout?: Checkout | undefined;
  /** Gets what gives the work tree back, once nobody reads the report in it any more. */
  onTree?: (release: () => void) => void;
  /** How much may still be written where the path is; default: as the file system says. */
  freeSpace?: (path: string) => FreeSpace;
  /** How often a failed fetch of the repository is tried again. */
  fetchRetries?: FetchRetries;
};

/** Never rejects. */
export async function runTask(options: TaskOptions): Promise<TaskOutcome> {
  const { taskSlug } = options.lease;
  try {
    const folder = mkdtempSync(join(tmpdir(), "assay-runner-"));
    try {
      return await runIn(folder, options);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  } catch (error) {
    return cannotRun(error, taskSlug);
  }
}

const cannotRun = (error: unknown, taskSlug: string): TaskOutcome => ({
  kind: "infrastructure",
  message: `Cannot run the task ${JSON.stringify(taskSlug)}: ${(error as Error).message}`,
});

async function runIn(folder: string, given: TaskOptions): Promise<TaskOutcome> {
  // It gets the commit that is found for the branch.
  const lease = { ...given.lease, execution: { ...given.lease.execution } };
  const options = { ...given, lease };
  const { config, plan, host, onOutput, hurry, graceMs } = options;
  const refused = refusedNames(lease, config);
  if (refused.length > 0) return { kind: "failure", message: tellRefused(refused, lease.taskSlug) };
  const mark = `${LEASE_VARIABLE}=${lease.id}`;
  const cgroup = options.cgroups?.create();
  const guard = startGuard(mark, host["PATH"], cgroup, options.locks);
  const planPath = join(folder, "plan.json");
  if (plan !== undefined) writeFileSync(planPath, plan);
  const seconds = Math.min(lease.timeoutSeconds, config.timeoutSeconds ?? lease.timeoutSeconds);
  const { silenceSeconds } = config;
  const limits = watchTask({ stop: options.stop, seconds, silenceSeconds }, (message) => note(message));
  const { askFiles } = options;
  const queue = askFiles && serveFileQueue(folder, (...asked) => limits.waiting(() => askFiles(...asked)));
  const own = {
    ...(plan === undefined ? {} : { [PLAN_VARIABLE]: planPath }),
    ...(queue ? { [QUEUE_VARIABLE]: queue.path } : {}),
  };
  let signal: string | undefined;
  const shared = {
    mark,
    guard,
    cgroup,
    folder,
    onOutput: (bytes: Uint8Array) => {
      limits.heard();
      onOutput(bytes);
    },
    onSignal: (by: string) => void (signal = by),
    hurry,
    graceMs,
  };
  const note = (text: string) => shared.onOutput(toLogNote(text));
  const run: Run = async (command, directory, stop, more) => {
    signal = undefined;
    // The commit of the lease is found before the first command of the task.
    const environment = { ...environmentOf(lease, host, config.pass), ...own, ...more };
    const exitCode = await limits.running(() => runTaskCommand({ ...shared, directory, environment, command, stop }));
    if (signal !== undefined && !stop.aborted) note(`The command was ended by ${signal}`);
    return exitCode;
  };
  // Nothing of the execution: it must not say how git reaches the repository.
  const ofGit = environmentOf({ ...lease, variables: {} }, host, config.pass);
  const runGit: Run<GitRun> = async (command, directory, stop, more) => {
    const { onOutput, end } = collectOutput(options.mask, shared.onOutput);
    const environment = { ...ofGit, ...more };
    const exitCode = await runTaskCommand({ ...shared, onOutput, directory, environment, command, stop });
    return { exitCode, output: end() };
  };
  const runs = { run, runGit, note, retryFetch: createFetchRetry(note, options.fetchRetries) };
  const place: Place = { directory: config.workingDirectory };
  const end = await runAll(options, runs, place, { limits, endedBy: () => signal }, join(folder, "rerun"))
    .catch((error) => {
      const ending = limits.ending();
      return ending ? toStop(ending) : cannotRun(error, lease.taskSlug);
    })
    .finally(() => {
      limits.end();
      return queue?.stop();
    });
  const late = AbortSignal.timeout(AFTER_SECONDS * 1000);
  for (const command of lease.commits ? [] : config.after) await run(command, place.directory, late).catch(() => {});
  if (place.tree) options.onTree?.(place.tree.release);
  await cgroup?.remove();
  guard.release();
  return end;
}

/** Many variables make programs run code that is in them: what may be set is for whoever wrote assay.yaml to say. */
function refusedNames({ executionNames }: RunnerLease, { accept }: TaskConfig): string[] {
  return executionNames.filter((name) => !accept.includes(name)).sort();
}

function tellRefused(names: readonly string[], taskSlug: string): string {
  const shown = names.slice(0, MAX_NAMES).map((name) => JSON.stringify(name));
  if (names.length > MAX_NAMES) shown.push(`${names.length - MAX_NAMES} more`);
  const task = `task ${JSON.stringify(taskSlug)}`;
  return `The execution sets ${shown.join(", ")}, which the ${task} does not accept: list the variables that an execution may set in "accept" in assay.yaml`;
}

async function runAll(
  options: TaskOptions,
  runs: Runs,
  place: Place,
  { limits, endedBy }: { limits: TaskLimits; endedBy: () => string | undefined },
  listPath: string,
): Promise<TaskOutcome> {
  const { lease, mask } = options;
  const { run } = runs;
  const stop = limits.signal;
  let { config } = options;
  // Cut afterwards: the half of a secret is none that is known.
  const quote = (command: string) => {
    const text = mask.text(command);
    return JSON.stringify(text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…`.toWellFormed() : text);
  };
  /** How the task ends if it ends now, whatever its commands have said. */
  const stopped = (): TaskOutcome | undefined => {
    const ending = limits.ending();
    return ending && toStop(ending);
  };
  if (lease.commits) {
    const listed = await listLeaseRange({ ...options, stop }, runs);
    return stopped() ?? listed;
  }
  const isOut = await enterTree({ ...options, stop }, runs, place, quote);
  if (isOut) return stopped() ?? isOut;
  config = { ...config, workingDirectory: place.directory };
  const tested = { ...options, config, stop };
  await findCommit(tested, runs, await readTestedHead(tested));
  for (const command of config.before) {
    const exitCode = await run(command, place.directory, stop);
    const end = stopped();
    if (end) return end;
    if (exitCode !== 0) {
      const message = `The before command ${quote(command)} ended with ${exitCode}`;
      return { kind: "infrastructure", message, exitCode };
    }
  }
  requireDirectory(config.workingDirectory);
  const head = await readTestedHead(tested);
  await findCommit(tested, runs, head);
  if (head !== null) lease.execution.commit ??= await options.settleCommit(head);
  const mismatch = mismatchOf(lease.execution, head);
  if (mismatch !== null) return { kind: "infrastructure", message: mismatch };
  // Tests may leave another commit behind.
  const commits = head === null ? "" : await describeTestedCommit(config.workingDirectory, options.host["PATH"], head);
  const look = watchReports(config.report, config.workingDirectory);
  const lookForArtifacts = watchReports(config.artifacts, config.workingDirectory);
  const { command, environment, unselectable } = commandOf({ ...options, config }, listPath);
  if (unselectable !== undefined) return { kind: "failure", message: unselectable };
  const exitCode = await run(command, place.directory, stop, environment);
  const ending = limits.ending();
  const paths = lookForArtifacts().fresh;
  return toTaskOutcome(tested, {
    ...{ exitCode, ending, signal: endedBy(), reports: look(), commits },
    artifacts: paths.length > 0 ? { artifacts: { directory: place.directory, paths } } : {},
  });
}

/** Returns the commit that is checked out where the task runs; null: none, or it does not matter. */
const readTestedHead = async ({ config, host }: TaskOptions): Promise<string | null> =>
  config.comparesCommit && existsSync(config.workingDirectory)
    ? await readHead(config.workingDirectory, host["PATH"])
    : null;

/** For an execution that names a branch and no commit: the newest commit of the branch, once there is a checkout to ask. */
async function findCommit(
  { lease: { execution }, config, host, settleCommit, stop }: TaskOptions,
  { runGit, retryFetch }: Runs,
  head: string | null,
): Promise<void> {
  const { branch } = execution;
  if (execution.commit !== null || branch === null || head === null) return;
  const run = toRunGit(runGit, { lfs: true }, stop);
  const read = () => readBranchHead(run, config.workingDirectory, host["PATH"], branch);
  execution.commit = await settleCommit(await retryFetch(read, stop));
}
