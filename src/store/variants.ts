/** Variants of tasks: their runs in one execution, the results of a test in them, and its test cases in all variants. */

import type { TestCase } from "../schema/test_cases.ts";
import { readVariant } from "../rules/variants.ts";
import { toStoredBlock } from "../rules/untrusted.ts";
import { type Fragment, type Sql, toTextArray } from "../database/connect.ts";
import { healthOf } from "./health.ts";
import { blockOfCase, lastResults } from "./packing.ts";
import { isInCatalogue } from "./predicates.ts";

/** A test, whatever the task. */
export type TestName = { suite: string; name: string; file: string | null };

/** A condition: `c`, a test case, has the name and file of `wanted`. The index of names contains hashes. */
const isNamed = (sql: Sql, wanted: { suite: Fragment; name: Fragment; file: Fragment }): Fragment => sql`
  hashtext(c.suite) = hashtext(${wanted.suite}) and hashtext(c.name) = hashtext(${wanted.name})
  and c.suite = ${wanted.suite} and c.name = ${wanted.name} and c.file is not distinct from ${wanted.file}`;

export type VariantRun = { id: string; taskSlug: string; untrusted: boolean };

/** The runs of an execution that have reported. */
export const selectReportedRuns = (sql: Sql, projectId: string, executionId: string) => sql<VariantRun[]>`
  select id, task_slug as "taskSlug", untrusted from test_run
  where project_id = ${projectId} and execution_id = ${executionId} and attempt > 0`;

/** `index` is that of the test; `letter` as in rules/merge.ts. */
type TestOutcome = { index: number; runId: string; letter: string };

/** The results of tests in runs of one execution; runs without a result of a test are left out. */
export const selectOutcomes = (
  sql: Sql,
  projectId: string,
  runs: readonly VariantRun[],
  tests: readonly TestName[],
) => sql<TestOutcome[]>`
  with run as materialized (
    select * from unnest(
      ${toTextArray(runs.map(({ id }) => id))}::uuid[], ${toTextArray(runs.map(({ taskSlug }) => taskSlug))}::text[]
    ) as run (id, task_slug))
  select (wanted.place - 1)::int as index, run.id as "runId", substr(b.statuses, b.at, 1) as letter
  from unnest(
    ${toTextArray(tests.map(({ suite }) => suite))}::text[], ${toTextArray(tests.map(({ name }) => name))}::text[],
    ${toTextArray(tests.map(({ file }) => file))}::text[]
  ) with ordinality as wanted (suite, name, file, place)
  cross join lateral (
    select number, task_slug from test_case c
    where c.project_id = ${projectId}
      and ${isNamed(sql, { suite: sql`wanted.suite`, name: sql`wanted.name`, file: sql`wanted.file` })} offset 0
  ) c
  join run on run.task_slug = c.task_slug
  cross join lateral (
    select statuses, array_position(test_cases, c.number) as at from case_result
    where project_id = ${projectId} and run_id = run.id
      and block = ${blockOfCase(sql, sql`c.number`)} + ${toStoredBlock(0, runs[0]?.untrusted ?? false)}::int offset 0
  ) b
  where b.at is not null`;

/** A test case in one variant of its task. `passed` and `failed` are among its last results. */
export type CaseVariant = Pick<TestCase, "taskSlug" | "health" | "lastStatus" | "lastRunAt"> & {
  testCaseId: string;
  tags: string[];
  passed: number;
  failed: number;
};

/** Maximum number of recent results counted per variant, excluding skipped results and outages. */
const MAX_RECENT_RESULTS = 50;

/** The test in every variant of its task, itself included, ordered by name of the variant. */
export async function selectCaseVariants(
  sql: Sql,
  projectId: string,
  { taskSlug, suite, name, file }: TestName & { taskSlug: string },
): Promise<CaseVariant[]> {
  const rows = await sql<Omit<CaseVariant, "tags">[]>`
    select c.id as "testCaseId", c.task_slug as "taskSlug", ${healthOf(sql)} as health, h.last_status as "lastStatus",
      h.last_run_at as "lastRunAt", r.passed, r.failed
    from (
      select * from test_case c
      where c.project_id = ${projectId}
        and ${isNamed(sql, { suite: sql`${suite}`, name: sql`${name}`, file: sql`${file}::text` })} offset 0
    ) c left join lateral (
      select * from case_health where project_id = ${projectId} and test_case = c.number offset 0) h on true
    cross join lateral (
      select (count(*) filter (where lower(letter) = 'p'))::int as passed, (count(*) filter (where lower(letter) = 'f'))::int as failed
      from (
        select b.letter
        from (${lastResults(sql, projectId, sql`c.number`, sql`true`, 2 * MAX_RECENT_RESULTS)}) b
        where lower(b.letter) in ('p', 'f') and exists (
          select from test_run
          where project_id = ${projectId} and id = b.run_id and completed_at is not null and not outage offset 0)
        order by b.run_id desc limit ${MAX_RECENT_RESULTS}::int) last) r
    where ${isInCatalogue(sql, sql`c`)}
    order by c.task_slug, c.number`;
  const { task } = readVariant(taskSlug);
  return rows.flatMap((row) => {
    const variant = readVariant(row.taskSlug);
    return variant.task === task ? [{ ...row, tags: variant.tags }] : [];
  });
}
