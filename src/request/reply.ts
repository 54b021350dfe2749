/** The answer to a request: a status, a body, headers. */

import type { Compressed } from "../http/compress.ts";

/** An answer other than the plain value with the route's own status. */
export class Reply {
  readonly status: number;
  readonly body: string | null;
  readonly type: string | null;
  readonly headers: Record<string, string>;
  /** The answer to a repetition of this request, if it contains less: a secret is shown once and not stored. */
  readonly repeatedBody: string | null;

  constructor(
    status: number,
    body: string | null,
    type: string | null,
    headers: Record<string, string> = {},
    repeatedBody = body,
  ) {
    this.status = status;
    this.body = body;
    this.type = type;
    this.headers = headers;
    this.repeatedBody = repeatedBody;
  }
}

/** An answer that many get: it is compressed and tagged once, and a client that has it already gets 304. */
export class FixedReply extends Reply {
  readonly etag: string;
  readonly compressed: Compressed = {};

  constructor(text: string, type: string, headers: Record<string, string> = {}) {
    const etag = `W/"${Bun.SHA256.hash(text, "hex").slice(0, 20)}"`;
    super(200, text, type, { "Cache-Control": "no-cache", ...headers, ETag: etag });
    this.etag = etag;
  }
}

/** An answer that goes on: `open` begins its body; `hurry` shall end soon a connection that does not take it. */
export class StreamReply extends Reply {
  readonly open: (hurry: () => void) => ReadableStream<Uint8Array>;

  constructor(status: number, type: string, headers: Record<string, string>, open: StreamReply["open"]) {
    super(status, null, type, headers);
    this.open = open;
  }
}

/** An answer that is the content of a file, or a part of it. */
export class FileReply extends Reply {
  readonly content: Blob | ReadableStream<Uint8Array>;
  /** Bytes of `content`. */
  readonly length: number;

  constructor(
    status: number,
    type: string,
    headers: Record<string, string>,
    { content, length }: Pick<FileReply, "content" | "length">,
  ) {
    super(status, null, type, headers);
    this.content = content;
    this.length = length;
  }
}

export const json = (status: number, value: unknown) => new Reply(status, JSON.stringify(value), "application/json");
/** `repeated` is what a request with the same Idempotency-Key gets. */
export const jsonOnce = (status: number, value: unknown, repeated: unknown) =>
  new Reply(status, JSON.stringify(value), "application/json", {}, JSON.stringify(repeated));
export const jsonText = (status: number, text: string) => new Reply(status, text, "application/json");
export const plainText = (status: number, text: string) => new Reply(status, text, "text/plain; charset=utf-8");
export const noContent = () => new Reply(204, null, null);
