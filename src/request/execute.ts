/** Runs the handler of a route for a request whose input has been checked, in whichever thread. */

import { type Caller, revoked } from "./callers.ts";
import type { RangeHeaders } from "../http/byte_range.ts";
import type { Cursors } from "../http/cursor.ts";
import { DeadlineError } from "../http/deadline.ts";
import { absent, fail } from "../http/problem.ts";
import { toCsvReply } from "./csv_reply.ts";
import { answerOnce, lost, type Once } from "./idempotency.ts";
import { json, Reply } from "./reply.ts";
import type { Context, FamilyContext, PageRequest, Route, Services, UploadContext } from "./route.ts";
import { noFacts, type UploadFacts } from "./upload_log.ts";
import type { AuditAction, NewAuditEntry } from "../schema/audit.ts";
import { Refusal } from "../schema/refusal.ts";
import { insertAuditEntryOfKey } from "../store/audit.ts";
import { type Database, retryConflicts, type Tx } from "../database/connect.ts";
import { lockLiveKey } from "../store/keys.ts";

/** A request after all checks; plain data, so that it can go to another thread. */
export type CheckedRequest = {
  caller: Caller;
  budget: FamilyContext["budget"];
  params: Record<string, string>;
  query: unknown;
  body: unknown;
  wantsText: boolean;
  /** Whether the page of a list is requested as comma-separated values. */
  wantsCsv?: boolean;
  /** The Range headers of a request for a file. */
  range?: RangeHeaders | undefined;
  /** The Last-Event-ID header: the last event of the stream that the client has received. */
  lastEventId?: string | null;
  idempotencyKey: string | null;
  /** The digest of the whole request; present only with an Idempotency-Key. */
  digest: string;
};

/** The progress of a request. */
export type Progress = {
  /** Whether a statement behind the answer has verified that the API key is live. */
  provedLive: boolean;
  /** Whether the client has received a timeout. */
  expired: boolean;
  /** Present only for an upload. */
  upload?: UploadFacts;
};

export type ExecuteOptions = Omit<Services, "begin" | "beginAhead" | "openReader"> &
  Pick<Context, "publicUrl"> &
  Pick<PageRequest, "cursors">;

/** A request that its handler processes. `once` is set if it has an Idempotency-Key. */
type Running = {
  route: Route;
  request: CheckedRequest;
  progress: Progress;
  once: Once | undefined;
};

const WHOLE_FILE: RangeHeaders = { range: null, ifRange: null };

export function createExecute(database: Database, { publicUrl, cursors, ...given }: ExecuteOptions) {
  const { begin, beginAhead, openReader } = database;
  const services: Services = { ...given, begin, beginAhead, openReader };

  /** Returns the context for the handler of an upload, whose answer is stored in the transaction of its report. */
  const toUploadContext = ({ progress, once }: Running): UploadContext => ({
    claim: once?.claim ?? null,
    progress,
    stored: ({ status, body, contentType }, taken) => {
      progress.provedLive = true;
      (progress.upload ??= noFacts()).taken = taken;
      once?.stored();
      return new Reply(status, body, contentType);
    },
  });

  function toContext(running: Running): Context & FamilyContext {
    const { route, request, progress, once } = running;
    const { caller, params, query, body, budget, wantsText, lastEventId = null } = request;
    return {
      sql: database.poolOf(caller.teamId, () => progress.expired),
      fast: database.fast,
      services,
      publicUrl,
      params,
      query,
      body,
      caller,
      wantsText,
      range: request.range ?? WHOLE_FILE,
      readWithKey: async (read) => {
        const found = (await read) ?? revoked();
        progress.provedLive = true;
        return found;
      },
      transact: (work, options) =>
        transact(database, caller, progress, async (sql) => {
          const value = await recorded(sql, running, work);
          if (options?.actsNext) await once?.act(sql);
          return value;
        }),
      conclude: (work) =>
        transact(database, caller, progress, async (sql) => {
          const value = await recorded(sql, running, work);
          await once?.answer(sql, toReply(route, value));
          return value;
        }),
      page: toPageRequest(cursors, route, request),
      upload: route.body === "upload" ? toUploadContext(running) : undefined,
      lastEventId,
      budget,
    };
  }

  return function handle(route: Route, request: CheckedRequest, progress: Progress): Promise<Reply> {
    const run = (once?: Once): Promise<Reply> => {
      const context = toContext({ route, request, progress, once });
      const reply = route.handle(context as never).then((value) => toReply(route, value), translate);
      return request.wantsCsv ? reply.then((one) => toCsvReply(route, one)) : reply;
    };
    const { caller, idempotencyKey, digest } = request;
    if (idempotencyKey === null) return run();
    const isOver = () => progress.expired;
    return answerOnce({ sql: database.pool, caller, key: idempotencyKey, digest, isOver }, run);
  };
}

/**
 * Runs a transaction in which the API key is locked as live until the commit. Retries it after a serialization failure or a deadlock, so
 * `work` must not keep state from an earlier attempt.
 */
async function transact<T>(
  { begin }: Database,
  caller: Caller,
  progress: Progress,
  work: (sql: Tx) => Promise<T>,
): Promise<T> {
  const result = await retryConflicts(
    () => progress.expired,
    () =>
      begin(async (sql) => {
        if (!(await lockLiveKey(sql, caller))) revoked();
        const value = await work(sql);
        requireTime(progress);
        return value;
      }, caller.teamId),
  );
  progress.provedLive = true;
  return result;
}

/** Returns the requested page; undefined if the route is not a list. Fails if the cursor belongs to another list. */
function toPageRequest(cursors: Cursors, { path }: Route, { params, query }: CheckedRequest): PageRequest | undefined {
  const { cursor, limit, ...filters } = query as { cursor?: string; limit?: number };
  if (limit === undefined) return undefined;
  const list = JSON.stringify([path, params, filters]);
  return { cursors, list, after: cursor === undefined ? undefined : cursors.read(list, cursor) };
}

/** Runs `work`, and writes an entry to the audit log if the route declares one. */
async function recorded<T>(sql: Tx, { route, request }: Running, work: (sql: Tx) => Promise<T>): Promise<T> {
  const value = await work(sql);
  // The handler returns false if there was nothing to change.
  if (route.record !== undefined && value !== false)
    await insertAuditEntryOfKey(sql, request.caller, toAuditEntry(route.record, request, value));
  return value;
}

const TOO_LATE = "The request timed out before it was finished";

/** Throws if the client has received an error, so that the request has no effect afterwards. */
function requireTime({ expired }: Progress): void {
  if (expired) throw new DeadlineError(TOO_LATE);
}

export type Execute = ReturnType<typeof createExecute>;

/** Returns the entry, with the names of the changed fields but not their values, which may be secret. */
function toAuditEntry(action: AuditAction, { params, body }: CheckedRequest, value: unknown): NewAuditEntry {
  const { teamId: _, variableName, ...ids } = params;
  const { projectId, ...others } = ids;
  const shown: unknown = value instanceof Reply ? JSON.parse(value.repeatedBody ?? "null") : value;
  const { id, slug, name, number } = (shown ?? {}) as Record<string, unknown>;
  const bug = action.startsWith("bug.") ? { bugReportId: id, ...ids } : {};
  // The answer to a merge is the bug that received the other.
  const bugName = "bugReportId" in bug && (bug.bugReportId === id ? `Bug ${number}` : `a bug into Bug ${number}`);
  const called = [bugName, variableName, slug, name, ...Object.values(others), id].find(
    (text) => typeof text === "string",
  );
  const fields = Object.entries(body ?? {}).flatMap(([name, given]) => (given === undefined ? [] : [name]));
  return { action, subject: (called as string | undefined) ?? "", details: { ...ids, ...bug, fields } };
}

/** Translates refusals of operations into HTTP errors. */
function translate(error: unknown): never {
  if (!(error instanceof Refusal)) throw error;
  if (error.kind === "absent") absent();
  if (error.kind === "revoked") revoked();
  if (error.kind === "expired") throw new DeadlineError(TOO_LATE);
  if (error.kind === "taken over") lost();
  fail("VALIDATION_ERROR", error.message);
}

const toReply = (route: Route, value: unknown): Reply => (value instanceof Reply ? value : json(route.status, value));
