/** Large uploads, handled in a thread of their own: reading one keeps the processor from other requests for too long. */

import type { CheckedRequest, Progress } from "./handle.ts";
import { areFree } from "./http/descriptors.ts";
import { type ErrorCode, Problem } from "./http/problem.ts";
import type { Upload } from "./http/upload.ts";
import { Reply } from "./route.ts";
import type { ConnectionOptions } from "./store/connect.ts";

/** From here on reading a report takes longer than other requests should wait. */
const HEAVY_BYTES = 1_000_000;
/** The thread ends, and gives its memory back, when nothing heavy has come for so long. */
const IDLE_MS = 10_000;
/** Bun 1.4.5 ends the process where a new thread finds no file descriptors for itself, some three. */
const DESCRIPTORS = 12;
const TRY_AGAIN_MS = 50;

/** What the thread needs to know once. */
export type HeavySettings = {
  connection: ConnectionOptions;
  cursorSecret: Uint8Array;
  publicUrl: string;
  maxInflatedBytes: number;
  retentionDays: number;
  secretKey: Uint8Array;
};

export type ToThread =
  { settings: HeavySettings } | { id: number; route: string; request: CheckedRequest } | { id: number; expired: true };

type Outcome =
  | { reply: Pick<Reply, "status" | "body" | "type" | "headers"> }
  | { problem: { code: ErrorCode; message: string; headers: Record<string, string> } }
  | { failure: { name: string; message: string; code: unknown; stack: string | undefined } };
export type FromThread = { id: number; provedLive: boolean; outcome: Outcome };

type Job = {
  route: string;
  request: CheckedRequest;
  progress: Progress;
  resolve: (reply: Reply) => void;
  reject: (error: unknown) => void;
};

/** Whether reading the upload belongs in the thread; what is compressed may be small and become large. */
export const isHeavy = ({ files }: Upload): boolean =>
  files.reduce((sum, { bytes }) => sum + bytes.byteLength, 0) > HEAVY_BYTES ||
  files.some(({ bytes }) => (bytes[0] === 0x1f && bytes[1] === 0x8b) || (bytes[0] === 0x28 && bytes[1] === 0xb5));

/** The buffers that hold a file and nothing else: they move to the thread instead of being copied. */
const buffersOf = ({ files }: Upload): ArrayBuffer[] => [
  ...new Set(
    files.flatMap(({ bytes: { buffer, byteLength } }) =>
      buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [],
    ),
  ),
];

/** One job at a time, because each may take hundreds of megabytes; the others wait in line. */
export function createHeavyThread(settings: HeavySettings) {
  const line: Job[] = [];
  let current: Job | undefined;
  let currentId = 0;
  let thread: Worker | undefined;
  let idle: Timer | undefined;

  function open(): Worker {
    const worker = new Worker(new URL("./heavy_thread.ts", import.meta.url).href);
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

  function settle({ progress, resolve, reject }: Job, { provedLive, outcome }: FromThread): void {
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
    if (job) end(job);
    next();
  }

  function next(): void {
    if (current) return;
    clearTimeout(idle);
    current = line.shift();
    if (!current) {
      idle = setTimeout(close, IDLE_MS);
      idle.unref();
    } else if (current.progress.expired) {
      finish(() => {});
    } else if (!thread && !areFree(DESCRIPTORS)) {
      line.unshift(current);
      current = undefined;
      idle = setTimeout(next, TRY_AGAIN_MS);
    } else {
      thread ??= open();
      const { route, request } = current;
      thread.postMessage({ id: ++currentId, route, request } satisfies ToThread, buffersOf(request.body as Upload));
    }
  }

  return {
    /** Resolves and rejects as the handler itself would. */
    handle(route: string, request: CheckedRequest, progress: Progress): Promise<Reply> {
      return new Promise((resolve, reject) => {
        line.push({ route, request, progress, resolve, reject });
        next();
      });
    },

    /** Tells the thread that the request is not waited for any more. */
    expire(progress: Progress): void {
      if (current?.progress === progress) thread?.postMessage({ id: currentId, expired: true } satisfies ToThread);
    },

    close,
  };
}

export type HeavyThread = ReturnType<typeof createHeavyThread>;
