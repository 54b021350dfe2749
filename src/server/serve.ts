/** One process that serves: all that stands between an open database and a server that has drained. */

import { createApp } from "./app.ts";
import type { Config, OidcConfig } from "../config.ts";
import { createAddressList } from "../http/address.ts";
import { descriptorLimit } from "../http/descriptors.ts";
import { createEventStreams, STREAM_LIMITS } from "../http/events.ts";
import { createOidc } from "../http/oidc.ts";
import { createOutbound, type Outbound } from "../http/outbound.ts";
import type { RateLimit } from "../http/rate_limit.ts";
import { startServer } from "../http/serve.ts";
import type { Log } from "../log.ts";
import { createMetrics, type Peers } from "./metrics.ts";
import { createLive } from "../operations/live.ts";
import { createVisitors } from "../request/visitors.ts";
import { createUploadThread } from "../request/upload_thread.ts";
import { type Attempts, createAttempts } from "../secrets/attempts.ts";
import { createPasswords } from "../secrets/passwords.ts";
import { createSeal } from "../secrets/seal.ts";
import { createGauges } from "../store/gauges.ts";
import { useAllConnections } from "../store/instance.ts";
import { schemaVersion } from "../database/migrate.ts";
import type { OpenDatabase } from "../database/open.ts";
import { createReadiness, DISK_FULL } from "../store/readiness.ts";
import { createSignals } from "../database/signals.ts";
import { OIDC_CALLBACK } from "../web/log_in.ts";
import { createDeliverer } from "../work/deliver.ts";
import { startLoops, watchConnections } from "../work/loops.ts";

/** Besides connections, the process itself has some fifty open. */
const OWN_DESCRIPTORS = 50;
const SENSIBLE_DESCRIPTORS = 1_024;
/** What may be lost does not keep a server that stops. */
const LAST_NOTES_MS = 1_000;
/** As long as requests are given. A statement that takes longer ends with its connection when the database is closed. */
const DRAIN_MS = 30_000;

/** A stream holds its connection: most of the descriptors are for others. */
const streamsFor = (maxDescriptors: number) => Math.min(STREAM_LIMITS.server, Math.floor(maxDescriptors / 4));

/** How many the process may have, and whether those are few. Throws when they are too few to begin. */
export function readDescriptors({ databasePool }: Pick<Config, "databasePool">) {
  const max = descriptorLimit();
  const needed = OWN_DESCRIPTORS + 2 * databasePool;
  if (max !== undefined && max < needed)
    throw new Error(
      `The limit of open files is ${max}, at least ${needed} are needed: raise it (ulimit -n), or lower DATABASE_POOL`,
    );
  return { max, isCramped: max !== undefined && max < SENSIBLE_DESCRIPTORS };
}

/** As `readDescriptors`, for whom only the log can tell. */
export function warnOfDescriptors({ max, isCramped }: ReturnType<typeof readDescriptors>, log: Log): void {
  if (isCramped)
    log.warn("The limit of open files is low, connections beyond it are refused: raise it (ulimit -n, LimitNOFILE)", {
      limit: max,
      sensible: SENSIBLE_DESCRIPTORS,
    });
}

export type ServeOptions = {
  config: Config;
  log: Log;
  /** Migrated; whoever has opened it closes it. */
  database: OpenDatabase;
  secretKey: Uint8Array;
  cursorSecret: Uint8Array;
  /** What several processes on one port have in common. */
  shared?: { rateLimit: RateLimit | undefined; attempts: Attempts; peers: Peers; isBackground: boolean };
};

/** `stop` resolves when all that had begun is done. */
export type Serving = { url: string; figures: ReturnType<typeof createMetrics>["figures"]; stop(): Promise<void> };

/** Resolves when it listens and answers. */
export async function serve(options: ServeOptions): Promise<Serving> {
  const { config, log, database, secretKey, cursorSecret, shared } = options;
  const { max: maxDescriptors, isCramped } = readDescriptors(config);
  let draining = false;

  const isReady = createReadiness(database, await schemaVersion(), (error) => log.error(DISK_FULL, { error }));
  const signals = createSignals(database.openListener);
  const live = createLive(database, { onError: (error) => log.warn("Cannot read what is watched", { error }) });
  const eventStreams = createEventStreams(maxDescriptors === undefined ? {} : { server: streamsFor(maxDescriptors) });
  const seal = createSeal(secretKey, config.secretKeyOld);
  const outbound = createOutbound({
    allow: config.outboundAllow,
    proxy: config.outboundProxy,
    onPrivate: (hostname, addresses) => log.info("Did not send to a private address", { hostname, addresses }),
  });
  const metrics = createMetrics({ database, gauges: createGauges(database), peers: shared?.peers });
  const deliverer = createDeliverer(database, { outbound, seal, onAttempt: metrics.delivery }, log);

  if (isCramped) await useAllConnections(database, config.databasePool);
  const server = startServer({ ...config, log, maxDescriptors, isShared: shared !== undefined });
  const publicUrl = config.publicUrl ?? server.url;
  const { maxInflatedBytes, retentionDays } = config;
  const { connection } = database;
  const settings = { connection, cursorSecret, publicUrl, maxInflatedBytes, retentionDays, secretKey };
  const uploadThread = createUploadThread(new URL("./upload_worker.ts", import.meta.url), settings);
  const sessions = createVisitors(database, {
    publicUrl,
    secret: cursorSecret,
    onNotSeen: (error) => log.warn("Cannot note that a session was seen", { error }),
  });
  const signIn = {
    passwords: createPasswords(),
    attempts: shared?.attempts ?? createAttempts(),
    policy: { allowedDomains: config.oidc?.allowedDomains ?? [], passwordLogin: config.passwordLogin },
    oidc: config.oidc && openOidc(config.oidc, { publicUrl, outbound, proxy: config.outboundProxy }),
  };
  const app = createApp({
    ...config,
    ...{ database, uploadThread, log, seal, outbound, cursorSecret, publicUrl, signals, metrics, live, eventStreams },
    ...{ sessions, visitors: sessions, signIn, rateLimit: shared?.rateLimit },
    isReady: async () => !draining && (await isReady()),
  });
  server.answerWith(app);
  const isBackground = shared?.isBackground ?? true;
  const watching = watchConnections(database, log);
  const loops = startLoops({
    ...config,
    ...{ database, publicUrl, log, seal, deliverer, isCramped, sweep: app.sweep, isBackground },
  });

  return {
    url: server.url,
    figures: metrics.figures,
    async stop() {
      draining = true;
      signals.close();
      eventStreams.close();
      const drained = Promise.all([loops.stop(), deliverer.stop(), server.stop()]);
      await Promise.race([drained, Bun.sleep(DRAIN_MS)]);
      app.sweep();
      await Promise.race([app.settled(), Bun.sleep(LAST_NOTES_MS)]);
      metrics.stop();
      uploadThread.close();
      await Promise.race([watching.stop(), Bun.sleep(LAST_NOTES_MS)]);
    },
  };
}

/** The operator has named the issuer, which may be private therefore; hosts that only the issuer names may not. */
function openOidc(
  config: OidcConfig,
  { publicUrl, outbound, proxy }: { publicUrl: string; outbound: Outbound; proxy: string | undefined },
) {
  const issuerOutbound = createOutbound({ allow: createAddressList(["0.0.0.0/0", "::/0"]), proxy });
  const redirectUri = `${publicUrl}${OIDC_CALLBACK}`;
  return { ...createOidc({ ...config, redirectUri, outbound, issuerOutbound }), host: new URL(config.issuer).host };
}
