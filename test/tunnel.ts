/** PostgreSQL at a port, and ways for its connections to fail. */

import { afterAll } from "bun:test";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { ConnectionOptions } from "../src/store/connect.ts";

/** `connection` is by a Unix socket, as that of the tests is. */
export async function createTunnel(connection: ConnectionOptions) {
  const { host, port } = connection as { host: string; port: number };
  const clients: Socket[] = [];
  const server = createServer((client) => {
    clients.push(client);
    const upstream = connect(`${host}/.s.PGSQL.${port}`);
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) socket.on("error", () => {});
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(() => void server.close());
  return {
    options: { host: "127.0.0.1", port: (server.address() as AddressInfo).port },
    /** Lets nothing more through of those that are open. */
    stall: () => clients.forEach((client) => client.unpipe().pause()),
    reset: () => clients.forEach((client) => client.resetAndDestroy()),
  };
}
