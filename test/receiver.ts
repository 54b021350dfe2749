/** A recording fake of every outside system: plays scripted answers, and keeps whole requests. */

import { afterAll, expect } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import * as v from "valibot";
import { webhookBodies } from "../src/schema/event_bodies.ts";
import { createAddressList } from "../src/http/address.ts";
import { createOutbound } from "../src/http/outbound.ts";

export type Recorded = { method: string; path: string; headers: Record<string, string>; body: any; text: string };

type Scripted = { status: number; body?: unknown; headers?: Record<string, string> };
/** What it answers with; "hang" is no answer. */
export type Script = Scripted | "hang" | ((request: Recorded) => Scripted | Promise<Scripted>);

/** What of the body of a webhook is not as the OpenAPI document describes it. */
function undescribedFields(body: any): string[] {
  const { issues = [] } = v.safeParse(webhookBodies[body.type] ?? v.never(), body);
  return issues.map((issue) => `${body.type}: ${v.getDotPath(issue)}: ${issue.message}`);
}

/** Listens on a port of its own. Each script is played once, the last one for ever after. */
export function createReceiver(...scripts: Script[]) {
  const requests: Recorded[] = [];
  let script = scripts.length > 0 ? [...scripts] : [{ status: 200 } as Script];
  const undescribed: string[] = [];
  const hanging = new Set<() => void>();

  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const text = await request.text();
      const isJson = /json/.test(request.headers.get("content-type") ?? "");
      const recorded: Recorded = {
        method: request.method,
        path: `${pathname}${search}`,
        headers: Object.fromEntries(request.headers),
        body: isJson && text !== "" ? JSON.parse(text) : null,
        text,
      };
      requests.push(recorded);
      if (recorded.headers["webhook-id"] !== undefined) undescribed.push(...undescribedFields(recorded.body));
      const next = script.length > 1 ? script.shift()! : script[0]!;
      if (next === "hang") {
        const { promise, resolve } = Promise.withResolvers<Response>();
        hanging.add(() => resolve(new Response("late")));
        return await promise;
      }
      const { status, body, headers } = typeof next === "function" ? await next(recorded) : next;
      return new Response(body === undefined || typeof body === "string" ? (body ?? "") : JSON.stringify(body), {
        status,
        headers: headers ?? {},
      });
    },
  });
  afterAll(async () => {
    for (const end of hanging) end();
    await server.stop(true);
    expect(undescribed).toEqual([]);
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    /** What comes next. */
    play: (...next: Script[]) => void (script = [...next]),
  };
}

export type Receiver = ReturnType<typeof createReceiver>;

/** Closes every connection once something was sent on it. */
export async function createResettingReceiver(): Promise<{ url: string; count: () => number }> {
  let count = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("data", () => {
      count++;
      socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}`, count: () => count };
}

/**
 * A proxy that opens tunnels and passes requests on, and keeps the head of each; `answer` is what it says instead.
 * `url` has the user "operator" with the password "hunter2".
 */
export async function createProxy(answer?: string): Promise<{ url: string; heads: string[] }> {
  const heads: string[] = [];
  const server = createServer((client) => {
    client.on("error", () => {});
    let head = "";
    client.on("data", function read(chunk: Buffer) {
      head += chunk.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      client.off("data", read);
      heads.push(head.slice(0, head.indexOf("\r\n\r\n")));
      if (answer !== undefined) return void client.end(answer);
      const [, method, authority, path, rest] = /^(\w+) (?:http:\/\/)?([^/ ]+)(\S*)( HTTP[^]*)$/.exec(head)!;
      const { hostname, port } = new URL(`http://${authority}`);
      const upstream = connect(Number(port) || 80, hostname.replace(/[[\]]/g, ""), () => {
        if (method === "CONNECT") client.write("HTTP/1.1 200 Connection established\r\n\r\n");
        else upstream.write(`${method} ${path}${rest}`, "latin1");
        client.pipe(upstream).pipe(client);
      });
      upstream.on("error", () => client.end("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(() => void server.close());
  return { url: `http://operator:hunter2@127.0.0.1:${(server.address() as { port: number }).port}`, heads };
}

/** Outbound requests that may reach the receivers; short, so that a receiver that hangs costs little. */
export const outboundToReceivers = (timeoutMs = 300) =>
  createOutbound({ allow: createAddressList(["127.0.0.0/8"]), timeoutMs });
