/** The live stream over real HTTP. */

import { afterAll, describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import * as v from "valibot";
import { streamEvents } from "../../src/schema/event_bodies.ts";
import { readPosition, writePosition } from "../../src/rules/stream_position.ts";
import { connect, type Tx } from "../../src/database/connect.ts";
import { insertEvents } from "../../src/store/events.ts";
import { appendLogs } from "../../src/store/lease_logs.ts";
import { createSignals } from "../../src/database/signals.ts";
import { type EventStream, openStream, type StreamOptions } from "../event_stream.ts";
import { type Company, createHarness, createServer, junit, until } from "../harness.ts";

const { ask, acme, rival, url, database, connection, addProject, regenerate } = await createHarness();
const other = await createServer(database);
const opened: EventStream[] = [];
afterAll(() => Promise.all(opened.map((stream) => stream.close())));

async function open(
  { project, key }: Pick<Company, "project" | "key">,
  options: Partial<StreamOptions> = {},
  server = url,
) {
  const stream = await openStream(server, project, { key, ...options });
  opened.push(stream);
  return stream;
}
const of = ({ id }: { id: string }) => ({ query: `?execution_id=${id}` });
/** Waits until the stream has told so many notes. */
const hear = (stream: EventStream, count: number) => until(() => notesOf(stream).length === count);

type Project = Asking;
const fresh = async () => createAsking(ask, await addProject(acme));

/** An execution whose tasks wait for runners, and a runner that has them. */
async function createRun(own: Project, tasks: unknown[] = ["unit"]) {
  const { id } = await own.post("/executions", { mode: "run", tasks });
  const sync = (body: object) => own.post("/leases", { runner: "ann", free: 0, ...body });
  const take = async (free = 1): Promise<{ id: string; taskSlug: string }[]> => (await sync({ free })).leases;
  const print = (lease: string, offset: number, text: string) => sync({ held: [{ id: lease, log: { offset, text } }] });
  const report = (lease: string, letters: string) => own.call("POST", `/test-runs?lease_id=${lease}`, junit(letters));
  return { id, sync, take, print, report };
}
/** The same in a project of its own, whose runner has taken the first task. */
async function createTaken(tasks?: unknown[]) {
  const own = await fresh();
  const run = await createRun(own, tasks);
  const [lease] = await run.take();
  return { own, run, lease: lease!.id };
}

const event = (note: string) => ({ type: "test_run.completed" as const, data: { taskSlug: note }, depth: 0 });
const notesOf = (stream: EventStream) => stream.named("test_run.completed").map(({ data }) => data.taskSlug);
const tell = ({ project }: Pick<Company, "project">, ...notes: string[]) =>
  database.begin((sql) => insertEvents(sql, project, notes.map(event)));

describe.concurrent("GET /projects/:projectId/events", () => {
  test("tells what happens in the project as it happens", async () => {
    const own = await fresh();
    const stream = await open(own);
    expect([stream.status, stream.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    expect(stream.headers.get("x-accel-buffering")).toBe("no");
    expect(stream.headers.get("cache-control")).toBe("no-store");
    expect(stream.headers.get("content-encoding")).toBeNull();
    const body = await own.post("/test-runs?task_slug=unit&branch=main", junit("pf"));
    const ended = await stream.hears("execution.completed");
    expect(ended.execution).toMatchObject({ id: body.executionId, status: "failed", passed: 1, failed: 1 });
    const testRun = { taskSlug: "unit", failed: 1 };
    expect(await stream.hears("test_run.completed")).toMatchObject({
      occurredAt: expect.stringMatching(/Z$/),
      testRun,
    });
    await stream.hears("bug_report.opened");
    const ids = stream.told.flatMap(({ id }) => id ?? []);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("shows the executions that have not ended, and how they go on, but no logs", async () => {
    const own = await fresh();
    const run = await createRun(own);
    const stream = await open(own);
    const first = await stream.hears("execution");
    expect(first).toMatchObject({ id: run.id, status: "queued", tasks: [{ slug: "unit", status: "queued" }] });
    const [lease] = await run.take();
    await run.print(lease!.id, 0, "hello\n");
    await stream.hears("task", ({ status, runner }) => status === "running" && runner === "ann");
    await stream.hears("execution", ({ status, tasks }) => status === "running" && tasks === undefined);
    const later = await createRun(own, ["e2e"]);
    await stream.hears("execution", ({ id, tasks }) => id === later.id && tasks.length === 1);
    await run.report(lease!.id, "pp");
    await stream.hears("task", ({ executionId, status }) => executionId === run.id && status === "passed");
    await stream.hears("execution", ({ id, status }) => id === run.id && status === "passed");
    await stream.hears("execution.completed");
    expect(stream.named("log")).toEqual([]);
    expect(stream.isOver()).toBe(false);
  });

  test("the data of each event is as the OpenAPI document describes it", async () => {
    const own = await fresh();
    const run = await createRun(own, ["unit"]);
    const [all, one] = [await open(own), await open(own, of(run))];
    const [lease] = await run.take();
    await run.print(lease!.id, 0, "hello\n");
    await one.hears("log");
    await all.hears("task", ({ status }) => status === "running");
    await run.report(lease!.id, "pf");
    await one.hears("end");
    await all.hears("bug_report.opened");
    const told = [...all.told, ...one.told];
    const names = ["execution", "task", "log", "test_run.completed", "execution.failed", "bug_report.opened", "end"];
    expect(names.filter((name) => !told.some(({ event }) => event === name))).toEqual([]);
    const problems = told.flatMap(({ event, data }) =>
      (v.safeParse(streamEvents[event]!, data).issues ?? []).map(
        (issue) => `${event}: ${v.getDotPath(issue)}: ${issue.message}`,
      ),
    );
    expect(problems).toEqual([]);
  });

  test("with execution_id tells one from its beginning to its end, and ends with it", async () => {
    const own = await fresh();
    const run = await createRun(own, ["unit", "e2e"]);
    const leases = await run.take(2);
    const [unit, e2e] = ["unit", "e2e"].map((slug) => leases.find(({ taskSlug }) => taskSlug === slug)!.id);
    await run.print(unit!, 0, "one\n");
    await run.report(e2e!, "p");
    const stream = await open(own, of(run));
    const first = await stream.hears("execution");
    expect(stream.told[0]!.event).toBe("execution");
    expect(first).toMatchObject({
      ...{ id: run.id, status: "running", mode: "run", passed: 1, total: 1, verdict: null },
      url: expect.stringMatching(new RegExp(`/projects/${own.project}/executions/${run.id}$`)),
      tasks: [
        { slug: "unit", status: "running", attempt: 0, runner: "ann", reason: null },
        { slug: "e2e", status: "passed", attempt: 1, total: 1, runner: "ann" },
      ],
    });
    expect(await stream.hears("log")).toEqual({
      ...{ executionId: run.id, taskSlug: "unit", shard: 0, leaseId: unit, offset: 0, text: "one\n" },
    });
    expect((await stream.hears("test_run.completed")).testRun.taskSlug).toBe("e2e");
    await run.print(unit!, 4, "zwei ✓\n");
    expect(await stream.hears("log", ({ offset }) => offset === 4)).toMatchObject({ text: "zwei ✓\n" });
    await tell(own, "not of this execution");
    await run.report(unit!, "pf");
    await stream.hears("end");
    await stream.over;
    expect(stream.told.at(-1)).toMatchObject({ event: "end", data: { reason: "ended" } });
    const unitEnd = { executionId: run.id, slug: "unit", status: "failed", failed: 1 };
    expect(stream.named("task").at(-1)!.data).toMatchObject(unitEnd);
    expect(stream.named("execution").at(-1)!.data).toMatchObject({ status: "failed", verdict: "failed" });
    expect(stream.named("execution.completed")).toHaveLength(1);
    expect(notesOf(stream)).not.toContain("not of this execution");

    // A client that comes back by itself is told to stay away; any other sees it all once more.
    const again = await open(own, { ...of(run), lastEventId: stream.lastId });
    expect(again.status).toBe(204);
    const anew = await open(own, of(run));
    await anew.over;
    expect(anew.named("log").map(({ data }) => data.text)).toEqual(["one\n", "zwei ✓\n"]);
    expect(anew.named("test_run.completed")).toHaveLength(2);
    expect(anew.told.at(-1)!.event).toBe("end");
  });

  test("a cancelled execution is told to the last word of its runner", async () => {
    const { own, run, lease } = await createTaken();
    await run.print(lease, 0, "busy\n");
    const stream = await open(own, of(run));
    await own.post(`/executions/${run.id}/cancel`);
    await stream.hears("execution", ({ status }) => status === "cancelled");
    const body = { message: "cancelled", log: { offset: 5, text: "stopping\n" } };
    expect((await own.call("POST", `/leases/${lease}/fail`, body)).status).toBe(200);
    await stream.over;
    expect(stream.named("log").map(({ data }) => data.text)).toEqual(["busy\n", "stopping\n"]);
    expect(stream.told.at(-1)).toMatchObject({ event: "end", data: { reason: "ended" } });
  });

  test("an execution that is deleted ends its stream", async () => {
    const own = await fresh();
    const run = await createRun(own);
    const stream = await open(own, of(run));
    await stream.hears("execution");
    await own.call("DELETE", `/executions/${run.id}`);
    expect(await stream.hears("end")).toEqual({ reason: "deleted" });
    await stream.over;
  });

  test("logs longer than what is read at once come whole and in order, also where their beginning is gone", async () => {
    const { own, run, lease } = await createTaken();
    const part = (n: number) => `${n} `.padEnd(99_999, "x") + "\n";
    for (let n = 0; n < 15; n++) await run.print(lease, n * 100_000, part(n));
    const stream = await open(own, of(run));
    await stream.hears("log", ({ offset }) => offset === 1_400_000);
    const told = stream.named("log").map(({ data }) => data);
    const [kept] = told;
    expect(kept.offset).toBeGreaterThan(0);
    expect(told.map(({ offset }) => offset)).toEqual(told.map((_, at) => kept.offset + at * 100_000));
    expect(told.every(({ text, offset }) => text === part(offset / 100_000))).toBe(true);
  });

  test("parts of a log are told in their order, whatever the order of the transactions that wrote them", async () => {
    const { own, run, lease } = await createTaken();
    const write = (sql: Tx, offset: number, text: string) =>
      appendLogs(sql, own.project, [{ id: lease, offset, bytes: new TextEncoder().encode(text) }]);
    await database.begin(async (early) => {
      await early`select pg_current_xact_id()`;
      await database.begin((late) => write(late, 0, "first "));
      await write(early, 6, "second");
    });
    const stream = await open(own, of(run));
    await stream.hears("log", ({ offset }) => offset === 6);
    expect(stream.named("log").map(({ data }) => data.text)).toEqual(["first ", "second"]);
  });

  test.serial("HEAD begins no stream", async () => {
    const server = await createServer(database, { eventStreams: { server: 1 } });
    const own = await fresh();
    const { status, headers } = await server.ask(`HEAD /projects/${own.project}/events`, { key: own.key });
    expect([status, headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    // There is room for one.
    expect(server.eventStreams.refusal({ project: own.project })).toBeUndefined();
    const stream = await open(own, {}, server.url);
    await tell(own, "heard");
    await hear(stream, 1);
  });

  test.serial("counts as one request, however long it lasts", async () => {
    const server = await createServer(database, { rateLimitPerMinute: 5 });
    const own = await fresh();
    const stream = await open(own, {}, server.url);
    expect(stream.headers.get("x-ratelimit-remaining")).toBe("4");
    await tell(own, "one", "two");
    await hear(stream, 2);
    const { headers } = await server.ask(`GET /projects/${own.project}/executions`, { key: own.key });
    expect(headers.get("x-ratelimit-remaining")).toBe("3");
  });

  test.serial("there are so many per project and in all; more are a 429 until one ends", async () => {
    const server = await createServer(database, { eventStreams: { server: 3, project: 2 } });
    const [own, second] = [await fresh(), await fresh()];
    const begin = async (project: Project) => {
      const stream = await open(project, {}, server.url);
      await until(() => stream.raw !== "");
      return stream;
    };
    const refused = ({ project, key }: Project) => server.ask(`GET /projects/${project}/events`, { key });
    const streams = [await begin(own), await begin(own)];
    const { status, body, headers } = await refused(own);
    expect([status, body.error.code, headers.get("retry-after")]).toEqual([429, "RATE_LIMITED", "10"]);
    expect(body.error.message).toBe("At most 2 event streams per project at a time: end one first");
    streams.push(await begin(second));
    const full = "At most 3 event streams at a time on this server: end one first";
    expect((await refused(second)).body.error.message).toBe(full);
    await streams[0]!.close();
    await until(async () => (await refused(second)).status === 200);
  });
});

describe.concurrent("who may see it", () => {
  test("another company's events are nowhere to be seen, and its executions are a 404", async () => {
    const [own, sibling] = [await fresh(), await fresh()];
    const run = await createRun(own);
    const [mine, theirs, next] = [await open(own), await open(rival), await open(sibling)];
    await tell(own, "secret");
    await hear(mine, 1);
    await Promise.all([tell(rival, "theirs"), tell(sibling, "next")]);
    await Promise.all([hear(theirs, 1), hear(next, 1)]);
    expect([notesOf(theirs), notesOf(next)]).toEqual([["theirs"], ["next"]]);
    for (const stream of [theirs, next]) expect(stream.raw).not.toContain(run.id);
    for (const { project, key } of [rival, sibling]) {
      const { status, body } = await ask(`GET /projects/${project}/events?execution_id=${run.id}`, { key });
      expect([status, body.error.code]).toEqual([404, "NOT_FOUND"]);
      expect((await ask(`GET /projects/${own.project}/events`, { key })).status).toBe(404);
    }
  });

  test("a key that is revoked, on whatever server, is cut off, and sees nothing of what comes after", async () => {
    const own = await fresh();
    const run = await createRun(own);
    const streams = await Promise.all(
      [url, other.url].flatMap((server) => [open(own, {}, server), open(own, of(run), server)]),
    );
    await tell(own, "before");
    await until(() => streams.every((stream, at) => (at % 2 ? stream.named("execution") : notesOf(stream)).length > 0));
    const [lease] = await run.take();
    await regenerate({ ...acme, ...own });
    await tell(own, "after");
    await database.pool`
      insert into lease_log (project_id, lease_id, start, bytes, xact)
      values (${own.project}, ${lease!.id}, 0, convert_to('after', 'UTF8'), pg_current_xact_id())`;
    await database.pool`
      update test_run set reason = 'after' where project_id = ${own.project} and execution_id = ${run.id}`;
    for (const stream of streams) {
      await stream.over;
      expect(stream.told.at(-1)).toMatchObject({ event: "end", data: { reason: "revoked" } });
      expect(stream.raw).not.toContain("after");
    }
  });
});

describe.concurrent("Last-Event-ID", () => {
  test("goes on after the last event that came, on another server, too", async () => {
    const own = await fresh();
    const stream = await open(own);
    await tell(own, "one", "two", "three");
    await hear(stream, 3);
    await stream.close();
    await tell(own, "four");
    const [second] = stream.named("test_run.completed").slice(1);
    const resumed = await open(own, { lastEventId: second!.id }, other.url);
    await tell(own, "five");
    await hear(resumed, 3);
    expect(notesOf(resumed)).toEqual(["three", "four", "five"]);
  });

  test("a stream that has told nothing yet can be resumed as well", async () => {
    const own = await fresh();
    const stream = await open(own);
    await until(() => stream.lastId !== undefined);
    await stream.close();
    await tell(own, "missed");
    const resumed = await open(own, { lastEventId: stream.lastId });
    await hear(resumed, 1);
  });

  test("goes on within logs, after the present state", async () => {
    const own = await fresh();
    const run = await createRun(own, ["unit", "e2e"]);
    const leases = (await run.take(2)).map(({ id }) => id);
    const stream = await open(own, of(run));
    for (const lease of leases) await run.print(lease, 0, "one ");
    await until(() => stream.named("log").length === 2);
    await stream.close();
    for (const lease of leases) await run.print(lease, 4, "two ");
    const resumed = await open(own, { ...of(run), lastEventId: stream.named("log")[0]!.id }, other.url);
    await until(() => resumed.named("log").length >= 3);
    await run.print(leases[0]!, 8, "three");
    await resumed.hears("log", ({ text }) => text === "three");
    expect(resumed.told[0]!.event).toBe("execution");
    const logs = [stream.named("log")[0]!, ...resumed.named("log")].map(({ data }) => data);
    const textOf = (lease: string) => logs.map(({ leaseId, text }) => (leaseId === lease ? text : "")).join("");
    expect(leases.map(textOf)).toEqual(["one two three", "one two "]);
  });

  test("that this stream cannot have given is a 400", async () => {
    const path = `GET /projects/${acme.project}/events`;
    for (const id of ["x", "1", "1.2.e.x", "-1.2", crypto.randomUUID(), "9".repeat(300)]) {
      const { status, body } = await ask(path, { key: acme.key, headers: { "last-event-id": id } });
      const message = `Cannot read the header "Last-Event-ID": expected an id that this stream has sent`;
      expect([id, status, body.error.message]).toEqual([id, 400, message]);
    }
    expect((await ask(`${path}?execution_id=x`, { key: acme.key })).status).toBe(400);
  });

  test("where it is too old, the stream says that something may be missing, and goes on", async () => {
    const own = await fresh();
    await tell(own, "kept");
    const at = Math.floor(Date.now() / 1000) - 8 * 86_400;
    const stream = await open(own, { lastEventId: `1.${at}` });
    await hear(stream, 1);
    expect(stream.told.map(({ event }) => event)).toEqual(["gap", "test_run.completed"]);
  });

  test("of before the database was restored from a dump goes on from its time, and nothing old is news", async () => {
    const { own, run, lease } = await createTaken();
    await run.print(lease, 0, "old ");
    const before = await open(own);
    await tell(own, "old");
    await hear(before, 1);
    await before.close();
    // As after a dump: what has been written carries the numbers of another database.
    const foreign = 1_000_000_000;
    for (const table of ["event", "lease_log"])
      await database.pool`
        update ${database.pool(table)} set xact = ${String(foreign)}::text::xid8 where project_id = ${own.project}`;
    const { position } = readPosition(before.named("test_run.completed")[0]!.id!)!;
    const young = await open(own);
    const resumed = await open(own, { lastEventId: writePosition({ ...position, xact: foreign }) });
    await run.print(lease, 4, "new");
    await tell(own, "new");
    await until(() => notesOf(resumed).includes("new") && notesOf(young).includes("new"));
    expect(notesOf(young)).toEqual(["new"]);
    expect(resumed.told[0]!.event).toBe("gap");
    expect(notesOf(resumed)).toEqual(["old", "new"]);
    const logs = await open(own, of(run));
    await logs.hears("log", ({ text }) => text === "new");
    expect(logs.named("log").map(({ data }) => data.text)).toEqual(["old ", "new"]);
  });

  test("every event comes exactly once, also where a transaction that began earlier is committed later", async () => {
    const own = await fresh();
    const stream = await open(own);
    await until(() => stream.lastId !== undefined);
    await database.begin(async (early) => {
      await insertEvents(early, own.project, [event("early")]);
      await tell(own, "late");
      const { id } = await createRun(own);
      // The stream has read what is committed.
      await stream.hears("execution", (execution) => execution.id === id);
    });
    await tell(own, "last");
    await until(() => notesOf(stream).includes("last"));
    const told = notesOf(stream);
    expect(told.toSorted()).toEqual(["early", "last", "late"]);
    for (const [at, { id }] of stream.named("test_run.completed").slice(0, 2).entries()) {
      const resumed = await open(own, { lastEventId: id }, at ? url : other.url);
      await until(() => notesOf(resumed).includes(told.at(-1)));
      expect(notesOf(resumed)).toEqual(told.slice(at + 1));
    }
  });
});

describe.concurrent("somebody who watches", () => {
  const watched = async ({ project }: Project, id: string) => {
    const [row] = await database.pool<{ seconds: number | null }[]>`
      select extract(epoch from watched_until - now())::float8 as seconds from execution
      where project_id = ${project} and id = ${id}`;
    return row!.seconds;
  };

  test("an execution that runs makes its runners tell more often", async () => {
    const own = await fresh();
    const run = await createRun(own);
    const signals = createSignals(database.openListener);
    const watch = signals.watch([["lease", own.project]]);
    // Listening has begun.
    await until(async () => {
      await database.pool`select pg_notify('lease', ${own.project})`;
      return (await watch.next(50)) === "lease";
    });
    const [lease] = await run.take();
    await run.sync({ held: [{ id: lease!.id }] });
    const waiting = run.sync({ held: [{ id: lease!.id }], waitSeconds: 20 });
    await until(async () => (await watch.next(50)) === "time");
    await open(own, of(run));
    expect(await watch.next(5_000)).toBe("lease");
    expect((await waiting).nextSeconds).toBe(3);
    await until(async () => ((await watched(own, run.id)) ?? 0) > 5);
    watch.end();
    signals.close();
  });

  test("the project, or what no runner runs, changes nothing", async () => {
    const own = await fresh();
    const run = await createRun(own);
    const { id } = await own.post("/executions", {});
    const stream = await open(own);
    const one = await open(own, of({ id }));
    await Promise.all([stream.hears("execution", (data) => data.id === run.id), one.hears("execution")]);
    await tell(own, "later");
    await hear(stream, 1);
    expect([await watched(own, run.id), await watched(own, id)]).toEqual([null, null]);
  });
});

// It ends the connections of the tests beside it as well.
test("goes on where connections to the database end", async () => {
  const own = await fresh();
  const stream = await open(own);
  await tell(own, "before");
  await hear(stream, 1);
  const admin = connect(connection as never, 1);
  await admin.pool`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`;
  await admin.begin((sql) => insertEvents(sql, own.project, [event("after")]));
  await admin.close();
  await hear(stream, 2);
  expect(notesOf(stream)).toEqual(["before", "after"]);
});
