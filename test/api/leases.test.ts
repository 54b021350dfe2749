/** Tasks that runners take, keep, and end; with two servers on one database. */

import { describe, expect, test } from "bun:test";
import { type Asking, createAsking, createRequests } from "../asking.ts";
import { createHarness, createServer, junit, until } from "../harness.ts";
import { reclaimLeases } from "../../src/work/reclaim.ts";
import { selectHasNews } from "../../src/store/lease_offers.ts";
import { noteServing } from "../../src/store/instance.ts";
import { expireExecutions } from "../../src/work/expire.ts";
import { isFull } from "../depth.ts";

const harness = await createHarness({ ownDatabase: true });
const { ask, acme, rival, database, addProject } = harness;
const other = await createServer(database);

/** A project of its own: queues are a project's. */
const fresh = async () => createAsking(ask, await addProject(acme));

const post = async (
  { project, key }: Asking,
  path: string,
  body: unknown,
  server: Pick<typeof harness, "ask"> = harness,
) => await server.ask(`POST /projects/${project}${path}`, { key, body });

const start = async (place: Asking, more: object = {}) =>
  (await post(place, "/executions", { mode: "run", tasks: ["unit"], ...more })).body;
const sync = async (place: Asking, more: object = {}, server: Pick<typeof harness, "ask"> = harness) =>
  (await post(place, "/leases", { runner: "r1", ...more }, server)).body;
const take = async (place: Asking, more: object = {}) => {
  const { leases } = await sync(place, more);
  const held = leases.map(({ id }: { id: string }) => ({ id }));
  if (held.length > 0) await sync(place, { ...more, free: 0, held });
  return leases;
};
const report = (place: Asking, leaseId: string, letters: string, query = "") =>
  place.call("POST", `/test-runs?lease_id=${leaseId}${query}`, junit(letters));
const fail = (place: Asking, leaseId: string, body: object) => post(place, `/leases/${leaseId}/fail`, body);
const see = (place: Asking, id: string) => place.get(`/executions/${id}`);
const message = ({ body }: { body: any }): string => body.error.message;
const refusal = async (place: Asking, body: object) => message(await post(place, "/executions", body));
const slugsOf = (leases: { taskSlug: string }[]) => leases.map(({ taskSlug }) => taskSlug);
/** An execution in a project of its own, and the lease of the runner that has taken its first task. */
const taken = async (more: object = {}, runner: object = {}) => {
  const place = await fresh();
  const { id } = await start(place, more);
  const [lease] = await take(place, runner);
  return { place, id: id as string, lease };
};
const renew = (place: Asking, { id }: { id: string }, more: object = {}, server?: Pick<typeof harness, "ask">) =>
  sync(place, { free: 0, held: [{ id }], ...more }, server);
/** As if so much time had gone by for what is handed out. */
const age = (id: string, seconds: number) => database.pool`
  update lease set expires_at = expires_at - ${seconds}::int * interval '1 second',
    started_at = started_at - ${seconds}::int * interval '1 second' where id = ${id}`;
/** The runner of the lease has not been heard of for longer than a lease lasts. */
const lose = async (id: string) => {
  await age(id, 91);
  await reclaimLeases(database);
};

describe("an execution of mode run", () => {
  test("is taken, run, and reported: its lease says what it is, and ends with the report", async () => {
    const place = await fresh();
    const build = { branch: "main", commit: "abcdef1", key: "7" };
    const created = await start(place, build);
    expect(created).toMatchObject({ mode: "run", status: "queued", tasks: [{ status: "queued" }] });
    const { leases, nextSeconds } = await sync(place);
    expect(leases).toEqual([
      {
        ...{ id: expect.any(String), expiresAt: expect.any(String), timeoutSeconds: 1_800 },
        execution: { id: created.id, ...build, pullRequest: null, environment: null, baseUrl: null },
        ...{ taskSlug: "unit", attempt: 1, variables: {}, secretNames: [], executionNames: [] },
      },
    ]);
    expect(nextSeconds).toBe(20);
    const { id } = leases[0];
    const again = await sync(place, { free: 0, held: [{ id }] });
    expect(again.held).toEqual([{ id, expiresAt: expect.any(String), cancelled: false, reason: null, logOffset: 0 }]);
    const running = { status: "running", runner: "r1" };
    const startedAt = expect.any(String);
    expect(await see(place, created.id)).toMatchObject({ status: "running", startedAt, tasks: [running] });
    expect((await report(place, id, "pp")).status).toBe(201);
    expect(await see(place, created.id)).toMatchObject({ status: "passed", passed: 2, tasks: [{ status: "passed" }] });
    // The same bytes again are the same run; another report is not taken, and the lease is the runner's no more.
    expect((await report(place, id, "pp")).status).toBe(200);
    expect(message(await report(place, id, "pf"))).toBe("Cannot accept the report: this lease has reported already");
    expect((await sync(place, { free: 0, held: [{ id }] })).held[0].cancelled).toBe(true);
  });

  test("what says something else than its lease is refused", async () => {
    const { place, lease } = await taken({ tasks: [{ slug: "unit", shards: 2 }] });
    const others = ["task_slug=e2e", "tag=os:linux", "shard=2/2", "execution_key=x"];
    for (const query of [...others, `execution_id=${place.project}`])
      expect(message(await report(place, lease.id, "p", `&${query}`))).toBe(
        `Cannot read "${query.split("=")[0]}": the lease belongs to another one, omit it`,
      );
    const stranger = await report(await fresh(), lease.id, "p");
    expect(message(stranger)).toBe(`Cannot read "lease_id": there is no lease "${lease.id}" in this project`);
    expect((await report(place, lease.id, "p", "&task_slug=unit&shard=1/2")).status).toBe(201);
  });

  test("a report without a lease is not taken for a task that runners have or wait for", async () => {
    const place = await fresh();
    const { id } = await start(place);
    const upload = () => place.call("POST", `/test-runs?execution_id=${id}&task_slug=unit`, junit("p"));
    const refused = `Cannot accept the report: the task "unit" is run by runners, which report with their lease_id`;
    expect(message(await upload())).toBe(refused);
    const [lease] = await take(place);
    expect(message(await upload())).toBe(refused);
    await report(place, lease.id, "p");
    expect((await upload()).status).toBe(200);
  });

  test("where it comes from is not for its reports to say", async () => {
    const { place, id, lease } = await taken({ commit: "abcdef1" });
    await report(place, lease.id, "p", "&branch=--upload-pack=x&completed_at=2020-01-01T00:00:00Z");
    const { branch, commit, createdAt, completedAt } = await see(place, id);
    expect([branch, commit, completedAt >= createdAt]).toEqual([null, "abcdef1", true]);
    for (const name of ["branch", "commit", "pullRequest"])
      expect(await refusal(place, { mode: "run", tasks: ["a"], [name]: "--upload-pack=x" })).toBe(
        `Cannot read "${name}": expected no "-" at the beginning, got "--upload-pack=x"`,
      );
  });

  test("nor for those of other tasks, which runners do not run", async () => {
    const place = await fresh();
    const { id } = await start(place, { key: "7" });
    const query = "branch=--upload-pack=x&commit=--x&pull_request=-1&environment=e";
    for (const which of [`execution_id=${id}`, "execution_key=7"])
      await place.post(`/test-runs?${which}&task_slug=other&${query}`, junit(which));
    expect(await refusal(place, { mode: "run", key: "7", environment: "e", tasks: ["a"] })).toBe(
      `Cannot read "environment": the execution with this key has none`,
    );
    const [{ execution }] = await take(place);
    expect(execution).toMatchObject({ branch: null, commit: null, pullRequest: null, environment: null });
  });

  test("says of a task that waits for a runner which there is not", async () => {
    const place = await fresh();
    const tasks = [{ slug: "unit", labels: ["gpu"] }, "plain", "tpyo", { slug: "e2e", labels: ["arm", "gpu"] }];
    const { id } = await start(place, { tasks });
    const reasons = async () => {
      const found = (await see(place, id)).tasks as { slug: string; reason: string | null }[];
      return Object.fromEntries(found.map(({ slug, reason }) => [slug, reason]));
    };
    const nobody = "No runner has been online in the last 2 minutes";
    expect(await reasons()).toEqual({ unit: nobody, plain: nobody, tpyo: nobody, e2e: nobody });
    await sync(place, { free: 0, taskSlugs: ["unit", "plain", "e2e"] });
    expect(await reasons()).toEqual({
      unit: 'No runner that is online and has the task "unit" has the label gpu',
      plain: null,
      tpyo: 'No runner that is online has the task "tpyo"',
      e2e: 'No runner that is online and has the task "e2e" has the labels arm, gpu',
    });
    await database.pool`update lease set probe = true where project_id = ${place.project} and task_slug = 'plain'`;
    expect((await reasons())["plain"]).toStartWith("No runner that is online can run single test cases of the task");
    await database.pool`update runner set paused_at = now() where project_id = ${place.project}`;
    expect((await reasons())["plain"]).toBe("All runners that are online are paused");
  });

  test("does not say so of a task that its runner will ask for once its hands are free", async () => {
    const place = await fresh();
    await start(place);
    await take(place, { taskSlugs: ["unit"] });
    const { id } = await start(place);
    await sync(place, { taskSlugs: ["another"] });
    expect((await see(place, id)).tasks[0].reason).toBeNull();
  });

  test("needs tasks; variables, failFast and labels are for it alone", async () => {
    const place = await fresh();
    expect(await refusal(place, { mode: "run" })).toContain(`Cannot read "tasks"`);
    const given = { tasks: [{ slug: "a", labels: ["x"], timeoutSeconds: 3 }], variables: { A: "1" }, failFast: 1 };
    expect(await refusal(place, given)).toBe(
      `Cannot read "variables" and "failFast" and "tasks.labels" and "tasks.timeoutSeconds": only executions of mode "run" have this`,
    );
    const ofTask = (more: object) => refusal(place, { tasks: [{ slug: "a", ...more }] });
    expect(await ofTask({ nope: 1 })).toContain(`"tasks.0": expected no field "nope"`);
    expect(await ofTask({ shards: 0 })).toContain("expected an integer from 1 to 500");
    await start(place, { key: "k" });
    expect(await refusal(place, { key: "k" })).toContain(`of mode "run"`);
  });

  test("announces the shards of a task to reporters as well", async () => {
    const place = await fresh();
    const { body } = await post(place, "/executions", { tasks: [{ slug: "unit", shards: 3 }] });
    expect(body.tasks[0].missingShards).toEqual([1, 2, 3]);
  });
});

describe("the queue", () => {
  test("hands each task to one runner, whoever asks where", async () => {
    const place = await fresh();
    const tasks = Array.from({ length: 60 }, (_, index) => `t${index}`);
    await start(place, { tasks });
    const calls = Array.from({ length: 20 }, (_, index) =>
      sync(place, { runner: `r${index}`, free: 4 }, index % 2 === 0 ? harness : other),
    );
    const taken = slugsOf((await Promise.all(calls)).flatMap(({ leases }) => leases));
    taken.push(...slugsOf((await sync(place, { runner: "last", free: 64 })).leases));
    expect(taken.sort()).toEqual(tasks.sort());
  });

  test("is fair: an execution with few tasks does not wait behind one with many", async () => {
    const place = await fresh();
    const many = await start(place, { tasks: Array.from({ length: 10 }, (_, index) => `t${index}`) });
    const few = await start(place, { tasks: ["a", "b"] });
    const { leases } = await sync(place, { free: 4 });
    const of = (id: string) => leases.filter((lease: any) => lease.execution.id === id).length;
    expect([of(many.id), of(few.id)]).toEqual([2, 2]);
  });

  test("gives a task to a runner that has its labels and knows it", async () => {
    const place = await fresh();
    await start(place, { tasks: [{ slug: "gpu", labels: ["gpu", "linux"] }, "plain"] });
    const slugs = async (more: object) => slugsOf((await sync(place, { free: 9, ...more })).leases);
    expect(await slugs({ labels: ["gpu"], taskSlugs: ["gpu", "other"] })).toEqual([]);
    expect(await slugs({ labels: ["linux", "gpu", "x"], taskSlugs: ["gpu", "other"] })).toEqual(["gpu"]);
    expect(await slugs({})).toEqual(["plain"]);
  });

  test("a call that waits is answered as soon as there is work, on whichever server it comes", async () => {
    const place = await fresh();
    const waiting = sync(place, { waitSeconds: 50 }, other);
    await until(async () => (await database.pool`select from runner where project_id = ${place.project}`).length === 1);
    await start(place);
    expect((await waiting).leases).toHaveLength(1);
  });

  test.skipIf(!isFull)(
    "a call that waits brings what is printed sooner while somebody reads the log over the API",
    async () => {
      const { place, id, lease } = await taken();
      const looks = () => place.get(`/executions/${id}/test-runs/unit/log`);
      const waiting = renew(place, lease, { waitSeconds: 50 });
      await looks();
      expect((await waiting).nextSeconds).toBe(3);
      await looks();
      // It waits as long as somebody who looks may.
      expect((await renew(place, lease, { waitSeconds: 50 })).nextSeconds).toBe(3);
    },
  );

  test("a runner that says that it ends is not there any more, until it asks again", async () => {
    const place = await fresh();
    const { id } = await start(place, { tasks: ["later"] });
    const reason = async () => (await see(place, id)).tasks[0].reason;
    await sync(place, { taskSlugs: ["unit"], free: 1 });
    expect(await reason()).toContain('No runner that is online has the task "later"');
    await sync(place, { taskSlugs: ["unit"], free: 0, stopping: true });
    expect(await reason()).toContain("No runner has been online");
    await sync(place, { taskSlugs: ["unit"], free: 0 });
    expect(await reason()).toContain("No runner that is online has");
  });

  test("a request from before a runner ended finds nothing for it", async () => {
    const place = await fresh();
    await start(place, { tasks: ["unit"] });
    const asker = { runner: "runner 1", labels: [], taskSlugs: ["unit"], probeSlugs: [] };
    const hasNews = () =>
      selectHasNews(harness.database.pool, place.project, asker, { wantsWork: true, held: [], knownAsWatched: false });
    await sync(place, { taskSlugs: ["other"], runner: asker.runner, free: 1 });
    expect(await hasNews()).toBe(true);
    await sync(place, { taskSlugs: ["other"], runner: asker.runner, free: 0, stopping: true });
    expect(await hasNews()).toBe(false);
  });

  test("two runners that start with one name have two names and keys, and each asks by its own", async () => {
    const place = await fresh();
    const register = (more: object = {}) => post(place, "/runners", { runner: "build", unique: true, ...more });
    const both = await Promise.all([register(), register()]);
    expect(both.map(({ body }) => body.runner).sort()).toEqual(["build", "build (2)"]);
    for (const { body } of both)
      expect((await post({ ...place, key: body.key } as Asking, "/leases", { free: 1 })).status).toBe(200);
    const list = await place.list("/runners");
    expect(list.map(({ name }: { name: string }) => name)).toEqual(["build", "build (2)"]);
    expect(message(await post(place, "/leases", { free: 1 }))).toContain('Cannot read "runner"');
    // A runner that goes on with another key, and one whose process has ended before.
    expect((await register({ runner: "build (2)", unique: false })).body.runner).toBe("build (2)");
    await post({ ...place, key: both.find(({ body }) => body.runner === "build")!.body.key } as Asking, "/leases", {
      ...{ free: 0, stopping: true },
    });
    expect((await register()).body.runner).toBe("build");
  });

  test("calls that wait are a 401 as soon as their key is revoked, or the one that it was made with", async () => {
    const place = await fresh();
    const { body: own } = await post(place, "/runners", { runner: "r2" });
    const wait = async (key: string, runner: string, waitSeconds: number) =>
      (await post({ ...place, key }, "/leases", { runner, waitSeconds })).status;
    const waiting = [wait(place.key, "r1", 50), wait(own.key, "r2", 50)];
    const isThere = async () =>
      (await database.pool`select from runner where project_id = ${place.project} and free > 0`).length === 2;
    await until(isThere);
    // Without a notification, a call looks again after ten seconds, when this one has ended.
    const later = sync(await fresh(), { waitSeconds: 5 }).then(() => "later than a call that waits 5 seconds");
    await harness.regenerate({ ...acme, project: place.project });
    for (const one of waiting) expect(await Promise.race([one, later])).toBe(401);
  });
});

test("the commit that was tested becomes the execution's where it named none, and changes no other", async () => {
  const place = await fresh();
  for (const [given, commit] of [
    [{}, "abcdef1"],
    [{ commit: "1234567" }, "1234567"],
  ] as const) {
    const { id } = await start(place, given);
    const [lease] = await take(place);
    expect((await report(place, lease.id, "p", "&commit=abcdef1&branch=other")).status).toBe(201);
    expect(await see(place, id)).toMatchObject({ commit, branch: null });
  }
});

test("a runner that asks again before it has named what it got gets no more than it has places for", async () => {
  const place = await fresh();
  await start(place, { tasks: ["a", "b", "c", "d", "e"] });
  const first = await sync(place, { free: 2 });
  expect(first.leases).toHaveLength(2);
  const both = await Promise.all([sync(place, { free: 3 }), sync(place, { free: 3 }, other)]);
  expect(both.flatMap(({ leases }) => leases)).toHaveLength(1);
  const held = [...first.leases, ...both.flatMap(({ leases }) => leases)].map(({ id }) => ({ id }));
  expect((await sync(place, { free: 2, held })).leases).toHaveLength(2);
});

test("a runner with 1,200 tasks gets one of them, and none of others", async () => {
  const place = await fresh();
  await start(place, { tasks: ["task-1199", "other"] });
  const taskSlugs = Array.from({ length: 1_200 }, (_, at) => `task-${at}`);
  expect(slugsOf((await sync(place, { free: 5, taskSlugs })).leases)).toEqual(["task-1199"]);
});

describe("what is more urgent", () => {
  test("is handed out first, also when it comes later, and is as urgent when it runs again", async () => {
    const place = await fresh();
    const usual = await start(place, { tasks: ["a", "b"] });
    const urgent = await start(place, { tasks: ["a", "b"], priority: 5 });
    const nightly = await start(place, { tasks: ["a"], priority: -5 });
    const order = (await take(place, { free: 5 })).map(({ execution }: any) => execution.id);
    expect(order).toEqual([urgent.id, urgent.id, usual.id, usual.id, nightly.id]);
    await post(place, `/executions/${urgent.id}/cancel`, {});
    const again = (await post(place, `/executions/${urgent.id}/rerun`, {})).body;
    await start(place);
    expect((await take(place, { runner: "r2" }))[0].execution.id).toBe(again.id);
  });

  test("cancels what is older of its branch and pull request where it says so", async () => {
    const place = await fresh();
    const begin = (branch: string, more: object = {}) => start(place, { branch, commit: "abcdef1", ...more });
    const [running, waiting] = [await begin("a"), await begin("a", { key: "2" })];
    const [elsewhere, ofFork] = [await begin("b"), await begin("a", { pullRequest: "7" })];
    const [lease] = await take(place);
    expect(lease.execution.id).toBe(running.id);
    const newest = await begin("a", { key: "9", supersede: true });
    const reason = 'Superseded by the execution "9" of the branch';
    for (const { id } of [running, waiting])
      expect(await see(place, id)).toMatchObject({ status: "cancelled", tasks: [{ reason }] });
    expect((await sync(place, { held: [{ id: lease.id }] })).held[0]).toMatchObject({ cancelled: true, reason });
    for (const { id } of [elsewhere, ofFork, newest]) expect((await see(place, id)).status).toBe("queued");
    expect(await refusal(place, { mode: "run", tasks: ["unit"], supersede: true })).toBe(
      'Cannot supersede other executions: the execution has no "branch"',
    );
    for (const more of [{ supersede: true }, { priority: 1 }])
      expect(await refusal(place, { tasks: ["unit"], ...more })).toBe(
        `Cannot read "${Object.keys(more)[0]}": only executions of mode "run" have this`,
      );
  });
});

describe("tasks of one concurrency group", () => {
  const grouped = (slug: string) => ({ slug, concurrencyGroup: "staging" });

  test("run one after the other, over executions, runners and servers; others run beside them", async () => {
    const place = await fresh();
    await start(place, { tasks: [grouped("a"), grouped("b"), "free"] });
    await start(place, { tasks: [grouped("a"), { slug: "e2e", shards: 2, concurrencyGroup: "staging" }] });
    const calls = Array.from({ length: 6 }, (_, at) =>
      sync(place, { runner: `r${at}`, free: 3 }, at % 2 ? other : harness),
    );
    const taken = (await Promise.all(calls)).flatMap(({ leases }) => leases);
    expect(slugsOf(taken).sort()).toEqual(["a", "free"]);
    const [first] = await database.pool`select runner from lease where task_slug = 'a' and status = 'offered'`;
    let runner = first!["runner"];
    let id = taken.find(({ taskSlug }) => taskSlug === "a").id;
    const order = ["a"];
    for (let left = 4; left > 0; left--) {
      await sync(place, { runner, free: 0, held: [{ id }] });
      expect((await sync(place, { runner: "other", free: 3 })).leases).toEqual([]);
      // Whoever waits for work hears that the group is free.
      const waiting = sync(place, { runner: `next ${left}`, free: 3, waitSeconds: 50 }, other);
      await until(async () => (await database.pool`select from runner where name = ${`next ${left}`}`).length === 1);
      expect((await report(place, id, "p")).status).toBe(201);
      const { leases } = await waiting;
      expect(leases).toHaveLength(1);
      order.push(leases[0].taskSlug);
      [runner, id] = [`next ${left}`, leases[0].id];
    }
    expect(order.toSorted()).toEqual(["a", "a", "b", "e2e", "e2e"]);
  });

  test("are for executions of mode run, and keep their group when they run again", async () => {
    const place = await fresh();
    expect(await refusal(place, { tasks: [grouped("a")] })).toBe(
      'Cannot read "tasks.concurrencyGroup": only executions of mode "run" have this',
    );
    const { id } = await start(place, { tasks: [grouped("a")] });
    await post(place, `/executions/${id}/cancel`, {});
    await post(place, `/executions/${id}/rerun`, {});
    await start(place, { tasks: [grouped("b")] });
    expect((await sync(place, { free: 2 })).leases).toHaveLength(1);
  });
});

describe("what a runner cannot run", () => {
  const cannot = (place: Asking, leaseId: string, message: string) =>
    fail(place, leaseId, { message, exitCode: 1, infrastructure: true });
  const heldBy = async (place: Asking, runner: string) => (await take(place, { runner }))[0];
  const runnerOf = async (place: Asking, name: string) =>
    (await place.list("/runners")).find((runner) => runner.name === name);

  test("goes to another runner, in its old place in the queue, and blames nobody", async () => {
    const place = await fresh();
    const first = await start(place);
    const second = await start(place);
    const lease = await heldBy(place, "broken");
    expect(lease.execution.id).toBe(first.id);
    await sync(place, { runner: "sound", free: 0 });
    const { body } = await cannot(place, lease.id, "npm ci failed");
    expect(body).toMatchObject({ status: "queued", executionId: first.id });
    expect((await cannot(place, lease.id, "npm ci failed")).body).toEqual(body);
    // What it could not run is not offered to it again while there is another one, that which waits behind it is.
    const other = await heldBy(place, "broken");
    expect(other.execution.id).toBe(second.id);
    const again = await heldBy(place, "sound");
    expect([again.execution.id, again.attempt]).toEqual([first.id, 2]);
    await report(place, again.id, "p");
    const ended = { status: "passed", passed: 1, failed: 0, tasks: [{ attempt: 1 }] };
    expect(await see(place, first.id)).toMatchObject(ended);
  });

  test("three times in all leaves an incomplete task that says why, and no failed test", async () => {
    const place = await fresh();
    const { id } = await start(place);
    for (const runner of ["r1", "r2", "r3"]) await sync(place, { runner, free: 0 });
    for (const [index, runner] of ["r1", "r2", "r3"].entries()) {
      const lease = await heldBy(place, runner);
      expect(lease.attempt).toBe(index + 1);
      expect((await cannot(place, lease.id, "npm ci failed")).body.status).toBe(index < 2 ? "queued" : "incomplete");
    }
    const why = "3 runners could not run it; the last time: npm ci failed";
    expect(await see(place, id)).toMatchObject({
      ...{ status: "failed", failed: 0, reason: `Incomplete: unit: did not finish (${why})` },
      tasks: [{ status: "incomplete", reason: why }],
    });
    expect(await place.list("/test-cases")).toEqual([]);
    expect(await heldBy(place, "r1")).toBeUndefined();
  });

  test("is offered to the only runner that there is again", async () => {
    const place = await fresh();
    const { id } = await start(place);
    for (const attempt of [1, 2, 3]) {
      const lease = await heldBy(place, "only");
      expect(lease.attempt).toBe(attempt);
      await cannot(place, lease.id, "no disk");
    }
    const reason = "The runner only could not run it in three attempts; the last time: no disk";
    expect((await see(place, id)).tasks).toMatchObject([{ reason }]);
    expect((await runnerOf(place, "only")).paused).toBeNull();
  });

  test("goes on being lost once, however often it could not be run", async () => {
    const place = await fresh();
    const { id } = await start(place);
    await sync(place, { runner: "r2", free: 0 });
    await cannot(place, (await heldBy(place, "r1")).id, "npm ci failed");
    const lost = await heldBy(place, "r2");
    await lose(lost.id);
    const next = await heldBy(place, "r2");
    expect(next.attempt).toBe(3);
    await report(place, next.id, "p");
    expect((await see(place, id)).status).toBe("passed");
  });

  test("pauses a runner after three in a row, while another one is there; a new start of it ends the pause", async () => {
    const place = await fresh();
    await start(place, { tasks: ["a", "b", "c", "d"] });
    await sync(place, { runner: "sound", free: 0 });
    for (const why of ["one", "two", "three"]) {
      expect((await runnerOf(place, "broken"))?.paused ?? null).toBeNull();
      await cannot(place, (await heldBy(place, "broken")).id, why);
    }
    const reason = "It could not run 3 tasks in a row; the last time: three";
    expect((await runnerOf(place, "broken")).paused).toEqual({ reason, until: expect.any(String) });
    expect(await heldBy(place, "broken")).toBeUndefined();
    expect((await runnerOf(place, "broken")).version).toBeNull();
    await post(place, "/runners", { runner: "broken", version: "1.4.0" });
    expect(await runnerOf(place, "broken")).toMatchObject({ paused: null, version: "1.4.0" });
    // One that has registered has not asked for tasks yet: nobody waits for it.
    await post(place, "/runners", { runner: "young" });
    expect(Date.now() - Date.parse((await runnerOf(place, "young")).seenAt)).toBeGreaterThan(3_000_000);
    expect((await heldBy(place, "broken")).taskSlug).toBe("d");
  });

  test("counts against a runner only what others can run, and what it can run ends the row", async () => {
    const place = await fresh();
    await sync(place, { runner: "sound", free: 0 });
    const failOn = async (...runners: string[]) => {
      const { id } = await start(place);
      for (const runner of runners) await cannot(place, (await heldBy(place, runner)).id, "npm ci failed");
      return id;
    };
    // Three commits that nobody can build.
    for (const _ of [1, 2, 3]) await failOn("r1", "sound", "r1");
    expect((await runnerOf(place, "r1")).paused).toBeNull();
    await failOn("r1");
    await failOn("r1");
    await take(place, { runner: "sound", free: 2 });
    await start(place);
    await report(place, (await heldBy(place, "r1")).id, "f");
    await failOn("r1");
    expect((await runnerOf(place, "r1")).paused).toBeNull();
  });

  test("is refused of a lease that is over, and nothing when it was to be ended anyway", async () => {
    const place = await fresh();
    const { id } = await start(place);
    const lease = await heldBy(place, "r1");
    await post(place, `/executions/${id}/cancel`, {});
    expect((await cannot(place, lease.id, "x")).body.status).toBe("cancelled");
    const other = await start(place);
    const reported = await heldBy(place, "r1");
    await report(place, reported.id, "p");
    const ended = 'Cannot accept the failure: the lease has ended, it is "reported"';
    expect(message(await cannot(place, reported.id, "x"))).toBe(ended);
    expect((await see(place, other.id)).status).toBe("passed");
  });
});

describe("a runner that somebody pauses", () => {
  test("goes on with what it has, gets nothing new on any server, and then something again", async () => {
    const { place, lease } = await taken({ tasks: ["a", "b"] }, { free: 1 });
    const pause = (paused: boolean, more: object = {}) =>
      post(place, "/runners/pause", { runner: "r1", paused, ...more });
    const reason = "New disk";
    expect((await pause(true, { reason })).body).toEqual({ runner: "r1", paused: true, reason });
    expect((await place.list("/runners"))[0].paused).toEqual({ reason, until: null });
    for (const server of [harness, other])
      expect(await sync(place, { held: [{ id: lease.id }] }, server)).toMatchObject({
        ...{ leases: [], held: [{ id: lease.id, cancelled: false }] },
      });
    await post(place, "/runners", { runner: "r1" });
    expect((await sync(place)).leases).toEqual([]);
    expect((await report(place, lease.id, "p")).status).toBe(201);
    const waiting = sync(place, { waitSeconds: 50 }, other);
    await pause(false);
    expect((await waiting).leases).toHaveLength(1);
    expect((await post(place, "/runners/pause", { runner: "nobody", paused: true })).status).toBe(404);
  });
});

describe("what is lost", () => {
  test("a lease that its runner never named goes to another one, and costs no attempt", async () => {
    const place = await fresh();
    await start(place);
    const [first] = (await sync(place)).leases;
    await age(first.id, 16);
    await reclaimLeases(database);
    const [second] = await take(place, { runner: "r2" });
    expect([second.id === first.id, second.attempt]).toEqual([false, 1]);
    // Whoever comes late with it is told so, and its report is not taken.
    expect((await renew(place, first)).held[0]).toMatchObject({ cancelled: true });
    const ended = `Cannot accept the report: the lease has ended, it is "returned"`;
    expect(message(await report(place, first.id, "p"))).toBe(ended);
    expect((await report(place, second.id, "p")).status).toBe(201);
  });

  test("a lease lost while it ran is handed out once more; then its task is timed out", async () => {
    const place = await fresh();
    const { id } = await start(place);
    let lost = "";
    for (const attempt of [1, 2]) {
      const [lease] = await take(place, { runner: `r${attempt}` });
      expect(lease.attempt).toBe(attempt);
      await reclaimLeases(database);
      await lose(lease.id);
      lost = lease.id;
    }
    expect((await sync(place)).leases).toEqual([]);
    const reason = "The runner r2 was lost, like the one before it";
    expect(await see(place, id)).toMatchObject({
      ...{ status: "timed_out", reason: `Timed out: unit: did not report (${reason})` },
      tasks: [{ status: "timed_out", reason }],
    });
    // The report of the second runner is taken all the same.
    expect((await report(place, lost, "pp")).status).toBe(201);
    expect(await see(place, id)).toMatchObject({ passed: 2 });
  });

  test("the log and the reason of what was lost stay readable", async () => {
    const { place, id, lease: lost } = await taken();
    await sync(place, { free: 0, held: [{ id: lost.id, log: { offset: 0, text: "began\n" } }] });
    await lose(lost.id);
    const next = (await take(place, { runner: "r2" }))[0];
    await sync(place, { runner: "r2", free: 0, held: [{ id: next.id, log: { offset: 0, text: "again\n" } }] });
    const path = `/executions/${id}/test-runs/unit`;
    expect(await place.walk(`${path}/leases?limit=1`)).toMatchObject([
      { id: lost.id, shard: null, attempt: 1, runner: "r1", status: "lost", reason: "The runner r1 was lost" },
      { id: next.id, attempt: 2, runner: "r2", status: "running", endedAt: null },
    ]);
    const log = (query: string) => place.get(`${path}/log${query}`);
    expect(await log("")).toMatchObject({ leaseId: next.id, text: "again\n", ended: false });
    expect(await log(`?lease_id=${lost.id}`)).toMatchObject({
      ...{ leaseId: lost.id, text: "began\n\n[assay] The runner r1 was lost\n", ended: true },
    });
    const elsewhere = await start(place);
    const foreign = await place.call("GET", `/executions/${elsewhere.id}/test-runs/unit/log?lease_id=${lost.id}`);
    expect(foreign.status).toBe(404);
  });

  test("the report of a lease that was lost is taken until another runner has reported, which is then not wanted", async () => {
    const { place, id, lease: first } = await taken();
    await lose(first.id);
    const [second] = await take(place, { runner: "r2" });
    expect((await report(place, first.id, "pp")).status).toBe(201);
    const { held } = await sync(place, { runner: "r2", free: 0, held: [{ id: second.id }] });
    expect(held).toMatchObject([{ id: second.id, cancelled: true }]);
    expect((await report(place, second.id, "fp")).status).toBe(400);
    expect(await see(place, id)).toMatchObject({ status: "passed", passed: 2, failed: 0 });
    // The other way round the one that came first is kept as well.
    const again = await start(place);
    const [lost] = await take(place, { runner: "r1" });
    await lose(lost.id);
    const [found] = await take(place, { runner: "r2" });
    expect((await report(place, found.id, "pp")).status).toBe(201);
    const late = "Cannot accept the report: the lease was lost, and another runner has reported in its place";
    expect(message(await report(place, lost.id, "fp"))).toBe(late);
    expect(await see(place, again.id)).toMatchObject({ status: "passed", passed: 2 });
  });

  test("a lease lasts from the end of the call that names it", async () => {
    const { place, lease } = await taken();
    const waiting = renew(place, lease, { waitSeconds: 20 });
    await until(async () => {
      const [row] = await database.pool`
        select from lease where id = ${lease.id} and expires_at > now() + interval '105 seconds'`;
      return row !== undefined;
    });
    await place.post("/leases", { runner: "r", free: 0, waitSeconds: 0 });
    await sync(place, { free: 0 });
    await waiting;
  });

  test("the time of outages does not count, and what has been waited before and between them does", async () => {
    const { place, lease } = await taken();
    /** As if the servers had been there for so long without the runner, and then had been away. */
    const wait = async (seconds: number, away: number) => {
      await age(lease.id, seconds + away);
      await database.pool`update instance set serving_at = now() - ${away}::int * interval '1 second'`;
      await noteServing(database.pool);
      await reclaimLeases(database);
    };
    const status = async () => (await database.pool`select status from lease where id = ${lease.id}`)[0]!["status"];
    try {
      for (const away of [300, 60, 600]) {
        await wait(25, away);
        expect(await status()).toBe("running");
      }
      await wait(25, 60);
      expect(await status()).toBe("lost");
      expect((await take(place, { runner: "r2" }))[0]).toMatchObject({ attempt: 2 });
    } finally {
      await database.pool`update instance set serving_at = null, serving_since = null`;
    }
  });

  test("a call renews what it names: it is not lost", async () => {
    const { place, lease } = await taken();
    await age(lease.id, 60);
    await renew(place, lease);
    await age(lease.id, 60);
    await reclaimLeases(database);
    expect((await report(place, lease.id, "p")).status).toBe(201);
  });

  test("what is given back before it began is handed out again at once, and costs no attempt", async () => {
    const place = await fresh();
    await start(place);
    const [first] = (await sync(place)).leases;
    await sync(place, { free: 0, returned: [first.id] });
    const [second] = (await sync(place, { runner: "r2" })).leases;
    expect([second.taskSlug, second.attempt]).toEqual(["unit", 1]);
  });

  test("a lease that takes too long is to be ended, and counts as a failure", async () => {
    const { place, id, lease } = await taken({ tasks: [{ slug: "unit", timeoutSeconds: 10 }] });
    await database.pool`update lease set started_at = now() - interval '71 seconds' where id = ${lease.id}`;
    await reclaimLeases(database);
    const { held } = await renew(place, lease);
    expect(held[0]).toMatchObject({ cancelled: true, reason: "It exceeded its time limit of 10 s" });
    const failed = await fail(place, lease.id, { message: "Timed out after 10 s", exitCode: 137 });
    expect(failed.body.status).toBe("failed");
    const reason = "Failed: unit: test runner exited with code 137 (Timed out after 10 s)";
    expect(await see(place, id)).toMatchObject({ status: "failed", failed: 1, reason });
  });

  test("a runner that goes on for minutes after its time is not waited for", async () => {
    const { place, id, lease } = await taken({ tasks: [{ slug: "unit", timeoutSeconds: 10 }] });
    await database.pool`update lease set started_at = now() - interval '1 hour' where id = ${lease.id}`;
    await reclaimLeases(database);
    expect((await see(place, id)).status).toBe("timed_out");
    expect((await renew(place, lease)).held[0].cancelled).toBe(true);
  });

  test("an execution that no runner comes for ends in its time; one that waits for a busy runner does not", async () => {
    const [lonely, busy] = await Promise.all([fresh(), fresh()]);
    const tasks = [{ slug: "x", labels: ["linux", "gpu"] }];
    const [a, b] = [await start(lonely, { tasks }), await start(busy, { tasks: ["x"] })];
    await sync(lonely, { taskSlugs: ["another"] });
    await sync(busy, { free: 0 });
    await database.pool`update execution set expires_at = now() - interval '1 second' where id in (${a.id}, ${b.id})`;
    await expireExecutions(database);
    const reason = "No runner took the task in time: none with the labels gpu, linux was there";
    expect(await see(lonely, a.id)).toMatchObject({ status: "timed_out", tasks: [{ reason }] });
    expect((await see(busy, b.id)).status).toBe("queued");
    expect((await sync(lonely)).leases).toEqual([]);
  });
});

describe("what fails without a report", () => {
  test("is one failed case with its exit code, its message and the end of its log", async () => {
    const { place, id, lease } = await taken();
    const body = { exitCode: 3, message: "No report matched", log: { offset: 0, text: "Segmentation fault\n" } };
    const failed = { id: lease.id, executionId: id, taskSlug: "unit", status: "failed" };
    expect((await fail(place, lease.id, body)).body).toEqual(failed);
    expect((await fail(place, lease.id, body)).status).toBe(200);
    expect(await place.list(`/executions/${id}/test-runs/unit/cases`)).toMatchObject([
      { name: "runner exited 3", status: "failed", message: "No report matched", output: "Segmentation fault\n" },
    ]);
    expect(await see(place, id)).toMatchObject({ status: "failed", failed: 1, tasks: [{ attempt: 1 }] });
  });
});

describe("cancellation", () => {
  test("reaches the runner at once, and nothing fails by it", async () => {
    const { place, id, lease } = await taken({ tasks: ["a", "b"] });
    const waiting = renew(place, lease, { waitSeconds: 50 }, other);
    await post(place, `/executions/${id}/cancel`, {});
    expect((await waiting).held[0]).toMatchObject({ cancelled: true, reason: "The execution was cancelled" });
    // Told once, the next call waits again, as long as the runner takes to end it.
    let answered = false;
    const next = renew(place, lease, { waitSeconds: 50 }).then(() => (answered = true));
    for (let count = 0; count < 3; count++) await see(place, id);
    expect(answered).toBe(false);
    await renew(place, lease);
    await next;
    expect((await fail(place, lease.id, { message: "Cancelled" })).body.status).toBe("cancelled");
    expect((await sync(place, { free: 9 })).leases).toEqual([]);
    const ended = { status: "cancelled", failed: 0, tasks: [{ status: "cancelled" }, { status: "cancelled" }] };
    expect(await see(place, id)).toMatchObject(ended);
    expect(await place.list("/test-cases")).toEqual([]);
  });

  test("a runner that is lost while it should end leaves nothing waiting", async () => {
    const { place, id, lease } = await taken();
    await post(place, `/executions/${id}/cancel`, {});
    await lose(lease.id);
    expect((await sync(place, { runner: "r2" })).leases).toEqual([]);
  });

  test("failFast stops what has not begun, lets what runs be ended, and the execution fails", async () => {
    const place = await fresh();
    const { id } = await start(place, { tasks: ["a", "b", "c"], failFast: 2 });
    const [a, b] = await take(place, { free: 2 });
    expect((await see(place, id)).status).toBe("running");
    await report(place, a.id, "pff");
    const { held, leases } = await sync(place, { free: 1, held: [{ id: b.id }] });
    expect(leases).toEqual([]);
    const reason = "Stopped early: 2 failures, and failFast is 2";
    expect(held[0]).toMatchObject({ cancelled: true, reason });
    await fail(place, b.id, { message: "Ended" });
    expect(await see(place, id)).toMatchObject({
      ...{ status: "failed", reason: expect.stringContaining(`(${reason})`) },
      tasks: [{ status: "failed" }, { status: "cancelled" }, { status: "cancelled", reason }],
    });
  });
});

describe("shards", () => {
  test("are leases of one task, and their results one run", async () => {
    const place = await fresh();
    const { id } = await start(place, { tasks: [{ slug: "unit", shards: 3 }] });
    const leases = await take(place, { free: 5 });
    expect(leases.map(({ shard }: any) => shard)).toEqual([1, 2, 3].map((index) => ({ index, total: 3 })));
    for (const [index, lease] of leases.entries())
      await place.post(`/test-runs?lease_id=${lease.id}`, junit("p", `suite ${index}`));
    const ended = await see(place, id);
    expect([ended.status, ended.passed, ended.tasks.length]).toEqual(["passed", 3, 1]);
  });

  test("of which one is lost for good leave an incomplete run", async () => {
    const { place, id, lease: first } = await taken({ tasks: [{ slug: "unit", shards: 2 }] });
    await report(place, first.id, "p");
    for (const runner of ["x", "y"]) {
      const [lease] = await take(place, { runner });
      await lose(lease.id);
    }
    const tasks = [{ status: "incomplete", missingShards: [2] }];
    expect(await see(place, id)).toMatchObject({ status: "failed", tasks });
  });
});

describe("variables", () => {
  test("are those of the environment and, above them, of the execution; a rerun has the same", async () => {
    const place = await fresh();
    const environments = createRequests(ask, `/teams/${acme.team}/environments`, acme.teamKey);
    const environment = await environments.post("", { slug: "lease-stage", baseUrl: "https://stage.example.org" });
    await environments.call("PUT", `/${environment.id}/variables/TOKEN`, { value: "hush-hush" });
    await environments.call("PUT", `/${environment.id}/variables/MODE`, { value: "slow", secret: false });
    const { id } = await start(place, { environment: "lease-stage", variables: { MODE: "fast", OWN: "1" } });
    const [lease] = await take(place);
    const variables = { MODE: "fast", OWN: "1", TOKEN: "hush-hush" };
    expect([lease.variables, lease.secretNames]).toEqual([variables, ["TOKEN"]]);
    expect(lease.executionNames).toEqual(["MODE", "OWN"]);
    expect(lease.execution).toMatchObject({ environment: "lease-stage", baseUrl: "https://stage.example.org" });
    await report(place, lease.id, "f");
    await post(place, `/executions/${id}/rerun`, {});
    expect((await take(place))[0].variables).toEqual(variables);
    const [row] = await database.pool`select variables from execution where id = ${id}`;
    expect(Buffer.from(row!["variables"]).toString("latin1")).not.toContain("fast");
  });

  test("of an environment that there is not are not left out silently", async () => {
    const place = await fresh();
    expect(await refusal(place, { mode: "run", tasks: ["a"], environment: "nowhere" })).toBe(
      `Cannot read "environment": the team has no environment "nowhere", whose variables the tasks would get`,
    );
    expect(await place.list("/executions")).toEqual([]);
  });

  test("are not kept for a request that is repeated", async () => {
    const place = await fresh();
    await start(place, { variables: { OWN: "do-not-keep-this" } });
    const headers = { "idempotency-key": "once" };
    const once = () => place.call("POST", "/leases", { runner: "r" }, headers);
    expect((await once()).body.leases).toHaveLength(1);
    expect((await once()).body.leases).toEqual([]);
    const kept = await database.pool`select body from idempotency where body like '%do-not-keep-this%'`;
    expect(kept).toHaveLength(0);
  });
});

describe("POST …/rerun", () => {
  test("of what failed hands out the test cases that failed; of all, the shards as before", async () => {
    const place = await fresh();
    const tasks = [{ slug: "unit", shards: 2, labels: ["l"] }, "fine"];
    const { id } = await start(place, { tasks, timeoutMinutes: 240 });
    for (const lease of await take(place, { free: 5, labels: ["l"] }))
      await report(place, lease.id, lease.taskSlug === "fine" ? "p" : "pfp");
    await post(place, `/executions/${id}/rerun`, { failedOnly: true });
    const failed = await take(place, { free: 5, labels: ["l"] });
    expect(failed).toMatchObject([{ taskSlug: "unit", only: [{ suite: "unit", name: "case 1", file: null }] }]);
    expect(failed[0].shard).toBeUndefined();
    await post(place, `/executions/${id}/rerun`, {});
    // What was asked for and did not run has not passed, and what was not asked for says nothing.
    const body = junit("ps").replace("case 0", "another").replace("case 1", "case 0");
    await place.post(`/test-runs?lease_id=${failed[0].id}`, body);
    const counts = { passed: 1, failed: 1, skipped: 0 };
    expect(await see(place, failed[0].execution.id)).toMatchObject({ status: "failed", ...counts });
    const all = await take(place, { free: 5, labels: ["l"] });
    const minutes = await database.pool`
      select distinct timeout_minutes as minutes from execution where project_id = ${place.project}`;
    expect(minutes).toEqual([{ minutes: 240 }] as never);
    expect(all.map(({ taskSlug, shard, only }: any) => [taskSlug, shard?.index, only])).toEqual([
      ["unit", 1, undefined],
      ["unit", 2, undefined],
      ["fine", undefined, undefined],
    ]);
  });

  const rerun = async (place: Asking, id: string) => {
    await post(place, `/executions/${id}/rerun`, { failedOnly: true });
    const leases = await take(place, { free: 5 });
    return leases.map(({ shard, only }: any) => [shard?.index, only]);
  };

  test("of what failed hands out all of a task of which a shard never came, or crashed", async () => {
    for (const ends of [{ exitCode: 3, message: "It crashed" }, undefined]) {
      const place = await fresh();
      const { id } = await start(place, { tasks: [{ slug: "unit", shards: 2 }] });
      const [first, second] = await take(place, { free: 2 });
      await report(place, first.id, "pf");
      if (ends) await fail(place, second.id, ends);
      else await post(place, `/executions/${id}/complete`, {});
      expect((await see(place, id)).tasks[0].status).toBe(ends ? "failed" : "incomplete");
      expect(await rerun(place, id)).toEqual([
        [1, undefined],
        [2, undefined],
      ]);
    }
  });

  test("of what failed hands out all of a task whose report broke off", async () => {
    const { place, id, lease } = await taken();
    const body = junit("pfpp").slice(0, -60);
    await place.post(`/test-runs?lease_id=${lease.id}`, body);
    expect(await rerun(place, id)).toEqual([[undefined, undefined]]);
  });
});

describe("DELETE of an execution", () => {
  test("tells the runner that is at it, at once", async () => {
    const { place, id, lease } = await taken();
    const waiting = renew(place, lease, { waitSeconds: 55 });
    await until(async () => {
      const [runner] = await database.pool`select free from runner where project_id = ${place.project}`;
      return runner?.["free"] === 0;
    });
    expect((await place.call("DELETE", `/executions/${id}`)).status).toBe(204);
    const later = sync(await fresh(), { waitSeconds: 8 }).then(() => "later than a call that waits 8 seconds");
    expect(await Promise.race([waiting, later])).toMatchObject({ held: [{ id: lease.id, cancelled: true }] });
  });

  test("locks leases in the order in which runners renew them", async () => {
    const place = await fresh();
    const { id } = await start(place, { tasks: ["a", "b"] });
    const [a, b] = (await sync(place, { free: 2 })).leases;
    // What was handed out again has a later id than what came after it.
    const [again] = (await sync(place, { free: 1, held: [{ id: b.id }], returned: [a.id] })).leases;
    const deleted = await database.begin(async (sql) => {
      await sql`select from lease where id = ${b.id} for update`;
      const deleting = place.call("DELETE", `/executions/${id}`);
      await until(async () => {
        const waits = await database.pool`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
        return waits.length === 1;
      });
      await sql`select from lease where id = ${again.id} for update nowait`;
      return { deleting };
    });
    expect((await deleted.deleting).status).toBe(204);
  });
});

describe("GET …/log", () => {
  const log = (place: Asking, id: string, query = "") => place.get(`/executions/${id}/test-runs/unit/log${query}`);

  test("grows by what its runner appends, whatever comes twice or is left out", async () => {
    const place = await fresh();
    const { id } = await start(place);
    expect(await log(place, id)).toEqual({ leaseId: null, offset: 0, text: "", nextOffset: 0, ended: false });
    const [lease] = await take(place);
    const say = async (offset: number, text: string) =>
      (await sync(place, { free: 0, held: [{ id: lease.id, log: { offset, text } }] })).held[0].logOffset;
    expect(await say(0, "größe\n")).toBe(8);
    expect(await say(0, "größe\nzwei\n")).toBe(13);
    expect(await say(0, "größe\n")).toBe(13);
    expect(await say(20, "")).toBe(20);
    expect(await say(20, "nach einer Lücke\n")).toBe(38);
    const whole = { leaseId: lease.id, offset: 0, text: "größe\nzwei\nnach einer Lücke\n", nextOffset: 38 };
    expect(await log(place, id)).toEqual({ ...whole, ended: false });
    expect(await log(place, id, "?offset=8")).toMatchObject({ offset: 8, text: "zwei\nnach einer Lücke\n" });
    expect(await log(place, id, "?offset=38")).toMatchObject({ offset: 38, text: "", nextOffset: 38 });
    await report(place, lease.id, "p");
    expect((await log(place, id)).ended).toBe(true);
    const plain = await place.call("GET", `/executions/${id}/test-runs/unit/log`, undefined, { accept: "text/plain" });
    expect(plain.text).toBe(whole.text);
  });

  test("keeps the last mebibyte", async () => {
    const { place, id, lease } = await taken();
    const text = "x".repeat(262_143) + "\n";
    for (let part = 0; part < 6; part++)
      await sync(place, { free: 0, held: [{ id: lease.id, log: { offset: part * 262_144, text } }] });
    expect(await log(place, id)).toMatchObject({ offset: 2 * 262_144, nextOffset: 6 * 262_144 });
  });
});

describe("GET …/runners", () => {
  test("says who asks for tasks, and what they hold", async () => {
    const { place, id, lease } = await taken({ tasks: [{ slug: "unit", shards: 2 }] }, { taskSlugs: ["unit"] });
    const { id: leaseId, shard } = lease;
    expect(shard).toEqual({ index: 1, total: 2 });
    const held = { id: leaseId, executionId: id, taskSlug: "unit", shard, startedAt: expect.any(String) };
    expect(await place.list("/runners")).toEqual([
      {
        ...{ name: "r1", labels: [], taskSlugs: ["unit"], free: 0, paused: null, version: null },
        ...{ seenAt: expect.any(String), online: true, leases: [held] },
      },
    ]);
    await sync(place, { free: 0, stopping: true });
    expect(await place.list("/runners")).toMatchObject([{ name: "r1", online: false }]);
    expect(await createAsking(ask, rival).list("/runners")).toEqual([]);
  });
});
