/** A request as it arrives: its id, its target, and the checks that come before any route. */

import { fail, type Problem } from "../http/problem.ts";
import type { Connection } from "../http/serve.ts";
import { isAsSent, type RequestTarget, toRequestTarget } from "../http/target.ts";
import { Reply } from "../request/reply.ts";

/** The path of the API, relative to the public address. */
export const API = "/api/v1";

/** The label under which requests without a route are counted, because anyone can invent paths. */
export const UNKNOWN_ROUTE = "unknown";

/** `started` is of `performance.now()`. */
export type IncomingRequest = {
  request: Request;
  target: RequestTarget;
  connection: Connection;
  requestId: string;
  started: number;
};

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;
/** Matches a key that a client sent as an id by mistake: an id is echoed, logged and stored with uploads. */
export const LIKE_A_KEY = /svc_/i;

/** Keeps the client's X-Request-Id where it is a plain one, and generates an id otherwise. */
export function toIncomingRequest(request: Request, connection: Connection): IncomingRequest {
  const sentId = request.headers.get("x-request-id");
  const isKept = sentId !== null && REQUEST_ID.test(sentId) && !LIKE_A_KEY.test(sentId);
  const requestId = isKept ? sentId : Bun.randomUUIDv7();
  return { request, target: toRequestTarget(request.url), connection, requestId, started: performance.now() };
}

/** Refuses several Host headers as well: Bun joins them, and makes the URL of the first one. */
export function requireHost({ request, target }: IncomingRequest): void {
  if (target.badHost || request.headers.get("host")?.includes(","))
    fail("VALIDATION_ERROR", `Cannot read the header "Host": expected one host name`);
}

/** Refuses a path that Bun has normalised, because a proxy in front has allowed the path as sent. */
export function requireAsSent({ target: { path }, connection }: IncomingRequest): void {
  if (!isAsSent(path, connection.segments()))
    fail(
      "NOT_FOUND",
      `Nothing has this path as it was sent: without dot segments and the like it is ${path.slice(0, 200)}`,
    );
}

export const problemReply = ({ status, body, headers }: Problem): Reply =>
  new Reply(status, JSON.stringify(body), "application/json", headers);
