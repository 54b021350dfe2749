/** The progress of a new project, derived from what has happened in it; and its sample data. */

import type { OnboardingPatch, SampleData, StepId } from "../schema/onboarding.ts";
import { type Sql, type Tx, toNumberArray, toTextArray } from "../database/connect.ts";
import { takeLock } from "../database/locks.ts";
import { discardDays } from "./past_days.ts";
import { isTrustedBuild } from "./predicates.ts";

type OnboardingRow = {
  skipped: StepId[];
  dismissed: boolean;
  /** When each step was done; null: not yet. Sample data does not count. */
  doneAt: Record<StepId, string | null>;
  /** The tool whose JUnit XML the newest run was reported with, although its own format keeps retries; null: none. */
  tool: string | null;
};

export async function selectOnboarding(sql: Sql, projectId: string): Promise<OnboardingRow> {
  const [row] = await sql<
    {
      skipped: StepId[] | null;
      dismissed: boolean | null;
      firstRun: string | null;
      tool: string | null;
      commit: string | null;
      environment: string | null;
      integration: string | null;
      automation: string | null;
      triaged: string | null;
    }[]
  >`
    select to_json(o.skipped) as skipped, o.dismissed,
      (select r.started_at from test_run r
        join execution e on e.project_id = r.project_id and e.id = r.execution_id and not e.sample
          and ${isTrustedBuild(sql, sql`e`)}
        where r.project_id = ${projectId} and r.completed_at is not null order by r.id limit 1) as "firstRun",
      (select a.tool from (
          select r.id from test_run r join execution e on e.project_id = r.project_id and e.id = r.execution_id and not e.sample
            and ${isTrustedBuild(sql, sql`e`)}
          where r.project_id = ${projectId} and r.completed_at is not null order by r.id desc limit 1) r
        join attempt a on a.project_id = ${projectId} and a.run_id = r.id
        order by a.received_at desc limit 1) as tool,
      (select created_at from execution
        where project_id = ${projectId} and commit is not null and branch is not null and not sample
          and ${isTrustedBuild(sql, sql`execution`)}
        order by id limit 1) as commit,
      (select created_at from execution where project_id = ${projectId} and environment is not null and not sample
          and ${isTrustedBuild(sql, sql`execution`)}
        order by id limit 1) as environment,
      (select i.created_at from integration i where i.team_id = p.team_id order by i.id limit 1) as integration,
      (select a.created_at from automation a where a.team_id = p.team_id order by a.id limit 1) as automation,
      (select min(c.changed_at) from bug_change c
        join bug_report b on b.project_id = c.project_id and b.id = c.bug_report_id and not b.sample
        where c.project_id = ${projectId} and c.cause in ('api', 'merge')) as triaged
    from project p left join onboarding o on o.project_id = p.id where p.id = ${projectId}`;
  return {
    skipped: row!.skipped ?? [],
    dismissed: row!.dismissed ?? false,
    tool: row!.tool,
    doneAt: {
      first_run: row!.firstRun,
      report_format: row!.tool === null ? row!.firstRun : null,
      commit_and_branch: row!.commit,
      environment: row!.environment,
      integration: row!.integration,
      automation: row!.automation,
      bug_triaged: row!.triaged,
    },
  };
}

export const upsertOnboarding = (sql: Sql, projectId: string, { skip, dismissed }: OnboardingPatch) => sql`
  insert into onboarding as o (project_id, skipped, dismissed)
  values (${projectId}, ${toTextArray(skip ?? [])}::text[], ${dismissed ?? false})
  on conflict (project_id) do update set
    skipped = ${skip === undefined ? sql`o.skipped` : sql`excluded.skipped`},
    dismissed = ${dismissed === undefined ? sql`o.dismissed` : sql`excluded.dismissed`}`;

/** Updates one step; the others stay as they are. */
export const updateSkipped = (sql: Sql, projectId: string, step: StepId, isSkipped: boolean) => sql`
  insert into onboarding as o (project_id, skipped)
  values (${projectId}, ${toTextArray(isSkipped ? [step] : [])}::text[])
  on conflict (project_id) do update set skipped = array_remove(o.skipped, ${step}) || excluded.skipped`;

/** Uploads of sample data to one project take turns. */
export const lockSample = (sql: Tx, projectId: string) => takeLock(sql, ["sample", projectId]);

export const countSample = async (sql: Sql, projectId: string): Promise<SampleData> => {
  const [row] = await sql<SampleData[]>`
    select (select count(*)::int from execution where project_id = ${projectId} and sample) as executions,
      (select count(*)::int from test_case where project_id = ${projectId} and sample) as "testCases",
      (select count(*)::int from bug_report where project_id = ${projectId} and sample) as "bugReports"`;
  return row!;
};

/** Marks everything that belongs to these executions, or that only they caused. */
export async function markSample(
  sql: Tx,
  projectId: string,
  executionIds: readonly string[],
  taskSlugs: readonly string[],
) {
  const ids = toTextArray(executionIds);
  await sql`update execution set sample = true where project_id = ${projectId} and id = any(${ids}::uuid[])`;
  await discardDays(sql, projectId, executionIds);
  await sql`update test_case set sample = true where project_id = ${projectId} and task_slug = any(${toTextArray(taskSlugs)}::text[])`;
  await sql`update bug_report set sample = true where project_id = ${projectId} and first_execution_id = any(${ids}::uuid[])`;
}

/** Uploads that report to them wait, or are waited for. */
export const lockSampleExecutions = (sql: Tx, projectId: string) => sql`
  select from execution where project_id = ${projectId} and sample order by id for update`;

/** Deletes all sample data, in a transaction that holds the locks of what it deletes. */
export async function deleteSample(sql: Tx, projectId: string): Promise<void> {
  await sql`delete from bug_report where project_id = ${projectId} and sample`;
  const executions = await sql<{ id: string }[]>`select id from execution where project_id = ${projectId} and sample`;
  await discardDays(
    sql,
    projectId,
    executions.map(({ id }) => id),
  );
  await sql`delete from execution where project_id = ${projectId} and sample`;
  const cases = await sql<{ number: number }[]>`
    delete from test_case where project_id = ${projectId} and sample returning number`;
  const numbers = toNumberArray(cases.map(({ number }) => number));
  await sql`delete from case_health where project_id = ${projectId} and test_case = any(${numbers}::int[])`;
  await sql`delete from quarantine where project_id = ${projectId} and test_case = any(${numbers}::int[])`;
  await sql`delete from case_duration where project_id = ${projectId} and test_case = any(${numbers}::int[])`;
  await sql`
    delete from task_duration d where project_id = ${projectId} and not exists (
      select from test_run r where r.project_id = ${projectId} and r.task_slug = d.task_slug)`;
}
