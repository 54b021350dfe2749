/** What waits for a receiver that is away: how much, and what becomes of the rest. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { toTestNotice } from "../../src/wording/notification.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import type { Sql, Tx } from "../../src/database/connect.ts";
import { dropOldestDeliveries } from "../../src/store/deliveries.ts";
import { createDeliverer } from "../../src/work/deliver.ts";
import { boundDeliveries, prune } from "../../src/work/prune.ts";
import { createAsking } from "../asking.ts";
import { createAutomating } from "../automating.ts";
import { createHarness, SECRET_KEY } from "../harness.ts";
import { createReceiver, outboundToReceivers, type Script } from "../receiver.ts";

const harness = await createHarness({ outboundAllow: ["127.0.0.0/8"] });
const { ask, acme, database } = harness;
const { pool } = database;
const { call, handle: handleAll, ...automating } = createAutomating(harness, acme);
const project = createAsking(ask, acme);
const log = createLog("error");
const notice = JSON.stringify(toTestNotice(acme.team, "test", "http://assay.test", new Date()));

beforeEach(async () => {
  await pool`delete from automation`;
  await pool`delete from integration`;
});

const integrate = (baseUrl = "https://github.example.com") =>
  automating.integrate("github", { baseUrl, repository: "acme/web", token: "t" });
const automate = (actions: object[], event = "execution.completed") =>
  automating.automate({ trigger: { event }, actions });
const upload = (letters = "p") => project.upload(letters, { task_slug: "unit", branch: "main", pull_request: "1" });

/** Deliveries as they were made an hour ago, oldest first. */
const fill = (integrationId: string, count: number, action = "notify", status = "pending", sql: Sql = pool) => sql`
  insert into delivery (team_id, integration_id, id, action, options, event_type, notice, status, due_at)
  select ${acme.team}, ${integrationId},
    (lpad(to_hex(n), 8, '0') || '-0000-4000-8000-' || left(md5(random()::text), 12))::uuid,
    ${action}, '{}', 'test', ${notice}::text::json, ${status},
    case when ${status} = 'pending' then now() + interval '1 hour' end
  from generate_series(1, ${count}::int) as n`;

const count = async (integrationId: string) => {
  const rows = await pool<{ action: string; status: string; count: number }[]>`
    select action, status, count(*)::int as count from delivery where integration_id = ${integrationId} group by 1, 2`;
  return Object.fromEntries(rows.map(({ action, status, count }) => [`${action} ${status}`, count]));
};
const read = async (id: string) => (await call("GET", `/integrations/${id}`)).body;

describe("more than a thousand deliveries", () => {
  test("the oldest messages are given up for newer ones, and the integration says how many", async () => {
    const integrationId = await integrate();
    await automate([{ type: "notify", integrationId }]);
    await fill(integrationId, 999);
    expect(await read(integrationId)).not.toHaveProperty("givenUp");
    await upload();
    await handleAll();
    expect(await count(integrationId)).toEqual({ "notify pending": 1_000 });
    for (let index = 0; index < 3; index++) await upload();
    await handleAll();
    expect(await count(integrationId)).toEqual({ "notify pending": 1_000, "notify failed": 3 });
    expect((await read(integrationId)).givenUp).toBe(3);
    const [oldest] = await pool<{ id: string }[]>`
      select id from delivery where integration_id = ${integrationId} and status = 'pending' order by id limit 1`;
    const { body } = await call("GET", `/integrations/${integrationId}/deliveries?status=failed`);
    expect(body.data.every(({ id }: any) => id < oldest!.id)).toBe(true);
    expect(body.data[0]).toMatchObject({ status: "failed", nextAttemptAt: null });
    expect(body.data[0].attempts.map(({ error }: any) => error)).toEqual([
      "Cancelled: more than 1000 deliveries were waiting, and this was the oldest message",
    ]);
  });

  test("four servers give up as many as they add, those of one moment with the next round of the loop", async () => {
    const integrationId = await integrate();
    await automate([{ type: "notify", integrationId }]);
    await fill(integrationId, 1_000);
    for (let index = 0; index < 40; index++) await upload();
    await Promise.all([1, 2, 3, 4].map(handleAll));
    // Those that come to the bound in the same moment do not see each other: how many are too many is the scheduler's
    // choice, and the loop gives them up.
    await boundDeliveries(pool, log);
    expect(await count(integrationId)).toEqual({ "notify pending": 1_000, "notify failed": 40 });
  });

  test("servers that add some at once while a few are too many give up one each, and no two the same", async () => {
    const integrationId = await integrate();
    await fill(integrationId, 1_002);
    const givenUp: string[] = [];
    const add = async (sql: Tx) => {
      await fill(integrationId, 1, "notify", "pending", sql);
      const place = { teamId: acme.team, integrationId };
      givenUp.push(...(await dropOldestDeliveries(sql, place, 1_000, { now: new Date(), how: "among" })).givenUp);
    };
    // Neither sees what the other does.
    await database.begin(async (one) => {
      await add(one);
      await database.begin(add);
    });
    expect(new Set(givenUp).size).toBe(2);
    expect(await count(integrationId)).toEqual({ "notify pending": 1_002, "notify failed": 2 });
    await boundDeliveries(pool, log);
    expect(await count(integrationId)).toEqual({ "notify pending": 1_000, "notify failed": 4 });
  });

  test("servers that look after what is too many at once give it up once", async () => {
    const integrationId = await integrate();
    await fill(integrationId, 2_550);
    await Promise.all([1, 2, 3, 4].map(() => boundDeliveries(pool, log)));
    expect(await count(integrationId)).toEqual({ "notify pending": 1_000, "notify failed": 1_550 });
  });

  test("issues are kept: messages make room for them, and where there are none it is said in the run", async () => {
    const integrationId = await integrate();
    const id = await automate([{ type: "create_issue", integrationId }], "bug_report.opened");
    const open = async (title: string) => {
      const { status } = await project.call("POST", "/bug-reports", { title });
      expect(status).toBe(201);
      await handleAll();
    };
    const run = async () => (await automating.runsOf(id))[0];
    await fill(integrationId, 999, "create_issue");
    await fill(integrationId, 1);
    await open("first");
    expect(await count(integrationId)).toEqual({ "create_issue pending": 1_000, "notify failed": 1 });
    expect((await run()).status).toBe("done");
    await open("second");
    expect(await count(integrationId)).toEqual({
      ...{ "create_issue pending": 1_000, "create_issue failed": 1, "notify failed": 1 },
    });
    const { status, actions } = await run();
    const reason = `1000 deliveries are waiting for "github" already`;
    expect([status, actions[0].status, actions[0].reason]).toEqual(["failed", "failed", reason]);
    const { body } = await call("GET", `/integrations/${integrationId}/deliveries?status=failed`);
    const [issue] = body.data.filter(({ action }: any) => action === "create_issue");
    expect([issue.id, issue.attempts[0].error]).toEqual([actions[0].deliveryId, `Not sent: ${reason}`]);
    const redeliver = () => call("POST", `/integrations/${integrationId}/deliveries/${issue.id}/redeliver`);
    const refused = await redeliver();
    expect([refused.status, refused.body.error.message]).toEqual([
      ...[400, "Cannot redeliver: 1000 deliveries are waiting for the integration already"],
    ]);
    await pool`delete from delivery where integration_id = ${integrationId} and status = 'pending'`;
    expect((await redeliver()).body.status).toBe("pending");

    await pool`delete from delivery where integration_id = ${integrationId}`;
    await fill(integrationId, 1_000, "create_issue");
    const message = await automate([{ type: "notify", integrationId }]);
    await upload();
    await handleAll();
    const runs = await automating.runsOf(message);
    expect([runs[0].status, runs[0].actions[0].reason]).toEqual(["failed", reason]);
  });

  test("what is given up while it is being sent stays so, unless it arrives", async () => {
    for (const [answer, status] of [
      [500, "failed"],
      [201, "sent"],
    ] as const) {
      let arrived = () => {};
      const sending = new Promise<void>((resolve) => (arrived = resolve));
      let answerNow = () => {};
      const gate = new Promise<void>((resolve) => (answerNow = resolve));
      const receiver = createReceiver({ status: 200, body: [] } as Script, { status: answer } as Script);
      const integrationId = await integrate(receiver.url);
      await fill(integrationId, 1, "create_issue");
      await pool`update delivery set due_at = now() - interval '1 second' where integration_id = ${integrationId}`;
      receiver.play({ status: answer });
      const outbound = outboundToReceivers();
      const gated = {
        ...outbound,
        async request(request: Parameters<typeof outbound.request>[0]) {
          arrived();
          await gate;
          return await outbound.request(request);
        },
      };
      const deliverer = createDeliverer(database, { outbound: gated, seal: createSeal(SECRET_KEY) }, log);
      await deliverer.start();
      await sending;
      await pool`
        update delivery set status = 'failed', due_at = null, given_up = true where integration_id = ${integrationId}`;
      answerNow();
      await deliverer.ended();
      expect(await count(integrationId)).toEqual({ [`create_issue ${status}`]: 1 });
    }
  });

  test("of those that are over ten thousand are kept, the newest", async () => {
    const [dead, alive] = [await integrate(), await integrate()];
    await fill(alive, 10_010, "notify", "sent");
    await fill(dead, 10_500, "notify", "failed");
    await fill(dead, 700, "create_issue");
    await boundDeliveries(pool, log);
    expect(await count(dead)).toEqual({ "notify failed": 10_500, "create_issue pending": 700 });
    await pool`update delivery set given_up = true where integration_id = ${dead} and status = 'failed'`;
    await boundDeliveries(pool, log);
    const left = await count(dead);
    expect(left["create_issue pending"]).toBe(700);
    expect(left["notify failed"]).toBeLessThanOrEqual(10_000);
    expect(await count(alive)).toEqual({ "notify sent": 10_010 });
    await prune(pool, log);
    expect(await count(alive)).toEqual({ "notify sent": 10_000 });
    const [oldest] = await pool`select min(id::text) as id from delivery where integration_id = ${alive}`;
    expect(oldest!["id"]).toStartWith("0000000b");
  });
});
