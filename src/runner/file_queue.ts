/** Answers `assay split` in a task, which has no key: the runner asks the server for the plan of the shard, or its next files. */

import { join } from "node:path";
import * as v from "valibot";
import type { ServerAnswer } from "./protocol.ts";

/** Names the socket, for `assay split`. */
export const QUEUE_VARIABLE = "ASSAY_QUEUE";
/** The maximum size of a request that the server accepts. */
const MAX_BODY_BYTES = 1_048_576;

/** Asks the server for the plan of the lease, or for its next files. Undefined: no answer. */
export type AskFiles = (kind: "plan" | "batch", files: readonly string[]) => Promise<ServerAnswer | undefined>;

const request = v.object({ files: v.array(v.string()) });

export type RunnerFileQueue = {
  /** The path of the socket. */
  path: string;
  stop(): Promise<void>;
};

/** `folder` is one that only the runner's user can enter. */
export function serveFileQueue(folder: string, askFiles: AskFiles): RunnerFileQueue {
  const path = join(folder, "queue.sock");
  const fail = (status: number, message: string) => Response.json({ error: { code: "RUNNER", message } }, { status });
  const server = Bun.serve({
    unix: path,
    development: false,
    maxRequestBodySize: MAX_BODY_BYTES,
    async fetch(asked) {
      const read = v.safeParse(request, await asked.json().catch(() => undefined));
      if (asked.method !== "POST" || !read.success) return fail(400, "expected a POST of { files }");
      const kind = new URL(asked.url).pathname === "/plan" ? "plan" : "batch";
      const answer = await askFiles(kind, read.output.files);
      if (!answer) return fail(503, "the server does not respond");
      return new Response(answer.text, { status: answer.status, headers: { "Content-Type": "application/json" } });
    },
  });
  return { path, stop: () => server.stop(true) };
}
