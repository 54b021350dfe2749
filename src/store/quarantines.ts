/** Quarantines that automations begin and end. */

import { numberOfTestCase } from "../rules/test_case_id.ts";
import type { Tx } from "../database/connect.ts";
import { isUsable, onDefaultBranch } from "./baselines.ts";
import { flakeResultsOf, isBroken, isKnownFlaky } from "./health.ts";
import { isActiveQuarantine, isInCatalogue } from "./predicates.ts";

/** The facts that decide whether an automation may quarantine or release a test case. */
export type QuarantineSubject = {
  number: number;
  id: string;
  /** Known as flaky, and not broken. */
  isFlaky: boolean;
  isBroken: boolean;
  flakeFailures: number;
  flakeResults: number;
  /** The letters of `case_health.flaky_signs`. */
  flakySigns: string;
  /** Whether an active quarantine exists. */
  isQuarantined: boolean;
  /** The automation that began the active quarantine; null: none exists, or a person began it. */
  automation: string | null;
};

/** Locks a test case of the catalogue by its exact id. */
export const lockQuarantineSubject = async (
  sql: Tx,
  projectId: string,
  testCaseId: string,
): Promise<QuarantineSubject | undefined> => {
  const [row] = await sql<QuarantineSubject[]>`
    select c.number, c.id, ${isKnownFlaky(sql)} as "isFlaky", coalesce(${isBroken(sql)}, false) as "isBroken",
      coalesce(h.flake_failures, 0) as "flakeFailures", ${flakeResultsOf(sql)} as "flakeResults", coalesce(h.flaky_signs, '') as "flakySigns",
      q.test_case is not null as "isQuarantined", q.automation
    from test_case c
    left join case_health h on h.project_id = c.project_id and h.test_case = c.number
    left join quarantine q on q.project_id = c.project_id and q.test_case = c.number and ${isActiveQuarantine(sql, sql`q`)}
    where c.project_id = ${projectId} and c.number = ${numberOfTestCase(testCaseId)} and c.id = ${testCaseId}
      and ${isInCatalogue(sql, sql`c`)}
    for no key update of c`;
  return row;
};

/** The number of active quarantines of the project that automations began. */
export const countAutomaticQuarantines = async (sql: Tx, projectId: string): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from quarantine q
    where q.project_id = ${projectId} and q.automation is not null and ${isActiveQuarantine(sql, sql`q`)}`;
  return row!.count;
};

/** Maximum number of executions of the default branch that are searched for the runs of tasks. */
const MAX_SUITE_EXECUTIONS = 200;
/** Number of runs of a task among which the largest one counts. */
const MAX_SUITE_RUNS = 20;
/** Results that are older say nothing of the suite. */
const SUITE_DAYS = 30;

/**
 * Returns the number of test cases of the project on the default branch: for each task that of the largest of its last runs, because a run
 * may break off. Test cases that only other branches have do not count, and neither do the former names of renamed ones.
 */
export const selectSuiteSize = async (sql: Tx, projectId: string): Promise<number> => {
  const [row] = await sql<{ size: number }[]>`
    select coalesce(sum(size), 0)::int as size from (
      select max(size) as size from (
        select r.task_slug, r.passed + r.failed + r.skipped as size,
          row_number() over (partition by r.task_slug order by e.id desc) as place
        from (${onDefaultBranch(sql, projectId, sql`true`, MAX_SUITE_EXECUTIONS)}) e cross join lateral (
          select * from test_run r where r.project_id = ${projectId} and r.execution_id = e.id and ${isUsable(sql)}
            and r.completed_at > now() - interval '1 day' * ${SUITE_DAYS}::int offset 0) r
      ) run where place <= ${MAX_SUITE_RUNS}::int group by task_slug) task`;
  return row!.size;
};

/** Replaces a quarantine that has ended. */
export const insertAutomaticQuarantine = (
  sql: Tx,
  projectId: string,
  { testCase, reason, days, automation }: { testCase: number; reason: string; days: number; automation: string },
) => sql`
  insert into quarantine (project_id, test_case, reason, until, automation)
  values (${projectId}, ${testCase}, ${reason}, now() + interval '1 day' * ${days}::int, ${automation})
  on conflict (project_id, test_case) do update set
    reason = excluded.reason, until = excluded.until, automation = excluded.automation, skip = false, created_at = now()`;

export const deleteAutomaticQuarantine = (sql: Tx, projectId: string, testCase: number) => sql`
  delete from quarantine where project_id = ${projectId} and test_case = ${testCase} and automation is not null`;

/** Ends the automatic quarantines of the test cases that are broken now, and returns these. */
export const deleteBrokenQuarantines = (sql: Tx, projectId: string) => sql<
  { teamId: string; id: string; automation: string }[]
>`
  with ended as (
    delete from quarantine q
    using case_health h
    where q.project_id = ${projectId} and q.automation is not null
      and h.project_id = q.project_id and h.test_case = q.test_case and ${isBroken(sql)}
    returning q.test_case, q.automation, q.until)
  select p.team_id as "teamId", c.id, ended.automation from ended
  join project p on p.id = ${projectId}
  join test_case c on c.project_id = p.id and c.number = ended.test_case
  where ${isActiveQuarantine(sql, sql`ended`)}`;
