/** The command line: finds the command, prints its result, sets the exit code (0, 1 failed, 2 usage). */

import { ADMIN_USAGE, admin } from "./admin.ts";
import { UsageError } from "./usage.ts";

const USAGE = `Usage: bun run assay <command> [--json]

${ADMIN_USAGE}`;

async function run([command, ...rest]: string[]): Promise<void> {
  if (command === "admin") return await admin(rest);
  if (command === "help" || command === "--help") return void console.log(USAGE);
  throw new UsageError(command === undefined ? "A command is missing" : `No such command: ${command}`);
}

try {
  await run(process.argv.slice(2));
  process.exit(0);
} catch (error) {
  const usage = error instanceof UsageError;
  console.error(error instanceof Error ? error.message : String(error));
  if (usage) console.error(`\n${USAGE}`);
  process.exit(usage ? 2 : 1);
}
