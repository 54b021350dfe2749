/** Runs one command of a task in a process group of its own, its output in order, until none of its processes is left. */

import { closeSync, constants as files, existsSync, openSync, statSync, unlinkSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import type { TaskCgroup } from "./cgroups.ts";
import { endProcesses, type ProcessFamily, type Guard } from "./processes.ts";

/** Below the runner, which must go on telling the server that it is there. */
const NICENESS = "10";
/** A process that we cannot reach may hold the output open. */
const DRAIN_MS = 2_000;

export type CommandOptions = {
  /** For `sh -c`. */
  command: string;
  directory: string;
  environment: Record<string, string>;
  mark: string;
  guard: Guard;
  cgroup: TaskCgroup | undefined;
  /** A folder of the runner's own for this task. */
  folder: string;
  onOutput: (bytes: Uint8Array) => void;
  /** Gets the signal that has ended the command, which then has no exit code of its own. */
  onSignal?: (signal: string) => void;
  /** Ends it. */
  stop: AbortSignal;
  /** Ends it at once. */
  hurry: AbortSignal;
  graceMs: number;
};

/**
 * Answers the exit code, 128 and more for signals. Rejects where the command cannot be started: its directory is missing,
 * for instance. What it has left running when it ends is ended as well.
 */
export async function runTaskCommand(options: CommandOptions): Promise<number> {
  const { directory, environment, mark, guard, cgroup, onOutput, stop, hurry, graceMs } = options;
  requireDirectory(directory);
  const output = await createPipe(options.folder);
  let child: Bun.Subprocess;
  try {
    const nice = Bun.which("nice");
    const command = [...(nice ? [nice, "-n", NICENESS] : []), "/bin/sh", "-c", options.command];
    child = Bun.spawn(cgroup ? cgroup.wrap(command) : command, {
      cwd: directory,
      env: environment,
      detached: true,
      stdin: "ignore",
      stdout: output.writer,
      stderr: output.writer,
    });
  } catch (error) {
    closeSync(output.reader);
    throw error;
  } finally {
    closeSync(output.writer);
  }
  const family: ProcessFamily = { mark, groups: new Set([child.pid]), cgroup };
  guard.add(child.pid);
  const reading = read(output.reader, onOutput);

  const stopped = Promise.withResolvers<void>();
  const onStop = () => stopped.resolve();
  stop.addEventListener("abort", onStop);
  if (stop.aborted) onStop();
  await Promise.race([child.exited, stopped.promise]);
  stop.removeEventListener("abort", onStop);
  await endProcesses(family, graceMs, hurry);
  await Promise.race([child.exited, Bun.sleep(DRAIN_MS)]);
  await reading.end(DRAIN_MS);
  if (child.signalCode) {
    options.onSignal?.(String(child.signalCode));
    return 128 + constants.signals[child.signalCode as NodeJS.Signals];
  }
  // Not ended even by SIGKILL: it hangs in the kernel.
  return child.exitCode ?? 128 + constants.signals.SIGKILL;
}

/** Throws an error that names it where it is not there: the system's words for that name the program instead. */
export function requireDirectory(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new Error(
    `its working directory ${JSON.stringify(path)} is ${existsSync(path) ? "not a directory" : "missing"}`,
  );
}

/**
 * A pipe, which Bun's "pipe" is not: a socket cannot be opened as /dev/stdout, which scripts do. Both streams share it, so
 * what they say stays in its order.
 */
async function createPipe(folder: string): Promise<{ reader: number; writer: number }> {
  const path = join(folder, `output-${crypto.randomUUID()}`);
  const made = Bun.spawn(["mkfifo", "-m", "600", path], { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  if ((await made.exited) !== 0) throw new Error((await new Response(made.stderr).text()).trim());
  const reader = openSync(path, files.O_RDONLY | files.O_NONBLOCK);
  const writer = openSync(path, files.O_WRONLY);
  unlinkSync(path);
  return { reader, writer };
}

function read(descriptor: number, onOutput: (bytes: Uint8Array) => void) {
  const reader = Bun.file(descriptor).stream().getReader();
  const done = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onOutput(value);
    }
  })();
  return {
    /** All that is there is read first; after so long nobody waits for more. */
    async end(ms: number): Promise<void> {
      await Promise.race([done, Bun.sleep(ms).then(() => reader.cancel())]);
      closeSync(descriptor);
    },
  };
}
