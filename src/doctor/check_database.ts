/** Checks the PostgreSQL that a server uses: version, settings, privileges, tables and clock. */

import type { Sql } from "../database/connect.ts";
import {
  type RolePrivileges,
  selectBloatedTables,
  selectClockMs,
  selectInvalidIndexes,
  selectLongTransactions,
  selectMonthSizes,
  selectRolePrivileges,
  selectServerSettings,
  selectUnusedSlots,
  type ServerSettings,
} from "../database/diagnosis.ts";
import { MIN_POSTGRES_VERSION, schemaVersion, selectAppliedCount } from "../database/migrate.ts";
import { selectMissingPartitions } from "../database/partitions.ts";
import { selectOutgrownTables } from "../database/statistics.ts";
import { type Finding, findingsOf, toRoughTime } from "./finding.ts";
import { toSize } from "../wording/numbers.ts";

const { ok, warn, fail } = findingsOf("database");

const MIN_SHARED_BUFFERS_BYTES = 128 * 2 ** 20;

type ServerOptions = {
  /** The server starts PostgreSQL itself. */
  isBuiltIn: boolean;
  /** The maximum number of connections that this server opens. */
  neededConnections: number;
};

export async function checkServer(sql: Sql, { isBuiltIn, neededConnections }: ServerOptions): Promise<Finding[]> {
  const settings = await selectServerSettings(sql);
  const { version, versionText, databaseBytes, encoding, maxConnections, connections } = settings;
  const size = `the database takes ${toSize(databaseBytes)}`;
  return [
    version < MIN_POSTGRES_VERSION
      ? fail(`PostgreSQL ${versionText} is too old`, "Use PostgreSQL 15 or newer")
      : ok(`PostgreSQL ${versionText}; ${size}`),
    ...(encoding === "UTF8"
      ? []
      : [
          fail(
            `The encoding of the database is ${encoding}`,
            "Create a database with encoding 'UTF8' and restore a backup",
          ),
        ]),
    ...(settings.inRecovery || settings.isReadOnly
      ? [fail("The database is read-only", "Set DATABASE_URL to the primary, or wait for the end of the fail-over")]
      : []),
    ...toSettingFindings(settings, isBuiltIn),
    maxConnections < neededConnections
      ? fail(
          `PostgreSQL accepts ${maxConnections} connections, and this server may need ${neededConnections}`,
          "Raise max_connections, or lower DATABASE_POOL",
        )
      : ok(
          `PostgreSQL accepts ${maxConnections} connections, ${connections} are open; each server like this one may need ${neededConnections}`,
        ),
  ];
}

function toSettingFindings(settings: ServerSettings, isBuiltIn: boolean): Finding[] {
  const { fsync, fullPageWrites, synchronousCommit, autovacuum, trackCounts } = settings;
  const findings: Finding[] = [];
  if (fsync !== "on" || fullPageWrites !== "on")
    findings.push(
      fail(
        "fsync or full_page_writes is off, so a power failure can destroy the database",
        "Set both to on and restart PostgreSQL",
      ),
    );
  if (synchronousCommit === "off")
    findings.push(
      warn(
        "synchronous_commit is off, so a crash can lose the last acknowledged uploads",
        "Set synchronous_commit = on",
      ),
    );
  if (autovacuum !== "on" || trackCounts !== "on")
    findings.push(fail("autovacuum is off, so tables grow without limit", "Set autovacuum = on and track_counts = on"));
  if (settings.idleSessionTimeoutMs > 0)
    findings.push(
      warn("idle_session_timeout closes connections of the server", "Set idle_session_timeout = 0 for the role"),
    );
  if (!isBuiltIn && settings.sharedBuffersBytes < MIN_SHARED_BUFFERS_BYTES)
    findings.push(
      warn(
        `shared_buffers is only ${toSize(settings.sharedBuffersBytes)}`,
        "Set shared_buffers to about a quarter of the memory",
      ),
    );
  return findings;
}

/** Compares the schema with that of this program. `isCurrent`: they are the same, so that its tables can be read. */
export async function checkSchema(sql: Sql): Promise<{ findings: Finding[]; isCurrent: boolean }> {
  const [known, applied] = [await schemaVersion(), await selectAppliedCount(sql)];
  if (applied === known) return { findings: [ok(`The schema is ${applied}, that of this program`)], isCurrent: true };
  const finding =
    applied > known
      ? fail(
          `The schema is ${applied}, and this program knows up to ${known}`,
          "Use the version of the server that runs",
        )
      : warn(
          applied === 0 ? "The database is empty" : `The schema is ${applied}, and that of this program ${known}`,
          applied === 0
            ? "Start the server"
            : "Make a backup, stop the servers of the older version, and start this one: it migrates the database",
        );
  return { findings: [finding], isCurrent: false };
}

export async function checkRole(sql: Sql, isBuiltIn: boolean): Promise<Finding[]> {
  const privileges = findingsOf("permissions");
  const { role, isSuperuser, canCreate, foreignTables }: RolePrivileges = await selectRolePrivileges(sql);
  const findings: Finding[] = [];
  if (!canCreate)
    findings.push(
      privileges.fail(
        `The role "${role}" cannot create tables, so it can neither migrate nor add a month`,
        `Run: grant create on schema public to "${role}"`,
      ),
    );
  if (foreignTables.length > 0)
    findings.push(
      privileges.fail(
        `${foreignTables.length} tables belong to another role than "${role}", such as "${foreignTables[0]}"`,
        `Run as their owner: reassign owned by OWNER to "${role}"`,
      ),
    );
  if (isSuperuser && !isBuiltIn)
    findings.push(
      privileges.warn(`The role "${role}" is a superuser`, "Use a role that owns only the database of Assay"),
    );
  return findings.length > 0 ? findings : [privileges.ok(`The role "${role}" can create tables and owns all tables`)];
}

/** Outdated statistics of a smaller table make no plan noticeably worse. */
const SMALL_TABLE_ROWS = 1_000;

/** Checks statistics, dead rows, indexes, partitions and transactions. */
export async function checkTables(sql: Sql, now: Date): Promise<Finding[]> {
  const tables = findingsOf("tables");
  const outgrown = await selectOutgrownTables(sql, SMALL_TABLE_ROWS);
  const bloated = await selectBloatedTables(sql);
  const invalid = await selectInvalidIndexes(sql);
  const missing = await selectMissingPartitions(sql, now);
  const findings = [
    ...(outgrown.length === 0
      ? []
      : [
          tables.warn(
            `Statistics are missing or outdated: ${list(outgrown)}`,
            "A running server analyses them within ten seconds; otherwise run: analyze",
          ),
        ]),
    ...bloated.map(({ name, live, dead }) =>
      tables.warn(
        `${name} has ${dead} dead rows beside ${live} live ones`,
        `Run: vacuum (analyze) ${name}; look for long transactions, and make autovacuum more frequent`,
      ),
    ),
    ...(invalid.length === 0
      ? []
      : [tables.fail(`Indexes are invalid: ${list(invalid)}`, `Run: reindex index concurrently ${invalid[0]}`)]),
    ...(missing.length === 0
      ? []
      : [
          tables.warn(
            `Partitions are missing: ${list(missing)}`,
            "A running server creates them within an hour, except during a backup: see its log",
          ),
        ]),
  ];
  return findings.length > 0 ? findings : [tables.ok("Statistics, dead rows, indexes and partitions are in order")];
}

export async function checkTransactions(sql: Sql): Promise<Finding[]> {
  const transactions = await selectLongTransactions(sql);
  const slots = await selectUnusedSlots(sql);
  return [
    ...transactions.map(({ pid, application, state, seconds }) =>
      warn(
        `A transaction of "${application}" (pid ${pid}, ${state}) has been open for ${toRoughTime(seconds)}, and dead rows are kept for it`,
        `If it is not a backup, run: select pg_terminate_backend(${pid})`,
      ),
    ),
    ...slots.map((name) =>
      warn(
        `Nobody reads the replication slot "${name}", and PostgreSQL keeps its log of writes for it`,
        `Start the standby, or run: select pg_drop_replication_slot('${name}')`,
      ),
    ),
  ];
}

/** Compares the space with what a month of results takes. `freeBytes`: undefined where the database is on another machine. */
export async function checkGrowth(sql: Sql, freeBytes: number | undefined, now: Date): Promise<Finding[]> {
  const disk = findingsOf("disk");
  const current = now.toISOString().slice(0, 7).replace("-", "_");
  const past = (await selectMonthSizes(sql)).filter(({ month }) => month < current);
  const last = past.at(-1);
  if (!last) return [];
  const message = `The results of ${last.month.replace("_", "-")} take ${toSize(last.bytes)}`;
  if (freeBytes === undefined || freeBytes > 3 * last.bytes) return [disk.ok(message)];
  return [
    disk.warn(
      `${message}, and ${toSize(freeBytes)} are free`,
      "Add space before it is used up, or lower RETENTION_DAYS",
    ),
  ];
}

const [CLOCK_WARN_MS, CLOCK_FAIL_MS] = [2_000, 60_000];

/** The answer takes a while: the clock of the database was read at some moment in between. */
export async function checkClock(sql: Sql, clock: () => number = Date.now): Promise<Finding[]> {
  const area = findingsOf("clock");
  const asked = clock();
  const time = await selectClockMs(sql);
  const answered = clock();
  const aheadMs = time > answered ? time - answered : time < asked ? time - asked : 0;
  if (Math.abs(aheadMs) < CLOCK_WARN_MS) return [area.ok("This machine and the database have the same time")];
  const level = Math.abs(aheadMs) < CLOCK_FAIL_MS ? area.warn : area.fail;
  const seconds = toRoughTime(Math.abs(aheadMs) / 1000);
  return [
    level(
      `The clock of the database is ${seconds} ${aheadMs > 0 ? "ahead of" : "behind"} this machine`,
      "Synchronize both clocks (NTP): leases, sessions and rate limits depend on them",
    ),
  ];
}

const MAX_LISTED = 5;
const list = (names: readonly string[]): string =>
  `${names.slice(0, MAX_LISTED).join(", ")}${names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : ""}`;
