/** Streams of Server-Sent Events: how they are written, how many there are, and how they end. */

/** `id` is what a client that comes back says in Last-Event-ID; without `event` it is only noted. */
export type ServerSentEvent = { id?: string; event: string; data: unknown };

export const toEventText = ({ id, event, data }: ServerSentEvent): string =>
  `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

/** Keeps the connection: proxies, and Bun, close it after a minute of silence. `id` is how far the stream has come. */
export const toKeepAlive = (id?: string): string => `:\n${id === undefined ? "" : `id: ${id}\n`}\n`;

/** Why a stream is to end: the server stops, its key was revoked, or nobody is there any more. */
export type Ending = "stopping" | "revoked" | "gone";

export type StreamControl = {
  /** Aborted, with an Ending as its reason, when the stream is to end; then it may still say a last word. */
  signal: AbortSignal;
  /** Ends the stream even where its client takes nothing. */
  cut(ending: Ending): void;
};

/** What a stream says; it is asked for more only when the connection can take it. */
export type Writer = (control: StreamControl) => AsyncGenerator<string, void>;

export type EventStreamsOptions = { max?: number; maxPerOwner?: number };

export function createEventStreams({ max = 500, maxPerOwner = 50 }: EventStreamsOptions = {}) {
  const encoder = new TextEncoder();
  const cuts = new Set<(ending: Ending) => void>();
  const owners = new Map<string, number>();
  let closed = false;

  function count(owner: string, change: 1 | -1): void {
    const left = (owners.get(owner) ?? 0) + change;
    if (left > 0) owners.set(owner, left);
    else owners.delete(owner);
  }

  return {
    /** Why no further one can be opened, for people; undefined: it can. */
    refusal(owner: string): string | undefined {
      if ((owners.get(owner) ?? 0) >= maxPerOwner) return `At most ${maxPerOwner} event streams per project at a time`;
      if (cuts.size >= max) return `At most ${max} event streams at a time on this server`;
      return undefined;
    },

    /**
     * The body of a response: nothing begins before it is read, and no more is written than the connection takes. A
     * client that takes nothing for a minute is closed by the server. `hurry` shall make that a second.
     */
    open(owner: string, write: Writer, hurry: () => void): ReadableStream<Uint8Array> {
      const abort = new AbortController();
      let source: ReturnType<Writer> | undefined;
      let isAsked = false;
      let isOver = false;

      function cut(ending: Ending): void {
        if (!abort.signal.aborted) abort.abort(ending);
        // Who has not taken what was said before does not ask for the last word.
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
          },
        },
        { highWaterMark: 0 },
      );
    },

    /** Ends all, and what comes later at once, for the drain. */
    close(): void {
      closed = true;
      for (const cut of cuts) cut("stopping");
    },
  };
}

export type EventStreams = ReturnType<typeof createEventStreams>;
