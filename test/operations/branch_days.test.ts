/** Figures by day are what the executions are, whatever has been kept, and whatever happens to them. */

import { beforeAll, expect, test } from "bun:test";
import { getBranchDays } from "../../src/operations/health/branch_days.ts";
import { type DayFigures, keepDays, lockDays } from "../../src/store/branch_days.ts";
import {
  deleteExecution,
  type ExecutionChange,
  updateExecution,
  updateRepeatedStatus,
} from "../../src/store/executions.ts";
import { noWrites, writeReports } from "../../src/store/report_writes.ts";
import { markSample } from "../../src/store/onboarding.ts";
import { isFull } from "../depth.ts";
import { createHarness, until } from "../harness.ts";

const { database, acme, rival } = await createHarness();
const { pool, begin } = database;
const project = acme.project;

const DAY_MS = 86_400_000;
const DAYS = 6;
// The last of these days is over, whenever this runs; they are looked at on the day after.
const last = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - 1.5 * DAY_MS);
const dayAfter = new Date(last.getTime() + DAY_MS);
const MAIN = { branch: "main", isDefault: true, sample: false };

const figures = (branch = MAIN, at = dayAfter) =>
  getBranchDays(pool, begin, project, branch, { now: at, count: DAYS + 1 });

/** All executions looked at anew, in the words of the page: ended on the branch, or on none that is named. */
const counted = async ({ branch, sample }: typeof MAIN, at = dayAfter) => {
  const from = new Date(Math.floor(at.getTime() / DAY_MS) * DAY_MS - DAYS * DAY_MS).toISOString();
  const to = new Date(Math.floor(at.getTime() / DAY_MS) * DAY_MS + DAY_MS).toISOString();
  return await pool<DayFigures[]>`
    select to_char((e.completed_at at time zone 'UTC')::date, 'YYYY-MM-DD') as day, count(*)::int as executions,
      (count(*) filter (where coalesce(e.repeated_status, e.status) = 'passed'))::int as passed,
      (count(*) filter (where r.is_flaky))::int as flaky, min(e.completed_at) as "firstEndedAt", max(e.completed_at) as "lastEndedAt",
      (array_agg(coalesce(e.repeated_status, e.status) = 'passed' order by e.completed_at desc, e.id desc))[1] as "lastPassed",
      coalesce(sum(1000 * extract(epoch from (
        select min(n.completed_at) from execution n
        where n.project_id = ${project} and (n.branch = ${branch} or n.branch is null) and n.sample = ${sample}
          and n.status in ('passed', 'failed', 'timed_out') and (n.completed_at, n.id) > (e.completed_at, e.id)
          and (n.completed_at at time zone 'UTC')::date = (e.completed_at at time zone 'UTC')::date) - e.completed_at))
        filter (where coalesce(e.repeated_status, e.status) <> 'passed'), 0)::bigint as "redMs",
      (percentile_disc(0.5) within group (order by r.ms))::bigint as "p50Ms",
      (percentile_disc(0.95) within group (order by r.ms))::bigint as "p95Ms"
    from execution e left join lateral (
      select greatest(max(duration_ms), (extract(epoch from max(tests_started_at + make_interval(secs => duration_ms / 1000.0))
        - min(tests_started_at)) * 1000)::bigint) as ms, bool_or(flaky > 0) as is_flaky
      from test_run r where r.project_id = e.project_id and r.execution_id = e.id) r on true
    where e.project_id = ${project} and (e.branch = ${branch} or e.branch is null) and e.sample = ${sample}
      and e.status in ('passed', 'failed', 'timed_out')
      and e.completed_at >= ${from}::text::timestamptz and e.completed_at < ${to}::text::timestamptz
    group by 1 order by 1`;
};

/** Of those that are over for sure. */
const kept = async (): Promise<string[]> => {
  const rows = await pool<{ day: string }[]>`
    select distinct to_char(day, 'YYYY-MM-DD') as day from branch_day 
    where project_id = ${project} and day <= ${last.toISOString().slice(0, 10)}::text::date order by day`;
  return rows.map(({ day }) => day);
};

let seed = 20_260_131;
const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
const oneOf = <T>(values: readonly T[]): T => values[random(values.length)]!;
const time = () => new Date(last.getTime() - random(DAYS * 24) * 3_600_000).toISOString();

type Inserted = { completedAt?: string | null; branch?: string | null; status?: "passed" | "failed" };

async function insert({ completedAt = time(), branch, status }: Inserted = {}): Promise<string> {
  const id = Bun.randomUUIDv7();
  const ended = status ?? oneOf(["passed", "failed", "timed_out", "cancelled"] as const);
  const execution = {
    trigger: "upload" as const,
    ...{ id, key: null, commit: null, pullRequest: null, buildUrl: null, environment: null },
    ...{ baseBranch: null, queueRef: null, baselineId: null, untrusted: false, timeoutMinutes: 30 },
    status: completedAt === null ? ("running" as const) : ended,
    branch: branch === undefined ? oneOf(["main", "main", null, "other"]) : branch,
    createdAt: completedAt ?? time(),
    startedAt: completedAt ?? time(),
    runCompletedAt: null,
  };
  await begin(async (sql) => {
    await writeReports(sql, project, { ...noWrites(), newExecutions: [execution] });
    for (let run = random(3); run > 0; run--)
      await sql`
        insert into test_run (project_id, id, execution_id, task_slug, status, attempt, duration_ms, flaky, tests_started_at, completed_at)
        values (${project}, ${Bun.randomUUIDv7()}, ${id}, ${`task ${run}`}, 'passed', 1, ${random(100_000)}, ${random(3) === 0 ? 1 : 0},
          ${random(3) === 0 ? null : time()}, ${completedAt ?? time()})`;
  });
  return id;
}

/** As an upload changes it: the run, and its execution with it. */
async function change(id: string, more: Partial<ExecutionChange>): Promise<void> {
  const [execution] = await pool<{ status: ExecutionChange["status"]; endedAt: string | null }[]>`
    select status, completed_at as "endedAt" from execution where id = ${id}`;
  const { status, endedAt } = execution!;
  const changed = { status, arrived: false, now: new Date(endedAt ?? time()), ...more, id, endedAt };
  await begin(async (sql) => {
    await sql`update test_run set duration_ms = ${random(100_000)} where execution_id = ${id}`;
    await writeReports(sql, project, { ...noWrites(), changedExecutions: [changed] });
  });
}

beforeAll(async () => {
  await pool`update project set default_branch = 'main' where id = ${project}`;
});

test("whatever happens to executions, of whichever branch, in whichever order", async () => {
  const ids: string[] = [];
  for (let step = 0; step < (isFull ? 150 : 60); step++) {
    if (ids.length < 5 || random(3) === 0) ids.push(await insert({ completedAt: random(5) === 0 ? null : time() }));
    const id = oneOf(ids);
    const kind = random(7);
    if (kind === 0) await change(id, { status: oneOf(["passed", "failed"]) });
    if (kind === 1) await change(id, { branch: oneOf(["main", "other"]) });
    if (kind === 2) await begin((sql) => markSample(sql, project, [id], []));
    if (kind === 3) await change(id, {});
    if (kind === 4) await begin((sql) => updateRepeatedStatus(sql, project, id, oneOf(["passed", "failed", null])));
    if (kind === 5)
      await begin((sql) =>
        updateExecution(sql, project, id, { status: "failed", arrived: false, now: new Date(time()) }),
      );
    if (kind === 6 && random(2) === 0) {
      await begin((sql) => deleteExecution(sql, project, id));
      ids.splice(ids.indexOf(id), 1);
    }
    const branch = { branch: oneOf(["main", "main", "other"]), isDefault: true, sample: random(6) === 0 };
    expect(await figures(branch)).toEqual([...(await counted(branch))]);
  }
  expect(await kept()).toHaveLength(DAYS);
});

test("what is over is counted once, and what is not is never kept", async () => {
  await insert({ completedAt: last.toISOString() });
  await figures();
  expect(await kept()).toHaveLength(DAYS);
  // Nobody but who looks into the table could tell that these are not counted anew.
  const [first] = (await figures()).map(({ day }) => day);
  await pool`update branch_day set executions = 4711 where project_id = ${project} and day = ${first!}::date and branch = 'main'`;
  expect((await figures())[0]).toMatchObject({ day: first, executions: 4711 });
  await pool`delete from branch_day`;
  const today = new Date();
  await insert({ completedAt: today.toISOString(), branch: "main", status: "passed" });
  expect((await figures(MAIN, today)).at(-1)!.day).toBe(today.toISOString().slice(0, 10));
  expect(await kept()).not.toContain(today.toISOString().slice(0, 10));
});

test("a change that is on its way while somebody looks is not lost, and keeps nobody from looking", async () => {
  await pool`delete from branch_day`;
  const { promise: looked, resolve: goOn } = Promise.withResolvers<void>();
  const { promise: isChanged, resolve: changed } = Promise.withResolvers<void>();
  const id = await insert({ completedAt: last.toISOString(), branch: "main", status: "passed" });
  const change = begin(async (sql) => {
    await updateExecution(sql, project, id, { status: "failed", arrived: false, now: last });
    changed();
    await looked;
  });
  await isChanged;
  const before = await figures();
  expect(before).toEqual([...(await counted(MAIN))]);
  expect(await kept()).toEqual([]);
  goOn();
  await change;
  const after = await figures();
  expect(after).toEqual([...(await counted(MAIN))]);
  expect(after).not.toEqual(before);
  expect(await kept()).toHaveLength(DAYS);
});

test("a change waits for whoever is counting its day, and takes away what he keeps", async () => {
  await pool`delete from branch_day`;
  const id = await insert({ completedAt: last.toISOString(), branch: "main" });
  const { promise: isLocked, resolve: locked } = Promise.withResolvers<void>();
  const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
  const keeping = begin(async (sql) => {
    expect(await lockDays(sql, project)).toBe(true);
    await keepDays(sql, project, MAIN, [last.toISOString().slice(0, 10)]);
    locked();
    await mayEnd;
  });
  await isLocked;
  const change = begin((sql) => updateExecution(sql, project, id, { status: "timed_out", arrived: false, now: last }));
  await until(async () => {
    const [row] = await pool`select from pg_locks where locktype = 'advisory' and not granted`;
    return row !== undefined;
  });
  end();
  await Promise.all([keeping, change]);
  expect(await figures()).toEqual([...(await counted(MAIN))]);
});

test("a project that goes takes its days with it", async () => {
  await pool`insert into branch_day (project_id, day, branch, sample, executions, passed) values (${rival.project}, '2026-01-31', 'main', false, 1, 1)`;
  await pool`delete from project where id = ${rival.project}`;
  expect(await pool`select from branch_day where project_id = ${rival.project}`).toHaveLength(0);
});
