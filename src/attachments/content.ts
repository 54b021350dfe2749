/** The content of attachments: its names, and the interface of all stores. */

/** Content is addressed by its hash, within its project. */
export type ContentKey = {
  projectId: string;
  /** Hexadecimal. */
  sha256: string;
};

/** Byte positions of a part of a file, both included. */
type ByteRange = { first: number; last: number };

/** Thrown when a store does not answer, or is full. */
export class StoreAwayError extends Error {
  override name = "StoreAwayError";
}

export type ContentStore = {
  /** Takes the content of a file on this machine, and removes the file. What it has taken survives a power failure. */
  put(key: ContentKey, file: string): Promise<void>;
  has(key: ContentKey): Promise<boolean>;
  /** Undefined: it has no such content. Without a range it returns all of it. */
  read(key: ContentKey, range: ByteRange | undefined): Promise<Blob | ReadableStream<Uint8Array> | undefined>;
  /** Removes content that may be gone already. */
  remove(key: ContentKey): Promise<void>;
  /** Returns an address from which a client without credentials reads the content for `seconds`; undefined: there is none. */
  presign?(key: ContentKey, options: { seconds: number; disposition: string }): string;
};

/** The path of content below its store. */
export const pathOf = ({ projectId, sha256 }: ContentKey): string =>
  `${projectId}/${sha256.slice(0, 2)}/${sha256.slice(2, 4)}/${sha256}`;
