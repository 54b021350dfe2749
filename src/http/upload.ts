/** An upload's files and form fields, whether they come as the raw body or as multipart/form-data. */

import { addParameter } from "./input.ts";
import { fail } from "./problem.ts";

export type Upload = {
  fields: Record<string, string>;
  files: { name: string; bytes: Uint8Array }[];
  /** Files of the form field for attachments, with their paths. */
  attachments: { path: string; bytes: Uint8Array }[];
  /** Hexadecimal SHA-256 of files and fields, without attachments; a multipart boundary, which differs with every try, is not part of it. */
  digest: string;
};

const MAX_PARTS = 5_000;

/** The last part of the path that some clients send: it is only ever shown. */
const baseName = (name: string) => name.split(/[/\\]/).pop()!.slice(0, 200);

export const isForm = (contentType: string): boolean => /^multipart\//i.test(contentType);

const PACKED = ["\x1f\x8b", "\x28\xb5", "PK\x03\x04"];

/** Whether the first bytes are of gzip, zstd or a zip archive, which may expand considerably. */
export const isPacked = (bytes: Uint8Array): boolean => {
  const head = String.fromCharCode(...bytes.subarray(0, 4));
  return PACKED.some((magic) => head.startsWith(magic));
};

type FormFields = {
  /** The field of attachments. */
  attachments?: string;
  mayRepeat?: (name: string) => boolean;
};

export async function parseUpload(
  bytes: Uint8Array<ArrayBuffer>,
  contentType: string,
  { attachments: attachmentField, mayRepeat = () => false }: FormFields = {},
): Promise<Upload> {
  const fields: Record<string, string> = Object.create(null);
  const files: Upload["files"] = [];
  const attachments: Upload["attachments"] = [];
  if (/^multipart\/form-data\b/i.test(contentType)) {
    for (const [name, value] of await parseForm(bytes, contentType)) {
      if (typeof value !== "string" && name === attachmentField) {
        attachments.push({ path: value.name ?? "", bytes: await value.bytes() });
      } else if (typeof value !== "string") {
        // The name is missing if the form contains an empty one.
        files.push({ name: baseName(value.name ?? "") || name, bytes: await value.bytes() });
      } else {
        addParameter(fields, name, value, mayRepeat);
      }
    }
    if (files.length === 0) fail("VALIDATION_ERROR", "Cannot read the body: the form contains no file");
  } else {
    files.push({ name: "body", bytes });
  }
  const hash = new Bun.CryptoHasher("sha256");
  for (const [name, value] of Object.entries(fields)) hash.update(`${name.length} ${name}${value.length} ${value}`);
  for (const file of files) hash.update(`\n${file.bytes.byteLength} `).update(file.bytes);
  return { fields, files, attachments, digest: hash.digest("hex") };
}

type Part = [name: string, value: string | File];

async function parseForm(bytes: Uint8Array<ArrayBuffer>, contentType: string): Promise<Part[]> {
  const parts = await readParts(bytes, contentType);
  if (parts.length > MAX_PARTS) fail("VALIDATION_ERROR", `Cannot read the body: more than ${MAX_PARTS} parts`);
  if (parts.some(isReplaced)) {
    const damaged = (await readParts(withoutReplacements(bytes), contentType)).find(isReplaced);
    if (damaged) fail("VALIDATION_ERROR", `Cannot read ${JSON.stringify(damaged[0].slice(0, 200))}: not valid UTF-8`);
  }
  return parts;
}

async function readParts(bytes: Uint8Array<ArrayBuffer>, contentType: string): Promise<Part[]> {
  try {
    const form = await new Response(bytes, { headers: { "content-type": contentType } }).formData();
    return [...form.entries()] as Part[];
  } catch {
    fail("VALIDATION_ERROR", "Cannot read the body: it is not complete, valid multipart/form-data");
  }
}

const REPLACEMENT = "\ufffd";

/** Whether something in it may not have been UTF-8; the names of files are only ever shown. */
const isReplaced = ([name, value]: Part): boolean =>
  name.includes(REPLACEMENT) || (typeof value === "string" && value.includes(REPLACEMENT));

/**
 * Returns a copy in which every literal U+FFFD is another character, so that all that Bun finds in it stand for bytes that are not UTF-8.
 * It has the same length and structure.
 */
function withoutReplacements(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const copy = Buffer.from(bytes);
  const [sought, other] = [Buffer.from(REPLACEMENT), Buffer.from("\ue000")];
  for (let at = copy.indexOf(sought); at !== -1; at = copy.indexOf(sought, at + 3)) other.copy(copy, at);
  return copy;
}
