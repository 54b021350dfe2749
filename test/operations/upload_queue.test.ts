/** Uploads of one moment share a transaction, and none is affected by those that it shares it with. */

import { afterAll, beforeEach, expect, test } from "bun:test";
import { type AddressInfo, connect as connectTo, createServer as createRelay } from "node:net";
import { createAsking } from "../asking.ts";
import { createHarness, createServer, holdTransaction, junit, until } from "../harness.ts";
import { takeUpload, type QueuedUpload, type UploadServices } from "../../src/operations/ingest/queue.ts";
import { prepareReport } from "../../src/operations/ingest/prepare.ts";
import { readReport } from "../../src/reports/read.ts";
import type { UploadParameters } from "../../src/schema/test_runs.ts";
import { keyDigest } from "../../src/secrets/keys.ts";
import { connect } from "../../src/database/connect.ts";
import { takeLock } from "../../src/database/locks.ts";
import { lockOfKey } from "../../src/store/execution_of_build.ts";
import { selectLiveKey } from "../../src/store/keys.ts";

const { ask, acme, connection, database, addProject, regenerate } = await createHarness();
const { pool } = database;

let own: ReturnType<typeof createAsking>;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
  // Its test cases are known from now on.
  await own.upload("ppp", "task_slug=unit&execution_key=first");
});

/** The number of transactions that have written the runs of these builds. */
const countTransactions = async (keys: readonly string[]): Promise<number> => {
  const rows = await pool`
    select distinct r.xmin from test_run r join execution e on e.project_id = r.project_id and e.id = r.execution_id
    where r.project_id = ${own.project} and e.key = any(${`{${keys.join(",")}}`}::text[])`;
  return rows.length;
};

async function toUpload(
  parameters: Partial<UploadParameters>,
  more: Partial<QueuedUpload> = {},
): Promise<QueuedUpload> {
  const given = { allow_empty: false, complete: false, task_slug: "unit", ...parameters };
  const bytes = new TextEncoder().encode(junit("ppp"));
  const report = readReport([{ name: "report.xml", bytes }], { maxInflatedBytes: 1e6, mayBeEmpty: false });
  return {
    key: (await selectLiveKey(pool, keyDigest(own.key)))!,
    prepared: await prepareReport(own.project, report, given, Bun.SHA256.hash(JSON.stringify(given), "hex")),
    parameters: given,
    files: { files: [], warnings: [], added: [] },
    claim: null,
    progress: { expired: false },
    answer: { publicUrl: "http://assay.example", wantsText: false },
    ...more,
  };
}

const services = (): UploadServices => ({
  ...{ sql: pool, begin: database.begin, beginAhead: database.beginAhead },
  limits: { maxBytes: 100, maxFiles: 2, maxExecutionBytes: 100, maxProjectBytes: 0 } as never,
});
/** The statuses of the answers, or the kinds of the refusals. */
const take = async (uploads: readonly QueuedUpload[]) =>
  (await Promise.allSettled(uploads.map((upload) => takeUpload(services(), own.project, upload)))).map((one) =>
    one.status === "fulfilled" ? one.value.answer.status : one.reason.kind,
  );

test("those that come at once share a transaction, those of one build follow each other", async () => {
  const uploads = await Promise.all(["a", "b", "c", "a"].map((key) => toUpload({ execution_key: key })));
  expect(await take(uploads)).toEqual([201, 201, 201, 200]);
  expect(await countTransactions(["a", "b", "c"])).toBe(1);
});

test("those that come while others are stored share the next transaction", async () => {
  const lock = lockOfKey(own.project, "held");
  const { release } = await holdTransaction(database, (sql) => takeLock(sql, lock));
  const first = own.send(junit("ppp"), "task_slug=unit&execution_key=held");
  await until(async () => (await pool`select from pg_locks where locktype = 'advisory' and not granted`).length > 0);
  const keys = ["d", "e", "f"];
  const others = keys.map((key) => own.send(junit("ppp"), `task_slug=unit&execution_key=${key}`));
  await Bun.sleep(0);
  await release();
  const answers = await Promise.all([first, ...others]);
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
  expect(await countTransactions(keys)).toBeLessThanOrEqual(2);
});

test("a transaction that waits for a lock of another server does not stop the others for good", async () => {
  const lock = lockOfKey(own.project, "held");
  const { release } = await holdTransaction(database, (sql) => takeLock(sql, lock));
  const held = own.send(junit("ppp"), "task_slug=unit&execution_key=held");
  await until(async () => (await pool`select from pg_locks where locktype = 'advisory' and not granted`).length > 0);
  expect((await own.send(junit("ppp"), "task_slug=unit&execution_key=free")).status).toBe(201);
  await release();
  expect((await held).status).toBe(201);
});

test("a revoked key keeps nobody else out, and stores nothing", async () => {
  const revoked = await toUpload(
    { execution_key: "revoked" },
    { key: (await selectLiveKey(pool, keyDigest(acme.key)))! },
  );
  await regenerate(acme);
  expect(await take([revoked, await toUpload({ execution_key: "live" })])).toEqual(["revoked", 201]);
  expect([await countTransactions(["revoked"]), await countTransactions(["live"])]).toEqual([0, 1]);
});

test("an upload that its client does not wait for any more is not stored, and those beside it are", async () => {
  const progress = { expired: false };
  const late = await toUpload({ execution_key: "late" }, { progress });
  const { release } = await holdTransaction(database, (sql) => takeLock(sql, lockOfKey(own.project, "late")));
  const answers = take([late, await toUpload({ execution_key: "in time" })]);
  await until(async () => (await pool`select from pg_locks where locktype = 'advisory' and not granted`).length > 0);
  progress.expired = true;
  await release();
  expect(await answers).toEqual(["expired", 201]);
  expect(await countTransactions(["late"])).toBe(0);
});

test("the answer to an Idempotency-Key is stored in the transaction of the report", async () => {
  const headers = { "idempotency-key": crypto.randomUUID() };
  const send = () =>
    ask(`POST /projects/${own.project}/test-runs?task_slug=unit&execution_key=once`, {
      ...{ key: own.key, body: junit("ppp"), headers },
    });
  const [first, second] = [await send(), await send()];
  expect([first.status, second.body]).toEqual([201, first.body]);
  const [row] = await pool<{ isSame: boolean }[]>`
    select i.xmin = r.xmin as "isSame" from idempotency i, test_run r join execution e using (project_id)
    where i.key = ${headers["idempotency-key"]} and r.project_id = ${own.project} and e.id = r.execution_id and e.key = 'once'`;
  expect(row!.isSame).toBe(true);
});

test("an upload whose answer another request stores is undone, and those beside it are stored", async () => {
  const claim = { teamId: acme.team, scopeId: own.project, key: "taken over", claim: Bun.randomUUIDv7() };
  const lost = await toUpload({ execution_key: "lost" }, { claim });
  expect(await take([lost, await toUpload({ execution_key: "beside" })])).toEqual(["taken over", 201]);
  expect([await countTransactions(["lost"]), await countTransactions(["beside"])]).toEqual([0, 1]);
});

test("uploads of one moment are taken together, whatever becomes of each", async () => {
  await own.upload("ppp", "branch=main&task_slug=a&execution_key=before");
  const queries = [
    ...Array.from({ length: 8 }, (_, index) => `task_slug=t${index}&execution_key=one`),
    ...Array.from({ length: 8 }, (_, index) => `task_slug=a&execution_key=build${index}`),
    "task_slug=a&execution_key=one&commit=1234567",
    "task_slug=a",
    "task_slug=a&execution_id=nonsense",
  ];
  const bodies = (index: number) => junit(index % 5 === 4 ? "pfp" : "ppp");
  const answers = await Promise.all(queries.map((query, index) => own.send(bodies(index), `branch=main&${query}`)));
  expect(answers.map(({ status }) => status)).toEqual([...queries.slice(1).map(() => 201), 400]);
  const one = answers.slice(0, 8).map(({ body }) => body.executionId);
  expect(new Set(one).size).toBe(1);
  const { tasks } = await own.get(`/executions/${one[0]}`);
  expect(tasks.map(({ slug }: { slug: string }) => slug).sort()).toEqual(
    // The one with a commit is of the build that had not named one.
    ["a", ...Array.from({ length: 8 }, (_, index) => `t${index}`)],
  );
  expect(await own.list("/test-runs?limit=100")).toHaveLength(queries.length + 1);
});

test("an upload whose commit is not answered is not taken a second time", async () => {
  const lossy = await createLossyDatabase();
  const server = await createServer(lossy.database);
  const { send } = createAsking(server.ask, own);
  await send(junit("ppp"));
  lossy.loseNextCommit();
  await send(junit("ppp"));
  expect(await own.list("/test-runs")).toHaveLength(3);
});

test("nothing is repeated where it is not known what has become of the commit, whatever is said of it", async () => {
  const beginAhead: UploadServices["beginAhead"] = async (work) => {
    await database.beginAhead(work);
    throw Object.assign(new Error("the network has failed"), { code: "ESOMETHING" });
  };
  const uploads = await Promise.all(["x", "y"].map((key) => toUpload({ execution_key: key })));
  const lossy = { ...services(), begin: ((work) => database.begin(work)) as UploadServices["begin"], beginAhead };
  const ends = await Promise.allSettled(uploads.map((upload) => takeUpload(lossy, own.project, upload)));
  expect(ends.map((end) => end.status === "rejected" && end.reason.message)).toEqual(
    Array(2).fill("the network has failed"),
  );
  expect(await countTransactions(["x", "y"])).toBe(1);
  expect(await own.list("/test-runs")).toHaveLength(3);
});

/** The same database, behind what cuts a connection off at the answer to its commit. */
async function createLossyDatabase() {
  let loses = false;
  const relay = createRelay((client) => {
    const there = connectTo(`${connection.host}/.s.PGSQL.${connection.port}`);
    client.on("data", (data) => void there.write(data)).on("close", () => there.destroy());
    there
      .on("close", () => client.destroy())
      .on("data", (data) => {
        if (!loses || !data.includes("COMMIT\0")) return void client.write(data);
        loses = false;
        client.destroy();
      });
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  const { port } = relay.address() as AddressInfo;
  const lossy = connect({ ...connection, host: "127.0.0.1", port }, 4);
  afterAll(async () => {
    await lossy.close();
    relay.close();
  });
  return { database: lossy, loseNextCommit: () => void (loses = true) };
}
