/** The commands of the next release on a database and a backup of this version. */

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { connect, type ConnectionOptions } from "../../../src/database/connect.ts";
import { selectAppliedCount } from "../../../src/database/migrate.ts";
import { createBareDatabase, createHarness, junit } from "../../harness.ts";
import { createPlace, removePlace } from "../../places.ts";
import { createNextRelease, ROOT } from "./next_release.ts";
import { runCommand } from "./program.ts";

setDefaultTimeout(60_000);
const place = createPlace("commands");
afterAll(() => removePlace(place));
const next = await createNextRelease(place);
const { connection, database, ask, acme } = await createHarness({ ownDatabase: true });
await ask(`POST /projects/${acme.project}/test-runs?task_slug=unit`, { key: acme.key, body: junit("pf") });
// A connected process counts as a server.
await database.close();

const assay = (source: string, args: readonly string[], to: Record<string, unknown> = connection) =>
  runCommand({ source, connection: to, dataDir: join(place, "data") }, args);

/** Runs `work` with a connection to the database. */
async function withDatabase<T>(to: Record<string, unknown>, work: (opened: ReturnType<typeof connect>) => Promise<T>) {
  const opened = connect(to as ConnectionOptions, 1);
  return await work(opened).finally(() => opened.close());
}
const applied = () => withDatabase(connection, ({ begin }) => begin(selectAppliedCount));

test("a command refuses the older database and does not upgrade it", async () => {
  const { code, output, errors } = await assay(next.source, ["admin", "list-teams", "--json"]);
  expect([code, output]).toEqual([1, ""]);
  expect(errors).toBe(
    `The database has schema ${next.schema - 1}, and this version of Assay uses ${next.schema}: use the version that the server runs, ` +
      "or start a server of this version, which upgrades the database\n",
  );
  expect(await applied()).toBe(next.schema - 1);
});

test("a backup of this version is restored and upgraded by the next one", async () => {
  const file = join(place, "backup.assay");
  expect(await assay(ROOT, ["backup", file])).toMatchObject({ code: 0 });
  const { connection: empty, database: restored } = await createBareDatabase();
  expect(await assay(next.source, ["restore", file], empty)).toMatchObject({ code: 0 });
  const [row] = await restored.pool`
    select (select max(number) from migration)::int as schema, (select count(*)::int from next_table) as executions,
      (select quiet_since is not null from instance) as quiet`;
  expect(row).toEqual({ schema: next.schema, executions: 1, quiet: true } as never);
});

test("quiet does not upgrade the database while a server is connected to it", async () => {
  await withDatabase(connection, async (server) => {
    await server.pool`select`;
    const { code, errors } = await assay(next.source, ["admin", "quiet"]);
    expect([code, errors]).toEqual([
      1,
      "A server or another command of Assay uses the database: stop it, and repeat this command\n",
    ]);
  });
  expect(await applied()).toBe(next.schema - 1);
});

test("quiet upgrades the database if no server uses it, and says so", async () => {
  const { code, errors } = await assay(next.source, ["admin", "quiet"]);
  expect([code, errors]).toEqual([0, expect.stringContaining(`Migrated the database: ${next.migration}\n`)]);
  expect(await applied()).toBe(next.schema);
});
