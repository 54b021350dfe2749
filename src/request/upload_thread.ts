/** Handles large uploads in a separate thread, because parsing one would block other requests for too long. */

import type { CheckedRequest, Progress } from "./execute.ts";
import type { AttachmentCounters, AttachmentSettings } from "../attachments/store.ts";
import { DeadlineError } from "../http/deadline.ts";
import { areFree } from "../http/descriptors.ts";
import { type ErrorCode, Problem } from "../http/problem.ts";
import { createOwnersQueue } from "../http/fair_queue.ts";
import type { SentUpload } from "./input.ts";
import { Reply } from "./reply.ts";
import type { UploadFacts } from "./upload_log.ts";
import type { ConnectionOptions } from "../database/connect.ts";

/** Minimum size, in bytes after decompression, of a report that is parsed in the thread. */
export const LARGE_BYTES = 500_000;
/** Time without a large upload after which the thread ends, to free its memory. An upload takes half as long again in a new thread. */
const IDLE_MS = 60_000;
/** Number of free file descriptors to start a thread, which needs about three. Without them, Bun 1.4.5 ends the process. */
const DESCRIPTORS = 12;
const TRY_AGAIN_MS = 50;

/** The configuration of the thread. */
export type UploadThreadSettings = {
  connection: ConnectionOptions;
  cursorSecret: Uint8Array;
  publicUrl: string;
  maxInflatedBytes: number;
  retentionDays: number;
  attachments: AttachmentSettings;
  secretKey: Uint8Array;
};

/** The data of a request before its body has been read. */
export type UploadRequest = Omit<CheckedRequest, "query" | "body" | "digest"> & { sent: SentUpload };

export type ToThread =
  | { settings: UploadThreadSettings }
  /** `shared` is read and written by both: see EXPIRED and BEATS. */
  | { id: number; route: string; request: UploadRequest; shared: Int32Array };

/** The element that is 1 once the client no longer waits for the response. */
export const EXPIRED = 0;
/** The element that the thread increments every BEAT_MS, unless something keeps it from doing so. */
export const BEATS = 1;
export const BEAT_MS = 200;
/** A thread that has not incremented BEATS for this time is busy with a computation. */
const STUCK_MS = 1_000;
/** Maximum time for which a report may be read, because others wait for the thread meanwhile: the largest sound ones take 10 to 20 s. */
export const READING_MS = 60_000;
/** The interval in which a job is looked at that takes longer. */
const LOOK_AGAIN_MS = 5_000;

/** Reading the report took more than READING_MS. */
export class SlowReadingError extends Error {
  override name = "SlowReadingError";
}

type Outcome =
  | { reply: Pick<Reply, "status" | "body" | "type" | "headers"> }
  | { problem: { code: ErrorCode; message: string; headers: Record<string, string> } }
  | { failure: { name: string; message: string; code: unknown; stack: string | undefined } };
/** The changes of the attachment counters by one job. */
export type CountedAttachments = { storedBytes: number; failures: number };
export type FromThread = {
  id: number;
  provedLive: boolean;
  upload: UploadFacts;
  attachments: CountedAttachments;
  outcome: Outcome;
};

type Job = {
  route: string;
  request: UploadRequest;
  progress: Progress;
  shared: Int32Array;
  resolve: (reply: Reply) => void;
  reject: (error: unknown) => void;
};

/** Returns the buffers of the body, to transfer them to the thread instead of copying them. */
const buffersOf = ({ blocks }: SentUpload): ArrayBuffer[] => blocks.map(({ buffer }) => buffer);

/**
 * Creates a thread for large uploads. `entry` is its program. It processes one job at a time, because each may need hundreds of megabytes.
 * Waiting jobs are in a queue that is fair between teams, and between the keys of a team.
 */
export function createUploadThread(
  entry: URL,
  settings: UploadThreadSettings,
  counters: AttachmentCounters,
  readingMs = READING_MS,
) {
  const line = createOwnersQueue<Job>();
  let current: Job | undefined;
  let currentId = 0;
  let thread: Worker | undefined;
  let idle: Timer | undefined;
  let watching: Timer | undefined;

  function open(): Worker {
    const worker = new Worker(entry.href);
    worker.onmessage = ({ data }: MessageEvent<FromThread>) => {
      if (data.id === currentId) finish((job) => settle(job, data));
    };
    // The thread itself has failed, out of memory for instance: the next job gets a new one.
    worker.onerror = (event) => {
      event.preventDefault();
      close();
      finish(({ reject }) => reject(new Error(`The thread for large uploads failed: ${event.message}`)));
    };
    worker.postMessage({ settings } satisfies ToThread);
    return worker;
  }

  function close(): void {
    thread?.terminate();
    thread = undefined;
  }

  function settle({ progress, resolve, reject }: Job, message: FromThread): void {
    const { provedLive, upload, attachments, outcome } = message;
    counters.stored(attachments.storedBytes);
    for (let count = 0; count < attachments.failures; count++) counters.failed();
    progress.upload = upload;
    progress.provedLive ||= provedLive;
    if ("reply" in outcome) {
      const { status, body, type, headers } = outcome.reply;
      resolve(new Reply(status, body, type, headers));
    } else if ("problem" in outcome) {
      reject(new Problem(outcome.problem.code, outcome.problem.message, outcome.problem.headers));
    } else {
      reject(Object.assign(new Error(outcome.failure.message), outcome.failure));
    }
  }

  function finish(end: (job: Job) => void): void {
    const job = current;
    current = undefined;
    clearTimeout(watching);
    if (job) end(job);
    next();
  }

  function rest(): void {
    clearTimeout(idle);
    idle = setTimeout(close, IDLE_MS);
    idle.unref();
  }

  function next(): void {
    if (current) return;
    clearTimeout(idle);
    if (!thread && !line.isEmpty() && !areFree(DESCRIPTORS)) {
      idle = setTimeout(next, TRY_AGAIN_MS);
      return;
    }
    current = line.shift();
    if (!current) rest();
    else {
      thread ??= open();
      const { route, request, shared } = current;
      thread.postMessage({ id: ++currentId, route, request, shared } satisfies ToThread, buffersOf(request.sent));
      watch(current, readingMs);
    }
  }

  /** Ends a job that computes for too long. Waits for the database are not ended, because they have their own time limits. */
  function watch(job: Job, ms: number): void {
    watching = setTimeout(async () => {
      if (await isStuck(job)) end(job, new SlowReadingError());
      else if (current === job) watch(job, LOOK_AGAIN_MS);
    }, ms);
    watching.unref();
  }

  async function isStuck(job: Job): Promise<boolean> {
    if (current !== job) return false;
    const beats = Atomics.load(job.shared, BEATS);
    await Bun.sleep(STUCK_MS);
    return current === job && Atomics.load(job.shared, BEATS) === beats;
  }

  function end(job: Job, error: Error): void {
    if (current !== job) return;
    close();
    finish(({ reject }) => reject(error));
  }

  return {
    /** Starts the thread in advance, because a large upload is arriving. */
    prepare(): void {
      if (thread || !line.isEmpty() || !areFree(DESCRIPTORS)) return;
      thread = open();
      rest();
    },

    /** Parses the upload and runs its handler in the thread. Resolves and rejects as they do. */
    handle(route: string, request: UploadRequest, progress: Progress): Promise<Reply> {
      return new Promise((resolve, reject) => {
        const shared = new Int32Array(new SharedArrayBuffer(8));
        line.push(request.caller.teamId, request.caller.id, { route, request, progress, shared, resolve, reject });
        next();
      });
    },

    /** Cancels a request that the client no longer waits for. Returns true if it was still in the queue. */
    expire({ id, teamId }: UploadRequest["caller"], progress: Progress): boolean {
      if (current?.progress !== progress) return line.remove(teamId, id, (job) => job.progress === progress);
      // Shared memory takes effect at once. A message could arrive after the commit that it should prevent.
      Atomics.store(current.shared, EXPIRED, 1);
      return false;
    },

    /** Ends the thread if it is still busy with a computation for an expired request. Returns whether it did. */
    async endStuck(progress: Progress): Promise<boolean> {
      const job = current;
      if (job?.progress !== progress || !(await isStuck(job))) return false;
      end(job, new DeadlineError("The thread was ended while it read the upload"));
      return true;
    },

    close,
  };
}

export type UploadThread = ReturnType<typeof createUploadThread>;
