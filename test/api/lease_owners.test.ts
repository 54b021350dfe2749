/** Runners of a project, and runners of the same names in another one, cannot use or change leases that they do not hold. */

import { describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createHarness, junit, until } from "../harness.ts";
import { reclaimLeases } from "../../src/work/reclaim.ts";
import { createLog } from "../../src/log.ts";
import { advanceSearches } from "../../src/work/culprits.ts";

const { ask, acme, rival, database, addProject } = await createHarness();

type Place = Asking;
const fresh = async () => createAsking(ask, await addProject(acme));
const post = (place: Place, path: string, body: unknown) => place.call("POST", path, body);
const get = (place: Place, path: string) => place.get(path);
const start = async (place: Place, more: object = {}) =>
  (await post(place, "/executions", { mode: "run", tasks: ["unit"], ...more })).body;
const sync = async (place: Place, runner: string, more: object = {}) =>
  (await post(place, "/leases", { runner, ...more })).body;
const renew = async (place: Place, runner: string, id: string, log?: object) =>
  (await sync(place, runner, { free: 0, held: [{ id, ...(log && { log }) }] })).held[0];

/** A lease that the runner has named, so that it runs. */
async function take(place: Place, runner: string): Promise<{ id: string }> {
  const [lease] = (await sync(place, runner)).leases;
  await renew(place, runner, lease.id);
  return lease;
}

const report = (place: Place, leaseId: string, letters: string) =>
  place.call("POST", `/test-runs?lease_id=${leaseId}`, junit(letters));
const messageOf = ({ body }: { body: any }): string => body.error?.message;

/** The lease is over its time, and its runner is given up. */
async function lose({ id }: { id: string }): Promise<void> {
  await database.pool`update lease set expires_at = now() - interval '1 second' where id = ${id}`;
  await reclaimLeases(database);
}

/** The key that only this runner has. */
const ownKey = async (place: Place, runner: string): Promise<Place> => {
  const { key } = await place.post("/runners", { runner });
  return createAsking(ask, { project: place.project, key });
};

describe("a lease that another runner names as its own", () => {
  test("is not that runner's: it is neither renewed nor gets a log by it", async () => {
    const place = await fresh();
    const { id: executionId } = await start(place);
    const lease = await take(place, "r1");
    const expiresAt = async () => (await database.pool`select expires_at from lease where id = ${lease.id}`)[0];
    const before = await expiresAt();
    expect(await renew(place, "r2", lease.id, { offset: 0, text: "not mine\n" })).toEqual({
      ...{ id: lease.id, expiresAt: null, cancelled: true, logOffset: 0 },
      reason: "This runner no longer holds the task",
    });
    expect(await expiresAt()).toEqual(before);
    const { text } = await get(place, `/executions/${executionId}/test-runs/unit/log`);
    expect(text).toBe("");
    expect(await renew(place, "r1", lease.id)).toMatchObject({ cancelled: false, logOffset: 0 });
  });

  test("is not returned to the queue by it", async () => {
    const place = await fresh();
    await start(place);
    const lease = await take(place, "r1");
    expect((await sync(place, "r2", { free: 1, returned: [lease.id] })).leases).toEqual([]);
    expect(await renew(place, "r1", lease.id)).toMatchObject({ cancelled: false });
  });

  test("does not end with the commits that it sends for a search", async () => {
    const place = await fresh();
    const commit = (at: number) => at.toString(16).padStart(40, "c");
    const build = async (at: number, letters: string) => {
      const path = `/test-runs?task_slug=unit&branch=main&commit=${commit(at)}&complete=true`;
      return (await post(place, path, junit(letters))).body;
    };
    await build(0, "p");
    const { bugReports } = await build(3, "f");
    const able = { taskSlugs: ["unit"], probeSlugs: ["unit"] };
    await sync(place, "r1", able);
    const culprit = `/bug-reports/${bugReports[0].id}/culprit`;
    expect((await post(place, culprit, {})).status).toBe(201);
    const log = createLog("debug", () => {}, false);
    await advanceSearches(database, undefined, undefined, log);
    const [listing] = (await sync(place, "r1", able)).leases;
    expect(listing.commits).toEqual({ good: commit(0), bad: commit(3) });
    const commits = [0, 1, 2, 3].map((at) => ({
      ...{ hash: commit(at), author: "Ada", date: "2026-01-31T10:00:00Z", subject: `change ${at}`, files: [] },
    }));
    const send = (place: Place) => post(place, `/leases/${listing.id}/commits`, { commits });
    expect((await send(await ownKey(place, "r2"))).status).toBe(404);
    expect(await get(place, culprit)).toMatchObject({ status: "running", commitCount: null });
    expect((await send(await ownKey(place, "r1"))).status).toBe(200);
    expect(await get(place, culprit)).toMatchObject({ commitCount: 3 });
  });
});

test("attachments of one test run are not taken with a lease of another", async () => {
  const place = await fresh();
  const [mine, theirs] = [await start(place), await start(place)];
  const leases = [await take(place, "r1"), await take(place, "r1")];
  const path = (id: string) => `/executions/${id}/test-runs/unit/attachments`;
  const send = (leaseId: string) => place.call("PUT", `${path(mine.id)}?lease_id=${leaseId}&path=a.log`, "a");
  const refused = await send(leases[1]!.id);
  const message = 'Cannot read "lease_id": it is not a lease of this test run';
  expect([refused.status, messageOf(refused)]).toEqual([400, message]);
  expect((await send(leases[0]!.id)).status).toBe(201);
  expect((await get(place, path(mine.id))).data).toHaveLength(1);
  expect((await get(place, path(theirs.id))).data).toEqual([]);
});

test("a call that waits takes no task for a runner that has called again since", async () => {
  const place = await fresh();
  const waiting = sync(place, "r1", { waitSeconds: 50 });
  await until(async () => (await database.pool`select from runner where project_id = ${place.project}`).length === 1);
  await sync(place, "r1", { free: 0 });
  const { id } = await start(place);
  expect((await waiting).leases).toEqual([]);
  expect((await sync(place, "r1")).leases).toMatchObject([{ execution: { id } }]);
});

describe("the late report of a lease that was lost", () => {
  test("is refused when the runner that got the task has said that it failed", async () => {
    const place = await fresh();
    const { id } = await start(place);
    const lost = await take(place, "r1");
    await lose(lost);
    const successor = await take(place, "r2");
    const failed = await post(place, `/leases/${successor.id}/fail`, { exitCode: 1, message: "It crashed" });
    expect(failed.status).toBe(200);
    const late = await report(place, lost.id, "pp");
    const message = "Cannot accept the report: the lease was lost, and another runner has reported in its place";
    expect([late.status, messageOf(late)]).toEqual([400, message]);
    expect(await get(place, `/executions/${id}`)).toMatchObject({ status: "failed", passed: 0, failed: 1 });
  });

  test("ends the newest lease of the task, not one that was returned meanwhile", async () => {
    const place = await fresh();
    const { id } = await start(place);
    const lost = await take(place, "r1");
    await lose(lost);
    const [returned] = (await sync(place, "r2")).leases;
    await sync(place, "r2", { free: 0, returned: [returned.id] });
    const running = await take(place, "r3");
    expect((await report(place, lost.id, "pp")).status).toBe(201);
    expect((await get(place, `/executions/${id}/test-runs/unit/leases`)).data).toMatchObject([
      { id: lost.id, runner: "r1", status: "reported" },
      { id: returned.id, runner: "r2", status: "returned" },
      { id: running.id, runner: "r3", status: "cancelled", reason: "The runner r1 has reported later" },
    ]);
  });
});

test("what one runner was offered takes no place of another one", async () => {
  const place = await fresh();
  await start(place, { tasks: ["a", "b"] });
  for (const runner of ["r1", "r2"]) expect((await sync(place, runner)).leases).toHaveLength(1);
});

describe("shards of one task", () => {
  /** Two leases of a task, that of the first shard first. */
  async function takeShards(place: Place) {
    const { id } = await start(place, { tasks: [{ slug: "unit", shards: 2 }] });
    const leases = [await take(place, "r1"), await take(place, "r2")] as const;
    return { leases, path: `/executions/${id}/test-runs/unit` };
  }

  test("are lost one by one: a late report ends the successor of its own shard", async () => {
    const place = await fresh();
    const { leases: lost, path } = await takeShards(place);
    for (const lease of lost) await lose(lease);
    const successors = [await take(place, "r3"), await take(place, "r4")] as const;
    expect((await report(place, lost[0].id, "pp")).status).toBe(201);
    const { data } = await get(place, `${path}/leases`);
    expect(data.map(({ id, status }: Record<string, string>) => [id, status])).toEqual([
      [lost[0].id, "reported"],
      [lost[1].id, "lost"],
      [successors[0].id, "cancelled"],
      [successors[1].id, "running"],
    ]);
  });

  test("have logs that end with their own lease", async () => {
    const place = await fresh();
    const { leases, path } = await takeShards(place);
    const hasEnded = async (shard: number) => (await get(place, `${path}/log?shard=${shard}`)).ended;
    expect((await report(place, leases[0].id, "pp")).status).toBe(201);
    expect([await hasEnded(1), await hasEnded(2)]).toEqual([true, false]);
  });
});

describe("runners of one name in two projects", () => {
  const runnerOf = async (place: Place, name: string) =>
    (await get(place, "/runners")).data.find((runner: { name: string }) => runner.name === name);
  let tasks = 0;
  const takeNew = async (place: Place): Promise<{ id: string }> => {
    const slug = `task ${++tasks}`;
    await start(place, { tasks: [slug] });
    return (await sync(place, "r1", { taskSlugs: [slug] })).leases[0];
  };
  const failOn = async (place: Place, times: number) => {
    for (let count = 0; count < times; count++) {
      const { id } = await takeNew(place);
      const failure = { message: "No disk", infrastructure: true };
      expect((await post(place, `/leases/${id}/fail`, failure)).status).toBe(200);
    }
  };

  test("are paused, and begin anew, each by its own tasks", async () => {
    const [one, two] = [await fresh(), await fresh()];
    // Another runner that could run the tasks: else nobody is paused.
    for (const place of [one, two]) await sync(place, "sound", { free: 0 });
    await failOn(two, 2);
    const { id } = await takeNew(one);
    expect((await report(one, id, "p")).status).toBe(201);
    await failOn(two, 1);
    expect((await runnerOf(two, "r1")).paused).toMatchObject({ reason: expect.stringContaining("3 tasks in a row") });
    await failOn(one, 2);
    expect((await runnerOf(one, "r1")).paused).toBeNull();
  });

  test("are there, or not, each by what it holds itself", async () => {
    const [one, two] = [await fresh(), await fresh()];
    await start(two);
    await take(two, "sound");
    await sync(one, "sound", { free: 0 });
    await database.pool`
      update runner set seen_at = now() - interval '3 minutes' where project_id = ${one.project} and name = 'sound'`;
    await failOn(one, 3);
    // The only one that is left is not paused.
    expect((await runnerOf(one, "r1")).paused).toBeNull();
  });
});

test("an older part of a log that comes again does not set the log back", async () => {
  const place = await fresh();
  const { id } = await start(place);
  const lease = await take(place, "r1");
  const say = async (offset: number, text: string) => (await renew(place, "r1", lease.id, { offset, text })).logOffset;
  expect(await say(0, "one\ntwo\n")).toBe(8);
  await say(0, "one\n");
  // The offset that the next call answers is the stored one: from there the runner sends on.
  expect((await renew(place, "r1", lease.id)).logOffset).toBe(8);
  await say(8, "three\n");
  const log = await get(place, `/executions/${id}/test-runs/unit/log`);
  expect(log).toMatchObject({ text: "one\ntwo\nthree\n", nextOffset: 14 });
});

test("a lease has the address and the variables of its own team's environment, not of another's of the same slug", async () => {
  const place = await fresh();
  const add = async ({ team, teamKey }: typeof acme, name: string) => {
    const key = teamKey;
    const path = `/teams/${team}/environments`;
    const body = { slug: "shared-slug", baseUrl: `https://${name}.example` };
    const { body: environment } = await ask(`POST ${path}`, { key, body });
    await ask(`PUT ${path}/${environment.id}/variables/TOKEN`, { key, body: { value: name } });
  };
  // On either side of the own one, so that no order of the rows hides a foreign one.
  await add(rival, "rival");
  await add(acme, "acme");
  const { id } = await start(place, { environment: "shared-slug" });
  const { leases } = await sync(place, "r1", { free: 5 });
  expect(leases).toHaveLength(1);
  expect(leases[0]).toMatchObject({
    execution: { id, environment: "shared-slug", baseUrl: "https://acme.example" },
    variables: { TOKEN: "acme" },
  });
});
