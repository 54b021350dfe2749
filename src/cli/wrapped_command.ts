/** Runs a command as if nobody stood around it: its streams are its own, signals reach it, its exit code is kept. */

import { constants } from "node:os";
import { isatty } from "node:tty";

/** As a shell says it: 128 + n for signal n, 127 where there is no such command, 126 where it cannot be executed. */
export type EndedCommand = {
  exitCode: number;
  /** Why the command could not be started. */
  problem?: string;
};

const STOPPING = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** What is a text without `#!` is for the shell, as execvp(3) has it. */
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

/** Who tells this process to stop tells the command, and not this process, which has an upload to finish or to leave. */
export type Stop = {
  /** Aborted as soon as somebody has told us to stop. */
  signal: AbortSignal;
  passTo: (child: Bun.Subprocess | undefined) => void;
};

/** From here on, for as long as the process lives. */
export function listenForStop(): Stop {
  const stop = new AbortController();
  let child: Bun.Subprocess | undefined;
  // What is typed at a terminal goes to everybody in the foreground: to hear it twice makes many a runner give up at once.
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
