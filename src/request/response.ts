/** Writes a reply as the response of the server: the headers of every answer, compression, large bodies in one go. */

import { compress } from "../http/compress.ts";
import type { Admission } from "../http/rate_limit.ts";
import { FileReply, FixedReply, type Reply, StreamReply } from "./reply.ts";

/**
 * `admission`: under /api/v1 every answer tells how much of the rate limit is left. `hurry`: the connection is to be
 * closed soon where it takes nothing.
 */
export function toResponse(
  reply: Reply,
  requestId: string,
  request: Request,
  admission?: Admission,
  hurry: () => void = () => {},
): Response {
  const headers: Record<string, string> = {
    "X-Request-Id": requestId,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    ...reply.headers,
  };
  if (admission) {
    headers["X-RateLimit-Limit"] = String(admission.limit);
    headers["X-RateLimit-Remaining"] = String(admission.remaining);
    headers["X-RateLimit-Reset"] = String(admission.reset);
  }
  if (reply instanceof StreamReply) {
    headers["Content-Type"] = reply.type!;
    // Nobody would read, and end, the stream of a HEAD.
    const body = reply.open(hurry);
    const isRead = request.method !== "HEAD";
    if (!isRead) void body.cancel();
    return new Response(isRead ? body : null, { status: reply.status, headers });
  }
  if (reply instanceof FileReply) {
    headers["Content-Type"] = reply.type!;
    headers["Content-Length"] = String(reply.length);
    const isRead = request.method !== "HEAD";
    if (!isRead && reply.content instanceof ReadableStream) void reply.content.cancel();
    return new Response(isRead ? reply.content : null, { status: reply.status, headers });
  }
  const fixed = reply instanceof FixedReply ? reply : undefined;
  const isKnown = fixed !== undefined && has(request, fixed.etag);
  if (reply.body === null || isKnown) return new Response(null, { status: isKnown ? 304 : reply.status, headers });
  headers["Content-Type"] = reply.type!;
  headers["Vary"] = "Accept-Encoding";
  const compressed = compress(reply.body, request.headers.get("accept-encoding"), fixed?.compressed);
  if (compressed) headers["Content-Encoding"] = compressed.encoding;
  const body = compressed?.bytes ?? reply.body;
  const isLarge = body.length > CORKED_LENGTH && request.method !== "HEAD";
  return new Response(isLarge ? inOneGo(body) : body, { status: reply.status, headers });
}

/** Answers up to this length, with their headers, fit into the 16 KiB that Bun collects before it writes. */
const CORKED_LENGTH = 12_000;

/** Whether the client has the answer with this tag. */
const has = ({ headers }: Request, etag: string): boolean =>
  (headers.get("if-none-match") ?? "").split(",").some((one) => one.trim() === etag);

type DirectController = { write(chunk: string | Uint8Array): void; flush(wait: true): Promise<void>; close(): void };

/**
 * A larger text or array makes Bun 1.4.5 write every part of every header with a system call of its own when the answer
 * was not ready at once, which costs eight times the CPU; a direct stream does not. It ends when the client has taken it:
 * until then Bun closes a connection that asks for more, and an ended answer would be held for every further request.
 */
const inOneGo = (body: string | Uint8Array) =>
  new ReadableStream({
    type: "direct",
    async pull(controller: DirectController) {
      controller.write(body);
      await controller.flush(true);
      controller.close();
    },
  } as never);
