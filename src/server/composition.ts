/** Puts one server together on an open database. `serve.ts` runs it with its loops; tests run it by itself. */

import { type AppOptions, createApp } from "./app.ts";
import { openAttachments } from "../attachments/store.ts";
import { join } from "node:path";
import { createMetrics } from "./metrics.ts";
import type { Config, OidcConfig } from "../config.ts";
import { createAddressList } from "../http/address.ts";
import { createEventStreams, type StreamLimits } from "../http/events.ts";
import { createOidc } from "../http/oidc.ts";
import { createOutbound, type Outbound } from "../http/outbound.ts";
import { startServer } from "../http/serve.ts";
import type { Log } from "../log.ts";
import { createLive } from "../operations/live/live.ts";
import { createUploadThread } from "../request/upload_thread.ts";
import { createVisitors } from "../request/visitors.ts";
import { createAttempts } from "../secrets/attempts.ts";
import { createPasswords } from "../secrets/passwords.ts";
import { createSeal } from "../secrets/seal.ts";
import type { Database } from "../database/connect.ts";
import { createSignals } from "../database/signals.ts";
import { createGauges } from "../store/gauges.ts";
import { OIDC_CALLBACK } from "../web/pages/log_in/provider.tsx";

/** The program of the thread that reads large uploads. */
export const UPLOAD_WORKER = new URL("./upload_worker.ts", import.meta.url);

type CompositionOptions = {
  config: Config;
  log: Log;
  database: Database;
  secretKey: Uint8Array;
  cursorSecret: Uint8Array;
  isReady: AppOptions["isReady"];
  /** The limits of open event streams; default: those of docs/events.md. */
  streamLimits?: Partial<StreamLimits> | undefined;
  /** How pages identify the visitor; default: by the session cookie. */
  visitors?: AppOptions["visitors"] | undefined;
  /** Creates the sign-in for the server with this public address; default: as configured. */
  signIn?: ((publicUrl: string) => AppOptions["signIn"]) | undefined;
  clock?: AppOptions["clock"] | undefined;
};

/** Listens and answers when it returns. Throws if the address cannot be listened on. */
export function composeServer(options: CompositionOptions) {
  const { config, log, database, secretKey, cursorSecret, isReady, clock } = options;
  const signals = createSignals(database.openListener);
  const live = createLive(database, { onError: (error) => log.warn("Cannot read live events", { error }) });
  const eventStreams = createEventStreams(options.streamLimits);
  const seal = createSeal(secretKey, config.secretKeyOld);
  const outbound = createOutbound({
    allow: config.outboundAllow,
    proxy: config.outboundProxy,
    onPrivate: (hostname, addresses) => log.info("Refused to send to a private address", { hostname, addresses }),
  });
  const { dataDir, databaseUrl } = config;
  const directories = {
    data: dataDir,
    ...(databaseUrl === undefined ? { database: join(dataDir, "postgres") } : {}),
    ...(config.attachments.s3 ? {} : { attachments: config.attachments.directory }),
  };
  const metrics = createMetrics({ database, gauges: createGauges(database), directories });

  const attachments = openAttachments(config.attachments, {
    onSpoolError: (error) => log.error("Cannot write an attachment that arrives", { error }),
    counters: metrics.attachments,
  });

  const server = startServer(config);
  const publicUrl = config.publicUrl ?? server.url;
  const uploadThread = createUploadThread(
    UPLOAD_WORKER,
    {
      connection: database.connection,
      ...{ cursorSecret, publicUrl, secretKey },
      maxInflatedBytes: config.maxInflatedBytes,
      retentionDays: config.retentionDays,
      attachments: config.attachments,
    },
    metrics.attachments,
  );
  const sessions = createVisitors(database, {
    publicUrl,
    secret: cursorSecret,
    onNotSeen: (error) => log.warn("Cannot record the use of a session", { error }),
  });
  const app = createApp({
    ...config,
    ...{ database, uploadThread, log, seal, outbound, cursorSecret, publicUrl, signals, metrics, live, eventStreams },
    attachments,
    ...{ sessions, isReady },
    visitors: options.visitors ?? sessions,
    signIn: options.signIn?.(publicUrl) ?? configuredSignIn(config, { publicUrl, outbound }),
    ...(clock ? { clock } : {}),
  });
  server.answerWith(app);

  return {
    url: server.url,
    ...{ publicUrl, app, metrics, seal, outbound, eventStreams, attachments },

    /** Ends the requests that wait or stream; resolves when all that had begun are answered. */
    drain(): Promise<void> {
      signals.close();
      eventStreams.close();
      return server.stop();
    },

    /** Stops everything that runs besides requests. Call it after `drain`. */
    close(): void {
      metrics.stop();
      uploadThread.close();
    },
  };
}

type SignInOptions = { publicUrl: string; outbound: Outbound };

function configuredSignIn(config: Config, { publicUrl, outbound }: SignInOptions): AppOptions["signIn"] {
  const { oidc, passwordLogin, outboundProxy: proxy } = config;
  return {
    passwords: createPasswords(),
    attempts: createAttempts(),
    policy: { allowedDomains: oidc?.allowedDomains ?? [], passwordLogin },
    oidc: oidc && openOidc(oidc, { publicUrl, outbound, proxy }),
  };
}

type OidcSurroundings = { publicUrl: string; outbound: Outbound; proxy: string | undefined };

/** The operator names the issuer, so it may have a private address; hosts that only the issuer names may not. */
function openOidc(config: OidcConfig, { publicUrl, outbound, proxy }: OidcSurroundings) {
  const issuerOutbound = createOutbound({ allow: createAddressList(["0.0.0.0/0", "::/0"]), proxy });
  const redirectUri = `${publicUrl}${OIDC_CALLBACK}`;
  return { ...createOidc({ ...config, redirectUri, outbound, issuerOutbound }), host: new URL(config.issuer).host };
}
