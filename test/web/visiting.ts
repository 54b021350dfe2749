/** People who look at pages and send their forms: an owner, a member and a viewer of Acme, and an owner of Rival. */

import type { Role } from "../../src/schema/accounts.ts";
import { createHarness, type TestServerOptions } from "../harness.ts";
import { createPerson } from "../people.ts";

export type Person = Awaited<ReturnType<typeof createPerson>>;
/** `words` is what is read on it. */
export type Shown = { status: number; location: string | null; headers: Headers; html: string; words: string };

const wordsOf = (html: string) =>
  html
    .replace(/<script[^]*?<\/script>|<title>[^]*?<\/title>/g, "")
    .replace(/<wbr>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#x27;/g, "'")
    .replace(/&amp;/g, "&")
    .replace(/\s+/g, " ")
    .replace(/ ([,.:;?])/g, "$1");

export async function createVisits(options: TestServerOptions = {}) {
  const harness = await createHarness(options);
  const { database, url, acme, rival } = harness;
  const someone = (team: string, role: Role) => createPerson(database, { team, role });
  const people = {
    owner: await someone(acme.team, "owner"),
    member: await someone(acme.team, "member"),
    viewer: await someone(acme.team, "viewer"),
    stranger: await someone(rival.team, "owner"),
  };

  async function ask(person: Person | undefined, path: string, init: RequestInit = {}): Promise<Shown> {
    const cookie: Record<string, string> = person ? { cookie: `assay_session=${person.token}` } : {};
    const response = await fetch(`${url}${path}`, {
      redirect: "manual",
      ...init,
      headers: { accept: "text/html", ...cookie, ...(init.headers as Record<string, string>) },
    });
    const html = await response.text();
    const { status, headers } = response;
    return { status, headers, location: headers.get("location"), html, words: wordsOf(html) };
  }

  const visit = (person: Person | undefined, path: string): Promise<Shown> => ask(person, path);

  /** As a browser sends a form of a page of ours. */
  async function send(person: Person | undefined, path: string, fields: Record<string, string> = {}): Promise<Shown> {
    const csrf = /name="csrf" value="([^"]+)"/.exec((await ask(person, "/")).html)?.[1] ?? "";
    const headers = { origin: url, "content-type": "application/x-www-form-urlencoded" };
    return await ask(person, path, {
      method: "POST",
      headers,
      body: new URLSearchParams({ csrf, ...fields }).toString(),
    });
  }

  return { ...harness, ...people, visit, send };
}

/** The value that a page's field holds; undefined: there is no such field. */
export const valueOf = ({ html }: Shown, name: string): string | undefined =>
  new RegExp(`name="${name.replaceAll(".", "\\.")}"[^>]*? value="([^"]*)"`).exec(html)?.[1] ??
  new RegExp(`<textarea name="${name.replaceAll(".", "\\.")}"[^>]*>\\n?([^<]*)`).exec(html)?.[1];

/** Where a page's forms go. */
export const formsOf = ({ html }: Shown): string[] =>
  [...html.matchAll(/<form[^>]*method="post" action="([^"]*)"/g)]
    .map(([, action]) => action!)
    .filter((to) => to !== "/logout");
