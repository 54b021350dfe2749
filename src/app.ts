/** The application: every endpoint, and the way of a request from its target to its answer. */

import type { BlockList } from "node:net";
import { automations } from "./api/automations.ts";
import { bugReports } from "./api/bug_reports.ts";
import { environments } from "./api/environments.ts";
import { executions } from "./api/executions.ts";
import { integrations } from "./api/integrations.ts";
import { onboardings } from "./api/onboarding.ts";
import { projects } from "./api/projects.ts";
import { testCases } from "./api/test_cases.ts";
import { testRuns } from "./api/test_runs.ts";
import { type Caller, createCallers, revoked } from "./request/callers.ts";
import { clientAddress } from "./http/address.ts";
import { compress } from "./http/compress.ts";
import { createCursors } from "./http/cursor.ts";
import { createDeadlines, DeadlineError } from "./http/deadline.ts";
import { parsePath } from "./http/input.ts";
import { absent, fail, Problem } from "./http/problem.ts";
import { type Admission, createRateLimit } from "./http/rate_limit.ts";
import { createRouter } from "./http/router.ts";
import type { Connection } from "./http/serve.ts";
import { isAsSent, type Target, toTarget } from "./http/target.ts";
import { createUploadBudget, type Hold } from "./http/upload_budget.ts";
import { type CheckedRequest, createHandle, type HandlerServices, type Progress } from "./request/execute.ts";
import { HEAVY_BYTES, type HeavyThread } from "./request/upload_thread.ts";
import openapi from "./openapi.json" with { type: "json" };
import { type Input, readInput, readQuery, readSmallUpload, receiveUpload } from "./request/input.ts";
import { json, Reply } from "./request/reply.ts";
import type { Route } from "./request/route.ts";
import { type Database, isOutage } from "./store/connect.ts";
import { selectAllExist } from "./store/existence.ts";

/** Every endpoint under /api/v1, a family a line. */
export const ROUTES: readonly Route[] = [
  ...projects,
  ...testRuns,
  ...executions,
  ...testCases,
  ...bugReports,
  ...onboardings,
  ...environments,
  ...integrations,
  ...automations,
];

const API = "/api/v1";
/** The database answers a look-up of a key in far less, or is away. */
const IDENTIFY_SECONDS = 10;
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

export type AppOptions = Omit<HandlerServices, "cursors"> & {
  database: Database;
  heavy: Pick<HeavyThread, "handle" | "expire">;
  cursorSecret: Uint8Array;
  rateLimitPerMinute: number;
  maxBodyBytes: number;
  /** For all uploads that are received, wait or are read, together. */
  uploadMemoryBytes: number;
  trustProxy: BlockList;
  /** Whether requests should come here: the database answers, has our schema, and the server is not draining. */
  isReady: () => Promise<boolean>;
};

/** What a request says of itself before its query and body. */
type Asked = Omit<CheckedRequest, "query" | "body" | "digest">;

/** How far a request has come, and what it has shown of itself. */
type RequestProgress = Progress & { caller: Caller | undefined; admission: Admission | undefined };

export function createApp(options: AppOptions) {
  const { database, log } = options;
  const find = createRouter(ROUTES);
  const callers = createCallers(database.fast);
  const rateLimit = createRateLimit(options.rateLimitPerMinute);
  const deadlines = createDeadlines();
  const { publicUrl, maxBodyBytes, maxInflatedBytes, retentionDays, seal, outbound, outboundAllow, executionEnd } =
    options;
  const cursors = createCursors(options.cursorSecret);
  const given = { publicUrl, maxInflatedBytes, retentionDays, seal, outbound, outboundAllow, executionEnd, log };
  const services = { ...given, cursors };
  const handle = createHandle(database, services);
  // The upload that is being read is there inflated, as text, and as what has been read of it.
  const budget = createUploadBudget(Math.max(options.uploadMemoryBytes - 3 * maxInflatedBytes, maxBodyBytes));

  /** Key, rate, route, path parameters, access, query and body, handler: the order is part of the contract. */
  async function answer(
    request: Request,
    target: Target,
    connection: Connection,
    progress: RequestProgress,
  ): Promise<Reply> {
    requireHost(request, target);
    const path = target.path.slice(API.length);
    const key = callers.readKey(request.headers.get("authorization"));
    const caller = callers.recall(key) ?? (await deadlines.within(IDENTIFY_SECONDS, () => callers.lookUp(key)));
    const kind = /^\/(project|team)s(?:\/|$)/.exec(path)?.[1];
    if (kind !== undefined && kind !== caller.kind)
      fail("UNAUTHORIZED", `A ${caller.kind} key cannot call ${kind} endpoints`, { "WWW-Authenticate": "Bearer" });
    progress.caller = caller;
    progress.admission = rateLimit.admit(caller.id);
    requireAdmission(progress.admission);

    const found = find(request.method, path) ?? fail("NOT_FOUND", `No such endpoint: ${target.path.slice(0, 200)}`);
    requireAsSent(target, connection);
    if ("allow" in found)
      fail("NOT_FOUND", `No ${request.method} here: this endpoint knows ${found.allow}`, { Allow: found.allow });
    const { route, segments } = found;
    const params = parsePath(route.pathParameters, segments) as Record<string, string>;
    const own =
      route.access === "project" ? params["projectId"] === caller.projectId : params["teamId"] === caller.teamId;
    if (!own) absent();

    if (route.deadlineSeconds > 30) connection.allowSeconds(route.deadlineSeconds + 30);
    const reply = await readAndHandle(route, params, caller).catch(async (error) => {
      // That it is not there comes before what is wrong with the rest, and costs a look only when something is.
      const isMistake = error instanceof Problem && error.code === "VALIDATION_ERROR";
      if (isMistake && !(await selectAllExist(database.fast, params))) absent();
      throw error;
    });
    if (!progress.provedLive) await requireLive(caller, progress);
    return reply;

    async function readAndHandle(route: Route, params: Record<string, string>, caller: Caller): Promise<Reply> {
      const asked: Asked = {
        caller,
        params,
        wantsText: /^text\/plain\b/i.test(request.headers.get("accept") ?? ""),
        idempotencyKey: request.method === "POST" ? request.headers.get("idempotency-key") : null,
      };
      if (route.body === "upload") return await takeUpload(route, asked);
      return await run(
        route,
        asked,
        route.body === undefined
          ? readQuery(request, route, target.search)
          : await readInput(request, route, target.search),
      );
    }

    async function run(route: Route, asked: Asked, { query, body, digest }: Input): Promise<Reply> {
      const checked = { ...asked, query, body, digest: asked.idempotencyKey === null ? "" : digest() };
      return await deadlines.within(
        route.deadlineSeconds,
        () => handle(route, checked, progress),
        () => void (progress.expired = true),
      );
    }

    /** The memory that the upload takes is given back whatever becomes of it. */
    async function takeUpload(route: Route, asked: Asked): Promise<Reply> {
      const hold = budget.open(asked.caller.id);
      try {
        const grow = growWithin(hold, route.deadlineSeconds);
        const sent = await receiveUpload(request, route, target.search, { maxBytes: maxBodyBytes, grow });
        const input = await readSmallUpload(sent, route, Math.min(HEAVY_BYTES, maxInflatedBytes));
        if (input) return await run(route, asked, input);
        let isInLine = false;
        return await deadlines
          .within(
            route.deadlineSeconds,
            () => options.heavy.handle(`${route.method} ${route.path}`, { ...asked, sent }, progress),
            () => {
              progress.expired = true;
              isInLine = options.heavy.expire(asked.caller, progress);
            },
          )
          .catch((error) => {
            if (isInLine) tooBusy();
            throw error;
          });
      } finally {
        hold.release();
      }
    }
  }

  /** Fails when the body has waited for so many seconds in all. */
  function growWithin(hold: Hold, seconds: number): Hold["grow"] {
    let left = seconds;
    return (bytes) => {
      const room = hold.grow(bytes);
      if (!room) return undefined;
      const began = performance.now();
      return deadlines
        .within(left, () => room)
        .then(
          () => void (left -= (performance.now() - began) / 1_000),
          (error) => {
            if (error instanceof DeadlineError) tooBusy();
            throw error;
          },
        );
    };
  }

  async function requireLive(caller: Caller, progress: RequestProgress): Promise<void> {
    if (!(await deadlines.within(IDENTIFY_SECONDS, () => callers.isLive(caller)))) revoked();
    progress.provedLive = true;
  }

  /** Never throws: what nobody foresaw goes to the log and says nothing to the client. */
  function toProblem(error: unknown, requestId: string): Problem {
    if (error instanceof Problem) return error;
    if (error instanceof DeadlineError || isOutage(error)) {
      log.warn("The database did not answer in time", { requestId, error });
      return new Problem("INTERNAL_ERROR", "The database is not available, try again in a moment", {
        "Retry-After": "2",
      });
    }
    log.error("Request failed", { requestId, error });
    return new Problem("INTERNAL_ERROR", `Internal error: the log knows more about request ${requestId}`);
  }

  /** What the caller gets instead of an answer; never throws. */
  async function toRefusal(
    error: unknown,
    client: () => string,
    progress: RequestProgress,
    requestId: string,
  ): Promise<Reply> {
    let problem = toProblem(error, requestId);
    // An error is an answer too: a key that was revoked meanwhile gets none but 401.
    if (progress.caller && !progress.provedLive && problem.status < 500 && problem.code !== "UNAUTHORIZED")
      await requireLive(progress.caller, progress).catch((error) => (problem = toProblem(error, requestId)));
    if (problem.code === "UNAUTHORIZED" || !progress.admission) {
      progress.admission = rateLimit.admit(client());
      if (!progress.admission.admitted) problem = toRateLimited(progress.admission);
    }
    return new Reply(problem.status, JSON.stringify(problem.body), "application/json", problem.headers);
  }

  async function api(request: Request, target: Target, connection: Connection, requestId: string): Promise<Response> {
    const progress: RequestProgress = { caller: undefined, admission: undefined, provedLive: false, expired: false };
    let reply: Reply;
    try {
      reply = await answer(request, target, connection, progress);
    } catch (error) {
      const client = () =>
        clientAddress(connection.address(), request.headers.get("x-forwarded-for"), options.trustProxy);
      reply = await toRefusal(error, client, progress, requestId);
    }
    if (progress.caller && progress.provedLive) note(progress.caller);
    return toResponse(reply, requestId, request, progress.admission);
  }

  function note(caller: Caller): void {
    callers.used(caller)?.catch((error) => log.warn("Cannot note the use of a key", { error }));
  }

  async function site(request: Request, target: Target, connection: Connection): Promise<Reply> {
    try {
      requireHost(request, target);
      const reply = (await page(request, target.path)) ?? fail("NOT_FOUND", `No such page: the API is under ${API}`);
      requireAsSent(target, connection);
      return reply;
    } catch (error) {
      const { status, body } = toProblem(error, "");
      return json(status, body);
    }
  }

  async function page(request: Request, path: string): Promise<Reply | undefined> {
    if (request.method !== "GET" && request.method !== "HEAD") return undefined;
    if (path === "/healthz") return json(200, { status: "ok" });
    if (path === "/readyz")
      return (await options.isReady()) ? json(200, { status: "ready" }) : json(503, { status: "not ready" });
    if (path === "/openapi.json") return json(200, { ...openapi, servers: [{ url: `${options.publicUrl}${API}` }] });
    return undefined;
  }

  return {
    /** Answers every request; never throws. */
    async fetch(request: Request, connection: Connection): Promise<Response> {
      const sentId = request.headers.get("x-request-id");
      const requestId = sentId !== null && REQUEST_ID.test(sentId) ? sentId : Bun.randomUUIDv7();
      const target = toTarget(request.url);
      const started = performance.now();
      const isApi = target.path === API || target.path.startsWith(`${API}/`);
      const response = isApi
        ? await api(request, target, connection, requestId)
        : toResponse(await site(request, target, connection), requestId, request);
      // What only reads is not worth a line.
      if (request.method !== "GET" && request.method !== "HEAD")
        log.info("request", {
          requestId,
          method: request.method,
          path: target.path,
          status: response.status,
          ms: Math.round(performance.now() - started),
        });
      return response;
    },

    /** Gives back the memory of clients that are gone. */
    sweep: () => rateLimit.sweep(),
  };
}

export type App = ReturnType<typeof createApp>;

function toRateLimited({ limit, reset }: Admission): Problem {
  const seconds = Math.max(1, reset - Math.floor(Date.now() / 1000));
  return new Problem("RATE_LIMITED", `Rate limit exceeded: at most ${limit} requests per minute`, {
    "Retry-After": String(seconds),
  });
}

function tooBusy(): never {
  fail("INTERNAL_ERROR", "The server is busy with other uploads, try again in a moment", { "Retry-After": "10" });
}

/** Bun joins what was given twice, and makes the address of the first. */
function requireHost(request: Request, { badHost }: Target): void {
  if (badHost || request.headers.get("host")?.includes(","))
    fail("VALIDATION_ERROR", `Cannot read the header "Host": expected one host name`);
}

function requireAsSent({ path }: Target, { segments }: Connection): void {
  if (!isAsSent(path, segments()))
    fail(
      "NOT_FOUND",
      `Nothing has this path as it was sent: without dot segments and the like it is ${path.slice(0, 200)}`,
    );
}

function requireAdmission(admission: Admission): void {
  if (!admission.admitted) throw toRateLimited(admission);
}

function toResponse(reply: Reply, requestId: string, request: Request, admission?: Admission): Response {
  const headers: Record<string, string> = {
    "X-Request-Id": requestId,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    ...reply.headers,
  };
  if (admission) {
    headers["X-RateLimit-Limit"] = String(admission.limit);
    headers["X-RateLimit-Remaining"] = String(admission.remaining);
    headers["X-RateLimit-Reset"] = String(admission.reset);
  }
  if (reply.body === null) return new Response(null, { status: reply.status, headers });
  headers["Content-Type"] = reply.type!;
  headers["Vary"] = "Accept-Encoding";
  const compressed = compress(reply.body, request.headers.get("accept-encoding"));
  if (compressed) headers["Content-Encoding"] = compressed.encoding;
  const body = compressed?.bytes ?? reply.body;
  const isLarge = body.length > CORKED_LENGTH && request.method !== "HEAD";
  return new Response(isLarge ? inOneGo(body) : body, { status: reply.status, headers });
}

/** Answers up to this length, with their headers, fit into the 16 KiB that Bun collects before it writes. */
const CORKED_LENGTH = 12_000;

/**
 * A larger text or array makes Bun 1.4.5 write every part of every header with a system call of its own when the answer
 * was not ready at once, which costs eight times the CPU; a direct stream does not.
 */
const inOneGo = (body: string | Uint8Array) =>
  new ReadableStream({
    type: "direct",
    pull(controller: { write(chunk: string | Uint8Array): void; close(): void }) {
      controller.write(body);
      controller.close();
    },
  } as never);
