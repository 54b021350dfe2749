/** Which account somebody is whom an OpenID Connect provider vouches for. */

import { describe, expect, test } from "bun:test";
import { createDatabase, createHarness } from "../harness.ts";
import { CLIENT, createPerson, refusal } from "../people.ts";
import { createSetupToken } from "../../src/operations/people/accounts.ts";
import { acceptAsSelf, invite } from "../../src/operations/people/members.ts";
import {
  type Entrance,
  linkIdentity,
  logInWithOidc,
  type OidcPerson,
  type OidcPolicy,
} from "../../src/operations/people/oidc_accounts.ts";
import { selectAccount, selectTeamIdsOf } from "../../src/store/accounts.ts";
import { selectAuditEntries } from "../../src/store/audit.ts";
import type { Database } from "../../src/database/connect.ts";
import { insertTeam } from "../../src/store/projects.ts";
import { selectSessions } from "../../src/store/sessions.ts";

const { acme, database } = await createHarness({ ownDatabase: true });
const ISSUER = "https://id.example";
const somebody = (subject: string, more: Partial<OidcPerson> = {}): OidcPerson => ({
  ...{ issuer: ISSUER, subject, email: `${subject}@acme.example`, isVerified: true, name: subject },
  ...more,
});
const closed: OidcPolicy = { allowedDomains: [], passwordLogin: true };
const open: OidcPolicy = { allowedDomains: ["acme.example"], passwordLogin: true };
const come = (person: OidcPerson, policy = closed, entrance: Entrance = {}, db: Database = database) =>
  logInWithOidc(db, policy, { person, entrance, client: CLIENT });
const teamsOf = (accountId: string, db: Database = database) => selectTeamIdsOf(db.pool, accountId);

/** A database of its own with an account, so that the first one is past. */
async function createPlaces(...names: string[]) {
  const { database } = await createDatabase();
  const teams: string[] = [];
  for (const name of names) teams.push(await database.begin((sql) => insertTeam(sql, name)));
  const first = await createPerson(database, undefined);
  return { database, teams, first };
}

test("a subject that cannot be stored is refused, and NUL elsewhere opens nothing", async () => {
  const words = "The identity provider sent a name with unsupported characters";
  for (const subject of ["ada\0", "\ud800"]) {
    const person = somebody(subject, { email: "nul@acme.example" });
    expect(await refusal(come(person, open))).toBe(words);
    const { accountId, sessionId } = await createPerson(database, undefined);
    expect(await refusal(linkIdentity(database, { accountId, sessionId }, person))).toBe(words);
  }
  expect(await refusal(come(somebody("nul", { email: "n\0ul@acme.example" }), open))).toContain(
    "verified e-mail address",
  );
  const { accountId } = await come(somebody("nul", { name: "A\0da" }), open);
  expect((await selectAccount(database.pool, accountId))?.name).toBe("nul");
});

describe("somebody without an account", () => {
  test("gets none without an invitation, unless his verified address is in a domain that is let in", async () => {
    const ask = "There is no account for stranger@acme.example: ask an owner of a team for an invitation";
    expect(await refusal(come(somebody("stranger")))).toBe(ask);
    const unverified = "The identity provider does not send a verified e-mail address for you";
    for (const more of [{ isVerified: false }, { email: null }, { email: "no address" }])
      expect(await refusal(come(somebody("stranger", more), open))).toBe(unverified);
    for (const email of [
      "x@sub.acme.example",
      "x@acme.example.evil",
      "x@evilacme.example",
      "acme.example@evil.example",
    ])
      expect(await refusal(come(somebody("stranger", { email }), open))).toContain("There is no account for");
    expect(await database.pool`select from account where email like 'stranger%'`).toHaveLength(0);
  });

  test("in such a domain becomes a viewer of the only team, and a member of none where there are several", async () => {
    const one = await createPlaces("Only");
    const ada = await come(somebody("ada", { email: "ADA@Acme.example" }), open, {}, one.database);
    const entries = await selectAuditEntries(one.database.pool, one.teams[0]!, { limit: 5 });
    expect(entries.map(({ action, actor, details }) => [action, actor, details])).toEqual([
      ["member.added", "ada@acme.example", { role: "viewer", by: "single sign-on" }],
    ]);
    const again = await come(
      somebody("ada", { email: "new.name@elsewhere.example", isVerified: false }),
      closed,
      {},
      one.database,
    );
    // It is the subject that is known, whatever becomes of the address.
    expect(again.accountId).toBe(ada.accountId);
    const two = await createPlaces("One", "Two");
    const grace = await come(somebody("grace"), open, {}, two.database);
    expect(await teamsOf(grace.accountId, two.database)).toEqual([]);
  });

  test("comes in by an invitation, which is used up then, and only for its address", async () => {
    const owner = await createPerson(database, { team: acme.team, role: "owner" });
    const { token } = await invite(database, owner, acme.team, { role: "member", email: "invited@acme.example" });
    expect(await refusal(come(somebody("other"), closed, { invitation: token }))).toContain("This invitation is for");
    const { accountId } = await come(somebody("invited"), closed, { invitation: token });
    expect(await teamsOf(accountId)).toEqual([acme.team]);
    expect(await selectAccount(database.pool, accountId)).toMatchObject({ passwordHash: null, oidcIssuer: ISSUER });
    expect(await refusal(come(somebody("late"), closed, { invitation: token }))).toContain("invitation has expired");
    expect(await database.pool`select from account where email = 'late@acme.example'`).toHaveLength(0);
  });

  test("makes the first account only with the link that the start has printed", async () => {
    const { database } = await createDatabase();
    const team = await database.begin((sql) => insertTeam(sql, "Team"));
    expect(await refusal(come(somebody("eve"), open, {}, database))).toContain(
      "the link that the server printed when it started",
    );
    expect(await refusal(come(somebody("eve"), open, { setup: "x".repeat(43) }, database))).toContain(
      "This link has expired",
    );
    const setup = (await createSetupToken(database))!;
    const { accountId } = await come(somebody("ada"), closed, { setup }, database);
    expect(
      await database.pool`select role from membership where account_id = ${accountId} and team_id = ${team}`,
    ).toEqual([{ role: "owner" }] as never);
    expect(await refusal(come(somebody("eve"), closed, { setup }, database))).toContain("This link has expired");
  });

  test("raced by himself is one account", async () => {
    const { database } = await createPlaces("Only");
    const both = await Promise.allSettled([0, 1, 2].map(() => come(somebody("twin"), open, {}, database)));
    expect(both.some(({ status }) => status === "fulfilled")).toBe(true);
    expect(await database.pool`select from account where email = 'twin@acme.example'`).toHaveLength(1);
    for (const one of both) if (one.status === "rejected") expect(one.reason.name).toBe("Refusal");
  });
});

describe("somebody whose address has an account", () => {
  test("is that account where it was made without a password", async () => {
    const made = await createPerson(database, { team: acme.team, role: "member" }, { password: null });
    const person = somebody("made", { email: made.email });
    expect(await refusal(come({ ...person, isVerified: false }))).toContain("verified e-mail address");
    expect((await come(person)).accountId).toBe(made.accountId);
    const [entry] = await selectAuditEntries(database.pool, acme.team, { limit: 1 });
    expect(entry).toMatchObject({ action: "account.linked", subject: made.email, details: { issuer: ISSUER } });
    // Whoever gets the address next is somebody else.
    expect(await refusal(come(somebody("successor", { email: made.email })))).toContain(
      "is linked to another identity",
    );
    expect(await refusal(come({ ...person, issuer: "https://evil.example" }))).toContain(
      "is linked to another identity",
    );
  });

  test("does not get one with a password: whoever set it may only have claimed the address", async () => {
    const squatter = await createPerson(database, { team: acme.team, role: "member" });
    const person = somebody("victim", { email: squatter.email });
    expect(await refusal(come(person, open))).toContain("has a password: sign in with it, then link it");
    expect(await selectAccount(database.pool, squatter.accountId)).toMatchObject({ oidcIssuer: null });
    // The one who knows the password says so himself.
    await linkIdentity(database, squatter, person);
    expect((await come(person)).accountId).toBe(squatter.accountId);
    expect(await refusal(linkIdentity(database, squatter, somebody("second")))).toBe("This account is already linked");
    const other = await createPerson(database, undefined);
    expect(await refusal(linkIdentity(database, other, person))).toBe("This identity already belongs to an account");
  });

  test("gets it where passwords open nothing, and whoever had it before is out", async () => {
    const before = await createPerson(database, { team: acme.team, role: "viewer" });
    const policy = { ...closed, passwordLogin: false };
    const after = await come(somebody("owner-of-it", { email: before.email }), policy);
    expect(after.accountId).toBe(before.accountId);
    expect((await selectAccount(database.pool, before.accountId))!.passwordHash).toBeNull();
    expect((await selectSessions(database.pool, before.accountId)).map(({ id }) => id)).toEqual([after.sessionId]);
  });
});

test("a known account leaves the invitation for its page, and the session that the browser had ends", async () => {
  const owner = await createPerson(database, { team: acme.team, role: "owner" });
  const known = await createPerson(database, undefined, { password: null });
  const person = somebody("known", { email: known.email });
  const { token } = await invite(database, owner, acme.team, { role: "viewer" });
  const session = await logInWithOidc(database, closed, {
    person,
    entrance: { invitation: token },
    client: CLIENT,
    before: known.token,
  });
  expect((await selectSessions(database.pool, known.accountId)).map(({ id }) => id)).toEqual([session.sessionId]);
  expect(await teamsOf(known.accountId)).toEqual([]);
  expect(await acceptAsSelf(database, session, token)).toEqual({ teamId: acme.team });
});
