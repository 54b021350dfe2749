/** Hands batches of files to `assay split --next` in a task, which has no key: the runner asks the server for it. */

import { join } from "node:path";
import * as v from "valibot";
import type { ServerAnswer } from "./protocol.ts";

/** Names the socket, for `assay split --next`. */
export const QUEUE_VARIABLE = "ASSAY_QUEUE";
/** The maximum size of a request that the server accepts. */
const MAX_BODY_BYTES = 1_048_576;

/** Asks the server for the next files of the lease; `body` is the JSON of the task's request. Undefined: no answer. */
export type AskBatch = (files: readonly string[]) => Promise<ServerAnswer | undefined>;

const request = v.object({ files: v.array(v.string()) });
const answered = v.object({ files: v.array(v.string()) });

export type RunnerFileQueue = {
  /** The path of the socket. */
  path: string;
  /** All files were taken when the task first asked: it has none to run. */
  gaveNothing(): boolean;
  stop(): Promise<void>;
};

/** `folder` is one that only the runner's user can enter. */
export function serveFileQueue(folder: string, askBatch: AskBatch): RunnerFileQueue {
  const path = join(folder, "queue.sock");
  let [calls, given] = [0, 0];
  const fail = (status: number, message: string) => Response.json({ error: { code: "RUNNER", message } }, { status });
  const server = Bun.serve({
    unix: path,
    development: false,
    maxRequestBodySize: MAX_BODY_BYTES,
    async fetch(asked) {
      const read = v.safeParse(request, await asked.json().catch(() => undefined));
      if (asked.method !== "POST" || !read.success) return fail(400, "expected a POST of { files }");
      const answer = await askBatch(read.output.files);
      if (!answer) return fail(503, "the server does not respond");
      if (answer.status < 300) {
        calls++;
        given += v.parse(answered, JSON.parse(answer.text)).files.length;
      }
      return new Response(answer.text, { status: answer.status, headers: { "Content-Type": "application/json" } });
    },
  });
  return { path, gaveNothing: () => calls > 0 && given === 0, stop: () => server.stop(true) };
}
