/** What is deleted is dead from the commit on: uploads end before it or fail, and no loop does anything for it. */

import { describe, expect, test } from "bun:test";
import { createSeal } from "../../src/secrets/seal.ts";
import { COMMAND_LINE } from "../../src/schema/audit.ts";
import { createLog } from "../../src/log.ts";
import { deleteProject, deleteTeam } from "../../src/operations/projects/deletion.ts";
import { createFirstProject } from "../../src/operations/projects/first_project.ts";
import { createProject } from "../../src/operations/projects/projects.ts";
import { generateTeamKey } from "../../src/operations/people/keys.ts";
import { insertAccount } from "../../src/store/accounts.ts";
import { selectGauges } from "../../src/store/gauges.ts";
import { insertTeam } from "../../src/store/projects.ts";
import { handleEvents, runSchedules } from "../../src/work/automate.ts";
import { countAll } from "../../src/work/count.ts";
import { createDeliverer } from "../../src/work/deliver.ts";
import { expireExecutions } from "../../src/work/expire.ts";
import { reclaimLeases } from "../../src/work/reclaim.ts";
import { createDatabase, createHarness, junit, SECRET_KEY, until } from "../harness.ts";
import { createReceiver, outboundToReceivers } from "../receiver.ts";

const harness = await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"] });
const { ask, acme, addProject, database } = harness;
const { pool, begin } = database;
const log = createLog("error");

type Own = { project: string; key: string };

const remove = ({ project }: Own) =>
  begin((sql) => deleteProject(sql, { id: project, confirm: "other" }, COMMAND_LINE));
const upload = ({ project, key }: Own, query = "", letters = "pf") =>
  ask(`POST /projects/${project}/test-runs?task_slug=unit&branch=main${query}`, { key, body: junit(letters) });
const isBlocked = async (pid: number) =>
  (await pool`select from pg_stat_activity where ${pid} = any(pg_blocking_pids(pid))`).length > 0;

/** Holds the transactions that insert executions of a project, until it is called. */
async function holdExecutions({ project }: Own): Promise<{ pid: number; release: () => Promise<void> }> {
  const [held, over] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()];
  const holding = begin(async (sql) => {
    const [{ pid }] = await sql<[{ pid: number }]>`select pg_backend_pid() as pid`;
    await sql`select from execution where project_id = ${project} for update`;
    held.resolve(pid);
    await over.promise;
  });
  return {
    pid: await held.promise,
    async release() {
      over.resolve();
      await holding;
    },
  };
}

test("an upload that is committing is waited for; one that comes then is a 401 and stores nothing", async () => {
  const own = await addProject(acme);
  await upload(own, "&execution_key=1");
  const hold = await holdExecutions(own);
  const first = upload(own, "&execution_key=1", "pp");
  await until(() => isBlocked(hold.pid));
  let isDeleted = false;
  const deletion = remove(own).then(() => (isDeleted = true));
  await until(async () => (await pool`select from pg_locks where locktype = 'advisory' and not granted`).length > 0);
  const second = upload(own, "&execution_key=1", "pppp");
  expect(isDeleted).toBe(false);
  await hold.release();
  await deletion;
  expect([(await first).status, (await second).status]).toEqual([201, 401]);
  const [{ attempts }] = await pool<[{ attempts: number }]>`
    select count(*)::int as attempts from attempt where project_id = ${own.project}`;
  expect(attempts).toBe(2);
});

test("two deletions at once are one", async () => {
  const own = await addProject(acme);
  const results = await Promise.allSettled([remove(own), remove(own)]);
  expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  expect(
    await pool`select from audit_entry where action = 'project.deleted' and details ->> 'projectId' = ${own.project}`,
  ).toHaveLength(1);
});

test("a team gets no project and no key after its deletion, and none is left out of it", async () => {
  const team = await begin((sql) => insertTeam(sql, "Doomed"));
  const inserted = Promise.withResolvers<string>();
  const [deletion] = await Promise.all([
    inserted.promise.then(() => begin((sql) => deleteTeam(sql, { id: team, confirm: "Doomed" }, COMMAND_LINE))),
    begin(async (sql) => {
      const project = await createProject(sql, team, "in time");
      inserted.resolve(project);
      const [{ pid }] = await sql<[{ pid: number }]>`select pg_backend_pid() as pid`;
      await until(() => isBlocked(pid));
    }),
  ]);
  expect(deletion).toMatchObject({ name: "Doomed", projects: 1 });
  expect(await pool`select from project where id = ${await inserted.promise}`).toHaveLength(0);
  await expect(begin((sql) => createProject(sql, team, "too late"))).rejects.toMatchObject({ kind: "absent" });
  expect(await begin((sql) => generateTeamKey(sql, team, "too late"))).toBeUndefined();
});

test("a server that starts after the last team was deleted makes no team for nobody", async () => {
  const { database: empty } = await createDatabase();
  await empty.begin((sql) => insertAccount(sql, { email: "ada@acme.example", name: "Ada", passwordHash: null }));
  expect(await createFirstProject(empty)).toBeUndefined();
});

describe("the loops of a server", () => {
  const receiver = createReceiver({ status: 200 });
  const send = async () => {
    const deliverer = createDeliverer(database, { outbound: outboundToReceivers(), seal: createSeal(SECRET_KEY) }, log);
    await deliverer.start();
    await deliverer.ended();
  };

  /** A team whose automation sends every execution that is completed to the receiver. */
  async function createCompany() {
    const team = await begin((sql) => insertTeam(sql, "Doomed"));
    const teamKey = (await begin((sql) => generateTeamKey(sql, team, null)))!.key;
    const call = async (path: string, body: unknown) =>
      (await ask(`POST /teams/${team}${path}`, { key: teamKey, body })).body;
    const integration = await call("/integrations", { kind: "webhook", config: { url: receiver.url } });
    const actions = [{ type: "notify", integrationId: integration.id }];
    await call("/automations", { name: "all", trigger: { event: "execution.completed" }, actions });
    const schedule = await call("/automations", { name: "daily", trigger: { schedule: "0 8 * * *" }, actions });
    await pool`update automation set next_run_at = null where id = ${schedule.id}`;
    return { team, schedule, own: await addProject({ ...acme, team }), other: await addProject({ ...acme, team }) };
  }

  test("send nothing of a deleted project, whether it waited as an event or as a delivery", async () => {
    const { own, other } = await createCompany();
    await upload(own);
    expect(await handleEvents(database, "http://assay.test", log)).toBe(1);
    await upload(own);
    await upload(other);
    await remove(own);
    expect(await handleEvents(database, "http://assay.test", log)).toBe(1);
    await send();
    expect(receiver.requests.map(({ body }) => body.data.project.id)).toEqual([other.project]);
    expect(await pool`select from delivery where project_id = ${own.project} and status = 'pending'`).toHaveLength(1);
  });

  test("do nothing for a deleted team: events, schedules and deliveries", async () => {
    const { team, own, schedule } = await createCompany();
    const before = receiver.requests.length;
    await upload(own);
    expect(await handleEvents(database, "http://assay.test", log)).toBe(1);
    expect(await pool`select from delivery where team_id = ${team} and status = 'pending'`).toHaveLength(1);
    await pool`update automation set next_run_at = now() where id = ${schedule.id}`;
    await begin((sql) => deleteTeam(sql, { id: team, confirm: "Doomed" }, COMMAND_LINE));
    expect(await runSchedules(database, "http://assay.test")).toBe(0);
    await send();
    expect(receiver.requests).toHaveLength(before);
  });

  test("end no execution or lease of a deleted project, count none of its results, and report none of it", async () => {
    const [own, other] = [await addProject(acme), await addProject(acme)];
    await countAll(database);
    const gauges = async () => {
      const { leases, queue, runners, uncounted, events } = await selectGauges(pool);
      return { leases, queue, runners, uncounted, events };
    };
    const before = await gauges();
    for (const { project, key } of [own, other]) {
      await upload({ project, key });
      await ask(`POST /projects/${project}/executions`, { key, body: { mode: "run", tasks: ["a", "b"] } });
      await ask(`POST /projects/${project}/leases`, { key, body: { runner: "r", free: 1 } });
      await ask(`POST /projects/${project}/executions`, { key, body: { tasks: ["unit"] } });
    }
    await pool`
      update execution set expires_at = now() - interval '1 minute' where expires_at is not null and mode = 'report'`;
    await pool`update lease set expires_at = now() - interval '1 minute' where status = 'offered'`;
    await pool`update instance set serving_at = now(), serving_since = now() - interval '1 day'`;
    await remove(own);
    expect(await gauges()).toEqual({
      ...before,
      leases: { ...before.leases, queued: 1, offered: 1 },
      queue: [expect.objectContaining({ waiting: 1 })],
      runners: before.runners + 1,
      uncounted: before.uncounted + 1,
    });
    expect(await expireExecutions(database)).toBe(1);
    expect(await reclaimLeases(database)).toBe(1);
    await countAll(database);
    const [left] = await pool`
      select (select count(*)::int from test_run where project_id = ${own.project} and not health_applied) as uncounted,
        (select count(*)::int from lease where project_id = ${own.project} and status = 'offered') as offered,
        (select count(*)::int from execution where project_id = ${own.project} and expires_at < now()) as expired`;
    expect(left).toEqual({ uncounted: 1, offered: 1, expired: 1 });
  });
});
