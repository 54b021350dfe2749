/** People who look at pages and send forms, as a browser without JavaScript does. */

import type { Role } from "../../src/schema/accounts.ts";
import type { createHarness } from "../harness.ts";
import { createPerson } from "../people.ts";

type Harness = Awaited<ReturnType<typeof createHarness>>;
export type Shown = { status: number; headers: Headers; html: string; words: string; location: string | null };

/** What a page says to those who read it: without tags, blanks as one. */
export const toWords = (html: string): string =>
  html
    .replace(/<(?:script|style)\b[^]*?<\/(?:script|style)>/g, "")
    .replace(/<wbr>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replaceAll("&#x27;", "'")
    .replaceAll("&quot;", '"')
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&")
    .replace(/\s+/g, " ")
    .trim();

/** Somebody with a place in a team, or who is not signed in. */
export async function createBrowser({ url, database }: Harness, place: { team: string; role: Role } | undefined) {
  const person = place ? await createPerson(database, place) : undefined;
  const cookie: Record<string, string> = person ? { cookie: `assay_session=${person.token}` } : {};

  async function ask(path: string, init: RequestInit = {}): Promise<Shown> {
    const headers = { accept: "text/html", ...cookie, ...(init.headers as Record<string, string>) };
    const response = await fetch(`${url}${path}`, { redirect: "manual", ...init, headers });
    const html = await response.text();
    const location = response.headers.get("location");
    return { status: response.status, headers: response.headers, html, words: toWords(html), location };
  }

  return {
    person,
    get: (path: string, headers: Record<string, string> = {}) => ask(path, { headers }),
    /** With the token of `from`, a page of ours. */
    async send(path: string, fields: Record<string, string> = {}, from = "/"): Promise<Shown> {
      const csrf = /name="csrf" value="([^"]+)"/.exec((await ask(from)).html)?.[1] ?? "";
      return await ask(path, {
        method: "POST",
        headers: { origin: url, "content-type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams({ csrf, ...fields }).toString(),
      });
    },
  };
}
