/** Advisory locks, held until the end of the transaction; each kind has a number of its own.
 *
 * A transaction that takes several takes them in this order, rows among them, so that no two wait for each other: key,
 * sample, naming, verifications, searches, rows of running searches, execution, rows of executions, rows of leases, counting, bugs,
 * rows of bug reports, rows of searches that have ended, days, attachments.
 */

import type { Fragment, Sql, Tx } from "./connect.ts";

const NUMBERS = {
  /** Of a project: test cases are named, or move. */
  naming: 0,
  /** Of a project: the health of its test cases is counted. */
  counting: 1,
  /** Of a project: bug reports are opened, reopened, resolved, merged. */
  bugs: 2,
  /** Of a project: sample data comes or goes. */
  sample: 3,
  /** A key: whoever revokes it, and those who use it. */
  key: 5,
  /** Of a project and a key of executions: whoever begins one. */
  execution: 6,
  /** Locks a project while figures of its days are stored, or discarded (store/past_days.ts). */
  days: 7,
  /** Of an execution: files are attached to its runs. */
  attachments: 8,
  /** A slot of a running export. */
  export: 9,
  /** Of a project: verifications are begun. */
  verifications: 10,
  /** Of a project: one of its searches for culprits makes a step, in which others may share the probes. */
  searches: 11,
} as const;

/** Any constant: servers that start together on one database meet at this lock. */
export const MIGRATION_LOCK = 7_265_180_302;

/** A backup holds it exclusively, what a running backup must not lose sight of is removed only with a share of it. Below 2^32. */
export const BACKUP_LOCK = 2_118_964_730;

/** A lock by its kind and what it is of. */
export type AdvisoryLock = readonly [what: keyof typeof NUMBERS, id: string];

/** The number of the lock for one of a kind. */
export const lockOf = (sql: Sql, what: keyof typeof NUMBERS, id: string | Fragment): Fragment =>
  sql`hashtextextended(${id}::text, ${NUMBERS[what]}::bigint)`;

export const takeLock = (sql: Tx, [what, id]: AdvisoryLock) =>
  sql`select pg_advisory_xact_lock(${lockOf(sql, what, id)})`;

/** Whether nobody else has the lock at this moment; then it is held. */
export const takeLockIfFree = async (sql: Tx, [what, id]: AdvisoryLock): Promise<boolean> => {
  const [row] = await sql<
    [{ isHeld: boolean }]
  >`select pg_try_advisory_xact_lock(${lockOf(sql, what, id)}) as "isHeld"`;
  return row.isHeld;
};

export const numberOf = ([what]: AdvisoryLock): number => NUMBERS[what];

/** Rows that take locks, in the order of the arrays, after all rows of `before`. */
export const takeLocks = (
  sql: Sql,
  { ids, numbers }: Record<"ids" | "numbers", Fragment>,
  before: Fragment,
): Fragment => sql`
  select pg_advisory_xact_lock(hashtextextended(lock.id, lock.number)) as locked
  from (select count(*) from ${before}) as before, unnest(${ids}::text[], ${numbers}::bigint[]) as lock (id, number) offset 0`;
