/** Advisory locks, held until the end of the transaction; each kind has a number of its own.
 *
 * A transaction that takes several takes them in this order, rows among them, so that no two wait for each other: key,
 * sample, naming, verifications, searches, rows of running searches, execution, rows of executions, rows of leases, counting, bugs,
 * rows of bug reports, rows of searches that have ended, days, attachments.
 */

import type { Fragment, Sql, Tx } from "./connect.ts";

const NUMBERS = {
  /** Held while test cases of a project are named or moved. */
  naming: 0,
  /** Held while the health of a project's test cases is counted. */
  counting: 1,
  /** Held while bug reports of a project are opened, reopened, resolved or merged. */
  bugs: 2,
  /** Held while sample data of a project is added or removed. */
  sample: 3,
  /** Held exclusively to revoke a key, and shared to use it. */
  key: 5,
  /** Held while an execution with a key begins in a project. */
  execution: 6,
  /** Held while figures of a project's days are stored or discarded (store/past_days.ts). */
  days: 7,
  /** Held while files are attached to runs of an execution. */
  attachments: 8,
  /** A slot of a running export. */
  export: 9,
  /** Held while verifications of a project begin. */
  verifications: 10,
  /** Held while a search for a culprit makes a step, because searches of a project share probes. */
  searches: 11,
} as const;

/** Any constant: servers that start together on one database meet at this lock. */
export const MIGRATION_LOCK = 7_265_180_302;

/** A backup holds it exclusively; data that a running backup still needs is removed only while it is held in shared mode. Below 2^32. */
export const BACKUP_LOCK = 2_118_964_730;

/** A lock by its kind and the id of its object. */
export type AdvisoryLock = readonly [what: keyof typeof NUMBERS, id: string];

/** The number of the lock for one of a kind. */
export const lockOf = (sql: Sql, what: keyof typeof NUMBERS, id: string | Fragment): Fragment =>
  sql`hashtextextended(${id}::text, ${NUMBERS[what]}::bigint)`;

export const takeLock = (sql: Tx, [what, id]: AdvisoryLock) =>
  sql`select pg_advisory_xact_lock(${lockOf(sql, what, id)})`;

/** Takes the lock if it is free, and returns whether it did. */
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
