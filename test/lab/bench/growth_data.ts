/** Years of a project in minutes: as many results as are wanted, as uploads would have left them, written by SQL. */

import { lockHealth } from "../../../src/store/pending_health.ts";
import { createPartitions } from "../../../src/database/partitions.ts";
import type { Tx } from "../../../src/database/connect.ts";
import type { BenchServer } from "./server.ts";

/** Every build runs two tasks of fifty cases, what its change touches: a hundred results. */
export const CASES_PER_TASK = 50;
const RESULTS_PER_BUILD = 2 * CASES_PER_TASK;
export const DAYS = 90;
const DAY_MS = 86_400_000;
/** Work concentrates: so many builds in a row are of so many pairs of tasks. */
const STRETCH = 50;
const AT_WORK = 5;
/** How a task comes out: one way of these, the same share of them fails at every size. */
const WAYS = 100;

export type Size = { results: number; builds: number; tasks: number; bugs: number };

/** 20,000 cases where there are results enough for them: each has at least a page of history. */
export const sizeOf = (results: number): Size => ({
  results,
  builds: results / RESULTS_PER_BUILD,
  tasks: Math.min(20_000, results / 20) / CASES_PER_TASK,
  bugs: Math.min(5_000, results / 250),
});

export const taskOf = (number: number): string => `packages/part-${number}`;

/** JUnit of a task whose cases pass. */
export function reportOf(task: number): string {
  const cases = Array.from(
    { length: CASES_PER_TASK },
    (_, index) =>
      `<testcase classname="com.acme.Part${task}Test" name="does what it should in the case of number ${index}" time="0.${100 + index}" file="packages/part-${task}/test/part.test.ts"/>`,
  );
  return `<testsuite name="com.acme.Part${task}Test" tests="${CASES_PER_TASK}">${cases.join("\n")}</testsuite>`;
}

type Place = Pick<BenchServer, "database" | "project" | "key" | "url">;

/** Leaves a database of which statistics know nothing. The cases come as a report of each task, long ago; the rest is written beside the server. */
export async function fill({ database, project, url, key }: Place, size: Size, now: Date): Promise<void> {
  const from = now.getTime() - DAYS * DAY_MS;
  for (let day = 0; day <= DAYS; day += 15) await createPartitions(database, new Date(from + day * DAY_MS));
  for (let task = 1; task <= size.tasks; task++) {
    const parameters = new URLSearchParams({ task_slug: taskOf(task), completed_at: new Date(from).toISOString() });
    const response = await fetch(`${url}/api/v1/projects/${project}/test-runs?${parameters}&branch=main`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: reportOf(task),
    });
    if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`);
  }
  await database.begin(async (sql) => {
    await sql`set local statement_timeout = 0`;
    await sql`set local work_mem = '256MB'`;
    // What is written here is whole; to look up every run of every row would take most of the time.
    await sql`set local session_replication_role = replica`;
    // Whoever counts these meanwhile would meet what is written now.
    await lockHealth(sql, project);
    await insertAll(sql, project, size, from);
    await sql`update test_run set health_applied = true where not health_applied`;
  });
}

async function insertAll(sql: Tx, project: string, { builds, tasks, bugs }: Size, from: number): Promise<void> {
  await sql`select setseed(0.5)`;
  // A number from 0 on below the bound, the same at every time.
  await sql.unsafe(`
    create function pg_temp.pick(n int, seed int, bound int) returns int language sql immutable as $$
      select abs(hashint8extended(n, seed) % bound)::int $$;
    create function pg_temp.id_at(ms bigint, salt text) returns uuid language sql immutable as $$
      select (lpad(to_hex(ms), 12, '0') || '7' || substr(md5(salt), 1, 3) || '8' || substr(md5(salt), 4, 15))::uuid $$;
    create function pg_temp.time_of(ms bigint) returns timestamptz language sql immutable as $$
      select timestamptz '1970-01-01 00:00:00+00' + ms * interval '1 millisecond' $$`);

  // What a task can come out like: most ways pass, one in seven fails, and one task in five has a flaky case.
  await sql`
    create temporary table letter on commit drop as
    select t.task, w.way, t.first + i - 1 as number, (random() * 500)::int as ms,
      case
        when i = 50 and t.task % 4 = 0 then 's'
        when w.way >= 98 and i = 7 then 'P'
        when w.way % 10 = 0 and i = 1 and t.task % 5 = 0 then 'P'
        when w.way between 80 and 93 and i = 1 + (w.way * 7 + t.task) % 49 then 'f'
        when w.way between 80 and 83 and i = 1 + (w.way * 11 + t.task) % 49 then 'f'
        else 'p' end as letter
    from (
        select right(task_slug, -length('packages/part-'))::int as task, min(number) as first from test_case
        where project_id = ${project} group by 1) t,
      generate_series(0, ${WAYS - 1}::int) as w (way), generate_series(1, ${CASES_PER_TASK}::int) as i`;
  await sql`
    create temporary table packed on commit drop as
    select task, way, number / 128 as block, array_agg(number order by number) as test_cases,
      string_agg(letter, '' order by number) as statuses,
      case when way >= 98 then array_agg(2::smallint) end as attempts, array_agg(ms order by number) as durations
    from letter group by 1, 2, 3`;
  await sql`
    create temporary table outcome on commit drop as
    select task, way, (count(*) filter (where letter in ('p', 'P')))::int as passed,
      (count(*) filter (where letter = 'f'))::int as failed, (count(*) filter (where letter = 's'))::int as skipped,
      (count(*) filter (where letter = 'P'))::int as flaky, sum(ms)::bigint as ms
    from letter group by 1, 2`;

  // Two builds in five are of the default branch; of each other branch there are eight.
  await sql`
    create temporary table build on commit drop as
    select *, pg_temp.id_at(ms, 'build ' || n) as id,
      case when is_main then 'main' else 'feature/' || n / 13 end as branch, md5('commit ' || n) || left(md5('more ' || n), 8) as commit
    from (
      select n, ${from}::bigint + 60000 + ((n - 1) * (${DAYS * DAY_MS}::float8 - 3600000) / ${builds}::int)::bigint as ms,
        n % 5 in (0, 2) as is_main
      from generate_series(1, ${builds}::int) as n) numbered`;
  await sql`
    create temporary table run on commit drop as
    select b.n, k, b.id as execution_id, b.branch, b.is_main, b.ms + 60000 + k * 10000 as started,
      b.ms + 120000 + k * 30000 + pg_temp.pick(b.n, 3, 60000) as ended, pg_temp.id_at(b.ms + 60000 + k * 10000, 'run ' || k || ' ' || b.n) as id,
      2 * pg_temp.pick(b.n / ${STRETCH}::int * ${AT_WORK}::int + pg_temp.pick(b.n, 1, ${AT_WORK}::int), 2, ${tasks / 2}::int) + 1 + k as task, pg_temp.pick(b.n, 10 + k, ${WAYS}::int) as way
    from build b, generate_series(0, 1) as k`;
  await sql`
    create temporary table ended on commit drop as
    select r.execution_id, bool_or(o.failed > 0) as failed, max(ended) as ms from run r join outcome o using (task, way) group by 1`;
  await sql`create unique index on ended (execution_id)`;
  await sql`create unique index on build (n)`;
  await sql.unsafe(`analyze letter; analyze packed; analyze outcome; analyze build; analyze run; analyze ended`);

  await sql`
    insert into execution (project_id, id, key, status, trigger, branch, commit, pull_request, build_url, environment,
      timeout_minutes, created_at, started_at, completed_at, baseline_id)
    select ${project}, b.id, 'build ' || b.n, case when e.failed then 'failed' else 'passed' end, 'upload', b.branch, b.commit,
      case when not is_main then (n / 13)::text end, 'https://ci.example/acme/builds/' || n, 'ci', 30,
      pg_temp.time_of(b.ms), pg_temp.time_of(b.ms + 60000), pg_temp.time_of(e.ms),
      (select m.id from build m where m.n = b.n - case (b.n - 1) % 5 when 0 then 1 when 2 then 1 when 1 then 2 when 3 then 2 else 3 end)
    from build b join ended e on e.execution_id = b.id order by b.n`;
  await sql`
    insert into test_run (project_id, id, execution_id, task_slug, status, attempt, passed, failed, skipped, flaky, verdict,
      duration_ms, format, started_at, completed_at, health_applied)
    select ${project}, r.id, r.execution_id, 'packages/part-' || r.task, case when o.failed > 0 then 'failed' else 'passed' end,
      case when way >= 98 then 2 else 1 end, o.passed, o.failed, o.skipped, o.flaky,
      case when o.failed > 0 then 'failed' else 'passed' end, o.ms, 'junit', pg_temp.time_of(r.started),
      pg_temp.time_of(r.ended), true
    from run r join outcome o using (task, way) order by r.n, r.k`;
  await sql`
    insert into attempt (project_id, run_id, shard, number, digest, format, partial, warnings, received_at)
    select ${project}, r.id, 0, a, sha256((r.id::text || a)::bytea), 'junit', false, '{}', pg_temp.time_of(r.ended)
    from run r, generate_series(1, case when way >= 98 then 2 else 1 end) as a order by r.n, r.k`;
  await sql`
    insert into case_result (project_id, run_id, block, test_cases, statuses, attempts, durations)
    select ${project}, r.id, p.block, p.test_cases, p.statuses, p.attempts, p.durations
    from run r join packed p using (task, way) order by r.n, r.k`;

  await insertFailures(sql, project, bugs);
  await insertHealth(sql, project);
  await insertEvents(sql, project, from + (DAYS - 7) * DAY_MS);
}

const EVIDENCE = { failed: 0, results: 9, inARow: 1, passedAtCommit: false, base: "passed", siblings: 0, elsewhere: 0 };

/** What failed, with what it says, what explains it, and the bug that it is. */
async function insertFailures(sql: Tx, project: string, bugs: number): Promise<void> {
  await sql`
    create temporary table failed on commit drop as
    select *, 1 + (dense_rank() over (order by task, way, number) - 1)::int % ${bugs}::int as bug
    from (
      select r.n, r.id as run_id, r.execution_id, r.task, r.way, r.branch, r.is_main, r.ended, l.number, l.letter, 1 as attempt
      from run r join letter l using (task, way) where l.letter in ('f', 'P')) f`;
  await sql`
    insert into case_detail (project_id, run_id, test_case, attempt, kind, runs, message, stack)
    select ${project}, run_id, number, attempt, 'AssertionError', case when letter = 'P' then 2 else 1 end,
      'expected ' || way || ' to be ' || number || ' in part ' || task,
      'AssertionError: expected ' || way || ' to be ' || number || repeat(E'\n    at check (packages/part/src/check.ts:12:5)', 6)
    from failed order by n`;
  await sql`delete from failed where letter <> 'f'`;
  await sql`
    insert into failure (project_id, run_id, test_case, cause, blame, explained, of_many, change, flaky, inherited, outside, evidence)
    select ${project}, run_id, number, md5(concat(way, number, task))::uuid,
      case n % 10 when 0 then 'still' when 1 then 'flaky' when 2 then 'main' when 3 then 'quarantined' else 'new' end,
      case n % 10 when 0 then 'inherited' when 1 then 'flaky' when 2 then 'inherited' else 'change' end, false, 0.5, 0.2, 0.2, 0.1,
      ${JSON.stringify(EVIDENCE)}::text::json
    from failed order by n`;
  await sql`
    create temporary table bug on commit drop as
    select *, pg_temp.id_at(first, 'bug ' || bug) as id,
      case when bug % 10 = 0 then 'open' when bug % 20 = 1 then 'in_progress' when bug % 10 = 2 then 'ignored' else 'resolved' end as status
    from (
      select bug, count(*)::int as occurrences, min(ended) as first, max(ended) as last,
        (array_agg(execution_id order by n))[1] as first_execution, (array_agg(execution_id order by n desc))[1] as last_execution,
        (array_agg(branch order by n desc))[1] as branch, min(number) as number
      from failed group by bug) sums`;
  await sql`
    insert into bug_report (project_id, id, number, title, status, severity, source, occurrences, first_seen_at, last_seen_at,
      first_execution_id, last_execution_id, branch, regressed, created_at, updated_at, resolved_at)
    select ${project}, id, row_number() over (order by first, bug), 'AssertionError: expected ' || bug || ' to be ' || number,
      status, (array['major', 'minor', 'critical', 'trivial'])[1 + bug % 4], 'automatic', occurrences,
      pg_temp.time_of(first), pg_temp.time_of(last), first_execution, last_execution, branch, bug % 30 = 0,
      pg_temp.time_of(first), pg_temp.time_of(last), case when status = 'resolved' then pg_temp.time_of(last + 3600000) end
    from bug`;
  // Where no bug is open at all, uploads have less to do: the few of a small project would be resolved before it is measured.
  await sql`
    insert into bug_report (project_id, id, number, title, status, severity, source, created_at, updated_at)
    select ${project}, gen_random_uuid(), count(*) + 1, 'The cart forgets items', 'open', 'major', 'manual', now(), now() from bug`;
  await sql`
    insert into bug_fingerprint (project_id, digest, bug_report_id, version, kind, exception_type, message, frames, created_at)
    select ${project}, md5('fingerprint ' || bug)::uuid, id, 2, 'message', 'AssertionError', 'expected <n> to be <n>',
      array['check (packages/part/src/check.ts)'], pg_temp.time_of(first)
    from bug`;
  await sql`
    insert into bug_change (project_id, bug_report_id, id, from_status, to_status, cause, changed_at)
    select ${project}::uuid, id, pg_temp.id_at(first, 'opened ' || bug), null, 'open', 'opened', pg_temp.time_of(first) from bug
    union all
    select ${project}::uuid, id, pg_temp.id_at(last + 3600000, 'resolved ' || bug), 'open', 'resolved', 'clean_runs',
      pg_temp.time_of(last + 3600000) from bug where status = 'resolved'`;
  await sql`
    insert into bug_case (project_id, bug_report_id, test_case, clean)
    select distinct ${project}::uuid, b.id, f.number, 0 from failed f join bug b using (bug)`;
  await sql`
    insert into bug_occurrence (project_id, bug_report_id, run_id, test_case, message, seen_at)
    select ${project}, b.id, f.run_id, f.number, 'expected ' || way || ' to be ' || f.number, pg_temp.time_of(f.ended)
    from failed f join bug b using (bug) order by f.n`;
  await sql`
    insert into red_task (project_id, branch, task_slug, since)
    select distinct on (branch, task) ${project}::uuid, branch, 'packages/part-' || task, pg_temp.time_of(ended)
    from failed where not is_main order by branch, task, ended`;
}

/** What the counting of these runs leaves. */
async function insertHealth(sql: Tx, project: string): Promise<void> {
  await sql`
    create temporary table newest on commit drop as
    select * from (
      select task, way, id, ended, row_number() over (partition by task order by id desc) as place from run) r
    where place <= 50`;
  await sql`
    create temporary table ran on commit drop as
    select task, way, count(*)::int as runs, (count(*) filter (where is_main))::int as main_runs from run group by 1, 2`;
  await sql`delete from case_health where project_id = ${project}`;
  await sql`
    insert into case_health (project_id, test_case, runs, failures, flake_failures, flake_rate, flaky_at, clean, timed, total_ms,
      recent_ms, p95_ms, last_status, last_run_id, last_run_at, flaky, main_runs, flaky_since, flaky_signs, recovers_after,
      last_passed_at, last_failed_at)
    select ${project}, a.number, a.runs, a.failures, a.flaky, a.flaky::real / greatest(a.runs, 1),
      case when a.flaky > 0 then n.at end, coalesce(length(substring(n.recent from 'p*$')), 0), a.timed, a.ms, n.recent_ms,
      (select max(ms) from unnest(n.recent_ms) as ms), n.last_status, n.last_id, n.at, coalesce(n.recent ~ 'P', false), a.main_runs,
      case when n.recent ~ 'P' then n.at end, case when n.recent ~ 'P' then 'r' else '' end, 100,
      n.at, case when a.failures > 0 then n.at end
    from (
      select l.number, sum(case when letter = 's' then 0 else r.runs end)::int as runs,
        sum(case when letter = 'f' then r.runs else 0 end)::int as failures, least(200, sum(case when letter = 'P' then r.runs else 0 end))::int as flaky,
        sum(r.runs)::int as timed, sum(r.runs * l.ms) as ms, sum(case when letter = 's' then 0 else r.main_runs end)::int as main_runs
      from ran r join letter l using (task, way) group by 1) a
    join (
      select l.number, string_agg(letter, '' order by place desc) filter (where letter <> 's') as recent,
        array_agg(l.ms order by place desc) filter (where place <= 20) as recent_ms,
        (array_agg(case letter when 'f' then 'failed' when 's' then 'skipped' else 'passed' end order by place))[1] as last_status,
        (array_agg(n.id order by place))[1] as last_id, pg_temp.time_of(max(n.ended)) as at
      from newest n join letter l using (task, way) group by 1) n using (number)`;
}

/** Those of the last week; older ones are forgotten. */
async function insertEvents(sql: Tx, project: string, from: number): Promise<void> {
  await sql`
    insert into event (team_id, id, project_id, type, data, occurred_at)
    select p.team_id, e.id, p.id, e.type, e.data, pg_temp.time_of(e.ms)
    from project p, (
      select r.ended as ms, r.n, pg_temp.id_at(r.ended, 'run event ' || r.k || ' ' || r.n) as id, 'test_run.completed' as type,
        json_build_object('execution', json_build_object('id', x.id, 'key', x.key, 'status', 'running', 'branch', x.branch,
            'commit', x.commit, 'pullRequest', x.pull_request, 'buildUrl', x.build_url, 'environment', x.environment),
          'testRun', json_build_object('taskSlug', 'packages/part-' || r.task, 'attempt', 1, 'verdict', 'passed', 'passed', 50,
            'failed', 0, 'skipped', 0, 'total', 50, 'flaky', 0, 'durationMs', 12345)) as data
      from run r join execution x on x.project_id = ${project} and x.id = r.execution_id where r.ended >= ${from}
      union all
      select b.ms + 300000, b.n, pg_temp.id_at(b.ms + 300000, 'build event ' || b.n), 'execution.completed',
        json_build_object('execution', json_build_object('id', x.id, 'key', x.key, 'status', x.status, 'branch', x.branch,
            'commit', x.commit, 'pullRequest', x.pull_request, 'buildUrl', x.build_url, 'environment', x.environment,
            'passed', 100, 'failed', 0, 'skipped', 0, 'total', 100, 'flaky', 0, 'taskCount', 2))
      from build b join execution x on x.project_id = ${project} and x.id = b.id where b.ms >= ${from}) e
    where p.id = ${project} order by e.ms`;
}
