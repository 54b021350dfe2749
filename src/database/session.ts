/** Proves at the start that a connection to the database is a session of its own: locks, settings and statements live there. */

import type { Row } from "postgres";
import { type Database, SESSION_SETTINGS, type Sql, STATEMENT_TIMEOUT } from "./connect.ts";

/**
 * The connection that each query uses. The order is irregular, because a pooler that assigns its sessions in turn could otherwise give each
 * connection the same one by chance.
 */
const ORDER = [0, 0, 1, 1, 0, 1, 0, 0, 1];
/** Enough for connecting, which has ten seconds. */
const TIMEOUT_MS = 20_000;

const DIRECT = "or connect to PostgreSQL itself";
const SHARED =
  "DATABASE_URL leads through a pooler that shares sessions between connections (as PgBouncer does in transaction mode): " +
  `set PgBouncer's pool_mode to session, ${DIRECT}`;
const WITHOUT_SETTINGS =
  "DATABASE_URL leads through a pooler that does not pass on the settings of a session (PgBouncer, also in session mode): " +
  `set them as docs/operations.md says, ${DIRECT}`;
const SILENT =
  "The database does not open three sessions within 20 s: see how many its server, or a pooler before it, allows";

/**
 * Throws an Error of one sentence if a pooler in front of PostgreSQL shares sessions, or does not pass on their settings. Uses the simple
 * protocol, because poolers that share sessions fail in different ways with prepared statements.
 */
export async function requireSessions({ pool, openListener }: Pick<Database, "pool" | "openListener">): Promise<void> {
  const open = () => openListener({ onNotify() {}, onClose() {} });
  const connections = [open(), open()] as const;
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(SILENT)), TIMEOUT_MS);
  try {
    await Promise.race([check(pool, connections), late]);
  } catch (error) {
    // The error of PgBouncer unless it is configured to ignore unknown parameters.
    if (error instanceof Error && /unsupported startup parameter/i.test(error.message))
      throw new Error(WITHOUT_SETTINGS, { cause: error });
    throw error;
  } finally {
    clearTimeout(timer);
    await Promise.all(connections.map((sql) => sql.end({ timeout: 1 })));
  }
}

async function check(pool: Sql, connections: readonly [Sql, Sql]): Promise<void> {
  const ids = connections.map(() => crypto.randomUUID());
  const pids: string[] = [];
  const ask = async (index: number, text: string) => (await askSimply(connections[index]!, text))[0]!;
  for (const [index, id] of ids.entries()) await ask(index, `select set_config('assay.session', '${id}', false)`);
  for (const index of ORDER) {
    const text = "select pg_backend_pid()::text as pid, current_setting('assay.session', true) as session";
    const row = await ask(index, text);
    pids[index] ??= row["pid"];
    if (row["session"] !== ids[index] || row["pid"] !== pids[index] || pids[0] === pids[1]) throw new Error(SHARED);
  }
  const expected: Record<string, string> = { ...SESSION_SETTINGS, statement_timeout: STATEMENT_TIMEOUT };
  for (const name of ["lock_timeout", "idle_in_transaction_session_timeout", "statement_timeout"]) {
    const text = `select (current_setting('${name}')::interval = '${expected[name]}'::interval)::text as same`;
    if ((await askSimply(pool, text))[0]!["same"] !== "true") throw new Error(WITHOUT_SETTINGS);
  }
}

const askSimply = async (sql: Sql, text: string): Promise<Row[]> => await sql.unsafe(text).simple();

export const DROPPED_SETTINGS =
  "A pooler does not pass on settings, so statements may take several times as long: set them on the role as docs/operations.md says";

/** Settings that make the sessions of a pool faster. */
const SPEED = [
  { poolName: "pool", name: "jit", wanted: "off" },
  { poolName: "fast", name: "plan_cache_mode", wanted: "force_generic_plan" },
] as const;

/** Returns the settings that a pooler does not pass on, such as "jit = off": without them statements take several times as long. */
export async function selectDroppedSettings(database: Pick<Database, "pool" | "fast">): Promise<string[]> {
  const dropped: string[] = [];
  for (const { poolName, name, wanted } of SPEED) {
    const [row] = await askSimply(database[poolName], `select current_setting('${name}') as value`);
    if (row!["value"] !== wanted) dropped.push(`${name} = ${wanted}`);
  }
  return dropped;
}
