/** Reads the address of a request's client, and warns of a proxy that the configuration does not name. */

import type { BlockList } from "node:net";
import { clientAddress, isTrusted } from "../http/address.ts";
import type { Log } from "../log.ts";
import type { IncomingRequest } from "./incoming_request.ts";

export type ReadClientAddress = (incoming: Pick<IncomingRequest, "request" | "connection">) => string;

/** Warns once. */
export function createClientAddressReader({ trustProxy, log }: { trustProxy: BlockList; log: Log }): ReadClientAddress {
  let hasWarned = false;

  return ({ request: { headers }, connection }) => {
    const peer = connection.address();
    const forwardedFor = headers.get("x-forwarded-for");
    const isForwarded = forwardedFor !== null || headers.has("forwarded");
    if (isForwarded && !hasWarned && !isTrusted(peer, trustProxy)) {
      hasWarned = true;
      log.warn(
        "A request was forwarded by an address that TRUST_PROXY does not name: if it is your proxy, add it, because all " +
          "clients behind it count as one for rate limits and log-ins",
        { peer },
      );
    }
    return clientAddress(peer, forwardedFor, trustProxy);
  };
}
