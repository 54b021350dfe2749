/** One sync with the server: which leases the runner holds and how many it can take, and what the server answers. */

import type { Log } from "../log.ts";
import type { TaskConfig } from "./config.ts";
import { type HeldLeases, logFieldsOf } from "./held_leases.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { type ServerConnection, RunnerError } from "./line.ts";
import { fitLogPart, jsonBytes, MAX_LOG_JSON_BYTES } from "./log_part.ts";
import {
  type RunnerLease,
  readSyncAnswer,
  type Server,
  type ServerAnswer,
  type SyncAnswer,
  type SyncBody,
} from "./protocol.ts";

/** Proxies end requests that take a minute. */
export const IDLE_WAIT_SECONDS = 55;
/** How long a runner waits before it looks again whether another one still works in its folder. */
const NEIGHBOUR_WAIT_SECONDS = 5;
/** The time between two syncs that the server usually asks for; it is longer where there are many runners. */
export const USUAL_SYNC_SECONDS = 20;
/** How long an answer may take beyond the time that the server was asked to wait. */
const ANSWER_SECONDS = 20;

/** A server that does not respond learns later that the runner has ended. */
const LEAVE_MS = 3_000;

export type SyncOutcome = "news" | "nothing" | "no answer";

export type LeaseSyncer = {
  /** Describes the runner as it is now. */
  makeBody(): SyncBody;
  /** Says that the runner has ended, once, so that nobody waits for it. Does not throw. */
  leave(): Promise<void>;
  /** Throws a RunnerError where the runner cannot go on. */
  send(body: SyncBody): Promise<SyncOutcome>;
  /** Whether there are leases that the server has not taken back yet. */
  hasReturns(): boolean;
  /** When the server wants the next sync of a runner that holds leases. */
  nextSeconds(): number;
};

export type LeaseSyncOptions = {
  labels: readonly string[];
  tasks: ReadonlyMap<string, TaskConfig>;
  server: Server;
  line: ServerConnection;
  log: Log;
  held: HeldLeases;
  lifecycle: Lifecycle;
  /** Starts a lease; false: the runner cannot run it, and the server gets it back. */
  take: (lease: RunnerLease) => boolean;
};

export function createLeaseSync(options: LeaseSyncOptions): LeaseSyncer {
  const { labels, tasks, server, line, log, held, lifecycle, take } = options;
  const returned = new Set<string>();
  let hasBeenAnswered = false;
  let nextSeconds = USUAL_SYNC_SECONDS;
  let hasNeighbour = false;
  const probeSlugs = [...tasks].flatMap(([slug, { git, rerun }]) => (git && rerun !== undefined ? [slug] : []));

  function makeBody(): SyncBody {
    const leases = held.all();
    const shortSeconds = Math.ceil(line.shortMs() / 1000);
    const isUrgent = held.isFlushing() || (lifecycle.isStopping() && leases.length === 0);
    const { slugs: startable, isElsewhere } = held.startable();
    if (isElsewhere && !hasNeighbour) log.info("Another runner works in this folder: its task is awaited");
    hasNeighbour = isElsewhere;
    const waitSeconds = leases.length > 0 ? nextSeconds : isElsewhere ? NEIGHBOUR_WAIT_SECONDS : IDLE_WAIT_SECONDS;
    // Each task can start once: a second time it would be blocked by itself.
    const free = shortSeconds > 0 || lifecycle.isEnding() ? 0 : Math.min(held.capacity(), startable.length);
    return {
      labels,
      // From the slugs the server sees which tasks no runner can run. Without a free slot they are what it can run later.
      taskSlugs: free > 0 ? startable : [...tasks.keys()],
      probeSlugs,
      free,
      held: describeLeases(held),
      returned: [...returned],
      waitSeconds: isUrgent ? 0 : Math.min(waitSeconds, shortSeconds || Infinity),
    };
  }

  /** Returns whether there was anything new. */
  function receive(answer: SyncAnswer): boolean {
    let isNews = answer.leases.length > 0 || (answer.held.length > 0 && answer.nextSeconds !== nextSeconds);
    nextSeconds = Math.min(Math.max(answer.nextSeconds, 1), IDLE_WAIT_SECONDS);
    for (const state of answer.held) if (applyState(held, state, log)) isNews = true;
    for (const lease of answer.leases) if (!take(lease)) returned.add(lease.id);
    return isNews;
  }

  return {
    makeBody,
    hasReturns: () => returned.size > 0,
    nextSeconds: () => nextSeconds,
    async leave() {
      const body = { ...makeBody(), free: 0, waitSeconds: 0, stopping: true as const };
      const leaving = line.ask({ ...asSync(body), timeoutMs: LEAVE_MS }).catch(() => {});
      await Promise.race([leaving, Bun.sleep(LEAVE_MS)]);
    },
    async send(body) {
      const answer = await line.ask({ ...asSync(body), timeoutMs: (body.waitSeconds + ANSWER_SECONDS) * 1000 });
      if (!answer) return "no answer";
      const read = answer.status === 200 ? readSyncAnswer(answer.text) : undefined;
      if (!read) {
        const message = messageOf(answer, server);
        if (!hasBeenAnswered) throw new RunnerError(message);
        // It may be the page of a proxy while servers are replaced: tasks that run are not given up for it.
        log.error(message);
        return "no answer";
      }
      hasBeenAnswered = true;
      for (const id of body.returned) returned.delete(id);
      return receive(read) || body.waitSeconds === 0 ? "news" : "nothing";
    },
  };
}

const asSync = (body: SyncBody) => ({
  method: "POST" as const,
  path: "/leases",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
});

/** Each lease gets an equal share of the room for logs; what one does not need is left to those after it. */
function describeLeases(held: HeldLeases): SyncBody["held"] {
  let room = MAX_LOG_JSON_BYTES;
  let count = held.count();
  return held.all().map(({ lease: { id }, log }) => {
    const part = fitLogPart(log.unsent, Math.floor(room / count--));
    if (!part) return { id };
    room -= jsonBytes(part.text);
    return { id, log: part };
  });
}

/** Applies what the server says about one lease. Returns whether it was cancelled just now. */
function applyState(held: HeldLeases, state: SyncAnswer["held"][number], log: Log): boolean {
  const one = held.get(state.id);
  if (!one) return false;
  one.log.acknowledge(state.logOffset);
  const isCancelledNow = state.cancelled && !one.stop.signal.aborted;
  if (state.cancelled) one.isGone ||= state.expiresAt === null;
  if (isCancelledNow) {
    one.stop.abort(state.reason ?? "Cancelled");
    log.info("Ending a task", { ...logFieldsOf(one.lease), reason: one.stop.signal.reason });
  }
  if (one.isGone || one.log.unsentBytes() === 0) one.flush?.resolve();
  return isCancelledNow;
}

const messageOf = (answer: ServerAnswer, server: Server): string =>
  `Cannot request tasks: ${answer.status === 200 ? "the answer is not from Assay" : server.messageOf(answer)}`;
