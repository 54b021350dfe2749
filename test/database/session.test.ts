/** What stands between Assay and PostgreSQL must give each connection a session of its own, or the start says so. */

import { describe, expect, test } from "bun:test";
import postgres from "postgres";
import { connect } from "../../src/database/connect.ts";
import { requireSessions, selectDroppedSettings } from "../../src/database/session.ts";
import { createHarness, createServer, junit } from "../harness.ts";
import { hasPgBouncer, IGNORED_PARAMETERS, startPgBouncer, startSharingPooler } from "../pgbouncer.ts";

const { acme, connection, database, regenerate } = await createHarness({ ownDatabase: true });

/** What the start says of the database at the URL; undefined: nothing. */
async function refusalOf(url: string): Promise<string | undefined> {
  const database = connect({ url }, 2);
  try {
    await requireSessions(database);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await database.close();
  }
}

const SHARED = expect.stringMatching(
  /^DATABASE_URL leads through a pooler that shares sessions .* pool_mode to session/,
);
const WITHOUT_SETTINGS = expect.stringMatching(
  /^DATABASE_URL leads through a pooler that does not pass on the settings of a session .* docs\/operations.md/,
);
const SETTINGS = {
  ...{ lock_timeout: "15s", idle_in_transaction_session_timeout: "60s", statement_timeout: "60s" },
  ...{ jit: "off", plan_cache_mode: "force_generic_plan" },
};

test("PostgreSQL itself is taken, and settings for speed that a session lacks are named", async () => {
  await requireSessions(database);
  expect(await selectDroppedSettings(database)).toEqual([]);
  const plain = postgres({ ...connection, max: 1, connection: { jit: "on" } } as never);
  const sessions = { pool: plain, fast: plain } as never;
  expect(await selectDroppedSettings(sessions)).toEqual(["jit = off", "plan_cache_mode = force_generic_plan"]);
  await plain.end();
});

test("a pooler that sends all connections through one session is refused", async () => {
  expect(await refusalOf(await startSharingPooler(connection, SETTINGS))).toEqual(SHARED);
});

describe.if(hasPgBouncer)("PgBouncer", () => {
  for (const pool_mode of ["transaction", "statement"])
    for (const server_round_robin of ["0", "1"])
      test(`in ${pool_mode} mode is refused (server_round_robin ${server_round_robin})`, async () => {
        const url = await startPgBouncer(connection, { pool_mode, server_round_robin, ...IGNORED_PARAMETERS });
        expect(await refusalOf(url)).toEqual(SHARED);
        // While others use it as well.
        const others = connect({ url }, 2);
        const busy = Array.from({ length: 20 }, () => others.pool.unsafe("select pg_sleep(0.01)").simple());
        expect(await refusalOf(url)).toEqual(SHARED);
        await Promise.allSettled(busy);
        await others.close();
      });

  test("in session mode is refused where it does not know the settings, and where it drops them", async () => {
    expect(await refusalOf(await startPgBouncer(connection, { pool_mode: "session" }))).toEqual(WITHOUT_SETTINGS);
    const url = await startPgBouncer(connection, { pool_mode: "session", ...IGNORED_PARAMETERS });
    expect(await refusalOf(url)).toEqual(WITHOUT_SETTINGS);
  });

  test("in session mode is taken where the database has the settings, and a server works through it", async () => {
    const url = await startPgBouncer(connection, { pool_mode: "session", ...IGNORED_PARAMETERS });
    const name = String(connection["database"]);
    for (const [setting, value] of Object.entries(SETTINGS))
      await database.pool.unsafe(`alter database ${name} set ${setting} = '${value}'`);
    expect(await refusalOf(url)).toBeUndefined();

    const pooled = connect({ url }, 2);
    expect(await selectDroppedSettings(pooled)).toEqual([]);
    const { ask } = await createServer(pooled);
    const { project, key } = acme;
    const upload = (number: number) =>
      ask(`POST /projects/${project}/test-runs?task_slug=unit-${number}`, { key, body: junit("pf") });
    const uploads = await Promise.all(Array.from({ length: 20 }, (_, number) => upload(number)));
    expect(uploads.map(({ status }) => status)).toEqual(uploads.map(() => 201));
    expect((await ask(`GET /projects/${project}/test-runs?limit=100`, { key })).body.data).toHaveLength(20);
    await regenerate(acme);
    expect((await upload(20)).status).toBe(401);
    await pooled.close();
  });
});
