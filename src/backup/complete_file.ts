/** Writes a file that bears its name only when it is complete and on disk. */

import { existsSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { isWriteFailure, toFileError } from "../file_failure.ts";

/** Throws an Error if there is a file already, or it cannot be written. Until the end it is named `path` + ".partial", which a killed process leaves. */
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
  const handle = await open(partial, "w", 0o600);
  try {
    const result = await work(handle);
    const { size } = await handle.stat();
    await handle.sync();
    await rename(partial, path);
    await syncDirectory(dirname(resolve(path)));
    return { result, bytes: size };
  } finally {
    await handle.close();
    await rm(partial, { force: true });
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
