/** Accounts and their sessions: the first one, signing in and out, passwords. */

import type { Client, NewAccount, Role } from "../../schema/accounts.ts";
import { type Actor, COMMAND_LINE, SERVER } from "../../schema/audit.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import type { Attempts } from "../../secrets/attempts.ts";
import type { Passwords } from "../../secrets/passwords.ts";
import { createToken, isToken, tokenDigest } from "../../secrets/tokens.ts";
import {
  type Account,
  deleteSetupTokens,
  insertAccount,
  insertMembership,
  insertSetupToken,
  lockAccount,
  lockAccountByEmail,
  lockAccounts,
  lockPasswordHash,
  lockTeamForMembers,
  selectAccount,
  selectAccountByEmail,
  selectAnyAccount,
  selectIsSetupToken,
  updateAccountName,
  updatePasswordHash,
  selectTeamIdsOf,
} from "../../store/accounts.ts";
import { insertAuditEntry } from "../../store/audit.ts";
import type { Database, Tx } from "../../database/connect.ts";
import { insertTeam, lockTeams, selectTeams } from "../../store/projects.ts";
import {
  deleteManySessions,
  deleteSession,
  deleteSessionByDigest,
  deleteSessions,
  insertSession,
} from "../../store/sessions.ts";
import { type Person, recordInTeams, requireSession } from "./audit.ts";

/** Transactions, and the two ways to read beside them. */
export type Stores = Pick<Database, "pool" | "fast" | "begin">;

/** Services for signing in, besides the database. */
export type SignIn = { passwords: Passwords; attempts: Attempts };

/** A new session: the token is for the cookie, and stored nowhere. */
export type StartedSession = { accountId: string; sessionId: string; token: string };

const MAX_SESSIONS = 50;

/** Starts a session, in a transaction. */
export async function startSession(sql: Tx, accountId: string, client: Client): Promise<StartedSession> {
  const { token, digest } = createToken();
  const userAgent = client.userAgent?.slice(0, 500).replaceAll("\0", "").toWellFormed() ?? null;
  const sessionId = await insertSession(sql, accountId, digest, { ...client, userAgent });
  await deleteManySessions(sql, accountId, MAX_SESSIONS);
  return { accountId, sessionId, token };
}

/**
 * Creates a token for the first account, for a link that is shown once; undefined if there is an account. Tokens of other starts stay
 * valid, because each server shows one of its own.
 */
export async function createSetupToken({ begin }: Pick<Database, "begin">): Promise<string | undefined> {
  return await begin(async (sql) => {
    if (await selectAnyAccount(sql)) return undefined;
    const { token, digest } = createToken();
    await insertSetupToken(sql, digest);
    return token;
  });
}

/** Whether the token makes the first account, now. */
export const isSetupToken = async ({ fast }: Pick<Database, "fast">, token: string): Promise<boolean> =>
  isToken(token) && (await selectIsSetupToken(fast, tokenDigest(token)));

const SETUP_OVER =
  "This link has expired: it is too old, or the first account exists. Restart the server to get a new link";

/** Refuses unless the token creates the first account. No other account is created before the end of the transaction. */
export async function lockSetup(sql: Tx, token: string): Promise<void> {
  await lockTeams(sql);
  await lockAccounts(sql);
  if (!isToken(token) || !(await selectIsSetupToken(sql, tokenDigest(token)))) refuse(SETUP_OVER);
}

/** Makes the first account, after `lockSetup`, an owner of all teams; creates a team if there is none. */
export async function ownEverything(sql: Tx, accountId: string, email: string): Promise<void> {
  await deleteSetupTokens(sql);
  const teams = await selectTeams(sql);
  const teamIds = teams.length > 0 ? teams.map(({ id }) => id) : [await insertTeam(sql, "My team")];
  for (const teamId of teamIds) await addMember(sql, { teamId, accountId, email, role: "owner" }, SERVER, "setup");
}

/** Adds a member. Returns false if the account is a member already. `by` is how it joined. */
export async function addMember(
  sql: Tx,
  { teamId, accountId, email, role }: { teamId: string; accountId: string; email: string; role: Role },
  actor: Actor,
  by: "setup" | "invitation" | "command line" | "single sign-on" | "creation of the team",
): Promise<boolean> {
  if (!(await insertMembership(sql, teamId, accountId, role))) return false;
  await insertAuditEntry(sql, teamId, actor, { action: "member.added", subject: email, details: { role, by } });
  return true;
}

/** Maximum number of teams of a person who creates one. */
const MAX_TEAMS = 50;

/** Creates a team, with the person as its owner, and returns its id. */
export async function createTeam(
  sql: Tx,
  name: string,
  { accountId, email }: { accountId: string; email: string },
): Promise<string> {
  const teams = await selectTeamIdsOf(sql, accountId);
  if (teams.length >= MAX_TEAMS)
    refuse(`Cannot create the team: you are in ${teams.length} teams, the maximum is ${MAX_TEAMS}`);
  const teamId = await insertTeam(sql, name);
  const actor = { accountId, name: email };
  await insertAuditEntry(sql, teamId, actor, { action: "team.created", subject: name });
  await addMember(sql, { teamId, accountId, email, role: "owner" }, actor, "creation of the team");
  return teamId;
}

/** Makes the first account and signs it in. */
export async function setUp(
  database: Stores,
  { passwords }: Pick<SignIn, "passwords">,
  { token, account, client }: { token: string; account: NewAccount; client: Client },
): Promise<StartedSession> {
  // A stranger's token costs no hash.
  if (!(await isSetupToken(database, token))) refuse(SETUP_OVER);
  const passwordHash = await passwords.hash(account.password);
  return await database.begin(async (sql) => {
    await lockSetup(sql, token);
    const accountId = (await insertAccount(sql, { ...account, passwordHash }))!;
    await ownEverything(sql, accountId, account.email);
    return await startSession(sql, accountId, client);
  });
}

const seconds = (ms: number) => (ms < 90_000 ? `${Math.ceil(ms / 1000)} s` : `${Math.ceil(ms / 60_000)} min`);

/** A throttled attempt is answered at a multiple of this after it began, whether or not a password was verified. */
const THROTTLED_ANSWER_MS = 500;

/**
 * Verifies a password within the limits of attempts. Refuses an attempt that has to wait, with a message and a delay that do not reveal
 * whether the account exists. `findAccount` is called first, and `verify` gets its result.
 */
async function attempt<Account, T>(
  { attempts }: Pick<SignIn, "attempts">,
  who: { account: string; address: string },
  findAccount: () => Promise<Account | undefined>,
  verify: (account: Account | undefined) => Promise<T | undefined>,
): Promise<T | undefined> {
  const began = performance.now();
  const wait = attempts.begin(who);
  if (wait === 0) {
    const right = await verify(await findAccount());
    if (right !== undefined) attempts.succeed(who);
    return right;
  }
  const account = await findAccount();
  if (account !== undefined && attempts.review(who) === 0) {
    const right = await verify(account);
    if (right !== undefined) {
      attempts.succeed({ ...who, isReviewed: true });
      return right;
    }
  }
  await Bun.sleep(THROTTLED_ANSWER_MS - ((performance.now() - began) % THROTTLED_ANSWER_MS));
  return refuse(`Too many attempts, try again in ${seconds(wait)}`);
}

/**
 * Signs in. An unknown address is refused like a wrong password: with the same message after the same work. `before` is the token of an
 * earlier session of this browser, which ends.
 */
export async function logIn(
  database: Stores,
  signIn: SignIn,
  { email, password, client, before }: { email: string; password: string; client: Client; before?: string | undefined },
): Promise<StartedSession> {
  const session = await attempt(
    signIn,
    { account: email, address: client.address },
    () => selectAccountByEmail(database.pool, email),
    async (account) => {
      const hash = account?.passwordHash ?? null;
      if (!(await signIn.passwords.verify(password, hash))) return undefined;
      return await database.begin(async (sql) => {
        // A password that was changed meanwhile is refused.
        if (!(await lockPasswordHash(sql, account!.id, hash!))) return undefined;
        if (before !== undefined && isToken(before)) await deleteSessionByDigest(sql, tokenDigest(before));
        return await startSession(sql, account!.id, client);
      });
    },
  );
  return session ?? refuse("The e-mail address or the password is wrong");
}

/** Ends the session of this token, if there is one. */
export async function logOut({ pool }: Pick<Database, "pool">, token: string): Promise<void> {
  if (isToken(token)) await deleteSessionByDigest(pool, tokenDigest(token));
}

/** Locks the account, then its sessions, so that sessions that end each other do so one after the other. */
export async function requireOwnAccount(sql: Tx, person: Person): Promise<{ account: Account; actor: Actor }> {
  const account = (await lockAccount(sql, person.accountId)) ?? refuseAbsent();
  return { account, actor: await requireSession(sql, person) };
}

/** Ends one of one's own sessions. */
export async function revokeSession({ begin }: Pick<Database, "begin">, person: Person, id: string): Promise<void> {
  await begin(async (sql) => {
    await requireOwnAccount(sql, person);
    if (!(await deleteSession(sql, person.accountId, id))) refuseAbsent();
  });
}

/** Ends all of one's own sessions but this one. */
export async function revokeOtherSessions({ begin }: Pick<Database, "begin">, person: Person): Promise<void> {
  await begin(async (sql) => {
    await requireOwnAccount(sql, person);
    await deleteSessions(sql, person.accountId, person.sessionId);
  });
}

export async function renameAccount({ begin }: Pick<Database, "begin">, person: Person, name: string): Promise<void> {
  await begin(async (sql) => {
    await requireOwnAccount(sql, person);
    await updateAccountName(sql, person.accountId, name);
  });
}

/** All other sessions end. Who has no password signs in otherwise and gets none here. */
export async function changePassword(
  database: Stores,
  signIn: SignIn,
  person: Person,
  { current, password, address }: { current: string; password: string; address: string },
): Promise<void> {
  const account = (await selectAccount(database.pool, person.accountId)) ?? refuseAbsent();
  const hash = account.passwordHash ?? refuse("This account has no password: it signs in with single sign-on");
  const who = { account: account.email, address };
  const isRight = await attempt(
    signIn,
    who,
    async () => account,
    async () => ((await signIn.passwords.verify(current, hash)) ? true : undefined),
  );
  if (!isRight) refuse("The current password is wrong");
  const passwordHash = await signIn.passwords.hash(password);
  await database.begin(async (sql) => {
    const { account: locked, actor } = await requireOwnAccount(sql, person);
    if (locked.passwordHash !== hash) refuse("The password was changed in the meantime");
    await updatePasswordHash(sql, person.accountId, passwordHash);
    await deleteSessions(sql, person.accountId, person.sessionId);
    await recordInTeams(sql, person.accountId, actor, { action: "account.password_changed", subject: actor.name });
  });
}

/** Resets a password for the operator and ends all sessions. Undefined if there is no such account. */
export async function resetPassword(sql: Tx, email: string, passwordHash: string): Promise<string | undefined> {
  const account = await lockAccountByEmail(sql, email);
  if (!account) return undefined;
  await updatePasswordHash(sql, account.id, passwordHash);
  await deleteSessions(sql, account.id, null);
  await recordInTeams(sql, account.id, COMMAND_LINE, { action: "account.password_reset", subject: account.email });
  return account.id;
}

type NewUser = { email: string; name: string; passwordHash: string | null; teamId: string; role: Role };

/** Creates an account for the operator. */
export async function createUser(sql: Tx, user: NewUser): Promise<{ id: string } | "taken" | "no team"> {
  if ((await lockTeamForMembers(sql, user.teamId)) === undefined) return "no team";
  const accountId = await insertAccount(sql, user);
  if (accountId === undefined) return "taken";
  await deleteSetupTokens(sql);
  await addMember(sql, { ...user, accountId }, COMMAND_LINE, "command line");
  return { id: accountId };
}

/** Adds an existing account to a team for the operator. */
export async function admitUser(
  sql: Tx,
  { email, teamId, role }: { email: string; teamId: string; role: Role },
): Promise<{ id: string } | "no account" | "no team" | "member"> {
  if ((await lockTeamForMembers(sql, teamId)) === undefined) return "no team";
  const account = await selectAccountByEmail(sql, email);
  if (!account) return "no account";
  const member = { teamId, accountId: account.id, email: account.email, role };
  return (await addMember(sql, member, COMMAND_LINE, "command line")) ? { id: account.id } : "member";
}
