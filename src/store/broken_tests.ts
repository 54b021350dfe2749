/** The tests that keep a branch red: the failures of the latest results of its red tasks. */

import { type Sql, toTextArray } from "../database/connect.ts";
import type { Blame } from "../schema/failures.ts";
import { rank, selectFailureEvidence } from "./failures.ts";
import { ownersJson } from "./owners.ts";
import { isLiveBug } from "./predicates.ts";

type RedTask = { slug: string; lastExecutionId: string };

type FailingRow = {
  taskSlug: string;
  executionId: string;
  /** The execution in which the task was red. */
  key: string | null;
  number: number;
  branch: string | null;
  commit: string | null;
  buildUrl: string | null;
  runId: string;
  testNumber: number;
  attempt: number;
  testCaseId: string;
  suite: string;
  name: string;
  owners: string[];
  blame: Blame;
  message: string | null;
  bugId: string | null;
  bugNumber: number | null;
  bugAssignee: string | null;
};

export type BrokenTest = FailingRow & {
  /** The execution in which it began to fail; null: unknown, because results that old are not read. */
  sinceExecutionId: string | null;
  sinceCommit: string | null;
  sinceAt: string | null;
  /** The commit that it passed on before. */
  goodCommit: string | null;
};

/** Returns at most `limit` tests of each task, unexplained ones first, in the given order of the tasks. */
export async function selectBrokenTests(
  sql: Sql,
  projectId: string,
  tasks: readonly RedTask[],
  limit: number,
): Promise<BrokenTest[]> {
  if (tasks.length === 0) return [];
  const rows = await sql<FailingRow[]>`
    select t.slug as "taskSlug", e.id as "executionId", e.key, e.number, e.branch, e.commit, e.build_url as "buildUrl",
      r.id as "runId", f.test_case as "testNumber", r.attempt, c.id as "testCaseId", c.suite, c.name, c.owners, f.blame,
      d.message, b.id as "bugId", b.number as "bugNumber", b.assignee as "bugAssignee"
    from unnest(
      ${toTextArray(tasks.map(({ slug }) => slug))}::text[],
      ${toTextArray(tasks.map(({ lastExecutionId }) => lastExecutionId))}::uuid[])
      with ordinality as t (slug, execution_id, place)
    join execution e on e.project_id = ${projectId} and e.id = t.execution_id
    join test_run r on r.project_id = ${projectId} and r.execution_id = e.id and r.task_slug = t.slug
    cross join lateral (
      select test_case, blame, ${rank(sql)} as rank from failure f
      where project_id = ${projectId} and run_id = r.id order by rank, test_case limit ${limit}) f
    cross join lateral (
      select id, suite, name, ${ownersJson(sql, sql`one`)} as owners from test_case one
      where project_id = ${projectId} and number = f.test_case offset 0) c
    left join lateral (
      select left(message, 300) as message from case_detail
      where project_id = ${projectId} and run_id = r.id and test_case = f.test_case and message is not null
      order by attempt desc limit 1) d on true
    left join lateral (
      select bug.id, bug.number, bug.assignee from bug_occurrence o
      join bug_report bug on bug.project_id = ${projectId} and bug.id = o.bug_report_id and ${isLiveBug(sql, sql`bug`)}
      where o.project_id = ${projectId} and o.run_id = r.id and o.test_case = f.test_case
      order by bug.number limit 1) b on true
    order by t.place, f.rank, f.test_case`;
  const byExecution = Map.groupBy(rows, ({ executionId }) => executionId);
  const evidence = await Promise.all(
    [...byExecution].map(([executionId, failures]) =>
      selectFailureEvidence(
        sql,
        projectId,
        executionId,
        failures.map((row) => ({ ...row, number: row.testNumber, deep: true })),
      ),
    ),
  );
  const found = new Map(evidence.flat().map((row) => [`${row.runId} ${row.number}`, row]));
  return rows.map((row) => {
    const { sinceExecutionId, sinceCommit, sinceAt, goodCommit } = found.get(`${row.runId} ${row.testNumber}`)!;
    return { ...row, sinceExecutionId, sinceCommit, sinceAt, goodCommit };
  });
}
