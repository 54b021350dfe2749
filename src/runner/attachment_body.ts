/** The bodies of requests with attachments: several files as a form, or a large one as it is, read while it is sent. */

import type { AttachmentFile } from "./attachment_file.ts";
import type { Mask } from "../secrets/mask.ts";
import type { StreamedBody } from "./protocol.ts";

const UNKNOWN_TYPE = "application/octet-stream";

/** A header carries only such types unchanged. */
const MEDIA_TYPE = /^[\w.+-]{1,100}\/[\w.+-]{1,100}(?:; ?[\w-]{1,40}=[\w.+-]{1,40})?$/;

export const mediaTypeOf = (contentType: string | null): string =>
  contentType !== null && MEDIA_TYPE.test(contentType) ? contentType : UNKNOWN_TYPE;

/** Whether a form can carry the path as the name of a file: programs escape these characters in different ways. */
export const fitsInForm = (path: string): boolean => !/["\\%\p{Cc}]/u.test(path);

/** Reads a small file, with the secrets hidden. */
export async function readAttachment(file: AttachmentFile, mask: Mask | undefined): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = Buffer.concat([...file.chunks()]);
  return new Uint8Array(mask ? await mask.bytes(bytes) : bytes);
}

/** Streams a large file, with the secrets hidden; its length is then not known before its end. */
export function streamAttachment(file: AttachmentFile, mask: Mask | undefined): StreamedBody {
  function* masked(): Generator<Uint8Array> {
    const { push, end } = mask!.stream();
    for (const chunk of file.chunks()) yield push(chunk);
    yield end();
  }
  return () => {
    const chunks = mask ? masked() : file.chunks();
    return new ReadableStream(
      {
        pull(controller) {
          // An empty chunk would not wake up who reads.
          for (;;) {
            const { done, value } = chunks.next();
            if (done) return controller.close();
            if (value.length > 0) return controller.enqueue(value);
          }
        },
      },
      { highWaterMark: 0 },
    );
  };
}

export type FormPart = { path: string; contentType: string | null; bytes: Uint8Array<ArrayBuffer> };

export async function packForm(parts: readonly FormPart[]) {
  const form = new FormData();
  for (const { path, contentType, bytes } of parts)
    form.append("attachment", new Blob([bytes], { type: mediaTypeOf(contentType) }), path);
  const packed = new Response(form);
  const headers = { "Content-Type": packed.headers.get("content-type")! };
  return { headers, body: new Uint8Array(await packed.arrayBuffer()) };
}
