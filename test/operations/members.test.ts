/** Invitations, roles, removals, and the log of them. */

import { describe, expect, test } from "bun:test";
import { createHarness, until } from "../harness.ts";
import { CLIENT, createPerson, createSignIn, PASSWORD, refusal } from "../people.ts";
import { admitUser } from "../../src/operations/people/accounts.ts";
import { requireRole } from "../../src/operations/people/audit.ts";
import { generateProjectKey, generateTeamKey, revokeKeyById } from "../../src/operations/people/keys.ts";
import {
  acceptAsNew,
  acceptAsSelf,
  changeRole,
  findInvitation,
  invite,
  removeMember,
  revokeInvitation,
} from "../../src/operations/people/members.ts";
import { COMMAND_LINE } from "../../src/schema/audit.ts";
import type { Role } from "../../src/schema/accounts.ts";
import { selectInvitations, selectMembers, selectRole } from "../../src/store/accounts.ts";
import { selectAuditEntries } from "../../src/store/audit.ts";
import { insertProject, insertTeam } from "../../src/store/projects.ts";
import { prune } from "../../src/work/prune.ts";

const { acme, database } = await createHarness({ ownDatabase: true });

/** A team of its own, with somebody of each role. */
async function createTeam() {
  const team = await database.begin((sql) => insertTeam(sql, "Team"));
  const person = (role: Role) => createPerson(database, { team, role });
  return { team, owner: await person("owner"), member: await person("member"), viewer: await person("viewer") };
}

const entriesOf = async (team: string) =>
  (await selectAuditEntries(database.pool, team, { limit: 100 })).map(({ action, actor, subject, details }) => ({
    ...{ action, actor, subject, details },
  }));
const newcomer = (email = `${crypto.randomUUID()}@new.example`) => ({ email, name: "New", password: PASSWORD });
const TEAM_ONLY = "This is for owners of the team only";

describe("an invitation", () => {
  test("is for owners to make; its token is shown once, and both it and its use are in the log", async () => {
    const { team, owner, member, viewer } = await createTeam();
    const { signIn } = createSignIn();
    const outsider = await createPerson(database, { team: acme.team, role: "owner" });
    for (const person of [member, viewer])
      expect(await refusal(invite(database, person, team, { role: "viewer" }))).toBe(TEAM_ONLY);
    expect(await refusal(invite(database, outsider, team, { role: "viewer" }))).toBe("absent");

    const { id, token, expiresAt } = await invite(database, owner, team, { role: "member", email: undefined });
    expect([...(await selectInvitations(database.pool, team))]).toEqual([
      { id, role: "member", email: null, createdBy: owner.email, createdAt: expect.any(String), expiresAt },
    ]);
    const days = (Date.parse(expiresAt) - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(6.9);
    expect(days).toBeLessThanOrEqual(7);
    expect(await findInvitation(database, token)).toMatchObject({ teamId: team, role: "member" });
    const account = newcomer();
    const joined = await acceptAsNew(database, signIn, { token, account, client: CLIENT });
    expect(await selectRole(database.pool, team, joined.accountId)).toBe("member");
    expect([...(await selectInvitations(database.pool, team))]).toEqual([]);
    const { email } = account;
    const made = { actor: owner.email, subject: "anyone with the link", details: { role: "member" } };
    expect(await entriesOf(team)).toEqual([
      { action: "member.added", actor: email, subject: email, details: { role: "member", by: "invitation" } },
      { action: "invitation.created", ...made },
    ]);
    for (const table of ["invitation", "audit_entry"])
      expect(JSON.stringify(await database.pool`select * from ${database.pool(table)}`)).not.toContain(token);
  });

  test("is used once, however many race with it", async () => {
    const { team, owner } = await createTeam();
    const { signIn } = createSignIn();
    const { token } = await invite(database, owner, team, { role: "viewer" });
    const others = [await createPerson(database, undefined), await createPerson(database, undefined)];
    const uses = await Promise.allSettled([
      ...[0, 1, 2].map(() => acceptAsNew(database, signIn, { token, account: newcomer(), client: CLIENT })),
      ...others.map((person) => acceptAsSelf(database, person, token)),
    ]);
    expect(uses.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const reasons = uses.flatMap((use) => (use.status === "rejected" ? [use.reason.message.slice(0, 27)] : []));
    expect(reasons).toEqual(Array(4).fill("This invitation has expired"));
    expect(await selectMembers(database.pool, team)).toHaveLength(4);
    // Nobody was made an account of by the uses that were refused.
    const left = await database.pool`
      select from account where email like '%@new.example' and not exists (
        select from membership where account_id = account.id)`;
    expect(left).toHaveLength(0);
  });

  test("works for an account that is signed in; a member is refused, and leaves it for others", async () => {
    const { team, owner, member } = await createTeam();
    const { token } = await invite(database, owner, team, { role: "viewer" });
    expect(await refusal(acceptAsSelf(database, member, token))).toBe("You are already a member of Team");
    expect(await selectRole(database.pool, team, member.accountId)).toBe("member");
    const other = await createPerson(database, { team: acme.team, role: "member" });
    expect(await acceptAsSelf(database, other, token)).toEqual({ teamId: team });
    expect(await selectRole(database.pool, team, other.accountId)).toBe("viewer");
    const third = await createPerson(database, undefined);
    expect(await refusal(acceptAsSelf(database, third, token))).toContain("has expired");
  });

  test("for an address is for that account alone", async () => {
    const { team, owner } = await createTeam();
    const { signIn, hashing } = createSignIn();
    const other = await createPerson(database, undefined);
    const { token } = await invite(database, owner, team, { role: "owner", email: "grace@acme.example" });
    const accept = (email: string) =>
      acceptAsNew(database, signIn, { token, account: newcomer(email), client: CLIENT });
    expect(await refusal(acceptAsSelf(database, other, token))).toContain("This invitation is for grace@acme.example");
    expect(await refusal(accept("eve@acme.example"))).toBe("This invitation is for grace@acme.example");
    expect(hashing.count.hash).toBe(0);
    expect(await accept("grace@acme.example")).toMatchObject({ teamId: team });
  });

  test("never takes over an account that there is: its owner signs in first", async () => {
    const { team, owner } = await createTeam();
    const { signIn, hashing } = createSignIn();
    const victim = await createPerson(database, undefined);
    const { token } = await invite(database, owner, team, { role: "viewer" });
    const account = { ...newcomer(victim.email), password: "the attacker's own" };
    expect(await refusal(acceptAsNew(database, signIn, { token, account, client: CLIENT }))).toContain("Sign in");
    expect(hashing.count.hash).toBe(0);
    expect(await findInvitation(database, token)).toBeDefined();
  });

  test("ends when it is a week old, is revoked, or its owner is one no more", async () => {
    const { team, owner } = await createTeam();
    const second = await createPerson(database, { team, role: "owner" });
    const third = await createPerson(database, { team, role: "owner" });
    const make = async (person: typeof owner) => (await invite(database, person, team, { role: "owner" })).token;
    const [old, revoked] = [await make(owner), await make(owner)];
    const [demoted, removed] = [await make(second), await make(third)];
    const [revokedId, oldId] = (await selectInvitations(database.pool, team)).slice(2).map(({ id }) => id);
    await database.pool`update invitation set expires_at = now() - interval '1 minute' where id = ${oldId!}`;
    await revokeInvitation(database, owner, team, revokedId!);
    expect(await refusal(revokeInvitation(database, owner, team, revokedId!))).toBe("absent");
    await changeRole(database, owner, { teamId: team, accountId: second.accountId, role: "member" });
    await removeMember(database, owner, { teamId: team, accountId: third.accountId });
    const stranger = await createPerson(database, undefined);
    for (const token of [old, revoked, demoted, removed, "x", "x".repeat(43)]) {
      expect(await findInvitation(database, token)).toBeUndefined();
      expect(await refusal(acceptAsSelf(database, stranger, token))).toContain("has expired");
    }
    expect((await entriesOf(team)).map(({ action }) => action)).toContain("invitation.revoked");
  });

  test("is forgotten a month after its end, and one that waits is not", async () => {
    const { team, owner } = await createTeam();
    await invite(database, owner, team, { role: "viewer" });
    const waiting = await invite(database, owner, team, { role: "viewer" });
    await database.pool`
      update invitation set expires_at = now() - interval '31 days' where team_id = ${team} and id <> ${waiting.id}`;
    await database.pool`update session set expires_at = now() - interval '2 days' where id = ${owner.sessionId}`;
    await prune(database.pool);
    const left = await database.pool`select id from invitation where team_id = ${team}`;
    expect(left).toEqual([{ id: waiting.id }] as never);
    expect(await database.pool`select from session where id = ${owner.sessionId}`).toHaveLength(0);
  });
});

describe("roles", () => {
  test("are given and taken by owners only, in their own team, and told in the log", async () => {
    const { team, owner, member, viewer } = await createTeam();
    const elsewhere = await createTeam();
    const promote = (person: typeof owner, accountId: string) =>
      changeRole(database, person, { teamId: team, accountId, role: "owner" });
    const remove = (person: typeof owner, accountId: string) =>
      removeMember(database, person, { teamId: team, accountId });
    for (const person of [member, viewer]) {
      expect(await refusal(promote(person, person.accountId))).toBe(TEAM_ONLY);
      expect(await refusal(remove(person, owner.accountId))).toBe(TEAM_ONLY);
    }
    expect(await refusal(promote(elsewhere.owner, viewer.accountId))).toBe("absent");
    expect(await refusal(remove(elsewhere.owner, viewer.accountId))).toBe("absent");
    expect(await refusal(promote(owner, elsewhere.viewer.accountId))).toBe("absent");
    await promote(owner, member.accountId);
    await remove(member, viewer.accountId);
    // Who leaves needs nobody's leave.
    await remove(owner, owner.accountId);
    expect([...(await selectMembers(database.pool, team))]).toMatchObject([
      { accountId: member.accountId, role: "owner" },
    ]);
    const promoted = { actor: owner.email, subject: member.email, details: { from: "member", to: "owner" } };
    expect(await entriesOf(team)).toEqual([
      { action: "member.removed", actor: owner.email, subject: owner.email, details: { role: "owner" } },
      { action: "member.removed", actor: member.email, subject: viewer.email, details: { role: "viewer" } },
      { action: "member.role_changed", ...promoted },
    ]);
    expect(await refusal(promote(owner, member.accountId))).toBe("absent");
  });

  test("the last owner stays one", async () => {
    const { team, owner } = await createTeam();
    const place = { teamId: team, accountId: owner.accountId };
    const message = "A team needs an owner. Make another member an owner first";
    expect(await refusal(removeMember(database, owner, place))).toBe(message);
    expect(await refusal(changeRole(database, owner, { ...place, role: "viewer" }))).toBe(message);
    expect(await selectRole(database.pool, team, owner.accountId)).toBe("owner");
    expect(await entriesOf(team)).toEqual([]);
  });

  test.each(["remove", "demote", "leave"] as const)("two owners who %s at once leave one owner", async (how) => {
    for (let round = 0; round < 5; round++) {
      const { team, owner } = await createTeam();
      const other = await createPerson(database, { team, role: "owner" });
      const act = (person: typeof owner, target: typeof owner) => {
        const place = { teamId: team, accountId: (how === "leave" ? person : target).accountId };
        return how === "demote"
          ? changeRole(database, person, { ...place, role: "viewer" })
          : removeMember(database, person, place);
      };
      const done = await Promise.allSettled([act(owner, other), act(other, owner)]);
      expect(done.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      const refused = done.find(({ status }) => status === "rejected") as PromiseRejectedResult;
      expect(refused.reason.name).toBe("Refusal");
      const owners = await database.pool`select from membership where team_id = ${team} and role = 'owner'`;
      expect(owners).toHaveLength(1);
    }
  });

  test("are proved in the transaction that needs them, and stay so until its end", async () => {
    const { team, owner, member, viewer } = await createTeam();
    const generate = (person: typeof owner) =>
      database.begin(async (sql) => {
        const actor = await requireRole(sql, person, team, "member");
        return await generateTeamKey(sql, team, "theirs", actor);
      });
    expect(await refusal(generate(viewer))).toBe("This is for members of the team only");
    const { promise: go, resolve } = Promise.withResolvers<void>();
    const { promise: proved, resolve: setProved } = Promise.withResolvers<void>();
    const order: string[] = [];
    const slow = database.begin(async (sql) => {
      const actor = await requireRole(sql, member, team, "member");
      setProved();
      await go;
      await generateTeamKey(sql, team, "late", actor);
      order.push("generated");
    });
    await proved;
    const place = { teamId: team, accountId: member.accountId };
    const removed = removeMember(database, owner, place).then(() => order.push("removed"));
    // Only then has the removal taken what it locks first.
    await until(async () => {
      const waiting = await database.pool`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      return waiting.length > 0;
    });
    resolve();
    await Promise.all([slow, removed]);
    expect(order).toEqual(["generated", "removed"]);
    expect(await refusal(generate(member))).toBe("absent");
  });
});

describe("the log", () => {
  test("has every key that is generated or revoked, whoever does it, and never the key", async () => {
    const { team, owner } = await createTeam();
    const project = (await database.begin((sql) => insertProject(sql, team, "web")))!;
    const by = { accountId: owner.accountId, name: owner.email };
    const first = (await database.begin((sql) => generateProjectKey(sql, project, by)))!;
    const second = (await database.begin((sql) => generateTeamKey(sql, team, "CI", COMMAND_LINE)))!;
    for (let again = 0; again < 2; again++)
      expect(await database.begin((sql) => revokeKeyById(sql, second.id, COMMAND_LINE))).toEqual(expect.any(String));
    const teamKey = { kind: "team", projectId: null };
    const details = { kind: "project", projectId: project, name: null };
    expect(await entriesOf(team)).toEqual([
      { action: "key.revoked", actor: "command line", subject: second.leading, details: teamKey },
      { action: "key.generated", actor: "command line", subject: second.leading, details: { ...teamKey, name: "CI" } },
      { action: "key.generated", actor: owner.email, subject: first.leading, details },
    ]);
    const all = JSON.stringify(await entriesOf(team));
    for (const { key } of [first, second]) expect(all).not.toContain(key);
  });

  test("holds nothing of what was rolled back", async () => {
    const { team } = await createTeam();
    const work = database.begin(async (sql) => {
      await generateTeamKey(sql, team, "CI", COMMAND_LINE);
      throw new Error("it failed after that");
    });
    expect(await refusal(work)).toContain("it failed after that");
    expect(await entriesOf(team)).toEqual([]);
  });

  test("cannot be changed, and goes only with its team", async () => {
    const { team } = await createTeam();
    await database.begin((sql) => generateTeamKey(sql, team, "CI", COMMAND_LINE));
    const message = (work: PromiseLike<unknown>) =>
      Promise.resolve(work).then(
        () => "done",
        (error) => error.message,
      );
    const { pool } = database;
    expect(await message(pool`update audit_entry set actor = 'x' where team_id = ${team}`)).toContain("append-only");
    expect(await message(pool`delete from audit_entry where team_id = ${team}`)).toContain("append-only");
    expect(await message(database.pool`delete from team where id = ${team}`)).toBe("done");
    expect(await entriesOf(team)).toEqual([]);
  });

  test("pages newest first", async () => {
    const { team } = await createTeam();
    for (const name of ["a", "b", "c"]) await database.begin((sql) => generateTeamKey(sql, team, name, COMMAND_LINE));
    const page = await selectAuditEntries(database.pool, team, { limit: 1 });
    expect(page.map(({ details }) => details["name"])).toEqual(["c", "b"]);
    const next = await selectAuditEntries(database.pool, team, { limit: 5, after: page[0]!.id });
    expect(next.map(({ details }) => details["name"])).toEqual(["b", "a"]);
  });
});

test("the operator admits an account to one more team, once", async () => {
  const { team, viewer } = await createTeam();
  const other = await database.begin((sql) => insertTeam(sql, "Other"));
  const admit = (given: { email: string; teamId: string }) =>
    database.begin((sql) => admitUser(sql, { ...given, role: "owner" }));
  expect(await admit({ email: viewer.email, teamId: other })).toEqual({ id: viewer.accountId });
  expect(await admit({ email: viewer.email, teamId: other })).toBe("member");
  expect(await admit({ email: "nobody@acme.example", teamId: other })).toBe("no account");
  expect(await admit({ email: viewer.email, teamId: crypto.randomUUID() })).toBe("no team");
  expect(await selectRole(database.pool, team, viewer.accountId)).toBe("viewer");
});
