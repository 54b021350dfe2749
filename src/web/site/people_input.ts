/** What the handlers of forms about people share. */

import * as v from "valibot";
import type { Visitor } from "../../request/visitors.ts";
import { Refusal, refuse } from "../../schema/refusal.ts";
import type { Client } from "../../schema/accounts.ts";
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
