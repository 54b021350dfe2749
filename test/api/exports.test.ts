/** An export has what the API answers, at one moment, and a reader notices when it is cut. */

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { connect } from "node:net";
import { createEventStreams } from "../../src/http/events.ts";
import { createLog } from "../../src/log.ts";
import { type ExportRequest, exportReply } from "../../src/request/project_export.ts";
import { ROUTES } from "../../src/server/app.ts";
import { lockOf } from "../../src/database/locks.ts";
import { MAX_EXPORTS, takeExportSlot } from "../../src/store/exports.ts";
import { createEverything } from "../everything.ts";
import { createHarness, junit, until } from "../harness.ts";
import { isFull } from "../depth.ts";

setDefaultTimeout(60_000);

const harness = await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"] });
const { ask, acme, rival, database, bugs, url } = await createEverything(harness);
const P = `/projects/${acme.project}`;

type Line = Record<string, any> & { type: string };
const parse = (text: string): Line[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

async function get(path: string): Promise<any> {
  const { status, body } = await ask(`GET ${P}${path}`, { key: acme.key });
  expect([path, status]).toEqual([path, 200]);
  return body;
}

/** All elements of a list of the API. */
async function list(path: string): Promise<any[]> {
  const all: any[] = [];
  let cursor: string | undefined;
  do {
    const page = await get(`${path}?${new URLSearchParams({ limit: "100", ...(cursor ? { cursor } : {}) })}`);
    all.push(...page.data);
    cursor = page.pagination.cursor;
  } while (cursor);
  return all;
}

async function exported(query = ""): Promise<Line[]> {
  const { status, text, headers } = await ask(`GET ${P}/export${query}`, { key: acme.key });
  expect([status, headers.get("content-type")]).toEqual([200, "application/x-ndjson"]);
  expect(text.endsWith("}\n")).toBe(true);
  return parse(text);
}

/** A reader that takes one chunk at a time: beyond it the server reads nothing. */
async function openReader(request: Partial<ExportRequest> = {}, eventStreams = createEventStreams()) {
  const logged: string[] = [];
  const { begin, pool: sql, openReader } = database;
  const services = { begin, sql, openReader, eventStreams, retentionDays: 90, publicUrl: url };
  const reply = await exportReply(
    ROUTES,
    { ...services, log: createLog("error", (line) => void logged.push(line), false) },
    {
      ...{ projectId: acme.project, query: {}, owner: { project: acme.project }, mayStay: async () => true },
      ...request,
    },
  );
  const reader = reply.open(() => {}).getReader();
  const decoder = new TextDecoder();
  const next = async () => decoder.decode((await reader.read()).value);
  async function rest(): Promise<string> {
    let text = "";
    for (let part = await next(); part !== ""; part = await next()) text += part;
    return text;
  }
  return { next, rest, cancel: () => reader.cancel(), logged };
}

/** Returns the process ids of the sessions that hold the slot of an export, and wait for its client. */
const waitingSessions = async (): Promise<number[]> => {
  const sql = database.pool;
  const rows = await sql<{ pid: number }[]>`
    select l.pid from pg_locks l join pg_stat_activity a using (pid)
    where a.datname = current_database() and a.state = 'idle in transaction' and l.locktype = 'advisory' and l.granted
      and (l.classid::bigint << 32 | l.objid::bigint) in (
        select ${lockOf(sql, "export", sql`(' ' || slot)`)} from generate_series(1, ${MAX_EXPORTS}::int) slot)
    order by l.pid`;
  return rows.map(({ pid }) => pid);
};

describe("GET /projects/:projectId/export", () => {
  test("has everything that the API answers, with the same fields", async () => {
    const lines = await exported();
    const of = (type: string) => lines.filter((line) => line.type === type).map(({ type: _, ...value }) => value);
    expect(of("project")).toEqual([await get("")]);
    expect(of("owners")).toEqual([await get("/owners")]);
    expect(of("testCase")).toEqual(await list("/test-cases"));
    const executions = await list("/executions");
    expect(of("execution")).toEqual(executions);

    const [runs, results, attachments]: any[][] = [[], [], []];
    for (const { id: executionId, tasks } of executions)
      for (const { slug: taskSlug, attempt } of tasks) {
        const run = `/executions/${executionId}/test-runs/${taskSlug}`;
        const within = (value: object) => ({ executionId, taskSlug, ...value });
        if (attempt > 0) {
          runs!.push(await get(run));
          results!.push(...(await list(`${run}/cases`)).map(within));
        }
        attachments!.push(...(await list(`${run}/attachments`)).map(within));
      }
    expect(of("testRun")).toEqual(runs!);
    expect(of("result")).toEqual(results!);
    expect(of("attachment")).toEqual(attachments!);

    const ids = of("bugReport").map(({ id }) => id);
    expect(ids.toSorted()).toEqual((await list("/bug-reports")).map(({ id }) => id).toSorted());
    expect(of("bugReport")).toEqual(await Promise.all(ids.map((id) => get(`/bug-reports/${id}`))));
    const occurrences = await Promise.all(
      ids.map(async (bugReportId) =>
        (await list(`/bug-reports/${bugReportId}/occurrences`)).map((value) => ({ bugReportId, ...value })),
      ),
    );
    expect(of("bugOccurrence")).toEqual(occurrences.flat());
    for (const type of ["testCase", "execution", "testRun", "result", "attachment", "bugReport", "bugOccurrence"])
      expect([type, of(type).length > 1]).toEqual([type, true]);
  });

  test("begins with a header and ends with the counts of its lines", async () => {
    const lines = await exported();
    const { takenAt, types, ...header } = lines[0]!;
    expect(header).toEqual({
      ...{ type: "header", format: "assay-export", version: 1, projectId: acme.project },
      ...{ createdAfter: null, createdBefore: null },
    });
    expect(Math.abs(Date.now() - Date.parse(takenAt))).toBeLessThan(600_000);
    const counts = Object.fromEntries(
      types.map((type: string) => [type, lines.filter((line) => line.type === type).length]),
    );
    expect(lines.at(-1)).toEqual({ type: "end", counts });
    expect(lines.length).toBe(2 + Object.values<number>(counts).reduce((sum, count) => sum + count));
  });

  test("has only the types and the executions that are asked for", async () => {
    const all = (await exported("?types=execution")).slice(1, -1);
    expect(new Set(all.map(({ type }) => type))).toEqual(new Set(["execution"]));
    const [newest, , third] = all;
    const until = new URLSearchParams({ types: "execution,bugReport", created_before: newest!["createdAt"] });
    const before = await exported(`?${until}`);
    expect(before.filter(({ type }) => type === "execution")).toEqual(all.slice(1));
    expect(before.filter(({ type }) => type === "bugReport").length).toBe(bugs.length + 1);
    const since = new URLSearchParams({ types: "testRun", created_after: third!["createdAt"] });
    expect(new Set((await exported(`?${since}`)).slice(1, -1).map(({ executionId }) => executionId))).toEqual(
      new Set(all.slice(0, 2).flatMap(({ id, tasks }) => (tasks.some((task: any) => task.attempt > 0) ? [id] : []))),
    );
    for (const query of ["?types=results", "?types=", "?created_after=yesterday", "?since=2026-01-01"]) {
      const { status, body } = await ask(`GET ${P}/export${query}`, { key: acme.key });
      expect([query, status, body.error.code]).toEqual([query, 400, "VALIDATION_ERROR"]);
    }
  });

  test("contains no key, no secret and no email address", async () => {
    const { text } = await ask(`GET ${P}/export`, { key: acme.key });
    for (const secret of [acme.key, acme.teamKey, "t-4711", "@acme.example", "hooks.slack", "svc_", "postgres"])
      expect([secret, text.includes(secret)]).toEqual([secret, false]);
  });

  test("has merged bug reports, which no list has", async () => {
    const [first, second] = bugs;
    const path = `POST ${P}/bug-reports/${second.id}/merge`;
    expect((await ask(path, { key: acme.key, body: { into: first.id } })).status).toBe(200);
    const merged = (await exported("?types=bugReport")).find(({ id }) => id === second.id);
    expect(merged).toEqual({ type: "bugReport", ...(await get(`/bug-reports/${second.id}`)) });
    expect(merged!["mergedInto"]).toBe(first.id);
  });
});

describe("a running export", () => {
  test("shows one moment, whatever is uploaded and deleted meanwhile", async () => {
    const before = await exported();
    const reader = await openReader();
    const first = await reader.next();
    const upload = `POST ${P}/test-runs?execution_key=later&complete=true`;
    expect((await ask(upload, { key: acme.key, body: junit("ppf") })).status).toBe(201);
    const last = before.filter(({ type }) => type === "execution").at(-1)!["id"];
    expect((await ask(`DELETE ${P}/executions/${last}`, { key: acme.key })).status).toBe(204);
    const lines = parse(first + (await reader.rest()));
    expect(lines.slice(1)).toEqual(before.slice(1));
    const after = await exported("?types=execution");
    expect(after.some(({ key }) => key === "later")).toBe(true);
    expect(after.some(({ id }) => id === last)).toBe(false);
  });

  test("reads no further than its client, and ends its transaction when the client is gone", async () => {
    const reader = await openReader();
    const chunk = await reader.next();
    expect(chunk.length).toBeLessThan(200_000);
    expect(chunk).not.toContain('"type":"end"');
    await until(async () => (await waitingSessions()).length === 1);
    await reader.cancel();
    await until(async () => (await waitingSessions()).length === 0);
  });

  test.skipIf(!isFull)(
    "over HTTP waits for a client that takes nothing, and ends with its connection",
    async () => {
      const { project, key } = await harness.addProject(acme);
      const cases = Array.from({ length: 30_000 }, (_, index) => `<testcase classname="wide" name="case ${index}"/>`);
      const upload = `POST /projects/${project}/test-runs?execution_key=wide&complete=true`;
      expect((await ask(upload, { key, body: `<testsuite name="wide">${cases.join("")}</testsuite>` })).status).toBe(
        201,
      );
      const { hostname, port } = new URL(url);
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {});
      await new Promise<void>((connected) => socket.once("connect", connected));
      socket.pause();
      socket.write(
        `GET /api/v1/projects/${project}/export HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${key}\r\n\r\n`,
      );
      await until(async () => (await waitingSessions()).length === 1);
      socket.destroy();
      await until(async () => (await waitingSessions()).length === 0);
    },
    60_000,
  );

  test("says as its last line that its connection to the database was lost", async () => {
    const reader = await openReader();
    const first = await reader.next();
    await until(async () => (await waitingSessions()).length === 1);
    await database.pool`select pg_terminate_backend(${(await waitingSessions())[0]!})`;
    const lines = parse(first + (await reader.rest()));
    expect(lines.at(-1)).toEqual({ type: "error", message: "The database is not available, try again in a moment" });
    expect(lines.some(({ type }) => type === "end")).toBe(false);
    expect(reader.logged.length).toBe(1);
  });

  test("ends when the access of its reader is revoked, and when the server stops", async () => {
    const revoked = await openReader({ mayStay: async () => false });
    expect(parse(await revoked.rest()).at(-1)).toEqual({
      type: "error",
      message: "The access to this project was revoked",
    });
    const eventStreams = createEventStreams();
    const stopped = await openReader({}, eventStreams);
    const first = await stopped.next();
    eventStreams.close();
    expect(parse(first + (await stopped.rest())).at(-1)).toEqual({ type: "error", message: "The server is stopping" });
    await until(async () => (await waitingSessions()).length === 0);
    expect([...revoked.logged, ...stopped.logged]).toEqual([]);
  });

  test("is one of two of its project and of four of the database", async () => {
    const own = [await openReader(), await openReader()];
    for (const reader of own) await reader.next();
    const refused = await ask(`GET ${P}/export`, { key: acme.key });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "30"]);
    expect(refused.body.error).toEqual({
      code: "RATE_LIMITED",
      message: "At most 2 exports of a project run at a time: try again later",
    });
    expect((await ask(`GET /projects/${rival.project}/export`, { key: rival.key })).status).toBe(200);
    await own[0]!.cancel();
    await until(async () => (await waitingSessions()).length === 1);
    expect((await exported("?types=project")).at(-1)!["counts"]).toEqual({ project: 1 });

    // Slots of other projects, as their exports hold them.
    const held = Promise.withResolvers<void>();
    const others = ["b", "c", "d"].map((name) => {
      const taken = Promise.withResolvers<void>();
      void database.begin(async (sql) => {
        expect(await takeExportSlot(sql, name)).toBeUndefined();
        taken.resolve();
        await held.promise;
      });
      return taken.promise;
    });
    await Promise.all(others);
    const full = await ask(`GET /projects/${rival.project}/export`, { key: rival.key });
    held.resolve();
    expect([full.status, full.body.error.message]).toEqual([429, "At most 4 exports run at a time: try again later"]);
    await own[1]!.cancel();
    await until(async () => (await waitingSessions()).length === 0);
    expect((await exported("?types=project")).length).toBe(3);
  });

  test("of several at once, those that are too many are refused", async () => {
    const { project, key } = await harness.addProject(acme);
    const asked = Array.from(
      { length: 5 },
      async () => await openReader({ projectId: project }).catch((error) => error),
    );
    const all = await Promise.all(asked);
    const refused = all.filter((one) => one instanceof Error);
    const readers = all.filter((one) => !(one instanceof Error));
    expect(refused.map((one) => (one as { code?: string }).code)).toEqual(Array(3).fill("RATE_LIMITED"));
    for (const reader of readers) expect(parse(await reader.rest()).at(-1)!.type).toBe("end");
    expect((await ask(`GET /projects/${project}/export`, { key })).status).toBe(200);
  });

  test("ends if nobody reads it: the answer to HEAD, and a client that is gone before it begins", async () => {
    expect((await ask(`HEAD ${P}/export`, { key: acme.key })).status).toBe(200);
    await until(async () => (await waitingSessions()).length === 0);
    await (await openReader()).cancel();
    await until(async () => (await waitingSessions()).length === 0);
  });

  test("leaves the pools of other requests alone", async () => {
    const reader = await openReader();
    await reader.next();
    expect(database.load()["transactions"]!.inUse).toBe(0);
    await reader.cancel();
  });
});
