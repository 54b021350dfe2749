import { describe, expect, test } from "bun:test";
import { readConfig } from "../../src/config.ts";
import { createPlace } from "../places.ts";
import { ROUTES } from "../../src/server/app.ts";
import { noFacts } from "../../src/request/upload_log.ts";
import { createUploadThread } from "../../src/request/upload_thread.ts";
import { createHarness, holdTransaction, junit, SECRET_KEY } from "../harness.ts";
import { UPLOAD_WORKER } from "../../src/server/composition.ts";
import { isFull } from "../depth.ts";

const MIB = 1_048_576;

const { app, ask, acme, rival, database, connection, url, addProject } = await createHarness({
  maxBodyBytes: 4 * MIB,
  maxInflatedBytes: 8 * MIB,
  // Nothing is left for those that wait but room for one body, of which a key may have 1.75 MiB.
  uploadMemoryBytes: 1,
});

type Project = { project: string; key: string };
const upload = ({ project, key }: Project, body: unknown, query = "", headers: Record<string, string> = {}) =>
  ask(`POST /projects/${project}/test-runs?task_slug=t${query}`, { key, body, headers });

const countRuns = async ({ project }: Project) =>
  (await database.pool`select from test_run where project_id = ${project}`).length;

const large = (letters: string, bytes = 1_500_000) => `${junit(letters)}<!--${"x".repeat(bytes)}-->`;

/** A body of which the server holds so many bytes, and of which no more comes before it is aborted. */
async function stall({ project, key }: Project, bytes: number) {
  const abort = new AbortController();
  // What has been sent may still be on its way: it counts once it has been read.
  const { promise: held, resolve } = Promise.withResolvers<void>();
  let left = bytes;
  const watched = (body: ReadableStream<Uint8Array>) =>
    body.pipeThrough(
      new TransformStream({
        transform(chunk, controller) {
          controller.enqueue(chunk);
          if ((left -= chunk.byteLength) === 0) resolve();
        },
      }),
    );
  const { fetch: answer } = app;
  app.fetch = (request, connection) => {
    app.fetch = answer;
    return answer(new Request(request, { body: watched(request.body!) }), connection);
  };
  const body = new ReadableStream({
    type: "direct",
    async pull(controller: any) {
      for (let at = 0; at < bytes; at += 65_536) {
        controller.write(new Uint8Array(Math.min(65_536, bytes - at)).fill(32));
        await controller.flush();
      }
      await new Promise((resolve) => abort.signal.addEventListener("abort", resolve));
    },
  } as never);
  const answered = fetch(`${url}/api/v1/projects/${project}/test-runs`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body,
    signal: abort.signal,
  }).catch(() => {});
  await held;
  return {
    async [Symbol.asyncDispose]() {
      abort.abort();
      await answered;
    },
  };
}

const route = ROUTES.find(({ body }) => body === "upload")!;

/** Uploads may take so many seconds. */
async function withDeadline<T>(seconds: number, work: () => Promise<T>): Promise<T> {
  const { deadlineSeconds } = route;
  route.deadlineSeconds = seconds;
  return await work().finally(() => (route.deadlineSeconds = deadlineSeconds));
}

describe("uploads side by side", () => {
  test("that become too large are each a 400 that says so, and leave nothing", async () => {
    const own = await addProject(acme);
    const zeros = new Uint8Array(20 * MIB);
    const bombs = { gzip: Bun.gzipSync(zeros), zstd: Bun.zstdCompressSync(zeros) };
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => {
        const encoding = index % 2 ? "gzip" : "zstd";
        return upload(own, bombs[encoding], "", { "content-encoding": encoding });
      }),
    );
    for (const { status, headers, body } of answers) {
      expect(body).toEqual({
        error: {
          code: "VALIDATION_ERROR",
          message: "Body too large: at most 8 MiB after decompression (MAX_INFLATED_MB of the server)",
        },
      });
      expect([status, headers.get("connection")]).toEqual([400, "close"]);
    }
    expect(await countRuns(own)).toBe(0);
  });

  test.skipIf(!isFull)("that are packed in whatever way are all taken", async () => {
    const own = await addProject(acme);
    const text = (index: number) => large("pf".repeat(index + 1), 5 * MIB);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => {
        const query = `&execution_key=${index}`;
        if (index % 4 === 0) return upload(own, Bun.gzipSync(text(index)), query, { "content-encoding": "gzip" });
        if (index % 4 === 1)
          return upload(own, Bun.zstdCompressSync(text(index)), query, { "content-encoding": "zstd" });
        if (index % 4 === 2) return upload(own, Bun.gzipSync(text(index)), query);
        const form = new FormData();
        form.append("execution_key", String(index));
        form.append("file", new File([Bun.gzipSync(text(index))], "report.xml.gz"));
        return upload(own, form);
      }),
    );
    expect(answers.map(({ status, body }) => [status, body.passed, body.failed])).toEqual(
      answers.map((_, index) => [201, index + 1, index + 1]),
    );
  });

  test("a packed report of which too much comes out is a 400 also inside a form", async () => {
    const own = await addProject(acme);
    const form = new FormData();
    form.append("file", new File([Bun.gzipSync(new Uint8Array(20 * MIB))], "report.xml.gz"));
    const { status, body } = await upload(own, form);
    expect([status, body.error.message]).toEqual([
      400,
      `Cannot read "report.xml.gz": it is larger than 8 MiB (MAX_INFLATED_MB of the server)`,
    ]);
  });
});

describe("where there is no room", () => {
  test("an upload that waits for longer than it may is a 500 that says when to try again, and leaves nothing", async () => {
    const own = await addProject(acme);
    {
      await using _ = await stall(own, 3 * MIB);
      const refused = await withDeadline(1, () => upload(own, large("p", 3 * MIB)));
      expect([refused.status, refused.headers.get("retry-after"), refused.body.error]).toEqual([
        500,
        "10",
        { code: "INTERNAL_ERROR", message: "The server is busy with other large requests, try again in a moment" },
      ]);
      expect(await countRuns(own)).toBe(0);
    }
    expect((await upload(own, large("p", 3 * MIB))).status).toBe(201);
  });

  test("small uploads go on, and what a client that is gone has left goes to the next", async () => {
    const own = await addProject(acme);
    const other = await addProject(rival);
    let waiting: ReturnType<typeof upload>;
    {
      await using _ = await stall(own, 3 * MIB);
      expect((await upload(other, junit("p"))).status).toBe(201);
      waiting = upload(own, large("p", 3 * MIB));
    }
    expect((await waiting).status).toBe(201);
  });
});

describe("while another upload is read", () => {
  test("one that waits in line for longer than it may is a 500 that says when to try again, and leaves nothing", async () => {
    const [first, second] = [await addProject(acme), await addProject(rival)];
    const { release } = await holdTransaction(database, (sql) => sql`lock table test_run in exclusive mode`);
    const answers = await withDeadline(1, () =>
      Promise.all([upload(first, large("p")), upload(second, large("p")), upload(second, Bun.gzipSync(large("p")))]),
    );
    await release();
    expect(answers.map(({ status }) => status)).toEqual([500, 500, 500]);
    const busy = answers.filter(({ body }) => body.error.message.includes("busy with other large requests"));
    expect(busy.map(({ headers }) => headers.get("retry-after"))).toEqual(["10", "10"]);
    // Whoever comes after them is read after them.
    expect((await upload(first, large("p"), "&execution_key=after")).status).toBe(201);
    expect([await countRuns(first), await countRuns(second)]).toEqual([1, 0]);
  });

  test("fifty of one key in line do not keep another key's only one behind them", async () => {
    const heavy = createUploadThread(
      UPLOAD_WORKER,
      {
        connection,
        cursorSecret: new Uint8Array(32),
        publicUrl: url,
        maxInflatedBytes: 8 * MIB,
        retentionDays: 90,
        attachments: readConfig({ DATA_DIR: createPlace("attachments") }).attachments,
        secretKey: SECRET_KEY,
      },
      { stored() {}, failed() {} },
    );
    const order: string[] = [];
    const send = (id: string, name: string) => {
      const blocks = [new TextEncoder().encode("no report")];
      const sent = {
        url: `${url}/x`,
        search: "",
        query: {},
        contentType: "",
        encoding: null,
        blocks,
        facts: noFacts(),
        attachments: { files: [], warnings: [], hasFailed: false },
      };
      const caller = { id, kind: "project" as const, teamId: acme.team, projectId: acme.project };
      const request = { caller, params: {}, wantsText: false, idempotencyKey: null, sent };
      return heavy
        .handle(`${route.method} ${route.path}`, request as never, { provedLive: false, expired: false })
        .catch(({ code }) => order.push(`${name} ${code}`));
    };
    const all = Array.from({ length: 50 }, (_, index) => send("a", `a${index}`));
    all.push(send("b", "b"));
    await Promise.all(all);
    heavy.close();
    expect(order).toHaveLength(51);
    expect(order.slice(0, 4)).toEqual(["a0", "a1", "b", "a2"].map((name) => `${name} VALIDATION_ERROR`));
  });
});
