/** Opens the database that the configuration means: any PostgreSQL by its URL, else the built-in one. */

import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { START_COMMAND } from "../executable.ts";
import { toFileReason } from "../file_failure.ts";
import { connect, type Database } from "./connect.ts";
import { holdsCluster, startEmbedded } from "./postgres/embedded.ts";

type OpenOptions = {
  databaseUrl: string | undefined;
  dataDir: string;
  databasePool: number;
};

/** The database, and the function that keeps it running; none if the server did not start it. */
export type OpenDatabase = Database & { revive?(): Promise<void> };

/** Opens an existing database like `openDatabase`. Throws, and creates nothing, if the directory has none. */
export async function openExistingDatabase(options: OpenOptions): Promise<OpenDatabase> {
  const { databaseUrl, dataDir } = options;
  if (databaseUrl === undefined && !holdsDatabase(dataDir))
    throw new Error(
      `No database in "${dataDir}": set DATA_DIR or DATABASE_URL to the value that the server uses, or create a database with "${START_COMMAND}"`,
    );
  return await openDatabase(options, () => {});
}

function holdsDatabase(dataDir: string): boolean {
  try {
    return holdsCluster(join(dataDir, "postgres"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES") throw error;
    throw new Error(
      `Cannot enter DATA_DIR "${dataDir}", which belongs to another account: run this command under the account of the server, or as root`,
      { cause: error },
    );
  }
}

/** `close` also stops the built-in PostgreSQL, unless other processes are connected to it. */
export async function openDatabase(
  { databaseUrl, dataDir, databasePool }: OpenOptions,
  say: (message: string) => void,
): Promise<OpenDatabase> {
  if (databaseUrl !== undefined) return connect({ url: databaseUrl }, databasePool);
  await createDataDir(dataDir);
  const embedded = await startEmbedded({ directory: join(dataDir, "postgres"), say });
  const database = connect(embedded.connection, databasePool);
  return {
    ...database,
    revive: embedded.revive,
    async close() {
      await database.close();
      await embedded.stop();
    },
  };
}

/**
 * Creates the directory if it does not exist. Other accounts cannot enter it, except if we are root: PostgreSQL then runs under
 * another account, which has to reach its files below the directory, and cannot list it.
 */
async function createDataDir(dataDir: string): Promise<void> {
  const mode = process.getuid?.() === 0 ? 0o711 : 0o700;
  const created = await mkdir(dataDir, { recursive: true, mode }).catch((error: NodeJS.ErrnoException) => {
    const reason = error.code === "EEXIST" ? "it exists and is not a directory" : toFileReason(error, "write");
    throw new Error(`Cannot create DATA_DIR "${dataDir}": ${reason}`, { cause: error });
  });
  // The umask may have removed a part of the mode.
  if (created !== undefined) await chmod(dataDir, mode);
}
