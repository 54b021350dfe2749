/** A lock between the processes of one machine that ends with its holder, however that ends. */
import { Database } from "bun:sqlite";
import { accessSync, closeSync, constants, fchownSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";

export type Lock = { release(): void };

const BEGIN = { exclusive: "begin exclusive", shared: "begin; select count(*) from sqlite_schema" };

/**
 * Takes SQLite's lock on an empty file, which the kernel drops by itself and which is the same by every path to the file and in every
 * container of the machine. A shared lock excludes only exclusive ones. Undefined if the lock of another handle excludes this one.
 */
export function tryLock(path: string, mode: keyof typeof BEGIN = "exclusive"): Lock | undefined {
  createLockFile(path);
  const file = openLockFile(path);
  try {
    file.run(`pragma journal_mode = memory; ${BEGIN[mode]}`);
    return { release: () => file.close() };
  } catch (error) {
    file.close();
    if ((error as { code?: string }).code === "SQLITE_BUSY") return undefined;
    throw error;
  }
}

/** Runs `action` while it holds the lock exclusively. */
export async function locked<Result>(path: string, action: () => Promise<Result>): Promise<Result> {
  const deadline = Date.now() + 120_000;
  for (;;) {
    const lock = tryLock(path);
    if (lock) return await action().finally(lock.release);
    if (Date.now() > deadline) throw new Error(`Another process has held "${path}" for two minutes: end it`);
    await Bun.sleep(10);
  }
}

/** Creates the file for its directory's owner only, because anyone who can read it could hold the lock. */
function createLockFile(path: string): void {
  let file: number;
  try {
    // Only a new file is opened: closing a descriptor drops all locks that this process has on the file.
    file = openSync(path, "wx", 0o600);
  } catch {
    return; // It exists, or openLockFile says why it cannot be created.
  }
  const { uid, gid } = statSync(dirname(path));
  // Root may run a command on the directory of another account, which must still be able to lock.
  if (process.getuid?.() === 0) fchownSync(file, uid, gid);
  closeSync(file);
}

function openLockFile(path: string): Database {
  try {
    return new Database(path);
  } catch (error) {
    throw new Error(`Cannot open "${path}": ${reasonOf(path)}`, { cause: error });
  }
}

/** SQLite does not say why it cannot open a file. */
function reasonOf(path: string): string {
  try {
    accessSync(dirname(path), constants.W_OK | constants.X_OK);
    return "it cannot be created or belongs to another account";
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === "ENOENT") return "its directory does not exist";
    if (code === "EROFS") return "its file system is read-only";
    return "its directory belongs to another account";
  }
}
