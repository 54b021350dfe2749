/** The packets of a subunit stream, each with a length and a checksum. */

import { crc32 } from "node:zlib";
import { clean } from "./text.ts";

export type Packet = {
  /** 0 says nothing. */
  status: number;
  timeMs: number | null;
  test: string | null;
  tags: string[];
  mime: string;
  file: { name: string; bytes: Buffer } | null;
  /** The offset of the next packet. */
  end: number;
};

const SIGNATURE = 0xb3;
const VERSION = 2;
const [HAS_TEST, HAS_ROUTE, HAS_TIME, HAS_TAGS, HAS_MIME, HAS_FILE] = [0x800, 0x400, 0x200, 0x80, 0x20, 0x40];
/** Programs may print something before the first packet. */
const MAX_PRELUDE = 4_096;
/** Their checksums take time. */
const MAX_CANDIDATES = 16;

/** Whether a whole packet with the right checksum is among the first bytes. */
export function isSubunit(bytes: Uint8Array): boolean {
  const data = toBuffer(bytes);
  let candidates = 0;
  for (let at = data.indexOf(SIGNATURE); at !== -1 && at < MAX_PRELUDE; at = data.indexOf(SIGNATURE, at + 1)) {
    if (!isStart(data, at, 0)) continue;
    if (typeof readPacket(data, at) === "object") return true;
    if (++candidates === MAX_CANDIDATES) return false;
  }
  return false;
}

const toBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/**
 * Calls `onPacket` for each packet up to the first broken one, which `fault` describes; `foreign` counts the bytes between packets, which
 * programs have printed.
 */
export function readPackets(
  bytes: Uint8Array,
  onPacket: (packet: Packet) => void,
): { fault: string | null; foreign: number } {
  const data = toBuffer(bytes);
  let foreign = 0;
  let text = 0;
  for (let at = 0; at < data.length;) {
    if (isStart(data, at, text)) {
      const packet = readPacket(data, at);
      if (typeof packet === "string") return { fault: `byte ${at}: ${packet}`, foreign };
      at = text = packet.end;
      onPacket(packet);
    } else {
      const found = data.indexOf(SIGNATURE, at + 1);
      const next = found === -1 ? data.length : found;
      foreign += next - at;
      at = next;
    }
  }
  return { fault: null, foreign };
}

/** The version is in the byte behind the signature, unless that is lost; text that was printed begins at `text`. */
const isStart = (data: Buffer, at: number, text: number): boolean =>
  data[at] === SIGNATURE &&
  (at + 1 === data.length || data[at + 1]! >> 4 === VERSION) &&
  !isInCharacter(data, at, text);

/** Whether the byte continues a character of UTF-8, such as "\u00b3". */
function isInCharacter(data: Buffer, at: number, text: number): boolean {
  for (let back = 1; back <= 3 && at - back >= text; back++) {
    const byte = data[at - back]!;
    if (byte >= 0x80 && byte < 0xc0) continue;
    const following = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
    return following >= back;
  }
  return false;
}

/** Returns the packet at `start`, or a text that says what is wrong with it. */
function readPacket(data: Buffer, start: number): Packet | string {
  if (start + 4 > data.length) return "a packet breaks off";
  const flags = data.readUInt16BE(start + 1);
  if (flags >> 12 !== VERSION) return "the packet is not of version 2";
  const reader = createReader(data, start + 3, data.length);
  const length = reader.number();
  const end = start + (length ?? 0);
  if (length === null || end > data.length) return "a packet breaks off";
  const body = end - 4;
  if (body < reader.at()) return "a packet is too short";
  if (crc32(data.subarray(start, body)) !== data.readUInt32BE(body)) return "the checksum of a packet is wrong";
  return readBody(createReader(data, reader.at(), body), flags, end) ?? "a packet is malformed";
}

function readBody(reader: ReturnType<typeof createReader>, flags: number, end: number): Packet | null {
  const seconds = flags & HAS_TIME ? reader.bytes(4)?.readUInt32BE(0) : undefined;
  const nanoseconds = flags & HAS_TIME ? reader.number() : undefined;
  const test = flags & HAS_TEST ? reader.text() : undefined;
  const tags: string[] = [];
  for (let count = flags & HAS_TAGS ? (reader.number() ?? 0) : 0; count > 0 && !reader.isBroken(); count--)
    tags.push(reader.text() ?? "");
  const mime = flags & HAS_MIME ? reader.text() : "";
  const name = flags & HAS_FILE ? reader.text() : undefined;
  const size = flags & HAS_FILE ? reader.number() : undefined;
  const bytes = typeof size === "number" ? reader.bytes(size) : undefined;
  if (flags & HAS_ROUTE) reader.text();
  if (reader.isBroken()) return null;
  const timeMs = seconds === undefined ? null : seconds * 1000 + Math.floor((nanoseconds ?? 0) / 1e6);
  const file = typeof name === "string" && bytes ? { name, bytes } : null;
  return { status: flags & 7, timeMs, test: test ?? null, tags, mime: mime ?? "", file, end };
}

/** Reads up to `end`; whatever goes beyond is null, and the rest is broken. */
function createReader(data: Buffer, start: number, end: number) {
  let at = start;
  let broken = false;
  const bytes = (count: number): Buffer | null => {
    if (broken || at + count > end) broken = true;
    if (broken) return null;
    at += count;
    return data.subarray(at - count, at);
  };
  /** The first two bits say how many bytes there are. */
  const number = (): number | null => {
    const size = ((data[at] ?? 0) >> 6) + 1;
    const found = bytes(size);
    return found && found.readUIntBE(0, size) - ((size - 1) << 6) * 2 ** (8 * (size - 1));
  };
  const text = (): string | null => {
    const size = number();
    const found = size === null ? null : bytes(size);
    return found && clean(found.toString("utf8"));
  };
  return { bytes, number, text, at: () => at, isBroken: () => broken };
}
