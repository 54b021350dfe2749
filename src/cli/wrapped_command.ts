/** Runs a command transparently: it keeps its streams, signals are forwarded to it, and its exit code is kept. */

import { constants } from "node:os";
import { basename } from "node:path";
import type { Invocation } from "./invocation.ts";

export type EndedCommand = {
  /** The exit code as in a shell: 128 + n for signal n, 127 if the command is not found, 126 if it cannot be executed. */
  exitCode: number;
  /** Why the exit code is not the command's: it could not be started, or a signal or a time limit has ended it. */
  problem?: string;
  /** False if a signal has ended it. */
  isOwnCode: boolean;
};

/** The exit code of timeout(1) when the time was over. */
const TIMEOUT_CODE = 124;

/** Returns the time limit of a command of timeout(1): "60" of `timeout -k 5 60 npm test`. */
function timeLimitOf([program, ...args]: readonly string[]): string | undefined {
  if (!/^g?timeout$/.test(basename(program!))) return undefined;
  return args.find(
    (arg, index) =>
      /^\d+(?:\.\d+)?[smhd]?$/.test(arg) && !/^(?:-k|-s|--kill-after|--signal)$/.test(args[index - 1] ?? ""),
  );
}

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
    if (signalCode !== null)
      return {
        exitCode: 128 + constants.signals[signalCode as NodeJS.Signals],
        problem: `The command was ended by ${signalCode}`,
        isOwnCode: false,
      };
    const limit = exitCode === TIMEOUT_CODE ? timeLimitOf(command) : undefined;
    return {
      exitCode: exitCode!,
      ...(limit === undefined ? {} : { problem: `Timed out after ${/\d$/.test(limit) ? `${limit} s` : limit}` }),
      isOwnCode: true,
    };
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    const problem = `Cannot run "${command[0]}": ${message}`;
    return { exitCode: code === "ENOENT" ? 127 : 126, problem, isOwnCode: true };
  }
}
