/** What leads to PostgreSQL may lead to a standby: no statement may be executed there, because its data is out of date. */

import { chmodSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import postgres from "postgres";
import { connect } from "../../../src/database/connect.ts";
import { startEmbedded } from "../../../src/database/postgres/embedded.ts";
import { give } from "../../../src/database/postgres/home.ts";
import { quickDirectory } from "../../cluster.ts";
import { createPlace, removePlace } from "../../places.ts";
import { hasPgBouncer, IGNORED_PARAMETERS, startPgBouncer } from "../../pgbouncer.ts";

setDefaultTimeout(30_000);
const binaries = process.env["ASSAY_TEST_POSTGRES"];

/** A cluster that waits for a leader, which never comes. */
async function startStandby() {
  const place = createPlace("standby", quickDirectory());
  chmodSync(place, 0o711);
  const directory = join(place, "postgres");
  const start = () => startEmbedded({ directory, fsync: false, ...(binaries && { binaries }) });
  const first = await start();
  await first.stop();
  const cluster = join(directory, "cluster");
  const signal = join(cluster, "standby.signal");
  await Bun.write(signal, "");
  const { uid, gid } = statSync(cluster);
  give({ uid, gid, name: "" }, signal);
  const standby = await start();
  return {
    connection: standby.connection,
    async stop() {
      await standby.stop();
      await removePlace(place);
    },
  };
}

const standby = await startStandby();
afterAll(standby.stop);
const errorOf = (execute: () => PromiseLike<unknown>): PromiseLike<unknown> =>
  execute().then(
    () => "executed",
    (error: unknown) => error,
  );
const IS_STANDBY = expect.objectContaining({ code: "25006", message: expect.stringContaining("is a standby") });

describe("a standby", () => {
  const database = connect(standby.connection, 2);
  afterAll(database.close);
  const work = {
    "a statement": () => database.pool`select 1`,
    "a short read": () => database.fast`select 1`,
    "a transaction": () => database.begin(async (sql) => await sql`select 1`),
    "a transaction that begins ahead": () => database.beginAhead(async (sql) => await sql`select 1`),
  };

  test.each(Object.entries(work))("does not execute %s", async (_, execute) => {
    // The second attempt has the connection that was refused.
    for (let attempt = 0; attempt < 2; attempt++) expect(await errorOf(execute)).toEqual(IS_STANDBY);
  });

  test.if(hasPgBouncer)(
    "behind PgBouncer, which does not report the state of a server, is recognised as well",
    async () => {
      const url = await startPgBouncer(standby.connection, { pool_mode: "session", ...IGNORED_PARAMETERS });
      const behind = connect({ url }, 1);
      expect(await errorOf(() => behind.pool`select 1`)).toEqual(IS_STANDBY);
      await behind.close();
    },
  );

  test("executes everything when it has been promoted", async () => {
    const admin = postgres({ ...standby.connection, max: 1 });
    await admin`select pg_promote()`;
    await admin.end();
    for (const execute of Object.values(work)) await execute();
  });
});
