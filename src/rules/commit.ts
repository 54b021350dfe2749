/** Whether two names of a commit mean the same one. */

const HASH = /^[0-9a-f]{7,64}$/;

/** Whether two hashes are of one commit: the shorter begins the longer. `is_same_commit` does the same in SQL. */
export function isSameCommit(one: string, other: string): boolean {
  const [a, b] = [one.toLowerCase(), other.toLowerCase()];
  return a === b || ((a.startsWith(b) || b.startsWith(a)) && HASH.test(a) && HASH.test(b));
}
