/** Getting in and out over HTTP. */

import { describe, expect, test } from "bun:test";
import { createBrowser, wordsOf } from "../browser.ts";
import { createDatabase, createHarness, createServer } from "../harness.ts";
import { createPerson, createSignIn, PASSWORD } from "../people.ts";
import { createSetupToken } from "../../src/operations/people/accounts.ts";
import { createFirstProject } from "../../src/operations/projects/first_project.ts";

const quick =
  (policy: object = {}) =>
  () => ({ ...createSignIn().signIn, policy: { allowedDomains: [], passwordLogin: true, ...policy }, oidc: undefined });
const lines: string[] = [];
const { url, database, acme } = await createHarness({
  ownDatabase: true,
  signIn: quick(),
  log: (line) => lines.push(line),
});
const SESSION = "assay_session";

async function signedIn(person: { email: string }) {
  const browser = createBrowser(url);
  const shown = await browser.submit("/login", "/login", { email: person.email, password: PASSWORD });
  expect([shown.status, shown.location]).toEqual([303, "/"]);
  return browser;
}

describe("/setup", () => {
  test("makes the first account with the link, signs it in, and is over then", async () => {
    const { database } = await createDatabase();
    const server = await createServer(database, { signIn: quick() });
    await createFirstProject(database);
    const browser = createBrowser(server.url);
    expect((await browser.get("/")).location).toBe("/login?next=%2F");
    expect(wordsOf(await browser.get("/login"))).toContain("There are no accounts yet");
    for (const link of ["/setup", "/setup?token=guessed", `/setup?token=${"x".repeat(43)}`]) {
      const over = await browser.get(link);
      expect([link, over.status, over.text.includes("<form")]).toEqual([link, 404, false]);
    }
    const link = `/setup?token=${await createSetupToken(database)}`;
    const person = { name: "Ada <b>", email: "ada@acme.example", password: PASSWORD };
    const short = await browser.submit(link, "/setup", { ...person, password: "short" });
    expect([short.status, wordsOf(short)]).toEqual([400, expect.stringContaining("Expected a password of 10 to 1000")]);
    expect(short.text).not.toContain('value="short"');
    expect(short.text).toContain('value="Ada &lt;b&gt;"');
    const made = await browser.submit(link, "/setup", person);
    expect([made.status, made.location]).toEqual([303, "/"]);
    const home = await browser.get("/");
    expect([home.status, wordsOf(home)]).toEqual([200, expect.stringContaining("My project")]);
    expect((await createBrowser(server.url).get(link)).status).toBe(404);
  });
});

describe("/login", () => {
  test("starts a session in a cookie that scripts and other sites do not get, and leads back", async () => {
    const person = await createPerson(database, { team: acme.team, role: "member" });
    const browser = createBrowser(url);
    const path = `/teams/${acme.team}/members?notice=role`;
    const away = await browser.get(path);
    expect([away.status, away.location]).toEqual([303, `/login?${new URLSearchParams({ next: path })}`]);
    const shown = await browser.submit(away.location!, "/login", {
      email: ` ${person.email.toUpperCase()}`,
      password: PASSWORD,
    });
    expect([shown.status, shown.location]).toEqual([303, path]);
    const cookie = shown.headers.getSetCookie().find((cookie) => cookie.startsWith(SESSION))!;
    expect(cookie).toMatch(/^assay_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=7776000$/);
    expect(shown.headers.get("cache-control")).toBe("no-store");
    const page = await browser.get(path);
    expect([page.status, page.headers.get("cache-control")]).toEqual([200, "no-store"]);
    // Who is in needs no form.
    expect((await browser.get("/login?next=/account")).location).toBe("/account");
  });

  test("leads to no other host", async () => {
    const next = "//evil.example";
    const person = await createPerson(database, undefined);
    const browser = createBrowser(url);
    const page = `/login?${new URLSearchParams({ next })}`;
    const given = { email: person.email, password: PASSWORD };
    expect((await browser.submit(page, "/login", given)).location).toBe("/");
    expect((await browser.get(page)).location).toBe("/");
    const again = createBrowser(url);
    // Nor from a field that somebody has changed.
    expect((await again.submit("/login", "/login", { ...given, next })).location).toBe("/");
  });

  test("answers an unknown address, a wrong password and a damaged one alike, and holds no password", async () => {
    const person = await createPerson(database, undefined);
    const answers = [];
    for (const [email, password] of [
      [person.email, "a wrong password"],
      ["nobody@acme.example", "a wrong password"],
      [person.email, ""],
    ] as const) {
      const browser = createBrowser(url);
      const shown = await browser.submit("/login", "/login", { email, password });
      expect(browser.cookies.has(SESSION)).toBe(false);
      expect(shown.text).not.toContain("a wrong password");
      answers.push([shown.status, wordsOf(shown).replaceAll(email, "…"), shown.text.length - email.length]);
    }
    expect(answers[1]).toEqual(answers[0]!);
    expect(answers[2]).toEqual(answers[0]!);
    expect(answers[0]![1]).toContain("The e-mail address or the password is wrong");
  });

  test("tells who tries too often to wait, and lets others in meanwhile", async () => {
    const server = await createServer(database, { signIn: quick(), trustProxy: ["127.0.0.0/8"] });
    const person = await createPerson(database, undefined);
    const stranger = createBrowser(server.url, { "x-forwarded-for": "203.0.113.66" });
    let last = "";
    for (let count = 0; count < 4; count++)
      last = wordsOf(await stranger.submit("/login", "/login", { email: person.email, password: "guess" }));
    expect(last).toContain("Too many attempts, try again in 1 s");
    const owner = createBrowser(server.url, { "x-forwarded-for": "192.0.2.1" });
    expect((await owner.submit("/login", "/login", { email: person.email, password: PASSWORD })).status).toBe(303);
  });

  test("ignores a session that somebody has put into the browser before", async () => {
    const [eve, person] = [await createPerson(database, undefined), await createPerson(database, undefined)];
    const browser = createBrowser(url);
    const page = await browser.get("/login");
    const fields = browser.hiddenOf(page, "/login");
    browser.cookies.set(SESSION, "fixed-by-somebody".padEnd(43, "x"));
    const shown = await browser.post("/login", { ...fields, email: person.email, password: PASSWORD });
    expect(shown.status).toBe(303);
    expect(browser.cookies.get(SESSION)).not.toStartWith("fixed");
    expect(eve.token).not.toBe(browser.cookies.get(SESSION)!);
  });

  test("and /setup know no password where those are switched off", async () => {
    const { database } = await createDatabase();
    const server = await createServer(database, { signIn: quick({ passwordLogin: false }) });
    const link = `/setup?token=${await createSetupToken(database)}`;
    const browser = createBrowser(server.url);
    for (const page of [link, "/login"]) expect((await browser.get(page)).text).not.toContain('type="password"');
    const person = await createPerson(database, undefined);
    // The form's token is that of any form of a stranger.
    const other = await createServer(database, { signIn: quick() });
    const elsewhere = createBrowser(other.url);
    const { csrf } = elsewhere.hiddenOf(await elsewhere.get("/login"), "/login");
    for (const [name, value] of elsewhere.cookies) browser.cookies.set(name, value);
    const shown = await browser.post("/login", { csrf: csrf!, email: person.email, password: PASSWORD });
    expect([shown.status, wordsOf(shown)]).toEqual([400, expect.stringContaining("Passwords are switched off")]);
  });
});

test("a form with the token of somebody else, or without the cookie that it is bound to, is refused", async () => {
  const [ada, eve] = [await createPerson(database, undefined), await createPerson(database, undefined)];
  const [hers, his] = [await signedIn(ada), await signedIn(eve)];
  const { csrf } = his.hiddenOf(await his.get("/account"), "/account/name");
  expect((await hers.post("/account/name", { csrf: csrf!, name: "Eve" })).status).toBe(403);
  const stranger = createBrowser(url);
  const hidden = stranger.hiddenOf(await stranger.get("/login"), "/login");
  const login = { ...hidden, email: ada.email, password: PASSWORD };
  expect((await stranger.post("/login", login, { "sec-fetch-site": "cross-site" })).status).toBe(403);
  stranger.cookies.clear();
  expect((await stranger.post("/login", login)).status).toBe(403);
});

test("/logout ends the session for whoever has its cookie", async () => {
  const browser = await signedIn(await createPerson(database, undefined));
  const token = browser.cookies.get(SESSION)!;
  const shown = await browser.submit("/account", "/logout");
  expect([shown.status, shown.location, browser.cookies.has(SESSION)]).toEqual([303, "/login", false]);
  browser.cookies.set(SESSION, token);
  expect((await browser.get("/account")).location).toBe("/login?next=%2Faccount");
});

test("/logout is there on the page of an error as well", async () => {
  const browser = await signedIn(await createPerson(database, undefined));
  const shown = await browser.submit(`/teams/${crypto.randomUUID()}/members`, "/logout");
  expect([shown.status, shown.location]).toEqual([303, "/login"]);
});

test("no password and no token of a session, form or link is in the log", async () => {
  const person = await createPerson(database, undefined);
  const browser = await signedIn(person);
  await browser.submit("/account", "/logout");
  const log = lines.join("\n");
  expect(log).toContain("/login");
  expect(log).not.toContain(PASSWORD);
  for (const value of browser.cookies.values()) expect(log).not.toContain(value);
});
