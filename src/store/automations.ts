/** Automations of a team, their schedules, and the results of their runs. */

import type { Action } from "../schema/automation_actions.ts";
import type { ActionResult, AutomationRun, RunStatus } from "../schema/automation_runs.ts";
import type { Automation, Conditions, Trigger } from "../schema/automations.ts";
import type { EventType } from "../schema/events.ts";
import type { FailureSummary } from "../schema/failures.ts";
import type { ProjectSummary } from "../schema/integrations.ts";
import { type Sql, type Tx, toJson, toJsonTime, toTextArray } from "../database/connect.ts";
import { isDue } from "../database/retry_backoff.ts";
import { type BugCounts, bugCountsOf, failuresWithBugs, isWanted, type WantedFailures } from "./causes.ts";
import type { FailureRow } from "./failures.ts";
import { isFlaky } from "./health.ts";
import { ownersJson } from "./owners.ts";
import { isLiveBug, isTrustedBuild, waitsForEvent } from "./predicates.ts";

export type AutomationRow = Omit<Automation, "trigger" | "conditions" | "actions"> & {
  trigger: Trigger;
  conditions: Conditions;
  actions: Action[];
};

const columns = (sql: Sql) => sql`
  a.id, a.name, a.enabled, a.trigger, a.conditions, a.actions,
  (select json_build_object('id', r.id, 'status', r.status, 'reason', r.reason,
      'createdAt', ${toJsonTime(sql, sql`r.created_at`)})
    from automation_run r where r.team_id = a.team_id and r.automation_id = a.id order by r.id desc limit 1) as "lastRun",
  a.next_run_at as "nextRunAt", a.created_at as "createdAt", a.updated_at as "updatedAt"`;

/** Newest first; one row more than `limit`. */
export const selectAutomations = (sql: Sql, teamId: string, limit: number, after: string | undefined) => sql<
  AutomationRow[]
>`
  select ${columns(sql)} from automation a
  where a.team_id = ${teamId} ${after === undefined ? sql`` : sql`and a.id < ${after}`}
  order by a.id desc limit ${limit + 1}`;

export const selectAutomation = async (sql: Sql, teamId: string, id: string): Promise<AutomationRow | undefined> => {
  const [row] = await sql<AutomationRow[]>`
    select ${columns(sql)} from automation a where a.team_id = ${teamId} and a.id = ${id}`;
  return row;
};

/** Returns and locks an automation until the end of the transaction. */
export const lockAutomation = async (sql: Tx, teamId: string, id: string): Promise<boolean> =>
  (await sql`select from automation where team_id = ${teamId} and id = ${id} for no key update`).length === 1;

type StoredAutomation = Pick<AutomationRow, "name" | "enabled" | "trigger" | "conditions" | "actions"> & {
  /** Of a schedule that is enabled. */
  nextRunAt: string | null;
};

const eventOf = (trigger: Trigger): EventType | null => ("event" in trigger ? trigger.event : null);

export const insertAutomation = (
  sql: Sql,
  teamId: string,
  id: string,
  { name, enabled, trigger, conditions, actions, nextRunAt }: StoredAutomation,
) => sql`
  insert into automation (team_id, id, name, enabled, trigger, conditions, actions, event, next_run_at)
  values (${teamId}, ${id}, ${name}, ${enabled}, ${toJson(sql, trigger)}, ${toJson(sql, conditions)}, ${toJson(sql, actions)},
    ${eventOf(trigger)}, ${nextRunAt})`;

export const updateAutomation = (
  sql: Sql,
  teamId: string,
  id: string,
  { name, enabled, trigger, conditions, actions, nextRunAt }: StoredAutomation,
) => sql`
  update automation set name = ${name}, enabled = ${enabled}, trigger = ${toJson(sql, trigger)},
    conditions = ${toJson(sql, conditions)}, actions = ${toJson(sql, actions)}, event = ${eventOf(trigger)},
    next_run_at = ${nextRunAt}, updated_at = now()
  where team_id = ${teamId} and id = ${id}`;

export const deleteAutomation = async (sql: Sql, teamId: string, id: string): Promise<string | undefined> =>
  (await sql<{ name: string }[]>`delete from automation where team_id = ${teamId} and id = ${id} returning name`)[0]
    ?.name;

/** Returns the automations that wait for an event and have not run for it, oldest first, and prevents their deletion. */
export const selectAutomationsFor = (
  sql: Tx,
  { teamId, id, type }: { teamId: string; id: string; type: EventType },
) => sql<AutomationRow[]>`
  select ${columns(sql)} from automation a
  where a.team_id = ${teamId} and ${waitsForEvent(sql, sql`a`, sql`${type}::text`)} and a.enabled
    and not exists (
      select from automation_run r
      where r.team_id = a.team_id and r.automation_id = a.id and r.event_id = ${id} and r.cause = 'event')
  order by a.id for key share of a`;

export type DueAutomation = AutomationRow & { teamId: string };

/** Returns and locks a due schedule, skipping those that another server has locked. */
export const lockDueAutomation = async (sql: Tx, now: string): Promise<DueAutomation | undefined> => {
  const [row] = await sql<DueAutomation[]>`
    select a.team_id as "teamId", ${columns(sql)} from automation a
    where a.next_run_at <= ${now} and exists (select from team t where t.id = a.team_id)
      and ${isDue(sql, "schedule", sql`a.id::text`)}
    order by a.next_run_at limit 1 for no key update of a skip locked`;
  return row;
};

export const updateNextRun = (
  sql: Sql,
  { teamId, id }: { teamId: string; id: string },
  nextRunAt: string | null,
) => sql`
  update automation set next_run_at = ${nextRunAt} where team_id = ${teamId} and id = ${id}`;

export type NewAutomationRun = {
  cause: AutomationRun["cause"];
  eventId: string | null;
  eventType: string | null;
  projectId: string | null;
  status: RunStatus;
  reason: string;
  actions: ActionResult[];
};

/** Undefined when the event was handled before. */
export const insertAutomationRun = async (
  sql: Sql,
  teamId: string,
  automationId: string,
  run: NewAutomationRun,
): Promise<AutomationRun | undefined> => {
  const [row] = await sql<AutomationRun[]>`
    insert into automation_run (team_id, automation_id, id, cause, event_id, event_type, project_id, status, reason,
      actions)
    values (${teamId}, ${automationId}, ${Bun.randomUUIDv7()}, ${run.cause}, ${run.eventId}, ${run.eventType},
      ${run.projectId}, ${run.status}, ${run.reason}, ${toJson(sql, run.actions)})
    on conflict do nothing returning ${runColumns(sql)}`;
  return row;
};

const runColumns = (sql: Sql) => sql`
  id, cause, event_id as "eventId", event_type as "eventType", project_id as "projectId", status, reason, actions,
  created_at as "createdAt"`;

/** Newest first; one row more than `limit`. */
export const selectAutomationRuns = (
  sql: Sql,
  teamId: string,
  automationId: string,
  { status, limit }: { status?: RunStatus | undefined; limit: number },
  after: string | undefined,
) => sql<(AutomationRun & { id: string })[]>`
  select ${runColumns(sql)} from automation_run
  where team_id = ${teamId} and automation_id = ${automationId}
    ${status === undefined ? sql`` : sql`and status = ${status}`} ${after === undefined ? sql`` : sql`and id < ${after}`}
  order by id desc limit ${limit + 1}`;

/** Runs that did nothing are many, and forgotten earlier. */
export const deleteOldAutomationRuns = (sql: Sql, skippedDays: number, days: number) => sql`
  delete from automation_run
  where created_at < now() - interval '1 day' * ${skippedDays}::int
    and (status = 'skipped' or created_at < now() - interval '1 day' * ${days}::int)`;

export type TeamProject = { id: string; name: string; defaultBranch: string };

/** Returns the projects of the team, restricted to `ids` if there are any. */
export const selectTeamProjects = async (
  sql: Sql,
  teamId: string,
  ids: readonly string[] | undefined,
): Promise<TeamProject[]> => {
  const rows = await sql<TeamProject[]>`
    select id, name, default_branch as "defaultBranch" from project
    where team_id = ${teamId} ${ids === undefined ? sql`` : sql`and id = any(${toTextArray(ids)}::uuid[])`}
    order by id`;
  return [...rows];
};

/** A failed case with the id of the bug report that it belongs to. */
type FailedCase = Omit<FailureSummary, "knownBug" | "reason"> &
  Pick<FailureRow, "change" | "shares" | "evidence" | "ruleName" | "bugId">;

/** Returns the first wanted failed cases of an execution, new and unclear ones first, and the bug reports of all wanted ones. */
export async function selectFailedCases(
  sql: Sql,
  projectId: string,
  executionId: string,
  wanted: WantedFailures,
  limit: number,
): Promise<{ failedCases: FailedCase[]; bugCounts: BugCounts }> {
  const rows = await sql<(FailedCase & { bugCounts: BugCounts | null })[]>`
    with wanted as materialized (
      select f.run_id, f.number, f.attempt, f.blame, f.change, f.shares, f.evidence, f.rule_name, f.bug_id
      from (${failuresWithBugs(sql, projectId, executionId)}) f
      where ${isWanted(sql, projectId, executionId, wanted)}
    ), shown as materialized (
      select *, row_number() over (order by blame is distinct from 'new', blame is distinct from 'unclear', run_id, number) as index from wanted
      order by index limit ${limit}
    )
    select c.suite, c.name, c.file, left(d.message, 300) as message, ${ownersJson(sql, sql`c`)} as owners, f.blame,
      f.change::float8 as change, f.shares::json as shares, f.evidence::json as evidence, f.rule_name as "ruleName", f.bug_id as "bugId", case when f.index = 1 then ${bugCountsOf(sql, sql`wanted`)} end as "bugCounts"
    from shown f
    join test_case c on c.project_id = ${projectId} and c.number = f.number
    left join case_detail d on d.project_id = ${projectId} and d.run_id = f.run_id and d.test_case = f.number
      and d.attempt = f.attempt
    order by f.index`;
  return {
    failedCases: rows.map(({ bugCounts: _, ...row }) => row),
    bugCounts: rows[0]?.bugCounts ?? {},
  };
}

/** Returns what happened in a project since `since`. */
export const selectSummary = async (sql: Sql, projectId: string, since: string): Promise<ProjectSummary> => {
  const [row] = await sql<Omit<ProjectSummary, "since">[]>`
    select
      (select count(*)::int from execution where project_id = ${projectId} and completed_at >= ${since} and not sample
        and ${isTrustedBuild(sql, sql`execution`)}
        and status in ('passed', 'failed', 'timed_out')) as executions,
      (select count(*)::int from execution where project_id = ${projectId} and completed_at >= ${since} and not sample
        and ${isTrustedBuild(sql, sql`execution`)}
        and status in ('failed', 'timed_out')) as "failedExecutions",
      (select count(*)::int from bug_report b where project_id = ${projectId} and ${isLiveBug(sql, sql`b`)}
        and not sample) as "openBugs",
      (select count(*)::int from case_health h where h.project_id = ${projectId} and ${isFlaky(sql)}) as "flakyCases"`;
  return { ...row!, since };
};
