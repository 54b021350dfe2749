/** Answers the requests to the API: from the key and the route to the response. */

import { createCursors } from "../http/cursor.ts";
import { createDeadlines } from "../http/deadline.ts";
import { parsePath } from "../http/input.ts";
import { absent, fail, Problem } from "../http/problem.ts";
import type { RateLimit } from "../http/rate_limit.ts";
import { createRouter } from "../http/router.ts";
import type { Caller } from "../request/callers.ts";
import { createExecute, type ExecuteOptions } from "../request/execute.ts";
import { type Asked, createIntake, type IntakeOptions } from "../request/intake.ts";
import type { Reply } from "../request/reply.ts";
import { toResponse } from "../request/response.ts";
import type { Route } from "../request/route.ts";
import type { Database } from "../database/connect.ts";
import { selectAllExist } from "../store/existence.ts";
import { type CallerProgress, createAuthentication } from "./authentication.ts";
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
  };

export type ApiRecords = {
  readAddress: ReadClientAddress;
  recordRequest: RecordRequest;
  uploads: Pick<ReturnType<typeof createUploadRecord>, "record">;
};

type ApiProgress = CallerProgress & { route: Route | undefined };

export function createApi(routes: readonly Route[], options: ApiOptions, records: ApiRecords) {
  const { readAddress, recordRequest, uploads } = records;
  const labels = new Map(routes.map((route) => [route, `${API}${route.path}`]));
  const { rateLimit } = options;
  const deadlines = createDeadlines();
  const authentication = createAuthentication({ keys: options.database.keys, rateLimit, deadlines, log: options.log });
  const find = createRouter(routes);
  const handle = createExecute(options.database, toExecuteOptions(options));
  const take = createIntake({ ...options, handle, deadlines, pool: options.database.pool });

  /** The order of the steps is part of the contract: key, rate, route, path parameters, access, query and body, handler. */
  async function answer(incoming: IncomingRequest, path: string, progress: ApiProgress): Promise<Reply> {
    const { request, target, connection } = incoming;
    requireHost(incoming);
    const caller = await authentication.authenticate(request, path, progress);
    const { route, segments } = requireRoute(find(request.method, path), incoming);
    const params = parsePath(route.pathParameters, segments) as Record<string, string>;
    requireAccess(caller, route, params);
    if (route.deadlineSeconds > USUAL_DEADLINE_SECONDS) connection.allowSeconds(route.deadlineSeconds + SPARE_SECONDS);
    progress.route = route;
    let reply: Reply;
    try {
      reply = await take(
        route,
        { request, search: target.search },
        toAsked(request, caller, params, progress),
        progress,
      );
    } catch (error) {
      // That it does not exist comes before what is wrong with the rest, and costs a look only when something is.
      const isMistake = error instanceof Problem && error.code === "VALIDATION_ERROR";
      if (isMistake && !(await selectAllExist(options.database.fast, params))) absent();
      throw error;
    }
    if (!progress.provedLive) await authentication.requireLive(caller, progress);
    return reply;
  }

  return {
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
      recordRequest(incoming, response.status, (route && labels.get(route)) ?? UNKNOWN_ROUTE);
      return response;
    },

    /** To be called every minute: gives back the memory of clients that are gone. */
    sweep: (): void => rateLimit.sweep(),
  };
}

type Found = ReturnType<ReturnType<typeof createRouter<Route>>>;

function requireRoute(found: Found, incoming: IncomingRequest): { route: Route; segments: string[] } {
  const { request, target } = incoming;
  if (!found) fail("NOT_FOUND", `No such endpoint: ${target.path.slice(0, 200)}`);
  requireAsSent(incoming);
  if ("allow" in found)
    fail("NOT_FOUND", `No ${request.method} here: this endpoint knows ${found.allow}`, { Allow: found.allow });
  return found;
}

/** The route of a request that was refused before it reached it. */
const routeOf = (found: Found): Route | undefined => (found && "route" in found ? found.route : undefined);

const newProgress = (): ApiProgress => ({
  caller: undefined,
  admission: undefined,
  route: undefined,
  provedLive: false,
  expired: false,
});

function toAsked(
  { method, headers }: Request,
  caller: Caller,
  params: Record<string, string>,
  { admission }: ApiProgress,
): Asked {
  const { limit, remaining } = admission!;
  return {
    caller,
    budget: { limit, remaining },
    params,
    wantsText: /^text\/plain\b/i.test(headers.get("accept") ?? ""),
    lastEventId: headers.get("last-event-id"),
    idempotencyKey: method === "POST" ? headers.get("idempotency-key") : null,
  };
}

/** Exactly what handlers may use: the options hold more. */
function toExecuteOptions({ cursorSecret, ...options }: ApiOptions): ExecuteOptions {
  const { publicUrl, maxInflatedBytes, retentionDays, seal, outbound, outboundAllow, signals, log } = options;
  const { live, eventStreams } = options;
  const cursors = createCursors(cursorSecret);
  const watching = { signals, live, eventStreams };
  return { publicUrl, maxInflatedBytes, retentionDays, seal, outbound, outboundAllow, log, cursors, ...watching };
}
