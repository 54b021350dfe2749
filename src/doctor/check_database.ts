/** Checks the PostgreSQL that a server uses: version, settings, role, schema, clock, and what it says about the service. */

import type { Database, Sql } from "../database/connect.ts";
import { selectClockSkewMs, selectServerFacts, type ServerFacts } from "../database/diagnosis.ts";
import { MIN_POSTGRES_VERSION, schemaVersion, selectAppliedCount } from "../database/migrate.ts";
import { selectDroppedSettings } from "../database/session.ts";
import { OPERATOR_COMMAND } from "../executable.ts";
import { createSeal } from "../secrets/seal.ts";
import { selectGauges } from "../store/gauges.ts";
import { selectSecretKeyDigest } from "../store/instance.ts";
import { selectPlannedDeletions, selectServerRetentions } from "../store/retention.ts";
import { toDuration, toSize } from "../wording/numbers.ts";
import { toPlanRemedy, toPlanText, toRetentionDifferences } from "../wording/retention.ts";
import { type Finding, findingsOf } from "./finding.ts";

const { ok, warn, fail } = findingsOf("database");

type Setting = { wanted: string; isWrong: (value: string) => boolean; level: typeof warn; effect: string };

const isOff = (value: string): boolean => value === "off";
const DURABILITY = { wanted: "on", isWrong: isOff, level: fail, effect: "a power failure can destroy the database" };
const CLEANING = { wanted: "on", isWrong: isOff, level: fail, effect: "tables grow without limit" };

const SETTINGS: Record<string, Setting> = {
  fsync: DURABILITY,
  full_page_writes: DURABILITY,
  synchronous_commit: { ...DURABILITY, level: warn, effect: "a crash can lose the last acknowledged uploads" },
  autovacuum: CLEANING,
  track_counts: CLEANING,
  idle_session_timeout: {
    ...{ wanted: "0", isWrong: (value) => value !== "0", level: warn },
    effect: "PostgreSQL closes connections of the server",
  },
};

type ServerOptions = {
  /** The server starts PostgreSQL itself. */
  isBuiltIn: boolean;
  /** The maximum number of connections that this server opens. */
  neededConnections: number;
};

export async function* checkServer(sql: Sql, { isBuiltIn, neededConnections }: ServerOptions): AsyncGenerator<Finding> {
  const facts = await selectServerFacts(sql, Object.keys(SETTINGS));
  const { version, versionText, databaseBytes, encoding, maxConnections, connections } = facts;
  yield version < MIN_POSTGRES_VERSION
    ? fail(`PostgreSQL ${versionText} is too old`, "Use PostgreSQL 15 or newer")
    : ok(`PostgreSQL ${versionText}; the database takes ${toSize(databaseBytes)}`);
  if (encoding !== "UTF8")
    yield fail(
      `The encoding of the database is ${encoding}`,
      "Create a database with encoding 'UTF8' and restore a backup",
    );
  if (facts.isReadOnly)
    yield fail("The database is read-only", "Set DATABASE_URL to the primary, or wait for the end of the fail-over");
  for (const [name, { wanted, isWrong, level, effect }] of Object.entries(SETTINGS)) {
    const value = facts.settings[name]!;
    if (isWrong(value)) yield level(`${name} is ${value}, so ${effect}`, `Set ${name} = ${wanted}`);
  }
  yield maxConnections < neededConnections
    ? fail(
        `PostgreSQL accepts ${maxConnections} connections, and this server may need ${neededConnections}`,
        "Raise max_connections, or lower DATABASE_POOL",
      )
    : ok(
        `PostgreSQL accepts ${maxConnections} connections, ${connections} are open; each server like this one may need ${neededConnections}`,
      );
  yield* checkRole(facts, isBuiltIn);
}

/** A pooler may drop the settings that a server opens its sessions with. */
export async function* checkDroppedSettings(database: Pick<Database, "pool" | "fast">): AsyncGenerator<Finding> {
  for (const setting of await selectDroppedSettings(database))
    yield warn(
      `A pooler does not pass on ${setting}, so statements may take several times as long`,
      `Set it on the role: alter role NAME set ${setting} (docs/operations.md)`,
    );
}

function* checkRole({ role, isSuperuser, canCreate, foreignTables }: ServerFacts, isBuiltIn: boolean) {
  if (!canCreate)
    yield fail(
      `The role "${role}" cannot create tables, so it can neither migrate nor add a month`,
      `Run: grant create on schema public to "${role}"`,
    );
  if (foreignTables.length > 0)
    yield fail(
      `${foreignTables.length} tables belong to another role than "${role}", such as "${foreignTables[0]}"`,
      `Run as their owner: reassign owned by OWNER to "${role}"`,
    );
  if (isSuperuser && !isBuiltIn)
    yield warn(`The role "${role}" is a superuser`, "Use a role that owns only the database of Assay");
}

/** Compares the schema with that of this program. Returns whether they are the same, so that its tables can be read. */
export async function* checkSchema(sql: Sql): AsyncGenerator<Finding, boolean> {
  const [known, applied] = [await schemaVersion(), await selectAppliedCount(sql)];
  if (applied === known) yield ok(`The schema is ${applied}, that of this program`);
  else if (applied > known)
    yield fail(
      `The schema is ${applied}, and this program knows up to ${known}`,
      "Use the version of the server that runs",
    );
  else if (applied === 0) yield warn("The database is empty", "Start the server");
  else
    yield warn(
      `The schema is ${applied}, and that of this program ${known}`,
      "Make a backup, stop the servers of the older version, and start this one: it migrates the database",
    );
  return applied === known;
}

const [CLOCK_WARN_MS, CLOCK_FAIL_MS] = [2_000, 60_000];

export async function* checkClock(sql: Sql, clock: () => number = Date.now): AsyncGenerator<Finding> {
  const area = findingsOf("clock");
  const aheadMs = await selectClockSkewMs(sql, clock);
  if (Math.abs(aheadMs) < CLOCK_WARN_MS) return yield area.ok("This machine and the database have the same time");
  const level = Math.abs(aheadMs) < CLOCK_FAIL_MS ? area.warn : area.fail;
  yield level(
    `The clock of the database is ${toDuration(Math.abs(aheadMs))} ${aheadMs > 0 ? "ahead of" : "behind"} this machine`,
    "Synchronize both clocks (NTP): leases, sessions and rate limits depend on them",
  );
}

/** All servers of a database have one key. */
export async function* checkKeyOfDatabase(sql: Sql, key: Uint8Array | undefined): AsyncGenerator<Finding> {
  const area = findingsOf("secret key");
  const digest = await selectSecretKeyDigest(sql);
  if (digest === null) {
    if (!key) yield area.ok("There is no secret key, and the database needs none: the next server creates it");
  } else if (!key)
    yield area.fail(
      "The database is used with a secret key, and there is none here",
      'Set SECRET_KEY, or restore the file "secret-key" in DATA_DIR',
    );
  else if (createSeal(key).keyDigest === digest) yield area.ok("The secret key is the key of the database");
  else
    yield area.fail(
      "The secret key is not the key of the database, so a server with it does not start",
      "Set SECRET_KEY to the key of the other servers, or restore it",
    );
}

const LATE_SECONDS = 600;

/** Checks pending background work. */
export async function* checkQueues(sql: Sql): AsyncGenerator<Finding> {
  const area = findingsOf("server");
  const { quiet, eventAge, uncountedAge, deliveryAge, runners, deliveries } = await selectGauges(sql);
  if (quiet)
    return yield area.warn(
      "The server is quiet after a restore: it sends, schedules and deletes nothing",
      `Run: ${OPERATOR_COMMAND} admin resume`,
    );
  const ages = { events: eventAge, "uploaded runs": uncountedAge, deliveries: deliveryAge };
  for (const [what, age] of Object.entries(ages))
    if (age !== null && age > LATE_SECONDS)
      yield area.warn(
        `The oldest of the ${what} that wait for background work is ${toDuration(age * 1_000)} old`,
        "Look for errors in the log of the servers, and whether one runs",
      );
  yield area.ok(`Runners online: ${runners}; deliveries that wait: ${deliveries}`);
}

/** Settings in which servers differ, and deletions of old data that begin a day after they were announced. */
export async function* checkRetention(sql: Sql): AsyncGenerator<Finding> {
  const area = findingsOf("retention");
  for (const difference of toRetentionDifferences(await selectServerRetentions(sql)))
    yield area.warn(difference, "Give all servers of the database the same settings of retention");
  for (const plan of await selectPlannedDeletions(sql)) {
    if (plan.beginsAt === null) yield area.ok(toPlanText(plan));
    else yield area.warn(toPlanText(plan), toPlanRemedy(OPERATOR_COMMAND));
  }
}
