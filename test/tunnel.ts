/** PostgreSQL at a port, and ways for its connections to fail. */

import { afterAll } from "bun:test";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { ConnectionOptions } from "../src/database/connect.ts";

/** `connection` is by a Unix socket, as that of the tests is. To be closed by who starts it. */
export async function startTunnel(connection: ConnectionOptions) {
  const { host, port } = connection as { host: string; port: number };
  const pairs = new Set<{ client: Socket; upstream: Socket; isSilent: boolean }>();
  const server = createServer((client) => {
    const upstream = connect(`${host}/.s.PGSQL.${port}`);
    const pair = { client, upstream, isSilent: false };
    pairs.add(pair);
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) socket.on("error", () => {});
    // What has fallen silent does not pass on an end either.
    client.on("close", () => {
      if (!pair.isSilent) upstream.destroy();
    });
    upstream.on("close", () => {
      pairs.delete(pair);
      if (!pair.isSilent) client.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    options: { host: "127.0.0.1", port: (server.address() as AddressInfo).port },
    /** Lets nothing more through to PostgreSQL of those that are open. */
    stall: () => pairs.forEach(({ client }) => client.unpipe().pause()),
    /** Lets nothing more through of those that are open, in either direction, and closes nothing. Answers how many. */
    silence(): number {
      const open = [...pairs].filter(({ isSilent }) => !isSilent);
      for (const pair of open) {
        pair.isSilent = true;
        for (const socket of [pair.client, pair.upstream]) socket.unpipe().pause();
      }
      return open.length;
    },
    /** Lets everything through again. */
    resume() {
      for (const pair of pairs) {
        pair.isSilent = false;
        pair.client.pipe(pair.upstream).pipe(pair.client);
      }
    },
    reset: () => pairs.forEach(({ client }) => client.resetAndDestroy()),
    close() {
      server.close();
      for (const { client, upstream } of pairs) for (const socket of [client, upstream]) socket.destroy();
    },
  };
}

/** The same, until the end of the test file. */
export async function createTunnel(connection: ConnectionOptions) {
  const tunnel = await startTunnel(connection);
  afterAll(tunnel.close);
  return tunnel;
}
