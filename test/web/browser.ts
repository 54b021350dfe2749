/** A browser without JavaScript, and the people who use it: they look at pages and send forms, with real sessions. */

import { expect } from "bun:test";
import type { Role } from "../../src/schema/accounts.ts";
import { createAsking } from "../asking.ts";
import { createHarness, type TestServerOptions } from "../harness.ts";
import { toWords, unescape } from "../browser.ts";
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

export type Who = "owner" | "member" | "viewer" | "rival" | "nobody";

/** A server, an owner, a member and a viewer of Acme, an owner of Rival, and somebody who is not signed in. */
export async function createPages(options: TestServerOptions & { ownDatabase?: boolean } = {}) {
  const harness = await createHarness(options);
  const { ask, database, url, acme, rival } = harness;
  const create = (team: string, role: Role) => createPerson(database, { team, role });
  const people = {
    owner: await create(acme.team, "owner"),
    member: await create(acme.team, "member"),
    viewer: await create(acme.team, "viewer"),
    rival: await create(rival.team, "owner"),
    nobody: undefined,
  };
  const browsers: Partial<Record<Who, ReturnType<typeof createBrowsing>>> = {};
  const browserOf = (who: Who) => (browsers[who] ??= createBrowsing(url, people[who]));
  const look = (who: Who, path: string, headers: Record<string, string> = {}) => browserOf(who).get(path, headers);
  return {
    ...harness,
    people,
    look,
    /** Acme's own project. */
    own: { ...createAsking(ask, acme, "unit"), path: `/projects/${acme.project}` },
    fill: (who: Who, path: string, fields: Record<string, string> = {}) =>
      browserOf(who).send(path, fields, who === "nobody" ? "/login" : "/"),
    /** Another project of Acme, with the path of its pages; reports are of task "unit". */
    createProject: async () => {
      const own = createAsking(ask, await harness.addProject(acme), "unit");
      return { ...own, path: `/projects/${own.project}` };
    },
    /** Follows the links to the next page, and returns what `read` finds on each page. */
    async walk<T>(who: Who, path: string, read: (page: Shown) => T[]): Promise<T[][]> {
      const pages: T[][] = [];
      for (let next: string | undefined = path; next;) {
        const page: Shown = await look(who, next);
        expect([next, page.status]).toEqual([next, 200]);
        pages.push(read(page));
        next = nextOf(page);
      }
      return pages;
    },
    /** A report of task "unit": a letter per case, with what a failed one says. */
    report: async (letters: string, { says = "boom", ...parameters }: Record<string, string> = {}, names = "case") => {
      const cases = [...letters].map((letter, index) => {
        const name = Bun.escapeHTML(names === "case" ? `case ${index}` : names);
        const failure = `<failure message="${Bun.escapeHTML(says)}">Error: ${Bun.escapeHTML(says)}\n    at work (src/work.ts:7:1)</failure>`;
        const inner = letter === "f" ? failure : letter === "s" ? "<skipped/>" : "";
        return `<testcase classname="unit" name="${name}" file="test/unit.test.ts" time="0.${index + 1}">${inner}</testcase>`;
      });
      const query = new URLSearchParams({ task_slug: "unit", branch: "main", ...parameters });
      return await ask(`POST /projects/${acme.project}/test-runs?${query}`, {
        key: acme.key,
        body: `<testsuite name="unit">${cases.join("")}</testsuite>`,
      });
    },
  };
}

/** The text of the heading, without the mark before it. */
export const headline = ({ html }: Pick<Shown, "html">): string =>
  toWords(/<h1>.*?<\/h1>/s.exec(html)![0]).replace(/^[^\w ] /, "");

/** The path of the next page, if there is one. */
export const nextOf = ({ html }: Pick<Shown, "html">): string | undefined =>
  /rel="next" href="([^"]+)"/.exec(html)?.[1]?.replaceAll("&amp;", "&");

/** A JUnit report of suite "cart", with what each failed case says and prints. */
export const cartReport = (cases: readonly { name: string; message?: string; stack?: string; output?: string }[]) => {
  const escape = (text: string) => Bun.escapeHTML(text).replaceAll("\n", "&#10;");
  const elements = cases.map(({ name, message, stack = "", output }) => {
    const failure = message === undefined ? "" : `<failure message="${escape(message)}">${escape(stack)}</failure>`;
    const printed = output === undefined ? "" : `<system-out>${escape(output)}</system-out>`;
    return `<testcase classname="cart" name="${escape(name)}" time="0.1">${failure}${printed}</testcase>`;
  });
  return `<testsuite name="cart">${elements.join("")}</testsuite>`;
};

/** The value that a field of the page has; undefined if there is no such field. */
export const valueOf = ({ html }: Pick<Shown, "html">, name: string): string | undefined =>
  new RegExp(`name="${name.replaceAll(".", "\\.")}"[^>]*? value="([^"]*)"`).exec(html)?.[1] ??
  new RegExp(`<textarea name="${name.replaceAll(".", "\\.")}"[^>]*>\\n?([^<]*)`).exec(html)?.[1];

/** Where the forms of the page go. */
export const formsOf = ({ html }: Pick<Shown, "html">): string[] =>
  [...html.matchAll(/<form[^>]*method="post" action="([^"]*)"/g)]
    .map(([, action]) => action!)
    .filter((to) => to !== "/logout");

/** The value of an attribute, "" if it has none; undefined if the tag does not have the attribute. */
export function attributeOf(tag: string, name: string): string | undefined {
  const found = new RegExp(` ${name}(?:="([^"]*)")?(?=[\\s>])`).exec(tag);
  return found ? unescape(found[1] ?? "") : undefined;
}

/** What a browser sends of a form as it is shown; `required` stands in required fields that are empty. */
export function fieldsOf(form: string, required = ""): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [tag, name] of form.matchAll(/<input[^>]* name="([^"]*)"[^>]*>/g)) {
    const isRequired = attributeOf(tag, "required") !== undefined;
    const isTicked = attributeOf(tag, "checked") !== undefined || (isRequired && required !== "");
    if (/^(checkbox|radio)$/.test(attributeOf(tag, "type")!) && !isTicked) continue;
    fields[name!] = attributeOf(tag, "value") || (isRequired ? required : "");
  }
  for (const [, tag, content] of form.matchAll(/(<textarea[^>]*>)\n?([^<]*)/g))
    fields[attributeOf(tag!, "name")!] = unescape(content!) || (/ required/.test(tag!) ? required : "");
  for (const [, name, options] of form.matchAll(/<select[^>]* name="([^"]*)"[^>]*>(.*?)<\/select>/gs)) {
    const [tag] = /<option[^>]* selected[^>]*>[^<]*/.exec(options!) ?? /<option[^>]*>[^<]*/.exec(options!) ?? [""];
    fields[name!] = attributeOf(tag, "value") ?? unescape(tag.replace(/^<option[^>]*>/, "")).trim();
  }
  return fields;
}
