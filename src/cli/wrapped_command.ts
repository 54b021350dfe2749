/** Runs a command transparently: it keeps its streams, signals are forwarded to it, and its exit code is kept. */

import { constants } from "node:os";
import type { Invocation } from "./invocation.ts";

/** The exit code as in a shell: 128 + n for signal n, 127 if the command is not found, 126 if it cannot be executed. */
export type EndedCommand = {
  exitCode: number;
  /** Why the command could not be started. */
  problem?: string;
};

/** Starts a command. A text file without `#!` is run by the shell, as execvp(3) does. */
function spawn(command: string[], { environment, directory, stdin, stdout, stderr }: Invocation): Bun.Subprocess {
  const streams = { stdin: stdin.ofChild, stdout: stdout.ofChild, stderr: stderr.ofChild };
  const options = { ...streams, cwd: directory, env: environment };
  try {
    return Bun.spawn(command, options);
  } catch (error) {
    const path =
      (error as { code?: string }).code === "ENOEXEC"
        ? Bun.which(command[0]!, { cwd: directory, PATH: environment["PATH"] ?? "" })
        : null;
    if (path === null) throw error;
    return Bun.spawn(["/bin/sh", path, ...command.slice(1)], options);
  }
}

/** Forwards stop signals to the command. This process itself continues, to finish or skip the upload. */
export type Stop = {
  /** Aborted when a stop signal arrives. */
  signal: AbortSignal;
  passTo: (child: Bun.Subprocess | undefined) => void;
};

/** Listens from now on. */
export function listenForStop({ onStopSignal, stdin, stderr }: Invocation): Stop {
  const stop = new AbortController();
  let child: Bun.Subprocess | undefined;
  // A terminal sends SIGINT to the whole foreground group. Many test tools exit at once on a second one.
  const hearsItself = stdin.isTerminal || stderr.isTerminal;
  onStopSignal((signal) => {
    if (signal !== "SIGINT" || !hearsItself) child?.kill(signal);
    stop.abort();
  });
  return { signal: stop.signal, passTo: (next) => void (child = next) };
}

export async function runCommand(command: string[], stop: Stop, invocation: Invocation): Promise<EndedCommand> {
  try {
    const child = spawn(command, invocation);
    stop.passTo(child);
    await child.exited;
    stop.passTo(undefined);
    const { signalCode, exitCode } = child;
    return { exitCode: signalCode === null ? exitCode! : 128 + constants.signals[signalCode as NodeJS.Signals] };
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    return { exitCode: code === "ENOENT" ? 127 : 126, problem: `Cannot run "${command[0]}": ${message}` };
  }
}
