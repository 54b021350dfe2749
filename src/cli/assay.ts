/** The command line: finds the command, prints its result, sets the exit code (0, 1 failed, 2 usage, or the command's own). */

import packageJson from "../../package.json" with { type: "json" };
import { ADMIN_USAGE, admin } from "./admin.ts";
import { createOutputMask, secretsOf, toPlainLines } from "./output.ts";
import { RUNNER_HELP, RUNNER_USAGE, runner } from "./runner.ts";
import { SPLIT_HELP, SPLIT_USAGE, split } from "./split.ts";
import { upload } from "./upload.ts";
import { UPLOAD_HELP, UPLOAD_USAGE } from "./upload_options.ts";
import { UsageError } from "./usage.ts";
import { WHY_HELP, WHY_USAGE, why } from "./why.ts";

const USAGE = `Usage: assay <command> [--json]

${UPLOAD_USAGE}
${SPLIT_USAGE}
${RUNNER_USAGE}
${WHY_USAGE}

${ADMIN_USAGE}

assay --version`;

/** Help texts of single commands. */
const HELPS = new Map([
  ["upload", UPLOAD_HELP],
  ["split", SPLIT_HELP],
  ["runner", RUNNER_HELP],
  ["why", WHY_HELP],
]);

/** Answers the exit code, where a command has one of its own. */
async function run([command, ...rest]: string[]): Promise<number | void> {
  if (command === "admin") return await admin(rest);
  if (command === "upload") return await upload(rest);
  if (command === "split") return await split(rest);
  if (command === "runner") return await runner(rest);
  if (command === "why") return await why(rest);
  if (command === "help" || command === "--help") return void console.log(USAGE);
  if (command === "--version") return void console.log(packageJson.version);
  throw new UsageError(command === undefined ? "Missing command" : `Unknown command: ${command}`);
}

try {
  process.exit((await run(process.argv.slice(2))) ?? 0);
} catch (error) {
  const usage = error instanceof UsageError;
  // It may hold what a server or a report says.
  const text = toPlainLines(error instanceof Error ? error.message : String(error));
  console.error(createOutputMask(secretsOf(process.env))(text));
  if (usage) console.error(`\n${HELPS.get(process.argv[2] ?? "") ?? USAGE}`);
  process.exit(usage ? 2 : 1);
}
