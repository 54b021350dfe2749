/** Forms about people: what is read of them, what they are refused for, and their fields. */

import * as v from "valibot";
import type { Html } from "../http/html.ts";
import type { Visitor } from "../request/visitors.ts";
import { Refusal, refuse } from "../schema/refusal.ts";
import type { Client } from "../schema/accounts.ts";
import type { PageServices } from "./page.ts";

/** A field as a browser sends it, which is looked at where the form can be shown again. */
export const sent = v.string();

/** Refuses what a field holds, without quoting it: it may be a password. */
export function read<Schema extends v.GenericSchema>(schema: Schema, value: unknown): v.InferOutput<Schema> {
  const parsed = v.safeParse(schema, value);
  if (parsed.success) return parsed.output;
  return refuse(parsed.issues[0].message.replace(/^expected/, "Expected"));
}

export function requirePasswords({ signIn }: Pick<PageServices, "signIn">): void {
  if (!signIn.policy.passwordLogin) refuse("Passwords are switched off on this server");
}

/** What was refused, in words; undefined where it was done. Absence is not for a form to tell. */
export async function refusalOf(work: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof Refusal && error.kind === "invalid") return error.message;
    throw error;
  }
}

export const bad = (message: string | undefined): Html | null =>
  message === undefined ? null : (
    <p class="message bad" role="alert">
      {message}
    </p>
  );
export const good = (message: string | undefined): Html | null =>
  message === undefined ? null : (
    <p class="message good" role="status">
      {message}
    </p>
  );

type Input = {
  name: string;
  label: string;
  type?: "text" | "email" | "password";
  value?: string | undefined;
  /** What password managers go by. */
  autocomplete?: "off" | "name" | "email" | "username" | "current-password" | "new-password";
  hint?: string;
  isOptional?: boolean;
};

export const input = ({ name, label, type = "text", value, autocomplete = "off", hint, isOptional }: Input): Html => (
  <label>
    <span>{label}</span>
    <input
      type={type}
      name={name}
      value={value ?? ""}
      autocomplete={autocomplete}
      required={!isOptional}
      aria-describedby={hint === undefined ? undefined : `hint-${name}`}
    />
    {hint === undefined ? null : (
      <span class="hint" id={`hint-${name}`}>
        {hint}
      </span>
    )}
  </label>
);

export const hiddenField = (name: string, value: string | undefined): Html | null =>
  value === undefined || value === "" ? null : <input type="hidden" name={name} value={value} />;

export const emailInput = (value?: string): Html =>
  input({ name: "email", label: "E-mail address", type: "email", value, autocomplete: "username" });
export const nameInput = (value?: string): Html =>
  input({ name: "name", label: "Your name", value, autocomplete: "name" });
export const newPasswordInput = (label = "Password"): Html =>
  input({
    name: "password",
    label,
    type: "password",
    autocomplete: "new-password",
    hint: "At least 10 characters: a few words that nobody says together are good",
  });

/** A link, because browsers hold the redirects of a form to the page's own host. */
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

type Asked = { request: Request; address: () => string };

export const clientOf = ({ request, address }: Asked): Client => ({
  address: address(),
  userAgent: request.headers.get("user-agent"),
});

export const storesOf = ({ sql, fast, begin }: Pick<PageServices, "sql" | "fast" | "begin">) => ({
  pool: sql,
  fast,
  begin,
});

/** The token of the session that the browser has, live or not. */
export const tokenOf = ({ sessions, request }: Pick<PageServices, "sessions"> & Pick<Asked, "request">) =>
  sessions.tokenOf(request.headers.get("cookie"));

export const personOf = ({ accountId, sessionId }: Visitor) => ({ accountId, sessionId });
