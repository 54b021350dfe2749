/** Deliveries to the integrations of a team. */

import type { Dispatch, IntegrationAction, Kind } from "../schema/integration_configs.ts";
import { type DeliveryAttempt, type Delivery, type DeliveryStatus, notSent } from "../schema/deliveries.ts";
import { type Sql, type Tx, thisMoment, toJson } from "../database/connect.ts";
import { deletePortion } from "../database/delete_portion.ts";
import { claimEnd } from "../database/claims.ts";
import { isDue } from "../database/retry_backoff.ts";
import { hasOwner } from "./predicates.ts";
import type { Notification } from "../schema/notifications.ts";
import type { IntegrationClaim } from "./integrations.ts";

const deliveryColumns = (sql: Sql) => sql`
  d.id, d.event_id as "eventId", d.event_type as "eventType", d.action, d.notice ->> 'title' as title, d.status,
  d.attempts, d.due_at as "nextAttemptAt", d.created_at as "createdAt"`;

/** Newest first; one row more than `limit`. */
export const selectDeliveries = (
  sql: Sql,
  teamId: string,
  integrationId: string,
  { status, limit }: { status?: DeliveryStatus | undefined; limit: number },
  after: string | undefined,
) => sql<Delivery[]>`
  select ${deliveryColumns(sql)} from delivery d
  where d.team_id = ${teamId} and d.integration_id = ${integrationId}
    ${status === undefined ? sql`` : sql`and d.status = ${status}`}
    ${after === undefined ? sql`` : sql`and d.id < ${after}`}
  order by d.id desc limit ${limit + 1}`;

export const selectDelivery = async (
  sql: Sql,
  teamId: string,
  integrationId: string,
  id: string,
): Promise<Delivery | undefined> => {
  const [row] = await sql<Delivery[]>`
    select ${deliveryColumns(sql)} from delivery d
    where d.team_id = ${teamId} and d.integration_id = ${integrationId} and d.id = ${id}`;
  return row;
};

type NewDelivery = {
  id: string;
  integrationId: string;
  action: IntegrationAction;
  options: object;
  eventId: string | null;
  /** The project that it is about; undefined: it is about the team. */
  projectId?: string | undefined;
  notice: Notification;
  /** Identifies the external state that the delivery sets. Undefined if the delivery stands on its own. */
  stateKey?: string | undefined;
  /** Null: the caller sends it. */
  due: "now" | null;
};

export const insertDelivery = (
  sql: Sql,
  teamId: string,
  { id, integrationId, action, options, eventId, projectId, notice, stateKey, due }: NewDelivery,
) => sql`
  insert into delivery (team_id, integration_id, id, action, options, event_id, project_id, event_type, notice, state_key,
    due_at)
  values (${teamId}, ${integrationId}, ${id}, ${action}, ${toJson(sql, options)}, ${eventId}, ${projectId ?? null},
    ${notice.type}, ${toJson(sql, notice)}, ${stateKey ?? null}, ${due === "now" ? thisMoment(sql) : null})`;

/** The delivery that an event has caused already for the same state. */
export const selectDeliveryOf = async (
  sql: Sql,
  { teamId, integrationId, stateKey, eventId }: IntegrationId & { stateKey: string; eventId: string },
): Promise<string | undefined> => {
  const [row] = await sql<{ id: string }[]>`
    select id from delivery where team_id = ${teamId} and integration_id = ${integrationId} and state_key = ${stateKey}
      and event_id = ${eventId} limit 1`;
  return row?.id;
};

/** Asks for it again, with all its tries, even if there are newer ones; and for now, even if the integration is paused. */
export async function updateDeliveryDue(sql: Tx, teamId: string, integrationId: string, id: string): Promise<void> {
  await sql`
    update delivery set status = 'pending', due_at = ${thisMoment(sql)}, tries = 0, state_key = null, given_up = false
    where team_id = ${teamId} and integration_id = ${integrationId} and id = ${id}`;
  await sql`update integration set paused_until = null where team_id = ${teamId} and id = ${integrationId}`;
}

export type IntegrationId = { teamId: string; integrationId: string };

const waiting = (sql: Sql, teamId: string, integrationId: string) => sql`
  d.team_id = ${teamId} and d.integration_id = ${integrationId} and d.status = 'pending'`;

/** Whether at least `count` deliveries wait for an integration. */
export const selectIsOverQuota = async (
  sql: Sql,
  teamId: string,
  integrationId: string,
  count: number,
): Promise<boolean> =>
  (await sql`select from delivery d where ${waiting(sql, teamId, integrationId)} offset ${count - 1} limit 1`)
    .length === 1;

/** Maximum number of deliveries dropped at once, so that the cost of a new one does not depend on how many wait. */
const GIVE_UP_BATCH = 100;

/**
 * Drops the oldest messages that wait for an integration, as far as more than `max` deliveries do; other actions stay. Returns their ids,
 * and whether too many wait even so without any message. With `among`, each of several concurrent callers drops one for the delivery that
 * it has added, without waiting: callers see the same excess, and all would drop it. With `alone` it waits for others, so that no two drop
 * the same excess.
 */
export async function dropOldestDeliveries(
  sql: Sql,
  { teamId, integrationId }: IntegrationId,
  max: number,
  { now, how }: { now: Date; how: "among" | "alone" },
): Promise<{ givenUp: string[]; isFull: boolean }> {
  const attempt = notSent(now, `Cancelled: more than ${max} deliveries were waiting, and this was the oldest message`);
  const mine = waiting(sql, teamId, integrationId);
  const [row] = await sql<{ givenUp: string[]; isFull: boolean }[]>`
    -- Ordered and limited so that there is one index to take even while nothing is known of the table.
    with over_quota as materialized (
      select count(*)::int - ${max}::int as excess from (
        select from delivery d where ${mine} order by d.action, d.id limit ${max + GIVE_UP_BATCH}) d),
    oldest as materialized (
      select d.id, d.ctid as place from delivery d where ${mine} and d.action = 'notify' and d.due_at is not null
      order by d.id limit 200),
    chosen as materialized (
      select o.place from oldest o
      ${
        how === "alone"
          ? sql``
          : sql`cross join lateral (
              select from delivery d where d.ctid = o.place and ${mine} for no key update skip locked) d`
      }
      order by o.id limit (select least(greatest(excess, 0), ${how === "alone" ? GIVE_UP_BATCH : 1}::int) from over_quota)),
    given as (
      update delivery d set status = 'failed', due_at = null, given_up = true,
        attempts = (d.attempts::jsonb || ${toJson(sql, attempt)}::jsonb)::json
      where d.ctid = any(array(select place from chosen)) and ${mine} returning d.id)
    select coalesce((select json_agg(id) from given), '[]') as "givenUp",
      excess > 0 and excess > (select count(*) from oldest) as "isFull"
    from over_quota`;
  return row!;
}

/** The request to an engine that has not been sent for an execution, with the error of its last try. */
export const selectWaitingDispatch = async (
  sql: Sql,
  projectId: string,
  executionId: string,
): Promise<{ error: string | null } | undefined> => {
  const [row] = await sql<{ error: string | null }[]>`
    select d.attempts -> -1 ->> 'error' as error from delivery d
    where d.status = 'pending' and d.team_id = (select team_id from project where id = ${projectId})
      and d.action = 'dispatch' and d.options #>> '{execution,id}' = ${executionId}
      and (d.options #>> '{execution,waits}')::boolean
    order by d.id desc limit 1`;
  return row;
};

/** The last dispatch that asked an engine to run this execution; undefined: there was none, or it cannot be asked any more. */
export const selectDispatch = async (
  sql: Sql,
  projectId: string,
  executionId: string,
): Promise<Dispatch | undefined> => {
  const [row] = await sql<Dispatch[]>`
    select d.integration_id as "integrationId", d.options ->> 'workflow' as workflow, d.options ->> 'ref' as ref,
      d.options -> 'inputs' as inputs
    from delivery d join integration i on i.team_id = d.team_id and i.id = d.integration_id and i.enabled
    where d.team_id = (select team_id from project where id = ${projectId})
      and d.action = 'dispatch' and d.options #>> '{execution,id}' = ${executionId}
      and d.options #>> '{execution,projectId}' = ${projectId} and (d.options #>> '{execution,waits}')::boolean
    order by d.id desc limit 1`;
  if (!row) return undefined;
  const { integrationId, workflow, ref, inputs } = row;
  return { integrationId, workflow: workflow ?? undefined, ref: ref ?? undefined, inputs: inputs ?? undefined };
};

/** Ends a pending delivery before anything was sent. */
export const endUnsent = (
  sql: Sql,
  { teamId, integrationId, id }: IntegrationId & { id: string },
  status: "failed" | "inapplicable",
  attempt: DeliveryAttempt,
) => sql`
  update delivery d set status = ${status}, due_at = null,
    attempts = (d.attempts::jsonb || ${toJson(sql, attempt)}::jsonb)::json
  where d.team_id = ${teamId} and d.integration_id = ${integrationId} and d.id = ${id} and d.status = 'pending'`;

/** Fails deliveries that their requester sends itself, and that have not ended: the server died meanwhile. */
export const failCutOff = (sql: Sql, attempt: DeliveryAttempt) => sql`
  update delivery d set status = 'failed', attempts = (d.attempts::jsonb || ${toJson(sql, attempt)}::jsonb)::json
  where d.status = 'pending' and d.due_at is null and d.created_at < now() - interval '2 minutes'`;

/** Integrations that more than `max` deliveries wait for. */
export const selectOverQuota = (sql: Sql, max: number) => sql<IntegrationId[]>`
  select i.team_id as "teamId", i.id as "integrationId" from integration i
  where exists (
    select from delivery d where d.team_id = i.team_id and d.integration_id = i.id and d.status = 'pending'
    offset ${max} limit 1)`;

/** Integrations that have more than `max` deliveries, with the newest that is too many: older ones are so as well. */
export const selectFull = (sql: Sql, max: number, { onlyGivenUp }: { onlyGivenUp: boolean }) => sql<
  (IntegrationId & { floor: string })[]
>`
  select i.team_id as "teamId", i.id as "integrationId", d.id as floor
  from integration i, lateral (
    select id from delivery d where d.team_id = i.team_id and d.integration_id = i.id
    order by d.id desc offset ${max} limit 1) d
  ${
    onlyGivenUp
      ? sql`where exists (
          select from delivery d where d.team_id = i.team_id and d.integration_id = i.id and d.given_up)`
      : sql``
  }`;

/** Deletes some ended deliveries, up to `floor`; returns their number. */
export const deleteDeliveries = (
  sql: Sql,
  { teamId, integrationId, floor }: IntegrationId & { floor: string },
  limit: number,
): Promise<number> => {
  const isOver = sql`
    team_id = ${teamId} and integration_id = ${integrationId} and id <= ${floor} and status <> 'pending'`;
  return deletePortion(sql, "delivery", isOver, { limit, skipsLocked: true });
};

export type DueDelivery = {
  kind: Kind;
  integrationName: string;
  config: Record<string, unknown>;
  sealed: Buffer;
  id: string;
  action: IntegrationAction;
  options: Record<string, unknown>;
  notice: Notification;
  tries: number;
  attempts: DeliveryAttempt[];
};

/** Fails deliveries for which a newer one with the same state key exists. */
export const failSuperseded = (sql: Sql, { teamId, id }: IntegrationClaim, attempt: DeliveryAttempt) => sql`
  update delivery d set status = 'failed', due_at = null,
    attempts = (d.attempts::jsonb || ${toJson(sql, attempt)}::jsonb)::json
  where d.team_id = ${teamId} and d.integration_id = ${id} and d.due_at is not null and d.state_key is not null
    and exists (
      select from delivery n where n.team_id = d.team_id and n.integration_id = d.integration_id
        and n.state_key = d.state_key and n.id > d.id)`;

/** The next one of a claimed integration, the claim extended; undefined when there is none, or the claim is lost. */
export const selectDueDelivery = async (
  sql: Sql,
  { teamId, id, claim }: IntegrationClaim,
): Promise<DueDelivery | undefined> => {
  const [row] = await sql<DueDelivery[]>`
    with mine as (
      update integration set claimed_until = ${claimEnd(sql)}
      where team_id = ${teamId} and id = ${id} and claim = ${claim} and enabled
      returning kind, name, config, sealed)
    select m.kind, m.name as "integrationName", m.config, m.sealed, d.id, d.action, d.options, d.notice, d.tries,
      d.attempts
    from mine m, delivery d
    where d.team_id = ${teamId} and d.integration_id = ${id} and d.due_at is not null and d.due_at <= now()
      and ${hasOwner(sql, sql`d`)} and ${isDue(sql, "delivery", sql`d.id::text`)}
    order by d.due_at, d.id limit 1`;
  return row;
};

/**
 * Stores the result of an attempt. `nextMs`: the delay before the next try; null: it has ended. A delivery that was dropped while it was
 * sent stays dropped, unless the receiver has accepted it or there was nothing to send.
 */
export const updateDelivery = (
  sql: Sql,
  { teamId, integrationId, id }: { teamId: string; integrationId: string; id: string },
  { status, attempts, nextMs }: { status: DeliveryStatus; attempts: readonly DeliveryAttempt[]; nextMs: number | null },
) => sql`
  update delivery set status = ${status}, attempts = ${toJson(sql, attempts)}, tries = tries + 1,
    given_up = false,
    due_at = ${nextMs === null ? sql`null` : sql`now() + interval '1 millisecond' * ${nextMs}::float8`}
  where team_id = ${teamId} and integration_id = ${integrationId} and id = ${id}
    and (status = 'pending' or ${status === "sent" || status === "inapplicable"})`;

/** Gives up deliveries that have waited too long, and deletes old ones. */
export async function deleteOldDeliveries(sql: Sql, giveUpDays: number, keepDays: number): Promise<number> {
  await sql`
    update delivery set status = 'failed', due_at = null
    where status = 'pending' and created_at < now() - interval '1 day' * ${giveUpDays}::int`;
  const { count } = await sql`
    delete from delivery where created_at < now() - interval '1 day' * ${keepDays}::int and due_at is null`;
  return count;
}
