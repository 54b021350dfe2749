/** Runs commands of `assay` in this process with an environment, a folder, streams and signals of their own, or as a program. */

import { expect } from "bun:test";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Io, OutputStream, StopSignal } from "../src/cli/invocation.ts";
import { main } from "../src/cli/main.ts";
import { createPlace, guardProcess } from "./places.ts";

export type Variables = Record<string, string>;
type Project = { project: string; key: string };

export type CommandOptions = {
  /** Added to a PATH and to a home that is in no repository. An empty text is as good as none. */
  env?: Variables | undefined;
  /** Default: an empty folder. */
  cwd?: string | undefined;
  stdin?: string | undefined;
};

export type Ended = { code: number; output: string; errors: string };

export type Started = {
  ended: Promise<Ended>;
  /** What it has written so far. */
  output(): string;
  errors(): string;
  signal(name: StopSignal): void;
};

/** The program. */
export const SOURCE = join(import.meta.dir, "../src/cli/assay.ts");

/** The folder of all files of the commands. Test files share it: the guard of the run removes it. */
export const home = createPlace("commands");

let count = 0;
/** Creates a folder with files, by their paths in it. */
export function createFolder(files: Record<string, string | Uint8Array> = {}): string {
  const folder = join(home, String(++count));
  mkdirSync(folder);
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  return folder;
}

/** The variables that name a project of a server. */
export const variablesOf = (url: string, { project, key }: Project): Variables => ({
  ASSAY_URL: url,
  ASSAY_PROJECT: project,
  ASSAY_KEY: key,
});

const environmentOf = ({ env }: CommandOptions): Variables => ({
  PATH: process.env["PATH"]!,
  HOME: home,
  GIT_CEILING_DIRECTORIES: home,
  ...env,
});

/** Whatever a command prints, it never prints the key. */
function requireNoKey({ output, errors }: Ended, { ASSAY_KEY: key = "" }: Variables): void {
  if (key.trim() !== "") expect(output + errors).not.toContain(key);
}

/** Files, because the programs that a command starts write into them as well. */
function createStream(name: string) {
  const path = join(home, `${name}-${++count}`);
  const descriptor = openSync(path, "a+");
  const write = (data: string | Uint8Array) => void writeSync(descriptor, data as string);
  const output: OutputStream = {
    ...{ isTerminal: false, columns: undefined, ofChild: descriptor },
    print: (line) => write(`${line}\n`),
    write: async (data) => write(data),
  };
  return { output, text: () => readFileSync(path, "utf8"), close: () => closeSync(descriptor) };
}

/** Starts a command. It ends by itself, or after a signal. */
export function start(args: readonly string[], options: CommandOptions = {}): Started {
  const environment = environmentOf(options);
  const [stdout, stderr] = [createStream("stdout"), createStream("stderr")];
  const input = join(home, `stdin-${++count}`);
  writeFileSync(input, options.stdin ?? "");
  const stdin = openSync(input, "r");
  const listeners = new Set<(signal: StopSignal) => void>();
  const io: Io = {
    directory: options.cwd ?? createFolder(),
    stdin: {
      ...{ isTerminal: false, ofChild: stdin },
      text: async () => options.stdin ?? "",
      readHidden: () => Promise.reject(new Error("There is no terminal")),
    },
    ...{ stdout: stdout.output, stderr: stderr.output },
    onStopSignal(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const ended = main(args, environment, io).then((code) => {
    const end = { code, output: stdout.text(), errors: stderr.text() };
    for (const close of [stdout.close, stderr.close, () => closeSync(stdin)]) close();
    requireNoKey(end, environment);
    return end;
  });
  return {
    ended,
    output: stdout.text,
    errors: stderr.text,
    signal: (name) => listeners.forEach((listener) => listener(name)),
  };
}

/** Runs a command to its end. */
export const run = (args: readonly string[], options?: CommandOptions): Promise<Ended> => start(args, options).ended;

export type StartedProgram = Omit<Started, "signal"> & { child: Bun.Subprocess; signal(name: NodeJS.Signals): void };

/** Starts the program `assay` as a process; for what only a process shows. */
export function startProgram(args: readonly string[], options: CommandOptions = {}): StartedProgram {
  const environment = environmentOf(options);
  const child = Bun.spawn([process.execPath, SOURCE, ...args], {
    ...{ cwd: options.cwd ?? createFolder(), env: environment, stdin: new Blob([options.stdin ?? ""]) },
    ...{ stdout: "pipe", stderr: "pipe" },
  });
  guardProcess(child);
  let [output, errors] = ["", ""];
  const read = async (stream: ReadableStream<Uint8Array>, add: (text: string) => void) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) add(decoder.decode(chunk, { stream: true }));
  };
  const reading = [read(child.stdout, (text) => (output += text)), read(child.stderr, (text) => (errors += text))];
  const ended = Promise.all([child.exited, ...reading]).then(([code]) => {
    const end = { code, output, errors };
    requireNoKey(end, environment);
    return end;
  });
  return { child, ended, output: () => output, errors: () => errors, signal: (name) => child.kill(name) };
}
