/** Locks folders, so that two runner processes never use one at the same time: the kernel releases the locks of a process that ends. */

import { dlopen } from "bun:ffi";
import { closeSync, constants, fstatSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";

/** The maximum number of processes that use one repository in one folder. */
const MAX_FOLDERS = 100;
const LOCK_EX = 2;
const LOCK_NB = 4;
const LOCK_UN = 8;
const LIBRARIES = [
  "libc.so.6",
  `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`,
  "libSystem.B.dylib",
  "libc.so.7",
];

let flock: ((descriptor: number, operation: number) => number) | undefined;

function openFlock(): (descriptor: number, operation: number) => number {
  for (const library of LIBRARIES) {
    try {
      return dlopen(library, { flock: { args: ["i32", "i32"], returns: "i32" } }).symbols.flock;
    } catch {
      // Another system's C library.
    }
  }
  throw new Error("Cannot lock the folder of the repository: this system has no flock");
}

/** Locks an open file or folder until the descriptor, and those that child processes have inherited, are closed. False if it is locked already. */
function lock(descriptor: number): boolean {
  flock ??= openFlock();
  return flock(descriptor, LOCK_EX | LOCK_NB) === 0;
}

/** Returns the first of the folders PATH, PATH-2, PATH-3 … that no other process uses, and locks it until this process ends. Throws an error if there is none. */
export function lockFolder(path: string): string {
  mkdirSync(dirname(path), { recursive: true });
  for (let number = 1; number <= MAX_FOLDERS; number++) {
    const folder = number === 1 ? path : `${path}-${number}`;
    const descriptor = openSync(`${folder}.lock`, "a");
    if (lock(descriptor)) return folder;
    closeSync(descriptor);
  }
  throw new Error(
    `Cannot lock ${JSON.stringify(`${path}.lock`)}: other processes hold it, or the file system has no locks`,
  );
}

/** Locked folders: `descriptors` for a child process that is to keep the lock for as long as it lives. */
export type Occupied = { descriptors: number[]; release(): void };

/** Returns a function that locks folders for a task; undefined: another process has one of them. Tasks of one process share a lock. */
export function createFolderLocks(): (folders: readonly string[]) => Occupied | undefined {
  const held = new Map<string, { descriptor: number; users: number }>();

  function release(ids: Iterable<string>): void {
    for (const id of ids) {
      const one = held.get(id)!;
      if (--one.users > 0) continue;
      held.delete(id);
      // A child that is about to end may have the descriptor as well.
      flock?.(one.descriptor, LOCK_UN);
      closeSync(one.descriptor);
    }
  }

  return (folders) => {
    const ids = new Set<string>();
    for (const folder of folders) {
      const descriptor = openFolder(folder);
      if (descriptor === undefined) continue;
      const { dev, ino } = fstatSync(descriptor);
      const id = `${dev} ${ino}`;
      if (held.has(id) || !lock(descriptor)) closeSync(descriptor);
      else held.set(id, { descriptor, users: 0 });
      const one = held.get(id);
      if (!one) return void release(ids);
      if (!ids.has(id)) one.users++;
      ids.add(id);
    }
    return { descriptors: [...ids].map((id) => held.get(id)!.descriptor), release: () => release(ids) };
  };
}

/** undefined: it is missing or closed to us, and a task in it says so. */
function openFolder(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch {
    return undefined;
  }
}
