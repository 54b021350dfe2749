/** Names of commit statuses. */

/** Code hosts refuse longer ones. */
const MAX_LENGTH = 100;
const DIGEST_LENGTH = 8;

/**
 * Returns the name of a task's status, such as "assay/unit". A name that is too long is cut and ends with a digest, so that two tasks,
 * such as two variants with many tags, never have the same status.
 */
export function statusContext(prefix: string, taskSlug: string | undefined): string {
  const name = taskSlug === undefined ? prefix : `${prefix}/${taskSlug}`;
  if (name.length <= MAX_LENGTH) return name;
  const digest = Bun.SHA256.hash(name, "hex").slice(0, DIGEST_LENGTH);
  return `${name.slice(0, MAX_LENGTH - DIGEST_LENGTH - 1).toWellFormed()} ${digest}`;
}
