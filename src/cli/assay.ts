/** The command line: finds the command, prints its result, sets the exit code (0, 1 failed, 2 usage, or the command's own). */

import packageJson from "../../package.json" with { type: "json" };
import { ADMIN_USAGE, admin, adminHelp, adminHelpTopic } from "./admin.ts";
import { backup, BACKUP_HELP, BACKUP_USAGE } from "./backup.ts";
import { createOutputMask, secretsOf, toPlainLines } from "./output.ts";
import { restore, RESTORE_HELP, RESTORE_USAGE } from "./restore.ts";
import { RUNNER_HELP, RUNNER_USAGE, runner } from "./runner.ts";
import { SPLIT_HELP, SPLIT_USAGE, split } from "./split.ts";
import { upload } from "./upload.ts";
import { UPLOAD_HELP, UPLOAD_USAGE } from "./upload_options.ts";
import { UsageError } from "./usage.ts";
import { WHY_HELP, WHY_USAGE, why } from "./why.ts";

const USAGE = `Usage: assay COMMAND [options]

${UPLOAD_USAGE}
${SPLIT_USAGE}
${RUNNER_USAGE}
${WHY_USAGE}
${BACKUP_USAGE}
${RESTORE_USAGE}

${ADMIN_USAGE}

  --version

Run "assay COMMAND --help" for the options of a command. Admin commands, backup and restore take the same DATA_DIR or
DATABASE_URL as the server.`;

/** Help texts of single commands. */
const HELPS = new Map([
  ["upload", UPLOAD_HELP],
  ["split", SPLIT_HELP],
  ["runner", RUNNER_HELP],
  ["why", WHY_HELP],
  ["backup", BACKUP_HELP],
  ["restore", RESTORE_HELP],
]);

const HELP_WORDS = ["--help", "-h"];

/** Returns the words of the command whose help is asked for; undefined: none is. Options after "--" are those of a wrapped command. */
function findHelpRequest([command, ...rest]: string[]): string[] | undefined {
  if (command === "help") return rest;
  if (command !== undefined && HELP_WORDS.includes(command)) return [];
  const end = rest.indexOf("--");
  const own = end === -1 ? rest : rest.slice(0, end);
  const isAsked = own.some((word) => HELP_WORDS.includes(word)) || (command === "admin" && own[0] === "help");
  return command !== undefined && isAsked
    ? [command, ...own.filter((word) => !HELP_WORDS.includes(word) && word !== "help")]
    : undefined;
}

const helpOf = ([command = "", name]: string[]): string =>
  command === "admin" ? adminHelp(name) : (HELPS.get(command) ?? USAGE);

/** What to run for the help that belongs to a wrong command line. */
function helpCommand([command = "", name]: string[]): string {
  const topic = command === "admin" ? adminHelpTopic(name) : HELPS.has(command) ? command : "";
  return ["assay", topic, "--help"].filter((word) => word !== "").join(" ");
}

/** Answers the exit code, where a command has one of its own. */
async function run(args: string[]): Promise<number | void> {
  const help = findHelpRequest(args);
  if (help) return void (await Bun.write(Bun.stdout, `${helpOf(help)}\n`));
  const [command, ...rest] = args;
  if (command === "admin") return await admin(rest);
  if (command === "backup") return await backup(rest);
  if (command === "restore") return await restore(rest);
  if (command === "upload") return await upload(rest);
  if (command === "split") return await split(rest);
  if (command === "runner") return await runner(rest);
  if (command === "why") return await why(rest);
  if (command === "--version") return void console.log(packageJson.version);
  throw new UsageError(command === undefined ? "Missing command" : `Unknown command: ${command}`);
}

const args = process.argv.slice(2);
try {
  process.exit((await run(args)) ?? 0);
} catch (error) {
  const usage = error instanceof UsageError;
  // It may hold what a server or a report says.
  const text = toPlainLines(error instanceof Error ? error.message : String(error));
  console.error(createOutputMask(secretsOf(process.env))(text));
  if (usage) console.error(`Run "${helpCommand(args)}" for usage`);
  process.exit(usage ? 2 : 1);
}
