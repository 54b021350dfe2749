/** Integrations of a team, and the claims of servers that send to them. */

import type { Integration } from "../schema/integrations.ts";
import type { Kind } from "../schema/integration_configs.ts";
import { type Sql, type Tx, toJson, toJsonTime } from "../database/connect.ts";
import { claimEnd } from "../database/claims.ts";
import { isDue } from "../database/retry_backoff.ts";
import { hasOwner } from "./predicates.ts";

export type IntegrationRow = Omit<Integration, "actions" | "config" | "givenUp"> & {
  givenUp: number;
  /** The config without its secrets. */
  config: Record<string, unknown>;
  sealed: Buffer;
};

const columns = (sql: Sql) => sql`
  i.id, i.kind, i.name, i.enabled, i.disabled_reason as "disabledReason", i.config, i.sealed,
  (select json_build_object('id', d.id, 'status', d.status, 'statusCode', d.attempts -> -1 -> 'statusCode',
      'createdAt', ${toJsonTime(sql, sql`d.created_at`)})
    from delivery d where d.team_id = i.team_id and d.integration_id = i.id order by d.id desc limit 1) as "lastDelivery",
  (select count(*)::int from delivery d
    where d.team_id = i.team_id and d.integration_id = i.id and d.given_up) as "givenUp",
  i.created_at as "createdAt", i.updated_at as "updatedAt"`;

/** Newest first; one row more than `limit`. */
export const selectIntegrations = (
  sql: Sql,
  teamId: string,
  { kind, limit }: { kind?: Kind | undefined; limit: number },
  after: string | undefined,
) => sql<IntegrationRow[]>`
  select ${columns(sql)} from integration i
  where i.team_id = ${teamId} ${kind === undefined ? sql`` : sql`and i.kind = ${kind}`}
    ${after === undefined ? sql`` : sql`and i.id < ${after}`}
  order by i.id desc limit ${limit + 1}`;

export const selectIntegration = async (sql: Sql, teamId: string, id: string): Promise<IntegrationRow | undefined> => {
  const [row] = await sql<IntegrationRow[]>`
    select ${columns(sql)} from integration i where i.team_id = ${teamId} and i.id = ${id}`;
  return row;
};

/** Returns and locks an integration until the end of the transaction. */
export const lockIntegration = async (sql: Tx, teamId: string, id: string): Promise<boolean> =>
  (await sql`select from integration where team_id = ${teamId} and id = ${id} for no key update`).length === 1;

/** Returns whether the integration exists, and prevents its deletion until the end of the transaction. */
export const lockIntegrationForUse = async (sql: Tx, teamId: string, id: string): Promise<boolean> =>
  (await sql`select from integration where team_id = ${teamId} and id = ${id} for key share`).length === 1;

type SealedConfig = { config: Record<string, unknown>; sealed: Buffer };

export const insertIntegration = (
  sql: Sql,
  teamId: string,
  id: string,
  { kind, name, enabled, config, sealed }: SealedConfig & { kind: Kind; name: string; enabled: boolean },
) => sql`
  insert into integration (team_id, id, kind, name, enabled, config, sealed)
  values (${teamId}, ${id}, ${kind}, ${name}, ${enabled}, ${toJson(sql, config)}, ${sealed})`;

/** Updates or enables an integration, and clears its failures. */
export const updateIntegration = (
  sql: Sql,
  teamId: string,
  id: string,
  {
    name,
    enabled,
    sealed,
    config,
  }: Partial<SealedConfig> & { name?: string | undefined; enabled?: boolean | undefined },
) => sql`
  update integration set
    name = coalesce(${name ?? null}, name), enabled = coalesce(${enabled ?? null}, enabled),
    config = ${config ? toJson(sql, config) : sql`config`},
    sealed = coalesce(${sealed ?? null}, sealed),
    disabled_reason = case when ${enabled ?? false} then null else disabled_reason end,
    failures = 0, failing_since = null, paused_until = null, updated_at = now()
  where team_id = ${teamId} and id = ${id}`;

export const deleteIntegration = async (sql: Sql, teamId: string, id: string): Promise<string | undefined> =>
  (await sql<{ name: string }[]>`delete from integration where team_id = ${teamId} and id = ${id} returning name`)[0]
    ?.name;

/** An integration that only this server sends to, until the claim ends. */
export type IntegrationClaim = { teamId: string; id: string; claim: string };

/** Claims unclaimed integrations with something to send, the ones that have waited longest first. */
export const claimIntegrations = async (sql: Sql, claim: string, limit: number): Promise<IntegrationClaim[]> => {
  const rows = await sql<IntegrationClaim[]>`
    with chosen as (
      select i.team_id, i.id from integration i
      where i.enabled and (i.paused_until is null or i.paused_until <= now())
        and (i.claimed_until is null or i.claimed_until <= now())
        and ${isDue(sql, "integration", sql`i.id::text`)}
        and exists (
          select from delivery d
          where d.team_id = i.team_id and d.integration_id = i.id and d.due_at is not null and d.due_at <= now()
            and ${hasOwner(sql, sql`d`)} and ${isDue(sql, "delivery", sql`d.id::text`)})
      order by i.claimed_until nulls first limit ${limit} for no key update skip locked)
    update integration i set claim = ${claim}, claimed_until = ${claimEnd(sql)}
    from chosen where i.team_id = chosen.team_id and i.id = chosen.id
    returning i.team_id as "teamId", i.id, i.claim`;
  return [...rows];
};

export const extendClaim = (sql: Sql, { teamId, id, claim }: IntegrationClaim) => sql`
  update integration set claimed_until = ${claimEnd(sql)}
  where team_id = ${teamId} and id = ${id} and claim = ${claim}`;

/** So that others need not wait for the end of the claim. */
export const releaseIntegration = (sql: Sql, { teamId, id, claim }: IntegrationClaim) => sql`
  update integration set claim = null, claimed_until = null
  where team_id = ${teamId} and id = ${id} and claim = ${claim}`;

/** Records that the receiver was reached. */
export const markIntegrationSound = (sql: Tx, teamId: string, id: string) => sql`
  update integration set failures = 0, failing_since = null, paused_until = null
  where team_id = ${teamId} and id = ${id} and (failures > 0 or failing_since is not null or paused_until is not null)`;

/** Records that the receiver was not reached; returns for how long it has failed. */
export async function countFailure(
  sql: Tx,
  teamId: string,
  id: string,
): Promise<{ failures: number; failingForMs: number } | undefined> {
  const [row] = await sql<{ failures: number; failingForMs: number }[]>`
    update integration set failures = failures + 1, failing_since = coalesce(failing_since, now())
    where team_id = ${teamId} and id = ${id}
    returning failures, (extract(epoch from now() - failing_since) * 1000)::float8 as "failingForMs"`;
  return row;
}

export const pauseIntegration = (sql: Tx, teamId: string, id: string, ms: number) => sql`
  update integration set paused_until = now() + interval '1 millisecond' * ${ms}::float8
  where team_id = ${teamId} and id = ${id}`;

/** False when it was disabled before. */
export const disableIntegration = async (sql: Tx, teamId: string, id: string, reason: string): Promise<boolean> =>
  (
    await sql`
      update integration set enabled = false, disabled_reason = ${reason}, updated_at = now()
      where team_id = ${teamId} and id = ${id} and enabled returning id`
  ).length === 1;

/** The names of the keys that have sealed any secrets, hexadecimal, with how many. */
export const selectIntegrationSealKeys = (sql: Sql) => sql<{ name: string; count: number }[]>`
  select encode(substring(sealed from 2 for 4), 'hex') as name, count(*)::int as count from integration
  group by 1 order by 1`;

type SealedIntegration = { teamId: string; id: string; sealed: Buffer };

/** Returns and locks some integrations that were sealed with another key. */
export const lockIntegrationsSealedOtherwise = (sql: Tx, keyName: string, limit: number) => sql<SealedIntegration[]>`
  select team_id as "teamId", id, sealed from integration
  where substring(sealed from 2 for 4) <> decode(${keyName}, 'hex')
    and ${isDue(sql, "sealing", sql`concat_ws(' ', team_id, id)`)}
  limit ${limit} for update skip locked`;

export const updateIntegrationSealed = (sql: Tx, { teamId, id, sealed }: SealedIntegration) => sql`
  update integration set sealed = ${sealed} where team_id = ${teamId} and id = ${id}`;
