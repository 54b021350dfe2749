/** Reads the keys that issuers of tokens publish, by OpenID Connect Discovery, and keeps them for a while. */

import { type Outbound, OutboundError } from "./outbound.ts";

/** The keys cannot be read. The message may be shown to the owner of a token. */
export class IssuerError extends Error {
  override name = "IssuerError";
}

type IssuerKeysOptions = {
  outbound: Outbound;
  /** Milliseconds that never jump. */
  monotonic?: () => number;
};

const CACHED_MS = 60 * 60_000;
/** Minimum time between readings of the keys, which a token with an unknown key causes. */
const REREAD_MS = 60_000;
/** Time for which a failure is cached, so that requests do not queue for an unavailable issuer. */
const FAILURE_MS = 10_000;
const TIMEOUT_MS = 5_000;
const MAX_BYTES = 262_144;
const MAX_ISSUERS = 200;

type Entry = {
  readAt: number;
  keySet: Promise<unknown>;
  hasFailed: boolean;
  /** When the keys were last requested, successfully or not. */
  askedAt: number;
  /** Unless it has failed. Until it is done `keySet` remains in use. */
  rereading: Promise<unknown> | undefined;
};

export function createIssuerKeys({ outbound, monotonic = () => performance.now() }: IssuerKeysOptions) {
  const entries = new Map<string, Entry>();

  async function request(issuer: string): Promise<unknown> {
    const metadata = await readJson(outbound, `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
    const { issuer: ownName, jwks_uri: address } = (metadata ?? {}) as Record<string, unknown>;
    if (ownName !== issuer)
      throw new IssuerError(`it calls itself ${JSON.stringify(String(ownName).slice(0, 200))} in its configuration`);
    if (typeof address !== "string" || !URL.canParse(address))
      throw new IssuerError(`its configuration has no "jwks_uri"`);
    if (new URL(address).protocol !== new URL(issuer).protocol)
      throw new IssuerError(`its "jwks_uri" is not reached by ${new URL(issuer).protocol}//`);
    return await readJson(outbound, address);
  }

  function keep(issuer: string, keySet: Promise<unknown>): Entry {
    const now = monotonic();
    const entry: Entry = { readAt: now, askedAt: now, keySet, hasFailed: false, rereading: undefined };
    entry.keySet.catch(() => (entry.hasFailed = true));
    entries.delete(issuer);
    if (entries.size >= MAX_ISSUERS) entries.delete(entries.keys().next().value!);
    entries.set(issuer, entry);
    return entry;
  }

  function reread(issuer: string, known: Entry): Promise<unknown> {
    known.askedAt = monotonic();
    const keySet = (known.rereading = request(issuer));
    keySet.then(
      () => keep(issuer, keySet),
      () => (known.rereading = undefined),
    );
    return keySet;
  }

  return {
    /** Returns the JSON Web Key Set of the issuer, as it was parsed. Throws IssuerError. */
    async read(issuer: string): Promise<unknown> {
      const known = entries.get(issuer);
      const isUsable = known && monotonic() - known.readAt < (known.hasFailed ? FAILURE_MS : CACHED_MS);
      return await (isUsable ? known : keep(issuer, request(issuer))).keySet;
    },

    /**
     * Returns newer keys than `outdated`, which lack the key of a token. Requests them at most once a minute; undefined if there are none.
     * Throws IssuerError.
     */
    async readNewer(issuer: string, outdated: unknown): Promise<unknown> {
      const known = entries.get(issuer) ?? keep(issuer, request(issuer));
      const current = await known.keySet;
      if (current !== outdated) return current;
      return await (monotonic() - known.askedAt < REREAD_MS ? known.rereading : reread(issuer, known));
    },
  };
}

async function readJson(outbound: Outbound, url: string): Promise<unknown> {
  try {
    const headers = { Accept: "application/json" };
    const { status, text } = await outbound.request({
      method: "GET",
      url,
      headers,
      maxBytes: MAX_BYTES,
      timeoutMs: TIMEOUT_MS,
    });
    if (status !== 200) throw new IssuerError(`it answered ${status}`);
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof IssuerError) throw error;
    if (error instanceof OutboundError) throw new IssuerError(error.message);
    throw new IssuerError("its answer is not JSON");
  }
}
