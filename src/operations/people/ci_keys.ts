/** Exchanges the id token of a CI job for a key that lives some minutes. */

import type { Database, Sql, Tx } from "../../database/connect.ts";
import { notifyKeyRevoked } from "../../database/signals.ts";
import { type Claims, describeClaims, isOfRepository, explainRefusal } from "../../rules/trust_rule.ts";
import {
  CI_KEY_MINUTES,
  type CiKey,
  MAX_CI_KEYS,
  type PublicKey,
  toPublicKeys,
  type TrustRule,
} from "../../schema/trust_rules.ts";
import { CLOCK_SKEW_SECONDS, type CiClaims, CiTokenError, readIssuer, verifyCiToken } from "../../secrets/ci_token.ts";
import { createKey } from "../../secrets/keys.ts";
import { insertKey, lockProjectForKey, revokeKey, selectHasCiKeys, selectKeyExpiry } from "../../store/keys.ts";
import { lockTrustRule, selectTrustRulesOfIssuer, updateTrustRuleUsed, useCiToken } from "../../store/trust_rules.ts";
import { nameRepository } from "./trust_rules.ts";

export type CiKeyServices = Pick<Database, "begin"> & {
  sql: Sql;
  /** The required audience of tokens. */
  audience: string;
  now: () => Date;
  issuerKeys: {
    /** Returns the JSON Web Key Set that the issuer publishes. */
    read(issuer: string): Promise<unknown>;
    /** Returns a newer one; undefined if there is none. */
    readNewer(issuer: string, outdated: unknown): Promise<unknown>;
  };
};

type CiTokenExchange = {
  projectId: string;
  token: string;
  /** Identifies requests of the same attempt; null: the request is not repeated. */
  attempt: string | null;
};

/** `refused`: the token makes no key, and the message says why; `tooMany`: too many keys are live. */
type CiKeyResult = { made: CiKey } | { refused: string } | { tooMany: string };

/**
 * Messages depend only on the token and on the issuers that the server trusts, and not on whether the project exists, unless the token is
 * of a repository that the project trusts. Rejects with the error of `issuerKeys` if the keys of the issuer cannot be read.
 */
export async function exchangeCiToken(services: CiKeyServices, exchange: CiTokenExchange): Promise<CiKeyResult> {
  try {
    const { projectId, token } = exchange;
    const issuer = readIssuer(token);
    const { rules, isRead } = await selectTrustRulesOfIssuer(services.sql, projectId, issuer);
    const pinned = await findRule(rules, ({ keys }) => keys && verifyWith(services, keys, token, issuer));
    const others = rules.filter(({ keys }) => keys === null);
    let found = pinned;
    if (!pinned || (!pinned.rule && others.length > 0)) {
      const published = isRead ? await verifyAsPublished(services, token, issuer) : undefined;
      found = (await findRule(others, () => published)) ?? pinned;
      if (!found) return { refused: published ? notTrusted(projectId, published) : notTrustedBy(projectId, issuer) };
    }
    const { rule, claims, name, refusal } = found!;
    if (!rule) return { refused: `The trust rule for ${name} does not accept the token: ${refusal}` };
    return await services.begin((sql) => makeKey(sql, exchange, rule, claims));
  } catch (error) {
    if (error instanceof CiTokenError) return { refused: `The token is not accepted: ${error.message}` };
    throw error;
  }
}

const notTrusted = (projectId: string, claims: Claims): string =>
  `There is no project "${projectId}", or no trust rule of it names the repository of this token: issuer "${claims["iss"]}", ` +
  describeClaims(claims);

const notTrustedBy = (projectId: string, issuer: string): string =>
  `There is no project "${projectId}", or no trust rule of it names the issuer "${issuer}" and has the key that signed this token`;

async function verifyAsPublished(services: CiKeyServices, token: string, issuer: string): Promise<CiClaims> {
  const { issuerKeys, audience, now } = services;
  const expected = { issuer, audience, now: now() };
  const keySet = await issuerKeys.read(issuer);
  try {
    return await verifyCiToken(token, toPublicKeys(keySet) ?? [], expected);
  } catch (error) {
    if (!(error instanceof CiTokenError) || !error.isUnknownKey) throw error;
    const newer = toPublicKeys(await issuerKeys.readNewer(issuer, keySet));
    if (newer === undefined) throw error;
    return await verifyCiToken(token, newer, expected);
  }
}

/** `rule` is undefined if no rule of the repository accepts the token; `refusal` says why the first does not. */
type Found = { claims: CiClaims; name: string; rule?: TrustRule; refusal?: string };
type ClaimsFor = (rule: TrustRule) => CiClaims | undefined | null | Promise<CiClaims | undefined>;

/** Undefined if no rule names the repository of the token. `claimsFor` verifies the token as the rule has it. */
async function findRule(rules: readonly TrustRule[], claimsFor: ClaimsFor): Promise<Found | undefined> {
  let found: Found | undefined;
  for (const rule of rules) {
    const claims = await claimsFor(rule);
    if (!claims || !isOfRepository(rule, claims)) continue;
    const refusal = explainRefusal(rule, claims);
    const name = nameRepository(rule);
    if (refusal === undefined) return { claims, name, rule };
    found ??= { claims, name, refusal };
  }
  return found;
}

/** Undefined where the token is not accepted: why would say that the project has a rule with keys. */
async function verifyWith(
  { audience, now }: CiKeyServices,
  keys: readonly PublicKey[],
  token: string,
  issuer: string,
): Promise<CiClaims | undefined> {
  try {
    return await verifyCiToken(token, keys, { issuer, audience, now: now() });
  } catch (error) {
    if (error instanceof CiTokenError) return undefined;
    throw error;
  }
}

/** Creates a key, in a transaction. The audit log does not record these keys, because jobs come and go. */
async function makeKey(
  sql: Tx,
  { projectId, attempt }: CiTokenExchange,
  rule: TrustRule,
  claims: CiClaims,
): Promise<CiKeyResult> {
  const teamId = await lockProjectForKey(sql, projectId);
  if (teamId === undefined || !(await lockTrustRule(sql, projectId, rule.id)))
    return { refused: notTrusted(projectId, claims) };
  if (await selectHasCiKeys(sql, projectId, MAX_CI_KEYS))
    return {
      tooMany: `This project has ${MAX_CI_KEYS} live keys of CI jobs, which is the limit: they end within minutes`,
    };
  const id = Bun.randomUUIDv7();
  // The owner of a rule with its own keys can sign any token, and could otherwise use up token ids of the issuer's other projects.
  const owner = rule.keys ? [projectId] : [];
  const { isUsable, replaced } = await useCiToken(sql, {
    digest: Bun.SHA256.hash(JSON.stringify([claims.iss, claims.jti, ...owner]), "hex"),
    attempt: attempt === null ? null : Bun.SHA256.hash(attempt, "hex"),
    keyId: id,
    expiresAt: new Date((claims.exp + CLOCK_SKEW_SECONDS) * 1000).toISOString(),
  });
  if (!isUsable)
    return { refused: `The token has been used before (claim "jti"): each use takes a new token of the CI system` };
  if (replaced !== undefined) {
    await revokeKey(sql, replaced);
    await notifyKeyRevoked(sql, replaced);
  }
  const { key, leading, digest } = createKey("project");
  const name = `CI of ${nameRepository(rule)}`;
  const scope = "upload";
  const expiresIn = `${CI_KEY_MINUTES} minutes`;
  await insertKey(sql, teamId, { id, projectId, name, leading, digest, scope, trustRuleId: rule.id, expiresIn });
  await updateTrustRuleUsed(sql, projectId, rule.id);
  return { made: { key, expiresAt: await selectKeyExpiry(sql, teamId, id), projectId, scope } };
}
