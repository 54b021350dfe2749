/** One walk in a real browser: it fails if a page's script or stylesheet does not work. test/full/browser has the others. */

import { expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";
import { createPerson, createSignIn, PASSWORD } from "../people.ts";
import { hasChromium, openChromium } from "./chromium.ts";

const policy = { allowedDomains: [], passwordLogin: true };
const { url, ask, acme, database } = await createHarness({
  signIn: () => ({ ...createSignIn().signIn, policy, oidc: undefined }),
});
const own = createAsking(ask, acme);

test.skipIf(!hasChromium)("a member signs in, sees the first report arrive, and resolves its bug", async () => {
  const person = await createPerson(database, { team: acme.team, role: "member" });
  const { go, fill, follow, press, becomes, evaluate, complaints } = await openChromium(url);
  const shows = (text: string) => becomes(`document.body.innerText.includes(${JSON.stringify(text)})`);
  const isStyled = () =>
    evaluate<boolean>(`document.styleSheets.length > 0 && getComputedStyle(document.body).margin === "0px"`);

  await go(`/projects/${acme.project}/onboarding`);
  expect(await isStyled()).toBe(true);
  await fill("E-mail", person.email);
  await fill("Password", PASSWORD);
  await follow("Sign in", "main");
  await shows("Send your first report");
  expect(await isStyled()).toBe(true);

  // The page shows news without being loaded again.
  await evaluate("void (window.isSame = true)");
  const { executionId } = await own.upload("pf", "branch=main");
  await shows("Your first report has arrived");
  expect(await evaluate<boolean>("window.isSame")).toBe(true);

  await go(`/projects/${acme.project}/executions/${executionId}`);
  await press("case 1 failed", "main");
  await follow("Bugs", "nav");
  await follow("Resolve", "main");
  await shows("No open bugs");
  expect(complaints).toEqual([]);
});
