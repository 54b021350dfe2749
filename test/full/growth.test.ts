/** What a request reads does not grow with what is stored, even where PostgreSQL knows nothing of the tables yet. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { selectContradicted } from "../../src/store/flakiness.ts";
import { connect, type Fragment, type Sql } from "../../src/database/connect.ts";
import { firstIdAt } from "../../src/database/time_bounds.ts";
import { selectLastBuild, selectNewFailures, selectOverviewBuilds } from "../../src/store/overview.ts";
import { selectUrgentBugs } from "../../src/store/bug_reports.ts";
import { selectUnhealthyOf } from "../../src/store/test_cases.ts";
import { selectBranchState } from "../../src/store/state.ts";
import { analyzeOutgrown } from "../../src/work/analyze.ts";
import { countAll } from "../../src/work/count.ts";
import { fill, reportOf, taskOf } from "../lab/bench/growth_data.ts";
import { createHarness, createServer } from "../harness.ts";
import { createPerson } from "../people.ts";

const { database: beside, connection, acme } = await createHarness({ ownDatabase: true });
const { project, key, team } = acme;
// Pools of one connection, so that each can be told to say what it has read.
const database = connect(connection, 1);
afterAll(() => database.close());
const { ask, url } = await createServer(database);

/** Every execution has two runs; so many more rows of a table than any request has a use for. */
const BUILDS = 1_500;
/** What a request may read of a table: pages of ten with what belongs to them, of cases that share rows with others. */
const MANY = 600;
/** The page of a red project: of five tasks the last hundred results. */
const OF_RED_TASKS = 1_300;

/** Rows that sessions have read so far, by table; months are one. */
async function read(): Promise<Map<string, number>> {
  const tell = (sql: Sql) => sql`select pg_stat_force_next_flush()`;
  await tell(database.pool);
  await database.begin(tell);
  for (const sql of [database.fast, database.keys, database.pages]) await tell(sql);
  const rows = await beside.pool<{ name: string; rows: number }[]>`
    select regexp_replace(relname, '_(\\d{4}_\\d\\d|default)$', '') as name,
      sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as rows
    from pg_stat_user_tables group by 1`;
  return new Map(rows.map(({ name, rows }) => [name, rows]));
}

/** Tables of which more was read than a request has a use for, at the most of a few times: plans change with the fifth. */
async function tablesReadThrough(
  work: (time: number) => Promise<unknown>,
  many = MANY,
): Promise<Record<string, number>> {
  const readings = new Map<string, number[]>();
  for (let time = 0; time < 7; time++) {
    const before = await read();
    await work(time);
    for (const [name, rows] of await read()) {
      const more = rows - (before.get(name) ?? 0);
      if (more > many) readings.set(name, [...(readings.get(name) ?? []), more]);
    }
  }
  // What was read before may be told late, once; a plan that is kept from the sixth time on reads twice.
  const twice = [...readings].filter(([, more]) => more.length > 1);
  return Object.fromEntries(twice.map(([name, more]) => [name, Math.max(...more)]));
}

/** All sessions tell what they have changed: they do so by themselves within ten seconds. */
async function tellChanges(): Promise<void> {
  // As many at once as there are connections, which hold each of them for a moment.
  const all = (tell: () => Promise<unknown>) => Promise.all(Array.from({ length: 10 }, tell));
  const tell = (sql: Sql) => sql`select pg_stat_force_next_flush(), pg_sleep(0.05)`;
  await all(() => tell(beside.pool));
  await all(() => beside.begin(tell));
}

/** Nobody looks at the tables but who is asked to. */
async function leaveAlone(): Promise<void> {
  const tables = await beside.pool<{ name: string }[]>`
    select oid::regclass::text as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`;
  for (const { name } of tables) await beside.pool.unsafe(`alter table ${name} set (autovacuum_enabled = false)`);
}

let cookie: string;
let executions: string[];
let cases: string[];
let bugs: string[];

beforeAll(async () => {
  await leaveAlone();
  const size = { results: 100 * BUILDS, builds: BUILDS, tasks: 20, bugs: 100 };
  await fill({ database: beside, project, key, url }, size, new Date());
  await leaveAlone();
  cookie = `assay_session=${(await createPerson(beside, { team, role: "owner" })).token}`;
  const { pool } = beside;
  const ids = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);
  executions = ids(await pool<{ id: string }[]>`select id from execution order by id desc limit 7`);
  cases = ids(await pool<{ id: string }[]>`select id from test_case order by number limit 7`);
  bugs = ids(await pool<{ id: string }[]>`select id from bug_report order by number desc limit 7`);
}, 60_000);

const get = (path: (time: number) => string) => async (time: number) => {
  expect((await ask(`GET /projects/${project}${path(time)}`, { key })).status).toBe(200);
};

const look = (path: (time: number) => string) => async (time: number) => {
  const response = await fetch(`${url}/projects/${project}${path(time)}`, { headers: { cookie, accept: "text/html" } });
  await response.text();
  expect(response.status).toBe(200);
};

const idOfLastWeek = firstIdAt(Date.now() - 7 * 86_400_000);
const task = encodeURIComponent(taskOf(1));

const READS: [name: string, work: (time: number) => Promise<void>][] = [
  ["the list of runs", get(() => "/test-runs?limit=10")],
  ["of a task", get(() => `/test-runs?limit=10&task_slug=${task}`)],
  ["of an execution", get((time) => `/test-runs?limit=10&execution_id=${executions[time]}`)],
  [
    "of a task in an execution",
    get((time) => `/test-runs?limit=10&execution_id=${executions[time]}&task_slug=${task}`),
  ],
  ["the catalogue", get(() => "/test-cases?limit=10")],
  ["a case", get((time) => `/test-cases/${cases[time]}`)],
  ["its history", get((time) => `/test-cases/${cases[time]}/results?limit=10`)],
  ["its history on a branch", get((time) => `/test-cases/${cases[time]}/results?limit=2&status=passed&branch=main`)],
  ["a comparison", get((time) => `/executions/${executions[time]}/comparison`)],
  ["the bugs", get(() => "/bug-reports?limit=10")],
  ["the bugs, sorted", get(() => "/bug-reports?limit=10&sort=occurrences")],
  ["a bug", get((time) => `/bug-reports/${bugs[time]}`)],
  ["the executions", get(() => "/executions?limit=10")],
  ["those that failed on a branch", get(() => "/executions?limit=10&branch=main&status=failed")],
  ["an execution", get((time) => `/executions/${executions[time]}`)],
  ["its failures by cause", get((time) => `/executions/${executions[time]}/failures`)],
];

const MAIN = { branch: "main", isDefault: true, sample: false };
const STATE: typeof READS = [
  [
    "the newest executions, of the default branch and of others",
    async () =>
      void (await selectOverviewBuilds(database.pool, project, MAIN, { newest: 16, ofBranch: 10, heads: 10 })),
  ],
  ["the tests of a person", async () => void (await selectUnhealthyOf(database.pool, project, ["ada"], 5))],
  ["the bugs of a person", async () => void (await selectUrgentBugs(database.pool, project, ["ada"], 3))],
  ["the last of them that has ended", async () => void (await selectLastBuild(database.pool, project, MAIN))],
  ["how that stands", async () => void (await selectBranchState(database.pool, project, MAIN))],
  ["what is new", async () => void (await selectNewFailures(database.pool, project, MAIN, idOfLastWeek, 5))],
];

const PAGES: [name: string, work: (time: number) => Promise<void>][] = [
  ["the page of executions", look(() => "/executions")],
  ["the page of an execution", look((time) => `/executions/${executions[time]}`)],
  ["the page of a comparison", look((time) => `/executions/${executions[time]}/comparison`)],
  ["the page of tests", look(() => "/tests")],
  ["the page of bugs", look(() => "/bugs")],
  ["the page of a bug", look((time) => `/bugs/${bugs[time]}`)],
];

describe("without statistics", () => {
  test.each(READS)("%s is read by an index that serves it", async (_, work) => {
    expect(await tablesReadThrough(work)).toEqual({});
  });
});

describe("once the tables have been looked at", () => {
  test("which those are that have outgrown what is known of them, until they have again", async () => {
    await tellChanges();
    expect(await analyzeOutgrown(beside)).toBeGreaterThan(10);
    await tellChanges();
    expect(await analyzeOutgrown(beside)).toBe(0);
    await beside.pool`insert into red_task (project_id, branch, task_slug) select ${project}, 'b', n::text from generate_series(1, 20000) n`;
    await tellChanges();
    expect(await analyzeOutgrown(beside)).toBe(1);
  });

  test("not while their rows are still being written: they would be taken for empty", async () => {
    await beside.begin(async (sql) => {
      await sql`insert into retry_backoff (loop, item, tries, stalls, due_at) select 'counting', n::text, 1, 0, now() from generate_series(1, 20000) n`;
      await tellChanges();
      expect(await analyzeOutgrown(beside)).toBe(0);
    });
    await tellChanges();
    expect(await analyzeOutgrown(beside)).toBe(1);
    await beside.pool`delete from retry_backoff`;
  });

  test.each([...READS, ...STATE, ...PAGES])("%s is read by an index that serves it", async (_, work) => {
    expect(await tablesReadThrough(work)).toEqual({});
  });

  test.each(["main", "feature/1"])(
    "an upload of %s reads what it changes, and so does its counting",
    async (branch) => {
      const upload = async (time: number) => {
        const commit = Bun.SHA256.hash(branch + time, "hex").slice(0, 40);
        const parameters = new URLSearchParams({ task_slug: taskOf(1), branch, commit });
        const { status } = await ask(`POST /projects/${project}/test-runs?${parameters}`, { key, body: reportOf(1) });
        expect(status).toBe(201);
        await countAll(database);
      };
      // Fifty cases, each of them read and written a few times, and no bugs but theirs.
      await countAll(database);
      expect(await tablesReadThrough(upload, 250)).toEqual({});
    },
  );

  test("the uploads of a build, in which nothing fails, read what they change", async () => {
    const body = reportOf(1).replace(/<failure[^>]*>[^]*?<\/failure>|<failure[^>]*\/>/g, "");
    const upload = async (time: number) => {
      // Its first report, and one that meets it.
      for (const task of [taskOf(1), taskOf(2)]) {
        const parameters = new URLSearchParams({
          task_slug: task,
          branch: "feature/2",
          execution_key: `build ${time}`,
        });
        const { status } = await ask(`POST /projects/${project}/test-runs?${parameters}`, { key, body });
        expect(status).toBe(201);
      }
      await countAll(database);
    };
    // The cases of the second task are new.
    await upload(7);
    const { case_health: _, ...others } = await tablesReadThrough(upload, 400);
    // A tenth of what is known of cases is changed: here all of it may be looked through for that.
    expect(others).toEqual({});
  });

  test("the page of a red project is read by an index that serves it", async () => {
    expect(
      await tablesReadThrough(
        look(() => ""),
        OF_RED_TASKS,
      ),
    ).toEqual({});
  });

  test("the page of the project does not go through the executions of days that are over", async () => {
    await beside.pool`
      insert into execution (project_id, id, status, trigger, branch, timeout_minutes, created_at, completed_at)
      select ${project}, (left(${firstIdAt(Date.now() - 3 * 86_400_000)}::text, 24) || lpad(n::text, 12, '0'))::uuid, 'passed', 'upload', 'main',
        30, now() - interval '3 days', now() - interval '3 days'
      from generate_series(1, 2000) n`;
    const page = look(() => "");
    await page(0);
    expect(await tablesReadThrough(page, OF_RED_TASKS)).toEqual({});
  });

  test("an upload with cases that have moved reads names, and no results but its own", async () => {
    const upload = async (time: number) => {
      const body = reportOf(2).replaceAll("part.test.ts", `moved_${time}.test.ts`);
      const path = `/projects/${project}/test-runs?task_slug=${taskOf(2)}&execution_key=moved-${time}&branch=main`;
      for (const answer of [201, 200]) expect((await ask(`POST ${path}`, { key, body })).status).toBe(answer);
      await countAll(database);
    };
    const { rows } = await beside.pool<{ rows: number }[]>`select count(*)::int as rows from test_case`.then(
      ([one]) => one!,
    );
    expect(await tablesReadThrough(upload, 4 * rows)).toEqual({});
  });

  test("an upload with a new case looks for its name, and not through all cases", async () => {
    const upload = async (time: number) => {
      const body = reportOf(2).replace('number 7"', `number 7, ${time}"`);
      const path = `/projects/${project}/test-runs?task_slug=${taskOf(2)}&branch=feature/1`;
      expect((await ask(`POST ${path}`, { key, body })).status).toBe(201);
    };
    expect(await tablesReadThrough(upload)).toEqual({});
  });

  test("the run of a frequent task in an execution is found by both, also where most tasks are rare", async () => {
    const insert = (taskSlug: Fragment, from: Fragment) => beside.pool`
      insert into test_run (project_id, id, execution_id, task_slug, status, attempt, verdict, completed_at, health_applied)
      select ${project}, gen_random_uuid(), id, ${taskSlug}, 'passed', 1, 'passed', now(), true from ${from}`;
    const { pool } = beside;
    await insert(pool`'frequent'`, pool`execution where id <> ${executions[0]!}`);
    await insert(pool`'rare ' || random()`, pool`execution, generate_series(1, 20000) n where id = ${executions[0]!}`);
    await pool`analyze test_run`;
    const upload = async (time: number) => {
      const path = `/projects/${project}/test-runs?task_slug=frequent&commit=${time}abcdef0&branch=main`;
      expect((await ask(`POST ${path}`, { key, body: reportOf(3) })).status).toBe(201);
      await countAll(database);
    };
    expect(await tablesReadThrough(upload)).toEqual({});
  });

  test("a commit is looked up once, and not once for each length of its name", async () => {
    const rows = await beside.pool<{ id: string }[]>`
      select r.id from execution e join test_run r on r.project_id = e.project_id and r.execution_id = e.id
      where length(e.commit) = 40 order by r.id limit 20`;
    expect(rows.length).toBe(20);
    const scans = async (): Promise<number> => {
      await database.pool`select pg_stat_force_next_flush()`;
      const [row] = await beside.pool<{ scans: number }[]>`
        select idx_scan::int as scans from pg_stat_user_indexes where indexrelname = 'execution_by_commit'`;
      return row!.scans;
    };
    const before = await scans();
    const ids = rows.map(({ id }) => id);
    await database.begin((sql) => selectContradicted(sql, project, ids));
    expect((await scans()) - before).toBeLessThan(2 * ids.length);
  });
});
