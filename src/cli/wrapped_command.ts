/** Runs a command transparently: it keeps its streams, signals are forwarded to it, and its exit code is kept. */

import { constants } from "node:os";
import { isatty } from "node:tty";

/** The exit code as in a shell: 128 + n for signal n, 127 if the command is not found, 126 if it cannot be executed. */
export type EndedCommand = {
  exitCode: number;
  /** Why the command could not be started. */
  problem?: string;
};

const STOPPING = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Starts a command. A text file without `#!` is run by the shell, as execvp(3) does. */
function spawn(command: string[]): Bun.Subprocess<"inherit", "inherit", "inherit"> {
  const options = { stdin: "inherit", stdout: "inherit", stderr: "inherit" } as const;
  try {
    return Bun.spawn(command, options);
  } catch (error) {
    const path = (error as { code?: string }).code === "ENOEXEC" ? Bun.which(command[0]!) : null;
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

/** Installs the signal handlers, for the lifetime of the process. */
export function listenForStop(): Stop {
  const stop = new AbortController();
  let child: Bun.Subprocess | undefined;
  // A terminal sends SIGINT to the whole foreground group. Many test tools exit at once on a second one.
  const hearsItself = isatty(0) || isatty(2);
  for (const signal of STOPPING)
    process.on(signal, () => {
      if (signal !== "SIGINT" || !hearsItself) child?.kill(signal);
      stop.abort();
    });
  return { signal: stop.signal, passTo: (next) => void (child = next) };
}

export async function runCommand(command: string[], stop: Stop): Promise<EndedCommand> {
  try {
    const child = spawn(command);
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
