/** `bun test/lab/bench/counting.ts [ROUNDS] [PART OF A NAME]`: what it costs to count runs in the health of their test cases. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startEmbedded } from "../../../src/database/postgres/embedded.ts";
import { connect, type Sql } from "../../../src/database/connect.ts";
import { migrate } from "../../../src/database/migrate.ts";
import { createPartitions } from "../../../src/database/partitions.ts";
import { insertProject, insertTeam } from "../../../src/store/projects.ts";
import { countAll } from "../../../src/work/count.ts";
import { createPlace, removePlace } from "../../places.ts";

const ROUNDS = Number(process.argv[2] ?? 3);
const ONLY = process.argv[3] ?? "";
const TICKS_PER_SECOND = 100;

const directory = createPlace("counting");
const embedded = await startEmbedded({ directory: join(directory, "postgres") });
const database = connect(embedded.connection, 4);
const { pool } = database;

/** Seconds of processor time that the processes of PostgreSQL have had. */
function postgresSeconds(): number {
  let ticks = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name)))
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      // Of a backend: its own time; of the postmaster: that of those that have ended.
      if (Number(fields[1]) === postmaster) ticks += Number(fields[11]) + Number(fields[12]);
      if (Number(pid) === postmaster) ticks += Number(fields[13]) + Number(fields[14]);
    } catch {
      // It has ended meanwhile.
    }
  return ticks / TICKS_PER_SECOND;
}

type Shape = { runs: number; cases: number; tasks?: number; failing?: boolean; commit?: boolean };

/**
 * Complete runs that are not counted, as uploads leave them; `from` is the number of the first test case. One case in six takes 200 ms or
 * more.
 */
async function insertRuns(sql: Sql, project: string, from: number, { runs, cases, tasks = 1, failing, commit }: Shape) {
  const status = failing ? `f${"p".repeat(127)}` : "p".repeat(128);
  await sql`
    with run as materialized (
      select n, gen_random_uuid() as execution, (lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0')
        || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid as id, n % ${tasks}::int as task
      from generate_series(1, ${runs}::int) n),
    execution as (
      insert into execution (project_id, id, status, trigger, branch, commit, timeout_minutes, created_at)
      select ${project}, execution, 'passed', 'upload', 'main', case when ${commit ?? false} then md5(n::text || random()) end, 30, now() from run),
    test_run as (
      insert into test_run (project_id, id, execution_id, task_slug, status, attempt, passed, failed, completed_at, health_applied)
      select ${project}, id, execution, 'task' || task, 'passed', 1, ${cases - (failing ? 1 : 0)}::int, ${failing ? 1 : 0}::int,
        now() - interval '10 seconds' + n * interval '1 ms', false from run)
    insert into case_result (project_id, run_id, block, test_cases, statuses, durations)
    select ${project}, id, block, (select array_agg(i order by i) from generate_series(low, high) i), left(${status}, high - low + 1),
      (select array_agg((2000 * power(abs(hashint4(i)::bigint) / 2147483648.0, 12) * (0.8 + 0.4 * random()))::int) from generate_series(low, high) i)
    from (
      select id, block, greatest(block * 128, first) as low, least(block * 128 + 127, first + ${cases}::int - 1) as high
      from (select id, ${from}::int + task * ${cases}::int as first from run) run,
        lateral generate_series(first / 128, (first + ${cases}::int - 1) / 128) block) b`;
}

async function measure() {
  const [cpu, postgres, started] = [process.cpuUsage(), postgresSeconds(), performance.now()];
  let longest = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    longest = Math.max(longest, performance.now() - last - 1);
    last = performance.now();
  }, 1);
  await countAll(database);
  clearInterval(timer);
  const { user, system } = process.cpuUsage(cpu);
  const [left] = await pool<{ left: number }[]>`select count(*)::int as left from test_run where not health_applied`;
  if (left!.left > 0) throw new Error(`${left!.left} runs were not counted`);
  return {
    wallMs: performance.now() - started,
    serverMs: (user + system) / 1000,
    postgresMs: (postgresSeconds() - postgres) * 1000,
    blockedMs: longest,
  };
}

let postmaster = 0;
try {
  await migrate(database);
  await createPartitions(database, new Date());
  const [row] = await pool<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const stat = readFileSync(`/proc/${row!.pid}/stat`, "utf8");
  postmaster = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  const team = await insertTeam(pool, "bench");

  const shapes: Record<string, Shape & { known: boolean }> = {
    "1,000 runs of the same 50 known cases": { runs: 1_000, cases: 50, known: true },
    "the same on commits": { runs: 1_000, cases: 50, known: true, commit: true },
    "the same on commits, one case failing": { runs: 1_000, cases: 50, known: true, commit: true, failing: true },
    "1,000 runs of 50 known cases of 20 tasks": { runs: 1_000, cases: 50, tasks: 20, known: true },
    "1,000 runs of 50 known cases of 1,000 tasks": { runs: 1_000, cases: 50, tasks: 1_000, known: true },
    "a run of 100,000 known cases": { runs: 1, cases: 100_000, known: true },
    "a run of 100,000 new cases": { runs: 1, cases: 100_000, known: false },
  };
  console.log("| | wall ms | server CPU ms | PostgreSQL CPU ms | longest block ms |\n|---|---|---|---|---|");
  for (const [name, shape] of Object.entries(shapes)) {
    if (!name.includes(ONLY)) continue;
    const project = (await insertProject(pool, team, name))!;
    const from = 128;
    if (shape.known)
      for (let round = 0; round < 2; round++) {
        await insertRuns(pool, project, from, { ...shape, runs: shape.tasks ?? 1 });
        await countAll(database);
      }
    const found: Awaited<ReturnType<typeof measure>>[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      await insertRuns(pool, project, shape.known ? from : from + round * shape.cases, shape);
      if (round === 0) await pool`analyze`;
      found.push(await measure());
    }
    const median = (pick: (one: (typeof found)[number]) => number) =>
      Math.round(found.map(pick).toSorted((a, b) => a - b)[Math.floor(found.length / 2)]!);
    console.log(
      `| ${name} | ${median((one) => one.wallMs)} | ${median((one) => one.serverMs)} | ${median((one) => one.postgresMs)} | ${median((one) => one.blockedMs)} |`,
    );
  }
} finally {
  await database.close();
  await embedded.stop();
  removePlace(directory);
}
