/** Environments of a team, and their sealed variables. */

import type { Environment, EnvironmentPatch, NewEnvironment } from "../schema/environments.ts";
import { type Sql, type Tx, toTextArray } from "../database/connect.ts";
import { isDue } from "../database/retry_backoff.ts";

const columns = (sql: Sql) => sql`
  e.id, e.slug, e.name, e.base_url as "baseUrl", e.description,
  (select count(*)::int from variable v where v.team_id = e.team_id and v.environment_id = e.id) as "variableCount",
  e.created_at as "createdAt", e.updated_at as "updatedAt"`;

/** Returns environments by slug; one row more than `limit`. */
export const selectEnvironments = (sql: Sql, teamId: string, limit: number, after: string | undefined) => sql<
  Environment[]
>`
  select ${columns(sql)} from environment e
  where e.team_id = ${teamId} ${after === undefined ? sql`` : sql`and e.slug > ${after}`}
  order by e.slug limit ${limit + 1}`;

export const selectEnvironment = async (sql: Sql, teamId: string, id: string): Promise<Environment | undefined> => {
  const [row] = await sql<Environment[]>`
    select ${columns(sql)} from environment e where e.team_id = ${teamId} and e.id = ${id}`;
  return row;
};

/** Undefined when the slug is taken. */
export const insertEnvironment = async (
  sql: Sql,
  teamId: string,
  { slug, name, baseUrl, description }: NewEnvironment,
): Promise<Environment | undefined> => {
  const [row] = await sql<{ id: string }[]>`
    insert into environment (team_id, id, slug, name, base_url, description)
    values (${teamId}, ${Bun.randomUUIDv7()}, ${slug}, ${name ?? slug}, ${baseUrl ?? null}, ${description ?? null})
    on conflict (team_id, slug) do nothing returning id`;
  return row && (await selectEnvironment(sql, teamId, row.id));
};

/** Undefined when the slug is taken, or there is no such environment. */
export const updateEnvironment = async (
  sql: Sql,
  teamId: string,
  id: string,
  { slug, name, baseUrl, description }: EnvironmentPatch,
): Promise<Environment | undefined> => {
  const [row] = await sql<{ id: string }[]>`
    update environment set
      slug = coalesce(${slug ?? null}, slug), name = coalesce(${name ?? null}, name),
      base_url = ${baseUrl === undefined ? sql`base_url` : baseUrl},
      description = ${description === undefined ? sql`description` : description}, updated_at = now()
    where team_id = ${teamId} and id = ${id} and not exists (
      select from environment where team_id = ${teamId} and slug = ${slug ?? null} and id <> ${id})
    returning id`;
  return row && (await selectEnvironment(sql, teamId, row.id));
};

export const deleteEnvironment = async (sql: Sql, teamId: string, id: string): Promise<string | undefined> =>
  (await sql<{ slug: string }[]>`delete from environment where team_id = ${teamId} and id = ${id} returning slug`)[0]
    ?.slug;

/** Whether the environment exists; it is locked until the end of the transaction. */
export const lockEnvironment = async (sql: Tx, teamId: string, id: string): Promise<boolean> =>
  (await sql`select from environment where team_id = ${teamId} and id = ${id} for no key update`).length === 1;

export type VariableRow = { name: string; secret: boolean; sealed: Buffer; updatedAt: string };

/** Returns variables by name; one row more than `limit`. */
export const selectVariables = (
  sql: Sql,
  teamId: string,
  environmentId: string,
  limit: number,
  after: string | undefined,
) => sql<VariableRow[]>`
  select name, secret, sealed, updated_at as "updatedAt" from variable
  where team_id = ${teamId} and environment_id = ${environmentId} ${after === undefined ? sql`` : sql`and name > ${after}`}
  order by name limit ${limit + 1}`;

/** Whether the team of a project has an environment with this slug. */
export const selectHasEnvironment = async (sql: Sql, projectId: string, slug: string): Promise<boolean> =>
  (
    await sql`
      select from environment v join project p on p.team_id = v.team_id
      where p.id = ${projectId} and v.slug = ${slug}`
  ).length === 1;

/** All of an environment, for a runner. */
export const selectVariablesToOpen = (sql: Sql, teamId: string, environmentId: string) => sql<SealedVariable[]>`
  select name, secret, sealed from variable
  where team_id = ${teamId} and environment_id = ${environmentId} order by name`;

type SealedVariable = { name: string; secret: boolean; sealed: Buffer };

/** The rows as they are now, and whether any of them is new. */
export const upsertVariables = async (
  sql: Sql,
  teamId: string,
  environmentId: string,
  variables: readonly SealedVariable[],
): Promise<(VariableRow & { added: boolean })[]> => {
  const rows = await sql<(VariableRow & { added: boolean })[]>`
    insert into variable (team_id, environment_id, name, secret, sealed)
    select ${teamId}, ${environmentId}, name, secret, decode(sealed, 'hex')
    from unnest(${toTextArray(variables.map(({ name }) => name))}::text[],
      ${toTextArray(variables.map(({ secret }) => String(secret)))}::boolean[],
      ${toTextArray(variables.map(({ sealed }) => sealed.toString("hex")))}::text[]) as fresh (name, secret, sealed)
    on conflict (team_id, environment_id, name) do update set
      secret = excluded.secret, sealed = excluded.sealed, updated_at = now()
    returning name, secret, sealed, updated_at as "updatedAt", xmax = 0 as added`;
  return [...rows];
};

export const deleteVariable = async (sql: Sql, teamId: string, environmentId: string, name: string): Promise<boolean> =>
  (
    await sql`
      delete from variable where team_id = ${teamId} and environment_id = ${environmentId} and name = ${name}
      returning name`
  ).length === 1;

export const deleteVariablesExcept = (sql: Sql, teamId: string, environmentId: string, names: readonly string[]) => sql`
  delete from variable
  where team_id = ${teamId} and environment_id = ${environmentId} and name <> all(${toTextArray(names)}::text[])`;

/** Returns the names of the keys with which values are sealed, hexadecimal, with the number of values. */
export const selectSealKeys = (sql: Sql) => sql<{ name: string; count: number }[]>`
  select encode(substring(sealed from 2 for 4), 'hex') as name, count(*)::int as count from variable
  group by 1 order by 1`;

type SealedRow = { teamId: string; environmentId: string; name: string; sealed: Buffer };

/** Returns and locks some rows that were sealed with another key. */
export const lockSealedOtherwise = (sql: Tx, keyName: string, limit: number) => sql<SealedRow[]>`
  select team_id as "teamId", environment_id as "environmentId", name, sealed from variable
  where substring(sealed from 2 for 4) <> decode(${keyName}, 'hex')
    and ${isDue(sql, "sealing", sql`concat_ws(' ', team_id, environment_id, name)`)}
  limit ${limit} for update skip locked`;

/** The value stays the same, and so does the time of its last change. */
export const updateSealed = (sql: Tx, { teamId, environmentId, name, sealed }: SealedRow) => sql`
  update variable set sealed = ${sealed}
  where team_id = ${teamId} and environment_id = ${environmentId} and name = ${name}`;
