/** Streams of events on a real server, with clients of all kinds. */

import { afterAll, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import {
  createEventStreams,
  type StreamControl,
  type StreamOwner,
  toEventText,
  toKeepAlive,
  type Writer,
} from "../../src/http/events.ts";
import { isFull } from "../depth.ts";
import { until } from "../harness.ts";

const CHUNK = "x".repeat(65_536);

/** A server whose streams all say what `write` does. */
function serve(write: Writer, options = {}) {
  const streams = createEventStreams(options);
  const server = Bun.serve({
    port: 0,
    idleTimeout: 60,
    fetch: (request, server) =>
      new Response(streams.open({ project: "acme" }, write, () => server.timeout(request, 1))),
  });
  afterAll(() => server.stop(true));
  return { streams, server };
}

/** A client that asks, and then reads nothing. */
async function deafClient(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.pause();
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  afterAll(() => void socket.destroy());
  return socket;
}

/** Waits until it does not change any more. */
async function settled(count: () => number): Promise<number> {
  let last = -1;
  let looks = 0;
  await until(() => {
    looks = count() === last && last > 0 ? looks + 1 : 0;
    last = count();
    return looks === 20;
  }, 10);
  return last;
}

/** Writes itself until nobody reads. */
function createFlood() {
  let chunks = 0;
  let control: StreamControl | undefined;
  const write: Writer = async function* (given) {
    control = given;
    for (; !given.signal.aborted; chunks++) yield CHUNK;
    yield "the end";
  };
  return { write, chunks: () => chunks, cut: () => control!.cut("revoked") };
}

test("nothing is written that the connection does not take", async () => {
  const flood = createFlood();
  const { server } = serve(flood.write);
  await deafClient(server.port!);
  // What the system buffers between the two ends; at full speed it would be gigabytes by then.
  expect(await settled(flood.chunks)).toBeLessThan(400);
});

test.skipIf(!isFull)(
  "who takes nothing is closed within seconds when the stream is to end",
  async () => {
    const flood = createFlood();
    const { server, streams } = serve(flood.write);
    await deafClient(server.port!);
    await settled(flood.chunks);
    flood.cut();
    await until(() => server.pendingRequests === 0);
    expect(streams.refusal({ project: "acme" })).toBeUndefined();
  },
  30_000,
);

test("who reads gets everything and the last word", async () => {
  const flood = createFlood();
  const { server, streams } = serve(flood.write);
  const response = await fetch(server.url);
  let length = 0;
  let tail = "";
  for await (const bytes of response.body!) {
    length += bytes.byteLength;
    tail = (tail + new TextDecoder().decode(bytes)).slice(-20);
    if (length > 20 * CHUNK.length) streams.close();
  }
  expect(tail).toEndWith("xthe end");
  expect(length).toBe(flood.chunks() * CHUNK.length + 7);
});

test("a server that stops ends all streams, and what is opened then ends at once", async () => {
  const quiet: Writer = async function* ({ signal }) {
    yield "hello ";
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    yield `bye: ${signal.reason}`;
  };
  const { server, streams } = serve(quiet);
  const early = await Promise.all([fetch(server.url), fetch(server.url)]);
  streams.close();
  for (const response of [...early, await fetch(server.url)]) expect(await response.text()).toBe("hello bye: stopping");
});

test("there are as many as may be: a place is taken when a stream begins, and free when it ends, however it does", async () => {
  const endings: string[] = [];
  const quiet: Writer = async function* ({ signal }) {
    try {
      yield "hello";
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    } finally {
      endings.push(signal.reason);
    }
  };
  const { server, streams } = serve(quiet, { server: 3, project: 2 });
  // A response that nobody asks the body of.
  streams.open({ project: "acme" }, quiet, () => {});
  const open = async () => {
    const abort = new AbortController();
    const response = await fetch(server.url, { signal: abort.signal });
    await response.body!.getReader().read();
    return abort;
  };
  const first = await open();
  expect(streams.refusal({ project: "acme" })).toBeUndefined();
  await open();
  expect(streams.refusal({ project: "acme" })).toBe("At most 2 event streams per project at a time");
  expect(streams.refusal({ project: "rival" })).toBeUndefined();
  const third = streams.open({ project: "rival" }, quiet, () => {}).getReader();
  await third.read();
  expect(streams.refusal({ project: "rival" })).toBe("At most 3 event streams at a time on this server");
  first.abort();
  await until(() => streams.refusal({ project: "acme" }) === undefined);
  expect(endings).toEqual(["gone"]);
  await third.cancel();
  await until(() => endings.length === 2);
});

/** A stream that has begun. */
async function begin(streams: ReturnType<typeof createEventStreams>, owner: StreamOwner) {
  const reader = streams
    .open(
      owner,
      async function* () {
        for (;;) yield "hello";
      },
      () => {},
    )
    .getReader();
  return { reader, hasBegun: !(await reader.read()).done };
}

test("one session, one key and one address have fewer than a project, so that others get theirs", async () => {
  const streams = createEventStreams({ session: 2, key: 2, address: 3, project: 5 });
  const ada = { session: "ada", address: "192.0.2.1", project: "acme" };
  const grace = { ...ada, session: "grace" };
  const elsewhere = { session: "alan", address: "192.0.2.2", project: "acme" };
  const key = { key: "ci", project: "acme" };
  const readers = [await begin(streams, ada), await begin(streams, ada)];
  expect(streams.refusal(ada)).toBe("At most 2 event streams per session at a time");
  readers.push(await begin(streams, grace));
  expect(streams.refusal(grace)).toBe("At most 3 event streams per address at a time");
  readers.push(await begin(streams, elsewhere), await begin(streams, key));
  expect(streams.refusal(elsewhere)).toBe("At most 5 event streams per project at a time");
  expect(streams.refusal({ ...key, project: "rival" })).toBeUndefined();
  readers.push(await begin(streams, { ...key, project: "rival" }));
  expect(streams.refusal({ ...key, project: "third" })).toBe("At most 2 event streams per key at a time");
  for (const { reader } of readers) await reader.cancel();
  for (const owner of [ada, grace, elsewhere, key]) expect(streams.refusal(owner)).toBeUndefined();
});

test("streams that are asked for at the same moment are not more than there may be", async () => {
  const streams = createEventStreams({ session: 3 });
  const owner = { session: "ada", project: "acme" };
  const opened = await Promise.all(Array.from({ length: 10 }, () => begin(streams, owner)));
  expect(opened.filter(({ hasBegun }) => hasBegun)).toHaveLength(3);
  for (const { reader } of opened) await reader.cancel();
  expect((await begin(streams, owner)).hasBegun).toBe(true);
});

test("a stream whose writer fails ends", async () => {
  const { server, streams } = serve(
    async function* () {
      yield "hello";
      throw new Error("broken");
    },
    { project: 1 },
  );
  expect(await (await fetch(server.url)).text()).toBe("hello");
  expect(streams.refusal({ project: "acme" })).toBeUndefined();
});

test("an event is one block, whatever its data hold", () => {
  expect(toEventText({ id: "7", event: "log", data: { text: "a\n\nb\r\u2028" } })).toBe(
    'id: 7\nevent: log\ndata: {"text":"a\\n\\nb\\r\u2028"}\n\n',
  );
  expect([toKeepAlive(), toKeepAlive("7")]).toEqual([":\n\n", ":\nid: 7\n\n"]);
});
