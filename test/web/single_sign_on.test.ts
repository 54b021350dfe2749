/** Signing in at a real OpenID Connect provider, as a browser does, over HTTP. */

import { describe, expect, setSystemTime, test } from "bun:test";
import { createBrowser, wordsOf } from "../browser.ts";
import { createDatabase, createServer } from "../harness.ts";
import { createProvider, OIDC_CLIENT, type TestProvider } from "../oidc.ts";
import { createPerson, createSignIn, PASSWORD } from "../people.ts";
import { createAddressList } from "../../src/http/address.ts";
import { createOidc } from "../../src/http/oidc.ts";
import { createOutbound } from "../../src/http/outbound.ts";
import { createSetupToken } from "../../src/operations/people/accounts.ts";
import { invite } from "../../src/operations/people/members.ts";
import { insertTeam } from "../../src/store/projects.ts";
import { OIDC_CALLBACK } from "../../src/web/pages/log_in/provider.tsx";

const verified = (name: string) => ({
  email: `${name}@acme.example`,
  email_verified: true,
  name: `${name} of the provider`,
});
const people = {
  ada: verified("ada"),
  grace: verified("grace"),
  eve: { ...verified("eve"), email: "eve@evil.example" },
};

/** A server with a provider of its own. */
async function createPlace({ passwordLogin = true, allowedDomains = ["acme.example"] } = {}) {
  const { database } = await createDatabase();
  let provider: TestProvider | undefined;
  const log: string[] = [];
  // The provider must know where to send people back to, and the server where the provider is.
  const outbound = createOutbound({ allow: createAddressList(["127.0.0.0/8"]) });
  const { promise: opened, resolve } = Promise.withResolvers<TestProvider>();
  const server = await createServer(database, {
    log: (line) => log.push(line),
    signIn: (publicUrl) => {
      const redirectUri = `${publicUrl}${OIDC_CALLBACK}`;
      void createProvider({ people, redirectUri }).then(resolve);
      const open = async () => {
        provider ??= await opened;
        const { issuer } = provider;
        return createOidc({ ...OIDC_CLIENT, issuer, redirectUri, outbound, issuerOutbound: outbound });
      };
      let oidc: ReturnType<typeof open> | undefined;
      return {
        ...createSignIn().signIn,
        policy: { allowedDomains, passwordLogin },
        oidc: {
          host: "id.acme.example",
          begin: async () => await (await (oidc ??= open())).begin(),
          finish: async (answer, flow) => await (await oidc!).finish(answer, flow),
        },
      };
    },
  });
  const team = await database.begin((sql) => insertTeam(sql, "Team"));
  const owner = await createPerson(database, { team, role: "owner" });
  /** Follows the way to the provider and back; `start` is a page's link, or where a form has led. */
  const follow = async (browser: ReturnType<typeof createBrowser>, name: string, start: string) => {
    const away = start.startsWith("http") ? start : (await browser.get(start)).location!;
    const answer = await (await opened).signIn(away, name);
    return await browser.get(`${OIDC_CALLBACK}?${new URLSearchParams(answer)}`);
  };
  return { ...server, database, team, owner, follow, log, provider: () => opened };
}

const linkIn = ({ text }: { text: string }) => /href="(\/login\/oidc\?[^"]+)"/.exec(text)![1]!;
/** The link to the provider on the page that links an account. */
const providerIn = ({ text }: { text: string }) => /href="(http[^"]+)"/.exec(text)![1]!.replaceAll("&amp;", "&");

test("somebody of a domain that is let in signs in, is a viewer of the only team, and is led back", async () => {
  const { url, follow, team } = await createPlace();
  const browser = createBrowser(url);
  const page = await browser.get(`/login?${new URLSearchParams({ next: `/teams/${team}/members` })}`);
  expect(wordsOf(page)).toContain("Continue with id.acme.example");
  const back = await follow(browser, "ada", linkIn(page));
  expect([back.status, back.location]).toEqual([303, `/teams/${team}/members`]);
  expect(back.headers.getSetCookie().join()).toMatch(/assay_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax/);
  expect(wordsOf(await browser.get(back.location!))).toContain("ada of the provider you ada@acme.example viewer");
  const away = await browser.get("/login/oidc?next=//evil.example");
  expect(away.status).toBe(303);
  expect((await follow(browser, "ada", away.location!)).location).toBe("/");
});

test("a stranger is told to ask for an invitation, and gets in with one", async () => {
  const { url, follow, database, team, owner } = await createPlace({ allowedDomains: [], passwordLogin: false });
  const browser = createBrowser(url);
  const refused = await follow(browser, "eve", "/login/oidc");
  expect([refused.status, wordsOf(refused)]).toEqual([
    400,
    expect.stringContaining("There is no account for eve@evil.example: ask an owner of a team for an invitation"),
  ]);
  expect(browser.cookies.has("assay_session")).toBe(false);
  const { token } = await invite(database, owner, team, { role: "member" });
  const page = await browser.get(`/invitations/${token}`);
  expect(page.text).not.toContain('type="password"');
  expect((await follow(browser, "eve", linkIn(page))).location).toBe("/");
  expect((await browser.get(`/teams/${team}/members`)).status).toBe(200);
  // Who has an account already comes back to the invitation's page.
  const other = await invite(database, owner, team, { role: "member" });
  const again = await follow(createBrowser(url), "eve", `/login/oidc?invitation=${other.token}`);
  expect(again.location).toBe(`/invitations/${other.token}`);
  // What stands in a link is anybody's: it is a part of the path and nothing else.
  const strange = await follow(createBrowser(url), "eve", `/login/oidc?invitation=${encodeURIComponent("€\r\nX: y")}`);
  expect([strange.status, strange.location]).toEqual([303, "/invitations/%E2%82%AC%0D%0AX%3A%20y"]);
});

test("the first account is made at the provider with the link that the start has printed", async () => {
  const { url, follow, database } = await createPlace({ passwordLogin: false });
  await database.pool`delete from account`;
  const setup = (await createSetupToken(database))!;
  const browser = createBrowser(url);
  const link = linkIn(await browser.get(`/setup?token=${setup}`));
  expect((await follow(browser, "grace", link)).location).toBe("/");
  expect(wordsOf(await browser.get("/"))).toContain("team settings");
  expect(wordsOf(await follow(createBrowser(url), "eve", `/login/oidc?setup=${setup}`))).toContain(
    "This link has expired",
  );
});

describe("an account with a password", () => {
  test("is not taken over by its address; its owner links it, and it opens either way", async () => {
    const { url, follow, database, log } = await createPlace();
    const person = await createPerson(database, undefined);
    await database.pool`update account set email = 'ada@acme.example' where id = ${person.accountId}`;
    const stranger = createBrowser(url);
    expect(wordsOf(await follow(stranger, "ada", "/login/oidc"))).toContain(
      "has a password: sign in with it, then link it",
    );
    const browser = createBrowser(url);
    await browser.submit("/login", "/login", { email: "ada@acme.example", password: PASSWORD });
    expect(wordsOf(await browser.get("/account"))).toContain("id.acme.example is not linked to this account");
    const to = await browser.submit("/account", "/account/link");
    expect(to.location).toBe("/account/link");
    const away = providerIn(await browser.get("/account/link"));
    // Somebody else's browser links nothing.
    const answer = await follow(createBrowser(url), "ada", away);
    expect(wordsOf(answer)).toContain("expired or was started in another browser");
    await browser.submit("/account", "/account/link");
    const second = providerIn(await browser.get("/account/link"));
    expect((await follow(browser, "ada", second)).location).toBe("/account?notice=linked");
    expect((await follow(createBrowser(url), "ada", "/login/oidc")).location).toBe("/");
    expect(log.join("\n")).not.toContain(PASSWORD);
  });

  test("is linked by the session that began it alone: not after a new sign-in, as the same account or another", async () => {
    const { url, follow, database, team } = await createPlace();
    const [ada, eve] = [
      await createPerson(database, { team, role: "member" }),
      await createPerson(database, undefined),
    ];
    await database.pool`update account set email = 'ada@acme.example' where id = ${ada.accountId}`;
    const browser = createBrowser(url);
    const signIn = (email: string) => browser.submit("/login", "/login", { email, password: PASSWORD });
    for (const email of ["ada@acme.example", eve.email]) {
      browser.cookies.delete("assay_session");
      await signIn("ada@acme.example");
      await browser.submit("/account", "/account/link");
      const page = await browser.get("/account/link");
      expect(wordsOf(page)).toContain("Sign in at id.acme.example to use that identity for this account.");
      const away = providerIn(page);
      browser.cookies.delete("assay_session");
      await signIn(email);
      const answer = await follow(browser, "ada", away);
      expect([answer.status, answer.location]).toEqual([502, null]);
      expect(wordsOf(await browser.get("/account"))).toContain("id.acme.example is not linked to this account");
    }
    expect(await database.pool`select from account where oidc_subject is not null`).toHaveLength(0);
  });
});

test("an answer that comes later than ten minutes after the sign-in began opens nothing", async () => {
  const { url, follow } = await createPlace();
  const browser = createBrowser(url);
  const away = (await browser.get("/login/oidc")).location!;
  try {
    setSystemTime(Date.now() + 11 * 60_000);
    const late = await follow(browser, "ada", away);
    expect([late.status, wordsOf(late)]).toEqual([
      400,
      expect.stringContaining("The sign-in expired or was started in another browser"),
    ]);
  } finally {
    setSystemTime();
  }
  expect(browser.cookies.has("assay_session")).toBe(false);
});

test("an answer that was made up, or is for another browser, opens nothing; the log says why, without a secret", async () => {
  const { url, follow, log, provider } = await createPlace();
  const [mine, theirs] = [createBrowser(url), createBrowser(url)];
  const away = (await theirs.get("/login/oidc")).location!;
  expect((await follow(mine, "ada", away)).status).toBe(400);
  await mine.get("/login/oidc");
  const wrong = await follow(mine, "ada", away);
  expect([wrong.status, wordsOf(wrong)]).toEqual([
    502,
    expect.stringContaining("The identity provider did not confirm your identity"),
  ]);
  expect(log.join("\n")).toContain('unexpected \\"state\\"');
  mine.cookies.set("assay_oidc", `${mine.cookies.get("assay_oidc")!.slice(0, -4)}AAAA`);
  expect((await mine.get(`${OIDC_CALLBACK}?code=x&state=y`)).status).toBe(400);
  expect((await createBrowser(url).get(`${OIDC_CALLBACK}?code=x&state=y&session_state=z`)).status).toBe(400);
  for (const browser of [mine, theirs]) expect(browser.cookies.has("assay_session")).toBe(false);
  for (const cookie of theirs.cookies.values()) expect(cookie).not.toContain(new URL(away).searchParams.get("nonce")!);
  expect(log.join("\n")).not.toContain(OIDC_CLIENT.clientSecret);
  expect((await provider()).requests.filter((request) => request === "POST /token")).toEqual([]);
});
