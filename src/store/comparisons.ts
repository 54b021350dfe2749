/** What has changed between two executions, or between a run and the one before it, case by case. */

import type { CaseRef } from "../schema/case_ref.ts";
import type { Comparison } from "../schema/comparisons.ts";
import type { Sql } from "./connect.ts";

/** How many cases of each kind are listed; all are counted. */
const LISTED = 100;
/** How many executions of a branch are looked through for a run of the same task. */
const LOOKED_THROUGH = 200;

const onBranch = (sql: Sql, branch: string | null) =>
  branch === null ? sql`and branch is null` : sql`and branch = ${branch}`;

/** The newest execution on the branch that passed or failed and is not `executionId` or, on its own branch, after it. */
export const selectBaseline = async (
  sql: Sql,
  projectId: string,
  executionId: string,
  branch: string,
): Promise<string | undefined> => {
  const [row] = await sql<{ id: string }[]>`
    select id from execution
    where project_id = ${projectId} and branch = ${branch} and status in ('passed', 'failed') and id <> ${executionId}
      and (id < ${executionId} or not exists (
        select from execution e where e.project_id = ${projectId} and e.id = ${executionId} and e.branch = ${branch}))
    order by id desc limit 1`;
  return row?.id;
};

const resultsOf = (sql: Sql, projectId: string, executionId: string | undefined) => sql`
  select r.number, r.letter in ('f', 'F') as failed, r.letter in ('p', 'P') as passed
  from test_run t
  join case_result b on b.project_id = t.project_id and b.run_id = t.id,
    lateral unnest(b.test_cases, string_to_array(b.statuses, null)) as r (number, letter)
  where t.project_id = ${projectId} and t.execution_id = ${executionId ?? null}`;

type Kind = keyof Comparison["counts"];

/** Without a baseline everything is new. */
export async function selectComparison(
  sql: Sql,
  projectId: string,
  executionId: string,
  baselineId: string | undefined,
): Promise<Omit<Comparison, "executionId" | "baselineId">> {
  const rows = await sql<(CaseRef & { kind: Kind; total: number })[]>`
    with kinds as (
      select coalesce(mine.number, base.number) as number, kind
      from (${resultsOf(sql, projectId, executionId)}) mine
      full join (${resultsOf(sql, projectId, baselineId)}) base on base.number = mine.number,
        lateral (values
          ('newFailures', mine.failed and base.failed is not true),
          ('fixed', mine.passed and base.failed),
          ('stillFailing', mine.failed and base.failed),
          ('added', base.number is null),
          ('missing', mine.number is null)
        ) as kinds (kind, applies)
      where applies
    ), listed as (
      select number, kind, row_number() over (partition by kind order by number) as place,
        (count(*) over (partition by kind))::int as total
      from kinds
    )
    select l.kind, l.total, c.id as "testCaseId", c.task_slug as "taskSlug", c.suite, c.name, c.file
    from listed l join test_case c on c.project_id = ${projectId} and c.number = l.number
    where l.place <= ${LISTED} order by l.kind, l.number`;
  const of = (wanted: Kind): CaseRef[] =>
    rows.filter(({ kind }) => kind === wanted).map(({ kind: _, total: __, ...ref }) => ref);
  const count = (wanted: Kind) => rows.find(({ kind }) => kind === wanted)?.total ?? 0;
  return {
    counts: {
      newFailures: count("newFailures"),
      fixed: count("fixed"),
      stillFailing: count("stillFailing"),
      added: count("added"),
      missing: count("missing"),
    },
    newFailures: of("newFailures"),
    fixed: of("fixed"),
    stillFailing: of("stillFailing"),
    added: of("added"),
    missing: of("missing"),
  };
}

/**
 * The run that a run of `executionId` is measured by: the newest complete one of its task that is no outage, before it
 * on its branch, else on the project's default branch.
 */
export const selectBaselineRun = async (
  sql: Sql,
  projectId: string,
  executionId: string,
  taskSlug: string,
): Promise<string | undefined> => {
  const [origin] = await sql<{ branch: string | null; defaultBranch: string }[]>`
    select e.branch, p.default_branch as "defaultBranch" from execution e join project p on p.id = e.project_id
    where e.project_id = ${projectId} and e.id = ${executionId}`;
  if (!origin) return undefined;
  const find = async (branch: string | null) => {
    const [row] = await sql<{ id: string }[]>`
      select r.id from (
        select id from execution where project_id = ${projectId} ${onBranch(sql, branch)} and id < ${executionId}
        order by id desc limit ${LOOKED_THROUGH}
      ) e
      join test_run r on r.project_id = ${projectId} and r.execution_id = e.id and r.task_slug = ${taskSlug}
      where r.completed_at is not null and not r.outage order by e.id desc limit 1`;
    return row?.id;
  };
  return (
    (await find(origin.branch)) ?? (origin.branch === origin.defaultBranch ? undefined : find(origin.defaultBranch))
  );
};

export type RunFailure = CaseRef & { isNew: boolean; isQuarantined: boolean };

/** Failed cases of a run that did not fail in the baseline run, or that are quarantined; at most 100 of each. */
export async function selectFailures(
  sql: Sql,
  projectId: string,
  runId: string,
  baselineRunId: string | undefined,
): Promise<{ newFailures: CaseRef[]; quarantinedFailures: CaseRef[] }> {
  const failedIn = (id: string | undefined) => sql`
    select r.number from case_result b,
      lateral unnest(b.test_cases, string_to_array(b.statuses, null)) as r (number, letter)
    where b.project_id = ${projectId} and b.run_id = ${id ?? null} and b.statuses ~ '[fF]' and r.letter in ('f', 'F')`;
  const rows = await sql<RunFailure[]>`
    with failed as (
      select f.number, base.number is null as is_new, q.test_case is not null as is_quarantined
      from (${failedIn(runId)}) f
      left join (${failedIn(baselineRunId)}) base on base.number = f.number
      left join quarantine q on q.project_id = ${projectId} and q.test_case = f.number
        and (q.until is null or q.until > now())
    ), listed as (
      (select * from failed where is_new order by number limit ${LISTED})
      union (select * from failed where is_quarantined order by number limit ${LISTED})
    )
    select c.id as "testCaseId", c.task_slug as "taskSlug", c.suite, c.name, c.file, l.is_new as "isNew",
      l.is_quarantined as "isQuarantined"
    from listed l join test_case c on c.project_id = ${projectId} and c.number = l.number order by l.number`;
  const toRef = ({ isNew: _, isQuarantined: __, ...ref }: RunFailure): CaseRef => ref;
  return {
    newFailures: rows
      .filter(({ isNew }) => isNew)
      .slice(0, LISTED)
      .map(toRef),
    quarantinedFailures: rows
      .filter(({ isQuarantined }) => isQuarantined)
      .slice(0, LISTED)
      .map(toRef),
  };
}
