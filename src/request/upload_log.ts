/** Notes of uploads that were refused, or accepted with warnings: written beside the requests, and never in their way. */

import type { Caller } from "./callers.ts";
import type { Log } from "../log.ts";
import { maskKeys } from "../secrets/keys.ts";
import { toStorable } from "../schema/fields.ts";
import { type GivenParameters, TOLD_PARAMETERS } from "../schema/uploads.ts";
import type { Sql } from "../database/connect.ts";
import { addRepetitions, insertUploads, type NewUpload, type Repetition } from "../store/uploads.ts";

/** What came of a report that was taken in. */
export type TakenUpload = {
  executionId: string;
  taskSlug: string;
  format: string;
  /** In the report. */
  cases: number;
  /** Of this report alone. */
  warnings: readonly string[];
  /** False: these very bytes were there before. */
  added: boolean;
};

/** What is known of an upload beside its answer; plain data, so that it can come from another thread. */
export type UploadFacts = {
  /** As sent, so far. */
  bytes: number;
  /** Of `performance.now()`, when all of it was there. */
  arrivedAt: number | undefined;
  /** Those that came as fields of a form. */
  parameters: GivenParameters;
  taken: TakenUpload | undefined;
};

export const noFacts = (): UploadFacts => ({ bytes: 0, arrivedAt: undefined, parameters: {}, taken: undefined });

const MAX_MESSAGE = 1_000;
const MAX_WARNINGS = 20;
const MAX_WARNING = 500;
const MAX_TEXT = 200;

/** More would be kept in memory only while the database is away or slow: then notes are dropped. */
const MAX_WAITING = 256;
const BATCH = 50;
/** Of one project, by this server: a client that repeats its mistake without a pause shall not write without a pause. */
const MAX_PER_MINUTE = 100;
const MINUTE = 60_000;
/** A flood that lasts for longer is told anew. */
const MAX_FLOOD_MS = 60 * MINUTE;

const cut = (text: string, max: number): string => toStorable(maskKeys(text).slice(0, max));

/** Of the parameters that were given, those that are told. */
export function toGiven(parameters: Iterable<readonly [string, string]>): GivenParameters {
  const given: GivenParameters = {};
  for (const [name, value] of parameters)
    if (Object.hasOwn(TOLD_PARAMETERS, name))
      given[TOLD_PARAMETERS[name as keyof typeof TOLD_PARAMETERS]] ??= cut(value, MAX_TEXT);
  return given;
}

export type AnsweredUpload = {
  caller: Caller;
  facts: UploadFacts;
  request: Request;
  /** The query as sent. */
  search: string;
  requestId: string;
  clientAddress: string;
  status: number;
  /** Undefined: it was accepted. */
  message: string | undefined;
};

function toNewUpload(id: string, now: number, upload: AnsweredUpload): NewUpload {
  const { caller, facts, request, search, message } = upload;
  const { taken } = facts;
  const isRefused = message !== undefined;
  const userAgent = request.headers.get("user-agent");
  // Nothing may have been read of what is too large.
  const declared = Number(request.headers.get("content-length") ?? Number.NaN);
  const bytes = facts.bytes || declared;
  return {
    id,
    teamId: caller.teamId,
    keyId: caller.id,
    answeredAt: new Date(now).toISOString(),
    outcome: isRefused ? "refused" : "warned",
    statusCode: upload.status,
    message: isRefused ? cut(message, MAX_MESSAGE) : null,
    warnings: isRefused ? [] : (taken?.warnings ?? []).slice(0, MAX_WARNINGS).map((text) => cut(text, MAX_WARNING)),
    parameters: { ...toGiven(new URLSearchParams(search)), ...facts.parameters },
    bytes: Number.isSafeInteger(bytes) ? bytes : null,
    userAgent: userAgent === null ? null : cut(userAgent, MAX_TEXT),
    clientAddress: upload.clientAddress,
    requestId: cut(upload.requestId, MAX_TEXT),
    executionId: isRefused ? null : (taken?.executionId ?? null),
    taskSlug: isRefused ? null : (taken?.taskSlug ?? null),
  };
}

/** Requests of one project beyond its rate limit, with no minute without one between them: one note for all. */
type Flood = { id: string; since: number; last: number; untold: number };

export type UploadLogOptions = {
  pool: Sql;
  log: Pick<Log, "warn">;
  /** So many notes could not be written. */
  onDropped?: (count: number) => void;
  /** Unix milliseconds. */
  wall?: () => number;
};

/** What cannot be written is dropped: the answer was given, and the next one shall not wait for it. */
export function createUploadLog({ pool, log, onDropped = () => {}, wall = Date.now }: UploadLogOptions) {
  let waiting: NewUpload[] = [];
  let repetitions: Repetition[] = [];
  const floods = new Map<string, Flood>();
  const noted = new Map<string, number>();
  let writing: Promise<void> | undefined;
  let complainedAt = -Infinity;

  async function write(): Promise<void> {
    // The answers go out first.
    await new Promise(setImmediate);
    while (waiting.length + repetitions.length > 0) {
      const batch = waiting.splice(0, BATCH);
      const again = repetitions.splice(0, BATCH);
      try {
        if (batch.length > 0) await insertUploads(pool, batch);
        for (const repetition of again) await addRepetitions(pool, repetition);
      } catch (error) {
        onDropped(batch.length);
        if (wall() - complainedAt < MINUTE) continue;
        complainedAt = wall();
        log.warn("Cannot note uploads that were refused or had warnings", { count: batch.length, error });
      }
    }
  }

  function begin(): void {
    writing ??= write().finally(() => {
      writing = undefined;
      if (waiting.length + repetitions.length > 0) begin();
    });
  }

  function add(id: string, now: number, upload: AnsweredUpload): void {
    const projectId = upload.caller.projectId!;
    const count = noted.get(projectId) ?? 0;
    if (count >= MAX_PER_MINUTE || waiting.length >= MAX_WAITING) return onDropped(1);
    noted.set(projectId, count + 1);
    waiting.push(toNewUpload(id, now, upload));
    begin();
  }

  function tell(projectId: string, flood: Flood): void {
    if (flood.untold === 0) return;
    const lastAnsweredAt = new Date(flood.last).toISOString();
    repetitions.push({ projectId, id: flood.id, times: flood.untold, lastAnsweredAt });
    flood.untold = 0;
    begin();
  }

  return {
    /** Of a project's key that is live as far as is known. Costs the request some microseconds, and never throws. */
    note(upload: AnsweredUpload): void {
      const projectId = upload.caller.projectId;
      if (projectId === null) return;
      const now = wall();
      const id = Bun.randomUUIDv7("hex", now);
      if (upload.status !== 429) return add(id, now, upload);
      const flood = floods.get(projectId);
      if (flood && now - flood.last < MINUTE && now - flood.since < MAX_FLOOD_MS) {
        flood.last = now;
        flood.untold++;
        return;
      }
      if (flood) tell(projectId, flood);
      floods.set(projectId, { id, since: now, last: now, untold: 0 });
      add(id, now, upload);
    },

    /** To be called every minute: tells how often requests were refused since, and forgets what is over. */
    sweep(): void {
      noted.clear();
      for (const [projectId, flood] of floods) {
        tell(projectId, flood);
        if (wall() - flood.last >= MINUTE) floods.delete(projectId);
      }
    },

    /** Resolves when nothing is left to be written. */
    async settled(): Promise<void> {
      while (writing) await writing;
    },
  };
}
