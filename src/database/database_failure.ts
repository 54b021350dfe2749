/** Describes in our own words why the database cannot be used. */

import { describeConnectionFailure } from "../http/connection_failure.ts";

/** The SQLSTATE of PostgreSQL. */
const INSUFFICIENT_PRIVILEGE = "42501";

/** The database or the role does not exist, or the password is wrong. */
const REFUSED = new Set(["3D000", "28000", "28P01"]);

/** These codes come from postgres.js, from the socket, and from a PostgreSQL that was stopped or has crashed. */
const LOST = new Set("CONNECTION_CLOSED CONNECTION_ENDED CONNECTION_DESTROYED ECONNRESET EPIPE 57P01 57P02".split(" "));

/** Returns a readable error if the database cannot be reached; any other error unchanged. */
export function toDatabaseError(error: unknown): unknown {
  const { syscall, address, port, hostname, code, message } = error as Record<string, unknown>;
  const { cause } = error as { cause?: { code?: unknown } };
  if (code === INSUFFICIENT_PRIVILEGE || cause?.code === INSUFFICIENT_PRIVILEGE)
    return new Error(`The role of DATABASE_URL must be the owner of the database: ${String(message)}`);
  if (REFUSED.has(String(code)) || /unrecognized configuration parameter|secure TLS connection/.test(String(message)))
    return new Error(`Cannot use the database of DATABASE_URL: ${String(message)}`, { cause: error });
  if (LOST.has(String(code))) return new Error("The connection to the database was lost", { cause: error });
  if (syscall !== "connect" && syscall !== "getaddrinfo") return error;
  const host = address === undefined ? String(hostname) : `${address}${port === undefined ? "" : `:${port}`}`;
  return new Error(`Cannot connect to the database of DATABASE_URL at ${host}: ${describeConnectionFailure(error)}`);
}
