/** Visitors of every role on a running server: pages as each of them sees them, forms as each sends them. */

import { createHarness, type TestServerOptions } from "../harness.ts";
import type { Visitor } from "../../src/request/visitors.ts";
import type { VisitorServices } from "../../src/web/site/page.ts";

export type Who = "owner" | "member" | "viewer" | "rival" | "nobody";

/** Without the script's attributes and indentation that no reader sees: tags become blanks, entities what they stand for. */
export const wordsOf = (page: string): string =>
  page
    .replace(/^[^]*?<main/, "<main")
    .replace(/<(?:option|wbr)[^>]*>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#x27;", "'")
    .replaceAll("&amp;", "&")
    .replace(/\s+/g, " ")
    .replace(/ ([,.:;])/g, "$1")
    .trim();

export type Seen = { status: number; location: string | null; html: string; words: string };

/** Acme's owner, member and viewer, Rival's owner, and nobody, by a cookie that says who asks. */
export async function createRoles(options: TestServerOptions = {}) {
  const teams: Record<string, Visitor["teams"]> = {};
  const visitors: VisitorServices = {
    find: async (cookies) => {
      const name = /as=(\w+)/.exec(cookies ?? "")?.[1];
      const found = name === undefined ? undefined : teams[name];
      return (
        found && {
          accountId: crypto.randomUUID(),
          email: `${name}@acme.example`,
          name: name!,
          sessionId: name!,
          teams: found,
        }
      );
    },
    csrf: () => ({ token: "token" }),
    isOwnForm: (_, __, token) => token === "token",
  };
  const harness = await createHarness({ ...options, visitors });
  const { acme, rival, url } = harness;
  for (const role of ["owner", "member", "viewer"] as const)
    teams[role] = [{ teamId: acme.team, teamName: "Acme", role }];
  teams["rival"] = [{ teamId: rival.team, teamName: "Rival", role: "owner" }];

  async function send(who: Who, path: string, body?: URLSearchParams): Promise<Seen> {
    const response = await fetch(`${url}${path}`, {
      headers: { accept: "text/html", cookie: `as=${who}` },
      redirect: "manual",
      ...(body ? { method: "POST", body } : {}),
    });
    const html = await response.text();
    return { status: response.status, location: response.headers.get("location"), html, words: wordsOf(html) };
  }

  return {
    ...harness,
    look: (who: Who, path: string) => send(who, path),
    fill: (who: Who, path: string, fields: Record<string, string> = {}) =>
      send(who, path, new URLSearchParams({ csrf: "token", ...fields })),
    /** A report of task "unit": a letter per case, with what a failed one says. */
    report: async (letters: string, { says = "boom", ...parameters }: Record<string, string> = {}, names = "case") => {
      const cases = [...letters].map((letter, index) => {
        const name = Bun.escapeHTML(names === "case" ? `case ${index}` : names);
        const inner =
          letter === "f"
            ? `<failure message="${Bun.escapeHTML(says)}">Error: ${Bun.escapeHTML(says)}\n    at work (src/work.ts:7:1)</failure>`
            : letter === "s"
              ? "<skipped/>"
              : "";
        return `<testcase classname="unit" name="${name}" file="test/unit.test.ts" time="0.${index + 1}">${inner}</testcase>`;
      });
      const query = new URLSearchParams({ task_slug: "unit", branch: "main", ...parameters });
      return await harness.ask(`POST /projects/${acme.project}/test-runs?${query}`, {
        key: acme.key,
        body: `<testsuite name="unit">${cases.join("")}</testsuite>`,
      });
    },
  };
}
