/** Locks folders, so that two runner processes never use the same one: the kernel releases the lock of a process that ends. */

import { dlopen } from "bun:ffi";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";

/** The maximum number of processes that use one repository in one folder. */
const MAX_FOLDERS = 100;
const LOCK_EX = 2;
const LOCK_NB = 4;
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

/** Locks a file, which is created if needed, until this process ends. Returns false if another process has the lock. */
function lockFile(path: string): boolean {
  flock ??= openFlock();
  mkdirSync(dirname(path), { recursive: true });
  // Programs that the runner starts do not inherit the descriptor.
  const descriptor = openSync(path, "a");
  if (flock(descriptor, LOCK_EX | LOCK_NB) === 0) return true;
  closeSync(descriptor);
  return false;
}

/** Returns the first of the folders PATH, PATH-2, PATH-3 … that no other process uses, and locks it until this process ends. Throws an error if there is none. */
export function lockFolder(path: string): string {
  for (let number = 1; number <= MAX_FOLDERS; number++) {
    const folder = number === 1 ? path : `${path}-${number}`;
    if (lockFile(`${folder}.lock`)) return folder;
  }
  throw new Error(
    `Cannot lock ${JSON.stringify(`${path}.lock`)}: other processes hold it, or the file system has no locks`,
  );
}
