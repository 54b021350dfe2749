/** Background work of two servers at once: claims that are lost, pauses, and what both find out. */

import { beforeEach, expect, test } from "bun:test";
import { lockDueEvent, postponeEvent } from "../../src/store/events.ts";
import { toTestNotice } from "../../src/wording/notification.ts";
import { createAutomating } from "../automating.ts";
import { createHarness } from "../harness.ts";
import { createReceiver } from "../receiver.ts";

const harness = await createHarness({ outboundAllow: ["127.0.0.0/8"] });
const { acme, database } = harness;
const { pool } = database;
const { createSender, ...automating } = createAutomating(harness, acme);
const notice = JSON.stringify(toTestNotice(acme.team, "test", "http://assay.test", new Date()));
const receiver = createReceiver();

let integrationId: string;
beforeEach(async () => {
  receiver.requests.length = 0;
  await pool`delete from integration`;
  await pool`delete from event`;
  integrationId = await integrate(receiver.url);
});

const integrate = (url: string) => automating.integrate("webhook", { url });

/** Deliveries that are due. */
const add = (count: number, id = integrationId) => pool`
  insert into delivery (team_id, integration_id, id, action, options, event_type, notice, due_at)
  select ${acme.team}, ${id}, gen_random_uuid(), 'notify', '{}', 'test', ${notice}::text::json,
    now() - interval '1 minute' + n * interval '1 second'
  from generate_series(1, ${count}::int) as n`;

/** Sends until nothing is due; answers how many integrations it claimed. */
async function deliver(sender = createSender()): Promise<number> {
  const claimed = await sender.start();
  await sender.ended();
  return claimed;
}

const sentIds = () => receiver.requests.map(({ headers }) => headers["webhook-id"]);

test("a server whose claim was taken over sends what is on its way, and nothing more", async () => {
  await add(2);
  receiver.play(
    async () => {
      await pool`
        update integration set claim = gen_random_uuid(), claimed_until = now() + interval '1 minute'
        where id = ${integrationId}`;
      return { status: 200 };
    },
    { status: 200 },
  );
  expect(await deliver()).toBe(1);
  expect(receiver.requests).toHaveLength(1);
  // It does not release the claim of the other one either.
  expect(await deliver()).toBe(0);
  await pool`update integration set claimed_until = now() - interval '1 second' where id = ${integrationId}`;
  expect(await deliver()).toBe(1);
  expect(new Set(sentIds()).size).toBe(2);
  expect(receiver.requests).toHaveLength(2);
});

test("a receiver that failed twice in a row is left alone until the end of its pause, and no other one is", async () => {
  const other = createReceiver();
  const second = await integrate(other.url);
  await add(3);
  receiver.play({ status: 500 });
  expect(await deliver()).toBe(1);
  expect(receiver.requests).toHaveLength(2);
  expect(await deliver()).toBe(0);
  expect(receiver.requests).toHaveLength(2);
  await add(1, second);
  expect(await deliver()).toBe(1);
  expect([receiver.requests.length, other.requests.length]).toEqual([2, 1]);
  await pool`update integration set paused_until = now() - interval '1 second' where id = ${integrationId}`;
  expect(await deliver()).toBe(1);
  expect(new Set(sentIds()).size).toBe(3);
});

test("two servers that learn at once that the receiver is gone disable its integration once", async () => {
  await add(1);
  receiver.play(
    async () => {
      await pool`update integration set claimed_until = now() - interval '1 second' where id = ${integrationId}`;
      expect(await deliver()).toBe(1);
      return { status: 410 };
    },
    { status: 410 },
  );
  expect(await deliver()).toBe(1);
  expect(receiver.requests).toHaveLength(2);
  const events = await pool`select data from event where type = 'integration.disabled'`;
  expect(events.map(({ data }) => data.integration.id)).toEqual([integrationId]);
});

test("a newer delivery takes the place of an older one for the same integration only", async () => {
  const other = createReceiver();
  const second = await integrate(other.url);
  receiver.play({ status: 200 });
  const state = (integrationId: string, number: number) => pool`
    insert into delivery (team_id, integration_id, id, action, options, event_type, notice, due_at, state_key)
    values (${acme.team}, ${integrationId}, ${`0000000${number}-0000-4000-8000-000000000000`}, 'notify', '{}', 'test',
      ${notice}::text::json, now() - interval '1 minute', 'status of a commit')`;
  await state(integrationId, 1);
  await state(integrationId, 2);
  await state(second, 3);
  expect(await deliver()).toBe(2);
  expect([receiver.requests.length, other.requests.length]).toEqual([1, 1]);
});

test("an event that fails on two servers at once is put off once", async () => {
  const id = Bun.randomUUIDv7();
  await pool`
    insert into event (team_id, id, type, data, due_at)
    values (${acme.team}, ${id}, 'integration.disabled', '{}', now() - interval '1 second')`;
  const event = (await database.begin(lockDueEvent))!;
  expect(event.id).toBe(id);
  expect([await postponeEvent(pool, event), await postponeEvent(pool, event)]).toEqual([1, undefined]);
  expect(await database.begin(lockDueEvent)).toBeUndefined();
});
