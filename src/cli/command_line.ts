/** A command line: finds the command, prints its help or its result, and sets the exit code. */

import packageJson from "../../package.json" with { type: "json" };
import { toPlainError } from "../file_failure.ts";
import { createInvocation, type EnvironmentVariables, type Invocation, type Io } from "./invocation.ts";
import { toPlainLines } from "./output.ts";
import { UsageError } from "./usage.ts";

export type Command = {
  /** The lines of the command in the usage text. */
  usage: string;
  /** Returns the help text; `words` follow the command. Undefined: the usage text is its help. */
  help?: (words: readonly string[]) => Promise<string>;
  /** Returns the command and its words that have a help text of their own; default: the command. */
  helpTopic?: (words: readonly string[]) => Promise<string>;
  /** Returns the exit code; undefined: 0. */
  run: (words: string[], invocation: Invocation) => Promise<number | void>;
};

/** Commands by name, in the order of the usage text. */
export type Commands = Readonly<Record<string, Command>>;

const HELP_WORDS = ["--help", "-h"];
const VERSION_WORDS = ["--version", "-V"];

/** Adds the commands that describe all commands. */
function withManual(commands: Commands): Commands {
  const all: Commands = {
    ...commands,
    completion: {
      usage: `  completion bash|zsh|fish
      print a script that completes commands and options in a shell`,
      help: async () => (await import("./completion.ts")).COMPLETION_HELP,
      run: async (...given) => await (await import("./completion.ts")).printCompletion(...given, all),
    },
    man: {
      usage: `  man
      print the manual page`,
      help: async () => (await import("./man.ts")).MAN_HELP,
      run: async (...given) => await (await import("./man.ts")).printManual(...given, all),
    },
    licenses: {
      usage: `  licenses
      print the licences of the software of others that this program contains`,
      help: async () =>
        "Usage: assay licenses\n\nPrints the licences of the software of others that this program contains.",
      run: async (words, { stdout }) => {
        if (words.length > 0) throw new UsageError(`Unknown option: ${words[0]}. licenses takes none`);
        await stdout.write(`${await (await import("../executable.ts")).readLicences()}\n`);
      },
    },
  };
  return all;
}

/** Returns the words of the command whose help is requested, or undefined. Options after "--" belong to a wrapped command. */
function findHelpRequest([command, ...rest]: readonly string[], commands: Commands): string[] | undefined {
  if (command === "help") return rest;
  if (command !== undefined && HELP_WORDS.includes(command)) return [];
  const end = rest.indexOf("--");
  const own = end === -1 ? rest : rest.slice(0, end);
  const hasTopics = command !== undefined && commands[command]?.helpTopic !== undefined;
  const isAsked = own.some((word) => HELP_WORDS.includes(word)) || (hasTopics && own[0] === "help");
  return command !== undefined && isAsked
    ? [command, ...own.filter((word) => !HELP_WORDS.includes(word) && word !== "help")]
    : undefined;
}

const usageOf = (commands: Commands): string => `Usage: assay COMMAND [options]

${Object.values(commands)
  .map(({ usage }) => usage)
  .join("\n")}

  -V, --version

Run "assay COMMAND --help" for the options of a command.`;

const find = (commands: Commands, name: string): Command | undefined =>
  Object.hasOwn(commands, name) ? commands[name] : undefined;

const helpOf = async ([name = "", ...words]: readonly string[], commands: Commands): Promise<string> =>
  (await find(commands, name)?.help?.(words)) ?? usageOf(commands);

/** Returns the command that prints the help for a wrong command line. */
async function helpCommand([name = "", ...words]: readonly string[], commands: Commands): Promise<string> {
  const command = find(commands, name);
  const topic = command?.help ? ((await command.helpTopic?.(words)) ?? name) : "";
  return ["assay", topic, "--help"].filter((word) => word !== "").join(" ");
}

async function run(args: readonly string[], commands: Commands, invocation: Invocation): Promise<number | void> {
  const help = findHelpRequest(args, commands);
  if (help) return await invocation.stdout.write(`${await helpOf(help, commands)}\n`);
  const [name, ...words] = args;
  if (name !== undefined && VERSION_WORDS.includes(name)) return invocation.print(packageJson.version);
  if (name === undefined) throw new UsageError("Missing command");
  const command = find(commands, name);
  if (!command) throw new UsageError(`Unknown command: ${name}`);
  return await command.run(words, invocation);
}

/** The exit code of a program that SIGPIPE ends. */
const BROKEN_PIPE_CODE = 141;

/** Whether the reader of our output has ended, such as `head`. */
const isClosedPipe = (error: unknown): boolean => {
  const { code, syscall } = Object(error) as { code?: string; syscall?: string };
  return code === "EPIPE" && syscall === "write";
};

/** Runs the command that the arguments name. Returns the exit code: 0, 1 if it failed, 2 for wrong usage, or the command's own code. */
export async function runCommandLine(
  own: Commands,
  args: readonly string[],
  environment: EnvironmentVariables,
  io: Io,
): Promise<number> {
  const invocation = createInvocation(environment, io);
  const commands = withManual(own);
  try {
    return (await run(args, commands, invocation)) ?? 0;
  } catch (error) {
    if (isClosedPipe(error)) return BROKEN_PIPE_CODE;
    const isUsage = error instanceof UsageError;
    const shown = toPlainError(error);
    // It may contain text of a server or a report.
    const message = shown instanceof Error ? shown.message : String(shown);
    const said = isUsage ? await (await import("./suggestion.ts")).addSuggestion(message, args, commands) : message;
    io.stderr.print(invocation.secrets.mask(toPlainLines(said)));
    if (isUsage) io.stderr.print(`Run "${await helpCommand(args, commands)}" for usage`);
    return isUsage ? 2 : 1;
  }
}
