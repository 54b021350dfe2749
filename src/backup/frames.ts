/** Frames: kind (1 byte), length (4 bytes, big-endian), CRC-32 of kind and payload (4 bytes), payload. */

import { crc32 } from "node:zlib";

export type BackupFrame = { kind: "json" | "data"; payload: Uint8Array };

const KINDS = ["json", "data"] as const;
const HEAD_BYTES = 9;
/** Maximum size of a frame of data. JSON has its own limit because the header lists all tables. */
const MAX_DATA_BYTES = 1_048_576;
const MAX_FRAME_BYTES = 16_777_216;

/** The frames are damaged. */
class FrameError extends Error {
  override name = "FrameError";
}

const checksum = (kind: number, payload: Uint8Array) => crc32(payload, crc32(Uint8Array.of(kind)));

function* toFrame(kind: BackupFrame["kind"], payload: Uint8Array): Generator<Uint8Array> {
  const code = KINDS.indexOf(kind);
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt8(code, 0);
  head.writeUInt32BE(payload.byteLength, 1);
  head.writeUInt32BE(checksum(code, payload), 5);
  yield head;
  yield payload;
}

export const encodeJson = (value: object): Iterable<Uint8Array> => toFrame("json", Buffer.from(JSON.stringify(value)));

export function* encodeData(chunk: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < chunk.byteLength; at += MAX_DATA_BYTES)
    yield* toFrame("data", chunk.subarray(at, at + MAX_DATA_BYTES));
}

/** Yields whole frames of a stream, and ends where the stream does. Throws FrameError. */
export async function* decodeFrames(source: AsyncIterable<Uint8Array>): AsyncGenerator<BackupFrame> {
  let parts: Uint8Array[] = [];
  let held = 0;
  let needed = HEAD_BYTES;
  for await (const part of source) {
    parts.push(part);
    held += part.byteLength;
    if (held < needed) continue;
    let rest: Buffer = Buffer.concat(parts);
    for (;;) {
      needed = HEAD_BYTES;
      if (rest.byteLength < needed) break;
      const [code, length] = [rest.readUInt8(0), rest.readUInt32BE(1)];
      const kind = KINDS[code];
      if (kind === undefined || length > MAX_FRAME_BYTES) throw new FrameError("A frame is damaged");
      needed += length;
      if (rest.byteLength < needed) break;
      const payload = rest.subarray(HEAD_BYTES, needed);
      if (rest.readUInt32BE(5) !== checksum(code, payload)) throw new FrameError("A frame is damaged");
      yield { kind, payload };
      rest = rest.subarray(needed);
    }
    [parts, held] = [[rest], rest.byteLength];
  }
  if (held > 0) throw new FrameError("The last frame is incomplete");
}
