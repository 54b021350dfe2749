/** Writes a file that bears its name only when it is complete and on disk. */

import { existsSync } from "node:fs";
import { type FileHandle, lstat, open, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { isWriteFailure, toFileError } from "../file_failure.ts";

/**
 * Throws an Error if the file exists already or cannot be written. Until it is complete it is named `path` + ".partial": a killed process
 * leaves this file, and the next one replaces it.
 */
export async function writeCompleteFile<T>(path: string, work: (handle: FileHandle) => Promise<T>) {
  if (existsSync(path)) throw new Error(`Cannot write "${path}": the file exists already`);
  try {
    return await write(path, work);
  } catch (error) {
    throw isWriteFailure(error, path) ? toFileError(error, "write", path) : error;
  }
}

async function write<T>(path: string, work: (handle: FileHandle) => Promise<T>) {
  const partial = `${path}.partial`;
  await rm(partial, { force: true });
  // Opens exclusively: a link of this name would lead to another file.
  const handle = await open(partial, "wx", 0o600);
  const { ino } = await handle.stat();
  // Another process may have replaced it meanwhile.
  const isOurs = async () => (await lstat(partial).catch(() => undefined))?.ino === ino;
  try {
    const result = await work(handle);
    const { size } = await handle.stat();
    await handle.sync();
    if (!(await isOurs())) throw new Error(`Cannot write "${path}": another process has begun to write it`);
    await rename(partial, path);
    await syncDirectory(dirname(resolve(path)));
    return { result, bytes: size };
  } finally {
    await handle.close();
    if (await isOurs()) await rm(partial, { force: true });
  }
}

async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
