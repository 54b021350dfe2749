/** Teams and projects. */

import type { Project, ProjectPatch } from "../schema/projects.ts";
import type { Sql } from "./connect.ts";

const columns = (sql: Sql) => sql`
  id, name, default_branch as "defaultBranch", execution_timeout_minutes as "executionTimeoutMinutes",
  created_at as "createdAt"`;

export const selectProject = async (sql: Sql, projectId: string): Promise<Project | undefined> => {
  const [project] = await sql<Project[]>`select ${columns(sql)} from project where id = ${projectId}`;
  return project;
};

export const updateProject = async (
  sql: Sql,
  projectId: string,
  { name, defaultBranch, executionTimeoutMinutes }: ProjectPatch,
): Promise<Project | undefined> => {
  const [project] = await sql<Project[]>`
    update project set
      name = coalesce(${name ?? null}, name),
      default_branch = coalesce(${defaultBranch ?? null}, default_branch),
      execution_timeout_minutes = coalesce(${executionTimeoutMinutes ?? null}, execution_timeout_minutes)
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
    insert into project (team_id, id, name) select id, ${id}, ${name} from team where id = ${teamId} returning id`;
  return inserted.length === 1 ? id : undefined;
};

export const selectAnyTeam = async (sql: Sql): Promise<boolean> => (await sql`select from team limit 1`).length === 1;
