/** Answers with the content of an attachment, in a way that nothing in it runs in a browser. */

import { StoreAwayError } from "../attachments/content.ts";
import type { AttachmentServices } from "../attachments/store.ts";
import { verifiedChunks, verifiedStream } from "../attachments/verified_content.ts";
import { parseByteRange, type RangeHeaders } from "../http/byte_range.ts";
import { absent } from "../http/problem.ts";
import { isShownInline } from "../attachments/media_type.ts";
import { FileReply, Reply } from "./reply.ts";

/** An attachment as its row describes it. */
export type AttachedFile = { name: string; mediaType: string; bytes: number; sha256: string };

/** How long an address of the store works. */
const PRESIGNED_SECONDS = 300;

/** Whatever the content is, it is no document of our origin, and pages of other origins do not get it. */
const HEADERS = {
  "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
};

/** Servers of S3 disagree on how other characters of an address are signed. */
const toPlainDisposition = ({ name, mediaType }: AttachedFile): string =>
  `${isShownInline(mediaType) ? "inline" : "attachment"}; filename="${name.replace(/[^\w .-]/g, "_")}"`;

/** Header values hold ASCII only: the whole name stands in `filename*`. */
function toDisposition(file: AttachedFile): string {
  const { name } = file;
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (one) => `%${one.charCodeAt(0).toString(16)}`);
  return `${toPlainDisposition(file)}; filename*=UTF-8''${encoded}`;
}

export const etagOf = ({ sha256 }: Pick<AttachedFile, "sha256">): string => `"${sha256}"`;

export type FileRequest = {
  range: RangeHeaders;
  /** The client may be led to an address of the store. */
  mayRedirect: boolean;
  /** Headers besides. */
  headers?: Record<string, string>;
  /** Called with the reason if the answer ends before the file does. */
  onError: (error: unknown) => void;
};

/** Content of S3 up to this size is checked as a whole before the answer begins; of larger content the last chunk waits for the check. */
const MAX_CHECKED_AT_ONCE_BYTES = 262_144;

/** Throws StoreAwayError. */
export async function fileReply(
  { store }: Pick<AttachmentServices, "store">,
  projectId: string,
  file: AttachedFile,
  { range: asked, mayRedirect, headers: own = {}, onError }: FileRequest,
): Promise<Reply> {
  const key = { projectId, sha256: file.sha256 };
  if (mayRedirect && store.presign) {
    const address = store.presign(key, { seconds: PRESIGNED_SECONDS, disposition: toPlainDisposition(file) });
    return new Reply(307, null, null, { Location: address });
  }
  const etag = etagOf(file);
  const range = parseByteRange(asked, { length: file.bytes, etag });
  const isSmall = file.bytes <= MAX_CHECKED_AT_ONCE_BYTES;
  const stored = (await store.read(key, isSmall ? undefined : range)) ?? absent();
  const content = await checkedContent(stored, file, { range, isSmall, onError });
  const headers = {
    ...HEADERS,
    ...own,
    ...{ "Content-Disposition": toDisposition(file), "Accept-Ranges": "bytes", ETag: etag },
    ...(range ? { "Content-Range": `bytes ${range.first}-${range.last}/${file.bytes}` } : {}),
  };
  const type = file.mediaType === "text/plain" ? "text/plain; charset=utf-8" : file.mediaType;
  const length = range ? range.last - range.first + 1 : file.bytes;
  return new FileReply(range ? 206 : 200, type, headers, { content, length });
}

type Reading = { range: ReturnType<typeof parseByteRange>; isSmall: boolean; onError: FileRequest["onError"] };

async function checkedContent(
  stored: Blob | ReadableStream<Uint8Array>,
  { bytes, sha256 }: AttachedFile,
  { range, isSmall, onError }: Reading,
): Promise<Blob | ReadableStream<Uint8Array>> {
  const length = range ? range.last - range.first + 1 : bytes;
  if (!(stored instanceof Blob) && !isSmall)
    return verifiedStream(stored, { bytes: length, sha256: length === bytes ? sha256 : undefined }, onError);
  const content =
    stored instanceof Blob
      ? stored
      : new Blob(
          (await Array.fromAsync(verifiedChunks(stored as never, { bytes, sha256 }))) as Uint8Array<ArrayBuffer>[],
        );
  const part = range && isSmall ? content.slice(range.first, range.last + 1) : content;
  if (part.size !== length) throw new StoreAwayError(`The store has ${part.size} of ${length} bytes`);
  return part;
}
