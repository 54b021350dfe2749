import { describe, expect, test } from "bun:test";
import { createRequests } from "../asking.ts";
import { Webhook } from "standardwebhooks";
import { createLog } from "../../src/log.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { insertDelivery } from "../../src/store/deliveries.ts";
import { createDeliverer } from "../../src/work/deliver.ts";
import { reseal } from "../../src/work/reseal.ts";
import { toTestNotice } from "../../src/wording/notification.ts";
import { createHarness, createServer, holdTransaction, SECRET_KEY, until } from "../harness.ts";
import { createReceiver, outboundToReceivers } from "../receiver.ts";
import { isFull } from "../depth.ts";

const lines: string[] = [];
const { ask, acme, database } = await createHarness({
  outboundAllow: ["127.0.0.0/8"],
  log: (line) => lines.push(line),
});
const strict = await createServer(database);
const key = acme.teamKey;
const base = `/teams/${acme.team}/integrations`;
const team = createRequests(ask, base, key);
const whsec = (letter: string) => `whsec_${Buffer.from(letter.repeat(32)).toString("base64")}`;

const create = async (kind: string, config: Record<string, unknown>, name = kind) => {
  const answer = await team.call("POST", "", { kind, name, config });
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return answer.body;
};

/** One server's worth of sending, until nothing is due; each is a server of its own. */
const createSender = (timeoutMs = 300) => {
  const log = createLog("debug", (line) => lines.push(line), false);
  return createDeliverer(database, { outbound: outboundToReceivers(timeoutMs), seal: createSeal(SECRET_KEY) }, log);
};
async function deliverAll(sender = createSender()): Promise<void> {
  while ((await sender.start()) > 0) await sender.ended();
}

/** Something to deliver, as automations make it. */
async function enqueue(integrationId: string, count = 1): Promise<string[]> {
  const ids = Array.from({ length: count }, () => Bun.randomUUIDv7());
  for (const id of ids) {
    const notice = toTestNotice(acme.team, "test", "http://assay.test", new Date());
    await insertDelivery(database.pool, acme.team, {
      ...{ id, integrationId, action: "notify", options: {}, eventId: null },
      notice: { ...notice, title: `delivery ${id}` },
      due: "now",
    });
  }
  return ids;
}

const deliveries = async (id: string, query = "") => await team.list(`/${id}/deliveries${query}`);
const redeliver = (id: string, delivery: string) => team.call("POST", `/${id}/deliveries/${delivery}/redeliver`);
/** A webhook whose receiver plays the answers. */
async function createWebhook(...answers: Parameters<typeof createReceiver>) {
  const receiver = createReceiver(...answers);
  const { id } = await create("webhook", { url: receiver.url, secret: whsec("a") });
  return { id: id as string, receiver };
}
const read = async (id: string) => await team.get(`/${id}`);

/** As if so much time had gone by for the integration and its deliveries. */
const pass = async (id: string, interval: string) => {
  await database.pool`
    update integration set paused_until = paused_until - ${interval}::text::interval,
      failing_since = failing_since - ${interval}::text::interval where id = ${id}`;
  await database.pool`
    update delivery set due_at = due_at - ${interval}::text::interval where integration_id = ${id} and due_at is not null`;
};

describe("integrations", () => {
  test("are created, listed newest first, changed and deleted; secrets are null for ever", async () => {
    const secret = whsec("s");
    const url = "https://hooks.example.com/assay";
    const body = await create("webhook", { url, secret }, "ours");
    expect(body).toEqual({
      ...{ id: expect.any(String), kind: "webhook", name: "ours", enabled: true, disabledReason: null },
      ...{ config: { url, secret: null }, actions: ["notify", "digest"], lastDelivery: null },
      ...{ createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
    const slack = await create("slack", { url: "https://hooks.slack.com/services/T/B/abcdefgh" });
    expect(slack.config).toEqual({ url: null });
    expect((await team.walk("?limit=1")).map(({ id }) => id)).toEqual([slack.id, body.id]);
    expect(await team.list("?kind=slack")).toHaveLength(1);
    const changes = { name: "theirs", enabled: false, config: { url: "https://hooks.example.com/2", secret: null } };
    expect(await team.patch(`/${body.id}`, changes)).toMatchObject(changes);
    expect((await team.call("DELETE", `/${body.id}`)).status).toBe(204);
    expect((await team.call("GET", `/${body.id}`)).status).toBe(404);
  });

  test("a webhook's secret that is left out is made, and shown in that one answer", async () => {
    const receiver = createReceiver();
    const body = { kind: "webhook", config: { url: receiver.url } };
    const headers = { "idempotency-key": "make-a-secret" };
    const [first, again] = [await team.call("POST", "", body, headers), await team.call("POST", "", body, headers)];
    const { id, config } = first.body;
    expect(config.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect([again.body.id, again.body.config.secret, (await read(id)).config.secret]).toEqual([id, null, null]);
    await team.post(`/${id}/test`);
    const [request] = receiver.requests;
    expect(new Webhook(config.secret).verify(request!.text, request!.headers)).toBeTruthy();
    const rows = await database.pool<{ row: string }[]>`select t::text as row from idempotency t`;
    expect(rows.map(({ row }) => row).join("\n")).not.toContain(config.secret);
  });

  test("each bad field is named, and no secret is quoted", async () => {
    const config = { url: "ftp://x", secret: "whsec_tooShortButSecret", nope: 1 };
    const { status, body } = await team.call("POST", "", { kind: "webhook", config, name: "" });
    expect(status).toBe(400);
    for (const name of ["config.url", "config.secret", "name", "config.nope"])
      expect(body.error.message).toContain(`"${name}"`);
    expect(body.error.message).not.toContain("tooShort");
    const unknown = await team.call("POST", "", { kind: "fax", config: {} });
    expect(unknown.body.error.message).toContain(`"slack"`);
    const { id } = await create("github", { repository: "acme/web", token: "ghp_secret" });
    const patched = await team.call("PATCH", `/${id}`, { config: { repository: "no slash", token: "a b" } });
    expect(patched.body.error.message).toContain(`"config.repository"`);
    expect(patched.body.error.message).toContain(`"config.token"`);
  });

  test("nothing leads out of the address, and no secret goes to another server unseen", async () => {
    for (const [kind, config] of [
      ["github", { repository: "../..", token: "t" }],
      ["github", { repository: "./web", token: "t" }],
      ["github", { repository: "acme/web", token: "t", workflow: ".." }],
      ["gitlab", { project: "..", token: "t" }],
      ["gitlab", { project: "a/../b", token: "t" }],
    ] as const)
      expect([config, (await team.call("POST", "", { kind, config })).status]).toEqual([config, 400]);
    const receiver = createReceiver({ status: 201, body: {} });
    const gitlab = { project: "a/b", token: "first", triggerToken: "trigger" };
    const { id } = await create("gitlab", gitlab);
    const patch = (config: object) => team.call("PATCH", `/${id}`, { config });
    const moved = await patch({ baseUrl: receiver.url });
    const servers = `Cannot change "config.baseUrl" to another server without "config.token", "config.triggerToken"`;
    expect([moved.status, moved.body.error.message]).toEqual([400, servers]);
    expect((await patch({ baseUrl: "https://gitlab.com/sub" })).status).toBe(200);
    expect((await patch({ baseUrl: receiver.url, token: "second", triggerToken: "" })).status).toBe(200);
    await team.post(`/${id}/test`);
    expect(receiver.requests.map(({ headers }) => headers["private-token"])).toEqual(["second"]);
    expect((await patch({ token: "" })).status).toBe(400);
  });

  test("each kind knows its actions and its defaults", async () => {
    const repository = ["set_commit_status", "create_issue", "notify", "dispatch"];
    const kinds: [string, Record<string, unknown>, string[]][] = [
      ["discord", { url: "https://discord.com/api/webhooks/1/token" }, ["notify", "digest"]],
      ["teams", { url: "https://prod-1.westeurope.logic.azure.com/workflows/1" }, ["notify", "digest"]],
      [
        "email",
        { host: "smtp.acme.example", from: "assay@acme.example", to: ["ada@acme.example"] },
        ["notify", "digest"],
      ],
      ["github", { repository: "acme/web", token: "t0ken" }, repository],
      ["gitlab", { project: "acme/web", token: "t0ken" }, repository],
      ["jira", { baseUrl: "https://acme.atlassian.net/", token: "t", projectKey: "WEB" }, ["create_issue"]],
      ["linear", { token: "lin_api_1", teamId: crypto.randomUUID() }, ["create_issue"]],
      ["pagerduty", { routingKey: "R".repeat(32) }, ["notify"]],
    ];
    for (const [kind, config, actions] of kinds) expect((await create(kind, config)).actions).toEqual(actions);
    const body = await team.get("?kind=github");
    expect(body.data[0].config).toMatchObject({ baseUrl: "https://api.github.com", token: null, labels: ["assay"] });
    const retired = { kind: "teams", config: { url: "https://acme.webhook.office.com/webhookb2/1" } };
    const { body: refused } = await team.call("POST", "", retired);
    expect(refused.error.message).toContain("retired");
  });
});

describe("private addresses", () => {
  test.each(["http://127.0.0.1/", "http://[::ffff:127.0.0.1]/", "http://2130706433/", "http://localhost./"])(
    "%s is refused when it is given",
    async (url) => {
      const team = createRequests(strict.ask, base, key);
      const { status, body } = await team.call("POST", "", { kind: "webhook", config: { url, secret: whsec("a") } });
      expect([status, body.error.message]).toEqual([400, expect.stringContaining("private address")]);
      const jira = { kind: "jira", config: { baseUrl: url, token: "t", projectKey: "WEB" } };
      expect((await team.call("POST", "", jira)).status).toBe(400);
    },
  );

  test.each([
    ...["slack", "discord", "teams", "webhook"].map((kind) => [kind, "url", {}] as const),
    ["github", "baseUrl", { repository: "a/b", token: "t" }],
    ["gitlab", "baseUrl", { project: "a/b", token: "t" }],
    ["jira", "baseUrl", { token: "t", projectKey: "WEB" }],
    ["linear", "baseUrl", { token: "t", teamId: crypto.randomUUID() }],
    ["pagerduty", "baseUrl", { routingKey: "r" }],
  ] as const)("an address of %s that is none is refused by its name, given or changed", async (kind, name, config) => {
    const { id } = await create(kind, { ...config, [name]: "https://hooks.example.com" });
    for (const address of ["nonsense", "", "http://[", "file:///etc/passwd", "http://a:b@example.com", 7, null]) {
      const bad = { ...config, [name]: address };
      const created = await team.call("POST", "", { kind, config: bad });
      expect([created.status, created.body.error.message]).toEqual([400, expect.stringContaining(`"config.${name}"`)]);
      // A secret that is null stays as it is.
      if (address === null && name === "url" && kind !== "webhook") continue;
      const changed = await team.call("PATCH", `/${id}`, { config: { [name]: address } });
      expect([changed.status, changed.body.error.message]).toEqual([400, expect.stringContaining(`"config.${name}"`)]);
    }
  });

  test("an e-mail address of nothing but signs is refused at once", async () => {
    const config = { baseUrl: "https://a.example", token: "t", projectKey: "WEB", email: `${"@".repeat(200_000)}:` };
    const { status, body } = await team.call("POST", "", { kind: "jira", config });
    expect([status, body.error.message]).toEqual([400, expect.stringContaining("config.email")]);
    for (const email of ["a@b", "@a@b", "a@@b"])
      expect((await team.call("POST", "", { kind: "jira", config: { ...config, email } })).status).toBe(201);
    for (const email of ["a", "@", "@a", "a@", "@@", "a:b@c", "a @b"])
      expect((await team.call("POST", "", { kind: "jira", config: { ...config, email } })).status).toBe(400);
  });

  test("what has become private since is refused when it is dialled, and recorded", async () => {
    const team = createRequests(strict.ask, base, key);
    const { id, receiver } = await createWebhook();
    const { status, body } = await team.call("POST", `/${id}/test`);
    expect([status, body.status, body.attempts[0].statusCode]).toEqual([200, "failed", null]);
    expect(body.attempts[0].error).toContain("private addresses");
    expect(receiver.requests).toHaveLength(0);
  });
});

describe("an integration of e-mail", () => {
  const mail = { host: "smtp.acme.example", from: "assay@acme.example", to: ["ada@acme.example"] };
  const login = { ...mail, user: "assay", password: "correct horse" };

  test("uses STARTTLS on port 587 unless it says otherwise, and hides its password", async () => {
    const { config } = await create("email", login);
    expect(config).toEqual({ ...login, port: 587, security: "starttls", password: null });
  });

  test.each([
    ["config.host", { ...mail, host: "smtp.acme.example:25" }],
    ["config.host", { ...mail, host: "user@smtp" }],
    ["config.port", { ...mail, port: 65_536 }],
    ["config.security", { ...mail, security: "ssl" }],
    ["config.from", { ...mail, from: "a@b\r\nBcc: c@d" }],
    ["config.to", { ...mail, to: [] }],
    ["config.to", { ...mail, to: Array(21).fill("a@b") }],
    ["user and password", { ...mail, user: "assay" }],
    ["user and password", { ...mail, password: "correct horse" }],
    ["with a password", { ...login, security: "none" }],
  ])("is refused for %s: %j", async (name, config) => {
    const { status, body } = await team.call("POST", "", { kind: "email", config });
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(name)]);
    expect(body.error.message).not.toContain("correct horse");
  });

  test.each(["127.0.0.1", "::1", "2130706433", "localhost"])(
    "does not reach %s unless that is allowed",
    async (host) => {
      const team = createRequests(strict.ask, base, key);
      const { status, body } = await team.call("POST", "", { kind: "email", config: { ...mail, host } });
      expect([status, body.error.message]).toEqual([
        400,
        expect.stringMatching(/"config.host": it is a private address/),
      ]);
    },
  );

  test("asks for the password again before it is sent to another server", async () => {
    const { id } = await create("email", login);
    for (const change of [{ host: "evil.example" }, { port: 2525 }]) {
      const { status, body } = await team.call("PATCH", `/${id}`, { config: change });
      expect([status, body.error.message]).toEqual([400, expect.stringContaining(`without "config.password"`)]);
    }
    expect((await team.call("PATCH", `/${id}`, { config: { to: ["b@c"] } })).status).toBe(200);
    const changed = await team.call("PATCH", `/${id}`, { config: { host: "other.example", password: "new" } });
    expect([changed.status, changed.body.config.host]).toEqual([200, "other.example"]);
  });
});

describe("POST …/test", () => {
  test.each(["http:", "https://["])("a token that looks like an address and is none, %s, is sent", async (token) => {
    const receiver = createReceiver({ status: 201, body: {} });
    const { id } = await create("github", { baseUrl: receiver.url, repository: "acme/web", token });
    const { status, body } = await team.call("POST", `/${id}/test`);
    expect([status, body.status]).toEqual([200, "sent"]);
    expect(receiver.requests[0]!.headers["authorization"]).toBe(`Bearer ${token}`);
  });

  test("of an integration that is being deleted is not found", async () => {
    const { id } = await create("slack", { url: createReceiver().url });
    const isWaiting = async () => {
      const waiting = await database.pool`
        select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
      return waiting.length > 0;
    };
    const deleting = await holdTransaction(database, (sql) => sql`delete from integration where id = ${id}`);
    const testing = team.call("POST", `/${id}/test`);
    await until(isWaiting);
    await deleting.release();
    expect((await testing).status).toBe(404);
  });

  test("sends a signed sample that a receiver accepts, and tells what came back", async () => {
    const receiver = createReceiver({ status: 202, body: "thanks" });
    const secret = whsec("k");
    const { id } = await create("webhook", { url: `${receiver.url}/hook?x=1`, secret });
    const { status, body } = await team.call("POST", `/${id}/test`);
    const attempt = { attemptedAt: expect.any(String), statusCode: 202, latencyMs: expect.any(Number), error: null };
    expect([status, body]).toEqual([
      200,
      {
        ...{ id: expect.any(String), eventId: null, eventType: "test", action: "notify" },
        ...{ title: "Assay can reach webhook", status: "sent", attempts: [{ ...attempt, answer: "thanks" }] },
        ...{ nextAttemptAt: null, createdAt: expect.any(String) },
      },
    ]);
    const [request] = receiver.requests;
    expect([request!.method, request!.path, request!.headers["webhook-id"]]).toEqual(["POST", "/hook?x=1", body.id]);
    expect(new Webhook(secret).verify(request!.text, request!.headers)).toMatchObject({ type: "test" });
    expect((await read(id)).lastDelivery).toMatchObject({ id: body.id, status: "sent", statusCode: 202 });
  });

  test("a failure is the answer, is not tried again and does not count", async () => {
    const receiver = createReceiver({ status: 500, body: "broken" });
    const { id } = await create("slack", { url: receiver.url });
    const body = await team.post(`/${id}/test`);
    expect([body.status, body.nextAttemptAt, body.attempts[0].error]).toEqual(["failed", null, "Answered 500: broken"]);
    await deliverAll();
    expect(receiver.requests).toHaveLength(1);
  });
});

describe("deliveries", () => {
  test("are tried again in their time with the same id, and never after they were sent", async () => {
    const { id, receiver } = await createWebhook({ status: 500, body: "down" }, { status: 503 }, { status: 200 });
    const [delivery] = await enqueue(id);
    await deliverAll();
    const [first] = await deliveries(id);
    expect([first.status, first.attempts.length]).toEqual(["pending", 1]);
    const wait = Date.parse(first.nextAttemptAt) - Date.parse(first.attempts[0].attemptedAt);
    expect(wait).toBeWithin(4_900, 6_600);
    await deliverAll();
    expect(receiver.requests).toHaveLength(1);
    await pass(id, "6 seconds");
    await deliverAll();
    const [second] = await deliveries(id);
    expect(Date.parse(second.nextAttemptAt) - Date.parse(second.attempts[1].attemptedAt)).toBeWithin(29_900, 37_000);
    await pass(id, "40 seconds");
    await deliverAll();
    await pass(id, "1 day");
    await deliverAll();
    const [sent] = await deliveries(id);
    expect(sent).toMatchObject({ id: delivery, status: "sent", nextAttemptAt: null });
    expect(sent.attempts.map(({ statusCode }: any) => statusCode)).toEqual([500, 503, 200]);
    expect(receiver.requests.map(({ headers }) => headers["webhook-id"])).toEqual([delivery!, delivery!, delivery!]);
  });

  test("end after the ninth try, and are sent again when somebody asks", async () => {
    const { id, receiver } = await createWebhook({ status: 500 });
    const [delivery] = await enqueue(id);
    for (let round = 0; round < 12; round++) {
      await deliverAll();
      await database.pool`update integration set failing_since = now(), paused_until = null where id = ${id}`;
      await database.pool`update delivery set due_at = now() - interval '1 second' where integration_id = ${id} and due_at is not null`;
    }
    expect((await deliveries(id, "?status=failed"))[0]).toMatchObject({ id: delivery, nextAttemptAt: null });
    expect(receiver.requests).toHaveLength(9);
    receiver.play({ status: 200 });
    await database.pool`update integration set paused_until = now() + interval '15 minutes' where id = ${id}`;
    expect((await redeliver(id, delivery!)).body.status).toBe("pending");
    await deliverAll();
    expect((await deliveries(id))[0].status).toBe("sent");
    expect(receiver.requests.at(-1)!.headers["webhook-id"]).toBe(delivery!);
  });

  test("Retry-After is honoured, within reason", async () => {
    const receiver = createReceiver({ status: 429, headers: { "retry-after": "600" } });
    const { id } = await create("slack", { url: receiver.url });
    await enqueue(id);
    await deliverAll();
    const waits = async () => {
      const [{ nextAttemptAt, attempts }] = await deliveries(id);
      return Date.parse(nextAttemptAt) - Date.parse(attempts.at(-1).attemptedAt);
    };
    expect(await waits()).toBeWithin(599_000, 602_000);
    for (const [seconds, interval] of [
      ["31536000", "1 hour"],
      ["9".repeat(30), "2 days"],
    ] as const) {
      receiver.play({ status: 429, headers: { "retry-after": seconds } });
      await pass(id, interval);
      await deliverAll();
      expect(await waits()).toBeWithin(86_399_000, 86_402_000);
    }
  });

  test("410 disables the integration, with an event; so do days of failure", async () => {
    const receiver = createReceiver({ status: 410 });
    const { id } = await create("webhook", { url: receiver.url, secret: whsec("a") }, "gone");
    await enqueue(id, 3);
    await deliverAll();
    expect(receiver.requests).toHaveLength(1);
    expect(await read(id)).toMatchObject({ enabled: false, disabledReason: expect.stringContaining("410") });
    expect((await redeliver(id, (await deliveries(id))[0].id)).status).toBe(400);

    const failing = createReceiver({ status: 404 });
    const other = await create("webhook", { url: failing.url, secret: whsec("a") }, "away");
    for (const interval of ["1 second", "6 days"]) {
      await enqueue(other.id);
      await pass(other.id, interval);
      await deliverAll();
    }
    expect(await read(other.id)).toMatchObject({ enabled: false, disabledReason: "No delivery succeeded for 5 days" });
    const events = await database.pool<{ data: any }[]>`
      select data from event where team_id = ${acme.team} and type = 'integration.disabled' order by id`;
    expect(events.map(({ data }) => data.integration.name)).toEqual(["gone", "away"]);
    expect(await team.patch(`/${id}`, { enabled: true })).toMatchObject({ enabled: true, disabledReason: null });
    receiver.play({ status: 200 });
    await deliverAll();
    expect((await deliveries(id)).map(({ status }: any) => status).sort()).toEqual(["failed", "sent", "sent"]);
  });

  test.skipIf(!isFull)(
    "a receiver that hangs or fails delays nobody else, and is not asked for each delivery",
    async () => {
      const [hanging, failing, sound] = [
        await createWebhook("hang"),
        await createWebhook({ status: 500 }),
        await createWebhook({ status: 200 }),
      ];
      const [dead, broken, alive] = [hanging.receiver, failing.receiver, sound.receiver];
      for (const { id } of [hanging, failing, sound]) await enqueue(id, 10);
      const sender = createSender(2_000);
      await sender.start();
      await until(() => alive.requests.length === 10 && dead.requests.length > 0);
      // The one that hangs is still at its first.
      expect(dead.requests).toHaveLength(1);
      await sender.ended();
      expect([dead.requests.length, broken.requests.length]).toEqual([2, 2]);
      const { id } = hanging;
      expect(await deliveries(id, "?limit=1")).toMatchObject([{ status: "pending" }]);
      const tried = (await deliveries(id)).find(({ attempts }) => attempts.length > 0);
      expect(tried.attempts[0]).toMatchObject({ statusCode: null, answer: null, error: "No answer within 2 s" });
    },
  );

  test("a single failure holds up nothing else", async () => {
    const { id, receiver } = await createWebhook({ status: 200 }, { status: 503 }, { status: 200 });
    await enqueue(id, 5);
    await deliverAll();
    expect(receiver.requests).toHaveLength(5);
    expect((await deliveries(id, "?status=pending")).map(({ attempts }: any) => attempts.length)).toEqual([1]);
    await pass(id, "10 seconds");
    await deliverAll();
    expect(await deliveries(id, "?status=pending")).toEqual([]);
  });

  test("what a server had in hand when it died is sent by another one, with the same id", async () => {
    const { id, receiver } = await createWebhook({ status: 200 });
    const [delivery] = await enqueue(id);
    await database.pool`
      update integration set claim = ${crypto.randomUUID()}, claimed_until = now() + interval '60 seconds' where id = ${id}`;
    await deliverAll();
    expect(receiver.requests).toHaveLength(0);
    await database.pool`update integration set claimed_until = now() - interval '1 second' where id = ${id}`;
    await deliverAll();
    expect(receiver.requests.map(({ headers }) => headers["webhook-id"])).toEqual([delivery!]);
  });

  test("while a secret is replaced both sign, for a day", async () => {
    const receiver = createReceiver({ status: 200 });
    const [before, after] = [whsec("b"), whsec("c")];
    const { id } = await create("webhook", { url: receiver.url, secret: before });
    await team.patch(`/${id}`, { config: { secret: after } });
    await team.post(`/${id}/test`);
    const [{ text, headers }] = receiver.requests as [(typeof receiver.requests)[0]];
    expect(headers["webhook-signature"]!.split(" ")).toHaveLength(2);
    for (const secret of [before, after]) expect(new Webhook(secret).verify(text, headers)).toBeTruthy();
    expect(() => new Webhook(whsec("d")).verify(text, headers)).toThrow();
  });
});

test("secrets are found nowhere: no answer, log line, delivery or row of the database", async () => {
  // It sends back everything that it has got.
  const echo = createReceiver(({ headers, text, path }) => ({
    status: 400,
    body: JSON.stringify({ headers, text, path }),
  }));
  const secrets = {
    slack: "SlackPathSecret00001",
    github: "GitHubTokenSecret0002",
    pagerduty: "PagerDutyKeySecret03",
    jira: "JiraTokenSecret00004",
    webhook: Buffer.from("WebhookSigningSecretNumber05").toString("base64"),
  };
  const created = [
    await create("slack", { url: `${echo.url}/services/${secrets.slack}` }),
    await create("github", { baseUrl: echo.url, repository: "a/b", token: secrets.github }),
    await create("pagerduty", { baseUrl: echo.url, routingKey: secrets.pagerduty }),
    await create("jira", { baseUrl: echo.url, email: "a@example.com", token: secrets.jira, projectKey: "WEB" }),
    await create("webhook", { url: echo.url, secret: `whsec_${secrets.webhook}` }),
  ];
  const basic = Buffer.from(`a@example.com:${secrets.jira}`).toString("base64");
  const answers: string[] = [];
  for (const { id } of created) {
    answers.push((await team.call("POST", `/${id}/test`, undefined, { "idempotency-key": id })).text);
    answers.push((await team.call("PATCH", `/${id}`, { name: "changed" })).text);
    answers.push((await team.call("GET", `/${id}/deliveries`)).text);
  }
  answers.push((await team.call("GET", "?limit=100")).text);
  expect(echo.requests.length).toBeGreaterThanOrEqual(5);
  const tables = await database.pool<{ name: string }[]>`
    select relname as name from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace`;
  const rows: string[] = [];
  for (const { name } of tables) {
    const found = await database.pool<{ row: string }[]>`select t::text as row from ${database.pool(name)} t`;
    rows.push(...found.map(({ row }) => row));
  }
  const everything = [...answers, ...lines, ...rows].join("\n");
  expect(everything).toContain("[secret]");
  for (const [kind, secret] of Object.entries({ ...secrets, basic }))
    for (const form of [secret, Buffer.from(secret).toString("hex"), Buffer.from(secret).toString("base64")])
      expect([kind, everything.includes(form)]).toEqual([kind, false]);
});

test("after a change of SECRET_KEY the secrets are sealed anew and still open", async () => {
  const receiver = createReceiver({ status: 200 });
  const secret = whsec("r");
  const { id } = await create("webhook", { url: receiver.url, secret });
  const fresh = new Uint8Array(32).fill(9);
  const rotating = createSeal(fresh, SECRET_KEY);
  expect(await reseal(database, rotating)).toBeGreaterThan(0);
  expect(await reseal(database, rotating)).toBe(0);
  await enqueue(id);
  const services = { outbound: outboundToReceivers(), seal: createSeal(fresh) };
  const log = createLog("error", () => {}, false);
  await deliverAll(createDeliverer(database, services, log));
  expect(new Webhook(secret).verify(receiver.requests[0]!.text, receiver.requests[0]!.headers)).toBeTruthy();
});
