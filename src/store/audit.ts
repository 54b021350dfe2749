/** The audit log. Entries are added in the transaction that they describe, and never change. */

import type { Actor, AuditEntry, NewAuditEntry } from "../schema/audit.ts";
import { type Sql, toJson, type Tx } from "../database/connect.ts";

export const insertAuditEntry = (
  sql: Tx,
  teamId: string,
  { accountId, name }: Actor,
  { action, subject, details = {} }: NewAuditEntry,
) => sql`
  insert into audit_entry (team_id, id, account_id, actor, action, subject, details)
  values (${teamId}, ${Bun.randomUUIDv7()}, ${accountId}, ${name}, ${action}, ${subject}, ${toJson(sql, details)})`;

/** Inserts an entry for an action of an API key. */
export const insertAuditEntryOfKey = (
  sql: Tx,
  { teamId, id }: { teamId: string; id: string },
  { action, subject, details = {} }: NewAuditEntry,
) => sql`
  insert into audit_entry (team_id, id, actor, action, subject, details)
  select team_id, ${Bun.randomUUIDv7()}, 'key ' || leading_part, ${action}, ${subject}, ${toJson(sql, details)}
  from api_key where team_id = ${teamId} and id = ${id}`;

/** Newest first, one row more than `limit`. */
export const selectAuditEntries = (
  sql: Sql,
  teamId: string,
  { limit, after }: { limit: number; after?: string | undefined },
) => sql<AuditEntry[]>`
  select id, at, account_id as "accountId", actor, action, subject, details from audit_entry
  where team_id = ${teamId} ${after === undefined ? sql`` : sql`and id < ${after}`}
  order by id desc limit ${limit + 1}`;
