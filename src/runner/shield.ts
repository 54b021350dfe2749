/** Keeps the runner's own environment and memory from the processes of its tasks, which run under the same user. */

import { dlopen } from "bun:ffi";

const PR_SET_DUMPABLE = 4;
const LIBRARIES = ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`];

/**
 * After it /proc/PID/environ of this process is root's, and no debugger of the same user attaches. False where the system
 * knows no such thing, and to root, from whom nothing is closed.
 */
export function shield(): boolean {
  if (process.platform !== "linux" || process.getuid?.() === 0) return false;
  for (const library of LIBRARIES) {
    try {
      const { symbols, close } = dlopen(library, {
        prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
      });
      const answer = symbols.prctl(PR_SET_DUMPABLE, 0n, 0n, 0n, 0n);
      close();
      return answer === 0;
    } catch {
      // The other C library, perhaps.
    }
  }
  return false;
}
