/** Tests that an execution has added: the default branch has never run them. */

import type { PlannedTask } from "../schema/planned_tasks.ts";
import { type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { isDue } from "../database/retry_backoff.ts";
import { caseOfResult, lettersOf } from "./packing.ts";
import { isProject } from "./predicates.ts";

/** Plans the checks of an execution that has just begun, for those of its tasks that ask for them. */
export const insertNewTestChecks = (
  sql: Tx,
  projectId: string,
  executionId: string,
  tasks: readonly Pick<PlannedTask, "slug" | "newTests">[],
) => sql`
  insert into new_test_check (project_id, run_id, execution_id, runs)
  select r.project_id, r.id, r.execution_id, asked.runs
  from unnest(
    ${toTextArray(tasks.map(({ slug }) => slug))}::text[],
    ${toNumberArray(tasks.map(({ newTests }) => newTests?.runs ?? null))}::int[]) as asked (slug, runs)
  join test_run r on r.project_id = ${projectId} and r.execution_id = ${executionId} and r.task_slug = asked.slug
  where asked.runs is not null`;

export type NewTestCheck = { projectId: string; executionId: string; runId: string; runs: number };

/** While this number of verifications run in a project, no verifications of new tests begin. */
const MAX_RUNNING_VERIFICATIONS = 40;

/** Selects a check whose execution has ended. */
export const selectNewTestCheck = async (sql: Sql): Promise<NewTestCheck | undefined> => {
  const [row] = await sql<NewTestCheck[]>`
    select n.project_id as "projectId", n.execution_id as "executionId", n.run_id as "runId", n.runs
    from new_test_check n join execution e on e.project_id = n.project_id and e.id = n.execution_id
    where not n.is_done and e.status not in ('queued', 'running') and ${isProject(sql, sql`n.project_id`)}
      and ${isDue(sql, "new_tests", sql`n.run_id::text`)}
      and (
        select count(*) from verification v
        where v.project_id = n.project_id and v.next_check_at is not null) < ${MAX_RUNNING_VERIFICATIONS}
    limit 1`;
  return row;
};

/** False: another server has done it. */
export const lockNewTestCheck = async (sql: Tx, { projectId, runId }: NewTestCheck): Promise<boolean> =>
  (
    await sql`
      select from new_test_check where project_id = ${projectId} and run_id = ${runId} and not is_done for update`
  ).length === 1;

export const updateNewTestCheckDone = (sql: Tx, { projectId, runId }: NewTestCheck) => sql`
  update new_test_check set is_done = true where project_id = ${projectId} and run_id = ${runId}`;

/** Passed test cases of a run that the default branch has never run, as far as its results are counted. */
export const selectNewTests = (sql: Sql, projectId: string, runId: string, limit: number) => sql<
  { id: string; taskSlug: string }[]
>`
  select c.id, c.task_slug as "taskSlug"
  from ${lettersOf(sql, projectId, sql`select id from test_run where project_id = ${projectId} and id = ${runId}`)} result
  cross join lateral ${caseOfResult(sql, projectId, sql`result.number`)} c
  left join case_health h on h.project_id = ${projectId} and h.test_case = result.number
  where result.letter in ('p', 'P') and coalesce(h.main_runs, 0) = 0
  order by result.number limit ${limit}`;

/** Returns those of the test cases that the default branch has run, as far as its results are counted. */
export const selectEstablishedTests = async (
  sql: Sql,
  projectId: string,
  numbers: readonly number[],
): Promise<Set<number>> =>
  new Set(
    (
      await sql<{ number: number }[]>`
        select test_case as number from case_health
        where project_id = ${projectId} and test_case = any(${toNumberArray(numbers)}::int[]) and main_runs > 0`
    ).map(({ number }) => number),
  );
