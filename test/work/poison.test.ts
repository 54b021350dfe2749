/** One item that always fails, in each loop: the others are done, and it ends. */

import { beforeEach, describe, expect, test } from "bun:test";
import { createLog } from "../../src/log.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { insertDelivery } from "../../src/store/deliveries.ts";
import { handleEvents, runSchedules } from "../../src/work/automate.ts";
import { createDeliverer } from "../../src/work/deliver.ts";
import { expireExecutions } from "../../src/work/expire.ts";
import { always, MAX_TRIES } from "../../src/work/loop.ts";
import { prune } from "../../src/work/prune.ts";
import { countAll } from "../../src/work/count.ts";
import { reseal } from "../../src/work/reseal.ts";
import { retainNow } from "../retaining.ts";
import { toTestNotice } from "../../src/wording/notification.ts";
import { createAsking } from "../asking.ts";
import { createAutomating } from "../automating.ts";
import { createHarness, SECRET_KEY } from "../harness.ts";
import { createReceiver, outboundToReceivers } from "../receiver.ts";

const lines: string[] = [];
const record = (line: string) => void lines.push(line);
const harness = await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"], log: record });
const { ask, acme, addProject, database } = harness;
const { pool } = database;
const { call, integrate, automate, deliveriesOf, ...automating } = createAutomating(harness, acme);
const log = createLog("debug", record, false);
const logged = (level: string, id: string) =>
  lines.filter((line) => line.includes(`"level":"${level}"`) && line.includes(id));

let project: ReturnType<typeof createAsking>;

/** Whatever the test has broken is whole again. */
const mend: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  for (const again of mend.splice(0)) await again();
  for (const table of ["automation", "integration", "event", "execution", "retry_backoff"])
    await pool`delete from ${pool(table)}`;
  lines.length = 0;
  project = await addOther();
});

/** From now on this change of a table fails, for rows that meet the condition. */
async function raise(change: string, condition: string, code = "XX000"): Promise<() => Promise<unknown>> {
  const name = `poison_${crypto.randomUUID().replaceAll("-", "")}`;
  await pool.unsafe(`
    create function ${name}() returns trigger language plpgsql as $$
      begin raise exception 'poison' using errcode = '${code}'; end $$;
    create trigger ${name} before ${change} for each row when (${condition}) execute function ${name}();`);
  const again = () => pool.unsafe(`drop function if exists ${name} cascade`);
  mend.push(again);
  return again;
}

/** Runs the loop until the item has been put off `times` times; answers the pauses in seconds. */
async function pauses(item: string, times: number, loop: () => Promise<unknown>): Promise<number[]> {
  const found: number[] = [];
  for (let index = 0; index < times; index++) {
    await loop();
    const [row] = await pool<{ seconds: number }[]>`
      select extract(epoch from due_at - now())::float8 as seconds from retry_backoff where item = ${item}`;
    found.push(Math.round(row!.seconds));
    await pool`update retry_backoff set due_at = now() - interval '1 second' where item = ${item}`;
  }
  return found;
}
const GROWING = [10, 20, 40, 80, 160, 320, 640, 1280];

const upload = (letters: string, to = project, task = "unit") =>
  to.upload(letters, { branch: "main", task_slug: task });
const addOther = async () => createAsking(ask, await addProject(acme));
const runsOf = async (id: string) =>
  (await automating.runsOf(id)).map(({ status, reason, cause }) => [cause, status, reason]);
const statusOf = async (id: string) => (await automating.runsOf(id)).map(({ status }) => status);
const sentOf = async (id: string) => (await deliveriesOf(id)).map(({ status }) => status);

const INTERNAL = "Internal error: nothing was done. See the log of the server";
const handleAll = () => handleEvents(database, "https://assay.test", log);

describe("handling events", () => {
  const trigger = { event: "execution.completed" };
  const starts = (slug: string) => ({ trigger, actions: [{ type: "start_execution", tasks: [slug] }] });
  const slugs = async () => {
    const executions = await project.list("/executions?limit=100");
    return executions.filter(({ trigger }) => trigger === "automation").map(({ tasks }) => tasks[0].slug);
  };
  const dueEvents = () => pool<{ id: string }[]>`
    select id from event where project_id = ${project.project} and due_at is not null`;
  const isDone = async () => (await dueEvents()).length === 0;

  test("one automation that throws leaves a failed run, once, and the others have done what they say", async () => {
    const ids = [await automate(starts("first")), await automate(starts("poison")), await automate(starts("last"))];
    await pool`update automation set conditions = 'null' where id = ${ids[1]!}`;
    await upload("p");
    await handleAll();
    await handleAll();
    expect(await slugs()).toEqual(["last", "first"]);
    expect(await runsOf(ids[0]!)).toEqual([["event", "done", "No conditions to match"]]);
    expect(await runsOf(ids[1]!)).toEqual([["event", "failed", INTERNAL]]);
    expect(await runsOf(ids[2]!)).toHaveLength(1);
    expect(await isDone()).toBe(true);
    expect(logged("error", ids[1]!)).toHaveLength(1);
  });

  test("what a failed automation has begun is undone", async () => {
    const actions = ["begun", "poison"].map((slug) => ({ type: "start_execution", tasks: [slug] }));
    const poison = await automate({ trigger, actions });
    const sound = await automate(starts("sound"));
    await raise("insert on test_run", "new.task_slug = 'poison'");
    await upload("p");
    await handleAll();
    expect(await slugs()).toEqual(["sound"]);
    expect([await statusOf(poison), await statusOf(sound), await isDone()]).toEqual([["failed"], ["done"], true]);
  });

  test("an event that makes no sense to any is tried eight times, and then each of them says so", async () => {
    const id = await automate(starts("x"));
    await upload("p");
    await pool`update event set data = 'null' where project_id = ${project.project} and due_at is not null`;
    const found: number[] = [];
    while (!(await isDone())) {
      await handleAll();
      const [row] = await pool<{ seconds: number | null }[]>`
        select extract(epoch from due_at - now())::float8 as seconds from event
        where project_id = ${project.project} and type = 'execution.completed'`;
      if (row!.seconds !== null) found.push(Math.round(row!.seconds));
      await pool`update event set due_at = now() - interval '1 second' where due_at is not null`;
    }
    expect(found).toEqual(GROWING.slice(0, MAX_TRIES - 1));
    expect(await runsOf(id)).toEqual([["event", "failed", INTERNAL]]);
  });

  test("an event that cannot even be written is put off beside it, and others are handled", async () => {
    const id = await automate(starts("x"));
    await upload("p");
    const [event] = await dueEvents();
    await raise("update on event", `new.id = '${event!.id}'`);
    await upload("p", await addOther());
    expect(await pauses(event!.id, 3, handleAll)).toEqual([10, 20, 40]);
    expect(await statusOf(id)).toEqual(["done"]);
  });

  test("an automation that the database has no time for fails nobody: it comes again alone, and not for ever", async () => {
    const [slow, sound] = [await automate(starts("slow")), await automate(starts("sound"))];
    const again = await raise("insert on test_run", "new.task_slug = 'slow'", "57014");
    await upload("p");
    const [event] = await dueEvents();
    expect(await pauses(event!.id, 4, handleAll)).toEqual([1, 2, 4, 8]);
    expect([await slugs(), await runsOf(slow), (await runsOf(sound)).length]).toEqual([["sound"], [], 1]);
    await again();
    await handleAll();
    expect([await slugs(), await statusOf(slow), await isDone()]).toEqual([["slow", "sound"], ["done"], true]);

    await raise("insert on test_run", "new.task_slug = 'slow'", "57014");
    await upload("p");
    const [next] = await dueEvents();
    await pauses(next!.id, 29, handleAll);
    await handleAll();
    const reason = "The database did not answer in time after several tries: nothing was done";
    expect((await runsOf(slow))[0]).toEqual(["event", "failed", reason]);
    expect(await isDone()).toBe(true);
  });

  test("run by hand, or dry, it answers a failed run and no 500", async () => {
    const id = await automate(starts("x"));
    await upload("p");
    await pool`update automation set actions = '[{"type":"start_execution"}]' where id = ${id}`;
    const run = (body: object) => call("POST", `/automations/${id}/run`, body);
    const dry = await run({ dryRun: true });
    expect([dry.status, dry.body.id, dry.body.status, dry.body.reason]).toEqual([200, null, "failed", INTERNAL]);
    const real = await run({});
    expect([real.status, real.body.status, real.body.actions]).toEqual([200, "failed", []]);
    expect(await runsOf(id)).toEqual([["manual", "failed", INTERNAL]]);
    expect(logged("error", id)).toHaveLength(2);
  });
});

describe("running schedules", () => {
  const at = new Date("2030-01-07T03:00:00.000Z");
  const runAll = () => runSchedules(database, "https://assay.test", at, log);
  const schedule = async (slug: string, minute: number) => {
    const actions = [{ type: "start_execution", tasks: [slug], projectId: project.project }];
    const id = await automate({ trigger: { schedule: "0 3 * * *" }, actions });
    await pool`update automation set next_run_at = ${at.toISOString()}::timestamptz - interval '1 minute' * ${minute}::int
      where id = ${id}`;
    return id;
  };
  const nextOf = async (id: string) => (await call("GET", `/automations/${id}`)).body.nextRunAt;

  test("one that throws leaves a failed run and has a next time, and the others run", async () => {
    const [poison, sound] = [await schedule("poison", 5), await schedule("sound", 1)];
    await raise("insert on test_run", "new.task_slug = 'poison'");
    expect(await runAll()).toBe(2);
    expect(await runAll()).toBe(0);
    expect(await runsOf(poison)).toEqual([["schedule", "failed", INTERNAL]]);
    expect(await runsOf(sound)).toEqual([["schedule", "done", "Scheduled time reached"]]);
    for (const id of [poison, sound]) expect(await nextOf(id)).toBe("2030-01-08T03:00:00.000Z");
  });

  test.each(["null", "{}"])("a trigger that reads %s stops no other, and is not due for ever", async (damaged) => {
    const [poison, sound] = [await schedule("poison", 5), await schedule("sound", 1)];
    await pool`update automation set trigger = ${damaged}::text::json where id = ${poison}`;
    await runAll();
    expect(await statusOf(sound)).toEqual(["done"]);
    const [row] = await pool`select next_run_at from automation where id = ${poison}`;
    expect(row!["next_run_at"]).toBeNull();
    await pool`delete from automation where id = ${poison}`;
  });

  test("one whose next time cannot be planned is put off for longer each time, and the others run", async () => {
    const [poison, sound] = [await schedule("poison", 5), await schedule("sound", 1)];
    await raise("update on automation", `new.id = '${poison}'`);
    expect(await pauses(poison, MAX_TRIES, runAll)).toEqual(GROWING);
    expect(await statusOf(sound)).toEqual(["done"]);
    expect(logged("error", poison).length).toBeGreaterThanOrEqual(MAX_TRIES);
  });

  test("a slow database is no failure: no run, no try, and it runs when there is time", async () => {
    const poison = await schedule("slow", 5);
    const again = await raise("insert on test_run", "new.task_slug = 'slow'", "55P03");
    expect(await pauses(poison, 3, runAll)).toEqual([1, 2, 4]);
    expect([await runsOf(poison), logged("error", poison)]).toEqual([[], []]);
    await again();
    await runAll();
    expect(await statusOf(poison)).toEqual(["done"]);
  });
});

describe("delivering", () => {
  async function enqueue(integrationId: string, count = 1): Promise<string[]> {
    const ids = Array.from({ length: count }, () => Bun.randomUUIDv7());
    for (const id of ids)
      await insertDelivery(pool, acme.team, {
        ...{ id, integrationId, action: "notify", options: {}, eventId: null, due: "now" },
        notice: { ...toTestNotice(acme.team, "test", "http://assay.test", new Date()), pullRequest: "1" },
      });
    return ids;
  }
  const deliverAll = () => automating.deliver(createDeliverer(database, services, log));
  const services = { outbound: outboundToReceivers(), seal: createSeal(SECRET_KEY) };
  async function createSlack() {
    const receiver = createReceiver({ status: 200, body: "ok" });
    return { receiver, id: await integrate("slack", { url: receiver.url }) };
  }
  const later = () => pool`update delivery set due_at = now() - interval '1 second' where due_at is not null`;
  const testIt = (id: string) => call("POST", `/integrations/${id}/test`);

  test.each(["http:", "https:", "http://[", "https://%zz@:::99999", "http:\\x"])(
    "a secret that reads %s is a secret like any other",
    async (token) => {
      const receiver = createReceiver(({ headers }) => ({ status: 201, body: `got ${headers["authorization"]}` }));
      const id = await integrate("github", { baseUrl: receiver.url, repository: "acme/web", token });
      const { status, body } = await testIt(id);
      expect([status, body.status]).toEqual([200, "sent"]);
      expect(receiver.requests[0]!.headers["authorization"]).toBe(`Bearer ${token}`);
      if (token.length >= 8) expect(body.attempts[0].answer).not.toContain(token);
    },
  );

  test("a sender that throws makes an attempt like any other failure: with pauses, nine times, without internals", async () => {
    const receiver = createReceiver({ status: 200 });
    const poison = await integrate("slack", { url: receiver.url });
    const sound = await integrate("webhook", { url: receiver.url, secret: `whsec_${"a".repeat(32)}` });
    const sealed = createSeal(SECRET_KEY).seal(["integration", acme.team, poison], `{"url":"no address S3CRET"}`);
    await pool`update integration set sealed = ${sealed} where id = ${poison}`;
    await enqueue(poison);
    await enqueue(sound, 3);
    const waits: number[] = [];
    for (let round = 0; round < 12; round++) {
      await deliverAll();
      const [{ nextAttemptAt, attempts }] = await deliveriesOf(poison);
      if (nextAttemptAt) waits.push(Date.parse(nextAttemptAt) - Date.parse(attempts.at(-1).attemptedAt));
      await later();
    }
    const [delivery] = await deliveriesOf(poison);
    const error = "Internal error while sending. See the log of the server";
    expect(delivery).toMatchObject({ status: "failed", nextAttemptAt: null, attempts: Array(9).fill({ error }) });
    expect(waits).toHaveLength(8);
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect(await sentOf(sound)).toEqual(["sent", "sent", "sent"]);
    expect(logged("error", poison)).toHaveLength(9);
    expect(lines.join("\n")).not.toContain("S3CRET");
  });

  test.each([
    ["other bytes", (sealed: Buffer) => Buffer.concat([sealed.subarray(0, 20), Buffer.alloc(sealed.length - 20)])],
    ["too few bytes", (sealed: Buffer) => sealed.subarray(0, 8)],
    ["the key of another", (sealed: Buffer) => Buffer.concat([sealed.subarray(0, 1), Buffer.alloc(60, 3)])],
  ])("secrets that do not open (%s) are told honestly, end, and can be entered again", async (_, damage) => {
    const { receiver, id } = await createSlack();
    const [row] = await pool<{ sealed: Buffer }[]>`select sealed from integration where id = ${id}`;
    await pool`update integration set sealed = ${damage(row!.sealed)} where id = ${id}`;
    const said = "Cannot open the secrets of this integration: enter them again";
    const tried = await testIt(id);
    expect([tried.status, tried.body.status, tried.body.attempts[0].error]).toEqual([200, "failed", said]);
    await enqueue(id);
    for (let round = 0; round < 10; round++) {
      await deliverAll();
      await later();
    }
    const [delivery] = await deliveriesOf(id);
    expect([delivery.status, delivery.attempts.length]).toEqual(["failed", 9]);
    const patch = (config: object) => call("PATCH", `/integrations/${id}`, { config });
    const without = await patch({});
    expect([without.status, without.body.error.message]).toEqual([400, expect.stringContaining(`"config.url"`)]);
    expect((await patch({ url: receiver.url })).status).toBe(200);
    expect((await testIt(id)).body.status).toBe("sent");
  });

  test("one whose outcome cannot be noted keeps no other of its integration waiting, and is given up", async () => {
    const { receiver, id } = await createSlack();
    const [poison] = await enqueue(id, 4);
    await raise("update on delivery", `new.id = '${poison}' and new.status = 'sent'`);
    expect(await pauses(poison!, MAX_TRIES, deliverAll)).toEqual(GROWING);
    const found = await deliveriesOf(id);
    expect(found.map(({ status }) => status)).toEqual(["sent", "sent", "sent", "failed"]);
    const error = "Internal error: it may have arrived, but that could not be noted; the log of Assay tells why";
    expect(found.at(-1).attempts.at(-1).error).toBe(error);
    await deliverAll();
    expect(receiver.requests.filter(({ headers }) => headers["host"])).toHaveLength(3 + MAX_TRIES);
  });

  test("a slow database is no failure of the delivery, and delays no other", async () => {
    const { id } = await createSlack();
    const [slow] = await enqueue(id, 3);
    const again = await raise("update on delivery", `new.id = '${slow}' and new.status = 'sent'`, "57014");
    expect(await pauses(slow!, 3, deliverAll)).toEqual([1, 2, 4]);
    const [row] = await pool`select tries, attempts::text as attempts, status from delivery where id = ${slow!}`;
    expect({ ...row }).toEqual({ tries: 0, attempts: "[]", status: "pending" });
    expect((await sentOf(id)).filter((status) => status === "sent")).toHaveLength(2);
    await again();
    await deliverAll();
    expect(await sentOf(id)).toEqual(["sent", "sent", "sent"]);
  });

  test("an issue that cannot be linked to its bug report was opened all the same: there is no second one", async () => {
    const receiver = createReceiver({ status: 201, body: { html_url: "https://github.test/acme/web/issues/7" } });
    const integrationId = await integrate("github", { baseUrl: receiver.url, repository: "acme/web", token: "t" });
    await automate({ trigger: { event: "bug_report.opened" }, actions: [{ type: "create_issue", integrationId }] });
    await upload("f");
    await handleAll();
    await raise("update on bug_report", `new.external_url is not null and new.project_id = '${project.project}'`);
    await deliverAll();
    await pool`update retry_backoff set due_at = now() - interval '1 second'`;
    await deliverAll();
    expect([receiver.requests.length, (await deliveriesOf(integrationId))[0].status]).toEqual([1, "sent"]);
    expect(logged("error", integrationId)).toHaveLength(1);
  });

  test("an integration that nothing can be asked of is put off, and the others are sent to", async () => {
    const [{ id: poison }, { id: sound }] = [await createSlack(), await createSlack()];
    await enqueue(poison);
    await enqueue(sound, 2);
    await pool`update delivery set state_key = 'same' where integration_id = ${poison}`;
    const [late] = await enqueue(poison);
    await pool`update delivery set state_key = 'same' where id = ${late!}`;
    await raise("update on delivery", `new.integration_id = '${poison}' and new.status = 'failed'`);
    expect(await pauses(poison, 3, deliverAll)).toEqual([10, 20, 40]);
    expect(await sentOf(sound)).toEqual(["sent", "sent"]);
  });
});

test("an execution that cannot end is put off, for longer each time, and the others end", async () => {
  const ids: string[] = [];
  for (let index = 0; index < 3; index++) ids.push((await project.post("/executions", { tasks: ["unit"] })).id);
  await pool`update execution set expires_at = now() - interval '1 minute' where id = ${ids[0]!}`;
  await pool`update execution set expires_at = now() - interval '1 second' where id in ${pool(ids.slice(1))}`;
  await raise("update on execution", `new.id = '${ids[0]}' and new.completed_at is not null`);
  const loop = () => expireExecutions(database, always, log);
  expect(await pauses(ids[0]!, 10, loop)).toEqual([...GROWING, 2560, 3600]);
  const states = await pool<{ status: string }[]>`select status from execution where id in ${pool(ids)} order by id`;
  expect(states.map(({ status }) => status)).toEqual(["queued", "timed_out", "timed_out"]);
  expect(logged("error", ids[0]!)).toHaveLength(10);
});

test("a run that cannot be counted keeps no other run and no other project waiting, and whoever reads gets an answer", async () => {
  const others = [await addOther(), await addOther()];
  await upload("pp");
  const [poison] = await pool<{ id: string }[]>`select id from test_run where project_id = ${project.project}`;
  await upload("pp", project, "other");
  for (const other of others) await upload("pp", other);
  await raise("insert on case_health", `new.last_run_id = '${poison!.id}'`);
  const countRuns = async () => (await project.list("/test-cases")).map(({ runs }) => runs).sort();
  await countRuns();
  const loop = () => countAll(database, always, log);
  expect(await pauses(poison!.id, 9, loop)).toEqual([...GROWING, 2560]);
  const left = await pool`select id from test_run where not health_applied`;
  expect(left.map(({ id }) => id)).toEqual([poison!.id]);
  expect(await countRuns()).toEqual([0, 0, 1, 1]);
  expect(logged("error", poison!.id)).toHaveLength(9);
});

test("a project whose results cannot be deleted keeps no other's results alive", async () => {
  const others = [await addOther(), await addOther(), await addOther()];
  const projects = [project, ...others].toSorted((a, b) => (a.project < b.project ? -1 : 1));
  for (const one of projects) await upload("pp", one);
  const poison = projects[0]!.project;
  // The last one keeps its results for ever, so that no month is dropped as a whole.
  await pool`update project set retention_days = 0 where id = ${projects[3]!.project}`;
  await raise("delete on case_result", `old.project_id = '${poison}'`);
  const inAYear = new Date(Date.now() + 365 * 86_400_000);
  await retainNow(database, { results: 30 }, inAYear, log);
  const kept = await pool<{ id: string }[]>`
    select distinct project_id as id from case_result where project_id in ${pool(projects.map(({ project }) => project))}
    order by 1`;
  expect(kept.map(({ id }) => id)).toEqual([poison, projects[3]!.project]);
  expect(logged("error", poison)).toHaveLength(1);
});

test("a value that does not open keeps no other from being sealed anew", async () => {
  const { body: environment } = await call("POST", "/environments", { slug: "poison", name: "poison" });
  for (let index = 0; index < 5; index++)
    await call("PUT", `/environments/${environment.id}/variables/V${index}`, { value: `value ${index}` });
  const url = "https://hooks.slack.com/services/T/B/abcdefgh";
  const integrations = [await integrate("slack", { url }), await integrate("slack", { url })];
  await pool`
    update variable set sealed = substring(sealed for 20) || decode(repeat('00', 20), 'hex')
    where environment_id = ${environment.id} and name in ('V0', 'V3')`;
  await pool`update integration set sealed = substring(sealed for 7) where id = ${integrations[0]!}`;
  const seal = createSeal(new Uint8Array(32).fill(9), SECRET_KEY);
  expect(await reseal(database, seal, always, log)).toBe(4);
  expect(await reseal(database, seal, always, log)).toBe(0);
  for (const id of ["V0", "V3", integrations[0]!]) expect([id, logged("error", id).length]).toEqual([id, 1]);
  await pool`update retry_backoff set due_at = now() - interval '1 second'`;
  expect(await reseal(database, seal, always, log)).toBe(0);
  expect(logged("error", `"V3"`)).toHaveLength(2);
  await pool`delete from environment where id = ${environment.id}`;
});

test("what is old is forgotten, though one table of it cannot be", async () => {
  const id = await integrate("slack", { url: "https://hooks.slack.com/services/T/B/abcdefgh" });
  const notice = toTestNotice(acme.team, "test", "http://assay.test", new Date());
  await insertDelivery(pool, acme.team, {
    ...{ id: Bun.randomUUIDv7(), integrationId: id, action: "notify", options: {}, eventId: null, due: null, notice },
  });
  await pool`update delivery set created_at = now() - interval '31 days' where integration_id = ${id}`;
  await upload("p");
  await pool`update event set occurred_at = now() - interval '9 days', due_at = null`;
  await raise("delete on event", "true");
  await prune(pool, log);
  expect(await deliveriesOf(id)).toEqual([]);
  expect(logged("error", "Cannot forget what is old")).toHaveLength(1);
});

test("while the database is away nothing is put off: the round is over, and the next one does it all", async () => {
  const execution = await project.post("/executions", { tasks: ["unit"] });
  await pool`update execution set expires_at = now() - interval '1 second' where id = ${execution.id}`;
  const away = Object.assign(new Error("write CONNECTION_CLOSED"), { code: "CONNECTION_CLOSED" });
  const begin = async () => {
    throw away;
  };
  await expect(expireExecutions({ pool, begin }, always, log)).rejects.toBe(away);
  expect(await pool`select from retry_backoff`).toHaveLength(0);
  expect(await expireExecutions(database, always, log)).toBe(1);
});
