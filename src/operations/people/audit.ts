/** Actions of a person in the dashboard. The transaction of the action verifies the person and the required role. */

import { isAtLeast, type Role } from "../../schema/accounts.ts";
import type { Actor, NewAuditEntry } from "../../schema/audit.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import { lockRole, selectAccount, selectTeamIdsOf } from "../../store/accounts.ts";
import { insertAuditEntry } from "../../store/audit.ts";
import type { Database, Tx } from "../../database/connect.ts";
import { lockSession } from "../../store/sessions.ts";

/** A person who is signed in. */
export type Person = { accountId: string; sessionId: string };

/** Refuses as absent where the session has ended meanwhile; it does not before the end of the transaction. */
export async function requireSession(sql: Tx, { accountId, sessionId }: Person): Promise<Actor> {
  if (!(await lockSession(sql, accountId, sessionId))) refuseAbsent();
  const account = (await selectAccount(sql, accountId)) ?? refuseAbsent();
  return { accountId, name: account.email };
}

/**
 * Requires a role in a team, which the person keeps until the end of the transaction. A person who is no member does not learn that the
 * team exists.
 */
export async function requireRole(sql: Tx, person: Person, teamId: string, needed: Role): Promise<Actor> {
  const actor = await requireSession(sql, person);
  const role = (await lockRole(sql, teamId, person.accountId)) ?? refuseAbsent();
  if (!isAtLeast(role, needed)) refuse(`This is for ${needed === "owner" ? "owners" : "members"} of the team only`);
  return actor;
}

/**
 * Runs one transaction of a person with a role in a team, with the audit entry of `record`. For forms, whose visitor was looked up before.
 */
export async function actInTeam<T>(
  { begin }: Pick<Database, "begin">,
  person: Person,
  { teamId, needed }: { teamId: string; needed: Role },
  work: (sql: Tx, record: (entry: NewAuditEntry) => Promise<void>, actor: Actor) => Promise<T>,
): Promise<T> {
  return await begin(async (sql) => {
    const actor = await requireRole(sql, person, teamId, needed);
    return await work(sql, async (entry) => void (await insertAuditEntry(sql, teamId, actor, entry)), actor);
  }, teamId);
}

/** Records an event of an account in the audit log of all its teams. */
export async function recordInTeams(sql: Tx, accountId: string, actor: Actor, entry: NewAuditEntry): Promise<void> {
  for (const teamId of await selectTeamIdsOf(sql, accountId)) await insertAuditEntry(sql, teamId, actor, entry);
}
