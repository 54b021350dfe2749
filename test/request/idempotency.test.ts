import { describe, expect, test } from "bun:test";
import { generateProjectKey } from "../../src/operations/people/keys.ts";
import { answerOnce } from "../../src/request/idempotency.ts";
import { Reply } from "../../src/request/reply.ts";
import { lockTestCases } from "../../src/store/test_case_names.ts";
import { createHarness, createServer, holdTransaction, junit, until } from "../harness.ts";
import { createReceiver } from "../receiver.ts";

const { ask, acme, database, addProject } = await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"] });
const integrations = `/teams/${acme.team}/integrations`;

async function addWebhook(url: string): Promise<string> {
  const { body } = await ask(`POST ${integrations}`, { key: acme.teamKey, body: { kind: "webhook", config: { url } } });
  return body.id;
}

const sendTest = (id: string, key: string) =>
  ask(`POST ${integrations}/${id}/test`, { key: acme.teamKey, headers: { "idempotency-key": key } });

/** As if the server that runs the request had died. */
const die = (key: string) => database.pool`
  update idempotency set claim = gen_random_uuid(), claimed_until = now() - interval '1 second' where key = ${key}`;

const isClaimed = async (key: string) => (await database.pool`select from idempotency where key = ${key}`).length === 1;

describe("a request with an Idempotency-Key", () => {
  test("holds nothing of the database while it waits for somebody outside", async () => {
    const receiver = createReceiver("hang");
    const id = await addWebhook(receiver.url);
    const { project, key } = await addProject(acme);
    for (let i = 0; i < 8; i++) void sendTest(id, `hang-${i}`).catch(() => {});
    await until(() => receiver.requests.length === 8);
    const headers = { "idempotency-key": "meanwhile" };
    expect((await ask(`POST /projects/${project}/test-runs`, { key, body: junit("p"), headers })).status).toBe(201);
    expect(await database.begin((sql) => generateProjectKey(sql, project))).toBeDefined();
  });

  test("that reached outside is answered as it was, without reaching there again", async () => {
    const receiver = createReceiver({ status: 200 });
    const id = await addWebhook(receiver.url);
    const [first, second] = [await sendTest(id, "tested"), await sendTest(id, "tested")];
    expect([first.status, second.status, second.text]).toEqual([200, 200, first.text]);
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    expect(receiver.requests).toHaveLength(1);
  });

  test("that died after it had begun to act is told to who asks again, as often as he asks", async () => {
    const receiver = createReceiver("hang");
    const id = await addWebhook(receiver.url);
    void sendTest(id, "dead").catch(() => {});
    await until(() => receiver.requests.length === 1);
    await die("dead");
    for (let i = 0; i < 2; i++) {
      const { status, body } = await sendTest(id, "dead");
      expect([status, body.error.code]).toEqual([400, "VALIDATION_ERROR"]);
      expect(body.error.message).toContain("was cut off after it had begun to act");
    }
    expect(receiver.requests).toHaveLength(1);
  });

  test("that failed after it had begun to act is not run again", async () => {
    const receiver = createReceiver({ status: 200 });
    const id = await addWebhook(receiver.url);
    await database.pool.unsafe(`
      create function refuse_delivery() returns trigger language plpgsql as $$ begin
        raise exception 'cannot be noted';
      end $$;
      create trigger refuse_delivery before update on delivery for each row execute function refuse_delivery();
    `);
    try {
      expect((await sendTest(id, "failed")).status).toBe(500);
    } finally {
      await database.pool.unsafe("drop trigger refuse_delivery on delivery; drop function refuse_delivery");
    }
    await die("failed");
    const { status, body } = await sendTest(id, "failed");
    expect([status, body.error?.message]).toEqual([
      400,
      expect.stringContaining("was cut off after it had begun to act"),
    ]);
    expect(receiver.requests).toHaveLength(1);
  });

  test("that died before it had any effect is run by its repetition, and cannot take effect any more itself", async () => {
    const { project, key } = await addProject(acme);
    const upload = () =>
      ask(`POST /projects/${project}/test-runs`, { key, body: junit("pf"), headers: { "idempotency-key": "slow" } });
    const { release } = await holdTransaction(database, (sql) => sql`lock table execution in exclusive mode`);
    const first = upload();
    await until(() => isClaimed("slow"));
    await die("slow");
    const second = upload();
    await until(async () => {
      const rows = await database.pool`select from idempotency where key = 'slow' and claimed_until > now()`;
      return rows.length === 1;
    });
    await release();
    const answers = await Promise.all([first, second]);
    expect(answers.map(({ status }) => status)).toEqual([500, 201]);
    expect(answers[0].headers.get("retry-after")).toBe("2");
    expect((await upload()).text).toBe(answers[1].text);
    const { body } = await ask(`GET /projects/${project}/test-runs`, { key });
    expect(body.data).toHaveLength(1);
  });

  test("that repeats a large upload under way waits outside of the thread: others are not kept waiting", async () => {
    const [mine, other] = [await addProject(acme), await addProject(acme)];
    const second = await createServer(database);
    const body = junit("pf").replace("</testsuite>", `<!--${"x".repeat(1_200_000)}--></testsuite>`);
    const { release } = await holdTransaction(database, (sql) => lockTestCases(sql, mine.project));
    const upload = (server: { ask: typeof ask }, { project, key }: typeof mine, headers: Record<string, string>) =>
      server.ask(`POST /projects/${project}/test-runs`, { key, body, headers });
    const first = upload({ ask }, mine, { "idempotency-key": "large" });
    await until(() => isClaimed("large"));
    const repetition = upload(second, mine, { "idempotency-key": "large" });
    expect((await upload(second, other, {})).status).toBe(201);
    await release();
    const answers = await Promise.all([first, repetition]);
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(answers[1].headers.get("idempotent-replayed")).toBe("true");
  });
});

describe("a request whose repetition has taken its claim over", () => {
  const caller = { teamId: acme.team, projectId: acme.project };
  const LOST = "The request was considered lost and is executed by its repetition";
  type Run = Parameters<typeof answerOnce>[1];
  const run = (key: string, work: Run) =>
    answerOnce({ sql: database.pool, caller, key, digest: "00", isOver: () => false }, work);

  /** The first one goes on with `work` once its repetition runs, and ends before that. Answers what it fails with. */
  async function lose(key: string, work: Run): Promise<unknown> {
    const { promise: taken, resolve: onTaken } = Promise.withResolvers<void>();
    const { promise: isOver, resolve: end } = Promise.withResolvers<void>();
    let repetition: Promise<Reply> | undefined;
    const first = run(key, async (once) => {
      await die(key);
      repetition = run(key, async () => {
        onTaken();
        await isOver;
        return new Reply(201, "of the repetition", null);
      });
      await taken;
      return await work(once);
    });
    const error = await first.then(
      () => undefined,
      (error: Error) => error.message,
    );
    end();
    expect((await repetition!).body).toBe("of the repetition");
    expect((await run(key, work)).body).toBe("of the repetition");
    return error;
  }

  test("stores no answer", async () => {
    expect(await lose("answers-late", async () => new Reply(201, "of the first", null))).toBe(LOST);
  });

  test("does not begin to act", async () => {
    let isActing = false;
    const acts: Run = async (once) => {
      await database.begin((sql) => once.act(sql));
      isActing = true;
      return new Reply(200, "acted", null);
    };
    expect(await lose("acts-late", acts)).toBe(LOST);
    expect(isActing).toBe(false);
  });
});
