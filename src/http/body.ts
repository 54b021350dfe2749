/** Reads a request's body within limits: bytes as sent, bytes after decompression. */

import { fail, Problem } from "./problem.ts";

/** A body that drips in for longer holds its memory for nothing. */
const MAX_SECONDS = 600;
const CLOSE = { Connection: "close" };
/** Size of the blocks of a large body: nothing is copied when it grows, and no memory is taken before data arrives. */
const BLOCK_BYTES = 1_048_576;
/** The initial buffer of a body of unknown length. */
const FIRST_BYTES = 65_536;
const FIRST_GRADUAL_BYTES = 2_048;

/** Limits of receiving one body. */
type ReceiveLimits = {
  maxBytes: number;
  /** The variable that the operator sets `maxBytes` with. */
  variable?: string;
  /** Seconds from the first look at the body to its end; default: ten minutes. */
  maxSeconds?: number;
  /** Asked before bytes are kept. */
  grow?: Grow;
  /** Aborted when the body is to be given up: then reading it fails with the signal's reason. */
  signal?: AbortSignal;
  /** Takes a part of the body out of it. A body with a Content-Encoding does not pass through it. */
  filter?: BodyFilter | undefined;
};
/** Gets a body in chunks and returns what is kept of each. */
export type BodyFilter = {
  push(chunk: Bytes): Promise<Bytes[]>;
  /** Called after the last chunk. */
  end(): Promise<Bytes[]>;
  /** Bytes that it may take out of a body, besides the `maxBytes` that are kept. */
  maxTakenBytes: number;
  /** The variable that the operator sets `maxTakenBytes` with. */
  variable: string;
};
export type BodyLimits = ReceiveLimits & { maxInflatedBytes: number };
export type Encoding = "gzip" | "zstd";
export type Bytes = Uint8Array<ArrayBuffer>;
/** Reserves further bytes; returns a promise if it has to wait for them. */
export type Grow = (bytes: number) => Promise<void> | undefined;

const sizeOf = (bytes: number) =>
  bytes < 1_048_576 ? `${Math.floor(bytes / 1_024)} KiB` : `${Number((bytes / 1_048_576).toPrecision(3))} MiB`;
const timeOf = (seconds: number) => (seconds > 120 ? `${Math.round(seconds / 60)} minutes` : `${seconds} seconds`);

/** Drains the rest of a body that is a little too large, because a client that is disconnected while it sends does not see the answer. */
function tooLarge(max: number, close: boolean, variables: (string | undefined)[], what = ""): never {
  const names = variables.filter((name) => name !== undefined).join(" and ");
  const source = names && ` (${names} of the server)`;
  fail("VALIDATION_ERROR", `Body too large: at most ${sizeOf(max)}${what}${source}`, close ? CLOSE : {});
}

/** Fails with VALIDATION_ERROR on a body that is too large, breaks off, or is not encoded as it says. */
export async function readBody(request: Request, limits: BodyLimits): Promise<Bytes> {
  const { blocks, encoding } = await receiveBody(request, limits);
  return encoding ? await inflate(blocks, encoding, limits.maxInflatedBytes) : join(blocks);
}

/**
 * Receives a body as it was sent, in blocks, without decompressing it. Fails with VALIDATION_ERROR if it is too large, takes too long,
 * breaks off, or has an unknown encoding.
 */
export async function receiveBody(
  request: Request,
  { maxBytes: max, variable, maxSeconds = MAX_SECONDS, grow = () => undefined, signal, filter: given }: ReceiveLimits,
): Promise<{ blocks: Bytes[]; encoding: Encoding | null }> {
  const length = request.headers.get("content-length") ?? "0";
  if (length.includes(",")) fail("VALIDATION_ERROR", `Cannot read the header "Content-Length": given more than once`);
  const declared = Number(length);
  const name = (request.headers.get("content-encoding") ?? "identity").trim().toLowerCase();
  const filter = name === "identity" || name === "" ? given : undefined;
  const maxDeclared = max + (filter?.maxTakenBytes ?? 0);
  if (declared > maxDeclared) tooLarge(maxDeclared, declared > 4 * maxDeclared, [variable, filter?.variable]);
  // A body that may be evicted is read as a stream, which can be cancelled.
  const isSmall = declared > 0 && declared <= FIRST_BYTES && !signal;
  // Accessing `request.body` would create a stream, which a small body does not need.
  if (!isSmall && !request.body) return { blocks: [], encoding: null };
  const encoding = encodingOf(name);

  const received = isSmall
    ? receiveAtOnce(request, declared, grow, maxSeconds).then((blocks) => (filter ? filterAll(filter, blocks) : blocks))
    : collect(request.body!, { max, variable, maxSeconds, grow, signal, declared, filter });
  const blocks = await received.catch((error) => {
    if (error instanceof Problem) throw error;
    signal?.throwIfAborted();
    if (encoding) undecodable(encoding);
    fail("VALIDATION_ERROR", "The body is truncated");
  });
  return { blocks, encoding };
}

/** Null: the body is sent as it is. */
function encodingOf(name: string): Encoding | null {
  if (name === "zstd") return "zstd";
  if (name === "gzip" || name === "x-gzip") return "gzip";
  if (name === "identity" || name === "") return null;
  fail("VALIDATION_ERROR", `Cannot read a body with Content-Encoding "${name.slice(0, 40)}": use gzip or zstd`);
}

function undecodable(encoding: Encoding): never {
  fail("VALIDATION_ERROR", `Cannot decompress the body: it is not complete, valid ${encoding}`);
}

const tookTooLong = (seconds: number) =>
  new Problem("VALIDATION_ERROR", `The body took longer than ${timeOf(seconds)}`, CLOSE);

/** Receives a small body of known length: reading a stream would cost several times the rest of its request. */
async function receiveAtOnce(request: Request, declared: number, grow: Grow, maxSeconds: number): Promise<Bytes[]> {
  const room = grow(declared);
  if (room) await room;
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(tookTooLong(maxSeconds)), maxSeconds * 1_000);
  try {
    return [(await Promise.race([request.bytes(), late])) as Bytes];
  } finally {
    clearTimeout(timer);
  }
}

async function filterAll(filter: BodyFilter, blocks: readonly Bytes[]): Promise<Bytes[]> {
  const kept: Bytes[] = [];
  for (const block of blocks) kept.push(...(await filter.push(block)));
  kept.push(...(await filter.end()));
  // The chunks share one buffer, but a block needs a buffer of its own.
  return [new Uint8Array(Buffer.concat(kept))];
}

type Collecting = Required<Omit<ReceiveLimits, "maxBytes" | "variable" | "signal" | "filter">> & {
  max: number;
  variable: string | undefined;
  signal: AbortSignal | undefined;
  filter: BodyFilter | undefined;
  declared: number;
};

/** Yields the chunks of a body that a filter keeps. */
async function* keptOf(
  chunks: AsyncIterable<Bytes>,
  filter: BodyFilter,
  { max, variable }: Collecting,
): AsyncGenerator<Bytes, void> {
  const maxSize = max + filter.maxTakenBytes;
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.byteLength;
    if (size > maxSize) tooLarge(maxSize, true, [variable, filter.variable]);
    yield* await filter.push(chunk);
  }
  yield* await filter.end();
}

/**
 * Passes the decompressed chunks of a body to `write`, one at a time. Fails with VALIDATION_ERROR if the body is more than twice as large
 * as `maxBytes`, takes too long, breaks off, or has an unknown encoding. A little more than `maxBytes` is read as well, because a client
 * that is disconnected while it sends does not see the answer.
 */
export async function streamBody(
  request: Request,
  { maxBytes, variable, maxSeconds = MAX_SECONDS }: Pick<ReceiveLimits, "maxBytes" | "variable" | "maxSeconds">,
  write: (chunk: Bytes) => Promise<void>,
): Promise<void> {
  const name = (request.headers.get("content-encoding") ?? "identity").trim().toLowerCase();
  const encoding = encodingOf(name);
  if (!request.body) return;
  const body = request.body as ReadableStream<Bytes>;
  const decoded = encoding ? body.pipeThrough(new DecompressionStream(encoding as never)) : body;
  let size = 0;
  try {
    for await (const chunk of chunksOf(decoded as ReadableStream<Bytes>, { maxSeconds, signal: undefined })) {
      size += chunk.byteLength;
      if (size > 2 * maxBytes) tooLarge(maxBytes, true, [variable]);
      await write(chunk);
    }
  } catch (error) {
    if (error instanceof Problem) throw error;
    if (encoding) undecodable(encoding);
    fail("VALIDATION_ERROR", "The body broke off");
  }
}

/** The chunks of a stream until it ends, or until there is a reason to give it up: then it is cancelled, and that is thrown. */
async function* chunksOf(
  stream: ReadableStream<Bytes>,
  { maxSeconds, signal }: Pick<Collecting, "maxSeconds" | "signal">,
): AsyncGenerator<Bytes, void> {
  const reader = stream.getReader();
  let reason: unknown;
  const giveUp = (why: unknown) => {
    reason ??= why;
    // Cancelling resolves a pending read, even if no more data arrives.
    reader.cancel().catch(() => {});
  };
  const timer = setTimeout(() => giveUp(tookTooLong(maxSeconds)), maxSeconds * 1_000);
  const onAbort = () => giveUp(signal!.reason);
  signal?.addEventListener("abort", onAbort);
  if (signal?.aborted) onAbort();
  let isWhole = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (reason !== undefined) throw reason;
      if (done) return void (isWhole = true);
      yield value;
    }
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
    if (!isWhole && reason === undefined) reader.cancel().catch(() => {});
    reader.releaseLock();
  }
}

async function collect(stream: ReadableStream<Bytes>, limits: Collecting): Promise<Bytes[]> {
  const { max, grow, declared, filter } = limits;
  const blocks: Bytes[] = [];
  // A body that may be evicted takes no memory before it arrives.
  const isGradual = limits.signal !== undefined;
  const first = declared > BLOCK_BYTES || isGradual || filter ? 0 : declared || FIRST_BYTES;
  let last: Bytes = new Uint8Array(first);
  let size = 0;
  let used = 0;
  let unbroken = 0;
  const chunks = chunksOf(stream, limits);
  for await (const chunk of filter ? keptOf(chunks, filter, limits) : chunks) {
    size += chunk.byteLength;
    if (size > max) tooLarge(max, true, [limits.variable]);
    const room = grow(chunk.byteLength);
    if (room) await room;
    // Yields to other requests: chunks that have already arrived would be read in one turn, which takes a tenth of a second for large
    // bodies.
    unbroken += chunk.byteLength;
    if (unbroken > BLOCK_BYTES) {
      unbroken = 0;
      await new Promise(setImmediate);
    }
    for (let at = 0; at < chunk.byteLength;) {
      if (used === last.byteLength) {
        if (used > 0) blocks.push(last);
        const rest = size - at;
        const block = isGradual ? Math.min(BLOCK_BYTES, Math.max(FIRST_GRADUAL_BYTES, size)) : BLOCK_BYTES;
        last = new Uint8Array(Math.max(chunk.byteLength - at, Math.min(block, declared - rest || block)));
        used = 0;
      }
      const part = chunk.subarray(at, at + last.byteLength - used);
      last.set(part, used);
      used += part.byteLength;
      at += part.byteLength;
    }
  }
  if (used > 0) blocks.push(used === last.byteLength ? last : last.subarray(0, used));
  return blocks;
}

/** The length of a body in blocks. */
export const lengthOf = (blocks: readonly Bytes[]): number => blocks.reduce((sum, block) => sum + block.byteLength, 0);

/** The blocks as one. Where there are several, they are given back one by one, and are empty afterwards. */
export function join(blocks: readonly Bytes[]): Bytes {
  if (blocks.length < 2) return blocks[0] ?? new Uint8Array();
  const whole = new Uint8Array(lengthOf(blocks));
  let at = 0;
  for (const block of blocks) {
    whole.set(block, at);
    at += block.byteLength;
    block.buffer.transfer(0);
  }
  return whole;
}

/**
 * Decompresses a body. Fails with VALIDATION_ERROR if it is incomplete or invalid, or larger than `max`, which the operator sets with
 * `variable`.
 */
export async function inflate(
  blocks: readonly Bytes[],
  encoding: Encoding,
  max: number,
  variable?: string,
): Promise<Bytes> {
  return (await inflateSmall(blocks, encoding, max)) ?? tooLarge(max, true, [variable], " after decompression");
}

/** The same; undefined where it is larger than `max`. */
export async function inflateSmall(
  blocks: readonly Bytes[],
  encoding: Encoding,
  max: number,
): Promise<Bytes | undefined> {
  const inflated = new Blob([...blocks]).stream().pipeThrough(new DecompressionStream(encoding as never));
  // Pages that nothing is written to take no memory.
  let whole = new Uint8Array(Math.min(max, max > BLOCK_BYTES ? max : FIRST_BYTES));
  let size = 0;
  try {
    for await (const chunk of inflated as ReadableStream<Bytes>) {
      const end = size + chunk.byteLength;
      if (end > max) {
        whole.buffer.transfer(0);
        return undefined;
      }
      if (end > whole.byteLength) {
        const grown = new Uint8Array(Math.min(max, Math.max(end, 4 * whole.byteLength)));
        grown.set(whole.subarray(0, size));
        whole = grown;
      }
      whole.set(chunk, size);
      size = end;
    }
  } catch {
    undecodable(encoding);
  }
  return whole.subarray(0, size);
}
