/** Limits how often passwords can be tried. */

import { isIPv6 } from "node:net";

/** Wrong passwords for an account from an address that cause no wait. Each further one doubles the wait, up to LONGEST_WAIT_MS. */
const FREE_TRIES = 3;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 15 * 60_000;
/** Maximum wrong passwords from an address within WINDOW_MS, for all accounts together. */
const MAX_PER_ADDRESS = 50;
const WINDOW_MS = 10 * 60_000;
/** Maximum passwords of accounts that exist that are verified in the same time for an address beyond its limit. */
const MAX_REVIEWS_PER_ADDRESS = 300;
/** Wrong ones are forgotten after this time without any. */
const FORGET_MS = 60 * 60_000;
/** Maximum number of remembered entries, so that memory is bounded. The oldest are dropped. */
const MAX_REMEMBERED = 50_000;

type Tries = { count: number; last: number };

/** Returns the network of an IPv6 address, because a client can use any address of its network. */
export function addressBlock(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("%")[0]!.toLowerCase().split("::");
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after.length);
  const all = [...groups, ...Array<string>(zeros).fill("0"), ...after];
  return all
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":");
}

/**
 * Counts wrong passwords by the pair of account and address, and by the address alone, never by the account alone: a
 * stranger elsewhere locks nobody out.
 *
 * Behind a proxy that TRUST_PROXY does not name, everybody has one address, and 50 wrong passwords of a stranger would lock
 * everybody out. So an address beyond its limit does not block an account that was not itself attacked: where the account
 * exists, `review` lets its password be verified, and only a right one makes a difference. A wrong one, and an account that
 * does not exist, are answered in the same words and after the same time. Spraying stays slow: an account has three tries
 * before its own waits begin, and an address has 300 reviews in ten minutes. That bounds the processor time as well, and
 * names that somebody makes up use none of it.
 *
 * The counts are kept in this process, because a refusal must cost nothing and a stranger must not write to the database.
 * Several servers count each on its own; a proxy that sends an address always to the same server makes that exact.
 * `monotonic` gives milliseconds.
 */
export function createAttempts(
  monotonic: () => number = () => performance.now(),
  maxRemembered: number = MAX_REMEMBERED,
) {
  // Maps keep the order of insertion: what was tried last is last.
  const pairs = new Map<string, Tries>();
  const addresses = new Map<string, number[]>();
  const reviews = new Map<string, number[]>();

  const recentOf = (map: Map<string, number[]>, block: string, now: number) =>
    (map.get(block) ?? []).filter((at) => now - at < WINDOW_MS);

  function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
    map.delete(key);
    map.set(key, value);
    if (map.size > maxRemembered) map.delete(map.keys().next().value!);
  }

  function triesOf(key: string, now: number): Tries {
    const tries = pairs.get(key);
    return tries && now - tries.last < FORGET_MS ? tries : { count: 0, last: now };
  }

  const waitOf = ({ count, last }: Tries, now: number) =>
    count < FREE_TRIES ? 0 : last + Math.min(FIRST_WAIT_MS * 2 ** (count - FREE_TRIES), LONGEST_WAIT_MS) - now;

  /** Milliseconds until `recent` has room for one more. */
  const fullFor = (recent: readonly number[], limit: number, now: number) =>
    recent.length < limit ? 0 : recent[recent.length - limit]! + WINDOW_MS - now;

  /** Counts in `map` and for the pair, unless the pair has to wait; returns the milliseconds of that. */
  function count(map: Map<string, number[]>, block: string, account: string, now: number): number {
    const pair = `${block}\n${account}`;
    const tries = triesOf(pair, now);
    const wait = waitOf(tries, now);
    if (wait > 0) return wait;
    remember(map, block, [...recentOf(map, block, now), now]);
    remember(pairs, pair, { count: tries.count + 1, last: now });
    return 0;
  }

  return {
    /**
     * Returns the milliseconds to wait, and counts nothing; or 0, and counts the attempt as a wrong one until `succeed` takes it back, so
     * that a hundred concurrent attempts are not counted as one.
     */
    begin({ account, address }: SignInAttempt): number {
      const now = monotonic();
      const block = addressBlock(address);
      // The answer does not depend on the wait of the account, because that would reveal whether the account exists.
      return fullFor(recentOf(addresses, block, now), MAX_PER_ADDRESS, now) || count(addresses, block, account, now);
    },

    /**
     * For an attempt that `begin` refused, and an existing account: returns 0 if its password is verified nevertheless, and counts the
     * attempt as a wrong one, like `begin`.
     */
    review({ account, address }: SignInAttempt): number {
      const now = monotonic();
      const block = addressBlock(address);
      return (
        fullFor(recentOf(reviews, block, now), MAX_REVIEWS_PER_ADDRESS, now) || count(reviews, block, account, now)
      );
    },

    /** The password was right. */
    succeed({ account, address, isReviewed = false }: SignInAttempt): void {
      const block = addressBlock(address);
      pairs.delete(`${block}\n${account}`);
      // An office behind one address signs in every morning.
      (isReviewed ? reviews : addresses).get(block)?.pop();
    },
  };
}

/** One attempt to sign in; `isReviewed`: `review` has let it through. */
type SignInAttempt = { account: string; address: string; isReviewed?: boolean };
export type Attempts = ReturnType<typeof createAttempts>;
