/** Reads what Linux says of a process. */

import { readFileSync } from "node:fs";

/** `started` tells it from a later one of the same pid. */
type Process = { pid: number; parent: number; group: number; session: number; started: string };

/** undefined: it is gone, or ended and only waits for its parent to notice. */
export function readProcess(pid: number): Process | undefined {
  try {
    // After the name, which may hold anything.
    const [state, ...rest] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
    const [parent, group, session] = rest.slice(0, 3).map(Number) as [number, number, number];
    return state === "Z" || state === "X" ? undefined : { pid, parent, group, session, started: rest[18]! };
  } catch {
    return;
  }
}
