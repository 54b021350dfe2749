/** The first account, signing in and out, sessions and passwords. */

import { describe, expect, test } from "bun:test";
import { createDatabase, createHarness, until } from "../harness.ts";
import { CLIENT, createPerson, createSignIn, PASSWORD, refusal } from "../people.ts";
import {
  changePassword,
  createSetupToken,
  createUser,
  isSetupToken,
  logIn,
  logOut,
  renameAccount,
  resetPassword,
  revokeOtherSessions,
  revokeSession,
  setUp,
} from "../../src/operations/people/accounts.ts";
import { createFirstProject } from "../../src/operations/projects/first_project.ts";
import { createVisitors } from "../../src/request/visitors.ts";
import { selectAuditEntries } from "../../src/store/audit.ts";
import { selectSessions } from "../../src/store/sessions.ts";
import { insertTeam } from "../../src/store/projects.ts";
import type { Database, Tx } from "../../src/database/connect.ts";

const { acme, rival, database } = await createHarness({ ownDatabase: true });
const visitors = createVisitors(database, { publicUrl: "http://assay.test", secret: new Uint8Array(32) });
const visit = ({ token }: { token: string }) => visitors.find(`assay_session=${token}`);

const actionsOf = async (team: string, db: Database = database) =>
  (await selectAuditEntries(db.pool, team, { limit: 100 })).map(({ action, actor, subject }) => [
    ...[action, actor, subject],
  ]);
const ada = (email = "ada@acme.example") => ({ email, name: "Ada", password: PASSWORD });
/** Signs in with the password of everybody in these tests, or another one. */
const enter = (signIn: ReturnType<typeof createSignIn>["signIn"], email: string, password = PASSWORD) =>
  logIn(database, signIn, { email, password, client: CLIENT });
/** A database without accounts, and the link of its first start. */
async function createEmpty() {
  const { database } = await createDatabase();
  const { signIn, hashing } = createSignIn();
  const token = (await createSetupToken(database))!;
  const setUpAs = (account = ada(), link = token) => setUp(database, signIn, { token: link, account, client: CLIENT });
  const createFirst = async (sql: Tx, teamId: string) =>
    await createUser(sql, { email: "cli@acme.example", name: "Cli", passwordHash: null, teamId, role: "owner" });
  return { database, hashing, token, setUpAs, createFirst };
}
const createPlain = () => createPerson(database, undefined);

describe("the first account", () => {
  test("owns every team that there is, is signed in, and nobody makes another one with any link", async () => {
    const { database, hashing, token, setUpAs } = await createEmpty();
    const first = (await createFirstProject(database))!;
    const other = await database.begin((sql) => insertTeam(sql, "Other"));
    // Two servers, each with a link of its own.
    const tokens = [token, (await createSetupToken(database))!];
    expect(new Set(tokens).size).toBe(2);
    for (const token of tokens) expect(await isSetupToken(database, token)).toBe(true);
    expect(JSON.stringify(await database.pool`select * from setup_token`)).not.toContain(token);
    expect(await refusal(setUpAs(ada(), "x".repeat(43)))).toContain("This link has expired");
    expect(hashing.count.hash).toBe(0);

    const session = await setUpAs(ada(), tokens[1]);
    const visitors = createVisitors(database, { publicUrl: "http://assay.test", secret: new Uint8Array(32) });
    const { accountId, sessionId } = session;
    expect(await visitors.find(`assay_session=${session.token}`)).toEqual({
      ...{ accountId, email: "ada@acme.example", name: "Ada", isQuiet: false, plannedDeletions: [], sessionId },
      teams: [
        { teamId: first.teamId, teamName: "My team", role: "owner" },
        { teamId: other, teamName: "Other", role: "owner" },
      ],
    });
    for (const token of tokens) {
      expect(await isSetupToken(database, token)).toBe(false);
      expect(await refusal(setUpAs(ada("eve@acme.example"), token))).toContain("This link has expired");
    }
    expect(await createSetupToken(database)).toBeUndefined();
    expect(await actionsOf(other, database)).toEqual([["member.added", "server", "ada@acme.example"]]);
  });

  test("raced with both links is one account, and the teams have one owner", async () => {
    const { database, token, setUpAs } = await createEmpty();
    const other = (await createSetupToken(database))!;
    const made = await Promise.allSettled(
      [token, token, other, other].map((link, index) => setUpAs(ada(`ada${index}@acme.example`), link)),
    );
    expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await database.pool`select email from account`).toHaveLength(1);
    expect(await database.pool`select name from team`).toHaveLength(1);
    expect(await database.pool`select role from membership`).toEqual([{ role: "owner" }] as never);
  });

  test("made by the command line ends the links as well", async () => {
    const { database, token, setUpAs, createFirst } = await createEmpty();
    const team = await database.begin((sql) => insertTeam(sql, "Team"));
    expect(await database.begin((sql) => createFirst(sql, team))).toEqual({ id: expect.any(String) });
    expect(await isSetupToken(database, token)).toBe(false);
    expect(await refusal(setUpAs())).toContain("has expired");
  });

  test("waits for one that is being made elsewhere, and is not made then", async () => {
    const { database, setUpAs, createFirst } = await createEmpty();
    const team = await database.begin((sql) => insertTeam(sql, "Team"));
    let raced: Promise<string> | undefined;
    await database.begin(async (sql) => {
      await createFirst(sql, team);
      raced = refusal(setUpAs());
      await until(async () => {
        const waiting = await database.pool`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
        return waiting.length > 0;
      });
    });
    expect(await raced).toContain("This link has expired");
    expect(await database.pool`select from account`).toHaveLength(1);
  });

  test("is made by no link that is older than a week, and a start that is repeated leaves few", async () => {
    const { database, token } = await createEmpty();
    await database.pool`update setup_token set created_at = now() - interval '8 days'`;
    expect(await isSetupToken(database, token)).toBe(false);
    for (let start = 0; start < 25; start++) await createSetupToken(database);
    expect(await database.pool`select from setup_token`).toHaveLength(20);
  });
});

describe("signing in", () => {
  test("starts a session whose token is nowhere in the database, and ends the one that the browser had", async () => {
    const { signIn } = createSignIn();
    const before = await createPerson(database, { team: acme.team, role: "member" });
    const given = { email: before.email, password: PASSWORD, client: CLIENT };
    const after = await logIn(database, signIn, { ...given, before: before.token });
    expect(after.token).not.toBe(before.token);
    expect(await visit(before)).toBeUndefined();
    const teams = [{ teamId: acme.team, teamName: "Acme", role: "member" }];
    expect(await visit(after)).toMatchObject({ accountId: before.accountId, teams });
    const stored = JSON.stringify([await database.pool`select *, encode(digest, 'hex') as hex from session`]);
    expect(stored).not.toContain(after.token);
    expect(stored).toContain(Bun.SHA256.hash(after.token, "hex"));
  });

  test("a token that was changed by one character, or has ended, opens nothing", async () => {
    const person = await createPlain();
    expect(await visit(person)).toBeDefined();
    const last = person.token.at(-1) === "A" ? "B" : "A";
    expect(await visit({ token: person.token.slice(0, -1) + last })).toBeUndefined();
    expect(await visit({ token: "" })).toBeUndefined();
    await logOut(database, person.token);
    expect(await visit(person)).toBeUndefined();
    const expired = await createPlain();
    await database.pool`update session set expires_at = now() - interval '1 minute' where id = ${expired.sessionId}`;
    expect(await visit(expired)).toBeUndefined();
  });

  test("an unknown address, an account without a password and a wrong password take the same work and words", async () => {
    const known = await createPlain();
    const passwordless = await createPerson(database, undefined, { password: null });
    const tries = [known.email, passwordless.email, "nobody@acme.example"].flatMap((email) =>
      ["wrong password", ""].map((password) => ({ email, password })),
    );
    const outcomes = [];
    for (const { email, password } of tries) {
      const { signIn, hashing } = createSignIn();
      const message = await refusal(enter(signIn, email, password));
      outcomes.push({ message, ...hashing.count });
    }
    const same = { message: "The e-mail address or the password is wrong", hash: 0, verify: 1 };
    expect(outcomes).toEqual(tries.map(() => same));
  });

  test("the hash that stands in for a missing one asks for as much work as a new one", async () => {
    const { createPasswords } = await import("../../src/secrets/passwords.ts");
    const asked: string[] = [];
    const verify = async (_: string, hash: string) => asked.push(hash) > 0;
    const passwords = createPasswords({ hash: async () => "", verify });
    // Even a right guess at it opens nothing.
    expect(await passwords.verify("whatever it is", null)).toBe(false);
    const parameters = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/;
    expect(asked[0]).toMatch(parameters);
    expect(await createPasswords().hash(PASSWORD)).toMatch(parameters);
  });

  test("goes by the address in any case, and NFKC makes one password of its spellings", async () => {
    const { signIn } = createSignIn();
    const person = await createPerson(database, undefined, { password: "Åstrand-passwort" });
    const { triedPassword, email } = await import("../../src/schema/accounts.ts");
    const v = await import("valibot");
    const [address, password] = [
      v.parse(email, ` ${person.email.toUpperCase()} `),
      v.parse(triedPassword, "A\u030astrand-passwort"),
    ];
    expect(await enter(signIn, address, password)).toMatchObject({ accountId: person.accountId });
  });

  test("with the old password while it is changed leaves no session behind", async () => {
    for (let round = 0; round < 5; round++) {
      const { signIn } = createSignIn();
      const person = await createPlain();
      const given = { email: person.email, password: PASSWORD, client: CLIENT };
      const logIns = Array.from({ length: 3 }, (_, index) =>
        logIn(database, signIn, { ...given, client: { ...CLIENT, address: `192.0.2.${index}` } }).catch(() => {}),
      );
      const passwords = { current: PASSWORD, password: "another one entirely", address: "198.51.100.1" };
      await Promise.all([...logIns, changePassword(database, signIn, person, passwords)]);
      expect((await selectSessions(database.pool, person.accountId)).map(({ id }) => id)).toEqual([person.sessionId]);
    }
  });

  test("keeps the fifty sessions that were seen last", async () => {
    const { signIn } = createSignIn();
    const person = await createPlain();
    await database.pool`
      insert into session (id, account_id, digest, last_seen_at, expires_at)
      select gen_random_uuid(), ${person.accountId}, sha256(n::text::bytea), now() - n * interval '1 minute', now() + interval '1 day'
      from generate_series(1, 60) n`;
    await enter(signIn, person.email);
    const left = await selectSessions(database.pool, person.accountId);
    expect(left).toHaveLength(50);
    expect(left.slice(0, 2).map(({ userAgent }) => userAgent)).toEqual([CLIENT.userAgent, CLIENT.userAgent]);
  });
});

describe("a session", () => {
  test("is seen every few minutes, and lives on from then", async () => {
    const person = await createPlain();
    const look = async () => (await selectSessions(database.pool, person.accountId))[0]!;
    const before = await look();
    await visit(person);
    expect(await look()).toEqual(before);
    await database.pool`
      update session set last_seen_at = now() - interval '6 minutes', expires_at = now() + interval '1 minute'
      where id = ${person.sessionId}`;
    await visit(person);
    await until(async () => (await look()).expiresAt > new Date(Date.now() + 13 * 86_400_000).toISOString());
    await database.pool`
      update session set last_seen_at = now() - interval '6 minutes', created_at = now() - interval '89 days'
      where id = ${person.sessionId}`;
    await visit(person);
    // However often it is seen, it ends some day.
    await until(async () => (await look()).expiresAt < new Date(Date.now() + 2 * 86_400_000).toISOString());
  });

  test("is ended by its owner alone; the others as well, and whoever has none is refused", async () => {
    const [person, stranger] = [await createPlain(), await createPlain()];
    const { signIn } = createSignIn();
    const [second, third] = [await enter(signIn, person.email), await enter(signIn, person.email)];
    expect(await refusal(revokeSession(database, stranger, person.sessionId))).toBe("absent");
    expect(await visit(person)).toBeDefined();
    await revokeSession(database, second, third.sessionId);
    expect(await visit(third)).toBeUndefined();
    expect(await refusal(revokeSession(database, third, second.sessionId))).toBe("absent");
    expect(await refusal(renameAccount(database, third, "Eve"))).toBe("absent");
    await revokeOtherSessions(database, second);
    expect([await visit(person), (await visit(second))?.sessionId]).toEqual([undefined, second.sessionId]);
    // Two that end each other take turns: one is left.
    const fourth = await enter(signIn, person.email);
    const ends = [revokeOtherSessions(database, second), revokeOtherSessions(database, fourth)];
    expect((await Promise.allSettled(ends)).map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(await selectSessions(database.pool, person.accountId)).toHaveLength(1);
  });
});

describe("a password", () => {
  test("is changed by who knows it; all other sessions end, and every team of the account is told", async () => {
    const { signIn } = createSignIn();
    const person = await createPerson(database, { team: rival.team, role: "member" });
    const other = await enter(signIn, person.email);
    const change = (current: string) =>
      changePassword(database, signIn, person, { current, password: "another one entirely", address: "192.0.2.9" });
    expect(await refusal(change("wrong password"))).toBe("The current password is wrong");
    await change(PASSWORD);
    expect([await visit(other), (await visit(person))?.sessionId]).toEqual([undefined, person.sessionId]);
    expect(await refusal(enter(signIn, person.email))).toContain("wrong");
    expect(await enter(signIn, person.email, "another one entirely")).toBeDefined();
    expect((await actionsOf(rival.team))[0]).toEqual(["account.password_changed", person.email, person.email]);
    const entries = JSON.stringify(await database.pool`select * from audit_entry`);
    expect(entries).not.toContain("another one");
    expect(entries).not.toContain("argon2");
  });

  test("is tried as slowly by who has stolen a session", async () => {
    const { signIn } = createSignIn(() => 0);
    const person = await createPlain();
    const given = { current: "wrong password", password: "another one entirely", address: CLIENT.address };
    const answers = [];
    for (let index = 0; index < 4; index++)
      answers.push(await refusal(changePassword(database, signIn, person, given)));
    expect(answers[2]).toBe("The current password is wrong");
    expect(answers[3]).toBe("Too many attempts, try again in 1 s");
  });

  test("that is right opens an account that was not attacked, whatever a stranger has tried from the same address", async () => {
    const { signIn, hashing } = createSignIn(() => 0);
    const [ada, attacked] = [await createPlain(), await createPlain()];
    const tryOf = (email: string, password: string) => refusal(enter(signIn, email, password));
    for (let index = 0; index < 3; index++) await tryOf(attacked.email, "a wrong guess");
    for (let index = 0; index < 47; index++) await tryOf(`guess${index}@acme.example`, "a wrong guess");
    const wait = "Too many attempts, try again in 10 min";
    expect(await tryOf(attacked.email, PASSWORD)).toBe(wait);
    // A wrong password of an account that exists is answered as one of an account that does not, which is not verified.
    const before = hashing.count.verify;
    expect(await tryOf("nobody@acme.example", PASSWORD)).toBe(wait);
    expect(hashing.count.verify).toBe(before);
    expect(await tryOf(ada.email, "a wrong guess")).toBe(wait);
    expect(hashing.count.verify).toBe(before + 1);
    const session = await enter(signIn, ada.email);
    expect((await visit(session))?.email).toBe(ada.email);
  });

  test("is reset by the operator; all sessions end", async () => {
    const { signIn } = createSignIn();
    const person = await createPerson(database, { team: acme.team, role: "viewer" });
    const hash = await signIn.passwords.hash("from the operator");
    expect(await database.begin((sql) => resetPassword(sql, person.email.toUpperCase(), hash))).toBe(person.accountId);
    expect(await visit(person)).toBeUndefined();
    expect(await enter(signIn, person.email, "from the operator")).toBeDefined();
    expect((await actionsOf(acme.team))[0]).toEqual(["account.password_reset", "command line", person.email]);
    expect(await database.begin((sql) => resetPassword(sql, "nobody@acme.example", hash))).toBeUndefined();
  });
});
