/** Answers the requests to the API: from the key and the route to the response. */

import { readRangeHeaders } from "../http/byte_range.ts";
import { createCors } from "../http/cors.ts";
import { createCursors } from "../http/cursor.ts";
import { createDeadlines } from "../http/deadline.ts";
import { parsePath } from "../http/input.ts";
import { absent, fail, Problem } from "../http/problem.ts";
import type { RateLimit } from "../http/rate_limit.ts";
import { createRouter, type Method } from "../http/router.ts";
import type { Caller } from "../request/callers.ts";
import { createExecute, type ExecuteOptions } from "../request/execute.ts";
import { type Asked, createIntake, type IntakeOptions, type ReceivedRequest } from "../request/intake.ts";
import { Reply } from "../request/reply.ts";
import { toResponse } from "../request/response.ts";
import type { Route } from "../request/route.ts";
import type { Database } from "../database/connect.ts";
import { selectAllExist } from "../store/existence.ts";
import { type CallerProgress, createAuthentication, newCallerProgress } from "./authentication.ts";
import { requireAccess } from "./authorization.ts";
import type { ReadClientAddress } from "./client_address.ts";
import {
  API,
  type IncomingRequest,
  problemReply,
  requireAsSent,
  requireHost,
  UNKNOWN_ROUTE,
} from "./incoming_request.ts";
import type { RecordRequest } from "./request_log.ts";
import type { createUploadRecord } from "./upload_record.ts";

/** The server's idle timeout of 60 seconds leaves 30 beyond this deadline; a longer deadline needs a longer timeout. */
const USUAL_DEADLINE_SECONDS = 30;
const SPARE_SECONDS = 30;

export type ApiOptions = Omit<ExecuteOptions, "cursors"> &
  Omit<IntakeOptions, "handle" | "deadlines" | "pool"> & {
    database: Database;
    cursorSecret: Uint8Array;
    rateLimit: RateLimit;
    corsOrigins: readonly string[];
  };

type ApiRecords = {
  readAddress: ReadClientAddress;
  recordRequest: RecordRequest;
  uploads: Pick<ReturnType<typeof createUploadRecord>, "record">;
};

type ApiProgress = CallerProgress & { route: Route | undefined };

export function createApi(routes: readonly Route[], options: ApiOptions, records: ApiRecords) {
  const { readAddress, recordRequest, uploads } = records;
  const labels = new Map(routes.map((route) => [route, `${API}${route.path}`]));
  const { rateLimit } = options;
  const cors = createCors(options.corsOrigins);
  const deadlines = createDeadlines();
  const authentication = createAuthentication({ keys: options.database.keys, rateLimit, deadlines, log: options.log });
  const find = createRouter(routes);
  const handle = createExecute(options.database, toExecuteOptions(options));
  const take = createIntake({ ...options, handle, deadlines, pool: options.database.pool });

  /** The order of the steps is part of the contract: key, rate, route, path parameters, access, query and body, handler. */
  async function answer(incoming: IncomingRequest, path: string, progress: ApiProgress): Promise<Reply> {
    const { request, target, connection } = incoming;
    requireHost(incoming);
    const preflight = cors.preflight(request);
    if (preflight) {
      // A browser asks without the key before a request that counts, so this one does not.
      progress.admission = rateLimit.look(readAddress(incoming));
      return new Reply(204, null, null, preflight);
    }
    const caller = await authentication.authenticate(request, path, progress);
    const { route, segments } = requireRoute(find(request.method, path), incoming);
    if (route.deadlineSeconds > USUAL_DEADLINE_SECONDS) connection.allowSeconds(route.deadlineSeconds + SPARE_SECONDS);
    progress.route = route;
    const reply = await run({ route, segments }, { request, search: target.search }, caller, progress);
    if (!progress.provedLive) await authentication.requireLive(caller, progress);
    return reply;
  }

  /** Runs a route for a caller whose key has been looked up: path parameters, access, query and body, handler. */
  async function run(
    { route, segments }: Matched,
    received: ReceivedRequest,
    caller: Caller,
    progress: CallerProgress,
  ): Promise<Reply> {
    const params = parsePath(route.pathParameters, segments) as Record<string, string>;
    requireAccess(caller, route, params);
    try {
      return await take(route, received, toAsked(received.request, route, { caller, params, progress }), progress);
    } catch (error) {
      // A missing object is reported before other mistakes. This costs a query only if there is a mistake.
      const isMistake = error instanceof Problem && error.code === "VALIDATION_ERROR";
      if (isMistake && !(await selectAllExist(options.database.fast, params))) absent();
      throw error;
    }
  }

  return {
    authentication,

    /** Answers a call of the server itself, for a caller whose request has been authenticated and counted. */
    async call({ method, path, search, body, accept }: InternalCall, caller: Caller, progress: CallerProgress) {
      const found = find(method, path);
      if (!found || !("route" in found)) throw new Error(`No route for ${method} ${path}`);
      const request = new Request(`http://assay.internal${API}`, {
        method,
        headers: { ...(accept ? { Accept: accept } : {}), "Content-Type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return await run(found, { request, search }, caller, progress);
    },

    /** Never throws. */
    async respond(incoming: IncomingRequest): Promise<Response> {
      const { request, target, connection, requestId } = incoming;
      const path = target.path.slice(API.length);
      const progress = newProgress();
      // The address of a connection that has broken off cannot be read any more.
      const sender = request.method === "POST" ? readAddress(incoming) : undefined;
      const client = () => sender ?? readAddress(incoming);
      let reply: Reply;
      let problem: Problem | undefined;
      try {
        reply = await answer(incoming, path, progress);
      } catch (error) {
        problem = await authentication.refuse(error, client, progress, requestId);
        reply = problemReply(problem);
        progress.route ??= routeOf(find(request.method, path));
      }
      const { route, caller, upload: facts, admission } = progress;
      if (route?.body === "upload")
        uploads.record(incoming, { caller, facts, clientAddress: client(), status: reply.status, problem });
      authentication.noteUse(progress);
      const response = toResponse(reply, requestId, request, admission, () => connection.allowSeconds(1));
      cors.mark(request, response);
      recordRequest(incoming, response.status, (route && labels.get(route)) ?? UNKNOWN_ROUTE);
      return response;
    },

    /** To be called every minute: gives back the memory of clients that are gone. */
    sweep: (): void => rateLimit.sweep(),
  };
}

export type Api = ReturnType<typeof createApi>;

/** A request that the server makes to its own API; `path` is relative to /api/v1, `search` without the question mark. */
type InternalCall = {
  method: Method;
  path: string;
  search: string;
  body?: unknown;
  accept?: string | undefined;
};

type Found = ReturnType<ReturnType<typeof createRouter<Route>>>;
type Matched = { route: Route; segments: string[] };

function requireRoute(found: Found, incoming: IncomingRequest): Matched {
  const { request, target } = incoming;
  if (!found) fail("NOT_FOUND", `No such endpoint: ${target.path.slice(0, 200)}`);
  requireAsSent(incoming);
  if ("allow" in found)
    fail("NOT_FOUND", `Method ${request.method} is not supported: this endpoint supports ${found.allow}`, {
      Allow: found.allow,
    });
  return found;
}

/** The route of a request that was refused before it reached it. */
const routeOf = (found: Found): Route | undefined => (found && "route" in found ? found.route : undefined);

const newProgress = (): ApiProgress => ({ ...newCallerProgress(), route: undefined });

type Called = { caller: Caller; params: Record<string, string>; progress: CallerProgress };

function toAsked(request: Request, route: Route, { caller, params, progress: { admission } }: Called): Asked {
  const { method, headers } = request;
  const { limit, remaining } = admission!;
  return {
    caller,
    budget: { limit, remaining },
    params,
    wantsText: /^text\/plain\b/i.test(headers.get("accept") ?? ""),
    wantsCsv: /^text\/csv\b/i.test(headers.get("accept") ?? ""),
    range: route.file === undefined ? undefined : readRangeHeaders(request),
    lastEventId: headers.get("last-event-id"),
    idempotencyKey: method === "POST" ? headers.get("idempotency-key") : null,
  };
}

/** Returns only the options that handlers may use. */
function toExecuteOptions({ cursorSecret, ...options }: ApiOptions): ExecuteOptions {
  const { publicUrl, maxInflatedBytes, retentionDays, seal, outbound, outboundAllow, signals, log } = options;
  const { live, eventStreams, attachments } = options;
  const cursors = createCursors(cursorSecret);
  const watching = { signals, live, eventStreams };
  return {
    publicUrl,
    maxInflatedBytes,
    retentionDays,
    seal,
    outbound,
    outboundAllow,
    attachments,
    log,
    cursors,
    ...watching,
  };
}
