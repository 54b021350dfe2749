/** Accounts of people: roles, inputs of forms, and fields of members, sessions and invitations. */

import * as v from "valibot";
import { isStorable, mayBeEmpty } from "./fields.ts";

/** viewer: reads; member: triage, quarantine, rerun, the keys of projects; owner: members, team keys, integrations. */
export const ROLES = ["viewer", "member", "owner"] as const;
export const role = v.picklist(ROLES, `expected "viewer", "member" or "owner"`);
export type Role = v.InferOutput<typeof role>;

/** Whether `actual` includes the rights of `needed`. */
export const isAtLeast = (actual: Role, needed: Role): boolean => ROLES.indexOf(actual) >= ROLES.indexOf(needed);

const EXPECTED_EMAIL = "expected an e-mail address";

/** An address in the only spelling that is compared: lower case. */
export const email = v.pipe(
  v.string(EXPECTED_EMAIL),
  v.transform((value) => value.trim().normalize("NFC").toLowerCase()),
  v.maxLength(254, EXPECTED_EMAIL),
  v.regex(/^[^\s\p{C}@"<>(),;:\\[\]]+@[^\s\p{C}@"<>(),;:\\[\]]+$/u, EXPECTED_EMAIL),
);

const EXPECTED_NAME = "expected a name of 1 to 200 characters";

export const personName = v.pipe(
  v.string(EXPECTED_NAME),
  v.trim(),
  v.minLength(1, EXPECTED_NAME),
  v.maxLength(200, EXPECTED_NAME),
  v.check(isStorable, EXPECTED_NAME),
);

const MIN_PASSWORD = 10;
const MAX_PASSWORD = 1_000;
const EXPECTED_PASSWORD = `expected a password of ${MIN_PASSWORD} to ${MAX_PASSWORD} characters`;

/** A new one. Keyboards write one character in several ways: NFKC makes them one. */
export const newPassword = v.pipe(
  v.string(EXPECTED_PASSWORD),
  v.transform((value) => value.normalize("NFKC")),
  v.minLength(MIN_PASSWORD, EXPECTED_PASSWORD),
  v.maxLength(MAX_PASSWORD, EXPECTED_PASSWORD),
  v.check((value) => new Set(value).size > 3, "expected a password of more than three different characters"),
);

/** A password for signing in. Every one is verified, so that malformed passwords are answered like wrong ones. */
export const triedPassword = v.pipe(
  v.string(EXPECTED_PASSWORD),
  v.transform((value) => value.normalize("NFKC")),
  v.maxLength(MAX_PASSWORD, EXPECTED_PASSWORD),
);

export const newAccount = v.strictObject({ email, name: personName, password: newPassword });
export type NewAccount = v.InferOutput<typeof newAccount>;

export const newInvitation = v.strictObject({ role, email: mayBeEmpty(email) });
export type NewInvitation = v.InferOutput<typeof newInvitation>;

/** The client of a request, for the list of sessions. */
export type Client = { address: string; userAgent: string | null };

export type Member = { accountId: string; email: string; name: string; role: Role; lastSeenAt: string | null };

/** A session as its owner sees it. */
export type Session = {
  id: string;
  createdAt: string;
  lastSeenAt: string;
  expiresAt: string;
  userAgent: string | null;
  address: string | null;
};

/** An open invitation, without its link. */
export type Invitation = {
  id: string;
  role: Role;
  email: string | null;
  createdBy: string;
  createdAt: string;
  expiresAt: string;
};
