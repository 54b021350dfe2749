/** The members of a team: invited, given roles, removed; a team that has an owner never loses its last one. */

import type { Client, Invitation, NewAccount, NewInvitation, Role } from "../../schema/accounts.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import type { Passwords } from "../../secrets/passwords.ts";
import { createToken, isToken, tokenDigest } from "../../secrets/tokens.ts";
import {
  deleteInvitation,
  deleteInvitationsOf,
  deleteMembership,
  insertAccount,
  insertInvitation,
  lockInvitation,
  lockTeamForMembers,
  type OpenInvitation,
  selectAccount,
  selectAccountByEmail,
  selectHasOwner,
  selectInvitation,
  selectRole,
  updateRole,
  useInvitation,
} from "../../store/accounts.ts";
import { insertAuditEntry } from "../../store/audit.ts";
import type { Database, Tx } from "../../database/connect.ts";
import { addMember, startSession, type StartedSession, type Stores } from "./accounts.ts";
import { actInTeam, type Person, requireRole, requireSession } from "./audit.ts";

const INVITATION_DAYS = 7;

type Begin = Pick<Database, "begin">;

/** The token is for the link, to be shown once. */
export async function invite(
  { begin }: Begin,
  person: Person,
  teamId: string,
  { role, email }: NewInvitation,
): Promise<Pick<Invitation, "id" | "expiresAt"> & { token: string }> {
  return await actInTeam({ begin }, person, { teamId, needed: "owner" }, async (sql, record) => {
    const { token, digest } = createToken();
    const row = { teamId, role, email: email ?? null, createdBy: person.accountId, digest, days: INVITATION_DAYS };
    const invitation = await insertInvitation(sql, row);
    await record({ action: "invitation.created", subject: email ?? "anyone with the link", details: { role } });
    return { ...invitation, token };
  });
}

export async function revokeInvitation({ begin }: Begin, person: Person, teamId: string, id: string): Promise<void> {
  await actInTeam({ begin }, person, { teamId, needed: "owner" }, async (sql, record) => {
    const { role, email } = (await deleteInvitation(sql, teamId, id)) ?? refuseAbsent();
    await record({ action: "invitation.revoked", subject: email ?? "anyone with the link", details: { role } });
  });
}

/** Undefined when the link is of no use any more, or never was. */
export const findInvitation = async (
  { fast }: Pick<Database, "fast">,
  token: string,
): Promise<OpenInvitation | undefined> =>
  isToken(token) ? await selectInvitation(fast, tokenDigest(token)) : undefined;

const INVITATION_OVER = "This invitation has expired: it was used or revoked, or it is too old. Ask for a new one";

/** Locks an invitation until the end of the transaction. `email` belongs to the account that uses it. */
export async function takeInvitation(sql: Tx, token: string, email: string): Promise<OpenInvitation> {
  const invitation = (isToken(token) && (await lockInvitation(sql, tokenDigest(token)))) || refuse(INVITATION_OVER);
  if (invitation.email !== null && invitation.email !== email)
    refuse(`This invitation is for ${invitation.email}: sign in with that account`);
  await useInvitation(sql, invitation);
  return invitation;
}

/** Accepts an invitation with a new account, which is signed in. */
export async function acceptAsNew(
  database: Stores,
  { passwords }: { passwords: Passwords },
  { token, account, client }: { token: string; account: NewAccount; client: Client },
): Promise<StartedSession & { teamId: string }> {
  const found = (await findInvitation(database, token)) ?? refuse(INVITATION_OVER);
  // Checks before the password is hashed, because hashing is expensive.
  if (found.email !== null && found.email !== account.email) refuse(`This invitation is for ${found.email}`);
  const taken = () => refuse(`An account for ${account.email} already exists. Sign in, then open the invitation again`);
  if (await selectAccountByEmail(database.pool, account.email)) taken();
  const passwordHash = await passwords.hash(account.password);
  return await database.begin(async (sql) => {
    const { teamId, role } = await takeInvitation(sql, token, account.email);
    const accountId = (await insertAccount(sql, { ...account, passwordHash })) ?? taken();
    const actor = { accountId, name: account.email };
    await addMember(sql, { teamId, accountId, email: account.email, role }, actor, "invitation");
    return { ...(await startSession(sql, accountId, client)), teamId };
  });
}

/** Accepts an invitation as a signed-in person. A person who is a member already leaves it unused. */
export async function acceptAsSelf({ begin }: Begin, person: Person, token: string): Promise<{ teamId: string }> {
  return await begin(async (sql) => {
    const actor = await requireSession(sql, person);
    const { teamId, teamName, role } = await takeInvitation(sql, token, actor.name);
    const member = { teamId, accountId: person.accountId, email: actor.name, role };
    if (!(await addMember(sql, member, actor, "invitation"))) refuse(`You are already a member of ${teamName}`);
    return { teamId };
  });
}

/** Refuses if the team has no owner left. */
async function requireOwner(sql: Tx, teamId: string): Promise<void> {
  if (!(await selectHasOwner(sql, teamId))) refuse("A team needs an owner. Make another member an owner first");
}

/** The member's role and address, in a transaction in which no other change of members runs. */
async function lockMember(sql: Tx, teamId: string, accountId: string): Promise<{ role: Role; email: string }> {
  const role = (await selectRole(sql, teamId, accountId)) ?? refuseAbsent();
  return { role, email: (await selectAccount(sql, accountId))!.email };
}

export async function changeRole(
  { begin }: Begin,
  person: Person,
  { teamId, accountId, role }: { teamId: string; accountId: string; role: Role },
): Promise<void> {
  await begin(async (sql) => {
    if ((await lockTeamForMembers(sql, teamId)) === undefined) refuseAbsent();
    const actor = await requireRole(sql, person, teamId, "owner");
    const { role: before, email } = await lockMember(sql, teamId, accountId);
    if (before === role) return;
    await updateRole(sql, teamId, accountId, role);
    if (before === "owner") await requireOwner(sql, teamId);
    if (role !== "owner") await deleteInvitationsOf(sql, teamId, accountId);
    const details = { from: before, to: role };
    await insertAuditEntry(sql, teamId, actor, { action: "member.role_changed", subject: email, details });
  });
}

/** Removes a member for an owner; anyone may remove themselves. */
export async function removeMember(
  { begin }: Begin,
  person: Person,
  { teamId, accountId }: { teamId: string; accountId: string },
): Promise<void> {
  await begin(async (sql) => {
    if ((await lockTeamForMembers(sql, teamId)) === undefined) refuseAbsent();
    const actor = await requireRole(sql, person, teamId, accountId === person.accountId ? "viewer" : "owner");
    const { role, email } = await lockMember(sql, teamId, accountId);
    await deleteMembership(sql, teamId, accountId);
    if (role === "owner") await requireOwner(sql, teamId);
    // A link of theirs would lead them back in.
    await deleteInvitationsOf(sql, teamId, accountId);
    await insertAuditEntry(sql, teamId, actor, { action: "member.removed", subject: email, details: { role } });
  });
}
