/** Opens the store of attachments that the configuration names. */

import { join } from "node:path";
import type { ContentStore } from "./content.ts";
import { createDiskStore } from "./disk_store.ts";
import { createS3Store, type S3Settings } from "./s3_store.ts";
import { createSpool, type Spool } from "./spool.ts";

/** Plain data, so that it can go to another thread. */
export type AttachmentSettings = {
  /** The directory of arriving files, and of all files if `s3` is undefined. */
  directory: string;
  s3: S3Settings | undefined;
  limits: AttachmentLimits;
  /** Retention of attachments in days; 0: as long as their execution. */
  retentionDays: number;
};

export type AttachmentLimits = {
  /** Bytes of one attachment. */
  maxBytes: number;
  /** Bytes of all attachments of one execution. */
  maxExecutionBytes: number;
  /** Bytes of all attachments of one project, each content counted once; 0: no limit. */
  maxProjectBytes: number;
  /** AttachmentServices of one run. */
  maxFiles: number;
};

/** The services of attachments that servers and their threads use. */
export type AttachmentServices = {
  store: ContentStore;
  spool: Spool;
  limits: AttachmentLimits;
  counters: AttachmentCounters;
};

export type AttachmentCounters = {
  /** The store has taken content. */
  stored(bytes: number): void;
  /** The store could not take or give content. */
  failed(): void;
};

export function openAttachments(
  { directory, s3, limits }: AttachmentSettings,
  { onSpoolError, counters }: { onSpoolError: (error: unknown) => void; counters: AttachmentCounters },
): AttachmentServices {
  return {
    store: s3 ? createS3Store(s3) : createDiskStore(directory),
    spool: createSpool(join(directory, "incoming"), onSpoolError),
    limits,
    counters,
  };
}
