/** A browser without JavaScript, and the people who use it: they look at pages and send forms, with real sessions. */

import type { Role } from "../../src/schema/accounts.ts";
import { createHarness, type TestServerOptions } from "../harness.ts";
import { createPerson } from "../people.ts";

type Harness = Awaited<ReturnType<typeof createHarness>>;
export type Person = Awaited<ReturnType<typeof createPerson>>;

/** `words` is the text of the page below the bar, `bar` that of the bar. */
export type Shown = {
  status: number;
  location: string | null;
  headers: Headers;
  html: string;
  words: string;
  bar: string;
};

/** The text that a reader sees: without tags, blanks as one. */
export const toWords = (html: string): string =>
  html
    .replace(/<(script|style|title)\b[^]*?<\/\1>/g, "")
    .replace(/<wbr>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#x27;", "'")
    .replaceAll("&amp;", "&")
    .replace(/\s+/g, " ")
    .replace(/ ([,.:;?])/g, "$1")
    .trim();

/** Requests of one person, or of nobody. */
export function createBrowsing(url: string, person: { token: string } | undefined) {
  const cookie: Record<string, string> = person ? { cookie: `assay_session=${person.token}` } : {};
  let csrf: string | undefined;

  async function ask(path: string, init: RequestInit = {}): Promise<Shown> {
    const headers = { accept: "text/html", ...cookie, ...(init.headers as Record<string, string>) };
    const response = await fetch(`${url}${path}`, { redirect: "manual", ...init, headers });
    const html = await response.text();
    const main = html.indexOf("<main");
    const [bar, page] = main === -1 ? ["", html] : [html.slice(0, main), html.slice(main)];
    const { status, headers: answered } = response;
    const location = answered.get("location");
    return { status, headers: answered, location, html, words: toWords(page), bar: toWords(bar) };
  }

  const readCsrf = async (from: string) => /name="csrf" value="([^"]+)"/.exec((await ask(from)).html)?.[1] ?? "";

  return {
    get: (path: string, headers: Record<string, string> = {}) => ask(path, { headers }),
    /** Sends a form with the token of a page: that of `from`. */
    async send(path: string, fields: Record<string, string> = {}, from = "/"): Promise<Shown> {
      const token = person ? (csrf ??= await readCsrf(from)) : await readCsrf(from);
      const headers = { origin: url, "content-type": "application/x-www-form-urlencoded" };
      const body = new URLSearchParams({ csrf: token, ...fields }).toString();
      return await ask(path, { method: "POST", headers, body });
    },
  };
}

/** A new person with a role in a team, or nobody. */
export async function createBrowser({ url, database }: Harness, place: { team: string; role: Role } | undefined) {
  const person = place ? await createPerson(database, place) : undefined;
  return { person, ...createBrowsing(url, person) };
}

/** A server, and an owner, a member and a viewer of Acme and an owner of Rival. */
export async function createVisits(options: TestServerOptions = {}) {
  const harness = await createHarness(options);
  const { database, url, acme, rival } = harness;
  const create = (team: string, role: Role) => createPerson(database, { team, role });
  const people = {
    owner: await create(acme.team, "owner"),
    member: await create(acme.team, "member"),
    viewer: await create(acme.team, "viewer"),
    stranger: await create(rival.team, "owner"),
  };
  const browsers = new Map<Person | undefined, ReturnType<typeof createBrowsing>>();
  const browserOf = (person: Person | undefined) => {
    if (!browsers.has(person)) browsers.set(person, createBrowsing(url, person));
    return browsers.get(person)!;
  };
  return {
    ...harness,
    ...people,
    visit: (person: Person | undefined, path: string) => browserOf(person).get(path),
    send: (person: Person | undefined, path: string, fields: Record<string, string> = {}) =>
      browserOf(person).send(path, fields, person ? "/" : "/login"),
  };
}

export type Who = "owner" | "member" | "viewer" | "rival" | "nobody";

/** The same people by name, and reports of a letter per case. */
export async function createRoles(options: TestServerOptions = {}) {
  const { owner, member, viewer, stranger, visit, send, ...harness } = await createVisits(options);
  const people = { owner, member, viewer, rival: stranger, nobody: undefined };
  return {
    ...harness,
    member,
    look: (who: Who, path: string) => visit(people[who], path),
    fill: (who: Who, path: string, fields: Record<string, string> = {}) => send(people[who], path, fields),
    /** A report of task "unit": a letter per case, with what a failed one says. */
    report: async (letters: string, { says = "boom", ...parameters }: Record<string, string> = {}, names = "case") => {
      const cases = [...letters].map((letter, index) => {
        const name = Bun.escapeHTML(names === "case" ? `case ${index}` : names);
        const failure = `<failure message="${Bun.escapeHTML(says)}">Error: ${Bun.escapeHTML(says)}\n    at work (src/work.ts:7:1)</failure>`;
        const inner = letter === "f" ? failure : letter === "s" ? "<skipped/>" : "";
        return `<testcase classname="unit" name="${name}" file="test/unit.test.ts" time="0.${index + 1}">${inner}</testcase>`;
      });
      const query = new URLSearchParams({ task_slug: "unit", branch: "main", ...parameters });
      return await harness.ask(`POST /projects/${harness.acme.project}/test-runs?${query}`, {
        key: harness.acme.key,
        body: `<testsuite name="unit">${cases.join("")}</testsuite>`,
      });
    },
  };
}

/** The value that a field of the page has; undefined if there is no such field. */
export const valueOf = ({ html }: Shown, name: string): string | undefined =>
  new RegExp(`name="${name.replaceAll(".", "\\.")}"[^>]*? value="([^"]*)"`).exec(html)?.[1] ??
  new RegExp(`<textarea name="${name.replaceAll(".", "\\.")}"[^>]*>\\n?([^<]*)`).exec(html)?.[1];

/** Where the forms of the page go. */
export const formsOf = ({ html }: Shown): string[] =>
  [...html.matchAll(/<form[^>]*method="post" action="([^"]*)"/g)]
    .map(([, action]) => action!)
    .filter((to) => to !== "/logout");
