/** Starts Assay: configuration, database, migrations, server, loops; and ends it in the reverse order. */

import { createApp } from "./app.ts";
import { ConfigError, readConfig } from "./config.ts";
import { createFirstProject, welcome } from "./operations/first_project.ts";
import { createHeavyThread, type HeavyThread } from "./request/upload_thread.ts";
import { createLog, type Log } from "./log.ts";
import { createSeal, type Seal } from "./secrets/seal.ts";
import { loadSecretKey } from "./operations/secret_key.ts";
import { descriptorLimit } from "./http/descriptors.ts";
import { createOutbound } from "./http/outbound.ts";
import { startServer } from "./http/serve.ts";
import type { Database } from "./store/connect.ts";
import { createExecutionEnds } from "./store/execution_ends.ts";
import { selectSealKeys } from "./store/environments.ts";
import { deleteOldAnswers } from "./store/idempotency.ts";
import { selectCursorSecret, selectSchemaVersion } from "./store/instance.ts";
import { selectIntegrationSealKeys } from "./store/integrations.ts";
import { migrate, schemaVersion } from "./store/migrate.ts";
import { openDatabase } from "./store/open.ts";
import { selectAnyTeam } from "./store/projects.ts";
import { createReadiness } from "./store/readiness.ts";
import { handleEvents, runSchedules } from "./work/automate.ts";
import { createDeliverer } from "./work/deliver.ts";
import { expireExecutions } from "./work/expire.ts";
import { boundDeliveries, prune } from "./work/prune.ts";
import { rememberAll } from "./work/count.ts";
import { retainResults } from "./work/retain.ts";
import { type GoOn, startLoop } from "./work/loop.ts";
import { reseal } from "./work/reseal.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
/** Besides connections, the process itself has some fifty open. */
const SENSIBLE_DESCRIPTORS = 1_024;

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  const maxDescriptors = descriptorLimit();
  const isCramped = maxDescriptors !== undefined && maxDescriptors < SENSIBLE_DESCRIPTORS;
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
    const executionEnds = createExecutionEnds(database.listener);
    const secretKey = await loadSecretKey(database.pool, config);
    const seal = createSeal(secretKey, config.secretKeyOld);
    const cursorSecret = await selectCursorSecret(database.pool);
    for (const name of ["NO_PROXY", "no_proxy"]) delete process.env[name];
    const outbound = createOutbound({
      allow: config.outboundAllow,
      proxy: config.outboundProxy,
      onPrivate: (hostname, addresses) => log.info("Did not send to a private address", { hostname, addresses }),
    });
    const deliverer = createDeliverer(database, { outbound, seal }, log);

    if (isCramped) await useAllConnections(database, config.databasePool);

    let sweep = () => {};
    let heavy: HeavyThread | undefined;
    const server = startServer({ ...config, log, maxDescriptors }, (url) => {
      const { maxInflatedBytes, retentionDays } = config;
      const publicUrl = config.publicUrl ?? url;
      heavy = createHeavyThread({
        connection: database.connection,
        cursorSecret,
        publicUrl,
        maxInflatedBytes,
        retentionDays,
        secretKey,
      });
      const app = createApp({
        ...config,
        database,
        heavy,
        log,
        seal,
        outbound,
        cursorSecret,
        publicUrl,
        executionEnd: (id, ms) => executionEnds.wait(id, ms),
        isReady: async () => !draining && (await isReady()),
      });
      sweep = app.sweep;
      return app;
    });

    const { revive } = database;
    const shownUrl = config.publicUrl ?? server.url;
    const loops = [
      ...(isCramped
        ? [startLoop("hold connections", MINUTE, log, () => useAllConnections(database, config.databasePool))]
        : []),
      ...(revive ? [startLoop("keep PostgreSQL running", SECOND, log, revive)] : []),
      startLoop("watch connections", SECOND, log, () => watchConnections(database, log)),
      startLoop("handle events", SECOND / 2, log, (goOn) => handleEvents(database, shownUrl, log, goOn)),
      startLoop("run schedules", SECOND, log, (goOn) => runSchedules(database, shownUrl, new Date(), log, goOn)),
      startLoop("deliver", SECOND / 2, log, () => deliverer.start()),
      startLoop("expire executions", 5 * SECOND, log, (goOn) => expireExecutions(database, goOn, log)),
      startLoop("remember runs", SECOND, log, (goOn) => rememberAll(database, goOn, log)),
      startLoop("retain results", 60 * MINUTE, log, (goOn) =>
        retainResults(database, config.retentionDays, new Date(), goOn, log),
      ),
      ...(config.secretKeyOld
        ? [startLoop("seal anew", MINUTE, log, (goOn) => sealAnew(database, seal, log, goOn))]
        : []),
      startLoop("prune", 60 * MINUTE, log, (goOn) => prune(database.pool, log, goOn)),
      startLoop("bound deliveries", 20 * SECOND, log, (goOn) => boundDeliveries(database.pool, log, goOn)),
      startLoop("forget old answers", 10 * MINUTE, log, () => deleteOldAnswers(database.pool)),
      startLoop("sweep rate limits", MINUTE, log, async () => sweep()),
    ];

    if (config.databaseUrl === undefined) {
      const first = await createFirstProject(database);
      if (first) process.stdout.write(`${welcome(shownUrl, first)}\n`);
    } else if (!(await selectAnyTeam(database.pool))) {
      log.info(
        "The database is empty: bun run assay admin create-team --name NAME, then create-project --team ID --name NAME, then generate-key --project ID",
      );
    }
    log.info("Assay is ready", { url: shownUrl });

    await stopSignal();
    draining = true;
    log.info("Stopping: running requests may end");
    executionEnds.close();
    await Promise.all([...loops.map((loop) => loop.stop()), deliverer.stop(), server.stop()]);
    heavy?.close();
  } finally {
    await database.close();
  }
  log.info("Stopped");
}

async function watchConnections(database: Database, log: Log): Promise<void> {
  for (const lane of await database.watch())
    log.error("Nothing got through to the database although it is there: its connections were replaced", { lane });
}

/** A connection to the database that is open needs no file descriptor when there may be none left. */
async function useAllConnections({ pool, begin, fast }: Database, size: number): Promise<void> {
  const uses = Array.from({ length: size }, () => [selectSchemaVersion(pool), begin(selectSchemaVersion)]);
  await Promise.all([...uses.flat(), selectSchemaVersion(fast)]);
}

async function sealAnew(database: Database, seal: Seal, log: Log, goOn: GoOn): Promise<void> {
  const count = await reseal(database, seal, goOn, log);
  const left = [...(await selectSealKeys(database.pool)), ...(await selectIntegrationSealKeys(database.pool))];
  if (count > 0 && left.every(({ name }) => name === seal.keyName))
    log.info("Sealed all values with SECRET_KEY: SECRET_KEY_OLD is not needed any more", { count });
}

/** Resolves at the first SIGTERM or SIGINT; later ones change nothing, for the drain is on its way. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => resolve());
  });
}

try {
  await main();
  process.exit(0);
} catch (error) {
  const known = error instanceof ConfigError || error instanceof Error;
  process.stderr.write(`${known ? (error as Error).message : String(error)}\n`);
  process.exit(1);
}
