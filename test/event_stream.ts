/** A client of event streams: reads one over HTTP, and keeps what it was told. */

import { until } from "./harness.ts";

export type Told = { id: string | undefined; event: string; data: any };

export type StreamOptions = {
  key: string;
  query?: string;
  lastEventId?: string | undefined;
  /** What every event is given to as it comes. */
  onTold?: (told: Told) => void;
};

/** `url` is that of a server. */
export async function openStream(url: string, project: string, options: StreamOptions) {
  const { key, query = "", lastEventId, onTold } = options;
  const abort = new AbortController();
  const response = await fetch(`${url}/api/v1/projects/${project}/events${query}`, {
    headers: { authorization: `Bearer ${key}`, ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }) },
    signal: abort.signal,
  });
  const told: Told[] = [];
  const stream = { status: response.status, headers: response.headers, told, raw: "", lastId: lastEventId };
  let isOver = false;

  function take(block: string): void {
    const fields = new Map<string, string>();
    for (const line of block.split("\n")) {
      const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
      if (name !== undefined) fields.set(name, value!);
    }
    if (fields.has("id")) stream.lastId = fields.get("id");
    const [data, event] = [fields.get("data"), fields.get("event")];
    if (data === undefined) return;
    told.push({ id: fields.get("id"), event: event!, data: JSON.parse(data) });
    onTold?.(told.at(-1)!);
  }

  async function read(): Promise<void> {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const bytes of response.body!) {
      const text = decoder.decode(bytes as Uint8Array, { stream: true });
      stream.raw += text;
      const blocks = (rest + text).split("\n\n");
      rest = blocks.pop()!;
      for (const block of blocks) take(block);
    }
  }

  const over = (response.body ? read() : Promise.resolve())
    .catch(() => {})
    .finally(() => {
      isOver = true;
    });

  return Object.assign(stream, {
    over,
    isOver: () => isOver,
    /** Those with a name. */
    named: (event: string) => told.filter((one) => one.event === event),
    /** Waits until one with this name has come that `fits`. */
    async hears(event: string, fits: (data: any) => boolean = () => true): Promise<any> {
      const find = () => told.find((one) => one.event === event && fits(one.data));
      await until(() => find() !== undefined, 15);
      return find()!.data;
    },
    async close(): Promise<void> {
      abort.abort();
      await over;
    },
  });
}

export type EventStream = Awaited<ReturnType<typeof openStream>>;
