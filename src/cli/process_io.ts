/** The streams, working directory and signals of the process itself, for the programs `assay`. */

import { isatty } from "node:tty";
import { type EnvironmentVariables, type InputStream, type Io, type OutputStream, STOP_SIGNALS } from "./invocation.ts";
import { readHiddenLine } from "./terminal.ts";

type Main = (args: readonly string[], environment: EnvironmentVariables, io: Io) => Promise<number>;

/** Runs the command line of the process, and ends the process with its exit code. */
export async function runProcess(host: NodeJS.Process, main: Main): Promise<never> {
  const code = await main(host.argv.slice(2), host.env, createIo(host));
  host.exit(code);
}

const createIo = (host: NodeJS.Process): Io => ({
  directory: host.cwd(),
  stdin: createInput(host),
  stdout: createOutput(() => host.stdout, 1),
  stderr: createOutput(() => host.stderr, 2),
  onStopSignal(listener) {
    for (const signal of STOP_SIGNALS) host.on(signal, listener);
    return () => {
      for (const signal of STOP_SIGNALS) host.off(signal, listener);
    };
  },
});

const createInput = (host: NodeJS.Process): InputStream => ({
  isTerminal: isatty(0),
  text: () => new Response(Bun.stdin.stream()).text(),
  readHidden: (prompt) => readHiddenLine(prompt, host),
  ofChild: "inherit",
});

/** `stream` is only used to get its width: its `write` loses what does not fit into a pipe when the process ends. */
const createOutput = (stream: () => NodeJS.WriteStream, descriptor: 1 | 2): OutputStream => ({
  isTerminal: isatty(descriptor),
  get columns() {
    return isatty(descriptor) ? stream().columns : undefined;
  },
  print: descriptor === 1 ? (line) => console.log(line) : (line) => console.error(line),
  async write(data) {
    // Bun.write empties a file that it is given nothing for, with what others have written into it.
    if (data.length > 0) await Bun.write(descriptor === 1 ? Bun.stdout : Bun.stderr, data);
  },
  ofChild: "inherit",
});
