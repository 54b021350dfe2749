/** Results of failed tests in other executions of the same commit. */

import { type Sql, toNumberArray, toTextArray } from "../database/connect.ts";
import { executionsOfCommit } from "./commits.ts";
import { blockOfCase } from "./packing.ts";
import { hostsOf } from "./shards.ts";

/** A test that passed in another execution of the commit. */
export type PassAtCommit = {
  /** The failed result. */
  runId: string;
  number: number;
  /** The newest execution in which it passed. */
  executionId: string;
  key: string | null;
  executionNumber: number;
  branch: string | null;
  /** The machines of its task there, as far as they are known, at most four. */
  hosts: string[];
};

/** Maximum number of other executions of the commit that are searched, the newest ones. */
const MAX_OTHERS = 8;

type Failure = { runId: string; number: number; taskSlug: string };

/** Returns those of the failures whose test passed in another execution of the commit. */
export const selectPassesAtCommit = async (
  sql: Sql,
  projectId: string,
  { id, commit }: { id: string; commit: string | null },
  failures: readonly Failure[],
): Promise<PassAtCommit[]> =>
  commit === null || failures.length === 0
    ? []
    : await sql<PassAtCommit[]>`
        with other as materialized (
          select id from (${executionsOfCommit(sql, projectId, sql`${commit}::text`)}) e
          where id <> ${id} order by id desc limit ${MAX_OTHERS}::int
        ), wanted as (
          select *, ${blockOfCase(sql, sql`number`)} as block from unnest(
            ${toTextArray(failures.map(({ runId }) => runId))}::uuid[], ${toNumberArray(failures.map(({ number }) => number))}::int[],
            ${toTextArray(failures.map(({ taskSlug }) => taskSlug))}::text[]) as f (run_id, number, task_slug)
        )
        select w.run_id as "runId", w.number, e.id as "executionId", e.key, e.number as "executionNumber", e.branch, p.hosts
        from wanted w
        cross join lateral (
          select o.id, ${hostsOf(sql, sql`r`)} as hosts
          from other o
          cross join lateral (
            select project_id, id from test_run
            where project_id = ${projectId} and execution_id = o.id and task_slug = w.task_slug offset 0) r
          cross join lateral (
            select test_cases, statuses from case_result
            where project_id = ${projectId} and run_id = r.id and block = w.block offset 0) b
          where substr(b.statuses, array_position(b.test_cases, w.number), 1) in ('p', 'P')
          order by o.id desc limit 1) p
        cross join lateral (
          select id, key, number, branch from execution where project_id = ${projectId} and id = p.id offset 0) e`;
