/** What is asked for at one moment is done in one transaction, and nobody suffers from whom he shares it with. */

import { afterAll, beforeEach, expect, test } from "bun:test";
import { type AddressInfo, connect as connectTo, createServer as createRelay } from "node:net";
import { createHarness, createServer, junit } from "../harness.ts";
import { createBatcher, type BatchWork } from "../../src/request/batcher.ts";
import type { Caller } from "../../src/request/callers.ts";
import { keyDigest } from "../../src/secrets/keys.ts";
import { connect, type Database, type Tx } from "../../src/database/connect.ts";
import { selectLiveKey } from "../../src/store/keys.ts";
import { takeLock, type AdvisoryLock } from "../../src/database/locks.ts";

const { ask, acme, connection, database, addProject, regenerate } = await createHarness();
await database.pool`create table note (transaction xid8, text text not null check (text <> 'wrong'))`;

let project: string;
let key: string;
beforeEach(async () => ({ project, key } = await addProject(acme)));

/** Writes what each member wants written. */
const write: BatchWork<string, string> = async (sql, _, texts, admitted) => {
  const isAdmitted = await admitted;
  const written = texts.filter((_, index) => isAdmitted[index]);
  return {
    outputs: texts.map((text, index) => (isAdmitted[index] && text !== "unusual" ? text : undefined)),
    written: Promise.all(
      written
        .filter((text) => text !== "unusual")
        .map((text) => sql`insert into note select pg_current_xact_id(), ${text}`.execute()),
    ),
  };
};

type Wish = { locks?: AdvisoryLock[]; settle?: (sql: Tx) => Promise<void> | undefined; by?: Caller };

async function createMembers(patienceMs?: number, through: Pick<Database, "beginAhead"> = database) {
  const together = createBatcher(through, patienceMs);
  const caller = { ...(await selectLiveKey(database.pool, keyDigest(key)))!, kind: "project" as const };
  return (text: string, { locks = [], settle = () => undefined, by = caller }: Wish = {}): Promise<boolean> =>
    together(write, project, { key: by, locks, input: text, settle });
}

const notes = async (texts: readonly string[]): Promise<{ text: string; transaction: string }[]> =>
  await database.pool`select text, transaction from note where text = any(${`{${texts.join(",")}}`}::text[]) order by text`;

/** Keeps the transaction open, with a member of its own. */
async function occupy(join: Awaited<ReturnType<typeof createMembers>>) {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const { promise: inside, resolve: enter } = Promise.withResolvers<void>();
  const settle = () => {
    enter();
    return opened;
  };
  const done = join(`before ${Bun.randomUUIDv7()}`, { settle });
  await inside;
  return { open, done };
}

test("those that come while others are at it share the next transaction", async () => {
  const join = await createMembers();
  const before = await occupy(join);
  const texts = ["a", "b", "c", "d"].map((text) => `${text} of many`);
  const done = Promise.all(texts.map((text) => join(text)));
  before.open();
  expect([await before.done, ...(await done)]).not.toContain(false);
  const stored = await notes(texts);
  expect(stored).toHaveLength(texts.length);
  expect(new Set(stored.map(({ transaction }) => transaction)).size).toBe(1);
});

test("where one fails nothing of the transaction is stored, and each is told to go his own way", async () => {
  const join = await createMembers();
  const done = Promise.all(["wrong", "right beside wrong"].map((text) => join(text)));
  expect(await done).toEqual([false, false]);
  expect(await notes(["right beside wrong"])).toEqual([]);
});

test("who throws while he settles undoes it for all", async () => {
  const join = await createMembers();
  const settle = () => {
    throw new Error("the time is over");
  };
  const done = Promise.all([join("late", { settle }), join("in time")]);
  expect(await done).toEqual([false, false]);
  expect(await notes(["late", "in time"])).toEqual([]);
});

test("who throws at once is heard together with those who fail while they settle", async () => {
  const join = await createMembers();
  const later = async (sql: Tx) => {
    await sql`select 1`;
    throw new Error("Somebody else runs the request");
  };
  const atOnce = () => {
    throw new Error("The request's time is over");
  };
  const done = Promise.all([join("fails later", { settle: later }), join("fails at once", { settle: atOnce })]);
  expect(await done).toEqual([false, false]);
});

test("what is settled is stored in the same commit", async () => {
  const join = await createMembers();
  const settle = async (sql: Tx) => void (await sql`insert into note select pg_current_xact_id(), 'settled'`);
  expect(await join("with an answer", { settle })).toBe(true);
  const [answer, settled] = await notes(["settled", "with an answer"]);
  expect(answer!.transaction).toBe(settled!.transaction);
});

test("a revoked key keeps nobody else out, and has nothing done", async () => {
  const join = await createMembers();
  const revoked = { ...(await selectLiveKey(database.pool, keyDigest(acme.key)))!, kind: "project" as const };
  await regenerate(acme);
  const done = Promise.all([join("revoked", { by: revoked }), join("live")]);
  expect(await done).toEqual([false, true]);
  expect(await notes(["revoked"])).toEqual([]);
});

test("nobody waits for a turn that another server has, and whoever wants it goes his own way", async () => {
  const join = await createMembers();
  const turn: AdvisoryLock = ["execution", "a build of another server"];
  await database.begin(async (sql) => {
    await takeLock(sql, turn);
    const done = Promise.all([join("wants the turn", { locks: [turn] }), join("wants none")]);
    expect(await done).toEqual([false, true]);
  });
  expect(await notes(["wants the turn"])).toEqual([]);
});

test("those that want one turn have it together", async () => {
  const join = await createMembers();
  const turn: AdvisoryLock = ["execution", "a build of ours"];
  const done = Promise.all(["first of the build", "second of the build"].map((text) => join(text, { locks: [turn] })));
  expect(await done).toEqual([true, true]);
});

test("one after the other is not kept waiting for others", async () => {
  const join = await createMembers();
  const texts = Array.from({ length: 20 }, (_, index) => `${index} of a row`);
  for (const text of texts) expect(await join(text)).toBe(true);
  expect(await notes(texts)).toHaveLength(texts.length);
});

test("who has waited too long goes his own way", async () => {
  const join = await createMembers(20);
  const before = await occupy(join);
  expect(await join("out of patience")).toBe(false);
  before.open();
  await before.done;
  expect(await notes(["out of patience"])).toEqual([]);
});

test("neither does anybody wait who comes later, while the same transaction still hangs", async () => {
  const join = await createMembers(20);
  const before = await occupy(join);
  for (const text of ["first", "second", "third", "fourth"]) expect(await join(`${text} out of patience`)).toBe(false);
  before.open();
  await before.done;
});

test("what is not as usual is left to its own way, and the others are done", async () => {
  const join = await createMembers();
  const done = Promise.all(["unusual", "usual"].map((text) => join(text)));
  expect(await done).toEqual([false, true]);
});

test("uploads of one moment are taken together, whatever becomes of each", async () => {
  const path = (query: string) => `POST /projects/${project}/test-runs?branch=main&${query}`;
  await ask(path("task_slug=a&execution_key=before"), { key, body: junit("ppp") });
  const queries = [
    ...Array.from({ length: 8 }, (_, index) => `task_slug=t${index}&execution_key=one`),
    ...Array.from({ length: 8 }, (_, index) => `task_slug=a&execution_key=build${index}`),
    "task_slug=a&execution_key=one&commit=1234567",
    "task_slug=a",
    "task_slug=a&execution_id=nonsense",
  ];
  const bodies = (index: number) => junit(index % 5 === 4 ? "pfp" : "ppp");
  const answers = await Promise.all(queries.map((query, index) => ask(path(query), { key, body: bodies(index) })));
  expect(answers.map(({ status }) => status)).toEqual([...queries.slice(1).map(() => 201), 400]);
  const one = answers.slice(0, 8).map(({ body }) => body.executionId);
  expect(new Set(one).size).toBe(1);
  const { body: execution } = await ask(`GET /projects/${project}/executions/${one[0]}`, { key });
  expect(execution.tasks.map(({ slug }: { slug: string }) => slug).sort()).toEqual(
    // The one with a commit is of the build that had not named one.
    ["a", ...Array.from({ length: 8 }, (_, index) => `t${index}`)],
  );
  const { body: runs } = await ask(`GET /projects/${project}/test-runs?limit=100`, { key });
  expect(runs.data).toHaveLength(queries.length);
});

test("an upload that is sent again with its Idempotency-Key is one run, and answered as before", async () => {
  const send = () =>
    ask(`POST /projects/${project}/test-runs?task_slug=a&execution_key=again`, {
      key,
      body: junit("ppp"),
      headers: { "Idempotency-Key": "again" },
    });
  await ask(`POST /projects/${project}/test-runs?task_slug=a&execution_key=before`, { key, body: junit("ppp") });
  const first = await send();
  const second = await send();
  expect([first.status, second.status]).toEqual([201, 201]);
  expect(second.body).toEqual(first.body);
  const { body } = await ask(`GET /projects/${project}/test-runs?limit=100`, { key });
  expect(body.data).toHaveLength(2);
});

test("an upload whose commit is not answered is not taken a second time", async () => {
  const lossy = await createLossyDatabase();
  const server = await createServer(lossy.database);
  const send = () => server.ask(`POST /projects/${project}/test-runs?task_slug=a`, { key, body: junit("ppp") });
  await send();
  lossy.loseNextCommit();
  await send();
  const { body } = await ask(`GET /projects/${project}/test-runs`, { key });
  expect(body.data).toHaveLength(2);
});

test("nobody goes his own way where it is not known what has become of the commit, whatever is said of it", async () => {
  const beginAhead: Database["beginAhead"] = async (work) => {
    await database.beginAhead(work);
    throw Object.assign(new Error("the network has failed"), { code: "ESOMETHING" });
  };
  const join = await createMembers(undefined, { beginAhead });
  await expect(join("lost")).rejects.toThrow("the network has failed");
  expect(await notes(["lost"])).toHaveLength(1);
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
