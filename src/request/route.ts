/** Declares an endpoint: its path, what it takes, what it answers, and the function between the two. */

import type { BlockList } from "node:net";
import * as v from "valibot";
import type { Caller } from "./callers.ts";
import {
  type BodyLimits,
  type Bytes,
  type Encoding,
  type Grow,
  inflate,
  inflateSmall,
  join,
  lengthOf,
  readBody,
  receiveBody,
} from "../http/body.ts";
import type { Cursors } from "../http/cursor.ts";
import { check, decodeText, parseJson, parseQuery } from "../http/input.ts";
import type { Outbound } from "../http/outbound.ts";
import { fail } from "../http/problem.ts";
import type { Method, PathParameters } from "../http/router.ts";
import { isForm, isPacked, parseUpload, type Upload } from "../http/upload.ts";
import type { Log } from "../log.ts";
import type { Seal } from "../secrets/seal.ts";
import { variableName } from "../schema/environments.ts";
import { slug, uuid } from "../schema/fields.ts";
import type { Page } from "../schema/page.ts";
import type { Database, Sql } from "../store/connect.ts";

/** An answer other than the plain value with the route's own status. */
export class Reply {
  readonly status: number;
  readonly body: string | null;
  readonly type: string | null;
  readonly headers: Record<string, string>;
  /** What a request that repeats this one is answered, where that is less: a secret is shown once and stored nowhere. */
  readonly repeatedBody: string | null;

  constructor(
    status: number,
    body: string | null,
    type: string | null,
    headers: Record<string, string> = {},
    repeatedBody = body,
  ) {
    this.status = status;
    this.body = body;
    this.type = type;
    this.headers = headers;
    this.repeatedBody = repeatedBody;
  }
}

export const json = (status: number, value: unknown) => new Reply(status, JSON.stringify(value), "application/json");
/** `repeated` is what a request with the same Idempotency-Key gets. */
export const jsonOnce = (status: number, value: unknown, repeated: unknown) =>
  new Reply(status, JSON.stringify(value), "application/json", {}, JSON.stringify(repeated));
export const jsonText = (status: number, text: string) => new Reply(status, text, "application/json");
export const plainText = (status: number, text: string) => new Reply(status, text, "text/plain; charset=utf-8");
export const noContent = () => new Reply(204, null, null);

/** What every handler may use besides its input. */
export type Services = {
  /** The ordinary pool. */
  sql: Sql;
  /** The pipelined connection for short indexed reads. */
  fast: Sql;
  /** A transaction that proves nothing of the caller: for what is done beside his request. */
  begin: Database["begin"];
  cursors: Cursors;
  /** For what goes wrong in ourselves where the answer is no error. */
  log: Log;
  /** Without a trailing slash. */
  publicUrl: string;
  maxInflatedBytes: number;
  /** How long results are kept where a project says nothing itself; 0: for ever. */
  retentionDays: number;
  seal: Seal;
  /** For requests to addresses that users have given. */
  outbound: Outbound;
  /** Private addresses that may be reached all the same. */
  outboundAllow: BlockList;
  /**
   * Resolves when an execution ends, on any server, or after so many milliseconds, at times earlier; to false when
   * nobody may wait any more.
   */
  executionEnd: (executionId: string, ms: number) => Promise<boolean>;
};

export type Context<Params = Record<string, string>, Query = unknown, Body = unknown> = Services & {
  params: Params;
  query: Query;
  body: Body;
  caller: Caller;
  /** Names the list that is asked for, with its path and filters: what a cursor is bound to. */
  list: string;
  /** The place of the last row of the page before. */
  after: string[] | undefined;
  wantsText: boolean;
  /**
   * One transaction in which the caller's key is proved live and stays so until the commit. It fails instead of
   * committing when the request's time is over.
   */
  transact: <T>(work: (sql: Sql) => Promise<T>) => Promise<T>;
  /** The same for the transaction whose value is the answer: with an Idempotency-Key it is stored in the same commit. */
  conclude: <T>(work: (sql: Sql) => Promise<T>) => Promise<T>;
  /** In a transaction: after its commit the request does what cannot be taken back, and is not to be run again. */
  actOnce: (sql: Sql) => Promise<void>;
  /** Says that the key was proved live by the statement that read the answer. */
  keyWasLive: () => void;
  /** Fails with UNAUTHORIZED: a statement has found the key revoked. */
  revoked: () => never;
};

type ObjectSchema = v.StrictObjectSchema<v.ObjectEntries, undefined>;
type QueryOf<Q> = Q extends v.GenericSchema ? v.InferOutput<Q> : Record<string, never>;
/** A body that is read by the handler itself. */
export type TextBody = { text: string; contentType: string };
type BodyOf<B> = B extends "upload"
  ? Upload
  : B extends "text"
    ? TextBody
    : B extends v.GenericSchema
      ? v.InferOutput<B>
      : undefined;

export type Specification<Q, B, A> = {
  /** One line for the documentation. */
  summary: string;
  query?: Q;
  /** A schema for a JSON body, "upload": raw bytes or multipart/form-data, or "text" of whatever kind. */
  body?: B;
  /** The body may hold secrets: no error quotes it. */
  isSecret?: boolean;
  /** What the answer holds; null: nothing. */
  answer: A;
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
  pathParameters: ObjectSchema;
  summary: string;
  query: ObjectSchema;
  body: v.GenericSchema | "upload" | "text" | undefined;
  isSecret: boolean;
  answer: v.GenericSchema | null;
  status: number;
  otherStatus: number | undefined;
  deadlineSeconds: number;
  handle: (context: Context<never, never, never>) => Promise<unknown>;
};

const noQuery = v.strictObject({});
/** What a request with nothing to say may have as its body: nothing, or {}. */
export const emptyBody = v.strictObject({});
const pathParameter = (name: string): v.GenericSchema =>
  name.endsWith("Id") ? uuid : name === "variableName" ? variableName : slug;

/** The pattern is relative to /api/v1 and begins with /projects/:projectId or /teams/:teamId. */
export function route<
  const Pattern extends `${Method} /${"projects/:projectId" | "teams/:teamId"}${string}`,
  Q extends ObjectSchema | undefined,
  B extends v.GenericSchema | "upload" | "text" | undefined,
  A extends v.GenericSchema | null,
>(
  pattern: Pattern,
  specification: Specification<Q, B, A>,
  handle: (
    context: Context<PathParameters<Pattern>, QueryOf<Q>, BodyOf<B>>,
  ) => Promise<(A extends v.GenericSchema ? v.InferInput<A> : never) | Reply>,
): Route {
  const [method, path] = pattern.split(" ") as [Method, string];
  const names = path.split("/").flatMap((segment) => (segment.startsWith(":") ? [segment.slice(1)] : []));
  const { summary, query, body, answer, status, otherStatus, deadlineSeconds, isSecret } = specification;
  return {
    method,
    path,
    access: path.startsWith("/projects/") ? "project" : "team",
    pathParameters: v.strictObject(Object.fromEntries(names.map((name) => [name, pathParameter(name)]))),
    summary,
    query: query ?? noQuery,
    body: body ?? (method === "POST" ? emptyBody : undefined),
    isSecret: isSecret ?? false,
    answer,
    status: status ?? (answer === null ? 204 : 200),
    otherStatus,
    deadlineSeconds: deadlineSeconds ?? 30,
    handle: handle as Route["handle"],
  };
}

type ListContext = Pick<Context<unknown, { limit: number }>, "cursors" | "list" | "query">;

/** `last` is the place of the page's last row in the order, when there are further rows. */
export const toPagination = (
  { cursors, list }: Omit<ListContext, "query">,
  last: readonly string[] | undefined,
): Page<never>["pagination"] =>
  last === undefined ? { hasMore: false } : { hasMore: true, cursor: cursors.write(list, last) };

/** The page of a list from `limit + 1` rows; `place` gives a row's place in the order, `answer` what is shown of it. */
export function toPage<Row, Answer = Row>(
  context: ListContext,
  rows: readonly Row[],
  place: (row: Row) => string[],
  answer: (row: Row) => Answer = (row) => row as unknown as Answer,
): Page<Answer> {
  const { limit } = context.query;
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? place(shown.at(-1)!) : undefined;
  return { data: shown.map(answer), pagination: toPagination(context, last) };
}

/** A JSON body is a handful of fields; only uploads may be large. */
const JSON_LIMITS: BodyLimits = { maxBytes: 1_048_576, maxInflatedBytes: 1_048_576 };
const TEXT_LIMITS: BodyLimits = { maxBytes: 8 * 1_048_576, maxInflatedBytes: 8 * 1_048_576 };

/** What curl says of any body, and what may well be JSON, is taken for it. */
const MAY_BE_JSON =
  /^(?:application\/(?:[\w.-]+\+)?json|application\/(?:x-www-form-urlencoded|octet-stream)|text\/plain)\s*(?:;|$)/i;

/** What is given more than once comes joined by a comma, which one type has only within quotes. */
const REPEATED = /^(?:[^",]|"(?:[^"\\]|\\.)*")*,/;

function requireOneType(contentType: string): void {
  if (REPEATED.test(contentType))
    fail("VALIDATION_ERROR", `Cannot read the header "Content-Type": given more than once`);
}

function requireJson(contentType: string): void {
  if (contentType !== "" && !MAY_BE_JSON.test(contentType))
    fail(
      "VALIDATION_ERROR",
      `Cannot read the body: expected application/json, got ${JSON.stringify(contentType.slice(0, 100))}`,
    );
}

export type Input = {
  query: unknown;
  body: unknown;
  /** Hexadecimal SHA-256 of the whole request, for telling whether two are the same. */
  digest: () => string;
};

const digestOf =
  ({ url }: { url: string }, route: Route, search: string, body: string) =>
  () =>
    Bun.SHA256.hash(JSON.stringify([route.method, new URL(url).pathname, search, body]), "hex");

/** For a route without a body: nothing to wait for. */
export const readQuery = (request: Request, route: Route, search: string): Input => ({
  query: check(route.query, parseQuery(search)),
  body: undefined,
  digest: digestOf(request, route, search, ""),
});

/** Reads and checks query and body as the route declares them; not for uploads. */
export async function readInput(request: Request, route: Route, search: string): Promise<Input> {
  const query = check(route.query, parseQuery(search));
  const contentType = request.headers.get("content-type") ?? "";
  requireOneType(contentType);
  const bytes = await readBody(request, route.body === "text" ? TEXT_LIMITS : JSON_LIMITS);
  const digest = digestOf(request, route, search, Bun.SHA256.hash(bytes, "hex"));
  if (route.body === "text")
    return { query, body: { text: decodeText(bytes), contentType } satisfies TextBody, digest };
  if (bytes.byteLength > 0) requireJson(contentType);
  const body = check(route.body as v.GenericSchema, parseJson(bytes, !route.isSecret), !route.isSecret);
  return { query, body, digest };
}

/** An upload as it was sent; plain data, so that it can be read in another thread. */
export type SentUpload = {
  url: string;
  search: string;
  /** Checked; undefined: the form may hold a part of it. */
  query: unknown;
  contentType: string;
  encoding: Encoding | null;
  blocks: Bytes[];
};

/** `grow` is asked before bytes are kept. Fails with VALIDATION_ERROR on a wrong query, or a body that does not arrive. */
export async function receiveUpload(
  request: Request,
  route: Route,
  search: string,
  { maxBytes, grow }: { maxBytes: number; grow: Grow },
): Promise<SentUpload> {
  const contentType = request.headers.get("content-type") ?? "";
  requireOneType(contentType);
  // A mistyped parameter should not cost the upload of the body.
  const given = parseQuery(search);
  const query = isForm(contentType) ? undefined : check(route.query, given);
  const body = await receiveBody(request, maxBytes, grow);
  return { url: request.url, search, query, contentType, ...body };
}

/** Form fields count as query parameters. Fails with VALIDATION_ERROR, also above `maxInflatedBytes`. */
export async function readUpload(sent: SentUpload, route: Route, maxInflatedBytes: number): Promise<Input> {
  const { blocks, encoding } = sent;
  const bytes = encoding ? await inflate(blocks, encoding, maxInflatedBytes) : join(blocks);
  sent.blocks = [];
  return await toInput(sent, route, bytes);
}

/**
 * The same for what holds other requests up only for a moment: undefined where the upload is larger than `maxBytes`, or
 * holds what is compressed and may become so.
 */
export async function readSmallUpload(sent: SentUpload, route: Route, maxBytes: number): Promise<Input | undefined> {
  const { blocks, encoding } = sent;
  if (lengthOf(blocks) > maxBytes) return undefined;
  const bytes = encoding ? await inflateSmall(blocks, encoding, maxBytes) : join(blocks);
  if (!bytes) return undefined;
  // Joining has emptied them.
  if (!encoding) sent.blocks = [bytes];
  const input = await toInput(sent, route, bytes);
  return (input.body as Upload).files.some(({ bytes }) => isPacked(bytes)) ? undefined : input;
}

async function toInput(sent: SentUpload, route: Route, bytes: Bytes): Promise<Input> {
  const { search, query, contentType } = sent;
  const upload = await parseUpload(bytes, contentType);
  const given = query === undefined ? parseQuery(search) : {};
  const twice = Object.keys(upload.fields).find((name) => name in given);
  if (twice !== undefined) fail("VALIDATION_ERROR", `Cannot read "${twice}": given in the query and in the form`);
  return {
    query: query ?? check(route.query, { ...given, ...upload.fields }),
    body: upload,
    digest: digestOf(sent, route, search, upload.digest),
  };
}
