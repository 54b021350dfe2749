/** Answers the messages of the Model Context Protocol, of both eras, without sessions. */

import packageJson from "../../package.json" with { type: "json" };
import { check } from "../http/input.ts";
import { Problem } from "../http/problem.ts";
import { Refusal } from "../schema/refusal.ts";
import { fit, type ToolResult } from "./fit.ts";
import inputSchemas from "./input_schemas.json";
import {
  idOf,
  isJsonRecord,
  isResponse,
  type JsonRecord,
  type Message,
  parseRpcText,
  RpcError,
  toErrorBody,
  toMessage,
  toResponseBody,
} from "./json_rpc.ts";
import {
  allowsBatch,
  type Era,
  eraOf,
  hasEnvelope,
  negotiate,
  type ReadHeader,
  SERVER_INFO_KEY,
  SUPPORTED_REVISIONS,
} from "./revisions.ts";
import { mayCall, type ProjectApi, type Tool } from "./tool.ts";
import { TOOLS } from "./tools.ts";
import { createCleaner, UNTRUSTED_NOTICE } from "./untrusted.ts";

/** The key of a request: what it may do, and the API of its project. */
export type McpCaller = {
  /** The scope of the key; null: the project's own. */
  scope: string | null;
  api: ProjectApi;
  /** Counts further requests against the key's rate limit. Throws if the limit is reached. */
  count: (requests: number) => void;
};

/** `body` is undefined where there is nothing to answer. */
export type McpAnswer = { status: number; body: JsonRecord | JsonRecord[] | undefined };

const MAX_BATCH_SIZE = 20;
/** How long a client may cache the list of tools, which changes only with the version of the server. */
const LIST_TTL_MS = 300_000;

const SERVER_INFO = { name: "assay", title: "Assay", version: packageJson.version };
const INSTRUCTIONS =
  "Assay records how the tests of one project run in CI. Start with why_is_it_red: it explains the last result of a branch or a " +
  "pull request. Ids in its answer (executionId, testCaseId, bug report id) are arguments of the other tools. Every answer says in " +
  `leftOut what it does not hold. ${UNTRUSTED_NOTICE}`;
const CAPABILITIES = { tools: {} };
const NOTHING: McpAnswer = { status: 202, body: undefined };

/** Answers the body of a POST. Throws errors of the request as a whole: a revoked key, an unavailable database. */
export async function answerMcp(text: string, header: ReadHeader, caller: McpCaller): Promise<McpAnswer> {
  let given: unknown;
  try {
    given = parseRpcText(text);
    if (Array.isArray(given)) return await answerBatch(given, header, caller);
    if (isResponse(given)) return NOTHING;
    const message = toMessage(given);
    const era = eraOf(message, header);
    if (message.id === undefined) return NOTHING;
    return { status: 200, body: toResponseBody(message.id, await answerMessage(message, era, caller)) };
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    return { status: error.status, body: toErrorBody(idOf(given), error) };
  }
}

/** Answers messages one after the other, so that writes happen in the order in which they were sent. */
async function answerBatch(given: readonly unknown[], header: ReadHeader, caller: McpCaller): Promise<McpAnswer> {
  if (!allowsBatch(header)) throw new RpcError("invalidRequest", "This revision of the protocol has no batches");
  if (given.length === 0 || given.length > MAX_BATCH_SIZE)
    throw new RpcError("invalidRequest", `Cannot read the batch: expected 1 to ${MAX_BATCH_SIZE} messages`);
  caller.count(given.length - 1);
  const bodies: JsonRecord[] = [];
  for (const one of given) {
    if (isResponse(one)) continue;
    try {
      const message = toMessage(one);
      if (hasEnvelope(message)) throw new RpcError("invalidRequest", "This revision of the protocol has no batches");
      if (message.method === "initialize")
        throw new RpcError("invalidRequest", "Cannot read the batch: initialize comes by itself");
      if (message.id === undefined) continue;
      bodies.push(toResponseBody(message.id, await answerMessage(message, "handshake", caller)));
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      bodies.push(toErrorBody(idOf(one), error));
    }
  }
  return bodies.length === 0 ? NOTHING : { status: 200, body: bodies };
}

async function answerMessage(message: Message, era: Era, caller: McpCaller): Promise<JsonRecord> {
  const { method, params } = message;
  if (era === "handshake") {
    if (method === "initialize") return initialize(params);
    if (method === "ping") return {};
  } else if (method === "server/discover") return stateless(discover(), true);
  if (method === "tools/list") {
    const list = listTools(params, caller);
    return era === "stateless" ? stateless(list, true) : list;
  }
  if (method === "tools/call") {
    const result = await callTool(params, caller);
    return era === "stateless" ? stateless(result, false) : result;
  }
  const status = era === "stateless" ? 404 : 200;
  throw new RpcError("methodNotFound", `Unknown method ${JSON.stringify(method.slice(0, 60))}`, { status });
}

/** Adds the fields that the stateless revision has in every result. */
const stateless = (result: JsonRecord, isCacheable: boolean): JsonRecord => ({
  resultType: "complete",
  ...(isCacheable ? { ttlMs: LIST_TTL_MS, cacheScope: "private" } : {}),
  ...result,
  _meta: { [SERVER_INFO_KEY]: SERVER_INFO },
});

const initialize = ({ protocolVersion }: JsonRecord): JsonRecord => ({
  protocolVersion: negotiate(protocolVersion),
  capabilities: CAPABILITIES,
  serverInfo: SERVER_INFO,
  instructions: INSTRUCTIONS,
});

const discover = (): JsonRecord => ({
  supportedVersions: SUPPORTED_REVISIONS,
  capabilities: CAPABILITIES,
  instructions: INSTRUCTIONS,
});

/** Lists the tools that the key may call, all on one page. */
function listTools({ cursor }: JsonRecord, { scope }: McpCaller): JsonRecord {
  if (cursor !== undefined) throw new RpcError("invalidParams", `Cannot read "cursor": the list has one page`);
  return { tools: TOOLS.filter((tool) => mayCall(tool, scope)).map(showTool) };
}

const showTool = ({ name, title, description, scope, isIdempotent }: Tool): JsonRecord => ({
  name,
  title,
  description,
  inputSchema: inputSchemas[name as keyof typeof inputSchemas],
  annotations:
    scope === "read"
      ? { title, readOnlyHint: true, openWorldHint: false }
      : {
          title,
          readOnlyHint: false,
          destructiveHint: false,
          idempotentHint: isIdempotent === true,
          openWorldHint: false,
        },
});

async function callTool({ name, arguments: given = {} }: JsonRecord, caller: McpCaller): Promise<ToolResult> {
  if (typeof name !== "string") throw new RpcError("invalidParams", `Cannot read "name": expected a text`);
  if (!isJsonRecord(given)) throw new RpcError("invalidParams", `Cannot read "arguments": expected an object`);
  const tool = TOOLS.find((one) => one.name === name);
  if (!tool) throw new RpcError("invalidParams", `Unknown tool ${JSON.stringify(name.slice(0, 60))}`);
  if (!mayCall(tool, caller.scope))
    throw new RpcError(
      "invalidParams",
      `A key of scope "${caller.scope}" cannot call ${name}: use the project's own key, or one of scope "${tool.scope}"`,
    );
  return await run(tool, given, caller);
}

/** Returns mistakes of the assistant as results, which it can read and correct; throws other errors. */
async function run(tool: Tool, given: JsonRecord, { api }: McpCaller): Promise<ToolResult> {
  try {
    const cleaner = createCleaner();
    const { data, leftOut = [], hint } = await tool.run({ api, cleaner, args: check(tool.input, given) as never });
    const cut = cleaner.cut();
    return fit({ notice: UNTRUSTED_NOTICE, ...data }, [...leftOut, ...(cut === undefined ? [] : [cut])], hint);
  } catch (error) {
    const isMistake =
      error instanceof Refusal || (error instanceof Problem && ["VALIDATION_ERROR", "NOT_FOUND"].includes(error.code));
    if (!isMistake) throw error;
    return { content: [{ type: "text", text: error.message }], isError: true };
  }
}
