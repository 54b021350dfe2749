/** The pages about people: one's account, members, invitations, the audit log. */

import { describe, expect, test } from "bun:test";
import { type Browser, createBrowser, wordsOf } from "../browser.ts";
import { createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";
import { createPerson, createSignIn, PASSWORD } from "../people.ts";
import { selectAuditEntries } from "../../src/store/audit.ts";
import { insertTeam } from "../../src/store/projects.ts";
import type { Role } from "../../src/schema/accounts.ts";

const lines: string[] = [];
const { url, database, acme, rival, ask } = await createHarness({
  ownDatabase: true,
  signIn: () => ({ ...createSignIn().signIn, policy: { allowedDomains: [], passwordLogin: true }, oidc: undefined }),
  log: (line) => lines.push(line),
});

async function open(team: string | undefined, role: Role = "viewer") {
  const person = await createPerson(database, team === undefined ? undefined : { team, role });
  const browser = createBrowser(url);
  browser.cookies.set("assay_session", person.token);
  return { ...person, browser };
}
async function createTeam(name = "Team") {
  const team = await database.begin((sql) => insertTeam(sql, name));
  const [owner, member, viewer] = [await open(team, "owner"), await open(team, "member"), await open(team, "viewer")];
  return { team, owner, member, viewer, other: await open(acme.team, "owner") };
}
describe("an invitation", () => {
  async function makeLink(browser: Browser, team: string, fields: Record<string, string>) {
    const shown = await browser.submit(`/teams/${team}/members`, `/teams/${team}/invitations`, fields);
    const link = new RegExp(`${url}(/invitations/[\\w-]{43})`).exec(shown.text)?.[1];
    return { shown, link: link! };
  }

  test("is a link that is shown once, and makes a member of whoever has no account", async () => {
    const { team, owner } = await createTeam();
    const { shown, link } = await makeLink(owner.browser, team, { role: "member", email: "" });
    expect(shown.status).toBe(200);
    expect(wordsOf(shown)).toContain("Send this link to invite a member. It is not shown again.");
    const page = await owner.browser.get(`/teams/${team}/members`);
    expect(page.text).not.toContain(link);
    expect(wordsOf(page)).toContain("anyone with the link as a member, by");
    expect(wordsOf(page)).toContain("in 7 days");

    const guest = createBrowser(url);
    expect(wordsOf(await guest.get(link))).toContain("Join Team You are invited as a member");
    const given = { name: "Grace", email: "grace@new.example", password: PASSWORD };
    const wrong = await guest.submit(link, "/invitations", { ...given, password: "short" });
    expect([wrong.status, wordsOf(wrong)]).toEqual([400, expect.stringContaining("Expected a password")]);
    const joined = await guest.submit(link, "/invitations", given);
    expect([joined.status, joined.location]).toEqual([303, "/"]);
    expect(wordsOf(await guest.get("/"))).toContain("team settings");
    const over = await createBrowser(url).get(link);
    expect([over.status, wordsOf(over)]).toEqual([404, expect.stringContaining("This invitation has expired")]);
    expect(lines.join("\n")).not.toContain(link.split("/").at(-1));
  });

  test("is joined by who is signed in, and by who signs in first", async () => {
    const { team, owner, other } = await createTeam();
    const first = await makeLink(owner.browser, team, { role: "viewer" });
    expect(wordsOf(await other.browser.get(first.link))).toContain(`Join as ${other.email}`);
    expect((await other.browser.submit(first.link, "/invitations")).status).toBe(303);
    expect((await other.browser.get(`/teams/${team}/members`)).status).toBe(200);

    const second = await makeLink(owner.browser, team, { role: "viewer" });
    const person = await createPerson(database, undefined);
    const guest = createBrowser(url);
    const shown = await guest.get(second.link);
    expect(shown.text).toContain(`/login?${new URLSearchParams({ next: second.link })}`);
    const account = { name: "Eve", email: person.email, password: PASSWORD };
    const taken = await guest.submit(second.link, "/invitations", account);
    expect(taken.status).toBe(400);
    expect(wordsOf(taken)).toContain("Sign in, then open the invitation again");
    const login = `/login?${new URLSearchParams({ next: second.link })}`;
    const back = await guest.submit(login, "/login", { email: person.email, password: PASSWORD });
    expect(back.location).toBe(second.link);
    expect((await guest.submit(second.link, "/invitations")).status).toBe(303);
  });

  test("for an address says so, is revoked, and a wrong role or address is refused in words", async () => {
    const { team, owner } = await createTeam();
    const bound = await makeLink(owner.browser, team, { role: "viewer", email: "Only@acme.example" });
    const guest = createBrowser(url);
    expect(wordsOf(await guest.get(bound.link))).toContain("New account: only@acme.example");
    const page = await owner.browser.get(`/teams/${team}/members`);
    const revoke = /action="([^"]+\/revoke)"/.exec(page.text)![1]!;
    const revoked = await owner.browser.submit(`/teams/${team}/members`, revoke);
    expect(revoked.location).toBe(`/teams/${team}/members?notice=revoked`);
    expect((await guest.get(bound.link)).status).toBe(404);
    for (const fields of [{ role: "king" }, { role: "viewer", email: "nonsense" }]) {
      const { shown } = await makeLink(owner.browser, team, fields);
      expect([shown.status, wordsOf(shown)]).toEqual([400, expect.stringContaining("Expected")]);
    }
  });
});

test("roles are changed and members removed; the last owner is told why not; all of it is in the log", async () => {
  const { team, owner, member, viewer } = await createTeam();
  const page = `/teams/${team}/members`;
  const place = (who: { accountId: string }) => `${page}/${who.accountId}`;
  const change = (who: { accountId: string }, role: Role) => owner.browser.submit(page, `${place(who)}/role`, { role });
  expect((await change(member, "owner")).location).toBe(`${page}?notice=role`);
  expect((await change(member, "member")).location).toBe(`${page}?notice=role`);
  const seen = (await viewer.browser.get(page)).text;
  expect(seen).toContain(`${place(viewer)}/remove`);
  expect(seen).not.toContain(`${place(owner)}/remove`);
  const last = await change(owner, "viewer");
  expect(last.status).toBe(400);
  expect(wordsOf(last)).toContain("A team needs an owner. Make another member an owner first");
  expect((await owner.browser.submit(page, `${place(viewer)}/remove`)).location).toBe(`${page}?notice=removed`);
  expect((await viewer.browser.get(page)).status).toBe(404);
  expect((await member.browser.submit(page, `${place(member)}/remove`)).location).toBe("/");
  const log = await owner.browser.get(`/teams/${team}/audit`);
  const words = wordsOf(log);
  for (const sentence of [
    `${owner.email} changed the role of ${member.email} from: member · to: owner`,
    `${owner.email} removed the member ${viewer.email} role: viewer`,
    `${member.email} removed the member ${member.email} role: member`,
  ])
    expect(words).toContain(sentence);
});

test("the log pages back by fifties", async () => {
  const { team, owner } = await createTeam();
  await database.pool`
    insert into audit_entry (team_id, id, actor, action, subject)
    select ${team}, ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'command line', 'key.revoked', 'key number ' || n
    from generate_series(1, 60) n`;
  const first = await owner.browser.get(`/teams/${team}/audit`);
  const subjects = ({ text }: { text: string }) =>
    [...text.matchAll(/key number (\d+)/g)].map(([, number]) => Number(number));
  expect(subjects(first)).toEqual(Array.from({ length: 50 }, (_, index) => 60 - index));
  const older = /href="([^"]+\?after=[^"]+)"/.exec(first.text)![1]!;
  expect(subjects(await owner.browser.get(older))).toEqual(Array.from({ length: 10 }, (_, index) => 10 - index));
});

test("what keys change through the API is in the log by name, and never what was set", async () => {
  const { browser } = await open(rival.team, "owner");
  const base = `/teams/${rival.team}`;
  const call = async (target: string, body?: unknown): Promise<any> =>
    (await ask(target.replace(" ", ` ${base}`), { key: rival.teamKey, body })).body;
  const own = createAsking(ask, rival);
  const environment = await call("POST /environments", { slug: "staging" });
  const there = `/environments/${environment.id}`;
  await call(`PUT ${there}/variables/TOKEN`, { value: "hunter2" });
  await call(`PUT ${there}/variables`, { OTHER: "hunter3" });
  await call(`DELETE ${there}/variables/OTHER`);
  expect((await call(`DELETE ${there}/variables/OTHER`)).error.code).toBe("NOT_FOUND");
  await call(`PATCH ${there}`, { name: "Staging" });
  const hook = { kind: "webhook", name: "Hook", config: { url: "https://hooks.example/hunter4" } };
  const integration = await call("POST /integrations", hook);
  expect(integration.config.secret).toStartWith("whsec_");
  await call(`PATCH /integrations/${integration.id}`, { enabled: false });
  const actions = [{ type: "notify", integrationId: integration.id }];
  const made = await call("POST /automations", { name: "Tell", trigger: { event: "execution.failed" }, actions });
  await call(`PATCH /automations/${made.id}`, { name: "Tell all" });
  await call(`DELETE /automations/${made.id}`);
  await call(`DELETE /integrations/${integration.id}`);
  await call(`DELETE ${there}`);
  await own.patch("", { name: "Renamed" });
  const { executionId } = await own.upload("p", "complete=true");
  const [testCase] = await own.list("/test-cases");
  const [one, two] = [
    await own.post("/bug-reports", { title: "One" }),
    await own.post("/bug-reports", { title: "Two" }),
  ];
  await own.patch(`/bug-reports/${one.id}`, { severity: "minor" });
  await own.post(`/bug-reports/${one.id}/merge`, { into: two.id });
  await own.patch(`/test-cases/${testCase.id}`, { owner: "shop" });
  await own.patch("/test-cases", { testCaseIds: [testCase.id], owner: null });
  await own.call("DELETE", `/executions/${executionId}`);
  // What is refused or only read is no news.
  await call("POST /environments", {});
  await call("GET /environments");
  const entries = await selectAuditEntries(database.pool, rival.team, { limit: 100 });
  expect(
    entries
      .filter(({ action }) => !action.startsWith("key."))
      .map(({ actor, action, subject }) => [actor, action, subject]),
  ).toEqual([
    ...[
      ["execution.deleted", executionId],
      ["test_case.changed", ""],
      ["test_case.changed", testCase.name],
      ["bug.merged", `a bug into Bug ${two.number}`],
      ["bug.changed", `Bug ${one.number}`],
      ["bug.created", `Bug ${two.number}`],
      ["bug.created", `Bug ${one.number}`],
      ["project.changed", "Renamed"],
    ].map((entry) => [`key ${rival.key.slice(0, 17)}`, ...entry]),
    ...[
      ["environment.deleted", environment.id],
      ["integration.deleted", integration.id],
      ["automation.deleted", made.id],
      ["automation.changed", "Tell all"],
      ["automation.created", "Tell"],
      ["integration.changed", "Hook"],
      ["integration.created", "Hook"],
      ["environment.changed", "staging"],
      ["variable.deleted", "OTHER"],
      ["variables.replaced", environment.id],
      ["variable.changed", "TOKEN"],
      ["environment.created", "staging"],
    ].map((entry) => [`key ${rival.teamKey.slice(0, 17)}`, ...entry]),
  ]);
  const everything = JSON.stringify(entries);
  for (const secret of ["hunter", rival.teamKey, integration.config.secret]) expect(everything).not.toContain(secret);
  expect(wordsOf(await browser.get(`${base}/audit`))).toContain("set the variable TOKEN");
});

describe("/account", () => {
  test("changes the name and the password, and lists where one is signed in", async () => {
    const person = await open(undefined);
    const { browser } = person;
    const second = createBrowser(url);
    await second.submit("/login", "/login", { email: person.email, password: PASSWORD });
    const page = await browser.get("/account");
    expect(wordsOf(page)).toContain("Firefox on Linux");
    expect(wordsOf(page)).toContain("Tester/1.0 current");
    expect((await browser.submit("/account", "/account/name", { name: " " })).status).toBe(400);
    const renamed = await browser.submit("/account", "/account/name", { name: "Ada <i>" });
    expect(renamed.location).toBe("/account?notice=name");
    expect((await browser.get("/account?notice=name")).text).toContain('value="Ada &lt;i&gt;"');
    const change = (current: string, password: string) =>
      browser.submit("/account", "/account/password", { current, password });
    for (const [current, password, message] of [
      ["wrong", "another one entirely", "The current password is wrong"],
      [PASSWORD, "short", "Expected a password of 10"],
    ] as const)
      expect(wordsOf(await change(current, password))).toContain(message);
    expect((await change(PASSWORD, "another one entirely")).location).toBe("/account?notice=password");
    expect((await second.get("/account")).status).toBe(303);
    expect((await browser.get("/account")).status).toBe(200);
  });

  test("ends one other session, or all of them, and never somebody else's", async () => {
    const person = await open(undefined);
    const stranger = await open(undefined);
    const others = [createBrowser(url), createBrowser(url), createBrowser(url)];
    for (const other of others) await other.submit("/login", "/login", { email: person.email, password: PASSWORD });
    const { csrf } = stranger.browser.hiddenOf(await stranger.browser.get("/account"), "/account/name");
    const theirs = await stranger.browser.post(`/account/sessions/${person.sessionId}/revoke`, { csrf: csrf! });
    expect(theirs.status).toBe(404);
    const page = await person.browser.get("/account");
    const ends = [...page.text.matchAll(/action="(\/account\/sessions\/[0-9a-f-]+\/revoke)"/g)].map(
      (match) => match[1]!,
    );
    expect(ends).toHaveLength(3);
    expect((await person.browser.submit("/account", ends[0]!)).location).toBe("/account?notice=session");
    const alive = async () =>
      (await Promise.all(others.map((other) => other.get("/account")))).filter(({ status }) => status === 200).length;
    expect(await alive()).toBe(2);
    const all = await person.browser.submit("/account", "/account/sessions/revoke");
    expect(all.location).toBe("/account?notice=sessions");
    expect([await alive(), (await person.browser.get("/account")).status]).toEqual([0, 200]);
  });
});
