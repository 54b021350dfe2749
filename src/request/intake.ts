/** Takes a request in that may call its endpoint: reads its input and runs its handler, within the route's deadline. */

import { removeSpooled } from "../attachments/spool.ts";
import type { AttachmentServices } from "../attachments/store.ts";
import { createUploadBudget, type Hold, OverdrawnError } from "../http/upload_budget.ts";
import { DeadlineError, type Deadlines } from "../http/deadline.ts";
import { createAttachmentParts, receiveFile, receiveFiles } from "./attachment_parts.ts";
import type { CheckedRequest, Execute, Progress } from "./execute.ts";
import { tooBusy } from "./failure.ts";
import { waitForOther } from "./idempotency.ts";
import { digestOfFiles, type Input, readInput, readQuery, readSmallUpload, receiveUpload } from "./input.ts";
import type { Reply } from "./reply.ts";
import type { Route } from "./route.ts";
import { noFacts } from "./upload_log.ts";
import { LARGE_BYTES, READING_MS, SlowReadingError, type UploadThread } from "./upload_thread.ts";
import { fail } from "../http/problem.ts";
import type { Sql } from "../database/connect.ts";

/** The parts of a request that precede its query and body. */
export type Asked = Omit<CheckedRequest, "query" | "body" | "digest">;

export type IntakeOptions = {
  handle: Execute;
  pool: Sql;
  deadlines: Deadlines;
  uploadThread: Pick<UploadThread, "handle" | "expire" | "endStuck" | "prepare">;
  attachments: AttachmentServices;
  maxBodyBytes: number;
  maxInflatedBytes: number;
  /** For all uploads that are received, wait or are read, together. */
  uploadMemoryBytes: number;
};

/** A request, as far as its input goes. */
export type ReceivedRequest = { request: Request; search: string };

/** A body of a known length up to this is read without asking for its memory. */
const SMALL_BODY_BYTES = 65_536;

function isSmallBody({ headers }: Request): boolean {
  const length = headers.get("content-length");
  return length === null ? headers.get("transfer-encoding") === null : Number(length) <= SMALL_BODY_BYTES;
}

export function createIntake(options: IntakeOptions) {
  const { handle, deadlines, uploadThread, maxBodyBytes, maxInflatedBytes } = options;
  // The upload that is being read is there inflated, as text, and as what has been read of it.
  const budget = createUploadBudget(Math.max(options.uploadMemoryBytes - 3 * maxInflatedBytes, maxBodyBytes));

  function run(route: Route, asked: Asked, { query, body, digest }: Input, progress: Progress): Promise<Reply> {
    const checked = { ...asked, query, body, digest: asked.idempotencyKey === null ? "" : digest() };
    return deadlines.within(
      route.deadlineSeconds,
      () => handle(route, checked, progress),
      () => void (progress.expired = true),
    );
  }

  /** The memory that the upload takes is given back whatever becomes of it. */
  async function takeUpload(
    route: Route,
    { request, search }: ReceivedRequest,
    asked: Asked,
    progress: Progress,
  ): Promise<Reply> {
    const facts = (progress.upload = noFacts());
    const hold = budget.open(asked.caller.teamId);
    const parts = createAttachmentParts(request.headers.get("content-type") ?? "", options.attachments, hold.passed);
    const { received: attachments, filter } = parts;
    try {
      const wait = growWithin(hold, route.deadlineSeconds);
      const grow: Hold["grow"] = (bytes) => {
        const room = wait(bytes);
        // By the time that the rest has come, the thread is there.
        if (!room && facts.bytes > LARGE_BYTES) uploadThread.prepare();
        return room;
      };
      const sent = await receiveUpload(request, route, search, {
        ...{ maxBytes: maxBodyBytes, grow, facts, filter, attachments },
      });
      hold.arrived();
      const input = await readSmallUpload(sent, route, Math.min(LARGE_BYTES, maxInflatedBytes));
      if (input) return await run(route, asked, input, progress);
      let isInLine = false;
      return await deadlines
        .within(
          route.deadlineSeconds,
          async () => {
            await waitOutside(asked, progress);
            return await uploadThread.handle(`${route.method} ${route.path}`, { ...asked, sent }, progress);
          },
          () => {
            progress.expired = true;
            isInLine = uploadThread.expire(asked.caller, progress);
          },
        )
        .catch(async (error) => {
          // It may have waited for most of the time, so that it is no fault of the report.
          if (isInLine || (error instanceof DeadlineError && (await uploadThread.endStuck(progress)))) tooBusy();
          if (error instanceof SlowReadingError)
            fail(
              "VALIDATION_ERROR",
              `Cannot read the report: reading it takes more than ${READING_MS / 1_000} s, send it in parts`,
            );
          throw error;
        });
    } finally {
      hold.release();
      await parts.discard();
    }
  }

  /** Passes a body to its handler as a file. */
  async function takeFile(
    route: Route,
    { request, search }: ReceivedRequest,
    asked: Asked,
    progress: Progress,
  ): Promise<Reply> {
    const { query, digest } = readQuery(request, route, search);
    const body = await receiveFile(request, options.attachments);
    try {
      return await run(route, asked, { query, body, digest }, progress);
    } finally {
      if (body.file) await removeSpooled([body.file]);
    }
  }

  /** Passes the files of a form to its handler. */
  async function takeFiles(
    route: Route,
    { request, search }: ReceivedRequest,
    asked: Asked,
    progress: Progress,
  ): Promise<Reply> {
    const parts = createAttachmentParts(request.headers.get("content-type") ?? "", options.attachments, () => {});
    const { query, digest } = readQuery(request, route, search, () => digestOfFiles(parts.received));
    try {
      await receiveFiles(request, parts);
      return await run(route, asked, { query, body: parts.received, digest }, progress);
    } finally {
      await parts.discard();
    }
  }

  /**
   * Takes its memory from the budget of uploads: a hundred bodies that drip would otherwise hold a hundred megabytes. It
   * does not wait for it: what waits holds what its connection has received.
   */
  async function readLarge(route: Route, { request, search }: ReceivedRequest, { caller }: Asked): Promise<Input> {
    const hold = budget.open(caller.teamId);
    const grow: Hold["grow"] = (bytes) => {
      const room = hold.grow(bytes);
      if (!room) return undefined;
      // Releasing it rejects.
      room.catch(() => {});
      return tooBusy();
    };
    try {
      return await readInput(request, route, search, grow);
    } finally {
      hold.release();
    }
  }

  /** A repetition waits here for the first request: in the thread it would keep all other large uploads waiting. */
  async function waitOutside({ caller, idempotencyKey: key }: Asked, progress: Progress): Promise<void> {
    if (key === null) return;
    await waitForOther({ sql: options.pool, caller, key, isOver: () => progress.expired });
    // The client has already received an error, so the request must not be executed any more.
    if (progress.expired) throw new DeadlineError("The request timed out while it was queued");
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
            if (error instanceof DeadlineError || error instanceof OverdrawnError) tooBusy();
            throw error;
          },
        );
    };
  }

  /** Throws at once where the query of a route without a body is wrong: such a route costs no promise of its own. */
  return function take(
    route: Route,
    { request, search }: ReceivedRequest,
    asked: Asked,
    progress: Progress,
  ): Promise<Reply> {
    if (route.body === undefined) return run(route, asked, readQuery(request, route, search), progress);
    if (route.body === "upload") return takeUpload(route, { request, search }, asked, progress);
    if (route.body === "files") return takeFiles(route, { request, search }, asked, progress);
    if (route.body === "file") return takeFile(route, { request, search }, asked, progress);
    const received = isSmallBody(request)
      ? readInput(request, route, search)
      : readLarge(route, { request, search }, asked);
    return received.then((input) => run(route, asked, input, progress));
  };
}
