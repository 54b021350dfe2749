/** The command line of `assay`: all commands, those of the server included. */

import { CLIENT_COMMANDS } from "./client_commands.ts";
import { type Commands, runCommandLine } from "./command_line.ts";
import type { EnvironmentVariables, Io } from "./invocation.ts";
import { UsageError } from "./usage.ts";

const START_HELP = `Usage: assay start

Starts the server. It takes no options. These environment variables are set most often:

  PORT, HOST         the address that it listens on (default: 8080, 127.0.0.1)
  DATA_DIR           the directory of the built-in PostgreSQL and of attachments (default: ./data)
  DATABASE_URL       a PostgreSQL of your own, in place of the built-in one
  PUBLIC_URL         the address under which others reach the server
  SECRET_KEY         the key that encrypts secrets (default: generated in DATA_DIR)
  LOG_LEVEL          debug, info, warn or error (default: info)

All variables: docs/configuration.md. Checks of a configuration: assay doctor.`;

const COMMANDS: Commands = {
  start: {
    usage: "  start\n      start the server",
    help: async () => START_HELP,
    // The program of the server ends the process itself.
    run: async (words) => {
      if (words.length > 0)
        throw new UsageError(`Unknown option: ${words[0]}. start takes none: set variables, such as PORT and DATA_DIR`);
      await import("../main.ts");
    },
  },
  health: {
    usage: `  health [--url URL]
      ask a server whether it is ready`,
    help: async () => (await import("./health.ts")).HEALTH_HELP,
    run: async (...given) => await (await import("./health.ts")).checkHealth(...given),
  },
  doctor: {
    usage: `  doctor
      check configuration, database, disk, clock, network and runners of a server`,
    help: async () => (await import("./doctor.ts")).DOCTOR_HELP,
    run: async (...given) => await (await import("./doctor.ts")).doctor(...given),
  },
  ...CLIENT_COMMANDS,
  backup: {
    usage: `  backup FILE [--without-attachments]
  backup --verify FILE
      back up everything that the server stores while it runs, or verify a backup`,
    help: async () => (await import("./backup.ts")).BACKUP_HELP,
    run: async (...given) => await (await import("./backup.ts")).backup(...given),
  },
  restore: {
    usage: `  restore FILE [--as-of-backup]
      restore a backup into an empty database`,
    help: async () => (await import("./restore.ts")).RESTORE_HELP,
    run: async (...given) => await (await import("./restore.ts")).restore(...given),
  },
  admin: {
    usage: `  admin COMMAND [options]
      manage teams, projects, keys, accounts and trust rules: "assay admin --help" lists the commands

  Admin commands, doctor, backup and restore take the same DATA_DIR or DATABASE_URL as the server.`,
    help: async ([name]) => (await import("./admin.ts")).adminHelp(name),
    helpTopic: async ([name]) => (await import("./admin.ts")).adminHelpTopic(name),
    run: async (...given) => await (await import("./admin.ts")).admin(...given),
  },
};

/** Runs one command. Returns the exit code. */
export const main = (args: readonly string[], environment: EnvironmentVariables, io: Io): Promise<number> =>
  runCommandLine(COMMANDS, args, environment, io);
