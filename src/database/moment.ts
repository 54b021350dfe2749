/** Moments: where they lie among ids, and from now on. */

import type { Sql } from "./connect.ts";

/** The smallest UUIDv7 of a moment: ids begin with the time of their creation, so a bound on the time is one on the id. */
export function firstIdAt(ms: number): string {
  const hex = Math.max(0, Math.floor(ms)).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

/** An expression: the time after so many seconds. */
export const inSeconds = (sql: Sql, seconds: number) => sql`now() + ${seconds}::int * interval '1 second'`;
