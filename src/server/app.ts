/** The application: every endpoint, and the way of a request from its target to its answer. */

import type { BlockList } from "node:net";
import { automations } from "../api/automations.ts";
import { bugReports } from "../api/bug_reports.ts";
import { environments } from "../api/environments.ts";
import { events } from "../api/events.ts";
import { executions } from "../api/executions.ts";
import { keys } from "../api/keys.ts";
import { leases } from "../api/leases.ts";
import { runners } from "../api/runners.ts";
import { integrations } from "../api/integrations.ts";
import { onboardings } from "../api/onboarding.ts";
import { plans } from "../api/plans.ts";
import { projects } from "../api/projects.ts";
import { testCases } from "../api/test_cases.ts";
import { testRuns } from "../api/test_runs.ts";
import { state } from "../api/state.ts";
import { trends } from "../api/trends.ts";
import { uploads } from "../api/uploads.ts";
import { type Caller, createCallers, revoked } from "../request/callers.ts";
import { clientAddress, isTrusted } from "../http/address.ts";
import { createCursors } from "../http/cursor.ts";
import { createDeadlines } from "../http/deadline.ts";
import { parsePath } from "../http/input.ts";
import { absent, fail, Problem } from "../http/problem.ts";
import { type Admission, createRateLimit, type RateLimit } from "../http/rate_limit.ts";
import { createRouter } from "../http/router.ts";
import type { Connection } from "../http/serve.ts";
import { isAsSent, type RequestTarget, toRequestTarget } from "../http/target.ts";
import type { CountedUpload, Metrics } from "./metrics.ts";
import { createExecute, type ExecuteOptions, type Progress } from "../request/execute.ts";
import { toProblem, toRateLimited } from "../request/failure.ts";
import { createIntake, type IntakeOptions } from "../request/intake.ts";
import { Reply } from "../request/reply.ts";
import { toResponse } from "../request/response.ts";
import type { Route } from "../request/route.ts";
import type { PageServices, Visitors } from "../web/page.ts";
import { createUploadNotes, noFacts, type TakenUpload } from "../request/upload_notes.ts";
import { createProbes } from "../web/probes.ts";
import { createSite } from "../web/site.ts";
import { maskKeys } from "../secrets/keys.ts";
import { maskTokens } from "../secrets/tokens.ts";
import type { Database } from "../database/connect.ts";
import { selectAllExist } from "../store/existence.ts";

/** Every endpoint under /api/v1, a family a line. */
export const ROUTES: readonly Route[] = [
  ...projects,
  ...keys,
  ...testRuns,
  ...uploads,
  ...executions,
  ...leases,
  ...runners,
  ...plans,
  ...events,
  ...testCases,
  ...trends,
  ...state,
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
/** A key that was sent as an id by mistake would be echoed, logged and stored with uploads. */
const LIKE_A_KEY = /svc_/i;

export type AppOptions = Omit<ExecuteOptions, "cursors"> &
  Omit<IntakeOptions, "handle" | "deadlines" | "pool"> & {
    database: Database;
    cursorSecret: Uint8Array;
    rateLimitPerMinute: number;
    /** Undefined: one of its own, which no other process knows of. */
    rateLimit?: RateLimit | undefined;
    trustProxy: BlockList;
    /** Whether requests should come here: reads and writes get through, and the server is not draining. */
    isReady: () => Promise<boolean>;
    /** Who is signed in to the dashboard. */
    visitors: Visitors;
    sessions: PageServices["sessions"];
    signIn: PageServices["signIn"];
    /** The moment that pages speak from. */
    clock?: () => Date;
    metrics: Metrics;
    /** Undefined: whoever asks gets the figures. */
    metricsToken: string | undefined;
  };

/** How far a request has come, and what it has shown of itself. */
type RequestProgress = Progress & {
  caller: Caller | undefined;
  admission: Admission | undefined;
  route: Route | undefined;
};

/** A request as it comes in; `started` is of `performance.now()`. */
type Arrival = {
  request: Request;
  target: RequestTarget;
  connection: Connection;
  requestId: string;
  started: number;
};

/** What is counted of a request for which there is no route: paths that anybody may think up. */
const UNKNOWN = "unknown";

export function createApp(options: AppOptions) {
  const { database, log, metrics } = options;
  const find = createRouter(ROUTES);
  const labels = new Map(ROUTES.map((route) => [route, `${API}${route.path}`]));
  const callers = createCallers(database.keys);
  const rateLimit = options.rateLimit ?? createRateLimit(options.rateLimitPerMinute);
  const deadlines = createDeadlines();
  const handle = createExecute(database, toExecuteOptions(options));
  const take = createIntake({ ...options, handle, deadlines, pool: database.pool });
  const { pool: sql, pages: fast, begin } = database;
  const findProbe = createProbes({ ...options, api: API, exposition: metrics.exposition });
  const findPage = createSite({ ...options, sql, fast, begin, api: API });
  const notes = createUploadNotes({ pool: database.pool, log, onDropped: metrics.notesDropped });

  /** Key, rate, route, path parameters, access, query and body, handler: the order is part of the contract. */
  async function answer(
    request: Request,
    target: RequestTarget,
    connection: Connection,
    progress: RequestProgress,
  ): Promise<Reply> {
    requireHost(request, target);
    const path = target.path.slice(API.length);
    const key = callers.readKey(request.headers.get("authorization"));
    const caller = callers.recall(key) ?? (await deadlines.within(IDENTIFY_SECONDS, () => callers.lookUp(key)));
    requireKind(caller, path);
    progress.caller = caller;
    progress.admission = rateLimit.admit(caller.id);
    if (!progress.admission.admitted) throw toRateLimited(progress.admission);

    const found = find(request.method, path) ?? fail("NOT_FOUND", `No such endpoint: ${target.path.slice(0, 200)}`);
    requireAsSent(target, connection);
    if ("allow" in found)
      fail("NOT_FOUND", `No ${request.method} here: this endpoint knows ${found.allow}`, { Allow: found.allow });
    const { route, segments } = found;
    progress.route = route;
    const params = parsePath(route.pathParameters, segments) as Record<string, string>;
    const isOwn =
      route.access === "project" ? params["projectId"] === caller.projectId : params["teamId"] === caller.teamId;
    if (!isOwn) absent();
    requireScope(caller, route);

    if (route.deadlineSeconds > 30) connection.allowSeconds(route.deadlineSeconds + 30);
    const { limit, remaining } = progress.admission;
    const asked = {
      caller,
      budget: { limit, remaining },
      params,
      wantsText: /^text\/plain\b/i.test(request.headers.get("accept") ?? ""),
      lastEventId: request.headers.get("last-event-id"),
      idempotencyKey: request.method === "POST" ? request.headers.get("idempotency-key") : null,
    };
    let reply: Reply;
    try {
      reply = await take(route, { request, search: target.search }, asked, progress);
    } catch (error) {
      // That it is not there comes before what is wrong with the rest, and costs a look only when something is.
      const isMistake = error instanceof Problem && error.code === "VALIDATION_ERROR";
      if (isMistake && !(await selectAllExist(database.fast, params))) absent();
      throw error;
    }
    if (!progress.provedLive) await requireLive(caller, progress);
    return reply;
  }

  async function requireLive(caller: Caller, progress: RequestProgress): Promise<void> {
    if (!(await deadlines.within(IDENTIFY_SECONDS, () => callers.isLive(caller)))) revoked();
    progress.provedLive = true;
  }

  /** What the caller gets instead of an answer; never throws. */
  async function refuse(
    error: unknown,
    client: () => string,
    progress: RequestProgress,
    requestId: string,
  ): Promise<Problem> {
    let problem = toProblem(error, log, requestId);
    // An error is an answer too: a key that was revoked meanwhile gets none but 401.
    if (progress.caller && !progress.provedLive && problem.status < 500 && problem.code !== "UNAUTHORIZED")
      await requireLive(progress.caller, progress).catch((error) => (problem = toProblem(error, log, requestId)));
    if (problem.code === "UNAUTHORIZED" || !progress.admission) {
      progress.admission = rateLimit.admit(client());
      if (!progress.admission.admitted) problem = toRateLimited(progress.admission);
    }
    return problem;
  }

  /** Counts an upload, and notes one that was refused or is odd. */
  function noteUpload(
    { request, search }: { request: Request; search: string },
    about: { requestId: string; clientAddress: string },
    { caller, upload: facts = noFacts() }: RequestProgress,
    { status }: Reply,
    problem: Problem | undefined,
  ): void {
    const { taken, arrivedAt, bytes } = facts;
    const outcome = outcomeOf(problem, taken);
    metrics.upload({
      outcome,
      format: taken?.format,
      cases: taken?.cases ?? 0,
      bytes,
      seconds: arrivedAt === undefined ? undefined : (performance.now() - arrivedAt) / 1_000,
    });
    if (caller && (outcome === "refused" || outcome === "warned"))
      notes.note({ caller, facts, request, search, ...about, status, message: problem?.message });
  }

  async function api(arrival: Arrival): Promise<Response> {
    const { request, target, connection, requestId } = arrival;
    const progress: RequestProgress = {
      caller: undefined,
      admission: undefined,
      route: undefined,
      provedLive: false,
      expired: false,
    };
    const readClient = () => addressOf(request, connection);
    // What breaks off has no connection any more when it is told whose it was.
    const sender = request.method === "POST" ? readClient() : undefined;
    const client = () => sender ?? readClient();
    let reply: Reply;
    let problem: Problem | undefined;
    try {
      reply = await answer(request, target, connection, progress);
    } catch (error) {
      problem = await refuse(error, client, progress, requestId);
      reply = toReply(problem);
      progress.route ??= routeOf(request.method, target.path.slice(API.length));
    }
    const { route } = progress;
    if (route?.body === "upload")
      noteUpload({ request, search: target.search }, { requestId, clientAddress: client() }, progress, reply, problem);
    if (progress.caller && progress.provedLive)
      callers.used(progress.caller)?.catch((error) => log.warn("Cannot note the use of a key", { error }));
    const response = toResponse(reply, requestId, request, progress.admission, () => connection.allowSeconds(1));
    tell(arrival, response.status, (route && labels.get(route)) ?? UNKNOWN);
    return response;
  }

  let hasWarnedOfProxy = false;

  function addressOf({ headers }: Request, connection: Connection): string {
    const peer = connection.address();
    const forwardedFor = headers.get("x-forwarded-for");
    const isForwarded = forwardedFor !== null || headers.has("forwarded");
    if (isForwarded && !hasWarnedOfProxy && !isTrusted(peer, options.trustProxy)) {
      hasWarnedOfProxy = true;
      log.warn(
        "A request was forwarded by an address that TRUST_PROXY does not name: if it is your proxy, add it, because all " +
          "clients behind it count as one for rate limits and log-ins",
        { peer },
      );
    }
    return clientAddress(peer, forwardedFor, options.trustProxy);
  }

  /** For a request that was refused before it came to its route. */
  function routeOf(method: string, path: string): Route | undefined {
    const found = find(method, path);
    return found && "route" in found ? found.route : undefined;
  }

  async function site(arrival: Arrival): Promise<Response> {
    const { request, target, connection, requestId } = arrival;
    let reply: Reply;
    let route = UNKNOWN;
    try {
      requireHost(request, target);
      // Of the root there is one spelling that matters.
      if (target.path !== "/") requireAsSent(target, connection);
      const address = () => addressOf(request, connection);
      const page = findProbe(request, target.path) ?? findPage({ request, target, address }, requestId);
      route = page.route;
      reply = await page.answer();
    } catch (error) {
      reply = toReply(toProblem(error, log, requestId));
    }
    const response = toResponse(reply, requestId, request);
    tell(arrival, response.status, route);
    return response;
  }

  /** Counts a request that has been answered, and logs it. */
  function tell({ request, target, requestId, started }: Arrival, status: number, route: string): void {
    const { method } = request;
    const ms = performance.now() - started;
    metrics.request(route, method, status, ms / 1_000);
    // What only reads is not worth a line.
    if (method !== "GET" && method !== "HEAD")
      log.info("request", { requestId, method, path: loggedPath(target.path), status, ms: Math.round(ms) });
  }

  return {
    /** Answers every request; never throws. */
    fetch(request: Request, connection: Connection): Promise<Response> {
      const sentId = request.headers.get("x-request-id");
      const isKept = sentId !== null && REQUEST_ID.test(sentId) && !LIKE_A_KEY.test(sentId);
      const requestId = isKept ? sentId : Bun.randomUUIDv7();
      const target = toRequestTarget(request.url);
      const started = performance.now();
      const isApi = target.path === API || target.path.startsWith(`${API}/`);
      return (isApi ? api : site)({ request, target, connection, requestId, started });
    },

    /** To be called every minute: gives back the memory of clients that are gone, and notes how often some were refused. */
    sweep(): void {
      rateLimit.sweep();
      notes.sweep();
    },

    /** Resolves when nothing is left to be noted beside the requests. */
    settled: notes.settled,
  };
}

/** Exactly what handlers may use: the options hold more. */
function toExecuteOptions({ cursorSecret, ...options }: AppOptions): ExecuteOptions {
  const { publicUrl, maxInflatedBytes, retentionDays, seal, outbound, outboundAllow, signals, log } = options;
  const { live, eventStreams } = options;
  const cursors = createCursors(cursorSecret);
  const watching = { signals, live, eventStreams };
  return { publicUrl, maxInflatedBytes, retentionDays, seal, outbound, outboundAllow, log, cursors, ...watching };
}

/** Whose an upload is nobody knows where the key is wrong. */
function outcomeOf(problem: Problem | undefined, taken: TakenUpload | undefined): CountedUpload["outcome"] {
  if (problem) return problem.code === "UNAUTHORIZED" ? "unauthorized" : "refused";
  if (!taken?.added) return "repeated";
  return taken.warnings.length > 0 ? "warned" : "accepted";
}

/** Without keys and tokens, however they are written. */
function loggedPath(path: string): string {
  let decoded = path;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    // It is logged as it was sent.
  }
  const shown = LIKE_A_KEY.test(decoded) ? maskKeys(decoded) : path;
  return shown.startsWith(`${API}/`) ? shown : maskTokens(shown);
}

const toReply = ({ status, body, headers }: Problem) =>
  new Reply(status, JSON.stringify(body), "application/json", headers);

const OF_PROJECTS = /^\/projects(?:\/|$)/;
const OF_TEAMS = /^\/teams(?:\/|$)/;

function requireKind({ kind }: Caller, path: string): void {
  const asked = OF_PROJECTS.test(path) ? "project" : OF_TEAMS.test(path) ? "team" : kind;
  if (asked !== kind)
    fail("UNAUTHORIZED", `A ${kind} key cannot call ${asked} endpoints`, { "WWW-Authenticate": "Bearer" });
}

function requireScope({ scope }: Caller, { scopes }: Route): void {
  if (scope === null || scopes.has(scope)) return;
  const wanted = [...scopes].filter((one) => one !== "runner").map((one) => `one of scope "${one}"`);
  const keys = ["the project's own key", ...wanted].join(", or ");
  fail("UNAUTHORIZED", `A key of scope "${scope}" cannot call this: use ${keys}`, { "WWW-Authenticate": "Bearer" });
}

/** Bun joins what was given twice, and makes the address of the first. */
function requireHost(request: Request, { badHost }: RequestTarget): void {
  if (badHost || request.headers.get("host")?.includes(","))
    fail("VALIDATION_ERROR", `Cannot read the header "Host": expected one host name`);
}

function requireAsSent({ path }: RequestTarget, connection: Connection): void {
  if (!isAsSent(path, connection.segments()))
    fail(
      "NOT_FOUND",
      `Nothing has this path as it was sent: without dot segments and the like it is ${path.slice(0, 200)}`,
    );
}
