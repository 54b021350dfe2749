/** How the times of requests grow with what is stored, and how much room it takes: three sizes side by side, asked in turns. */

import { startServers } from "../faults/servers.ts";
import { createPerson } from "../../people.ts";
import { retainNow } from "../../retaining.ts";
import { CASES_PER_TASK, DAYS, fill, reportOf, type Size, sizeOf, taskOf } from "./growth_data.ts";
import { type BenchServer, median } from "./server.ts";

const SIZES = (process.env["BENCH_GROWTH"] ?? "10000,1000000,50000000").split(",").map(Number);
const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 40);
/** A connection plans the first five times, and a pool has eight. */
const WARM_UP = 50;
const DAY_MS = 86_400_000;
const GOAL = 1.3;

/** A server that has been filled, and what is asked for there. */
export type Place = BenchServer & {
  size: Size;
  cookie: string;
  /** Of the newest executions, of all test cases, of the newest bugs. */
  executions: string[];
  cases: string[];
  bugs: string[];
};

export async function open(results: number, now: Date): Promise<Place> {
  // Nothing is to be deleted while it is looked at.
  const { servers, ...rest } = await startServers({ environment: { LOG_LEVEL: "warn", RETENTION_DAYS: "0" } });
  const { url, readyMs, memory, forgetPeak } = servers[0]!;
  const server = { ...rest, url, readyMs, memory, forgetPeak, servers, child: servers[0]!.child };
  const size = sizeOf(results);
  try {
    await fill(server, size, now);
    const { token } = await createPerson(server.database, { team: server.team, role: "owner" });
    const ids = async (rows: Promise<Record<string, string>[]>) => (await rows).map(({ id }) => id!);
    const { project, database } = server;
    const place = {
      ...server,
      size,
      cookie: `assay_session=${token}`,
      executions: await ids(
        database.pool`select id from execution where project_id = ${project} order by id desc limit 50` as never,
      ),
      cases: await ids(database.pool`select id from test_case where project_id = ${project} order by number` as never),
      bugs: await ids(
        database.pool`select id from bug_report where project_id = ${project} order by number desc limit 40` as never,
      ),
    };
    await vacuum(place);
    return place;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** As autovacuum would have done it meanwhile: table by table, and never a partitioned one as a whole. */
async function vacuum({ database }: BenchServer): Promise<void> {
  const tables = await database.pool<{ name: string }[]>`
    select oid::regclass::text as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`;
  const one = await database.pool.reserve();
  await one`set statement_timeout = 0`;
  for (const { name } of tables) await one.unsafe(`vacuum (analyze) ${name}`);
  await one`reset statement_timeout`;
  one.release();
}

/** Spread over the whole, the same at every size. */
const pick = <T>(values: readonly T[], round: number): T => values[(round * 7_919) % values.length]!;

type Request = { path: string; body?: string };

/** `round` makes it another one. */
type Kind = [name: string, request: (place: Place, round: number) => Request];

export const UPLOADS: Kind[] = [
  ["upload of 50 known cases", upload("main")],
  ["the same, of another branch", upload("feature/growth")],
  [
    "the same, one of them new",
    upload("main", (report, round) => report.replace('number 7"', `number 7 of round ${round}"`)),
  ],
];

export const READS: Kind[] = [
  ["list of test runs", ({ project }) => ({ path: `/api/v1/projects/${project}/test-runs?limit=10` })],
  [
    "list of test runs of a task",
    ({ project, size }, round) => ({
      path: `/api/v1/projects/${project}/test-runs?limit=10&task_slug=${encodeURIComponent(taskOf(1 + (round % size.tasks)))}`,
    }),
  ],
  [
    "list of test runs of an execution",
    (place, round) => ({
      path: `/api/v1/projects/${place.project}/test-runs?limit=10&execution_id=${pick(place.executions, round)}`,
    }),
  ],
  ["catalogue of test cases", ({ project }) => ({ path: `/api/v1/projects/${project}/test-cases?limit=10` })],
  [
    "catalogue, the flaky ones first",
    ({ project }) => ({ path: `/api/v1/projects/${project}/test-cases?limit=10&health=flaky&sort=flakeRate` }),
  ],
  [
    "history of a case",
    (place, round) => ({
      path: `/api/v1/projects/${place.project}/test-cases/${pick(place.cases, round)}/results?limit=10`,
    }),
  ],
  [
    "history of a case, the failures on main",
    (place, round) => ({
      path: `/api/v1/projects/${place.project}/test-cases/${pick(place.cases, round)}/results?limit=1&status=passed&branch=main`,
    }),
  ],
  [
    "comparison of an execution",
    (place, round) => ({
      path: `/api/v1/projects/${place.project}/executions/${pick(place.executions, round)}/comparison`,
    }),
  ],
  [
    "failures of an execution",
    (place, round) => ({
      path: `/api/v1/projects/${place.project}/executions/${pick(place.executions, round)}/failures`,
    }),
  ],
  ["list of bug reports", ({ project }) => ({ path: `/api/v1/projects/${project}/bug-reports?limit=10` })],
  [
    "bug reports, the most frequent first",
    ({ project }) => ({ path: `/api/v1/projects/${project}/bug-reports?limit=10&sort=occurrences` }),
  ],
  ["list of executions", ({ project }) => ({ path: `/api/v1/projects/${project}/executions?limit=10` })],
  [
    "executions of a branch",
    ({ project }) => ({ path: `/api/v1/projects/${project}/executions?limit=10&branch=main&status=failed` }),
  ],
  ["page of a project", ({ project }) => ({ path: `/projects/${project}` })],
  ["page of the executions", ({ project }) => ({ path: `/projects/${project}/executions` })],
  [
    "page of an execution",
    (place, round) => ({ path: `/projects/${place.project}/executions/${pick(place.executions, round)}` }),
  ],
  ["page of the tests", ({ project }) => ({ path: `/projects/${project}/tests` })],
  ["page of a test", (place, round) => ({ path: `/projects/${place.project}/tests/${pick(place.cases, round)}` })],
  ["page of the bugs", ({ project }) => ({ path: `/projects/${project}/bugs` })],
  ["page of a bug", (place, round) => ({ path: `/projects/${place.project}/bugs/${pick(place.bugs, round)}` })],
];

/** `change` makes another report of the one whose cases are known. */
function upload(branch: string, change = (report: string, _round: number) => report) {
  return ({ project, size }: Place, round: number): Request => {
    const task = 1 + ((round * 7) % size.tasks);
    const commit = Bun.SHA256.hash(`${branch} ${round} ${Date.now()}`, "hex").slice(0, 40);
    const parameters = new URLSearchParams({ task_slug: taskOf(task), branch, commit });
    return { path: `/api/v1/projects/${project}/test-runs?${parameters}`, body: change(reportOf(task), round) };
  };
}

/** Milliseconds. */
async function ask({ url, key, cookie }: Place, { path, body }: Request): Promise<number> {
  const isPage = !path.startsWith("/api");
  const started = performance.now();
  const response = await fetch(`${url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: isPage ? { cookie, accept: "text/html" } : { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body }),
    redirect: "manual",
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return performance.now() - started;
}

export const untilCounted = async ({ database }: Place) => {
  while ((await database.pool`select from test_run where not health_applied limit 1`).length > 0) await Bun.sleep(20);
};

/** By kind the median of each place. In turns, so that whatever else the machine does is felt by all alike. */
export async function measure(
  places: readonly Place[],
  kinds: readonly Kind[],
): Promise<[name: string, times: number[]][]> {
  const times = kinds.map(() => places.map((): number[] => []));
  for (let round = 0; round < WARM_UP + ROUNDS; round++)
    for (const [kind, [, request]] of kinds.entries())
      for (const [at, place] of places.entries()) {
        const ms = await ask(place, request(place, round));
        if (round >= WARM_UP) times[kind]![at]!.push(ms);
      }
  return kinds.map(([name], kind) => [name, times[kind]!.map(median)]);
}

/** Results by now, and bytes of the whole database and of the results alone, indexes included. */
export async function weigh({ database }: Place): Promise<{ all: number; alone: number }> {
  const [row] = await database.pool<{ all: number; alone: number; results: number }[]>`
    select pg_database_size(current_database())::float8 as all,
      (select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'case_result'::regclass)::float8 as alone,
      (select sum(passed + failed + skipped) from test_run)::float8 as results`;
  return { all: row!.all / row!.results, alone: row!.alone / row!.results };
}

/** The largest tables, with their partitions: bytes per result of the rows, and of their indexes. */
export async function weighTables({ database }: Place): Promise<{ name: string; rows: number; indexes: number }[]> {
  return await database.pool<{ name: string; rows: number; indexes: number }[]>`
    with results as (select sum(passed + failed + skipped)::float8 as count from test_run)
    select coalesce(i.inhparent, c.oid)::regclass::text as name,
      (sum(pg_table_size(c.oid)) / max(results.count))::float8 as rows,
      (sum(pg_indexes_size(c.oid)) / max(results.count))::float8 as indexes
    from results, pg_class c left join pg_inherits i on i.inhrelid = c.oid
    where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
    group by 1 order by sum(pg_total_relation_size(c.oid)) desc limit 8`;
}

/** Milliseconds until the first whole month is gone: at once as nobody keeps it, or row by row as another project does. */
export async function retain({ database, project }: Place, now: Date, how: "dropped" | "deleted"): Promise<number> {
  const midnight = Math.floor(now.getTime() / DAY_MS) * DAY_MS;
  const first = new Date(now.getTime() - DAYS * DAY_MS);
  const end = Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + (how === "dropped" ? 1 : 2));
  const days = Math.round((midnight - end) / DAY_MS);
  await database.pool`update project set retention_days = ${days} where id = ${project}`;
  if (how === "deleted")
    await database.pool`
      insert into project (team_id, id, name, retention_days)
      select team_id, gen_random_uuid(), 'keeps for ever', 0 from project where id = ${project}`;
  const started = performance.now();
  await retainNow(database, {}, new Date(midnight));
  return performance.now() - started;
}

const ms = (value: number) => (value < 100 ? `${value.toFixed(1)} ms` : `${Math.round(value).toLocaleString("en")} ms`);
const named = (results: number) =>
  results >= 1e6 ? `${results / 1e6} million` : results.toLocaleString("en", { useGrouping: true });

/** Rows of a table: what, a column for each size, the growth from the first to the last, the goal. */
export async function benchGrowth(): Promise<string[][]> {
  const now = new Date();
  const places: Place[] = [];
  try {
    for (const results of SIZES) {
      const started = performance.now();
      places.push(await open(results, now));
      console.error(`${named(results)} results are there after ${Math.round((performance.now() - started) / 1000)} s`);
    }
    const bytes = await Promise.all(places.map(weigh));
    const largest = await Promise.all(places.map(weighTables));
    const uploads = await measure(places, UPLOADS);
    // What is left to be counted would be counted by the first who asks for it.
    await Promise.all(places.map(untilCounted));
    const measured = [...uploads, ...(await measure(places, READS))];
    const rows = measured.map(([name, times]) => [
      name,
      ...times.map(ms),
      (times.at(-1)! / times[0]!).toFixed(2),
      `≤ ${GOAL}`,
    ]);
    for (const how of ["dropped", "deleted"] as const) {
      const times: number[] = [];
      for (const place of places) times.push(await retain(place, now, how));
      const name = how === "dropped" ? "a month goes that nobody keeps" : "a month goes that another project keeps";
      rows.push([name, ...times.map(ms), (times.at(-1)! / times[0]!).toFixed(0), ""]);
    }
    rows.push(["bytes per result, all in all", ...bytes.map(({ all }) => all.toFixed(0)), "", ""]);
    rows.push(["bytes per result, the results alone", ...bytes.map(({ alone }) => alone.toFixed(1)), "", ""]);
    for (const { name } of largest.at(-1)!) {
      const cells = largest.map((tables) => {
        const table = tables.find((table) => table.name === name);
        return table ? `${table.rows.toFixed(2)} + ${table.indexes.toFixed(2)}` : "";
      });
      rows.push([`bytes per result of ${name}, rows + indexes`, ...cells, "", ""]);
    }
    const head = places.map(
      ({ size }) =>
        `${named(size.results)} results: ${size.builds.toLocaleString("en")} executions of 2 tasks, ${(size.tasks * CASES_PER_TASK).toLocaleString("en")} cases, ${size.bugs.toLocaleString("en")} bugs`,
    );
    return [["growth", ...head, "last : first", "to reach"], ...rows];
  } finally {
    for (const place of places) await place.stop();
  }
}
