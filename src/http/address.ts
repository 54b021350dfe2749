/** Determines the client address of a request behind the proxies that the configuration names. */

import { BlockList, isIP } from "node:net";

/** Addresses and CIDR ranges; throws an Error that quotes the entry it cannot read. */
export function createAddressList(entries: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of entries) {
    const [address = "", prefix, more] = entry.split("/");
    const family = isIP(address);
    const bits = Number(prefix);
    const bad = family === 0 || more !== undefined || (prefix !== undefined && !/^\d{1,3}$/.test(prefix));
    if (bad || bits > (family === 4 ? 32 : 128)) throw new Error(`expected an address or a CIDR range, got "${entry}"`);
    if (prefix === undefined) list.addAddress(address, family === 4 ? "ipv4" : "ipv6");
    else list.addSubnet(address, bits, family === 4 ? "ipv4" : "ipv6");
  }
  return list;
}

/** Whether the configuration names this proxy. */
export function isTrusted(address: string, trusted: BlockList): boolean {
  const family = isIP(address);
  return family !== 0 && trusted.check(address, family === 4 ? "ipv4" : "ipv6");
}

/** The last hop that is not a trusted proxy; what an untrusted peer writes into `X-Forwarded-For` is ignored. */
export function clientAddress(peer: string, forwardedFor: string | null, trusted: BlockList): string {
  let client = peer;
  const hops = forwardedFor?.split(",") ?? [];
  while (hops.length > 0 && isTrusted(client, trusted)) {
    const hop = hops.pop()!.trim();
    if (isIP(hop) === 0) break;
    client = hop;
  }
  return client;
}
