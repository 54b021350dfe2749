/** Runs a server on an open database until it has drained. */

import { composeServer } from "./composition.ts";
import { type Config, retentionOf } from "../config.ts";
import { descriptorLimit } from "../http/descriptors.ts";
import { STREAM_LIMITS } from "../http/events.ts";
import type { Log } from "../log.ts";
import { useAllConnections } from "../store/instance.ts";
import { schemaVersion } from "../database/migrate.ts";
import type { OpenDatabase } from "../database/open.ts";
import { createReadiness, DISK_FULL } from "../store/readiness.ts";
import { createDeliverer } from "../work/deliver.ts";
import { startLoops, watchConnections } from "../work/loops.ts";

/** Besides connections, the process itself has some fifty open. */
const OWN_DESCRIPTORS = 50;
const SENSIBLE_DESCRIPTORS = 1_024;
/** Maximum time that a stopping server waits for records whose loss is acceptable. */
const LAST_NOTES_MS = 1_000;
/** Equal to the time that requests get. A statement that takes longer ends with its connection when the database is closed. */
const DRAIN_MS = 30_000;

/** A stream holds its connection: most of the descriptors are for others. */
const streamsFor = (maxDescriptors: number) => Math.min(STREAM_LIMITS.server, Math.floor(maxDescriptors / 4));

/** Returns the limit of file descriptors and whether it is low. Throws if it is too low to start. */
export function readDescriptors({ databasePool }: Pick<Config, "databasePool">) {
  const max = descriptorLimit();
  const needed = OWN_DESCRIPTORS + 2 * databasePool;
  if (max !== undefined && max < needed)
    throw new Error(
      `The limit of open files is ${max}, at least ${needed} are needed: raise it (ulimit -n), or lower DATABASE_POOL`,
    );
  return { max, isCramped: max !== undefined && max < SENSIBLE_DESCRIPTORS };
}

/** Warns of a low limit that `readDescriptors` found. */
export function warnOfDescriptors({ max, isCramped }: ReturnType<typeof readDescriptors>, log: Log): void {
  if (isCramped)
    log.warn(
      "The limit of open files is low and connections beyond it are refused: raise it (ulimit -n, LimitNOFILE)",
      {
        limit: max,
        sensible: SENSIBLE_DESCRIPTORS,
      },
    );
}

type ServeOptions = {
  config: Config;
  log: Log;
  /** The migrated database; the caller closes it. */
  database: OpenDatabase;
  secretKey: Uint8Array;
  cursorSecret: Uint8Array;
  /** Runs when the server listens, before it is ready: programs that wait for `/readyz` read the printed text. */
  announce: (url: string) => Promise<void>;
};

/** `stop` resolves when all that had begun is done. */
type Serving = { url: string; stop(): Promise<void> };

/** Resolves when it listens and answers. */
export async function serve(options: ServeOptions): Promise<Serving> {
  const { config, log, database, announce } = options;
  const { max: maxDescriptors, isCramped } = readDescriptors(config);
  let isAnnounced = false;
  let draining = false;

  const canServe = createReadiness(database, await schemaVersion(), (error) =>
    log.error(DISK_FULL, { reason: (error as Error).message }),
  );
  if (isCramped) await useAllConnections(database, config.databasePool);
  const server = composeServer({
    ...options,
    streamLimits: maxDescriptors === undefined ? {} : { server: streamsFor(maxDescriptors) },
    isReady: async () => isAnnounced && !draining && (await canServe()),
  });
  const { app, metrics, outbound, publicUrl, seal, attachments } = server;
  const deliverer = createDeliverer(database, { outbound, seal, onAttempt: metrics.delivery }, log);
  const watching = watchConnections(database, log);
  const loops = startLoops({
    ...config,
    attachments,
    retention: retentionOf(config),
    onDeleted: metrics.deleted,
    ...{ database, publicUrl, log, seal, deliverer, isCramped, sweep: app.sweep },
  });

  const serving: Serving = {
    url: server.url,
    async stop() {
      draining = true;
      const drained = Promise.all([server.drain(), loops.stop(), deliverer.stop()]);
      await Promise.race([drained, Bun.sleep(DRAIN_MS)]);
      app.sweep();
      await Promise.race([app.settled(), Bun.sleep(LAST_NOTES_MS)]);
      server.close();
      await Promise.race([watching.stop(), Bun.sleep(LAST_NOTES_MS)]);
    },
  };
  try {
    await announce(server.url);
  } catch (error) {
    await serving.stop();
    throw error;
  }
  isAnnounced = true;
  return serving;
}
