/** JSON-RPC 2.0 as the Model Context Protocol uses it: messages in, results and errors out. */

export type JsonRecord = Record<string, unknown>;

type RequestId = string | number;

/** A request, or a notification where there is no id. */
export type Message = { id: RequestId | undefined; method: string; params: JsonRecord };

const ERROR_CODES = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const;
type ErrorName = keyof typeof ERROR_CODES;

/** The HTTP status of an error; an error that is not named here is an answer with status 200. */
const STATUSES: Partial<Record<ErrorName, number>> = {
  parse: 400,
  invalidRequest: 400,
  headerMismatch: 400,
  unsupportedVersion: 400,
};

/** A message that is answered with an error of the protocol. */
export class RpcError extends Error {
  override name = "RpcError";
  readonly code: number;
  readonly status: number;
  readonly data: unknown;

  constructor(name: ErrorName, message: string, { status, data }: { status?: number; data?: unknown } = {}) {
    super(message);
    this.code = ERROR_CODES[name];
    this.status = status ?? STATUSES[name] ?? 200;
    this.data = data;
  }
}

export const isJsonRecord = (value: unknown): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Throws RpcError. */
export function parseRpcText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new RpcError("parse", "Cannot read the body: not valid JSON");
  }
}

/** Returns the id of a message, whatever else is wrong with it; null if it has none that can be repeated. */
export const idOf = (value: unknown): RequestId | null =>
  isJsonRecord(value) && (typeof value["id"] === "string" || Number.isSafeInteger(value["id"]))
    ? (value["id"] as RequestId)
    : null;

/** Whether it answers a request of the server, which never makes any. */
export const isResponse = (value: unknown): boolean =>
  isJsonRecord(value) && !("method" in value) && ("result" in value || "error" in value);

/** Throws RpcError. */
export function toMessage(value: unknown): Message {
  if (!isJsonRecord(value)) throw new RpcError("invalidRequest", "Cannot read the message: expected a JSON object");
  const { jsonrpc, id, method, params = {} } = value;
  if (jsonrpc !== "2.0") throw new RpcError("invalidRequest", `Cannot read "jsonrpc": expected "2.0"`);
  if (typeof method !== "string") throw new RpcError("invalidRequest", `Cannot read "method": expected a text`);
  if (id !== undefined && idOf(value) === null)
    throw new RpcError("invalidRequest", `Cannot read "id": expected a text or an integer`);
  if (!isJsonRecord(params)) throw new RpcError("invalidRequest", `Cannot read "params": expected an object`);
  return { id: id as RequestId | undefined, method, params };
}

export const toResponseBody = (id: RequestId, result: JsonRecord): JsonRecord => ({ jsonrpc: "2.0", id, result });

export const toErrorBody = (id: RequestId | null, { code, message, data }: RpcError): JsonRecord => ({
  jsonrpc: "2.0",
  id,
  error: { code, message, ...(data === undefined ? {} : { data }) },
});
