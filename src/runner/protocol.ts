/** The messages between runner and server; fields that a newer server adds are ignored. */

import * as v from "valibot";

const text = v.nullish(v.string(), null);

const lease = v.object({
  id: v.string(),
  timeoutSeconds: v.number(),
  execution: v.object({ id: v.string(), branch: text, commit: text, baseUrl: text }),
  taskSlug: v.string(),
  attempt: v.number(),
  shard: v.optional(v.object({ index: v.number(), total: v.number() })),
  only: v.optional(v.array(v.object({ suite: v.string(), name: v.string(), file: text }))),
  /** It runs one test case at one commit. */
  probe: v.optional(v.boolean(), false),
  /** It lists the commits of this range, and runs no command. */
  commits: v.optional(v.object({ good: v.string(), bad: v.string() })),
  variables: v.record(v.string(), v.string()),
  secretNames: v.array(v.string()),
  /** The names of `variables` that the execution has set, not its environment. */
  executionNames: v.array(v.string()),
});
export type RunnerLease = v.InferOutput<typeof lease>;

const heldState = v.object({
  id: v.string(),
  /** null: it is not this runner's any more. */
  expiresAt: text,
  cancelled: v.boolean(),
  reason: text,
  /** How many bytes of its log the server has. */
  logOffset: v.number(),
});

const syncAnswer = v.object({ leases: v.array(lease), held: v.array(heldState), nextSeconds: v.number() });
export type SyncAnswer = v.InferOutput<typeof syncAnswer>;

export type TaskLogPart = { offset: number; text: string };

export type SyncBody = {
  labels: readonly string[];
  taskSlugs: readonly string[];
  probeSlugs: readonly string[];
  free: number;
  held: { id: string; log?: TaskLogPart }[];
  returned: string[];
  /** It is the last one. */
  stopping?: true;
  waitSeconds: number;
};

/** undefined: this is no answer of an Assay server. */
export function readSyncAnswer(text: string): SyncAnswer | undefined {
  try {
    return v.parse(syncAnswer, JSON.parse(text));
  } catch {
    return;
  }
}

/** Returns a new stream for each try. */
export type StreamedBody = () => ReadableStream<Uint8Array>;

export type RunnerRequest = {
  method: "GET" | "POST" | "PUT";
  /** Relative to the project, with its query. */
  path: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array<ArrayBuffer> | StreamedBody;
  timeoutMs?: number;
};
export type ServerAnswer = { status: number; text: string; headers: Headers };

/** How the runner reaches its server. */
export type Server = {
  /** Rejects where there is no answer. */
  ask(asking: RunnerRequest): Promise<ServerAnswer>;
  /** Returns the message of an unsuccessful answer. */
  messageOf(answer: ServerAnswer): string;
};
