/** Cross-Origin Resource Sharing: lets scripts on pages of listed origins read answers. Cookies are never accepted from them. */

/** Seconds that a browser remembers the answer to a preflight; browsers use at most two hours. */
const MAX_AGE_SECONDS = 7200;

const PREFLIGHT_HEADERS = {
  "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
  "Access-Control-Allow-Headers":
    "Authorization, Content-Encoding, Content-Type, Idempotency-Key, If-None-Match, If-Range, Last-Event-ID, Range, X-Request-Id",
  "Access-Control-Max-Age": String(MAX_AGE_SECONDS),
};

/** The headers of answers that scripts may read, besides those that every script may. */
const EXPOSED_HEADERS =
  "Accept-Ranges, Content-Disposition, Content-Range, ETag, Idempotent-Replayed, Retry-After, WWW-Authenticate, X-Next-Cursor, X-RateLimit-Limit, " +
  "X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id";

/** `origins` are compared as they are, so that a longer host name never passes for a listed one. */
export function createCors(origins: readonly string[]) {
  const listed = new Set(origins);
  const originOf = ({ headers }: Request): string | undefined => {
    const origin = headers.get("origin");
    return origin !== null && listed.has(origin) ? origin : undefined;
  };
  return {
    /** The headers that answer a preflight of a listed origin, or undefined if the request is not one. */
    preflight: (request: Request): Record<string, string> | undefined =>
      request.method === "OPTIONS" &&
      request.headers.has("access-control-request-method") &&
      originOf(request) !== undefined
        ? PREFLIGHT_HEADERS
        : undefined,

    /** Adds what a browser needs to give the answer to a script. Without listed origins nothing is added. */
    mark(request: Request, { headers }: Response): void {
      if (listed.size === 0) return;
      headers.append("Vary", "Origin");
      const origin = originOf(request);
      if (origin === undefined) return;
      headers.set("Access-Control-Allow-Origin", origin);
      headers.set("Access-Control-Expose-Headers", EXPOSED_HEADERS);
    },
  };
}
