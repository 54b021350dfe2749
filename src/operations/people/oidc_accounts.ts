/** Accounts that sign in with OpenID Connect: finds the account of a person, and creates new ones. */

import * as v from "valibot";
import { type Client, email, personName } from "../../schema/accounts.ts";
import { isStorable } from "../../schema/fields.ts";
import { refuse } from "../../schema/refusal.ts";
import {
  insertAccount,
  lockAccountByEmail,
  type OidcIdentity,
  selectAccountByIdentity,
  selectAnyAccount,
  updateIdentity,
  updatePasswordHash,
} from "../../store/accounts.ts";
import type { Database, Tx } from "../../database/connect.ts";
import { selectTeams } from "../../store/projects.ts";
import { deleteSessionByDigest, deleteSessions } from "../../store/sessions.ts";
import { isToken, tokenDigest } from "../../secrets/tokens.ts";
import {
  addMember,
  lockSetup,
  ownEverything,
  requireOwnAccount,
  startSession,
  type StartedSession,
} from "./accounts.ts";
import { type Person, recordInTeams } from "./audit.ts";
import { takeInvitation } from "./members.ts";

/** A person as described by the provider. */
export type OidcPerson = OidcIdentity & { email: string | null; isVerified: boolean; name: string | null };

export type OidcPolicy = {
  /** Domains whose verified addresses get an account; lower case. */
  allowedDomains: readonly string[];
  /** Whether people may sign in with passwords as well. */
  passwordLogin: boolean;
};

/** The token that the person began with: of an invitation, or of the first account. */
export type Entrance = { invitation?: string | undefined; setup?: string | undefined };

type LogIn = {
  person: OidcPerson;
  entrance: Entrance;
  client: Client;
  /** The token of a session that this browser had: it ends. */
  before?: string | undefined;
};

/** The subject identifies the account, so it is not cut or changed: one that PostgreSQL cannot store is refused. */
function requireStorable({ subject }: OidcPerson): void {
  if (!isStorable(subject)) refuse("The identity provider sent a name with unsupported characters");
}

const domainOf = (address: string) => address.slice(address.lastIndexOf("@") + 1);

/** Returns an address that the provider has verified, in our spelling; else undefined. */
function verifiedEmail({ email: given, isVerified }: OidcPerson): string | undefined {
  const parsed = v.safeParse(email, given);
  return isVerified && parsed.success ? parsed.output : undefined;
}

/**
 * Finds an account by issuer and subject; the first time by a verified address, if that is safe. An account with a password may have been
 * created by someone who only claimed the address, and would remain open to them. If passwords are disabled, the account loses its password
 * and all sessions instead.
 */
async function findAccount(
  sql: Tx,
  person: OidcPerson,
  { passwordLogin }: OidcPolicy,
): Promise<{ id: string; email: string } | undefined> {
  const known = await selectAccountByIdentity(sql, person);
  if (known) return known;
  const address = verifiedEmail(person);
  const account = address === undefined ? undefined : await lockAccountByEmail(sql, address);
  if (!account) return undefined;
  if (account.oidcIssuer !== null)
    refuse(`The account ${account.email} is linked to another identity. Ask the administrator`);
  if (account.passwordHash !== null) {
    if (passwordLogin)
      refuse(`The account ${account.email} has a password: sign in with it, then link it on the page of your account`);
    await updatePasswordHash(sql, account.id, null);
    await deleteSessions(sql, account.id, null);
  }
  await link(sql, account.id, account.email, person);
  return account;
}

async function link(sql: Tx, accountId: string, address: string, identity: OidcIdentity): Promise<void> {
  if (!(await updateIdentity(sql, accountId, identity))) refuse("This account is already linked");
  const details = { issuer: identity.issuer };
  const actor = { accountId, name: address };
  await recordInTeams(sql, accountId, actor, { action: "account.linked", subject: address, details });
}

/** Requires a verified address and a reason: an invitation, the link of the first account, or an allowed domain. */
async function createAccount(
  sql: Tx,
  person: OidcPerson,
  { invitation, setup }: Entrance,
  { allowedDomains }: OidcPolicy,
): Promise<string> {
  const address =
    verifiedEmail(person) ?? refuse("The identity provider does not send a verified e-mail address for you");
  const isAllowed = allowedDomains.includes(domainOf(address));
  if (setup === undefined && invitation === undefined && !isAllowed)
    refuse(`There is no account for ${address}: ask an owner of a team for an invitation`);
  // Anyone who can read the server's log may create the first account.
  if (setup !== undefined) await lockSetup(sql, setup);
  else if (!(await selectAnyAccount(sql)))
    refuse("Create the first account with the link that the server printed when it started");
  const name = v.safeParse(personName, person.name?.slice(0, 200) ?? "");
  const row = { email: address, name: name.success ? name.output : address.split("@")[0]!, passwordHash: null };
  const accountId =
    (await insertAccount(sql, row)) ?? refuse("An account with this address was created just now. Try again");
  await updateIdentity(sql, accountId, person);
  if (setup !== undefined) await ownEverything(sql, accountId, address);
  else if (invitation !== undefined) {
    const { teamId, role } = await takeInvitation(sql, invitation, address);
    const actor = { accountId, name: address };
    await addMember(sql, { teamId, accountId, email: address, role }, actor, "invitation");
  } else await admitToOnlyTeam(sql, accountId, address);
  return accountId;
}

/** With several teams, only owners know which one a person belongs to. */
async function admitToOnlyTeam(sql: Tx, accountId: string, address: string): Promise<void> {
  const teams = await selectTeams(sql);
  if (teams.length !== 1) return;
  const member = { teamId: teams[0]!.id, accountId, email: address, role: "viewer" as const };
  await addMember(sql, member, { accountId, name: address }, "single sign-on");
}

/** Signs in a person verified by the provider. A known account must accept an invitation itself. */
export async function logInWithOidc(
  { begin }: Pick<Database, "begin">,
  policy: OidcPolicy,
  { person, entrance, client, before }: LogIn,
): Promise<StartedSession & { isKnown: boolean }> {
  requireStorable(person);
  return await begin(async (sql) => {
    const known = await findAccount(sql, person, policy);
    const accountId = known?.id ?? (await createAccount(sql, person, entrance, policy));
    if (before !== undefined && isToken(before)) await deleteSessionByDigest(sql, tokenDigest(before));
    return { ...(await startSession(sql, accountId, client)), isKnown: known !== undefined };
  });
}

/** Links an identity to the account of a person who is signed in with a password. */
export async function linkIdentity(
  { begin }: Pick<Database, "begin">,
  visitor: Person,
  person: OidcPerson,
): Promise<void> {
  requireStorable(person);
  await begin(async (sql) => {
    const { actor } = await requireOwnAccount(sql, visitor);
    if (await selectAccountByIdentity(sql, person)) refuse("This identity already belongs to an account");
    await link(sql, visitor.accountId, actor.name, person);
  });
}
