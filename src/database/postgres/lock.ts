/** A lock between the processes of one machine that ends with its holder, however that ends. */
import { Database } from "bun:sqlite";
import { accessSync, chmodSync, constants, lchownSync, statSync } from "node:fs";
import { dirname } from "node:path";

/** Undefined when somebody else holds it. SQLite's lock on an empty file is one that the kernel drops by itself. */
export function tryLock(path: string): { release(): void } | undefined {
  const file = openLockFile(path);
  try {
    if (process.getuid?.() === 0) {
      // Root may look in with a command; the owner must still be able to lock.
      const { uid, gid } = statSync(dirname(path));
      if (uid !== 0) lchownSync(path, uid, gid);
      // Accounts that can enter the directory could hold the lock. Nobody but root can put a link in its directory.
      else chmodSync(path, 0o600);
    }
    file.run("pragma journal_mode = memory; begin exclusive");
    return { release: () => file.close() };
  } catch (error) {
    file.close();
    if ((error as { code?: string }).code === "SQLITE_BUSY") return undefined;
    throw error;
  }
}

/** Runs `action` while nobody else holds the lock. */
export async function locked<Result>(path: string, action: () => Promise<Result>): Promise<Result> {
  const deadline = Date.now() + 120_000;
  for (;;) {
    const lock = tryLock(path);
    if (lock) return await action().finally(lock.release);
    if (Date.now() > deadline) throw new Error(`Another process has held "${path}" for two minutes: end it`);
    await Bun.sleep(10);
  }
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
