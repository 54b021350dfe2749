/** Decides by the first bytes of a file which kind it is, and which kinds a browser may show. */

/** Every other file is a download. None of these can hold a script that a browser would run. */
const SHOWN = ["image/png", "image/jpeg", "image/gif", "image/webp", "video/webm", "video/mp4", "text/plain"] as const;

/** The type of a file whose content is not recognised. */
export const UNKNOWN_TYPE = "application/octet-stream";

export type MediaType = (typeof SHOWN)[number] | "application/zip" | typeof UNKNOWN_TYPE;

/** Number of bytes that `sniffMediaType` needs. */
export const SNIFFED_BYTES = 4_096;

/** Bytes that files of a type have at an offset. */
const SIGNATURES: readonly (readonly [type: MediaType, offset: number, bytes: string])[] = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF87a"],
  ["image/gif", 0, "GIF89a"],
  ["video/webm", 0, "\x1a\x45\xdf\xa3"],
  ["video/mp4", 4, "ftyp"],
  ["application/zip", 0, "PK\x03\x04"],
  ["application/zip", 0, "PK\x05\x06"],
];

/** Control characters that texts do not contain; terminals' colours begin with \x1b. */
const BINARY = /[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]/;

/** Returns the type of a file that begins with `head`; HTML and SVG are plain text. */
export function sniffMediaType(head: Uint8Array): MediaType {
  const text = Buffer.from(head.buffer, head.byteOffset, head.byteLength).toString("latin1");
  if (text.startsWith("RIFF") && text.startsWith("WEBP", 8)) return "image/webp";
  const found = SIGNATURES.find(([, offset, bytes]) => text.startsWith(bytes, offset));
  if (found) return found[0];
  return text.length > 0 && !BINARY.test(text) && isUtf8(head) ? "text/plain" : UNKNOWN_TYPE;
}

function isUtf8(head: Uint8Array): boolean {
  try {
    // The last character may continue behind the head.
    new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/** Whether a browser shows a file of this type instead of saving it. */
export const isShownInline = (type: string): boolean => (SHOWN as readonly string[]).includes(type);
