import { expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { deleteOldAnswers } from "../../src/store/idempotency.ts";
import { notSent } from "../../src/schema/deliveries.ts";
import { failCutOff } from "../../src/store/deliveries.ts";
import { prune } from "../../src/work/prune.ts";
import { createAutomating } from "../automating.ts";
import { createHarness } from "../harness.ts";

const harness = await createHarness({ outboundAllow: ["127.0.0.0/8"] });
const { acme, database } = harness;
const { integrate, automate, deliveriesOf } = createAutomating(harness, acme);
const { pool } = database;
const log = createLog("error", () => {}, false);

const ids = async (table: string) =>
  (await pool<{ id: string }[]>`select id from ${pool(table)} where team_id = ${acme.team} order by id`).map(
    ({ id }) => id,
  );

test("old events go when nobody waits for them, old runs and deliveries when they are over; what is young stays", async () => {
  const team = acme.team;
  const [young, old, due] = [1, 2, 3].map(() => Bun.randomUUIDv7()) as [string, string, string];
  await pool`
    insert into event (team_id, id, type, data, occurred_at, due_at) values
      (${team}, ${young}, 'execution.completed', '{}', now() - interval '6 days', null),
      (${team}, ${old}, 'execution.completed', '{}', now() - interval '8 days', null),
      (${team}, ${due}, 'execution.completed', '{}', now() - interval '8 days', now())`;
  const integrationId = await integrate("webhook", { url: "http://127.0.0.1:1/" });
  const delivery = async (status: string, days: number) => {
    const id = Bun.randomUUIDv7();
    await pool`
      insert into delivery (team_id, integration_id, id, action, options, event_type, notice, status, due_at, created_at)
      values (${team}, ${integrationId}, ${id}, 'notify', '{}', 'test', '{}', ${status},
        ${status === "pending" ? pool`now() + interval '1 hour'` : null}, now() - interval '1 day' * ${days}::int)`;
    return id;
  };
  const [sent, forgotten, waits, waitsInVain] = [
    await delivery("sent", 29),
    await delivery("sent", 31),
    await delivery("pending", 4),
    await delivery("pending", 6),
  ];
  const actions = [{ type: "notify", integrationId }];
  const automationId = await automate({ trigger: { event: "execution.completed" }, actions });
  const run = async (status: string, days: number) => {
    const id = Bun.randomUUIDv7();
    await pool`
      insert into automation_run (team_id, automation_id, id, cause, status, reason, actions, created_at)
      values (${team}, ${automationId}, ${id}, 'manual', ${status}, 'r', '[]', now() - interval '1 day' * ${days}::int)`;
    return id;
  };
  const [done, doneLong, skipped, skippedLong] = [
    await run("done", 29),
    await run("done", 31),
    await run("skipped", 6),
    await run("skipped", 8),
  ];

  await prune(pool, log);
  expect(await ids("event")).toEqual([young, due].sort());
  expect(await ids("delivery")).toEqual([sent, waits, waitsInVain].sort());
  expect(await ids("automation_run")).toEqual([done, skipped].sort());
  expect([forgotten, doneLong, skippedLong].every((id) => typeof id === "string")).toBe(true);
  const given = await pool<{ id: string }[]>`
    select id from delivery where team_id = ${team} and status = 'failed' and due_at is null`;
  expect(given).toEqual([{ id: waitsInVain }] as never);
});

test("answers to requests are forgotten after a day", async () => {
  const { team, project } = acme;
  for (const [key, hours] of [
    ["young", 23],
    ["old", 25],
  ] as const)
    await pool`
      insert into idempotency (team_id, scope_id, key, digest, status, created_at)
      values (${team}, ${project}, ${key}, '\\x00', 201, now() - interval '1 hour' * ${hours}::int)`;
  await deleteOldAnswers(pool);
  expect(await pool`select key from idempotency where team_id = ${team}`).toEqual([{ key: "young" }] as never);
});

test("a delivery that its sender has not ended was cut off, and says so", async () => {
  const integrationId = await integrate("webhook", { url: "http://127.0.0.1:1/" });
  const insert = async (minutes: number) => {
    const id = Bun.randomUUIDv7();
    await pool`
      insert into delivery (team_id, integration_id, id, action, options, event_type, notice, created_at)
      values (${acme.team}, ${integrationId}, ${id}, 'notify', '{}', 'test', '{"title":"t"}',
        now() - interval '1 minute' * ${minutes}::int)`;
    return id;
  };
  const [running, dead] = [await insert(1), await insert(3)];
  await failCutOff(pool, notSent(new Date(), "Cut off"));
  const deliveries = await deliveriesOf(integrationId);
  const states = deliveries.map(({ id, status, attempts }: any) => [id, status, attempts.at(-1)?.error]);
  expect(new Set(states)).toEqual(
    new Set([
      [running, "pending", undefined],
      [dead, "failed", "Cut off"],
    ]),
  );
});
