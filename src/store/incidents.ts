/** Failures of many tests at once that have one cause, and where else it was seen: see rules/incident.ts. */

import {
  BAD_RUN,
  ELSEWHERE_CASES,
  ELSEWHERE_HOURS,
  type FailureFamily,
  MACHINE_HOURS,
  type MachineRun,
  type Sightings,
} from "../rules/incident.ts";
import type { IncidentSign } from "../schema/failures.ts";
import { type Fragment, type Sql, toTextArray, type Tx } from "../database/connect.ts";
import type { JudgedRun } from "./failures.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import { isFromOutsideCode, isOfOtherLine, isTrustedBuild } from "./predicates.ts";

type FamilyRow = Omit<FailureFamily, "sample"> & FailureFamily["sample"];

/** Selects the detail of the last attempt of test case `of` in a run: a retry has undone the failures of the others. */
const lastDetail = (sql: Sql, projectId: string, runId: string, of: Fragment) => sql`
  select * from case_detail
  where project_id = ${projectId} and run_id = ${runId} and test_case = ${of} order by attempt desc limit 1`;

/** The causes that enough of the new failures of a run have in common. */
export async function selectFamilies(
  sql: Tx,
  projectId: string,
  runId: string,
  { cases, files }: { cases: number; files: number },
): Promise<FailureFamily[]> {
  // As joins these would be left to the planner, which may go through all details of the run for each of its failures.
  const rows = await sql<FamilyRow[]>`
    select replace(g.cause::text, '-', '') as cause, g.cases, g.files, c.suite, c.name, c.file, d.kind,
      left(d.message, 5000) as message, left(d.stack, 20000) as stack
    from (
      select d.cause, count(*)::int as cases, count(distinct coalesce(c.file, c.suite))::int as files,
        min(f.test_case) as first
      from failure f
      cross join lateral (${lastDetail(sql, projectId, runId, sql`f.test_case`)}) d
      cross join lateral (
        select file, suite from test_case where project_id = ${projectId} and number = f.test_case offset 0) c
      where f.project_id = ${projectId} and f.run_id = ${runId} and f.blame = 'new' and d.cause is not null
      group by d.cause
      having count(*) >= ${cases} and count(distinct coalesce(c.file, c.suite)) >= ${files}
    ) g
    join test_case c on c.project_id = ${projectId} and c.number = g.first
    cross join lateral (${lastDetail(sql, projectId, runId, sql`g.first`)}) d
    order by g.cases desc`;
  return rows.map(({ cause, cases, files, ...sample }) => ({ cause, cases, files, sample }));
}

/** So many executions are looked through for what happens elsewhere. */
const ELSEWHERE = 60;

/** Where else the cause was seen: on the branch itself, the last time that the task ran there, and on other branches. */
export async function selectSightings(
  sql: Tx,
  projectId: string,
  { executionId, taskSlug, completedAt }: JudgedRun,
  cause: string,
): Promise<Sightings> {
  const at = completedAt === null ? Date.now() : Date.parse(completedAt);
  const says = sql`d.project_id = ${projectId} and d.cause = ${cause}::uuid`;
  const isOther = sql`(
    e.project_id = ${projectId} and e.id < ${firstIdAt(at + 1)} and e.id <> mine.id and e.build_id is null
    and ${isOfOtherLine(sql, sql`e`, sql`mine`)}
    and not coalesce(is_same_commit(e.commit, mine.commit), false))`;
  const [row] = await sql<Sightings[]>`
    with mine as materialized (
      select e.*, (
        select passed + failed from test_run
        where project_id = ${projectId} and execution_id = e.id and task_slug = ${taskSlug}) as ran
      from execution e where e.project_id = ${projectId} and e.id = ${executionId}
    ), before as materialized (
      select e.id, exists (
        select from (
          select count(*) as cases from case_detail d where ${says} and d.run_id = r.id) d
        where d.cases >= ${ELSEWHERE_CASES}) as has
      from execution e cross join lateral (
        select id from test_run
        where project_id = ${projectId} and execution_id = e.id and task_slug = ${taskSlug}
          and completed_at is not null offset 0
      ) r
      where e.project_id = ${projectId} and e.branch = (select branch from mine) and e.id < ${executionId}
        and ${isTrustedBuild(sql, sql`e`)}
        and e.pull_request is not distinct from (select pull_request from mine) and e.build_id is null
      order by e.id desc limit 2
    )
    select
      coalesce((select has from before order by id desc limit 1), false) as before,
      exists (
        select from (
          select e.id from execution e, mine
          where ${isOther} and e.id >= ${firstIdAt(at - ELSEWHERE_HOURS * 3_600_000)}
          order by e.id desc limit ${ELSEWHERE}
        ) e cross join lateral (
          select id from test_run where project_id = ${projectId} and execution_id = e.id and failed > 0 offset 0
        ) r
        where (
          select count(*) from (select from case_detail d where ${says} and d.run_id = r.id limit ${ELSEWHERE_CASES}) d
        ) >= ${ELSEWHERE_CASES}
      ) as elsewhere,
      exists (
        select from (
          select e.id, mine.ran from execution e, mine
          where ${isOther} and e.id > (
            select id from before where (select count(*) = 2 and bool_and(has) from before) order by id limit 1)
          order by e.id desc limit ${ELSEWHERE}
        ) e cross join lateral (
          select id from test_run
          where project_id = ${projectId} and execution_id = e.id and task_slug = ${taskSlug}
            and completed_at is not null and not outage and passed >= e.ran / 2 offset 0
        ) r
        where not exists (select from case_detail d where ${says} and d.run_id = r.id)
      ) as "isOwn"`;
  return row!;
}

/** All failures of a run that have one of these causes, whatever else explains them, are part of an incident. */
export const markIncidents = (sql: Tx, projectId: string, runId: string, causes: readonly string[]) => sql`
  update failure f set blame = 'incident', incident = 'cause', in_a_row = null, flake_rate = null, flaky_at = null
  where f.project_id = ${projectId} and f.run_id = ${runId} and f.blame <> 'quarantined' and f.rule_id is null and exists (
    select from (${lastDetail(sql, projectId, runId, sql`f.test_case`)}) d
    where d.cause = any(${toTextArray(causes)}::uuid[]))`;

/** All new failures of a run but those of these causes are part of an incident. */
export const markOthers = (
  sql: Tx,
  projectId: string,
  runId: string,
  sign: IncidentSign,
  own: readonly Pick<FailureFamily, "cause">[],
) => sql`
  update failure f set blame = 'incident', incident = ${sign}, in_a_row = null, flake_rate = null
  where f.project_id = ${projectId} and f.run_id = ${runId} and f.blame = 'new' and not exists (
    select from (${lastDetail(sql, projectId, runId, sql`f.test_case`)}) d
    where d.cause = any(${toTextArray(own.map(({ cause }) => cause))}::uuid[]))`;

/**
 * Tells whether a machine of the project may be unhealthy at one of these times, in milliseconds since 1970: in the hours before, a
 * run had failures that were put down to its machine, or many tests that passed only on retry.
 */
export const selectMayHaveIllMachine = async (
  sql: Tx,
  projectId: string,
  times: readonly number[],
): Promise<boolean> => {
  const from = firstIdAt(Math.min(...times) - MACHINE_HOURS * 3_600_000);
  const until = firstIdAt(Math.max(...times) + 1);
  const rows = await sql`
    select where exists (
      select from failure
      where project_id = ${projectId} and incident in ('machine', 'retries') and run_id >= ${from} and run_id < ${until})
    or exists (
      select from test_run
      where project_id = ${projectId} and flaky >= 5 and id >= ${from} and id < ${until}
        and ${isTrustedBuild(sql, sql`test_run`)})`;
  return rows.length > 0;
};

/** So many executions of the last hours are looked through. */
const RECENT = 200;

/**
 * The run itself, and the others of the last hours whose machine is known, newest first; null where its own machine is not known,
 * or is one of several.
 */
export async function selectMachineRuns(
  sql: Tx,
  projectId: string,
  { id, completedAt }: Pick<JudgedRun, "id" | "completedAt">,
): Promise<{ mine: MachineRun; others: (MachineRun & { id: string })[] } | null> {
  const at = completedAt === null ? Date.now() : Date.parse(completedAt);
  const rows = await sql<(MachineRun & { id: string })[]>`
    with recent as materialized (
      select e.id as execution_id, e.pull_request, e.branch, r.id, r.failed, r.flaky, m.host,
        greatest(${BAD_RUN.cases}::int, ${BAD_RUN.share}::float8 * (r.passed + r.failed)) as many
      from (
        select id, branch, pull_request from execution
        where project_id = ${projectId} and id >= ${firstIdAt(at - MACHINE_HOURS * 3_600_000)} and id < ${firstIdAt(at + 1)}
          and ${isTrustedBuild(sql, sql`execution`)}
        order by id desc limit ${RECENT}
      ) e cross join lateral (
        select * from test_run
        where project_id = ${projectId} and execution_id = e.id and completed_at is not null and (not outage or id = ${id})
        offset 0
      ) r cross join lateral (
        select min(a.host) as host from (
          select distinct on (shard) host from attempt
          where project_id = ${projectId} and run_id = r.id order by shard, number desc) a
        having count(*) = count(a.host) and count(distinct a.host) = 1
      ) m
    )
    select r.id, r.host = mine.host as "isMine", coalesce(r.pull_request, '') || ' ' || coalesce(r.branch, '') as line,
      r.flaky >= r.many or r.failed >= r.many and (
        select count(*) >= r.many and count(distinct coalesce(c.file, c.suite)) >= ${BAD_RUN.files}
        from failure f join test_case c on c.project_id = f.project_id and c.number = f.test_case
        where f.project_id = ${projectId} and f.run_id = r.id
          and (f.blame in ('new', 'flaky') or f.incident in ('machine', 'retries'))) as "isBad",
      r.failed > 0 and exists (
        select from failure f
        where f.project_id = ${projectId} and f.run_id = r.id and f.incident = 'machine') as "isOfMachine"
    from recent r, (select host from recent where id = ${id}) mine
    order by r.execution_id desc, r.id desc`;
  const mine = rows.find((row) => row.id === id);
  return mine ? { mine, others: rows.filter((row) => row !== mine) } : null;
}

/** The test cases of a run whose failures had a cause outside of the code before this attempt. */
export const selectIncidentCases = async (sql: Tx, projectId: string, runId: string): Promise<Set<number>> => {
  const rows = await sql<{ number: number }[]>`
    select test_case as number from failure f
    where project_id = ${projectId} and run_id = ${runId} and ${isFromOutsideCode(sql, sql`f`)}`;
  return new Set(rows.map(({ number }) => number));
};
