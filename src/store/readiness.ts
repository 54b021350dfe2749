/** Whether requests should come here: reads and writes get through to a database that has our schema. */

import { type Database, isDiskFull, isOverLimit, type Tx } from "../database/connect.ts";
import { selectIsWritable, selectSchemaVersion, writeToDisk } from "./instance.ts";

const PATIENCE_MS = 2_000;
const STEP_MS = 250;
/** Minimum time between two checks of the disk, as long as there is room. */
const DISK_EVERY_MS = 2_000;

/** The log line, here and when a request fails. */
export const DISK_FULL = "The disk of the database is full: nothing can be stored until there is room";

/**
 * Runs one check at a time, which concurrent callers share, so that it may be called as often as needed. `onDiskFull` is called when the
 * disk turns out to be full, and not again before there was room.
 */
export function createReadiness(
  { fast, begin, committedAt }: Pick<Database, "fast" | "begin" | "committedAt">,
  version: number,
  onDiskFull: (error: unknown) => void = () => {},
) {
  let looking: Promise<boolean> | undefined;
  let hadRoomAt = -Infinity;
  let isFull = false;

  /** Checks for room by writing, because reads work on a full disk, and so do writes that fit into existing pages. */
  async function requireRoom(sql: Tx): Promise<void> {
    if (performance.now() - hadRoomAt < DISK_EVERY_MS) return;
    try {
      await writeToDisk(sql);
    } catch (error) {
      if (isDiskFull(error) && !isFull) onDiskFull(error);
      isFull = isDiskFull(error);
      throw error;
    }
    isFull = false;
    hadRoomAt = performance.now();
  }

  async function lookAtWrites(): Promise<boolean> {
    try {
      return await begin(async (sql) => {
        const isWritable = await selectIsWritable(sql);
        if (isWritable) await requireRoom(sql);
        return isWritable;
      });
    } catch (error) {
      // If the limit of temporary files is below the written size, the state of the disk is unknown.
      if (isOverLimit(error)) return true;
      throw error;
    }
  }

  async function look(): Promise<boolean> {
    const [schema, writable] = await Promise.all([selectSchemaVersion(fast), lookAtWrites()]);
    return schema >= version && writable;
  }

  /** Whether a transaction commits within the time limit. */
  async function waitForCommit(): Promise<boolean> {
    const began = performance.now();
    for (let waited = 0; waited < PATIENCE_MS; waited += STEP_MS) {
      await Bun.sleep(STEP_MS);
      if (!isFull && committedAt() > began) return true;
    }
    return false;
  }

  // A check that waits behind many uploads says nothing, but their commits do.
  return (): Promise<boolean> =>
    (looking ??= Promise.race([look().catch(() => false), waitForCommit()]).finally(() => (looking = undefined)));
}
