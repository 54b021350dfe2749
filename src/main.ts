/** Starts Assay: configuration, database, migrations, server, loops; and ends it in the reverse order. */

import { createApp } from "./app.ts";
import { type OidcConfig, readConfig } from "./config.ts";
import { createAddressList } from "./http/address.ts";
import { descriptorLimit } from "./http/descriptors.ts";
import { createEventStreams } from "./http/events.ts";
import { createOidc } from "./http/oidc.ts";
import { createOutbound, type Outbound } from "./http/outbound.ts";
import { startServer } from "./http/serve.ts";
import { createLog } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { createSetupToken } from "./operations/accounts.ts";
import { createFirstProject, setupUrl, welcome } from "./operations/first_project.ts";
import { createLive } from "./operations/live.ts";
import { loadSecretKey } from "./operations/secret_key.ts";
import { createVisitors } from "./request/visitors.ts";
import { createUploadThread } from "./request/upload_thread.ts";
import { createAttempts } from "./secrets/attempts.ts";
import { createPasswords } from "./secrets/passwords.ts";
import { createSeal } from "./secrets/seal.ts";
import { createGauges } from "./store/gauges.ts";
import { selectCursorSecret, useAllConnections } from "./store/instance.ts";
import { migrate, schemaVersion } from "./store/migrate.ts";
import { openDatabase } from "./store/open.ts";
import { selectAnyTeam } from "./store/projects.ts";
import { createReadiness } from "./store/readiness.ts";
import { createSignals } from "./store/signals.ts";
import { OIDC_CALLBACK } from "./web/log_in.ts";
import { createDeliverer } from "./work/deliver.ts";
import { startLoops } from "./work/loops.ts";

/** Besides connections, the process itself has some fifty open. */
const OWN_DESCRIPTORS = 50;
const SENSIBLE_DESCRIPTORS = 1_024;
/** What may be lost does not keep a server that stops. */
const LAST_NOTES_MS = 1_000;

/** A stream holds its connection: most of the descriptors are for others. */
const streamsFor = (maxDescriptors: number) => Math.min(500, Math.floor(maxDescriptors / 4));

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  const maxDescriptors = descriptorLimit();
  const isCramped = maxDescriptors !== undefined && maxDescriptors < SENSIBLE_DESCRIPTORS;
  const needed = OWN_DESCRIPTORS + 2 * config.databasePool;
  if (maxDescriptors !== undefined && maxDescriptors < needed)
    throw new Error(
      `The limit of open files is ${maxDescriptors}, at least ${needed} are needed: raise it (ulimit -n), or lower DATABASE_POOL`,
    );
  if (isCramped)
    log.warn("The limit of open files is low, connections beyond it are refused: raise it (ulimit -n, LimitNOFILE)", {
      limit: maxDescriptors,
      sensible: SENSIBLE_DESCRIPTORS,
    });
  const database = await openDatabase(config, (message) => log.info(message));
  let draining = false;

  try {
    await migrate(database, (message) => log.info(message));
    const isReady = createReadiness(database, await schemaVersion());
    const signals = createSignals(database.openListener);
    const live = createLive(database, { onError: (error) => log.warn("Cannot read what is watched", { error }) });
    const eventStreams = createEventStreams(maxDescriptors === undefined ? {} : { max: streamsFor(maxDescriptors) });
    const secretKey = await loadSecretKey(database.pool, config);
    const seal = createSeal(secretKey, config.secretKeyOld);
    const cursorSecret = await selectCursorSecret(database.pool);
    for (const name of ["NO_PROXY", "no_proxy"]) delete process.env[name];
    const outbound = createOutbound({
      allow: config.outboundAllow,
      proxy: config.outboundProxy,
      onPrivate: (hostname, addresses) => log.info("Did not send to a private address", { hostname, addresses }),
    });
    const metrics = createMetrics({ database, gauges: createGauges(database) });
    const deliverer = createDeliverer(database, { outbound, seal, onAttempt: metrics.delivery }, log);

    if (isCramped) await useAllConnections(database, config.databasePool);
    const server = startServer({ ...config, log, maxDescriptors });
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
      attempts: createAttempts(),
      policy: { allowedDomains: config.oidc?.allowedDomains ?? [], passwordLogin: config.passwordLogin },
      oidc: config.oidc && openOidc(config.oidc, { publicUrl, outbound, proxy: config.outboundProxy }),
    };
    const app = createApp({
      ...config,
      ...{ database, uploadThread, log, seal, outbound, cursorSecret, publicUrl, signals, metrics, live, eventStreams },
      ...{ sessions, visitors: sessions, signIn },
      isReady: async () => !draining && (await isReady()),
    });
    server.answerWith(app);
    const loops = startLoops({ ...config, database, publicUrl, log, seal, deliverer, isCramped, sweep: app.sweep });

    const setupToken = await createSetupToken(database);
    const setup = setupToken === undefined ? undefined : setupUrl(publicUrl, setupToken);
    const first = config.databaseUrl === undefined ? await createFirstProject(database) : undefined;
    if (first) process.stdout.write(`${welcome(publicUrl, first, setup)}\n`);
    else if (setup) log.info("There is no account yet: open this link to make the first one", { url: setup });
    if (config.databaseUrl !== undefined && !(await selectAnyTeam(database.pool))) {
      log.info(
        "The database is empty: bun run assay admin create-team --name NAME, then create-project --team ID --name NAME, then generate-key --project ID",
      );
    }
    // Whoever reads that it is ready may stop it at once.
    const stopping = stopSignal();
    log.info("Assay is ready", { url: publicUrl });

    await stopping;
    draining = true;
    log.info("Stopping: running requests may end");
    signals.close();
    eventStreams.close();
    await Promise.all([loops.stop(), deliverer.stop(), server.stop()]);
    app.sweep();
    await Promise.race([app.settled(), Bun.sleep(LAST_NOTES_MS)]);
    metrics.stop();
    uploadThread.close();
  } finally {
    await database.close();
  }
  log.info("Stopped");
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

/** Resolves at the first SIGTERM, SIGINT or SIGHUP; later ones change nothing, for the drain is on its way. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => resolve());
  });
}

try {
  await main();
  process.exit(0);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
