/** Accounts of people, their places in teams, invitations, and the tokens that make the first account. */

import type { Invitation, Member, Role } from "../schema/accounts.ts";
import type { Sql, Tx } from "../database/connect.ts";

export type Account = {
  id: string;
  email: string;
  name: string;
  passwordHash: string | null;
  oidcIssuer: string | null;
  createdAt: string;
};

const columns = (sql: Sql) => sql`
  id, email, name, password_hash as "passwordHash", oidc_issuer as "oidcIssuer", created_at as "createdAt"`;

export const selectAnyAccount = async (sql: Sql): Promise<boolean> =>
  (await sql`select from account limit 1`).length === 1;

/** Prevents the creation of accounts until the end of the transaction. */
export const lockAccounts = (sql: Tx) => sql`lock table account in share row exclusive mode`;

export const selectAccount = async (sql: Sql, id: string): Promise<Account | undefined> => {
  const [account] = await sql<Account[]>`select ${columns(sql)} from account where id = ${id}`;
  return account;
};

export const selectAccountByEmail = async (sql: Sql, email: string): Promise<Account | undefined> => {
  const [account] = await sql<Account[]>`select ${columns(sql)} from account where lower(email) = lower(${email})`;
  return account;
};

/** Returns and locks an account until the end of the transaction. */
export const lockAccount = async (sql: Tx, id: string): Promise<Account | undefined> => {
  const [account] = await sql<Account[]>`select ${columns(sql)} from account where id = ${id} for no key update`;
  return account;
};

/** Returns and locks an account by its address. */
export const lockAccountByEmail = async (sql: Tx, email: string): Promise<Account | undefined> => {
  const [account] = await sql<Account[]>`
    select ${columns(sql)} from account where lower(email) = lower(${email}) for no key update`;
  return account;
};

/** Whether the password is still this one; it does not change until the end of the transaction. The lock is shared. */
export const lockPasswordHash = async (sql: Tx, id: string, passwordHash: string): Promise<boolean> =>
  (await sql`select from account where id = ${id} and password_hash = ${passwordHash} for share`).length === 1;

type NewAccountRow = { email: string; name: string; passwordHash: string | null };

/** Undefined when the address has an account. */
export const insertAccount = async (
  sql: Tx,
  { email, name, passwordHash }: NewAccountRow,
): Promise<string | undefined> => {
  const [account] = await sql<{ id: string }[]>`
    insert into account (id, email, name, password_hash)
    values (${Bun.randomUUIDv7()}, ${email}, ${name}, ${passwordHash})
    on conflict (lower(email)) do nothing returning id`;
  return account?.id;
};

export const updateAccountName = async (sql: Sql, id: string, name: string): Promise<boolean> =>
  (await sql`update account set name = ${name} where id = ${id} returning id`).length === 1;

export const updatePasswordHash = (sql: Tx, id: string, passwordHash: string | null) =>
  sql`update account set password_hash = ${passwordHash} where id = ${id}`;

/** A person's identity at an OpenID Connect provider. */
export type OidcIdentity = { issuer: string; subject: string };

export const selectAccountByIdentity = async (
  sql: Sql,
  { issuer, subject }: OidcIdentity,
): Promise<Account | undefined> => {
  const [account] = await sql<Account[]>`
    select ${columns(sql)} from account where oidc_issuer = ${issuer} and oidc_subject = ${subject}`;
  return account;
};

/** False when the account has an identity already. */
export const updateIdentity = async (sql: Tx, id: string, { issuer, subject }: OidcIdentity): Promise<boolean> =>
  (
    await sql`
      update account set oidc_issuer = ${issuer}, oidc_subject = ${subject}
      where id = ${id} and oidc_subject is null returning id`
  ).length === 1;

/** Locks the members of a team and returns its name; undefined if there is no such team. */
export const lockTeamForMembers = async (sql: Tx, teamId: string): Promise<string | undefined> => {
  const [team] = await sql<{ name: string }[]>`select name from team where id = ${teamId} for update`;
  return team?.name;
};

export const selectRole = async (sql: Sql, teamId: string, accountId: string): Promise<Role | undefined> => {
  const [row] = await sql<{ role: Role }[]>`
    select role from membership where team_id = ${teamId} and account_id = ${accountId}`;
  return row?.role;
};

/**
 * Returns and locks a role until the end of the transaction. The team is locked before the membership, as in changes of memberships,
 * because the other order could deadlock.
 */
export const lockRole = async (sql: Tx, teamId: string, accountId: string): Promise<Role | undefined> => {
  await sql`select from team where id = ${teamId} for key share`;
  const [row] = await sql<{ role: Role }[]>`
    select m.role from membership m join team t on t.id = m.team_id
    where m.team_id = ${teamId} and m.account_id = ${accountId} for share of m`;
  return row?.role;
};

export const selectTeamIdsOf = async (sql: Sql, accountId: string): Promise<string[]> => {
  const rows = await sql<{ teamId: string }[]>`
    select team_id as "teamId" from membership where account_id = ${accountId} order by team_id`;
  return rows.map(({ teamId }) => teamId);
};

/** Returns members by name, then address. Their last visit is that of their sessions. */
export const selectMembers = (sql: Sql, teamId: string) => sql<Member[]>`
  select a.id as "accountId", a.email, a.name, m.role,
    (select max(s.last_seen_at) from session s where s.account_id = a.id) as "lastSeenAt"
  from membership m join account a on a.id = m.account_id
  where m.team_id = ${teamId} order by lower(a.name), a.email`;

/** False when the account is a member already. */
export const insertMembership = async (sql: Tx, teamId: string, accountId: string, role: Role): Promise<boolean> =>
  (
    await sql`
      insert into membership (team_id, account_id, role) values (${teamId}, ${accountId}, ${role})
      on conflict do nothing returning team_id`
  ).length === 1;

export const updateRole = (sql: Tx, teamId: string, accountId: string, role: Role) => sql`
  update membership set role = ${role} where team_id = ${teamId} and account_id = ${accountId}`;

export const deleteMembership = (sql: Tx, teamId: string, accountId: string) => sql`
  delete from membership where team_id = ${teamId} and account_id = ${accountId}`;

export const selectHasOwner = async (sql: Tx, teamId: string): Promise<boolean> =>
  (await sql`select from membership where team_id = ${teamId} and role = 'owner' limit 1`).length === 1;

type NewInvitationRow = {
  teamId: string;
  role: Role;
  email: string | null;
  createdBy: string;
  /** Hexadecimal. */
  digest: string;
  days: number;
};

export const insertInvitation = async (
  sql: Tx,
  { teamId, role, email, createdBy, digest, days }: NewInvitationRow,
): Promise<{ id: string; expiresAt: string }> => {
  const [invitation] = await sql<{ id: string; expiresAt: string }[]>`
    insert into invitation (team_id, id, role, email, created_by, digest, expires_at)
    values (${teamId}, ${Bun.randomUUIDv7()}, ${role}, ${email}, ${createdBy}, decode(${digest}, 'hex'),
      now() + ${days}::int * interval '1 day')
    returning id, expires_at as "expiresAt"`;
  return invitation!;
};

/** Returns the invitations that can still be used, newest first. */
export const selectInvitations = (sql: Sql, teamId: string) => sql<Invitation[]>`
  select i.id, i.role, i.email, a.email as "createdBy", i.created_at as "createdAt", i.expires_at as "expiresAt"
  from invitation i join account a on a.id = i.created_by
  where i.team_id = ${teamId} and i.used_at is null and i.expires_at > now() order by i.id desc`;

export type OpenInvitation = { id: string; teamId: string; teamName: string; role: Role; email: string | null };

const openInvitation = (sql: Sql, digest: string) => sql`
  select i.id, i.team_id as "teamId", t.name as "teamName", i.role, i.email
  from invitation i join team t on t.id = i.team_id
  where i.digest = decode(${digest}, 'hex') and i.used_at is null and i.expires_at > now()`;

/** Undefined when it was used or has expired, or there never was one. */
export const selectInvitation = async (sql: Sql, digest: string): Promise<OpenInvitation | undefined> => {
  const [invitation] = await sql<OpenInvitation[]>`${openInvitation(sql, digest)}`;
  return invitation;
};

/** Returns and locks an invitation until the end of the transaction. */
export const lockInvitation = async (sql: Tx, digest: string): Promise<OpenInvitation | undefined> => {
  const [invitation] = await sql<OpenInvitation[]>`${openInvitation(sql, digest)} for no key update of i`;
  return invitation;
};

export const useInvitation = (sql: Tx, { teamId, id }: { teamId: string; id: string }) =>
  sql`update invitation set used_at = now() where team_id = ${teamId} and id = ${id}`;

/** Returns the revoked invitation, or undefined if there is no open invitation with this id. */
export const deleteInvitation = async (
  sql: Tx,
  teamId: string,
  id: string,
): Promise<{ role: Role; email: string | null } | undefined> => {
  const [invitation] = await sql<{ role: Role; email: string | null }[]>`
    delete from invitation where team_id = ${teamId} and id = ${id} and used_at is null returning role, email`;
  return invitation;
};

/** Deletes open invitations of a person who may no longer invite. */
export const deleteInvitationsOf = (sql: Tx, teamId: string, createdBy: string) => sql`
  delete from invitation where team_id = ${teamId} and created_by = ${createdBy} and used_at is null`;

/** Used and expired ones. */
export const deleteOldInvitations = (sql: Sql, days: number) => sql`
  delete from invitation
  where least(coalesce(used_at, expires_at), expires_at) < now() - ${days}::int * interval '1 day'`;

/** A start that is repeated for ever leaves no more tokens than these. */
const KEEP_SETUP_TOKENS = 20;
const SETUP_TOKEN_DAYS = 7;

export const insertSetupToken = async (sql: Tx, digest: string): Promise<void> => {
  await sql`insert into setup_token (digest) values (decode(${digest}, 'hex'))`;
  await sql`
    delete from setup_token where digest in (
      select digest from setup_token order by created_at desc, digest offset ${KEEP_SETUP_TOKENS})`;
};

export const selectIsSetupToken = async (sql: Sql, digest: string): Promise<boolean> =>
  (
    await sql`
      select from setup_token where digest = decode(${digest}, 'hex')
        and created_at > now() - ${SETUP_TOKEN_DAYS}::int * interval '1 day'
        and not exists (select from account)`
  ).length === 1;

export const deleteSetupTokens = (sql: Tx) => sql`delete from setup_token`;

type ListedAccount = {
  id: string;
  email: string;
  name: string;
  role: Role;
  /** Whether it can sign in with a password. */
  password: boolean;
  createdAt: string;
  lastSeenAt: string | null;
};

/** The members of a team, for the command line. */
export const selectAccountsOfTeam = (sql: Sql, teamId: string) => sql<ListedAccount[]>`
  select a.id, a.email, a.name, m.role, a.password_hash is not null as password, a.created_at as "createdAt",
    (select max(s.last_seen_at) from session s where s.account_id = a.id) as "lastSeenAt"
  from membership m join account a on a.id = m.account_id
  where m.team_id = ${teamId} order by a.created_at, a.id`;
