/** Declares an endpoint: its path, what it takes, what it answers, and the function between the two. */

import type { BlockList } from "node:net";
import * as v from "valibot";
import type { Caller } from "./callers.ts";
import type { RangeHeaders } from "../http/byte_range.ts";
import type { Cursors } from "../http/cursor.ts";
import type { EventStreams } from "../http/events.ts";
import type { Outbound } from "../http/outbound.ts";
import type { Method, PathParameters } from "../http/router.ts";
import type { AttachmentServices } from "../attachments/store.ts";
import type { ReceivedAttachments, ReceivedBody, ReceivedUpload } from "./attachment_parts.ts";
import type { Log } from "../log.ts";
import type { Seal } from "../secrets/seal.ts";
import type { AuditAction } from "../schema/audit.ts";
import { variableName } from "../schema/environments.ts";
import { slug, uuid } from "../schema/fields.ts";
import type { NamedScope, Scope } from "../schema/keys.ts";
import type { Live } from "../schema/live.ts";
import type { Database, Sql, Tx } from "../database/connect.ts";
import type { Signals } from "../database/signals.ts";
import type { Reply } from "./reply.ts";
import type { RequestClaim, StoredAnswer } from "../store/idempotency.ts";
import type { TakenUpload } from "./upload_log.ts";

/** Services that some handlers use. */
export type Services = {
  /** A transaction that proves nothing of the caller: for what is done beside his request. */
  begin: Database["begin"];
  /** The same, for statements that are sent together with its beginning. */
  beginAhead: Database["beginAhead"];
  openReader: Database["openReader"];
  /** For what goes wrong in ourselves where the answer is no error. */
  log: Log;
  maxInflatedBytes: number;
  attachments: AttachmentServices;
  /** How long results are kept where a project says nothing itself; 0: for ever. */
  retentionDays: number;
  seal: Seal;
  /** For requests to addresses that users have given. */
  outbound: Outbound;
  /** Private addresses that may be reached all the same. */
  outboundAllow: BlockList;
  /** For those who wait until something happens. */
  signals: Pick<Signals, "watch" | "tell">;
  /** Live events for clients that watch. */
  live: Live;
  eventStreams: Pick<EventStreams, "refusal" | "open">;
};

/** The context of every handler. `ContextOf` has the parts that only one family of routes needs. */
export type Context<Params = Record<string, string>, Query = unknown, Body = unknown> = {
  /** The ordinary pool. */
  sql: Sql;
  /** The pipelined connection for short indexed reads. */
  fast: Sql;
  params: Params;
  query: Query;
  body: Body;
  caller: Caller;
  services: Services;
  /** Without a trailing slash. */
  publicUrl: string;
  wantsText: boolean;
  /** The part of the file that is asked for, where the answer is a file. */
  range: RangeHeaders;
  /**
   * Awaits a read whose statement also checks the caller's key, and answers undefined where the key is revoked: that fails
   * with UNAUTHORIZED. Otherwise the key is not checked again for this request.
   */
  readWithKey: <T>(read: Promise<T | undefined>) => Promise<T>;
  /**
   * One transaction in which the caller's key is proved live and stays so until the commit. It fails instead of
   * committing when the request's time is over. `actsNext`: after its commit the request does what cannot be undone, so
   * a repetition with the same Idempotency-Key must not run it again.
   */
  transact: <T>(work: (sql: Tx) => Promise<T>, options?: { actsNext: boolean }) => Promise<T>;
  /**
   * The same for the transaction whose value is the answer: with an Idempotency-Key it is stored in the same commit.
   */
  conclude: <T>(work: (sql: Tx) => Promise<T>) => Promise<T>;
};

/** The page that the request to a list asks for. */
export type PageRequest = {
  cursors: Cursors;
  /** Names the list with its path and filters: a cursor is bound to it. */
  list: string;
  /** The sort key of the last row of the page before. */
  after: string[] | undefined;
};

/** Additional context of the handler of an upload. */
export type UploadContext = {
  /** The claim of its Idempotency-Key. */
  claim: RequestClaim | null;
  /** As soon as the time of the request is over, nothing may be stored. */
  progress: { readonly expired: boolean };
  /** The reply of an upload whose answer was stored, with what is counted and logged of it. */
  stored: (answer: StoredAnswer, taken: TakenUpload) => Reply;
};

/** The parts of a context that only one family of routes needs; undefined where the route is of another family. */
export type FamilyContext = {
  page: PageRequest | undefined;
  upload: UploadContext | undefined;
  /** How far the client has come in the stream, as it says. */
  lastEventId: string | null;
  /** The remaining requests of the key, which limit how often a runner may call. */
  budget: { limit: number; remaining: number };
};

/** The context of a handler by the specification of its route: query Q, body B, stream S, and R, whether runners call it. */
type ContextOf<Pattern extends string, Q, B, S, R> = Context<PathParameters<Pattern>, QueryOf<Q>, BodyOf<B>> &
  ([QueryOf<Q>] extends [{ limit: number }] ? { page: PageRequest } : unknown) &
  ([B] extends ["upload"] ? { upload: UploadContext } : unknown) &
  ([S] extends [string] ? Pick<FamilyContext, "lastEventId"> : unknown) &
  ([R] extends [true] ? Pick<FamilyContext, "budget"> : unknown);

type ObjectSchema = v.StrictObjectSchema<v.ObjectEntries, undefined>;
type QueryOf<Q> = Q extends v.GenericSchema ? v.InferOutput<Q> : Record<string, never>;
/** A body that is read by the handler itself. */
export type TextBody = { text: string; contentType: string };
type BodyOf<B> = B extends "upload"
  ? ReceivedUpload
  : B extends "file"
    ? ReceivedBody
    : B extends "files"
      ? ReceivedAttachments
      : B extends "text"
        ? TextBody
        : B extends v.GenericSchema
          ? v.InferOutput<B>
          : undefined;

export type Specification<Q, B, A, S, R> = {
  /** One line for the documentation. */
  summary: string;
  /** Sentences for callers: what the route does, when it refuses, what follows. */
  description?: string;
  /** A request for the documentation: what of the query and which body make a good first try. */
  example?: { query?: Record<string, string>; body?: unknown };
  /** Describes the answer to `Accept: text/plain`, if the route supports it. */
  text?: string;
  query?: Q;
  /** A schema for a JSON body, "upload": raw bytes or multipart/form-data, "file": one file, or "files": a form of files, which are written to disk while they arrive, or "text" of whatever kind. */
  body?: B;
  /** The body may hold secrets: no error quotes it. */
  isSecret?: boolean;
  /**
   * The scope that a named key of the project needs, besides those that include it; default: "read" for a GET, and for anything else
   * only the project's own key will do.
   */
  scope?: Exclude<RouteScope, "read">;
  /** A runner calls it with the key of its own. */
  isForRunners?: R;
  /** The action in the team's audit log, recorded in the transaction of the change. */
  record?: AuditAction;
  /** The schema of the answer; null: no content, or an event stream. */
  answer: A;
  /** The answer is a stream of events; what they are, for the documentation. */
  stream?: S;
  /** The answer is the content of a file; what it is, for the documentation. */
  file?: string;
  /** The answer is a stream of lines of JSON; what they are, for the documentation. */
  lines?: string;
  /** Default 200; 204 when there is no answer. */
  status?: number;
  /** Another status with the same answer. */
  otherStatus?: number;
  /** Seconds that the handler may take, the body's upload not counted. Default 30. */
  deadlineSeconds?: number;
};

export type Route = {
  method: Method;
  path: string;
  /** Which kind of key opens it. */
  access: "project" | "team";
  /** The scopes of named keys that may call it. */
  scopes: ReadonlySet<Scope>;
  pathParameters: ObjectSchema;
  summary: string;
  description: string | undefined;
  example: { query?: Record<string, string>; body?: unknown };
  text: string | undefined;
  query: ObjectSchema;
  body: v.GenericSchema | "upload" | "file" | "files" | "text" | undefined;
  isSecret: boolean;
  record: AuditAction | undefined;
  answer: v.GenericSchema | null;
  stream: string | undefined;
  file: string | undefined;
  lines: string | undefined;
  status: number;
  otherStatus: number | undefined;
  deadlineSeconds: number;
  handle: (context: Context<never, never, never>) => Promise<unknown>;
};

/** The scope that a route asks for. `rerun` is no scope of its own: keys that run tasks and keys that triage failures have it. */
type RouteScope = NamedScope | "rerun";

/** Which keys have what a route asks for. */
const SCOPES = {
  read: ["read", "upload", "run", "triage"],
  upload: ["upload", "run"],
  run: ["run"],
  triage: ["triage"],
  rerun: ["run", "triage"],
} as const satisfies Record<RouteScope, readonly NamedScope[]>;

/** Named keys that open every GET. */
export const READ_SCOPES: ReadonlySet<Scope> = new Set(SCOPES.read);

const noQuery = v.strictObject({});
/** The body of a request without fields: empty, or {}. */
export const emptyBody = v.strictObject({});
const pathParameter = (name: string): v.GenericSchema =>
  name.endsWith("Id") ? uuid : name === "variableName" ? variableName : slug;

/** The pattern is relative to /api/v1 and begins with /projects/:projectId or /teams/:teamId. */
export function route<
  const Pattern extends `${Method} /${"projects/:projectId" | "teams/:teamId"}${string}`,
  Q extends ObjectSchema | undefined,
  B extends v.GenericSchema | "upload" | "file" | "files" | "text" | undefined,
  A extends v.GenericSchema | null,
  S extends string | undefined = undefined,
  R extends boolean = false,
>(
  pattern: Pattern,
  specification: Specification<Q, B, A, S, R>,
  handle: (
    context: ContextOf<Pattern, Q, B, S, R>,
  ) => Promise<(A extends v.GenericSchema ? v.InferInput<A> : never) | Reply>,
): Route {
  const [method, path] = pattern.split(" ") as [Method, string];
  const names = path.split("/").flatMap((segment) => (segment.startsWith(":") ? [segment.slice(1)] : []));
  const { summary, description, example, text, query, body, answer, stream, file, lines } = specification;
  const { status, otherStatus, deadlineSeconds, isSecret, record } = specification;
  const scope = specification.scope ?? (method === "GET" ? "read" : undefined);
  return {
    method,
    path,
    access: path.startsWith("/projects/") ? "project" : "team",
    scopes: new Set<Scope>([
      ...(scope === undefined ? [] : SCOPES[scope]),
      ...(specification.isForRunners ? (["runner"] as const) : []),
    ]),
    pathParameters: v.strictObject(Object.fromEntries(names.map((name) => [name, pathParameter(name)]))),
    summary,
    description,
    example: example ?? {},
    text,
    query: query ?? noQuery,
    body: body ?? (method === "POST" ? emptyBody : undefined),
    isSecret: isSecret ?? false,
    record,
    answer,
    stream,
    file,
    lines,
    status: status ?? (answer === null && [stream, file, lines].every((one) => one === undefined) ? 204 : 200),
    otherStatus,
    deadlineSeconds: deadlineSeconds ?? 30,
    handle: handle as Route["handle"],
  };
}
