import { describe, expect, test } from "bun:test";
import { generateProjectKey } from "../../src/operations/people/keys.ts";
import { lockTestCases } from "../../src/store/test_case_names.ts";
import { createHarness, createServer, junit, until } from "../harness.ts";
import { createReceiver } from "../receiver.ts";

const { ask, acme, database, addProject } = await createHarness({ outboundAllow: ["127.0.0.0/8"] });
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

  test("that died before it had any effect is run by its repetition, and cannot take effect any more itself", async () => {
    const { project, key } = await addProject(acme);
    const upload = () =>
      ask(`POST /projects/${project}/test-runs`, { key, body: junit("pf"), headers: { "idempotency-key": "slow" } });
    const { promise: letGo, resolve } = Promise.withResolvers<void>();
    const { promise: locked, resolve: hold } = Promise.withResolvers<void>();
    const holding = database.begin(async (sql) => {
      await sql`lock table execution in exclusive mode`;
      hold();
      await letGo;
    });
    await locked;
    const first = upload();
    await until(() => isClaimed("slow"));
    await die("slow");
    const second = upload();
    await until(async () => {
      const rows = await database.pool`select from idempotency where key = 'slow' and claimed_until > now()`;
      return rows.length === 1;
    });
    resolve();
    await holding;
    const answers = await Promise.all([first, second]);
    expect(answers.map(({ status }) => status)).toEqual([500, 201]);
    expect(answers[0].headers.get("retry-after")).toBe("2");
    expect((await upload()).text).toBe(answers[1].text);
    const { body } = await ask(`GET /projects/${project}/test-runs`, { key });
    expect(body.data).toHaveLength(1);
  });

  test("that was refused leaves no trace", async () => {
    const headers = { "idempotency-key": "refused" };
    const { status } = await ask(`POST /projects/${acme.project}/test-runs`, { key: acme.key, body: "<no", headers });
    expect(status).toBe(400);
    expect(await isClaimed("refused")).toBe(false);
  });

  test("that repeats a large upload under way waits outside of the thread: others are not kept waiting", async () => {
    const [mine, other] = [await addProject(acme), await addProject(acme)];
    const second = await createServer(database);
    const body = junit("pf").replace("</testsuite>", `<!--${"x".repeat(1_200_000)}--></testsuite>`);
    const { promise: letGo, resolve } = Promise.withResolvers<void>();
    const { promise: locked, resolve: hold } = Promise.withResolvers<void>();
    const holding = database.begin(async (sql) => {
      await lockTestCases(sql, mine.project);
      hold();
      await letGo;
    });
    await locked;
    const upload = (server: { ask: typeof ask }, { project, key }: typeof mine, headers: Record<string, string>) =>
      server.ask(`POST /projects/${project}/test-runs`, { key, body, headers });
    const first = upload({ ask }, mine, { "idempotency-key": "large" });
    await until(() => isClaimed("large"));
    const repetition = upload(second, mine, { "idempotency-key": "large" });
    expect((await upload(second, other, {})).status).toBe(201);
    resolve();
    await holding;
    const answers = await Promise.all([first, repetition]);
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(answers[1].headers.get("idempotent-replayed")).toBe("true");
  });
});
