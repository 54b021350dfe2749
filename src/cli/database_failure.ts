/** Describes in our own words why a command cannot reach the database. */

import { describeConnectionFailure } from "../http/connection_failure.ts";

/** An error in our words if the database cannot be reached; any other error as it is. */
export function toDatabaseError(error: unknown): unknown {
  const { syscall, address, port, hostname } = error as Record<string, unknown>;
  if (syscall !== "connect" && syscall !== "getaddrinfo") return error;
  const host = address === undefined ? String(hostname) : `${address}${port === undefined ? "" : `:${port}`}`;
  return new Error(`Cannot connect to the database at ${host}: ${describeConnectionFailure(error)}`);
}
