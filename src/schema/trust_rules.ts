/** Trust rules: which CI jobs of which repository get a key for the id token that their CI system signs. */

import * as v from "valibot";
import { listOf } from "./bounded.ts";
import { text, uuid } from "./fields.ts";

const TRUST_KINDS = ["github", "gitlab"] as const;
export type TrustKind = (typeof TRUST_KINDS)[number];

/** The issuers of the public services. */
export const DEFAULT_ISSUERS: Record<TrustKind, string> = {
  github: "https://token.actions.githubusercontent.com",
  gitlab: "https://gitlab.com",
};

export const MAX_TRUST_RULES = 50;
/** Maximum live keys of CI jobs in a project. */
export const MAX_CI_KEYS = 1_000;
export const CI_KEY_MINUTES = 15;
/** A token of a CI system has 1 to 3 KiB. */
const MAX_TOKEN_LENGTH = 16_384;

const MAX_KEYS = 50;
const MAX_KEYS_LENGTH = 65_536;
const EXPECTED_KEYS = "expected a JSON Web Key Set with public RSA or EC keys";

/** The members of a public RSA or EC key. */
const PUBLIC_MEMBERS = ["kty", "kid", "use", "alg", "key_ops", "n", "e", "crv", "x", "y"] as const;
export type PublicKey = Partial<Record<(typeof PUBLIC_MEMBERS)[number], unknown>>;

/**
 * Returns the keys of a JSON Web Key Set that can verify a signature; undefined if it is not a set. Symmetric keys and keys with a private
 * part are left out, because anyone can sign with them.
 */
export function toPublicKeys(keySet: unknown): PublicKey[] | undefined {
  const keys = (keySet as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys)) return undefined;
  return keys
    .slice(0, MAX_KEYS)
    .filter((key) => (key?.kty === "RSA" || key?.kty === "EC") && !("d" in key) && !("k" in key))
    .map((key) => Object.fromEntries(PUBLIC_MEMBERS.filter((name) => name in key).map((name) => [name, key[name]])));
}

function parseKeySet(given: string): PublicKey[] | undefined {
  try {
    return toPublicKeys(JSON.parse(given));
  } catch {
    return undefined;
  }
}

const digits = v.pipe(v.string("expected a number"), v.regex(/^[1-9][0-9]{0,18}$/, "expected a number such as 123456"));

/** Returns whether the address names the machine itself, so that the connection to the issuer cannot be intercepted. */
const isLoopback = (address: string) =>
  URL.canParse(address) && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(new URL(address).hostname);
const EXPECTED_ISSUER = "expected an https address without query and user";

const issuer = v.pipe(
  text(500),
  v.check((value) => /^https?:\/\/[^\s?#@\\]+$/.test(value) && URL.canParse(value), EXPECTED_ISSUER),
);

const MAX_LISTED = 20;
const list = <Item extends v.GenericSchema<string, string>>(item: Item, what: string) =>
  v.optional(
    listOf(item, {
      max: MAX_LISTED,
      expected: `expected a list of ${what}`,
      tooMany: `expected at most ${MAX_LISTED} ${what}`,
    }),
    [],
  );

const common = {
  issuer,
  repositoryId: digits,
  repository: v.optional(text(200)),
  events: list(
    v.pipe(v.string(), v.regex(/^[a-z][a-z_]{0,59}$/, "expected the name of an event such as push")),
    "events",
  ),
  refs: list(
    v.pipe(text(200), v.startsWith("refs/", "expected a Git ref such as refs/heads/main; * matches any text")),
    "refs",
  ),
  keys: v.optional(
    v.pipe(
      text(MAX_KEYS_LENGTH),
      v.transform(parseKeySet),
      v.custom<PublicKey[]>((keys) => Array.isArray(keys) && keys.length > 0, EXPECTED_KEYS),
    ),
  ),
};

/** The input of a form or of the command line. `keys` is the text of a JSON Web Key Set. */
export const newTrustRule = v.pipe(
  v.variant(
    "kind",
    [
      v.strictObject({ kind: v.literal("github"), ownerId: digits, ...common }),
      v.strictObject({ kind: v.literal("gitlab"), ...common }),
    ],
    `expected "github" or "gitlab"`,
  ),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const { issuer, keys } = dataset.value;
    // Keys that arrive without encryption may be those of anyone in between.
    if (issuer.startsWith("https:") || keys !== undefined || isLoopback(issuer)) return;
    const path = [{ type: "object", origin: "value", input: dataset.value, key: "issuer", value: issuer }] as const;
    addIssue({ message: `${EXPECTED_ISSUER}, or also its keys`, path: [...path] as never });
  }),
);
export type NewTrustRule = v.InferOutput<typeof newTrustRule>;

/** `events` and `refs` are empty if every event or ref is trusted. `keys`: null if the issuer publishes them. */
export type TrustRule = {
  id: string;
  kind: TrustKind;
  issuer: string;
  repositoryId: string;
  ownerId: string | null;
  repository: string | null;
  events: readonly string[];
  refs: readonly string[];
  keys: readonly PublicKey[] | null;
};

export type ListedTrustRule = TrustRule & { createdAt: string; lastUsedAt: string | null };

/** The body of `POST /auth/ci`. */
export const ciTokenRequest = v.strictObject({ project: uuid, token: text(MAX_TOKEN_LENGTH) });

/** The answer to it. */
export type CiKey = { key: string; expiresAt: string; projectId: string; scope: "upload" };
