/** All that is repeated beside the server, and how often. */

import { hostname } from "node:os";
import { createAbandonedWatch } from "../database/abandoned.ts";
import type { Config } from "../config.ts";
import type { AttachmentServices } from "../attachments/store.ts";
import type { Log } from "../log.ts";
import type { Seal } from "../secrets/seal.ts";
import type { Database } from "../database/connect.ts";
import { selectSealKeys } from "../store/environments.ts";
import { deleteOldAnswers } from "../store/idempotency.ts";
import { noteServing, useAllConnections } from "../store/instance.ts";
import { notSent } from "../schema/deliveries.ts";
import { selectExecutionSealKeys } from "../store/sealed_variables.ts";
import { failCutOff } from "../store/deliveries.ts";
import { selectIntegrationSealKeys } from "../store/integrations.ts";
import { selectIsQuiet } from "../store/restored.ts";
import type { OpenDatabase } from "../database/open.ts";
import { analyzeOutgrown } from "./analyze.ts";
import { handleEvents, runSchedules } from "./automate.ts";
import { countAll } from "./count.ts";
import { advanceSearches } from "./culprits.ts";
import type { Deliverer } from "./deliver.ts";
import { expireExecutions } from "./expire.ts";
import { countImpacts } from "./impact.ts";
import { type GoOn, type Loop, type OnDeleted, startLoop } from "./loop.ts";
import { purgeDeleted } from "./purge.ts";
import { boundDeliveries, prune, pruneUploads } from "./prune.ts";
import { watchQuiet } from "./quiet.ts";
import { reclaimLeases } from "./reclaim.ts";
import { reseal } from "./reseal.ts";
import type { RetentionSettings } from "../rules/retention.ts";
import { createRetention } from "./retain.ts";
import { sweepAttachments } from "./sweep_attachments.ts";
import { advanceVerifications, verifyNewTests } from "./verify.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const CUT_OFF = "Cut off: the server stopped while it was sending, and the receiver may have got it";

type LoopsOptions = Pick<Config, "databasePool" | "secretKeyOld"> & {
  database: OpenDatabase;
  publicUrl: string;
  log: Log;
  seal: Seal;
  deliverer: Deliverer;
  attachments: Pick<AttachmentServices, "store" | "spool">;
  retention: RetentionSettings;
  onDeleted: OnDeleted;
  /** File descriptors are few. */
  isCramped: boolean;
  /** Gives back the memory of clients that are gone. */
  sweep: () => void;
};

/** `stop` resolves when running work has ended. */
export function startLoops(options: LoopsOptions): Loop {
  const { database, publicUrl, log, seal, deliverer, databasePool, onDeleted } = options;
  const { pool, revive } = database;
  const loops: Loop[] = [];
  const every = (ms: number, name: string, work: (goOn: GoOn) => Promise<unknown>) =>
    void loops.push(startLoop(name, ms, log, work));

  if (options.isCramped) every(MINUTE_MS, "hold connections", () => useAllConnections(database, databasePool));
  if (revive) every(SECOND_MS, "keep PostgreSQL running", revive);
  every(MINUTE_MS, "sweep rate limits", async () => options.sweep());
  every(SECOND_MS, "watch the quiet time", watchQuiet(pool, log));
  // After a restore nothing is sent, started or deleted until a person resumes the server.
  const everyUnlessQuiet = (ms: number, name: string, work: (goOn: GoOn) => Promise<unknown>) =>
    every(ms, name, async (goOn) => ((await selectIsQuiet(pool)) ? undefined : await work(goOn)));
  everyUnlessQuiet(SECOND_MS / 2, "handle events", (goOn) => handleEvents(database, publicUrl, log, goOn));
  everyUnlessQuiet(SECOND_MS, "run schedules", (goOn) => runSchedules(database, publicUrl, new Date(), log, goOn));
  everyUnlessQuiet(2 * SECOND_MS, "verify new tests", (goOn) => verifyNewTests(database, goOn, log));
  everyUnlessQuiet(SECOND_MS, "advance verifications", (goOn) => advanceVerifications(database, goOn, log));
  everyUnlessQuiet(SECOND_MS / 2, "deliver", () => deliverer.start());
  // Time in which the server could not serve does not count against clients.
  const afterNote = async (work: () => Promise<unknown>) => {
    await noteServing(pool);
    return await work();
  };
  every(5 * SECOND_MS, "expire executions", (goOn) => afterNote(() => expireExecutions(database, goOn, log)));
  every(2 * SECOND_MS, "reclaim leases", (goOn) => afterNote(() => reclaimLeases(database, goOn, log)));
  everyUnlessQuiet(SECOND_MS / 2, "search for culprits", (goOn) => advanceSearches(database, undefined, goOn, log));
  every(SECOND_MS, "analyse tables", (goOn) => analyzeOutgrown(database, goOn, log));
  every(SECOND_MS, "count runs", (goOn) => countAll(database, goOn, log));
  every(2 * SECOND_MS, "count impacts", (goOn) => countImpacts(pool, new Date(), goOn));
  const retention = createRetention(database, { host: hostname(), settings: options.retention, log, onDeleted });
  everyUnlessQuiet(MINUTE_MS, "delete what is too old", (goOn) => retention.repeat(new Date(), goOn));
  everyUnlessQuiet(10 * MINUTE_MS, "sweep attachments", (goOn) =>
    sweepAttachments(database, options.attachments, new Date(), goOn),
  );
  if (options.secretKeyOld) every(MINUTE_MS, "seal anew", (goOn) => sealAnew(database, seal, log, goOn));
  everyUnlessQuiet(5 * SECOND_MS, "remove what was deleted", (goOn) => purgeDeleted(database, log, goOn));
  everyUnlessQuiet(60 * MINUTE_MS, "prune", (goOn) => prune(pool, log, goOn, onDeleted));
  every(5 * MINUTE_MS, "forget old uploads", () => pruneUploads(pool));
  every(20 * SECOND_MS, "bound deliveries", (goOn) => boundDeliveries(pool, log, goOn));
  every(MINUTE_MS, "end what was cut off", async () => await failCutOff(pool, notSent(new Date(), CUT_OFF)));
  every(10 * MINUTE_MS, "forget old answers", async () => await deleteOldAnswers(pool));
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
      // Other servers forget it anyway after some minutes.
      await retention.leave().catch(() => {});
    },
  };
}

/** Stop this loop last: until then, queries on connections that fall silent must end, so that other loops can stop. */
export function watchConnections(database: Pick<Database, "watch" | "pool">, log: Log): Loop {
  const abandoned = createAbandonedWatch({ sql: () => database.pool });
  return startLoop("watch connections", SECOND_MS, log, async () => {
    const ended = abandoned.look();
    const { silent, replaced } = await database.watch();
    if (silent > 0)
      log.warn("Connections to the database have fallen silent and were closed; their requests failed", { silent });
    if (ended > 0) log.warn("Transactions of a server that does not respond held up others and were ended", { ended });
    for (const lane of replaced)
      log.error("The database is reachable, but its connections did not respond: they were replaced", { lane });
  });
}

async function sealAnew(database: Database, seal: Seal, log: Log, goOn: GoOn): Promise<void> {
  const count = await reseal(database, seal, goOn, log);
  const { pool } = database;
  const sealed = [selectSealKeys(pool), selectIntegrationSealKeys(pool), selectExecutionSealKeys(pool)];
  const left = (await Promise.all(sealed)).flat();
  if (count > 0 && left.every(({ name }) => name === seal.keyName))
    log.info(
      "All values are encrypted with SECRET_KEY: SECRET_KEY_OLD is not needed once all servers have the new key",
      {
        count,
      },
    );
}
