/** Stores the content of attachments as private objects of an S3 bucket. */

import { rm } from "node:fs/promises";
import { type ContentKey, type ContentStore, pathOf, StoreAwayError } from "./content.ts";

export type S3Settings = {
  bucket: string;
  /** The prefix without slashes at its ends; may be empty. */
  prefix: string;
  /** Undefined: that of AWS for the region. */
  endpoint: string | undefined;
  region: string | undefined;
  accessKeyId: string | undefined;
  secretAccessKey: string | undefined;
  sessionToken: string | undefined;
  /** Whether clients may read objects from the bucket itself, by addresses that expire. */
  presign: boolean;
};

/** A store that does not answer must not hold requests until their deadline. */
const TIMEOUT_MS = 60_000;

async function orAway<T>(work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${TIMEOUT_MS / 1_000} s`)), TIMEOUT_MS);
  try {
    return await Promise.race([work, late]);
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: unknown };
    throw new StoreAwayError(`S3 cannot be used: ${String(code ?? message)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/** Omits undefined settings, which the client would take for values. */
const given = (settings: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));

export function createS3Store(settings: S3Settings): ContentStore {
  const { bucket, prefix, endpoint, region, accessKeyId, secretAccessKey, sessionToken } = settings;
  const client = new Bun.S3Client({
    bucket,
    ...given({ endpoint, region, accessKeyId, secretAccessKey, sessionToken }),
  });
  const toObject = (key: ContentKey) => client.file(prefix === "" ? pathOf(key) : `${prefix}/${pathOf(key)}`);
  const has = (key: ContentKey) => orAway(toObject(key).exists());
  return {
    has,

    async put(key, file) {
      // Whatever the content is, a browser that is led to the bucket saves it.
      await orAway(toObject(key).write(Bun.file(file), { type: "application/octet-stream" }));
      await rm(file, { force: true });
    },

    async read(key, range) {
      if (!(await has(key))) return undefined;
      const object = toObject(key);
      return (range ? object.slice(range.first, range.last + 1) : object).stream();
    },

    remove: (key) => orAway(toObject(key).delete()),

    ...(settings.presign
      ? {
          presign: (key: ContentKey, { seconds, disposition }: { seconds: number; disposition: string }) =>
            toObject(key).presign({ expiresIn: seconds, contentDisposition: disposition }),
        }
      : {}),
  };
}
