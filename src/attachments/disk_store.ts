/** Stores the content of attachments as files below a directory. */

import { access, copyFile, mkdir, open, rename, rm, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type ContentStore, pathOf, StoreAwayError } from "./content.ts";

const codeOf = (error: unknown) => (error as { code?: unknown }).code;

async function orAway<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new StoreAwayError(`The directory of attachments cannot be used: ${String(error)}`, { cause: error });
  }
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Moves a file, also to another file system. The target exists completely or not at all. */
async function move(file: string, target: string): Promise<void> {
  await sync(file);
  try {
    await rename(file, target);
  } catch (error) {
    if (codeOf(error) !== "EXDEV") throw error;
    const copy = `${target}.${crypto.randomUUID()}`;
    await copyFile(file, copy);
    await sync(copy);
    await rename(copy, target);
    await unlink(file);
  }
}

export function createDiskStore(directory: string): ContentStore {
  const toPath = (key: Parameters<typeof pathOf>[0]) => join(directory, pathOf(key));
  return {
    put: (key, file) =>
      orAway(async () => {
        const target = toPath(key);
        await mkdir(dirname(target), { recursive: true, mode: 0o700 });
        await move(file, target);
        // The name of the file must survive as well.
        await sync(dirname(target));
      }),

    has: (key) =>
      access(toPath(key)).then(
        () => true,
        () => false,
      ),

    read: (key, range) =>
      orAway(async () => {
        const file = Bun.file(toPath(key));
        if (!(await file.exists())) return undefined;
        return range ? file.slice(range.first, range.last + 1) : file;
      }),

    remove: (key) => orAway(() => rm(toPath(key), { force: true })),
  };
}
