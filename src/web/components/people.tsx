/** People on pages: roles in words, browsers by name, the fields of forms about them, and the link to the identity provider. */

import type { Html } from "../../http/html.ts";
import type { Role } from "../../schema/accounts.ts";
import type { PageServices } from "../site/page.ts";
import { Field } from "./form.tsx";

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

export const EmailField = ({ value }: { value?: string | undefined }): Html => (
  <Field name="email" label="E-mail address" type="email" value={value} autocomplete="username" required />
);

export const NameField = ({ value }: { value?: string | undefined }): Html => (
  <Field name="name" label="Your name" value={value} autocomplete="name" required />
);

export const NewPasswordField = ({ label = "Password" }: { label?: string }): Html => (
  <Field
    name="password"
    label={label}
    type="password"
    autocomplete="new-password"
    hint="At least 10 characters. A few unrelated words are good."
    required
  />
);

/** A link instead of a form, because the content security policy restricts redirects of a form to the page's own host. */
export function providerLink(
  { signIn }: Pick<PageServices, "signIn">,
  values: { next?: string; invitation?: string; setup?: string },
): Html | null {
  if (!signIn.oidc) return null;
  const { host } = signIn.oidc;
  return (
    <p class="actions">
      <a
        class={signIn.policy.passwordLogin ? "button" : "button main"}
        href={`/login/oidc?${new URLSearchParams(values).toString()}`}
      >
        Continue with {host}
      </a>
    </p>
  );
}
