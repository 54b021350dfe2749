/** File descriptors: how many the process may have, and whether some are free. */

import { closeSync, openSync } from "node:fs";

/** Returns the maximum number of file descriptors of the process, which Bun raises to the hard limit at startup; undefined if unlimited. */
export function descriptorLimit(): number | undefined {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === "number" ? soft : undefined;
}

/** Opens a descriptor and returns its number, the lowest free one; `undefined` if there is none. */
function open(): number | undefined {
  try {
    return openSync("/dev/null", "r");
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === "EMFILE" || code === "ENFILE") return undefined;
    throw error;
  }
}

/** Whether `count` descriptors could be opened now. */
export function areFree(count: number): boolean {
  const opened: number[] = [];
  while (opened.length < count) {
    const descriptor = open();
    if (descriptor === undefined) break;
    opened.push(descriptor);
  }
  for (const descriptor of opened) closeSync(descriptor);
  return opened.length === count;
}
