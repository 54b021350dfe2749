/** The program `assay`: all commands, those of the server included. */

import { WORKER_COMMAND } from "../executable.ts";
import { ADMIN_USAGE, admin, adminHelp, adminHelpTopic } from "./admin.ts";
import { backup, BACKUP_HELP, BACKUP_USAGE } from "./backup.ts";
import { CLIENT_COMMANDS } from "./client_commands.ts";
import { runCommandLine } from "./command_line.ts";
import { doctor, DOCTOR_HELP, DOCTOR_USAGE } from "./doctor.ts";
import { HEALTH_HELP, HEALTH_USAGE, checkHealth } from "./health.ts";
import { UsageError } from "./usage.ts";
import { restore, RESTORE_HELP, RESTORE_USAGE } from "./restore.ts";

const START_HELP = `Usage: assay start

Starts the server. It takes no options. These environment variables are set most often:

  PORT, HOST         the address that it listens on (default: 8080, 127.0.0.1)
  DATA_DIR           the directory of the built-in PostgreSQL and of attachments (default: ./data)
  DATABASE_URL       a PostgreSQL of your own, in place of the built-in one
  PUBLIC_URL         the address under which others reach the server
  SECRET_KEY         the key that encrypts secrets (default: generated in DATA_DIR)
  LOG_LEVEL          debug, info, warn or error (default: info)

All variables: docs/configuration.md. Checks of a configuration: assay doctor.`;

await runCommandLine({
  start: {
    usage: "  start\n      start the server",
    help: () => START_HELP,
    // The program of the server ends the process itself.
    run: async (words) => {
      if (words.length > 0)
        throw new UsageError(`Unknown option: ${words[0]}. start takes none: set variables, such as PORT and DATA_DIR`);
      await import("../main.ts");
    },
  },
  health: { usage: HEALTH_USAGE, help: () => HEALTH_HELP, run: checkHealth },
  doctor: { usage: DOCTOR_USAGE, help: () => DOCTOR_HELP, run: doctor },
  ...CLIENT_COMMANDS,
  backup: { usage: BACKUP_USAGE, help: () => BACKUP_HELP, run: backup },
  restore: { usage: RESTORE_USAGE, help: () => RESTORE_HELP, run: restore },
  admin: {
    usage: `\n${ADMIN_USAGE}\n\n  Admin commands, doctor, backup and restore take the same DATA_DIR or DATABASE_URL as the server.`,
    help: ([name]) => adminHelp(name),
    helpTopic: ([name]) => adminHelpTopic(name),
    run: admin,
  },
  [WORKER_COMMAND]: { run: async () => void (await import("../workers/worker.ts")) },
});
