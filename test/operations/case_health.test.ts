/** Counting many runs at a time says what counting one after the other says. */

import { beforeEach, expect, test } from "bun:test";
import { countSome } from "../../src/operations/health/case_health.ts";
import { BLOCK_SIZE, blockOf } from "../../src/rules/merge.ts";
import { toNumberArray } from "../../src/database/connect.ts";
import { countAll } from "../../src/work/count.ts";
import { isFull } from "../depth.ts";
import { createHarness } from "../harness.ts";

const { acme, addProject, database } = await createHarness({ ownDatabase: true });
const { pool, begin } = database;

let project: string;
beforeEach(async () => void ({ project } = await addProject(acme)));

type Run = {
  id: string;
  executionId: string;
  completedAt: string;
  /** `[letter, milliseconds]` by test_case.number, ascending. */
  results: [number, string, number | null][];
  commit?: string | null;
  branch?: string;
  taskSlug?: string;
  outage?: boolean;
};

const MINUTE = 60_000;
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * MINUTE).toISOString();
const toRun = (run: Omit<Run, "id" | "executionId">): Run => ({
  ...run,
  id: Bun.randomUUIDv7("hex", Date.parse(run.completedAt)),
  executionId: Bun.randomUUIDv7(),
});
const all = (letters: string, from = 1) =>
  [...letters].map((letter, index): [number, string, number | null] => [from + index, letter, null]);

/** As an upload leaves it: complete, and not counted. */
async function insert(projectId: string, run: Run): Promise<void> {
  const { id, executionId, results, commit = null, branch = "main", taskSlug = "unit", outage = false } = run;
  const count = (letters: string) => results.filter(([, letter]) => letters.includes(letter)).length;
  await pool`
    insert into execution (project_id, id, status, trigger, branch, commit, timeout_minutes, created_at)
    values (${projectId}, ${executionId}, 'passed', 'upload', ${branch}, ${commit}, 30, now())`;
  await pool`
    insert into test_run (project_id, id, execution_id, task_slug, status, attempt, passed, failed, skipped, completed_at,
      outage, was_outage, health_applied)
    values (${projectId}, ${id}, ${executionId}, ${taskSlug}, 'passed', 1, ${count("pP")}, ${count("fF")}, ${count("sS")},
      ${run.completedAt}, ${outage}, ${outage}, false)`;
  for (const [number, letter] of results)
    if (letter === "P")
      await pool`insert into flake (project_id, run_id, test_case) values (${projectId}, ${id}, ${number})`;
    else if (letter !== "p" && letter !== "s" && !outage)
      await pool`
        insert into failure (project_id, run_id, test_case, blame, explained, of_many, change, flaky, inherited, outside, evidence)
        values (${projectId}, ${id}, ${number}, 'flaky', 'flaky', false, 0.1, 0.9, 0, 0, '{}')`;
  for (const [block, some] of Map.groupBy(results, ([number]) => blockOf(number)))
    await pool`
      insert into case_result (project_id, run_id, block, test_cases, statuses, durations)
      values (${projectId}, ${id}, ${block}, ${toNumberArray(some.map(([number]) => number))}::text::int[],
        ${some.map(([, letter]) => letter).join("")}, ${toNumberArray(some.map(([, , ms]) => ms))}::text::int[])`;
}

const remembered = async (projectId: string) => [
  ...(await pool<Record<string, unknown>[]>`
    select (to_jsonb(h) - 'project_id' - 'flaky_since')::text as row from case_health h where project_id = ${projectId} order by test_case`),
];
const healthOf = async (number: number) =>
  (await pool`select * from case_health where project_id = ${project} and test_case = ${number}`)[0]!;

/** Numbers from 0 to 1, the same every time. */
function createRandom(seed: number): () => number {
  return () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 8) / 2 ** 24;
  };
}

test.skipIf(!isFull).each([1, 2])(
  "runs counted at once are counted as if one came after the other (%i)",
  async (seed) => {
    const random = createRandom(seed);
    const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
    const failing = Array.from({ length: 150 }, () => pick([0, 0, 0.05, 0.3]));
    const runs = Array.from({ length: 60 }, (_, index) => {
      // Some that have been counted before are newer by far, and some clocks are ahead.
      const completedAt = minutesAgo(index === 5 ? -90 : 400 - 5 * index);
      const results = failing.flatMap((rate, number): Run["results"] => {
        if (random() < 0.2) return [];
        const letter = random() < rate ? pick(["f", "f", "P", "F"]) : random() < 0.02 ? "s" : "p";
        return [[number, letter, random() < 0.3 ? null : Math.floor(random() * 1000)]];
      });
      return toRun({
        ...{ completedAt, results, taskSlug: pick(["unit", "unit", "e2e"]), outage: random() < 0.05 },
        branch: pick(["main", "main", "x"]),
      });
    });
    const others = (await addProject(acme)).project;
    const inOrder = runs.toSorted((a, b) => (a.completedAt < b.completedAt ? -1 : 1));
    for (const run of inOrder) {
      await insert(project, run);
      await countSome(begin, project);
    }
    for (const run of runs) await insert(others, run);
    expect(await countSome(begin, others)).toBe(false);
    const rows = await remembered(project);
    expect(await remembered(others)).toEqual(rows);
    const [sum] = await pool`
    select count(*) filter (where flaky)::int > 20 as flaky, count(*) filter (where flaky_signs like '%r%')::int > 20 as
      retried, count(*) filter (where flaky_signs like '%u%')::int > 20 as unexplained
    from case_health where project_id = ${project}`;
    expect(sum).toEqual({ flaky: true, retried: true, unexplained: true });
  },
);

test("a run of more cases than are in memory at a time is counted as a whole, and so is what contradicts it", async () => {
  const cases = 20 * BLOCK_SIZE + 7;
  const letters = Array.from({ length: cases }, (_, index) => (index % 500 === 499 ? "f" : "p")).join("");
  const commit = "abcdef0";
  await insert(project, toRun({ completedAt: minutesAgo(9), results: all(letters), commit }));
  await countAll(database);
  await insert(project, toRun({ completedAt: minutesAgo(8), results: all("p".repeat(cases)), commit }));
  await countAll(database);
  const [row] = await pool`
    select count(*)::int as cases, min(runs) as runs, sum(failures)::int as failures,
      array_to_json(array_agg(test_case order by test_case) filter (where flaky)) as flaky
    from case_health where project_id = ${project}`;
  expect(row).toEqual({ cases, runs: 2, failures: 5, flaky: [500, 1000, 1500, 2000, 2500] });
});

test("who is told of a case that became flaky is told its counts", async () => {
  await pool`
    insert into test_case (project_id, number, id, identity, task_slug, suite, name, first_seen_at)
    values (${project}, 1, ${Bun.randomUUIDv7()}, ${Bun.randomUUIDv7()}, 'unit', 'suite', 'case', now())`;
  for (const [index, letter] of [..."pppPpppppp"].entries())
    await insert(project, toRun({ completedAt: minutesAgo(60 - index), results: all(letter) }));
  await countAll(database);
  const events = await pool`
    select type, data->'testCase'->'flakeRate' as rate, data->'testCase'->'flakeFailures' as failures,
      data->'testCase'->'flakeResults' as results
    from event where project_id = ${project}`;
  expect([...events]).toEqual([{ type: "test_case.became_flaky", rate: 0.1, failures: 1, results: 10 }]);
});

test("one run in the middle that cannot be counted is put off alone, also when the database only says it takes too long", async () => {
  const runs = Array.from({ length: 9 }, (_, index) =>
    toRun({ completedAt: minutesAgo(60 - index), results: all("pp") }),
  );
  for (const run of runs) await insert(project, run);
  const name = `poison_${crypto.randomUUID().replaceAll("-", "")}`;
  await pool.unsafe(`
    create function ${name}() returns trigger language plpgsql as $$
      begin raise exception 'poison' using errcode = '57014'; end $$;
    create trigger ${name} before update on test_run for each row when (new.id = '${runs[4]!.id}') execute function ${name}()`);
  const left = async () =>
    (await pool<{ id: string }[]>`select id from test_run where project_id = ${project} and not health_applied`).map(
      ({ id }) => id,
    );
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  // After something that took too long the round is over: the rest is counted in the next.
  for (let round = 0; round < 2; round++) await countAll(database, undefined, silent as never);
  expect(await left()).toEqual([runs[4]!.id]);
  expect(
    (await pool`select item, tries, stalls from retry_backoff where loop = 'counting'`).map((row) => ({ ...row })),
  ).toEqual([{ item: runs[4]!.id, tries: 0, stalls: 1 }]);
  expect((await healthOf(1))["runs"]).toBe(8);
  await pool.unsafe(`drop function ${name} cascade`);
  await pool`delete from retry_backoff`;
  await countAll(database);
  expect([await left(), (await healthOf(1))["runs"]]).toEqual([[], 9]);
});

test("a large run is looked up by an index, although the statement was planned when there were a few rows", async () => {
  await pool`truncate case_health`;
  for (const minutes of [30, 20]) {
    await insert(project, toRun({ completedAt: minutesAgo(minutes), results: all("p".repeat(20)) }));
    expect(await countSome(begin, project)).toBe(false);
    await pool`analyze case_health`;
  }
  await insert(project, toRun({ completedAt: minutesAgo(10), results: all("p".repeat(3_000)) }));
  let scanned: unknown;
  await countSome(
    (work) =>
      begin(async (sql) => {
        const value = await work(sql);
        [scanned] = await sql`
          select seq_tup_read::int as rows from pg_stat_xact_user_tables where relname = 'case_health'`;
        return value;
      }),
    project,
  );
  expect(scanned).toEqual({ rows: 0 });
  expect((await remembered(project)).length).toBe(3_000);
});
