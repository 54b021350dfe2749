/** Whether two names of a commit mean the same one. */

const HASH = /^[0-9a-f]{7,64}$/;

/** A short hash is the long one that begins with it; `is_same_commit` says the same to the database. */
export function isSameCommit(one: string, other: string): boolean {
  const [a, b] = [one.toLowerCase(), other.toLowerCase()];
  return a === b || ((a.startsWith(b) || b.startsWith(a)) && HASH.test(a) && HASH.test(b));
}
