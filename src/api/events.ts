/** Streams the events of a project or an execution as Server-Sent Events. */

import { type ServerSentEvent, type StreamControl, toEventText, toKeepAlive } from "../http/events.ts";
import { absent, fail } from "../http/problem.ts";
import { noContent, StreamReply } from "../request/reply.ts";
import { type Context, route, type Route } from "../request/route.ts";
import { compare, readPosition, writePosition } from "../rules/stream_position.ts";
import { eventsQuery, type LiveState, type LiveItem, type Position } from "../schema/live.ts";
import { executionUrl } from "../schema/urls.ts";
import { isUnavailable } from "../database/connect.ts";
import { executionOf, selectExecutionExists } from "../store/live.ts";

const KEEP_ALIVE_MS = 15_000;
/** Approximate number of characters written at a time. */
const CHUNK_LENGTH = 65_536;
/** Delay before a disconnected client reconnects. */
const RETRY_MS = 2_000;
const TOO_MANY_RETRY_SECONDS = 10;

type Following = Pick<Context, "services" | "publicUrl" | "caller"> & {
  projectId: string;
  executionId: string | undefined;
  start: Position;
  gap: string | undefined;
};

/** Joins texts up to the length of a chunk, because a write for each would cost more than its contents. */
function* inChunks(texts: Iterable<string>): Generator<string> {
  let chunk = "";
  for (const text of texts) {
    chunk += text;
    if (chunk.length < CHUNK_LENGTH) continue;
    yield chunk;
    chunk = "";
  }
  if (chunk !== "") yield chunk;
}

const decoder = new TextDecoder();

function toText(one: LiveItem): string {
  const id = writePosition(one.position);
  if (one.kind === "event") {
    const { type, data, occurredAt } = one;
    return toEventText({ id, event: type, data: { id: one.id, occurredAt, ...data } });
  }
  const { executionId, taskSlug, shard, leaseId, offset, bytes } = one;
  const data = { executionId, taskSlug, shard, leaseId, offset, text: decoder.decode(bytes) };
  return toEventText({ id, event: "log", data });
}

/** Caches the text of an event for all streams that send it. */
const written = new WeakMap<LiveItem, string>();

function* newsTexts(news: readonly LiveItem[]): Generator<string> {
  for (const one of news) {
    const text = written.get(one) ?? toText(one);
    written.set(one, text);
    yield text;
  }
}

/** Yields what changed since version `seen`; the complete state if it is 0. */
function* stateTexts(state: LiveState, seen: number, url: string): Generator<string> {
  const { execution, tasks, executionVersion } = state;
  if (seen === 0) {
    const all = [...tasks.values()].map(({ task }) => task);
    yield toEventText({ event: "execution", data: { ...execution, tasks: all, url } });
    return;
  }
  for (const { task, version } of tasks.values())
    if (version > seen) yield toEventText({ event: "task", data: { executionId: execution.id, ...task } });
  if (executionVersion > seen) yield toEventText({ event: "execution", data: { ...execution, url } });
}

/** Ends when its execution has ended and all its events are sent. */
async function* follow(following: Following, control: StreamControl): AsyncGenerator<string, void> {
  const { services, publicUrl, caller, projectId, executionId, gap } = following;
  const { signal } = control;
  const isLive = (keys: readonly string[]) => keys.includes(caller.id) || control.cut("revoked");
  const watch = services.live.watch(projectId, executionId, isLive);
  signal.addEventListener("abort", watch.end);
  if (signal.aborted) watch.end();
  const seen = new Map<string, number>();
  let position = following.start;
  let sentAt = performance.now();

  function* say(texts: Iterable<string>): Generator<string> {
    for (const chunk of inChunks(texts)) {
      if (signal.aborted) return;
      sentAt = performance.now();
      yield chunk;
    }
  }

  function* changes(states: readonly LiveState[]): Generator<string> {
    for (const state of states) {
      const before = seen.get(state.execution.id) ?? 0;
      seen.set(state.execution.id, state.version);
      if (state.keys.includes(caller.id) && state.version > before)
        yield* stateTexts(state, before, executionUrl(publicUrl, projectId, state.execution.id));
    }
    if (seen.size > states.length) {
      const shown = new Set(states.map(({ execution }) => execution.id));
      for (const id of seen.keys()) if (!shown.has(id)) seen.delete(id);
    }
  }

  async function* catchUp(from: Position): AsyncGenerator<string, Position> {
    for (let after = from; ;) {
      const page = await services.live.read(projectId, executionId, after);
      isLive(page.keys);
      if (signal.aborted) return after;
      yield* say(newsTexts(page.news));
      after = page.to;
      if (page.isWhole) return after;
    }
  }

  const isMine = (one: LiveItem) =>
    one.kind === "log"
      ? one.executionId === executionId
      : executionId === undefined || executionOf(one.data) === executionId;
  const farewell = (reason: string, isEnd = false): string => {
    const id = isEnd ? { id: writePosition(position, true) } : {};
    return toEventText({ ...id, event: "end", data: { reason } } satisfies ServerSentEvent);
  };

  try {
    // The first chunk also sends the headers.
    yield `retry: ${RETRY_MS}\n${toKeepAlive(writePosition(position))}`;
    if (gap !== undefined) yield toEventText({ event: "gap", data: { reason: gap } });
    while (!signal.aborted) {
      const batch = await watch.next();
      if (signal.aborted) break;
      const states = watch.states();
      if (states === "gone") return void (yield farewell("deleted", true));
      // The reading that has just ended had begun before this one came.
      const isReady = executionId === undefined || states.length > 0;
      if (batch && isReady) {
        yield* say(changes(states));
        // Uses the state before the following events are sent, so that events that led to it precede it.
        const over = executionId === undefined ? undefined : states.find(({ isOver }) => isOver)?.xmax;
        try {
          if (compare(position, batch.from) < 0) {
            position = yield* catchUp(position);
          } else {
            const here = position;
            yield* say(newsTexts(batch.news.filter((one) => isMine(one) && compare(one.position, here) > 0)));
            if (compare(batch.to, position) > 0) position = batch.to;
          }
        } catch (error) {
          if (!isUnavailable(error)) throw error;
          services.log.warn("Cannot continue an event stream", { error });
        }
        if (!signal.aborted && over !== undefined && position.xact >= over) {
          const [state] = states;
          yield* say(changes(states));
          if (state?.isOver) return void (yield farewell("ended", true));
        }
      }
      if (!signal.aborted && performance.now() - sentAt >= KEEP_ALIVE_MS)
        yield* say([toKeepAlive(writePosition(position))]);
    }
    if (signal.reason !== "gone") yield farewell(signal.reason);
  } catch (error) {
    services.log.error("An event stream failed", { error });
    yield farewell("failed");
  } finally {
    signal.removeEventListener("abort", watch.end);
    watch.end();
  }
}

export const events: Route[] = [
  route(
    "GET /projects/:projectId/events",
    {
      summary: "Stream events as Server-Sent Events",
      description:
        "The stream of an execution ends with the execution. After a lost connection, reconnect with Last-Event-ID to " +
        "miss nothing: events are kept for 7 days, and missing ones are reported as a gap. The number of streams per key " +
        "is limited; one more is answered 429. Revoking the key ends its streams.",
      query: eventsQuery,
      answer: null,
      stream:
        "A stream of events, each with a name and JSON. Sent once, with an id to resume after: the events of automations " +
        '("execution.completed", "test_run.completed", "bug_report.opened" and so on) and, with execution_id, "log" ' +
        '{ executionId, taskSlug, shard, leaseId, offset, text }. The present state, without ids: "execution" (with its ' +
        'tasks the first time) and "task". "gap": events are missing. "end" { reason: ended, deleted, ' +
        "revoked, stopping or failed }: the last one",
      otherStatus: 204,
    },
    async ({ fast, params, query, caller, publicUrl, services, lastEventId }) => {
      const { projectId } = params;
      const { live, eventStreams } = services;
      const executionId = query.execution_id;
      const found = lastEventId === null || lastEventId === "" ? undefined : readPosition(lastEventId);
      if (executionId !== undefined && !(await selectExecutionExists(fast, projectId, executionId))) absent();
      if (lastEventId && !found)
        fail("VALIDATION_ERROR", `Cannot read the header "Last-Event-ID": expected an id that this stream has sent`);
      // Clients that reconnect automatically would otherwise do so forever.
      if (found?.isEnd && executionId !== undefined) return noContent();
      const owner = { key: caller.id, project: projectId };
      const refusal = eventStreams.refusal(owner);
      if (refusal !== undefined)
        fail("RATE_LIMITED", `${refusal}: end one first`, { "Retry-After": String(TOO_MANY_RETRY_SECONDS) });
      const { start, gap } = await live.enter(projectId, executionId, found?.position);
      const following = { services, publicUrl, caller, projectId, executionId, start, gap };
      return new StreamReply(200, "text/event-stream", { "X-Accel-Buffering": "no" }, (hurry) =>
        eventStreams.open(owner, (control) => follow(following, control), hurry),
      );
    },
  ),
];
