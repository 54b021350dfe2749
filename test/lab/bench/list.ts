/** The list of test runs: against a bare Bun.serve and pgbench of its own statement, by depth and by connections. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type BenchServer, median, wrk } from "./server.ts";

const RUNS = Number(process.env["BENCH_RUNS"] ?? 1_000_000);
export const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 5);

/** A million runs in the project, and 1 % of that in each of 99 others. */
export async function seedRuns({ database, project }: BenchServer): Promise<void> {
  await database.begin(async (sql) => {
    await sql`set local statement_timeout = 0`;
    await sql`create temporary table seeded (id uuid, runs int) on commit drop`;
    await sql`insert into seeded values (${project}, ${RUNS})`;
    await sql`
      with added as (
        insert into project (team_id, id, name)
        select team_id, gen_random_uuid(), 'other' from project, generate_series(1, 99) returning id)
      insert into seeded select id, ${RUNS / 100} from added`;
    await sql`
      insert into execution (project_id, id, status, trigger, timeout_minutes, created_at, completed_at)
      select s.id, md5(s.id::text || n)::uuid, 'passed', 'upload', 30, now(), now()
      from seeded s, generate_series(1, s.runs / 10) n`;
    await sql`
      insert into test_run (project_id, id, execution_id, task_slug, status, attempt, passed, failed, skipped, verdict,
        format, completed_at)
      select s.id, gen_random_uuid(), md5(s.id::text || (1 + (n - 1) % (s.runs / 10)))::uuid, 'task ' || n % 10 || '/' || n,
        'passed', 1, 100 + n % 50, 0, n % 7, 'passed', 'junit', timestamptz '2026-01-01' + n * interval '17 seconds'
      from seeded s, generate_series(1, s.runs) n`;
  });
  await database.pool`vacuum analyze`;
}

/** The statement of the list endpoint, for pgbench. */
const statement = (keyId: string, teamId: string, limit: number) => `
select r.elements, r.ids from api_key k cross join lateral (
  select string_agg(element, E',\\n') as elements, string_agg(id::text, '') as ids
  from (
    select id, element from test_run
    where project_id = k.project_id
      and (completed_at, id) < ('infinity'::timestamptz, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
    order by completed_at desc, id desc limit ${limit + 1}) page) r
where k.team_id = '${teamId}' and k.id = '${keyId}' and k.revoked_at is null;`;

async function pgbench(server: BenchServer, limit: number): Promise<number> {
  const [key] = await server.database
    .pool`select team_id as team, id from api_key where project_id = ${server.project}`;
  const file = join(server.directory, `list${limit}.sql`);
  await writeFile(file, statement(key!["id"], key!["team"], limit));
  const { host, port, username, password, database } = server.connection;
  const environment = { ...process.env, PGPASSWORD: password, PGOPTIONS: "-c plan_cache_mode=force_generic_plan" };
  const output =
    await Bun.$`pgbench -n -M prepared -c 8 -j 1 -T 3 -f ${file} -h ${host} -p ${port} -U ${username} ${database}`
      .env(environment)
      .quiet()
      .text();
  return Number(/tps = ([\d.]+)/.exec(output)![1]);
}

/** A server that answers nothing but 2 KB of JSON that is ready. */
function bareServer() {
  const code = `
    const body = JSON.stringify({ data: Array(10).fill({ executionId: crypto.randomUUID(), taskSlug: "task 1/1", completedAt: new Date(), passed: 1, failed: 2, skipped: 3, total: 6 }), pagination: { hasMore: true, cursor: "x".repeat(100) } });
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(body, { headers: { "content-type": "application/json" } }) });
    console.log(server.url.href);`;
  return Bun.spawn([process.execPath, "-e", code], { stdout: "pipe" });
}

async function cursorAt(server: BenchServer, row: number): Promise<string> {
  // The cursor is signed, so one is walked to from nearby: a run of its own stands at the row before.
  const headers = { authorization: `Bearer ${server.key}` };
  const path = `${server.url}/api/v1/projects/${server.project}/test-runs?limit=100`;
  let cursor = "";
  for (let seen = 0; seen < row; seen += 100) {
    const { pagination } = (await (await fetch(path + cursor, { headers })).json()) as {
      pagination: { cursor: string };
    };
    cursor = `&cursor=${pagination.cursor}`;
  }
  return cursor;
}

export async function benchList(server: BenchServer): Promise<string[][]> {
  const bare = bareServer();
  const bareUrl = new TextDecoder().decode((await bare.stdout.getReader().read()).value).trim();
  const path = `${server.url}/api/v1/projects/${server.project}/test-runs`;
  const deep = await cursorAt(server, RUNS * 0.9);
  const list = (query: string, connections = 32) => wrk(`${path}?${query}`, { key: server.key, connections });

  const results: Record<string, number[]> = {};
  const note = (name: string, value: number) => (results[name] ??= []).push(value);
  for (let round = 0; round < ROUNDS; round++) {
    note("bare", (await wrk(bareUrl)).perSecond);
    note("list 10", (await list("limit=10")).perSecond);
    note("pgbench 10", await pgbench(server, 10));
    note("list 100", (await list("limit=100")).perSecond);
    note("pgbench 100", await pgbench(server, 100));
    note("256", (await list("limit=10", 256)).perSecond);
    note("deep", (await list(`limit=10${deep.replace("limit=100", "")}`)).perSecond);
  }
  bare.kill();
  const of = (name: string) => median(results[name]!);
  const perSecond = (name: string) => `${Math.round(of(name)).toLocaleString("en")}/s`;
  const ratio = (value: number) => value.toFixed(2);
  return [
    [
      "list of 10, exact key check, against bare `Bun.serve`",
      ratio(of("list 10") / of("bare")),
      "≥ 0.20",
      `${perSecond("list 10")} of ${perSecond("bare")}`,
    ],
    [
      "the same against pgbench of its own statement",
      ratio(of("list 10") / of("pgbench 10")),
      "≥ 0.56",
      `of ${perSecond("pgbench 10")}`,
    ],
    [
      "list of 100 against pgbench of its own statement",
      ratio(of("list 100") / of("pgbench 100")),
      "≥ 0.34",
      `${perSecond("list 100")} of ${perSecond("pgbench 100")}`,
    ],
    ["256 connections against 32", ratio(of("256") / of("list 10")), "≥ 0.85", perSecond("256")],
    ["page at row 900,000 against page 1, time", ratio(of("list 10") / of("deep")), "≤ 1.10", perSecond("deep")],
  ];
}
