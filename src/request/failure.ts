/** Turns errors into answers. The details of unexpected errors go only to the log. */

import { DeadlineError } from "../http/deadline.ts";
import { fail, Problem } from "../http/problem.ts";
import type { Admission } from "../http/rate_limit.ts";
import type { Log } from "../log.ts";
import { isDiskFull, isUnavailable } from "../database/connect.ts";
import { DISK_FULL } from "../store/readiness.ts";

/** Minimum interval between two log lines about a full disk. */
const FULL_EVERY_MS = 60_000;
/** The last log line about a full disk and the number of requests that failed since then, by log. */
const fullDisks = new WeakMap<Log, { loggedAt: number; requests: number }>();

/** Logs at most one line a minute: every request fails in the same way, and the log may be on the full disk. */
function logFullDisk({ message }: Error, log: Log, requestId: string): void {
  const now = performance.now();
  const { loggedAt, requests } = fullDisks.get(log) ?? { loggedAt: -Infinity, requests: 0 };
  const isDue = now - loggedAt >= FULL_EVERY_MS;
  if (isDue) log.error(DISK_FULL, { requestId, reason: message, requests: requests + 1 });
  fullDisks.set(log, isDue ? { loggedAt: now, requests: 0 } : { loggedAt, requests: requests + 1 });
}

/** Converts any error into a problem response. Never throws. */
export function toProblem(error: unknown, log: Log, requestId: string): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof DeadlineError || isUnavailable(error)) {
    const isFull = isDiskFull(error);
    if (isFull) logFullDisk(error as Error, log, requestId);
    else log.warn("The database did not respond in time, or failed", { requestId, error });
    return new Problem("INTERNAL_ERROR", "The database is not available, try again in a moment", {
      // A full disk is rarely cleared within seconds.
      "Retry-After": isFull ? "10" : "2",
    });
  }
  log.error("Request failed", { requestId, error });
  return new Problem("INTERNAL_ERROR", `Internal error: the log knows more about request ${requestId}`);
}

export function toRateLimited({ limit, reset }: Admission): Problem {
  const seconds = Math.max(1, reset - Math.floor(Date.now() / 1000));
  return new Problem("RATE_LIMITED", `Rate limit exceeded: at most ${limit} requests per minute`, {
    "Retry-After": String(seconds),
  });
}

export function tooBusy(): never {
  fail("INTERNAL_ERROR", "The server is busy with other large requests, try again in a moment", {
    "Retry-After": "10",
  });
}
