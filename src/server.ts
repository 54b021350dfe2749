/** The listening server, and how it stops without losing what it has begun. */

import type { Connection } from "./app.ts";
import { segmentPatterns } from "./http/target.ts";

export type Handler = { fetch(request: Request, connection: Connection): Promise<Response> };

/** How long running requests may take to end once the server stops. */
const DRAIN_MS = 30_000;

type Segments = Record<string, string>;

/** Says what to do where an address cannot be listened on. */
function listening<T>(host: string, port: number, listen: () => T): T {
  try {
    return listen();
  } catch (error) {
    throw new Error(`Cannot listen on ${host}:${port}, set HOST and PORT to a free address: ${String(error)}`);
  }
}

/** `create` gets the server's own address. Throws when the address cannot be listened on. */
export function startServer({ host, port }: { host: string; port: number }, create: (url: string) => Handler) {
  let handler: Handler;
  const answer = (request: Request & { params?: Segments }, server: Bun.Server<undefined>) =>
    handler.fetch(request, {
      address: () => server.requestIP(request)?.address ?? "",
      allowSeconds: (seconds) => server.timeout(request, seconds),
      segments: () => request.params,
    });
  const server = listening(host, port, () =>
    Bun.serve({
      hostname: host,
      port,
      // Outside of development Bun 1.4.5 shares a port with whoever listens on it already; each gets some requests.
      reusePort: false,
      development: false,
      idleTimeout: 60,
      // Bun's own answer to a large body would not be ours: bodies are counted while they are read.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      routes: Object.fromEntries(segmentPatterns().map((pattern) => [pattern, answer])),
      fetch: answer,
      error: () => Response.json({ error: { code: "INTERNAL_ERROR", message: "Internal error" } }, { status: 500 }),
    }),
  );
  const shownHost = host === "0.0.0.0" || host === "::" ? "localhost" : host.includes(":") ? `[${host}]` : host;
  const url = `http://${shownHost}:${server.port}`;
  handler = create(url);

  return {
    url,
    /** Takes no new connections, lets running requests end, and closes what is left. */
    async stop(): Promise<void> {
      const closed = server.stop();
      const until = performance.now() + DRAIN_MS;
      while (server.pendingRequests > 0 && performance.now() < until) await Bun.sleep(20);
      // An idle connection would keep the server open for seconds; what was answered a moment ago must still go out.
      await Promise.race([closed, Bun.sleep(200)]);
      await server.stop(true);
    },
  };
}
