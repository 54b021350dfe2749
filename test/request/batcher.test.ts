/** Requests of one moment share a transaction, and none is affected by those that it shares it with. */

import { afterAll, beforeEach, expect, test } from "bun:test";
import { type AddressInfo, connect as connectTo, createServer as createRelay } from "node:net";
import { createAsking } from "../asking.ts";
import { createHarness, createServer, junit } from "../harness.ts";
import { createBatcher, type BatchWork } from "../../src/request/batcher.ts";
import type { Caller } from "../../src/request/callers.ts";
import { keyDigest } from "../../src/secrets/keys.ts";
import { connect, type Database, type Tx } from "../../src/database/connect.ts";
import { selectLiveKey } from "../../src/store/keys.ts";
import { takeLock, type AdvisoryLock } from "../../src/database/locks.ts";

const { ask, acme, connection, database, addProject, regenerate } = await createHarness();
await database.pool`create table note (transaction xid8, text text not null check (text <> 'wrong'))`;

let own: ReturnType<typeof createAsking>;
beforeEach(async () => void (own = createAsking(ask, await addProject(acme))));

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
  const caller = { ...(await selectLiveKey(database.pool, keyDigest(own.key)))!, kind: "project" as const };
  return (text: string, { locks = [], settle = () => undefined, by = caller }: Wish = {}): Promise<boolean> =>
    together(write, own.project, { key: by, locks, input: text, settle });
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

test.each([
  ["at once", "at once"],
  ["at once", "later"],
])(
  "a request that throws %s while it settles, beside one that throws %s, undoes the transaction for all",
  async (...when) => {
    const join = await createMembers();
    const settle = {
      "at once": () => {
        throw new Error("The request's time is over");
      },
      later: async (sql: Tx) => {
        await sql`select 1`;
        throw new Error("Somebody else runs the request");
      },
    };
    const texts = when.map((moment, index) => `${index} fails ${moment} beside ${when.join(" and ")}`);
    const failing = when.map((moment, index) => join(texts[index]!, { settle: settle[moment as keyof typeof settle] }));
    expect(await Promise.all([...failing, join("in time")])).toEqual([false, false, false]);
    expect(await notes([...texts, "in time"])).toEqual([]);
  },
);

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

test("a request that has waited too long is sent on its own way, and so are later ones while the transaction hangs", async () => {
  const join = await createMembers(20);
  const before = await occupy(join);
  const texts = ["first", "second", "third"].map((text) => `${text} out of patience`);
  for (const text of texts) expect(await join(text)).toBe(false);
  before.open();
  await before.done;
  expect(await notes(texts)).toEqual([]);
});

test("what is not as usual is left to its own way, and the others are done", async () => {
  const join = await createMembers();
  const done = Promise.all(["unusual", "usual"].map((text) => join(text)));
  expect(await done).toEqual([false, true]);
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
  expect(await own.list("/test-runs?limit=100")).toHaveLength(queries.length);
});

test("an upload whose commit is not answered is not taken a second time", async () => {
  const lossy = await createLossyDatabase();
  const server = await createServer(lossy.database);
  const { send } = createAsking(server.ask, own);
  await send(junit("ppp"));
  lossy.loseNextCommit();
  await send(junit("ppp"));
  expect(await own.list("/test-runs")).toHaveLength(2);
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
