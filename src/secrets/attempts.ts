/** How often a password may be tried. */

import { isIPv6 } from "node:net";

/** Of an account from an address: so many wrong ones, and each after that waits twice as long, up to the longest. */
const FREE = 3;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 15 * 60_000;
/** Of an address, whatever the accounts: so many wrong ones in so long. */
const PER_ADDRESS = 50;
const WINDOW_MS = 10 * 60_000;
/** Wrong ones are forgotten after this time without any. */
const FORGET_MS = 60 * 60_000;
/** Beyond it the oldest are forgotten: memory is bounded whatever comes. */
const MAX_REMEMBERED = 50_000;

type Tries = { count: number; last: number };

/** A network of IPv6 has as many addresses as somebody likes: they count as one. */
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
 * Nobody is locked out by a stranger: what counts is the pair of account and address, and the address alone, never the
 * account alone. It is kept in this process: what is refused must cost nothing, and a stranger must not write to
 * the database. The workers of a server ask the one that keeps it for all; several servers each keep their own; a proxy that sends an address to one of them makes it
 * exact. `monotonic` gives milliseconds.
 */
export function createAttempts(monotonic: () => number = () => performance.now()) {
  // Maps keep the order of insertion: what was tried last is last.
  const pairs = new Map<string, Tries>();
  const addresses = new Map<string, number[]>();

  function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
    map.delete(key);
    map.set(key, value);
    if (map.size > MAX_REMEMBERED) map.delete(map.keys().next().value!);
  }

  function triesOf(key: string, now: number): Tries {
    const tries = pairs.get(key);
    return tries && now - tries.last < FORGET_MS ? tries : { count: 0, last: now };
  }

  const waitOf = ({ count, last }: Tries, now: number) =>
    count < FREE ? 0 : last + Math.min(FIRST_WAIT_MS * 2 ** (count - FREE), LONGEST_WAIT_MS) - now;

  return {
    /**
     * Milliseconds to wait, and nothing is counted; or 0: the attempt counts as a wrong one from now on, so that a
     * hundred at once are not one, until `succeed` takes it back.
     */
    begin({ account, address }: Attempt): number {
      const now = monotonic();
      const block = addressBlock(address);
      const recent = (addresses.get(block) ?? []).filter((at) => now - at < WINDOW_MS);
      const pair = `${block}\n${account}`;
      const tries = triesOf(pair, now);
      const full = recent.length < PER_ADDRESS ? 0 : recent[0]! + WINDOW_MS - now;
      const wait = Math.max(waitOf(tries, now), full, 0);
      if (wait > 0) return wait;
      remember(addresses, block, [...recent, now]);
      remember(pairs, pair, { count: tries.count + 1, last: now });
      return 0;
    },

    /** The password was right. */
    succeed({ account, address }: Attempt): void {
      const block = addressBlock(address);
      pairs.delete(`${block}\n${account}`);
      // An office behind one address signs in every morning.
      addresses.get(block)?.pop();
    },
  };
}

/** Who tries what. */
export type Attempt = { account: string; address: string };
/** Several processes of a server count in one of them. */
export type Attempts = {
  begin(who: Attempt): number | Promise<number>;
  succeed(who: Attempt): void | Promise<void>;
};
