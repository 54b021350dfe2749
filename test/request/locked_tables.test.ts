/** A table that is locked delays what reads it, and neither the look-ups of keys nor the API beside it, nor another team. */

import { expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { createHarness, until } from "../harness.ts";
import { createPerson } from "../people.ts";

const { ask, acme, rival, regenerate, database, url } = await createHarness();

/** `work` while the table is locked and `reading` waits for it; fails unless `reading` still waits at the end. */
async function whileLocked(table: string, reading: () => Promise<unknown>, work: () => Promise<void>): Promise<void> {
  let waiting: Promise<unknown> | undefined;
  await database.begin(async (sql) => {
    await sql`lock table ${sql(table)} in access exclusive mode`;
    let hasEnded = false;
    waiting = reading().finally(() => (hasEnded = true));
    const waiters = () => sql`select from pg_locks where relation = ${table}::regclass and not granted`;
    await until(async () => (await waiters()).length > 0);
    await work();
    // It was asked first: on one connection with the others it would have been answered before them.
    expect(hasEnded).toBe(false);
  });
  await waiting;
}

for (const table of ["session", "account"])
  test(`the API goes on while "${table}" is locked and a page waits for it`, async () => {
    const { token } = await createPerson(database, { team: acme.team, role: "owner" });
    const page = () => fetch(url, { headers: { cookie: `assay_session=${token}` } }).then((answer) => answer.text());
    const { project, key } = acme;
    const fresh = (acme.key = await regenerate(acme));
    await whileLocked(table, page, async () => {
      // The key is looked up for the first time.
      const paths = ["", "/test-runs", "/executions", `/executions/${crypto.randomUUID()}`, "/executions?limit=x"];
      const { call } = createAsking(ask, { project, key: fresh });
      const asked = [...paths.map((path) => call("GET", path)), ask(`GET /projects/${project}`, { key })];
      expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 200, 404, 400, 401]);
    });
  });

test("keys are looked up while another table is locked and a short read of the API waits for it", async () => {
  const reading = () =>
    ask(`GET /projects/${acme.project}/bug-reports/${crypto.randomUUID()}/occurrences`, { key: acme.key });
  const revoked = rival.key;
  rival.key = await regenerate(rival);
  await whileLocked("bug_report", reading, async () => {
    expect((await ask(`GET /projects/${rival.project}`, { key: revoked })).status).toBe(401);
    // Known by now, and asked again whether it is live.
    expect((await ask(`GET /projects/${acme.project}/executions`, { key: acme.key })).status).toBe(200);
  });
});

/** More than the pool has connections. */
const READS = 8;

for (const [what, read] of [
  ["requests", () => ask(`GET /teams/${acme.team}/environments`, { key: acme.teamKey })],
  [
    "pages",
    async () => {
      const { token } = await createPerson(database, { team: acme.team, role: "owner" });
      return await fetch(`${url}/teams/${acme.team}/environments`, { headers: { cookie: `assay_session=${token}` } });
    },
  ],
] as const)
  test(`other teams are answered while many ${what} of one team wait for a table`, async () => {
    const answers: Promise<{ status: number }>[] = [];
    const { token } = await createPerson(database, { team: rival.team, role: "owner" });
    const reading = () => Promise.all(Array.from({ length: READS }, () => (answers.push(read()), answers.at(-1)!)));
    await whileLocked("environment", reading, async () => {
      const waiters = () =>
        database.pool`select from pg_locks where relation = 'environment'::regclass and not granted`;
      await until(async () => (await waiters()).length === 3);
      const page = await fetch(`${url}/projects/${rival.project}`, { headers: { cookie: `assay_session=${token}` } });
      const { status } = await ask(`GET /projects/${rival.project}/executions`, { key: rival.key });
      expect([page.status, status]).toEqual([200, 200]);
    });
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(READS).fill(200));
  });
