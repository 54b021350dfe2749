/** Answers the requests of assistants: the Model Context Protocol on top of the API, with its keys, scopes and rate limit. */

import { readBody } from "../http/body.ts";
import { createDeadlines } from "../http/deadline.ts";
import { decodeText } from "../http/input.ts";
import { answerMcp, type McpCaller } from "../mcp/protocol.ts";
import type { ProjectApi, QueryValues } from "../mcp/tool.ts";
import type { Caller } from "../request/callers.ts";
import { json, Reply } from "../request/reply.ts";
import { toResponse } from "../request/response.ts";
import { READ_SCOPES } from "../request/route.ts";
import type { Api } from "./api_requests.ts";
import { type CallerProgress, newCallerProgress } from "./authentication.ts";
import { requireScope } from "./authorization.ts";
import type { ReadClientAddress } from "./client_address.ts";
import { type IncomingRequest, problemReply, requireAsSent, requireHost } from "./incoming_request.ts";
import type { RecordRequest } from "./request_log.ts";

/** The path of the endpoint, relative to the public address. */
export const MCP = "/mcp";

/** A message is a handful of fields. */
const MAX_BODY_BYTES = 65_536;
const MAX_BODY_SECONDS = 30;
/** A tool sends several requests to the API, and a batch has several tools. */
const DEADLINE_SECONDS = 60;
const SPARE_SECONDS = 30;

type McpOptions = {
  /** Without a trailing slash. */
  publicUrl: string;
};

type McpRecords = { readAddress: ReadClientAddress; recordRequest: RecordRequest; api: Api };

export function createMcpRequests({ publicUrl }: McpOptions, { readAddress, recordRequest, api }: McpRecords) {
  const { authentication } = api;
  const deadlines = createDeadlines();
  const ownOrigin = toNamedOrigin(new URL(publicUrl).origin);

  /** The API of the caller's project; its routes check access, scope and input as for a request of its own. */
  function toProjectApi(caller: Caller, progress: CallerProgress): ProjectApi {
    const base = `/projects/${caller.projectId}`;
    const read = async (path: string, query: QueryValues = {}, accept?: string) =>
      (await api.call({ method: "GET", path: base + path, search: toSearch(query), accept }, caller, progress)).body!;
    return {
      get: async (path, query) => JSON.parse(await read(path, query)),
      getText: (path, query) => read(path, query, "text/plain"),
      send: async (method, path, body) =>
        JSON.parse((await api.call({ method, path: base + path, search: "", body }, caller, progress)).body!),
    };
  }

  async function answer(incoming: IncomingRequest, progress: CallerProgress): Promise<Reply> {
    const { request, connection } = incoming;
    requireHost(incoming);
    requireAsSent(incoming);
    // The protocol requires this status; clients treat any other one as a failure.
    if (request.method !== "POST")
      return refusal(405, "NOT_FOUND", `Method ${request.method} is not supported: this endpoint supports POST`, {
        Allow: "POST",
      });
    const origin = request.headers.get("origin");
    if (origin !== null && toNamedOrigin(origin) !== ownOrigin)
      return refusal(403, "UNAUTHORIZED", `Requests from pages of ${JSON.stringify(origin.slice(0, 200))} are refused`);
    const caller = await authentication.authenticate(request, "/projects", progress);
    requireScope(caller, { scopes: READ_SCOPES });
    const limits = { maxBytes: MAX_BODY_BYTES, maxInflatedBytes: MAX_BODY_BYTES, maxSeconds: MAX_BODY_SECONDS };
    const text = decodeText(await readBody(request, limits));
    const mcpCaller: McpCaller = {
      scope: caller.scope,
      api: toProjectApi(caller, progress),
      count(requests) {
        for (let count = 0; count < requests; count++) authentication.countAgain(caller, progress);
      },
    };
    connection.allowSeconds(DEADLINE_SECONDS + SPARE_SECONDS);
    const { status, body } = await deadlines.within(
      DEADLINE_SECONDS,
      () => answerMcp(text, (name) => request.headers.get(name), mcpCaller),
      () => void (progress.expired = true),
    );
    if (!progress.provedLive) await authentication.requireLive(caller, progress);
    return body === undefined ? new Reply(status, null, null) : json(status, body);
  }

  /** Never throws. */
  return async function respond(incoming: IncomingRequest): Promise<Response> {
    const { request, requestId, connection } = incoming;
    const progress = newCallerProgress();
    // The address of a connection that has broken off cannot be read any more.
    const sender = request.method === "POST" ? readAddress(incoming) : undefined;
    let reply: Reply;
    try {
      reply = await answer(incoming, progress);
    } catch (error) {
      reply = problemReply(
        await authentication.refuse(error, () => sender ?? readAddress(incoming), progress, requestId),
      );
    }
    authentication.noteUse(progress);
    const response = toResponse(reply, requestId, request, progress.admission, () => connection.allowSeconds(1));
    recordRequest(incoming, response.status, MCP);
    return response;
  };
}

/** The addresses of this machine are one origin: a server that listens there is called by any of them. */
const toNamedOrigin = (origin: string): string =>
  origin.replace(/^(http:\/\/)(?:127\.0\.0\.1|\[::1\])(?=:|$)/, "$1localhost");

/** Returns an error in the shape of all errors, with a status of the protocol. */
const refusal = (status: number, code: string, message: string, headers: Record<string, string> = {}): Reply =>
  new Reply(status, JSON.stringify({ error: { code, message } }), "application/json", headers);

function toSearch(query: QueryValues): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
  return new URLSearchParams(given).toString();
}
