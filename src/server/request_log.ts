/** Counts every request that has been answered, and logs those that may have changed something. */

import type { Log } from "../log.ts";
import { maskKeys } from "../secrets/keys.ts";
import { maskTokens } from "../secrets/tokens.ts";
import { API, type IncomingRequest, LIKE_A_KEY } from "./incoming_request.ts";
import type { Metrics } from "./metrics.ts";

/** `route` is the pattern of the path, or UNKNOWN_ROUTE. */
export type RecordRequest = (incoming: IncomingRequest, status: number, route: string) => void;

export function createRequestLog({ metrics, log }: { metrics: Metrics; log: Log }): RecordRequest {
  return ({ request: { method }, target, requestId, started }, status, route) => {
    const ms = performance.now() - started;
    metrics.request(route, method, status, ms / 1_000);
    // A read is not worth a line.
    if (method !== "GET" && method !== "HEAD")
      log.info("request", { requestId, method, path: loggedPath(target.path), status, ms: Math.round(ms) });
  };
}

/** Masks keys and tokens, in whatever way they are encoded. */
function loggedPath(path: string): string {
  let decoded = path;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    // The path is logged as it was sent.
  }
  const shown = LIKE_A_KEY.test(decoded) ? maskKeys(decoded) : path;
  return shown.startsWith(`${API}/`) ? shown : maskTokens(shown);
}
