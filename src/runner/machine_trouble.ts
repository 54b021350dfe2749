/** Failures of a command that are the machine's: a full disk, a signal from outside, or an exit code that assay.yaml names. */

import { statfsSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import type { TaskConfig } from "./config.ts";

/** What may still be written. */
export type FreeSpace = { bytes: number; files: number };

/** Returns the reason if the machine made a command fail; null: the tests may be the cause. */
export function troubleOf(
  { config, freeSpace = readFreeSpace }: { config: TaskConfig; freeSpace?: ((path: string) => FreeSpace) | undefined },
  exitCode: number,
  hasReport: boolean,
): string | null {
  if (config.retryOn.includes(exitCode)) return `The command ended with ${exitCode}, which is listed in "retryOn"`;
  const full = [config.workingDirectory, tmpdir()]
    .map((path) => ({ path, free: freeSpace(path) }))
    .find(({ free }) => free.bytes < FULL_BYTES || free.files < FULL_FILES);
  if (full !== undefined)
    return `The command ended with ${exitCode}, and the disk of ${JSON.stringify(full.path)} ${full.free.bytes < FULL_BYTES ? "is full" : "has no free inodes"}`;
  const signal = hasReport ? undefined : OUTSIDE_SIGNALS.get(exitCode);
  return signal === undefined
    ? null
    : `The command was ended by ${signal} from outside of the runner, without a report; SIGKILL may mean that the machine is out of memory`;
}

/** 128 and the signal, as shells tell it; a program that crashes gets another signal. */
const OUTSIDE_SIGNALS = new Map(
  (["SIGHUP", "SIGKILL", "SIGTERM"] as const).map((signal) => [128 + constants.signals[signal], signal]),
);
/** A disk that has less is full. */
const FULL_BYTES = 1_048_576;
/** The runner itself needs some files: its pipes and lists. */
const FULL_FILES = 16;

function readFreeSpace(path: string): FreeSpace {
  try {
    const { bavail, bsize, files, ffree } = statfsSync(path);
    // Some file systems have as many inodes as there is space, and count none.
    return { bytes: bavail * bsize, files: files === 0 ? Infinity : ffree };
  } catch {
    return { bytes: Infinity, files: Infinity };
  }
}
