/** Helpers for the forms about people. */

import * as v from "valibot";
import type { Visitor } from "../../request/visitors.ts";
import { refuse } from "../../schema/refusal.ts";
import type { Client } from "../../schema/accounts.ts";
import type { PageServices } from "./page.ts";

/** A field without validation, which the handler validates so that it can show the form again. */
export const sent = v.string();

/** Validates a field without quoting its value in the error, because it may be a password. */
export function read<Schema extends v.GenericSchema>(schema: Schema, value: unknown): v.InferOutput<Schema> {
  const parsed = v.safeParse(schema, value);
  if (parsed.success) return parsed.output;
  return refuse(parsed.issues[0].message.replace(/^expected/, "Expected"));
}

export function requirePasswords({ signIn }: Pick<PageServices, "signIn">): void {
  if (!signIn.policy.passwordLogin) refuse("Passwords are switched off on this server");
}

type ClientRequest = { request: Request; address: () => string };

export const clientOf = ({ request, address }: ClientRequest): Client => ({
  address: address(),
  userAgent: request.headers.get("user-agent"),
});

export const storesOf = ({ sql, fast, begin }: Pick<PageServices, "sql" | "fast" | "begin">) => ({
  pool: sql,
  fast,
  begin,
});

/** The session token of the browser's cookie, whether or not it is valid. */
export const tokenOf = ({ sessions, request }: Pick<PageServices, "sessions"> & Pick<ClientRequest, "request">) =>
  sessions.tokenOf(request.headers.get("cookie"));

export const personOf = ({ accountId, sessionId }: Visitor) => ({ accountId, sessionId });
