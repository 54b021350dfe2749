/** Requests and connections to addresses that users have given: never to private ones, never redirected, short and small. */

import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { BlockList, connect, isIP, type Socket } from "node:net";
import { createAddressList } from "./address.ts";
import { describeConnectionFailure, PROXY_REFUSED } from "./connection_failure.ts";
import { areFree } from "./descriptors.ts";
import { createLimit } from "../turns.ts";

/** All addresses outside of the public internet: IANA's special-purpose registries, and multicast. */
const PRIVATE = createAddressList([
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"],
  ...["192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"],
  ...["224.0.0.0/4", "240.0.0.0/4"],
  // Teredo, benchmarking, ORCHID, documentation and 6to4, which carries an IPv4 address.
  ...["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"],
]);
/** The assigned range of IPv6; loopback, link-local, unique local and NAT64 are outside of it. */
const GLOBAL = createAddressList(["2000::/3"]);

export type Outbound = {
  /** Throws OutboundError; an answer of any status, a redirect as well, is an answer. */
  request(request: OutboundRequest): Promise<OutboundAnswer>;
  /**
   * Opens a TCP connection for another protocol than HTTP, never through a proxy, and closes it when `use` ends or its time is over. Throws
   * OutboundError if the connection fails; `use` throws one itself for an answer that is a failure.
   */
  connect<T>(target: OutboundTarget, use: (connection: OutboundConnection) => Promise<T>): Promise<T>;
};

/** `timeoutMs`: for the whole conversation. Default, and maximum: twice the time of a request. */
export type OutboundTarget = { host: string; port: number; timeoutMs?: number };

export type OutboundConnection = {
  socket: Socket;
  /** TLS on the socket must verify the host that was asked for, not the address that was dialled. */
  tls: { host: string; servername?: string; ca?: string };
  /** Aborts when the time is over. */
  signal: AbortSignal;
};

export type OutboundRequest = {
  method: "GET" | "POST" | "PUT" | "PATCH";
  url: string;
  headers?: Record<string, string>;
  body?: string;
  /** Maximum bytes of the answer that are read. Default 64 KiB. */
  maxBytes?: number;
  /** A timeout shorter than the default of 15 s. */
  timeoutMs?: number;
};

export type OutboundAnswer = {
  status: number;
  headers: Headers;
  /** The beginning of it. */
  text: string;
};

export class OutboundError extends Error {
  override name = "OutboundError";
  /** Trying again makes no difference. */
  readonly isFinal: boolean;

  constructor(message: string, isFinal: boolean) {
    super(message);
    this.isFinal = isFinal;
  }
}

const TIMEOUT_MS = 15_000;
const MAX_ANSWER_BYTES = 65_536;
/** Bun 1.4.5 ends the process where the thread of its first request finds no file descriptors for itself, some two. */
const MIN_FREE_DESCRIPTORS = 8;
const NO_DESCRIPTORS = "No file descriptors are left for now";

/** Exactly these carry an IPv4 address that BlockList sees; ::ffff:0:7f00:1 looks alike and is none. */
const MAPPED = /^::ffff:(?:\d+\.\d+\.\d+\.\d+|[0-9a-f]{1,4}:[0-9a-f]{1,4})$/i;

/** Whether a request may go to this address; IPv4 addresses within IPv6 ones count as what they are. */
export function isReachable(address: string, allow: BlockList): boolean {
  const family = isIP(address) === 4 ? "ipv4" : "ipv6";
  if (isIP(address) === 0) return false;
  if (allow.check(address, family)) return true;
  const mapped = family === "ipv6" && MAPPED.test(address);
  if (family === "ipv6" && !mapped && !GLOBAL.check(address, "ipv6")) return false;
  return !PRIVATE.check(address, family);
}

/** The address in a URL that names one itself, without the brackets of IPv6. */
export function literalAddress({ hostname }: Pick<URL, "hostname">): string | undefined {
  const bare = hostname.replace(/^\[|\]$/g, "");
  return isIP(bare) === 0 ? undefined : bare;
}

/** The URL of a host name or address, which reads its other notations: 0x7f.1 is 127.0.0.1. */
export const hostUrl = (host: string): URL => new URL(`http://${isIP(host) === 6 ? `[${host}]` : host}`);

type OutboundOptions = {
  /** Private addresses that may be reached all the same. */
  allow: BlockList;
  timeoutMs?: number;
  /** All addresses of a host name. */
  resolve?: (hostname: string) => Promise<string[]>;
  /** Certificates to trust besides the usual ones. */
  ca?: string;
  /**
   * The proxy of all requests: an http or https address, with user and password if the proxy requires them. It may be private, and is asked
   * for the very address that was checked. Undefined: no proxy, whatever the environment says. NO_PROXY must not be set, because Bun's
   * fetch would bypass even an explicit proxy.
   */
  proxy?: string | undefined;
  /** Called with the private addresses of a name. They are only logged, because the user who entered the name must not learn them. */
  onPrivate?: (hostname: string, addresses: readonly string[]) => void;
};

/**
 * A look-up takes a thread of those that files and passwords need, for as long as the name server is silent, whoever still waits for it.
 * Half of them stay free.
 */
const lookups = createLimit(Math.max(1, Math.floor(navigator.hardwareConcurrency / 2)));

const resolveAll = (hostname: string): Promise<string[]> =>
  lookups.run(async () => (await lookup(hostname, { all: true })).map(({ address }) => address));

export function createOutbound({
  allow,
  timeoutMs: usual = TIMEOUT_MS,
  resolve = resolveAll,
  ca,
  proxy,
  onPrivate = () => {},
}: OutboundOptions): Outbound {
  /** The address to dial; a name may mean another one the next time, so this very one is dialled. */
  async function choose(url: Pick<URL, "hostname">, signal: AbortSignal): Promise<string> {
    const literal = literalAddress(url);
    const addresses = literal === undefined ? await within(resolve(url.hostname), signal) : [literal];
    const address = addresses.find((address) => isReachable(address, allow));
    if (address !== undefined) return address;
    if (literal === undefined) onPrivate(url.hostname, addresses);
    throw new OutboundError(
      `${literal ?? url.hostname}: requests do not go to private addresses unless OUTBOUND_ALLOW names them`,
      literal !== undefined,
    );
  }

  return {
    async connect({ host, port, timeoutMs = 2 * usual }, use) {
      const { hostname } = hostUrl(host);
      if (!areFree(MIN_FREE_DESCRIPTORS)) throw new OutboundError(NO_DESCRIPTORS, false);
      const patience = Math.min(timeoutMs, 2 * usual);
      const signal = AbortSignal.timeout(patience);
      let socket: Socket | undefined;
      try {
        socket = connect({ host: await choose({ hostname }, signal), port });
        await within(once(socket, "connect"), signal);
        const literal = literalAddress({ hostname });
        const name = literal === undefined ? { host: hostname, servername: hostname } : { host: literal };
        return await within(use({ socket, tls: { ...name, ...(ca ? { ca } : {}) }, signal }), signal);
      } catch (error) {
        if (error instanceof OutboundError) throw error;
        throw new OutboundError(
          signal.aborted ? `No answer within ${patience / 1000} s` : describe(error, { hostname }, false),
          false,
        );
      } finally {
        // Late errors of a connection that nobody waits for are not errors of the process.
        socket?.on("error", () => {}).destroy();
      }
    },

    async request({ method, url, headers = {}, body, maxBytes = MAX_ANSWER_BYTES, timeoutMs = usual }) {
      const target = new URL(url);
      if (target.protocol !== "https:" && target.protocol !== "http:")
        throw new OutboundError("Only http and https addresses are allowed", true);
      if (!areFree(MIN_FREE_DESCRIPTORS)) throw new OutboundError(NO_DESCRIPTORS, false);
      const patience = Math.min(timeoutMs, usual);
      const signal = AbortSignal.timeout(patience);
      try {
        const address = await choose(target, signal);
        const dialled = new URL(target);
        dialled.hostname = isIP(address) === 6 ? `[${address}]` : address;
        const response = await fetch(dialled, {
          method,
          headers: { "User-Agent": "Assay", ...headers, Host: target.host, "Accept-Encoding": "identity" },
          ...(body === undefined ? {} : { body }),
          redirect: "manual",
          // A connection that was opened for one name is not used for another one at the same address.
          keepalive: false,
          decompress: false,
          signal,
          tls: { ...(literalAddress(target) ? {} : { serverName: target.hostname }), ...(ca ? { ca } : {}) },
          // Only false is none: undefined, null and "" leave the choice to HTTP_PROXY, HTTPS_PROXY and ALL_PROXY.
          proxy: proxy ?? false,
        } as RequestInit);
        // Only a proxy answers like this, and its page may contain details that users must not see.
        if (proxy !== undefined && target.protocol === "http:" && response.status === 407) {
          response.body?.cancel().catch(() => {});
          throw Object.assign(new Error(), { code: PROXY_REFUSED });
        }
        return {
          status: response.status,
          headers: response.headers,
          text: await readStart(response, maxBytes, signal),
        };
      } catch (error) {
        if (error instanceof OutboundError) throw error;
        throw new OutboundError(
          signal.aborted ? `No answer within ${patience / 1000} s` : describe(error, target, proxy !== undefined),
          false,
        );
      }
    },
  };
}

/** A DNS look-up cannot be cancelled, but the caller need not wait for it. */
async function within<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  if (signal.aborted) reject(signal.reason);
  else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  return await Promise.race([work, promise]);
}

/** Whatever comes after the first bytes is not read: an answer may be endless. */
async function readStart(response: Response, maxBytes: number, signal: AbortSignal): Promise<string> {
  const reader = response.body?.getReader();
  if (!reader) return "";
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    while (size < maxBytes) {
      const { done, value } = await within(reader.read(), signal);
      if (done) break;
      chunks.push(value);
      size += value.byteLength;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, maxBytes));
}

/** The host in place of the address, which may hold a secret. */
function describe(error: unknown, { hostname }: Pick<URL, "hostname">, isProxied: boolean): string {
  const reason = describeConnectionFailure(error);
  return `${reason[0]!.toUpperCase()}${reason.slice(1)}: ${hostname}${isProxied ? " through the proxy" : ""}`;
}
