import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

const DAY = 86_400_000;
/** `2026-01-31`, so many days before today in UTC. */
const dayAgo = (days: number) => new Date(Date.now() - days * DAY).toISOString().slice(0, 10);

type Run = { day: string; clock?: string; ms?: number; failed?: number; flaky?: boolean };

async function upload({ day, clock = "12:00:00Z", ms = 100, failed = 0, flaky = false }: Run, query = "task_slug=t") {
  const cases = [
    { name: "a", status: "passed", flaky },
    ...Array.from({ length: failed }, (_, at) => ({ name: `f${at}`, status: "failed", message: "no" })),
  ];
  const path = `/test-runs?${query}&completed_at=${day}T${clock}`;
  const { status, body } = await own.call("POST", path, { passed: 1, failed, skipped: 0, durationMs: ms, cases });
  expect(status).toBe(201);
  return body;
}

const trends = async (query = "") => await own.get(`/trends${query}`);
/** The figures of a day or of a task; by default everything passed. */
const figures = (runs: number, p50Ms: number | null, p95Ms: number | null, more: object = {}) => ({
  ...{ runs, passed: runs, failed: 0, passRate: runs > 0 ? 1 : null, p50Ms, p95Ms, flaky: 0, forgiven: 0 },
  ...{ testFailures: 0, infrastructureFailures: 0 },
  ...more,
});
const NOTHING = figures(0, null, null);

describe("GET /projects/:projectId/trends", () => {
  test("tells runs, pass rate, duration and flakiness of every day, all together and by task", async () => {
    const day = dayAgo(2);
    for (let ms = 100; ms <= 2_000; ms += 100)
      await upload({ day, ms, failed: ms <= 500 ? 1 : 0, flaky: ms > 1_700 }, `task_slug=unit&execution_key=${ms}`);
    await upload({ day, ms: 9_000 }, "task_slug=e2e&execution_key=100");
    const failures = { failed: 5, testFailures: 5, flaky: 3 };
    const unit = figures(20, 1_000, 1_900, { ...failures, passed: 15, passRate: 0.75 });
    const e2e = figures(1, 9_000, 9_000);
    const all = figures(21, 1_100, 2_000, { ...failures, executions: 20, passed: 16, passRate: 0.7619 });
    const [before, after] = [dayAgo(3), [dayAgo(1), dayAgo(0)]];
    const around = (figures: object, nothing: object) => [
      { day: before, ...nothing },
      { day, ...figures },
      ...after.map((day) => ({ day, ...nothing })),
    ];
    expect(await trends("?days=4")).toEqual({
      days: around(all, { executions: 0, ...NOTHING }),
      tasks: [
        { taskSlug: "unit", days: around(unit, NOTHING) },
        { taskSlug: "e2e", days: around(e2e, NOTHING) },
      ],
    });
    expect(await trends("?days=4&task_slug=e2e")).toEqual({
      days: around({ executions: 1, ...e2e }, { executions: 0, ...NOTHING }),
      tasks: [{ taskSlug: "e2e", days: around(e2e, NOTHING) }],
    });
  });

  test("are 30 days without a word, and all of them are there without a run", async () => {
    const { days, tasks } = await trends();
    expect(tasks).toEqual([]);
    expect(days).toEqual(Array.from({ length: 30 }, (_, at) => ({ day: dayAgo(29 - at), executions: 0, ...NOTHING })));
    expect((await trends("?days=1")).days).toEqual([{ day: dayAgo(0), executions: 0, ...NOTHING }]);
    expect((await trends("?days=90")).days).toHaveLength(90);
  });

  test("have the days of UTC, wherever a run was completed, and none from outside", async () => {
    await upload({ day: dayAgo(3), clock: "23:59:59.999Z" });
    await upload({ day: dayAgo(2), clock: "00:00:00Z" });
    await upload({ day: dayAgo(1), clock: "00:30:00%2B02:00" });
    await upload({ day: dayAgo(2), clock: "23:30:00-03:00" });
    const { days } = await trends("?days=3");
    expect(days.map(({ runs }: { runs: number }) => runs)).toEqual([2, 1, 0]);
    expect((await trends("?days=4")).days[0]).toMatchObject({ day: dayAgo(3), runs: 1 });
  });

  test("are of all branches, or of the one that is asked for", async () => {
    const day = dayAgo(1);
    await upload({ day }, "task_slug=t&branch=main");
    await upload({ day, failed: 1 }, "task_slug=t&branch=x");
    await upload({ day }, "task_slug=t");
    const yesterday = async (query: string) => (await trends(`?days=2${query}`)).days[0];
    expect(await yesterday("")).toMatchObject({ executions: 3, runs: 3, passed: 2 });
    expect(await yesterday("&branch=main")).toMatchObject({ executions: 1, runs: 1, passRate: 1 });
    expect(await yesterday("&branch=x")).toMatchObject({ executions: 1, runs: 1, passRate: 0 });
    expect(await yesterday("&branch=y")).toMatchObject({ executions: 0, runs: 0, passRate: null });
  });

  test("leave out what is not complete, and other projects", async () => {
    const other = await addProject(acme);
    await createAsking(ask, other).uploadReport({ passed: 1, failed: 0, skipped: 0 });
    await own.post("/test-runs?shard=1/2", { passed: 1, failed: 0, skipped: 0 });
    expect(await trends("?days=1")).toMatchObject({ days: [{ runs: 0 }], tasks: [] });
  });

  test("mark tasks of sample data, and leave it out of the days", async () => {
    await upload({ day: dayAgo(1) });
    await own.post("/onboarding/sample-data");
    const { days, tasks } = await trends("?days=7");
    expect(days.map(({ runs }: { runs: number }) => runs)).toEqual([0, 0, 0, 0, 0, 1, 0]);
    const told = tasks.map(({ taskSlug, sample }: { taskSlug: string; sample?: true }) => [taskSlug, sample]);
    expect(told).toEqual([
      ["sample: checkout", true],
      ["sample: search", true],
      ["t", undefined],
    ]);
  });

  test("list the 50 tasks with the most runs, and count them all", async () => {
    const day = dayAgo(1);
    for (let task = 0; task < 52; task++)
      for (let run = 0; run <= Number(task === 51); run++)
        await upload({ day }, `task_slug=${String(task).padStart(2, "0")}`);
    const { days, tasks } = await trends("?days=2");
    expect(days[0].runs).toBe(53);
    const slugs = tasks.map(({ taskSlug }: { taskSlug: string }) => taskSlug);
    expect([slugs.length, slugs[0], slugs[1], slugs.at(-1)]).toEqual([50, "51", "00", "48"]);
  });

  test("name what is wrong with the request", async () => {
    for (const days of ["0", "91", "x", ""]) {
      const { status, body } = await own.call("GET", `/trends?days=${days}&branch=&task_slug=`);
      expect(status).toBe(400);
      for (const name of ["days", "branch", "task_slug"]) expect(body.error.message).toContain(`"${name}"`);
    }
  });
});
