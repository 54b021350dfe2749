/** A command gets these from its caller. Besides its arguments, it knows nothing else of the process that it runs in. */

import { resolve } from "node:path";
import { createSecrets, type SecretSet, toPlainLine } from "./output.ts";

export type EnvironmentVariables = Readonly<Record<string, string | undefined>>;

/** The stream of a child process: the one of this process, or an open file. */
type ChildStream = "inherit" | number;

export type InputStream = {
  isTerminal: boolean;
  /** Reads to the end. */
  text(): Promise<string>;
  /** Shows the prompt and reads a line that is not shown while it is typed. Only for a terminal. */
  readHidden(prompt: string): Promise<string>;
  ofChild: ChildStream;
};

export type OutputStream = {
  isTerminal: boolean;
  /** The width of the terminal; undefined: unknown. */
  columns: number | undefined;
  /** Writes a line at once. Does nothing if the reader has ended. */
  print(line: string): void;
  /** Rejects with EPIPE if the reader has ended. */
  write(data: string | Uint8Array): Promise<void>;
  ofChild: ChildStream;
};

export const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
export type StopSignal = (typeof STOP_SIGNALS)[number];

export type Io = {
  /** The working directory: relative paths of options and variables begin here. */
  directory: string;
  stdin: InputStream;
  stdout: OutputStream;
  stderr: OutputStream;
  /** Calls the listener for each stop signal until the returned function is called. Without a listener, a signal ends the process. */
  onStopSignal(listener: (signal: StopSignal) => void): () => void;
};

/** The environment and directory that CI systems, git and the configuration are read from. */
export type BuildContext = Pick<Invocation, "environment" | "directory">;

export type Invocation = Io & {
  environment: EnvironmentVariables;
  secrets: SecretSet;
  /** Prints on stdout, without secrets. */
  print(line: string): void;
  /** Prints one line for people on stderr, without secrets. */
  say(message: string): void;
};

/**
 * Returns the path of a file as given, if that leads there from the directory of the process, so that messages name it as the user does.
 */
export function locate({ directory }: Pick<Invocation, "directory">, file: string): string {
  const path = resolve(directory, file);
  return path === resolve(file) ? file : path;
}

export function createInvocation(environment: EnvironmentVariables, io: Io): Invocation {
  const secrets = createSecrets(environment);
  return {
    ...io,
    environment,
    secrets,
    print: (line) => io.stdout.print(secrets.mask(line)),
    say: (message) => io.stderr.print(secrets.mask(toPlainLine(message))),
  };
}
