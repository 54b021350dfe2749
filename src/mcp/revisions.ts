/** The revisions of the protocol that the server speaks, and how a message says which one it is of. */

import { isJsonRecord, type Message, RpcError } from "./json_rpc.ts";

/** Each request stands for itself: no `initialize`, and the revision is in the request. */
const STATELESS_REVISION = "2026-07-28";
/** Clients of these begin with `initialize`. The newest comes first. */
const HANDSHAKE_REVISIONS = ["2025-11-25", "2025-06-18", "2025-03-26"] as const;
/** Messages are sent in batches in this revision alone; it is also that of a request which names none. */
const BATCH_REVISION = "2025-03-26";
export const SUPPORTED_REVISIONS: readonly string[] = [STATELESS_REVISION, ...HANDSHAKE_REVISIONS];

export type Era = "stateless" | "handshake";

export type ReadHeader = (name: string) => string | null;

const META = "io.modelcontextprotocol/";
export const SERVER_INFO_KEY = `${META}serverInfo`;
const VERSION_KEY = `${META}protocolVersion`;
const CAPABILITIES_KEY = `${META}clientCapabilities`;

const VERSION_HEADER = "MCP-Protocol-Version";

const metaOf = ({ params }: Message): Record<string, unknown> => {
  const meta = params["_meta"];
  return isJsonRecord(meta) ? meta : {};
};

/** Whether a message carries the revision within, as those of the stateless revision do. */
export const hasEnvelope = (message: Message): boolean => VERSION_KEY in metaOf(message);

function unsupported(requested: string): never {
  throw new RpcError("unsupportedVersion", `Unsupported protocol version: ${requested.slice(0, 40)}`, {
    data: { supported: SUPPORTED_REVISIONS, requested: requested.slice(0, 40) },
  });
}

function mismatch(message: string): never {
  throw new RpcError("headerMismatch", message);
}

/** Returns the era of a message. Throws RpcError where its revision is not supported, or headers and message disagree. */
export function eraOf(message: Message, header: ReadHeader): Era {
  const named = header(VERSION_HEADER);
  if (!hasEnvelope(message)) {
    if (named !== null && !SUPPORTED_REVISIONS.includes(named)) unsupported(named);
    if (named === STATELESS_REVISION && message.id !== undefined)
      throw new RpcError("invalidParams", `Missing field "params._meta.${VERSION_KEY}"`, { status: 400 });
    return named === STATELESS_REVISION ? "stateless" : "handshake";
  }
  requireEnvelope(message, named);
  if (message.id !== undefined) requireHeaders(message, header);
  return "stateless";
}

function requireEnvelope(message: Message, named: string | null): void {
  const { [VERSION_KEY]: version, [CAPABILITIES_KEY]: capabilities } = metaOf(message);
  const refuse = (key: string, expected: string) => {
    throw new RpcError("invalidParams", `Cannot read "params._meta.${key}": expected ${expected}`, { status: 400 });
  };
  if (typeof version !== "string") return refuse(VERSION_KEY, "a text");
  if (named !== null && named !== version)
    mismatch(`The header ${VERSION_HEADER} does not say what the message says: ${version.slice(0, 40)}`);
  if (version !== STATELESS_REVISION) unsupported(version);
  if (!isJsonRecord(capabilities)) return refuse(CAPABILITIES_KEY, "an object");
}

/** In this revision headers repeat the message, so that proxies need not read it. */
function requireHeaders({ method, params }: Message, header: ReadHeader): void {
  if (header(VERSION_HEADER) === null) mismatch(`Missing header ${VERSION_HEADER}`);
  if (header("Mcp-Method") !== method) mismatch(`The header Mcp-Method is not the method of the message: ${method}`);
  const { name } = params;
  if (method !== "tools/call" || typeof name !== "string") return;
  if (decodeHeader(header("Mcp-Name")) !== name) mismatch("The header Mcp-Name is not the name in the message");
}

/** A name that is no plain ASCII comes as `=?base64?…?=`. */
function decodeHeader(value: string | null): string | null {
  const encoded = value === null ? undefined : /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/.exec(value)?.[1];
  return encoded === undefined ? value : Buffer.from(encoded, "base64").toString();
}

/** Whether messages may come in batches. */
export const allowsBatch = (header: ReadHeader): boolean =>
  (header(VERSION_HEADER) ?? BATCH_REVISION) === BATCH_REVISION;

/** Returns the revision of a handshake: the one that the client requests, or the newest that has a handshake. */
export const negotiate = (requested: unknown): string =>
  HANDSHAKE_REVISIONS.find((revision) => revision === requested) ?? HANDSHAKE_REVISIONS[0];
