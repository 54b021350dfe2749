/** An upload's files and form fields, whether they come as the raw body or as multipart/form-data. */

import { fail } from "./problem.ts";

export type Upload = {
  fields: Record<string, string>;
  files: { name: string; bytes: Uint8Array }[];
  /** Hexadecimal SHA-256 of files and fields; a multipart boundary, which differs with every try, is not part of it. */
  digest: string;
};

const MAX_PARTS = 5_000;

/** The last part of the path that some clients send: it is only ever shown. */
const baseName = (name: string) => name.split(/[/\\]/).pop()!.slice(0, 200);

export const isForm = (contentType: string): boolean => /^multipart\//i.test(contentType);

/** By the first bytes: gzip or zstd, which may be small and become large. */
export const isPacked = (bytes: Uint8Array): boolean =>
  (bytes[0] === 0x1f && bytes[1] === 0x8b) || (bytes[0] === 0x28 && bytes[1] === 0xb5);

export async function parseUpload(bytes: Uint8Array<ArrayBuffer>, contentType: string): Promise<Upload> {
  const fields: Record<string, string> = Object.create(null);
  const files: Upload["files"] = [];
  if (/^multipart\/form-data\b/i.test(contentType)) {
    for (const [name, value] of await parseForm(bytes, contentType)) {
      if (typeof value !== "string") {
        files.push({ name: baseName(value.name) || name, bytes: await value.bytes() });
      } else {
        if (name in fields) fail("VALIDATION_ERROR", `Cannot read "${name.slice(0, 200)}": given more than once`);
        fields[name] = value;
      }
    }
    if (files.length === 0) fail("VALIDATION_ERROR", "Cannot read the body: the form holds no file");
  } else {
    files.push({ name: "body", bytes });
  }
  const hash = new Bun.CryptoHasher("sha256");
  for (const [name, value] of Object.entries(fields)) hash.update(`${name.length} ${name}${value.length} ${value}`);
  for (const file of files) hash.update(`\n${file.bytes.byteLength} `).update(file.bytes);
  return { fields, files, digest: hash.digest("hex") };
}

async function parseForm(bytes: Uint8Array<ArrayBuffer>, contentType: string): Promise<[string, string | File][]> {
  let form: FormData;
  try {
    form = (await new Response(bytes, { headers: { "content-type": contentType } }).formData()) as FormData;
  } catch {
    fail("VALIDATION_ERROR", "Cannot read the body: it is not whole, valid multipart/form-data");
  }
  const parts = [...form.entries()] as [string, string | File][];
  if (parts.length > MAX_PARTS) fail("VALIDATION_ERROR", `Cannot read the body: more than ${MAX_PARTS} parts`);
  return parts;
}
