/** Roles in words and browsers by name, for pages about people. */

import type { Role } from "../../schema/accounts.ts";

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

/** Returns a name such as "Firefox on Linux", or the user agent itself if it is not recognized. */
export function browserOf(userAgent: string | null): string {
  if (userAgent === null || userAgent === "") return "Unknown browser";
  const find = (known: [string, RegExp][]) => known.find(([, pattern]) => pattern.test(userAgent))?.[0];
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)];
  if (!browser) return userAgent.length > 60 ? `${userAgent.slice(0, 60)}…` : userAgent;
  return system ? `${browser} on ${system}` : browser;
}
