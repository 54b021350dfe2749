/** Bounds in time: as an id, and as an SQL expression. */

import type { Sql } from "./connect.ts";

/** Returns the smallest UUIDv7 of a time. Ids begin with their time of creation, so a bound on the time is a bound on the id. */
export function firstIdAt(ms: number): string {
  const hex = Math.max(0, Math.floor(ms)).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

/** Returns an expression for the time in `seconds` seconds. */
export const inSeconds = (sql: Sql, seconds: number) => sql`now() + ${seconds}::int * interval '1 second'`;
