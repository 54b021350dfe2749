/** The thread for large uploads: the same handlers on database connections of its own. */

import { reportUploads } from "../api/report_upload.ts";
import { openAttachments } from "../attachments/store.ts";
import { createExecute, type Execute, type Progress } from "../request/execute.ts";
import {
  BEAT_MS,
  BEATS,
  EXPIRED,
  type FromThread,
  type ToThread,
  type UploadRequest,
} from "../request/upload_thread.ts";
import { createEventStreams } from "../http/events.ts";
import { createAddressList } from "../http/address.ts";
import { createCursors } from "../http/cursor.ts";
import { createOutbound } from "../http/outbound.ts";
import { Problem } from "../http/problem.ts";
import { createLog } from "../log.ts";
import { createLive } from "../operations/live/live.ts";
import { readUpload } from "../request/input.ts";
import type { Reply } from "../request/reply.ts";
import { createSeal } from "../secrets/seal.ts";
import { connect } from "../database/connect.ts";

declare const self: Worker;

const CONNECTIONS = 2;
const WATCH_MS = 1_000;
const nothing = createAddressList([]);
const routes = new Map(reportUploads.map((route) => [`${route.method} ${route.path}`, route]));
let handle: Execute;
let maxInflatedBytes: number;
/** One job at a time. */
let counted: FromThread["attachments"] = { storedBytes: 0, failures: 0 };
let shared: Int32Array | undefined;
setInterval(() => shared && Atomics.add(shared, BEATS, 1), BEAT_MS);

self.onmessage = async ({ data }: MessageEvent<ToThread>) => {
  if ("settings" in data) {
    const { connection, cursorSecret, secretKey, attachments, ...settings } = data.settings;
    const log = createLog("warn");
    maxInflatedBytes = settings.maxInflatedBytes;
    const database = connect(connection, CONNECTIONS);
    setInterval(() => void database.watch().catch(() => {}), WATCH_MS);
    handle = createExecute(database, {
      ...settings,
      seal: createSeal(secretKey),
      cursors: createCursors(cursorSecret),
      log,
      attachments: openAttachments(attachments, {
        counters: {
          stored: (bytes) => void (counted.storedBytes += bytes),
          failed: () => void counted.failures++,
        },
        onSpoolError: (error) => log.error("Cannot write an attachment of a report", { error }),
      }),
      // Uploads wait for no signals.
      signals: { watch: () => ({ next: async () => "closed", end() {} }), tell() {} },
      live: createLive(database, { onError() {} }),
      eventStreams: createEventStreams(),
      // Uploads send no requests.
      outbound: createOutbound({ allow: nothing }),
      outboundAllow: nothing,
    });
  } else {
    const upload = data.request.sent.facts;
    counted = { storedBytes: 0, failures: 0 };
    const job = (shared = data.shared);
    const progress: Progress = {
      provedLive: false,
      upload,
      get expired() {
        return Atomics.load(job, EXPIRED) === 1;
      },
    };
    const outcome = await readAndHandle(data.route, data.request, progress).then(
      ({ status, body, type, headers }): FromThread["outcome"] => ({ reply: { status, body, type, headers } }),
      toOutcome,
    );
    const { provedLive } = progress;
    self.postMessage({ id: data.id, provedLive, upload, attachments: counted, outcome } satisfies FromThread);
    // Hundreds of megabytes of garbage would otherwise still be there when the next job brings as many.
    Bun.gc(true);
  }
};

async function readAndHandle(name: string, { sent, ...request }: UploadRequest, progress: Progress): Promise<Reply> {
  const route = routes.get(name)!;
  const { query, body, digest } = await readUpload(sent, route, maxInflatedBytes);
  const checked = { ...request, query, body, digest: request.idempotencyKey === null ? "" : digest() };
  return await handle(route, checked, progress);
}

function toOutcome(error: unknown): FromThread["outcome"] {
  if (error instanceof Problem)
    return { problem: { code: error.code, message: error.message, headers: error.headers } };
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  return { failure: { name, message, stack, code: (error as { code?: unknown }).code } };
}
