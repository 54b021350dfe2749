/** Deleted projects and teams: marked first, so that nothing finds them, and removed by the server afterwards. */

import type { Sql, Tx } from "../database/connect.ts";
import { isDue } from "../database/retry_backoff.ts";

/** Returns and locks a project until the end of the transaction. Undefined if there is no such project. */
export const lockProject = async (sql: Tx, id: string): Promise<{ teamId: string; name: string } | undefined> => {
  const [project] = await sql<{ teamId: string; name: string }[]>`
    select team_id as "teamId", name from project where id = ${id} for no key update`;
  return project;
};

/** Locks a team and its projects until the end of the transaction; it gets no further project. */
export const lockTeam = async (sql: Tx, id: string): Promise<{ name: string; projects: number } | undefined> => {
  const [team] = await sql<{ name: string }[]>`select name from team where id = ${id} for no key update`;
  if (!team) return undefined;
  const projects = await sql`select from project where team_id = ${id} order by id for no key update`;
  return { name: team.name, projects: projects.length };
};

export const markProjectDeleted = (sql: Tx, id: string, by: string) => sql`
  update stored_project set deleted_at = now(), deleted_by = ${by} where id = ${id}`;

export const markTeamDeleted = async (sql: Tx, id: string, by: string): Promise<void> => {
  await sql`
    update stored_project set deleted_at = now(), deleted_by = ${by} where team_id = ${id} and deleted_at is null`;
  await sql`update stored_team set deleted_at = now(), deleted_by = ${by} where id = ${id}`;
};

/** A tombstone: the remaining row of a deleted project or team until all its rows are removed. */
export type Tombstone = {
  kind: "project" | "team";
  teamId: string;
  id: string;
  name: string;
  deletedAt: string;
  deletedBy: string;
};

/** The next one whose rows are to be removed: a team after all its projects. */
export const selectTombstone = async (sql: Sql): Promise<Tombstone | undefined> => {
  const [tombstone] = await sql<Tombstone[]>`
    select kind, team_id as "teamId", id, name, deleted_at as "deletedAt", deleted_by as "deletedBy" from (
      select 'project' as kind, p.team_id, p.id, p.name, p.deleted_at, p.deleted_by from stored_project p
      union all
      select 'team', t.id, t.id, t.name, t.deleted_at, t.deleted_by from stored_team t
      where t.deleted_at is not null and not exists (select from stored_project p where p.team_id = t.id)) deleted
    where deleted_at is not null and ${isDue(sql, "deletion", sql`deleted.id::text`)}
    order by kind, deleted_at, id limit 1`;
  return tombstone;
};

const tableOf = ({ kind }: Tombstone) => `stored_${kind}`;

/** Locks the rows to remove. False if another server is removing them, or has removed the last one. */
export const lockTombstone = async (sql: Tx, tombstone: Tombstone): Promise<boolean> =>
  (
    await sql`
      select from ${sql(tableOf(tombstone))} where id = ${tombstone.id} and deleted_at is not null
      for update skip locked`
  ).length === 1;

export const deleteTombstone = (sql: Tx, tombstone: Tombstone) => sql`
  delete from ${sql(tableOf(tombstone))} where id = ${tombstone.id} and deleted_at is not null`;

/** The number of things of a kind; of very many only that there are more than `MAX_COUNTED`. */
export const MAX_COUNTED = 10_000;

const countUpTo = (sql: Sql, rows: ReturnType<Sql>) => sql`
  (select count(*)::int from (${rows} limit ${MAX_COUNTED + 1}) counted)`;

type ProjectContents = Record<"executions" | "testCases" | "bugReports" | "keys" | "shares" | "runners", number>;

export const selectProjectContents = async (sql: Sql, projectId: string): Promise<ProjectContents> => {
  const count = (from: ReturnType<Sql>) => countUpTo(sql, sql`select from ${from} where project_id = ${projectId}`);
  const [row] = await sql<ProjectContents[]>`
    select ${count(sql`execution`)} as executions, ${count(sql`test_case`)} as "testCases",
      ${count(sql`bug_report`)} as "bugReports", ${count(sql`share`)} as shares, ${count(sql`runner`)} as runners,
      ${countUpTo(
        sql,
        sql`select from api_key where project_id = ${projectId} and revoked_at is null and scope is distinct from 'runner'`,
      )} as keys`;
  return row!;
};

type TeamContents = Record<
  "projects" | "members" | "invitations" | "keys" | "environments" | "integrations" | "automations",
  number
>;

export const selectTeamContents = async (sql: Sql, teamId: string): Promise<TeamContents> => {
  const count = (from: ReturnType<Sql>) => countUpTo(sql, sql`select from ${from} where team_id = ${teamId}`);
  const [row] = await sql<TeamContents[]>`
    select ${count(sql`project`)} as projects, ${count(sql`membership`)} as members,
      ${count(sql`environment`)} as environments, ${count(sql`integration`)} as integrations,
      ${count(sql`automation`)} as automations,
      ${countUpTo(
        sql,
        sql`select from invitation where team_id = ${teamId} and used_at is null and expires_at > now()`,
      )} as invitations,
      ${countUpTo(
        sql,
        sql`select from api_key where team_id = ${teamId} and project_id is null and revoked_at is null`,
      )} as keys`;
  return row!;
};
