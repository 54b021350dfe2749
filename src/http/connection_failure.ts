/** Describes in our own words why a request got no answer: those of the engine are advice to programmers, and may quote a secret address. */

/** The proxy answered in place of the server. */
export const PROXY_REFUSED = "ERR_PROXY_TUNNEL";

const NO_TLS = "the TLS handshake failed; does the server speak TLS on this port?";

const REASONS: Record<string, string> = {
  ECONNREFUSED: "the connection was refused",
  ConnectionRefused: "the connection was refused",
  ECONNRESET: "the connection was closed before the answer",
  ConnectionClosed: "the connection was closed before the answer",
  EPIPE: "the connection was closed before the answer",
  ENOTFOUND: "there is no such host",
  DNS_ENOTFOUND: "there is no such host",
  EAI_AGAIN: "the name server does not answer",
  ETIMEDOUT: "the connection timed out",
  EHOSTUNREACH: "there is no route to the host",
  ENETUNREACH: "there is no route to the network",
  ENOENT: "there is no such socket",
  EPROTO: NO_TLS,
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  DEPTH_ZERO_SELF_SIGNED_CERT: "the certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "the certificate is from an unknown authority",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "the certificate is from an unknown authority",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "the certificate is from an unknown authority",
  CERT_HAS_EXPIRED: "the certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "the certificate is for another host",
  [PROXY_REFUSED]: "the proxy refused the request",
};

/** Returns the reason as a part of a sentence. */
export function describeConnectionFailure(error: unknown): string {
  const code = String((error as { code?: unknown }).code ?? "");
  return REASONS[code] ?? (code === "" ? "the request failed" : `the request failed (${code})`);
}
