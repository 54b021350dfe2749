/** Runs the handler of a route for a request whose input has been checked, in whichever thread. */

import { type Caller, revoked } from "./callers.ts";
import { DeadlineError } from "../http/deadline.ts";
import { absent, fail } from "../http/problem.ts";
import { answerOnce, type Once } from "./idempotency.ts";
import { json, Reply } from "./reply.ts";
import type { Context, Route, Services } from "./route.ts";
import { createTogether } from "./together.ts";
import { noFacts, type UploadFacts } from "./upload_notes.ts";
import type { AuditAction, NewAuditEntry } from "../schema/audit.ts";
import { Refusal } from "../schema/refusal.ts";
import { insertAuditEntryOfKey } from "../store/audit.ts";
import { type Database, isConflict, type Tx } from "../database/connect.ts";
import { lockLiveKey } from "../store/keys.ts";
import type { Turn } from "../database/locks.ts";

/** A request after all checks; plain data, so that it can go to another thread. */
export type CheckedRequest = {
  caller: Caller;
  budget: Context["budget"];
  params: Record<string, string>;
  query: unknown;
  body: unknown;
  wantsText: boolean;
  /** How far a client has come in a stream of events, as it says. */
  lastEventId?: string | null;
  idempotencyKey: string | null;
  /** Of the whole request; only there with an Idempotency-Key. */
  digest: string;
};

/** How far a request has come, beside its answer. */
export type Progress = {
  /** Whether the answer rests on a statement that found the key live. */
  provedLive: boolean;
  /** Whoever asked has been told that it took too long. */
  expired: boolean;
  /** Of an upload only. */
  upload?: UploadFacts;
};

export type ExecuteOptions = Omit<Services, "begin"> & Pick<Context, "publicUrl" | "cursors">;

/** A shared commit is on its way before the write has been answered: the time must not be over until then. */
const MAX_AGE_MS = 20_000;
/** How often a transaction is run that loses each time to another one, in all. */
const MAX_TRIES = 4;

export function createExecute(database: Database, { publicUrl, cursors, ...given }: ExecuteOptions) {
  const services: Services = { ...given, begin: database.begin };
  const join = createTogether(database);

  /** Repeats a transaction that PostgreSQL has undone for another one, so `work` keeps nothing of a run before. */
  async function transact<T>(
    caller: Caller,
    progress: Progress,
    work: (sql: Tx) => Promise<T>,
    turns: readonly Turn[] = [],
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        const result = await database.begin(async (sql) => {
          if (!(await lockLiveKey(sql, caller, turns))) revoked();
          const value = await work(sql);
          requireTime(progress);
          return value;
        });
        progress.provedLive = true;
        return result;
      } catch (error) {
        if (!isConflict(error) || tries === MAX_TRIES || progress.expired) throw error;
      }
    }
  }

  return function handle(route: Route, request: CheckedRequest, progress: Progress): Promise<Reply> {
    const { caller, budget, params, query, body, wantsText, lastEventId = null, idempotencyKey, digest } = request;
    const { cursor, limit, ...filters } = query as { cursor?: string; limit?: number };
    const began = performance.now();
    const list = limit === undefined ? "" : JSON.stringify([route.path, params, filters]);
    const recorded = <T>(work: (sql: Tx) => Promise<T>) =>
      route.record === undefined
        ? work
        : async (sql: Tx): Promise<T> => {
            const value = await work(sql);
            // What was not there was not changed.
            if (value !== false) await insertAuditEntryOfKey(sql, caller, toAuditEntry(route.record!, request, value));
            return value;
          };
    const run = (once?: Once): Promise<Reply> => {
      const context: Context = {
        sql: database.pool,
        fast: database.fast,
        services,
        publicUrl,
        cursors,
        params,
        query,
        body,
        caller,
        budget,
        list,
        after: cursor === undefined ? undefined : cursors.read(list, cursor),
        wantsText,
        lastEventId,
        transact: (work) => transact(caller, progress, recorded(work)),
        conclude: (work, turns) =>
          transact(
            caller,
            progress,
            async (sql) => {
              const value = await recorded(work)(sql);
              await once?.answer(sql, toReply(route, value));
              return value;
            },
            turns,
          ),
        concludeTogether: async (work, input, turns, answer) => {
          if (performance.now() - began > MAX_AGE_MS) return undefined;
          let value: ReturnType<typeof answer> | undefined;
          const settle = (sql: Tx, output: Parameters<typeof answer>[0]) => {
            value = answer(output);
            requireTime(progress);
            return once?.answer(sql, toReply(route, value));
          };
          if (!(await join(work, params["projectId"]!, { key: caller, turns, input, settle }))) return undefined;
          progress.provedLive = true;
          return value;
        },
        actOnce: async (sql) => await once?.act(sql),
        tookUpload: (taken) => void ((progress.upload ??= noFacts()).taken = taken),
        keyWasLive: () => void (progress.provedLive = true),
        revoked,
      };
      return route.handle(context as never).then((value) => toReply(route, value), translate);
    };
    if (idempotencyKey === null) return run();
    const isOver = () => progress.expired;
    return answerOnce({ sql: database.pool, caller, key: idempotencyKey, digest, isOver }, run);
  };
}

/** Whoever asked has been told that it failed, so it must not happen after all. */
function requireTime({ expired }: Progress): void {
  if (expired) throw new DeadlineError("The request's time was over before it was done");
}

export type Execute = ReturnType<typeof createExecute>;

/** Names of fields, and never what they hold: that may be secret. */
function toAuditEntry(action: AuditAction, { params, body }: CheckedRequest, value: unknown): NewAuditEntry {
  const { teamId: _, projectId: __, variableName, ...ids } = params;
  const shown: unknown = value instanceof Reply ? JSON.parse(value.repeatedBody ?? "null") : value;
  const { id, slug, name } = (shown ?? {}) as Record<string, unknown>;
  const called = [variableName, slug, name, ...Object.values(ids), id].find((text) => typeof text === "string");
  const fields = Object.entries(body ?? {}).flatMap(([name, given]) => (given === undefined ? [] : [name]));
  return { action, subject: (called as string | undefined) ?? "", details: { ...ids, fields } };
}

/** What the product refuses becomes HTTP's. */
function translate(error: unknown): never {
  if (!(error instanceof Refusal)) throw error;
  if (error.kind === "absent") absent();
  fail("VALIDATION_ERROR", error.message);
}

const toReply = (route: Route, value: unknown): Reply => (value instanceof Reply ? value : json(route.status, value));
