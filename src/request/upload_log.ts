/** Records uploads that were refused or accepted with warnings, in the background, without delaying requests. */

import type { Caller } from "./callers.ts";
import type { Log } from "../log.ts";
import { maskKeys } from "../secrets/keys.ts";
import { toStorable } from "../schema/fields.ts";
import { type GivenParameters, TOLD_PARAMETERS } from "../schema/uploads.ts";
import type { Sql } from "../database/connect.ts";
import { addRepetitions, insertUploads, type NewUpload, type Repetition } from "../store/uploads.ts";

/** The result of a stored report. */
export type TakenUpload = {
  executionId: string;
  taskSlug: string;
  format: string;
  /** In the report. */
  cases: number;
  /** The warnings of this report alone. */
  warnings: readonly string[];
  /** False: these very bytes were there before. */
  added: boolean;
};

/** The data of an upload other than its answer; plain data, so that it can come from another thread. */
export type UploadFacts = {
  /** As sent, so far. */
  bytes: number;
  /** The value of `performance.now()` when the whole body had arrived. */
  arrivedAt: number | undefined;
  /** The parameters that were form fields. */
  parameters: GivenParameters;
  taken: TakenUpload | undefined;
};

export const noFacts = (): UploadFacts => ({ bytes: 0, arrivedAt: undefined, parameters: {}, taken: undefined });

const MAX_MESSAGE = 1_000;
const MAX_WARNINGS = 20;
const MAX_WARNING = 500;
const MAX_TEXT = 200;

/** The maximum number of records in memory; further ones are dropped while the database is unavailable or slow. */
const MAX_WAITING = 256;
const BATCH = 50;
/** The maximum number of records per project and minute, so that a client that repeats its mistake does not write constantly. */
const MAX_PER_MINUTE = 100;
const MINUTE = 60_000;
/** A flood that lasts for longer is told anew. */
const MAX_FLOOD_MS = 60 * MINUTE;

const cut = (text: string, max: number): string => toStorable(maskKeys(text).slice(0, max));

/** The parameters that are recorded. */
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
  /** Called with the number of records that could not be written. */
  onDropped?: (count: number) => void;
  /** Unix milliseconds. */
  wall?: () => number;
};

/** Drops records that cannot be written: the answer was sent, and the next one must not wait. */
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
        log.warn("Cannot record uploads that were refused or had warnings", { count: batch.length, error });
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
    /** Records an upload with a project's key. Takes some microseconds, and never throws. */
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
