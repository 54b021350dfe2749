/** Verifies ID tokens of OpenID Connect: signed by one of the provider's keys, for us, now, and for this very log-in. */

/** What is wrong with it; the words are for the log. */
export class IdTokenError extends Error {
  override name = "IdTokenError";
  /** It names a key that is not among those given: there may be new ones. */
  readonly isUnknownKey: boolean;
  constructor(message: string, isUnknownKey = false) {
    super(message);
    this.isUnknownKey = isUnknownKey;
  }
}

/** A key as the provider publishes it. */
export type Jwk = { kty?: string; crv?: string; use?: string; alg?: string; kid?: string } & Record<string, unknown>;

export type Claims = Record<string, unknown> & { sub: string };

export type Expected = {
  issuer: string;
  clientId: string;
  nonce: string;
  /** Unix milliseconds. */
  now: number;
};

type ImportParameters = Exclude<Parameters<typeof crypto.subtle.importKey>[2], string>;
type VerifyParameters = Parameters<typeof crypto.subtle.verify>[0];

/** Nothing else is accepted: neither "none" nor what is signed with a secret that is shared. */
const ALGORITHMS: Record<string, { kty: string; crv?: string; import: ImportParameters; verify: VerifyParameters }> = {
  RS256: {
    kty: "RSA",
    import: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
    verify: { name: "RSASSA-PKCS1-v1_5" },
  },
  ES256: {
    kty: "EC",
    crv: "P-256",
    import: { name: "ECDSA", namedCurve: "P-256" },
    verify: { name: "ECDSA", hash: "SHA-256" },
  },
};
/** Clocks differ. */
const SKEW_SECONDS = 60;
const MAX_LENGTH = 32_768;

const wrong = (message: string): never => {
  throw new IdTokenError(message);
};

function decodePart(part: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(part, "base64url")));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Told below.
  }
  return wrong("The ID token is not well-formed");
}

/** What else is said of it, such as its operations, does not always fit, and verifying needs no more. */
const publicPart = (key: Jwk) =>
  Object.fromEntries(
    ["kty", "n", "e", "crv", "x", "y"].flatMap((name) => (name in key ? [[name, key[name]]] : [])),
  ) as {
    kty: string;
  };

/** Throws IdTokenError. */
export async function verifyIdToken(token: string, keys: readonly Jwk[], expected: Expected): Promise<Claims> {
  const parts = token.split(".");
  if (parts.length !== 3 || token.length > MAX_LENGTH || !/^[\w.-]+$/.test(token))
    wrong("The ID token is not well-formed");
  const [head = "", body = "", signature = ""] = parts;
  const header = decodePart(head);
  const name = String(header["alg"]);
  const algorithm = Object.hasOwn(ALGORITHMS, name)
    ? ALGORITHMS[name]!
    : wrong(`The ID token is signed with ${name.slice(0, 20)}`);
  if ("crit" in header) wrong("The ID token demands an extension");
  const fitting = keys.filter(
    ({ kty, crv, use, alg, kid }) =>
      kty === algorithm.kty &&
      (algorithm.crv === undefined || crv === algorithm.crv) &&
      (use === undefined || use === "sig") &&
      (alg === undefined || alg === name) &&
      (header["kid"] === undefined || kid === header["kid"]),
  );
  if (fitting.length === 0) throw new IdTokenError("The ID token is signed with an unknown key", true);
  // Without a name it may be any of them.
  if (header["kid"] === undefined && fitting.length > 1) wrong("The ID token does not say which key it is signed with");
  const key = await crypto.subtle
    .importKey("jwk", publicPart(fitting[0]!), algorithm.import, false, ["verify"])
    .catch(() => wrong("A key of the provider cannot be read"));
  const isSigned = await crypto.subtle.verify(
    algorithm.verify,
    key,
    Buffer.from(signature, "base64url"),
    Buffer.from(`${head}.${body}`),
  );
  if (!isSigned) wrong("The ID token is not signed by the provider");
  return checkClaims(decodePart(body), expected);
}

function checkClaims(claims: Record<string, unknown>, { issuer, clientId, nonce, now }: Expected): Claims {
  const { iss, aud, azp, exp, iat, nbf, sub } = claims;
  const seconds = now / 1000;
  if (iss !== issuer) wrong("The ID token is of another issuer");
  const audiences = Array.isArray(aud) ? (aud as unknown[]) : [aud];
  if (!audiences.includes(clientId)) wrong("The ID token is for another client");
  if ((audiences.length > 1 || azp !== undefined) && azp !== clientId)
    wrong("The ID token was given to another client");
  if (typeof exp !== "number" || exp <= seconds - SKEW_SECONDS) wrong("The ID token has expired");
  if (typeof iat !== "number" || iat > seconds + SKEW_SECONDS) wrong("The ID token is from the future");
  if (nbf !== undefined && (typeof nbf !== "number" || nbf > seconds + SKEW_SECONDS))
    wrong("The ID token is from the future");
  if (claims["nonce"] !== nonce) wrong("The ID token is for another log-in");
  if (typeof sub !== "string" || sub === "" || sub.length > 255) wrong("The ID token names nobody");
  return claims as Claims;
}
