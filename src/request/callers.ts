/** Identifies the caller by the bearer key of a request. */

import { fail } from "../http/problem.ts";
import { type KeyKind, keyDigest, keyKind, PERSONAL_PREFIX } from "../secrets/keys.ts";
import type { Sql } from "../database/connect.ts";
import { type LiveKey, selectKeyIsLive, selectLiveKey, updateLastUsed } from "../store/keys.ts";

export type Caller = LiveKey & { kind: KeyKind };

const CHALLENGE = { "WWW-Authenticate": "Bearer" };
const unauthorized = (message: string): never => fail("UNAUTHORIZED", message, CHALLENGE);

export const revoked = (): never => unauthorized("Invalid API key: it does not exist or has been revoked");

const REMEMBERED = 10_000;
const LAST_USED_EVERY_MS = 5 * 60_000;

/**
 * The owner of a key never changes, so it is cached. Whether the key is live is checked for every request, by the
 * statement that answers it, by the transaction that writes, or at the latest by `isLive` before the answer goes out.
 */
export function createCallers(sql: Sql, monotonic: () => number = () => performance.now()) {
  const remembered = new Map<string, Caller & { usedAt: number }>();

  return {
    /** The key of an Authorization header. Fails with UNAUTHORIZED. */
    readKey(authorization: string | null): string {
      if (authorization === null) unauthorized("Missing API key: send the header Authorization: Bearer <API key>");
      const key = /^Bearer +([^\s,]+)$/i.exec(authorization!)?.[1] ?? "";
      if (key.startsWith(PERSONAL_PREFIX))
        unauthorized("Personal access tokens are not available yet: use a project key or a team key");
      return key;
    },

    /** Returns the cached owner of a key; the key was live when it was cached: see `isLive`. */
    recall: (key: string): Caller | undefined => remembered.get(keyDigest(key)),

    /** Returns the owner of a key. Fails with UNAUTHORIZED. */
    async lookUp(key: string): Promise<Caller> {
      // A mistyped key is recognised by its checksum and costs no database work.
      const kind = keyKind(key) ?? unauthorized("Invalid API key: it is not well-formed");
      const digest = keyDigest(key);
      const live = (await selectLiveKey(sql, digest)) ?? revoked();
      const caller = { ...live, kind, usedAt: -LAST_USED_EVERY_MS };
      if (remembered.size >= REMEMBERED) remembered.delete(remembered.keys().next().value!);
      remembered.set(digest, caller);
      return caller;
    },

    isLive: (caller: Caller): Promise<boolean> => selectKeyIsLive(sql, caller),

    /** Notes the use of a key that has proved live, every few minutes; undefined when there is nothing to do. */
    used(caller: Caller): Promise<unknown> | undefined {
      const entry = caller as Caller & { usedAt: number };
      const now = monotonic();
      if (now - entry.usedAt < LAST_USED_EVERY_MS) return undefined;
      entry.usedAt = now;
      return updateLastUsed(sql, caller).execute();
    },
  };
}
