/** Streams of Server-Sent Events: how they are written, how many there are, and how they end. */

/** `id` is sent back in Last-Event-ID by a client that reconnects; without `event` only the id is stored. */
export type ServerSentEvent = { id?: string; event: string; data: unknown };

export const toEventText = ({ id, event, data }: ServerSentEvent): string =>
  `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

/** Keeps the connection: proxies, and Bun, close it after a minute of silence. `id` is how far the stream has come. */
export const toKeepAlive = (id?: string): string => `:\n${id === undefined ? "" : `id: ${id}\n`}\n`;

/** The reason why a stream ends: the server stops, its key was revoked, or its client is gone. */
export type Ending = "stopping" | "revoked" | "gone";

export type StreamControl = {
  /** Aborted, with an Ending as its reason, when the stream is to end; then it may still say a last word. */
  signal: AbortSignal;
  /** Ends the stream even where its client takes nothing. */
  cut(ending: Ending): void;
};

/** The events of a stream; more are requested only when the connection can send them. */
export type Writer = (control: StreamControl) => AsyncGenerator<string, void>;

/** Identifies the reader of a stream: a session or a key, an address, and the project that the stream is about. */
export type StreamOwner = { session?: string; key?: string; address?: string; project: string };

/**
 * Maximum number of concurrent streams. The limits of one viewer are checked first and are smaller than that of a project, so that no one
 * takes all streams of a project. `address` is large, because an office, or a proxy that TRUST_PROXY does not name, has many people behind
 * one address.
 */
export const STREAM_LIMITS = { session: 8, key: 40, address: 40, project: 50, server: 500 };
export type StreamLimits = typeof STREAM_LIMITS;

const KINDS = ["session", "key", "address", "project"] as const;

export function createEventStreams(options: Partial<StreamLimits> = {}) {
  const limits: StreamLimits = { ...STREAM_LIMITS, ...options };
  const encoder = new TextEncoder();
  const cuts = new Set<(ending: Ending) => void>();
  const counts = new Map<string, number>();
  let closed = false;

  const countOf = (kind: string, id: string) => counts.get(`${kind} ${id}`) ?? 0;

  function count(owner: StreamOwner, change: 1 | -1): void {
    for (const kind of KINDS) {
      const id = owner[kind];
      if (id === undefined) continue;
      const left = countOf(kind, id) + change;
      if (left > 0) counts.set(`${kind} ${id}`, left);
      else counts.delete(`${kind} ${id}`);
    }
  }

  function refusal(owner: StreamOwner): string | undefined {
    const full = KINDS.find((kind) => owner[kind] !== undefined && countOf(kind, owner[kind]) >= limits[kind]);
    if (full) return `At most ${limits[full]} event streams per ${full} at a time`;
    if (cuts.size >= limits.server) return `At most ${limits.server} event streams at a time on this server`;
    return undefined;
  }

  return {
    /** Why no further one can be opened, for people; undefined: it can. */
    refusal,

    /**
     * The body of a response, which begins when it is read and writes no more than the connection takes. A client that reads nothing for a
     * minute is disconnected. `hurry` reduces that to a second. If there is no free slot when it begins, the stream is empty. `onUnread` is
     * called if `write` will not be.
     */
    open(
      owner: StreamOwner,
      write: Writer,
      hurry: () => void,
      onUnread: () => void = () => {},
    ): ReadableStream<Uint8Array> {
      const abort = new AbortController();
      let source: ReturnType<Writer> | undefined;
      let isAsked = false;
      let isOver = false;

      function cut(ending: Ending): void {
        if (!abort.signal.aborted) abort.abort(ending);
        // A client that has not read the previous events will not read the last one.
        if (!isAsked && !isOver && ending !== "gone") hurry();
      }

      function begin(): ReturnType<Writer> {
        cuts.add(cut);
        count(owner, 1);
        if (closed) abort.abort("stopping" satisfies Ending);
        return write({ signal: abort.signal, cut });
      }

      function finish(): void {
        if (isOver) return;
        isOver = true;
        cuts.delete(cut);
        count(owner, -1);
      }

      return new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            // Several streams may have seen the same free slot.
            if (!source && !closed && refusal(owner) !== undefined) {
              onUnread();
              return controller.close();
            }
            source ??= begin();
            isAsked = true;
            const next = await source.next().catch(() => ({ done: true as const, value: undefined }));
            isAsked = false;
            if (isOver) return;
            if (!next.done) return controller.enqueue(encoder.encode(next.value));
            finish();
            controller.close();
          },
          cancel() {
            cut("gone");
            void source?.return();
            if (source) finish();
            else onUnread();
          },
        },
        { highWaterMark: 0 },
      );
    },

    /** Ends all streams, and later ones at once, for the drain. */
    close(): void {
      closed = true;
      for (const cut of cuts) cut("stopping");
    },
  };
}

export type EventStreams = ReturnType<typeof createEventStreams>;
