/** Verifies the id tokens of CI jobs: JSON Web Tokens that the CI system signs for one audience. */

import { createLocalJWKSet, decodeJwt, errors, type JWTPayload, jwtVerify } from "jose";
import type { PublicKey } from "../schema/trust_rules.ts";

/** A token that is not accepted. The message names the problem, and contains nothing of its signature. */
export class CiTokenError extends Error {
  override name = "CiTokenError";
  /** The issuer may have published the key since its keys were read. */
  readonly isUnknownKey: boolean;

  constructor(message: string, isUnknownKey = false) {
    super(message);
    this.isUnknownKey = isUnknownKey;
  }
}

export type CiClaims = JWTPayload & { iss: string; jti: string; exp: number };

const ALGORITHMS = ["RS256", "ES256"];
/** Maximum difference between the clocks of the CI system and of the server. */
export const CLOCK_SKEW_SECONDS = 60;
/** The id of a used token is stored until the token expires. GitLab's tokens live as long as their job may run. */
const MAX_LIFETIME_DAYS = 31;
const MAX_ID_LENGTH = 500;
const MAX_ISSUER_LENGTH = 500;

const MALFORMED = "it is not a signed JSON Web Token";

/** The issuer that the token names, which is not yet proved. Throws CiTokenError. */
export function readIssuer(token: string): string {
  let issuer: unknown;
  try {
    issuer = decodeJwt(token).iss;
  } catch {
    throw new CiTokenError(MALFORMED);
  }
  if (typeof issuer !== "string" || issuer === "" || issuer.length > MAX_ISSUER_LENGTH)
    throw new CiTokenError(`its claim "iss" is missing`);
  return issuer;
}

export type Expected = { issuer: string; audience: string; now: Date };

/** Returns the claims of a token that one of the keys has signed, for this audience, and that is valid now. Throws CiTokenError. */
export async function verifyCiToken(
  token: string,
  keys: readonly PublicKey[],
  { issuer, audience, now }: Expected,
): Promise<CiClaims> {
  const payload = await verify(token, keys, { issuer, audience, now });
  const { jti, exp } = payload;
  if (typeof jti !== "string" || jti === "" || jti.length > MAX_ID_LENGTH)
    throw new CiTokenError(`its claim "jti" is not a text of 1 to ${MAX_ID_LENGTH} characters`);
  if (exp! > now.getTime() / 1000 + MAX_LIFETIME_DAYS * 86_400)
    throw new CiTokenError(`its claim "exp" is more than ${MAX_LIFETIME_DAYS} days ahead`);
  return payload as CiClaims;
}

async function verify(token: string, keys: readonly PublicKey[], expected: Expected): Promise<JWTPayload> {
  const { issuer, audience, now } = expected;
  try {
    const { payload } = await jwtVerify(token, createLocalJWKSet({ keys: keys as never }), {
      algorithms: ALGORITHMS,
      issuer,
      audience,
      currentDate: now,
      clockTolerance: CLOCK_SKEW_SECONDS,
      requiredClaims: ["exp", "jti"],
    });
    return payload;
  } catch (error) {
    throw new CiTokenError(describe(error, expected), error instanceof errors.JWKSNoMatchingKey);
  }
}

function describe(error: unknown, { issuer, audience }: Expected): string {
  if (error instanceof errors.JWTExpired) return `it has expired (claim "exp")`;
  if (error instanceof errors.JWTClaimValidationFailed) {
    const { claim, reason } = error;
    if (reason === "missing") return `its claim "${claim}" is missing`;
    if (claim === "aud") return `its claim "aud" is not "${audience}", the public address of this server`;
    if (claim === "nbf") return `it is not valid yet (claim "nbf")`;
    if (claim === "iss") return `its claim "iss" is not "${issuer}"`;
    return `its claim "${claim}" is not valid`;
  }
  if (error instanceof errors.JOSEAlgNotAllowed) return `it is not signed with ${ALGORITHMS.join(" or ")}`;
  if (error instanceof errors.JWKSNoMatchingKey) return `its issuer has no key with the "kid" and "alg" of its header`;
  if (error instanceof errors.JWKSMultipleMatchingKeys)
    return `its header has no "kid", and its issuer has several keys`;
  if (error instanceof errors.JWSSignatureVerificationFailed) return "its signature is wrong";
  if (error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid) return MALFORMED;
  // A key that cannot be imported or is too short, or a header that asks for an unknown extension.
  return "it cannot be verified with the key of its issuer";
}
