/** File descriptors: how many the process may have, and some that are kept back from the connections of others. */

import { closeSync, openSync } from "node:fs";

/** The maximum number of reserved descriptors, and never more than an eighth of all. */
const RESERVE = 24;
/** Descriptors count as scarce when this many remain: an attempt to open the last one would come too late. */
const MARGIN = 8;
/** The number that must be free, besides the reserve, before connections are accepted again. */
const ROOM = 16;

/** How many the process may have: Bun raises it to the hard limit when it starts. `undefined` where there is none. */
export function descriptorLimit(): number | undefined {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === "number" ? soft : undefined;
}

/** The number of the new descriptor: always the lowest one that is free. `undefined` when there is none. */
function open(): number | undefined {
  try {
    return openSync("/dev/null", "r");
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === "EMFILE" || code === "ENFILE") return undefined;
    throw error;
  }
}

/** Whether so many could be opened now. */
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

/** Holds descriptors on nothing, so that they are there when they are needed. */
export function createReserve(limit: number) {
  const size = Math.min(RESERVE, Math.floor(limit / 8));
  const held: number[] = [];

  function release(): void {
    while (held.length > 0) closeSync(held.pop()!);
  }

  function refill(): void {
    while (held.length < size) {
      const descriptor = open();
      if (descriptor === undefined) return;
      held.push(descriptor);
    }
  }

  return {
    /** Whether the last ones are being taken. */
    isShort(): boolean {
      const descriptor = open();
      if (descriptor === undefined) return true;
      closeSync(descriptor);
      return descriptor >= limit - MARGIN;
    },

    /** Gives the process what has been kept back. */
    release,

    /** Keeps back what was given, as far as there is any. */
    refill,

    /** Keeps back what was given if there is room for others then. */
    refillWithRoom(): boolean {
      if (!areFree(size - held.length + ROOM)) return false;
      refill();
      return true;
    },
  };
}
