/** Teams and projects. */

import type { Project, ProjectPatch } from "../schema/projects.ts";
import { type Sql, toTextArray, type Tx } from "../database/connect.ts";
import { isLiveBug } from "./predicates.ts";

/** Servers that start at once on an empty database set up one team between them. */
export const lockTeams = (sql: Tx) => sql`lock table team in share row exclusive mode`;

const columns = (sql: Sql) => sql`
  id, name, default_branch as "defaultBranch", to_json(long_lived_branches) as "longLivedBranches", execution_timeout_minutes as "executionTimeoutMinutes",
  retention_days as "retentionDays", gate_share as "gateShare",
  created_at as "createdAt"`;

/** `retentionDays` is null where the project leaves it to the server. */
export type ProjectRow = Omit<Project, "retentionDays"> & { retentionDays: number | null };

export const selectProject = async (sql: Sql, projectId: string): Promise<ProjectRow | undefined> => {
  const [project] = await sql<ProjectRow[]>`select ${columns(sql)} from project where id = ${projectId}`;
  return project;
};

/** A project with its team, as pages need to know it. */
export type EnteredProject = {
  id: string;
  name: string;
  defaultBranch: string;
  teamId: string;
  teamName: string;
  /** Number of open bugs, at most `MOST_BUGS`. */
  openBugs: number;
};

/** Maximum number of open bugs that the navigation counts. */
export const MOST_BUGS = 100;

export const selectProjectRef = async (sql: Sql, projectId: string): Promise<EnteredProject | undefined> => {
  const [row] = await sql<EnteredProject[]>`
    select p.id, p.name, p.default_branch as "defaultBranch", t.id as "teamId", t.name as "teamName", (
      select count(*)::int from (
        select from bug_report bug where bug.project_id = ${projectId} and ${isLiveBug(sql, sql`bug`)}
        limit ${MOST_BUGS}) open) as "openBugs"
    from project p join team t on t.id = p.team_id where p.id = ${projectId}`;
  return row;
};

/** The projects of teams, by name; at most `limit`. */
export const selectTeamProjectRefs = (sql: Sql, teamIds: readonly string[], limit: number) => sql<
  Omit<EnteredProject, "openBugs">[]
>`
  select p.id, p.name, p.default_branch as "defaultBranch", t.id as "teamId", t.name as "teamName"
  from project p join team t on t.id = p.team_id
  where p.team_id = any(${toTextArray(teamIds)}::uuid[]) order by t.name, p.name, p.id limit ${limit}`;

/** The names of projects of a team, by id. Deleted projects are left out. */
export async function selectProjectNames(
  sql: Sql,
  teamId: string,
  ids: readonly string[],
): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map();
  const rows = await sql<{ id: string; name: string }[]>`
    select id, name from project where team_id = ${teamId} and id = any(${toTextArray(ids)}::uuid[])`;
  return new Map(rows.map(({ id, name }) => [id, name]));
}

export type ProjectWithKey = {
  id: string;
  name: string;
  defaultBranch: string;
  createdAt: string;
  /** Null: it has no key. */
  leading: string | null;
  lastUsedAt: string | null;
};

/** Returns projects of a team by name, each with the key that opens it; one row more than `limit`. */
export const selectProjectsWithKeys = (
  sql: Sql,
  teamId: string,
  limit: number,
  after?: { name: string; id: string },
) => sql<ProjectWithKey[]>`
  select p.id, p.name, p.default_branch as "defaultBranch", p.created_at as "createdAt",
    k.leading_part as leading, k.last_used_at as "lastUsedAt"
  from project p left join api_key k on k.project_id = p.id and k.revoked_at is null and k.scope is null
  where p.team_id = ${teamId} ${after === undefined ? sql`` : sql`and (p.name, p.id) > (${after.name}, ${after.id}::uuid)`}
  order by p.name, p.id limit ${limit + 1}`;

export const updateProject = async (
  sql: Sql,
  projectId: string,
  { name, defaultBranch, longLivedBranches, executionTimeoutMinutes, retentionDays, gateShare }: ProjectPatch,
): Promise<ProjectRow | undefined> => {
  const [project] = await sql<ProjectRow[]>`
    update project set
      name = coalesce(${name ?? null}, name),
      default_branch = coalesce(${defaultBranch ?? null}, default_branch),
      long_lived_branches = ${longLivedBranches ? sql`${toTextArray(longLivedBranches)}::text[]` : sql`long_lived_branches`},
      execution_timeout_minutes = coalesce(${executionTimeoutMinutes ?? null}, execution_timeout_minutes),
      retention_days = ${retentionDays === undefined ? sql`retention_days` : retentionDays},
      gate_share = coalesce(${gateShare ?? null}, gate_share)
    where id = ${projectId} returning ${columns(sql)}`;
  return project;
};

export const insertTeam = async (sql: Sql, name: string): Promise<string> => {
  const id = Bun.randomUUIDv7();
  await sql`insert into team (id, name) values (${id}, ${name})`;
  return id;
};

/** Undefined when there is no such team. */
export const insertProject = async (sql: Sql, teamId: string, name: string): Promise<string | undefined> => {
  const id = Bun.randomUUIDv7();
  const inserted = await sql`
    insert into project (team_id, id, name) select id, ${id}, ${name} from (
      -- A deletion of the team waits for this, or this for it.
      select id from team where id = ${teamId} for share) team
    returning id`;
  return inserted.length === 1 ? id : undefined;
};

/** Returns the name that the team had; undefined if there is no such team. */
export async function updateTeamName(sql: Tx, teamId: string, name: string): Promise<string | undefined> {
  const [row] = await sql<{ name: string }[]>`
    update team set name = ${name} from (select name from team where id = ${teamId} for no key update) before
    where id = ${teamId} returning before.name`;
  return row?.name;
}

export const selectTeamExists = async (sql: Sql, teamId: string): Promise<boolean> =>
  (await sql`select from team where id = ${teamId}`).length === 1;

type TeamRow = { id: string; name: string; projects: number; createdAt: string };

/** All of them, oldest first, with the number of their projects. */
export const selectTeams = (sql: Sql) => sql<TeamRow[]>`
  select id, name, (select count(*)::int from project where team_id = team.id) as projects, created_at as "createdAt"
  from team order by created_at, id`;

type ListedProject = { id: string; name: string; teamId: string; team: string; createdAt: string };

/** Returns the projects of one team, or of all teams, by team, oldest first. */
export const selectProjects = (sql: Sql, teamId: string | undefined) => sql<ListedProject[]>`
  select p.id, p.name, t.id as "teamId", t.name as "team", p.created_at as "createdAt"
  from project p join team t on t.id = p.team_id
  ${teamId === undefined ? sql`` : sql`where t.id = ${teamId}`}
  order by t.created_at, t.id, p.created_at, p.id`;

export const selectAnyTeam = async (sql: Sql): Promise<boolean> => (await sql`select from team limit 1`).length === 1;
