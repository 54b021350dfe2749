/** What pages about people have in common: roles in words, browsers by name, the way between a team's pages. */

import { html, type Html } from "../http/html.ts";
import type { Role } from "../schema/accounts.ts";

export const withArticle = (role: Role): string => (role === "owner" ? "an owner" : `a ${role}`);

export const ROLE_WORDS: Record<Role, string> = {
  viewer: "reads",
  member: "triages bugs, quarantines, reruns, generates project keys",
  owner: "members, team keys, integrations, settings",
};

const BROWSERS: [name: string, pattern: RegExp][] = [
  ["Edge", /\bEdg(?:e|A|iOS)?\//],
  ["Opera", /\bOPR\//],
  ["Firefox", /\b(?:Firefox|FxiOS)\//],
  ["Chrome", /\b(?:Chrome|CriOS|Chromium)\//],
  ["Safari", /\bSafari\//],
];
const SYSTEMS: [name: string, pattern: RegExp][] = [
  ["iPhone", /\biPhone\b/],
  ["iPad", /\biPad\b/],
  ["Android", /\bAndroid\b/],
  ["Windows", /\bWindows\b/],
  ["macOS", /\bMac OS X\b/],
  ["Linux", /\bLinux\b|\bX11\b/],
];

/** "Firefox on Linux"; what it says of itself where we do not know it. */
export function browserOf(userAgent: string | null): string {
  if (userAgent === null || userAgent === "") return "Unknown browser";
  const find = (known: [string, RegExp][]) => known.find(([, pattern]) => pattern.test(userAgent))?.[0];
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)];
  if (!browser) return userAgent.length > 60 ? `${userAgent.slice(0, 60)}…` : userAgent;
  return system ? `${browser} on ${system}` : browser;
}

/** Between the pages of a team; the log is for owners. */
export const teamLinks = (teamId: string, role: Role, current: "members" | "audit"): Html => {
  const link = (name: string, text: string) =>
    html`<a href="/teams/${teamId}/${name}" ${name === current ? html` aria-current="page"` : null}>${text}</a>`;
  return html`<nav class="meta" aria-label="Team">
    ${link("settings", "Settings")} ${link("members", "Members")} ${role === "owner" ? link("audit", "Audit log") : null}
  </nav>`;
};
