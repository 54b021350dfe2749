/** The way from an empty server to a team that works with it, as people go it: pressing and writing, in a real browser. */

import { describe, expect, test } from "bun:test";
import { createSetupToken } from "../../../src/operations/people/accounts.ts";
import { createFirstProject } from "../../../src/operations/projects/first_project.ts";
import { createDatabase, createServer } from "../../harness.ts";
import { createSignIn } from "../../people.ts";
import { hasChromium, openChromium } from "../../browser/chromium.ts";

const CLOCK = new Date();
const ADA = { name: "Ada Lovelace", email: "ada@acme.example", password: "correct horse battery" };
const GRACE = { name: "Grace Hopper", email: "grace@acme.example", password: "nanoseconds of wire" };

const REPORT = `<testsuite name="cart">
<testcase classname="cart" name="adds an item" time="0.02"/>
<testcase classname="cart" name="adds up" time="0.03"><failure message="expected 2 items, got 1">Error: expected 2 items, got 1
    at total (src/cart/total.ts:41:17)</failure></testcase>
<testcase classname="cart" name="finds a price" time="0.03"><failure message="TypeError: no currency">TypeError: no currency
    at priceOf (src/cart/price.ts:7:3)</failure></testcase>
</testsuite>`;

describe.skipIf(!hasChromium)("from the link of the first start to a team at work", async () => {
  if (!hasChromium) return;
  const chromium = await openChromium("http://127.0.0.1");
  const { fill, follow, press, becomes, words, evaluate, complaints } = chromium;
  const says = (text: string) => becomes(`document.body.innerText.includes(${JSON.stringify(text)})`);

  test.each([
    { width: 1280, scheme: "light", script: true },
    { width: 375, scheme: "dark", script: true },
    { width: 1280, scheme: "dark", script: false },
    { width: 375, scheme: "light", script: false },
  ] as const)(
    "at $width pixels, $scheme, with scripts: $script",
    async ({ width, scheme, script }) => {
      const { database } = await createDatabase();
      const { url, ask } = await createServer(database, {
        clock: () => CLOCK,
        signIn: () => ({
          ...createSignIn().signIn,
          policy: { allowedDomains: [], passwordLogin: true },
          oidc: undefined,
        }),
      });
      await createFirstProject(database);
      const [{ project }] = await database.pool<[{ project: string }]>`select id as project from project`;
      const go = (path: string) => chromium.go(new URL(path, url).href);
      const fits = async () =>
        expect(await evaluate<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
      const signIn = async ({ email, password }: typeof ADA) => {
        await fill("E-mail", email);
        await fill("Password", password);
        await follow("Sign in", "main");
      };
      await chromium.signOut();
      await chromium.appear({ width, scheme, script });
      complaints.length = 0;

      // The first account
      await go(`/setup?token=${await createSetupToken(database)}`);
      await fits();
      await fill("Your name", ADA.name);
      await fill("E-mail", ADA.email);
      await fill("Password", ADA.password);
      await follow("Create account");
      await says("No results yet");
      await follow("Sign out");
      await signIn(ADA);
      await says("No results yet");

      // The key of the project, which is shown once
      await follow("My project", "main");
      await follow("Settings", "nav");
      await follow("Generate a new key");
      await says("stops working immediately");
      await follow("Generate, and revoke");
      const key = /svc_proj_\w{44}/.exec(await words())![0];
      await fits();

      // The page that waits for the first report
      const send = async (query: string, body = REPORT) => {
        const target = `POST /projects/${project}/test-runs?branch=main&${query}`;
        const { status, body: run } = await ask(target, { key, body });
        expect(status).toBe(201);
        return run;
      };
      /** Something happens elsewhere: the page shows it by itself, or when it is opened again. */
      const notices = async (happens: () => Promise<unknown>, text: string) => {
        await evaluate("void (window.isSame = true)");
        await happens();
        if (!script) await go(await evaluate("location.href"));
        await says(text);
        if (script) expect(await evaluate<boolean>("window.isSame")).toBe(true);
      };
      await go(`/projects/${project}/onboarding`);
      await says("Send your first report");
      await notices(() => send("task_slug=cart&execution_key=1"), "Your first report has arrived");

      // An execution that goes on
      await follow("Executions", "nav");
      await follow("#1", "main");
      await says("2 new failures");
      await notices(
        () =>
          send(
            "task_slug=search&execution_key=1&complete=true",
            `<testsuite name="search"><testcase name="finds" time="0.1"/></testsuite>`,
          ),
        "2 passed",
      );
      await fits();

      // A failure opens where it is: the first is open already, the second when it is pressed
      const address = await evaluate("location.href");
      const openings = await evaluate<number>("document.querySelectorAll('details.failure[open]').length");
      await press("TypeError: no currency", "main");
      await becomes(`document.querySelectorAll('details.failure[open]').length !== ${openings}`);
      if ((await evaluate<number>("document.querySelectorAll('details.failure[open]').length")) < openings)
        await press("TypeError: no currency", "main");
      await says("src/cart/price.ts:7:3");
      expect(await evaluate<string>("location.href")).toBe(address as string);
      await fits();

      // Triage in one click
      await follow("Bugs", "nav");
      await says("2 open bugs");
      await fits();
      await follow("Resolve", "main");
      await says("1 open bug");

      // A second person
      const [team] = await database.pool<{ id: string }[]>`select id from team`;
      await go(`/teams/${team!.id}/members`);
      await fill("Role", "member: triages bugs, quarantines, reruns, generates project keys");
      await follow("Create link");
      const link = /http:\S+\/invitations\/[\w-]+/.exec(await words())![0];
      await fits();
      await follow("Sign out");
      await go(link);
      await says("invite");
      await fill("Your name", GRACE.name);
      await fill("E-mail", GRACE.email);
      await fill("Password", GRACE.password);
      await chromium.leaving(() => chromium.key("Enter"));
      await go(`/projects/${project}/settings`);
      await says("Owners of the team can change this");
      await follow("Sign out");

      // Settings, by who may change them
      await go(`/projects/${project}/settings`);
      await signIn(ADA);
      await fill("Name", "shop");
      await follow("Save");
      await says("Settings saved");
      await go("/");
      await says("shop");
      await says("red for");
      await fits();
      expect(complaints).toEqual([]);
    },
    60_000,
  );
});
