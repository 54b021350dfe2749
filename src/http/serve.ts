/** The listening server, and how it stops without losing anything. */

import { segmentPatterns } from "./target.ts";

/** Information about a request's connection. */
export type Connection = {
  address: () => string;
  allowSeconds: (seconds: number) => void;
  /** The decoded segments of the path as sent. Undefined if one is empty, or if there are more than any of our paths has. */
  segments: () => Record<string, string> | undefined;
};

type Handler = { fetch(request: Request, connection: Connection): Promise<Response> };

/**
 * Maximum number of requests answered in one turn of the event loop. Bun passes on all requests that a connection has sent at once, and an
 * immediate answer lets it continue with the next: thousands would delay all other clients. It closes a connection that sends another
 * request before the previous one is answered.
 */
const MAX_PER_TURN = 32;
/** Maximum time for running requests to finish once the server stops. */
const DRAIN_MS = 30_000;
type Segments = Record<string, string>;
type SentRequest = Request & { params?: Segments };

/** A class, because closures would be made anew for every request. */
class ServerConnection implements Connection {
  readonly #request: SentRequest;
  readonly #server: Bun.Server<undefined>;

  constructor(request: SentRequest, server: Bun.Server<undefined>) {
    this.#request = request;
    this.#server = server;
  }

  address(): string {
    return this.#server.requestIP(this.#request)?.address ?? "";
  }

  allowSeconds(seconds: number): void {
    this.#server.timeout(this.#request, seconds);
  }

  segments(): Segments | undefined {
    return this.#request.params;
  }
}

/** Explains why an address cannot be listened on. */
function listening<T>(host: string, port: number, listen: () => T): T {
  try {
    return listen();
  } catch (error) {
    // The error of the runtime blames the port also for an address that this machine does not have.
    const isForbidden = (error as { code?: string }).code === "EACCES";
    const reason = isForbidden
      ? "this account may not use the port"
      : "another program uses the port, or this machine does not have the address";
    throw new Error(`Cannot listen on ${host}:${port}: ${reason}. Set HOST and PORT to a free address`, {
      cause: error,
    });
  }
}

export type ServerOptions = {
  host: string;
  port: number;
};

/** The address of a server that listens on this host and port, as a browser on the same machine reaches it. */
function toServerUrl(host: string, port: number): string {
  const shown = host === "0.0.0.0" || host === "::" ? "localhost" : host.includes(":") ? `[${host}]` : host;
  return `http://${shown}:${port}`;
}

/** Returns a free port: `port`, or any for 0. Throws if the address cannot be listened on. */
export async function findPort(host: string, port: number): Promise<number> {
  const listener = listening(host, port, () =>
    Bun.serve({ hostname: host, port, reusePort: false, development: false, fetch: () => new Response() }),
  );
  const found = listener.port!;
  await listener.stop(true);
  return found;
}

/** Listens at once; requests before there is a handler wait for it. Throws if the address cannot be listened on. */
export function startServer({ host, port }: ServerOptions) {
  const { promise: ready, resolve: setReady } = Promise.withResolvers<Handler>();
  let handler: Handler | undefined;

  let begunInTurn = 0;

  const answer = (request: SentRequest, server: Bun.Server<undefined>) => {
    const connection = new ServerConnection(request, server);
    if (begunInTurn++ === 0) setImmediate(() => (begunInTurn = 0));
    if (handler && begunInTurn <= MAX_PER_TURN) return handler.fetch(request, connection);
    const turn = handler ? new Promise<Handler>((next) => setImmediate(next, handler)) : ready;
    return turn.then((handler) => handler.fetch(request, connection));
  };
  const listener = listening(host, port, () =>
    Bun.serve({
      hostname: host,
      port,
      // Otherwise Bun 1.4.5 shares the port with another process that listens on it; each gets some requests.
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

  return {
    url: toServerUrl(host, listener.port!),

    /** Sets the handler; requests that were waiting are answered too. */
    answerWith(given: Handler): void {
      handler = given;
      setReady(given);
    },

    /** Accepts no new connections, lets running requests finish, and closes the rest. */
    async stop(): Promise<void> {
      const closed = listener.stop();
      const until = performance.now() + DRAIN_MS;
      const isBusy = () => listener.pendingRequests > 0 && performance.now() < until;
      do {
        while (isBusy()) await Bun.sleep(20);
        // An idle connection would keep the server open for seconds; what was answered a moment ago must still go out, and
        // a request that was on its way when this began is one that runs.
        await Promise.race([closed, Bun.sleep(200)]);
      } while (isBusy());
      await listener.stop(true);
    },
  };
}
