/** Results of failed tests in other executions of the same commit. */

import { type Sql, toNumberArray, toTextArray } from "../database/connect.ts";
import { blockOfCase } from "./packing.ts";
import { isTrustedBuild } from "./predicates.ts";
import { hostsOf } from "./shards.ts";

/** A run of a task in another execution of the commit. */
type OtherRun = {
  runId: string;
  taskSlug: string;
  executionId: string;
  key: string | null;
  executionNumber: number;
  branch: string | null;
  /** The machines of the run, as far as they are known, at most four. */
  hosts: string[];
};

/** The newest other run of the commit in which a failed test passed; `failed` is the failed result. */
export type PassAtCommit = OtherRun & { failed: { runId: string; number: number } };

/** Maximum number of other executions of the commit that are searched, the newest ones. */
const MAX_OTHERS = 8;

/** Newest first. The commit must be named alike: that is quicker than comparing beginnings. Most commits have one execution, so results are looked up separately. */
const selectOtherRuns = (sql: Sql, projectId: string, id: string, commit: string, tasks: readonly string[]) => sql<
  OtherRun[]
>`
  with other as materialized (
    select id, key, number, branch from execution
    where project_id = ${projectId} and commit is not null and lower(commit) = lower(${commit}) and id <> ${id}
      and ${isTrustedBuild(sql, sql`execution`)}
    order by id desc limit ${MAX_OTHERS}::int)
  select r.id as "runId", r.task_slug as "taskSlug", o.id as "executionId", o.key, o.number as "executionNumber", o.branch,
    ${hostsOf(sql, sql`r`)} as hosts
  from other o cross join lateral (
    select project_id, id, task_slug from test_run
    where project_id = ${projectId} and execution_id = o.id and task_slug = any(${toTextArray(tasks)}::text[])
      and passed > 0 offset 0) r
  order by o.id desc`;

type Failure = { runId: string; number: number; taskSlug: string };

/** Returns those of the failures whose test passed in another execution of the commit. */
export async function selectPassesAtCommit(
  sql: Sql,
  projectId: string,
  { id, commit }: { id: string; commit: string | null },
  failures: readonly Failure[],
): Promise<PassAtCommit[]> {
  if (commit === null || failures.length === 0) return [];
  const tasks = [...new Set(failures.map(({ taskSlug }) => taskSlug))];
  const runs = await selectOtherRuns(sql, projectId, id, commit, tasks);
  const pairs = failures.flatMap((failed) =>
    runs.filter(({ taskSlug }) => taskSlug === failed.taskSlug).map((run) => ({ ...run, failed })),
  );
  if (pairs.length === 0) return [];
  const passed = await sql<{ runId: string; number: number }[]>`
    select w.run_id as "runId", w.number
    from unnest(
      ${toTextArray(pairs.map(({ runId }) => runId))}::uuid[], ${toNumberArray(pairs.map(({ failed }) => failed.number))}::int[])
      as w (run_id, number)
    cross join lateral (
      select test_cases, statuses from case_result
      where project_id = ${projectId} and run_id = w.run_id and block = ${blockOfCase(sql, sql`w.number`)} offset 0) b
    where substr(b.statuses, array_position(b.test_cases, w.number), 1) in ('p', 'P')`;
  const hasPassed = new Set(passed.map(({ runId, number }) => `${runId} ${number}`));
  return failures.flatMap(
    (failed) => pairs.find((pair) => pair.failed === failed && hasPassed.has(`${pair.runId} ${failed.number}`)) ?? [],
  );
}
