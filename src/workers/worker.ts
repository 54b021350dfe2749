/** The program of one of several processes that serve on one port: its parent tells it what, and when to stop. */

import { readConfig } from "../config.ts";
import { openSharedRateLimit } from "../http/shared_rate_limit.ts";
import { CLOCKS_MS, createRateLimit, type RateLimit, WINDOW_MS } from "../http/rate_limit.ts";
import { createLog, type Fields, type Log } from "../log.ts";
import { serve, type Serving } from "../server/serve.ts";
import { connect } from "../database/connect.ts";
import { createChannel } from "./channel.ts";
import { ADMISSIONS, type ParentAnswers, type WorkerAnswers } from "./supervisor.ts";

/** How often it reads whom the others have admitted when nobody asks it anything. */
const KEEP_UP_MS = 50;
/** So often the clock is asked for at the most; the quickest answer is the one that tells. */
const CLOCK_QUESTIONS = 50;

const stopping = Promise.withResolvers<void>();
let serving: Serving | undefined;

const answers: WorkerAnswers = {
  figures: () => serving?.figures() ?? [],
  stop: () => stopping.resolve(),
};
const parent = createChannel<ParentAnswers>((message) => process.send!(message), answers);
process.on("message", parent.receive);
// Whatever runs cannot be ended well: what comes in the parent's place needs the port, and counts from the beginning.
process.on("disconnect", () => process.exit(1));
// A whole unit, or the group of a terminal, is told at once; who is told alone is replaced.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => stopping.resolve());

function withWorker(log: Log, worker: string): Log {
  const level = (name: keyof Log) => (message: string, fields?: Fields) => log[name](message, { worker, ...fields });
  return { debug: level("debug"), info: level("info"), warn: level("warn"), error: level("error") };
}

/** The parent's clock, in milliseconds, to within half of how long its quickest answer took. */
async function readClock(): Promise<() => number> {
  let best = { took: Infinity, offset: 0 };
  for (let asked = 0; asked < CLOCK_QUESTIONS && best.took > CLOCKS_MS / 4; asked++) {
    const before = performance.now();
    const there = await parent.ask("clock");
    const after = performance.now();
    if (after - before < best.took) best = { took: after - before, offset: there - (before + after) / 2 };
  }
  return () => performance.now() + best.offset;
}

/** One of all workers together, which knows the last minute of each. */
async function openRateLimit(limit: number, name: string): Promise<RateLimit | undefined> {
  if (limit === 0) return undefined;
  const clock = await readClock();
  const admissions = openSharedRateLimit(ADMISSIONS, Number(name));
  const rateLimit = createRateLimit(limit, clock, Date.now, admissions);
  // What it has missed of a log that was written over meanwhile counts no more after this.
  const unknownUntil = admissions.knownSince() + WINDOW_MS + CLOCKS_MS;
  rateLimit.keepUp();
  setInterval(rateLimit.keepUp, KEEP_UP_MS);
  if (admissions.knownSince() > 0 && unknownUntil > clock()) await Bun.sleep(unknownUntil - clock());
  return rateLimit;
}

try {
  const config = readConfig(process.env);
  const { name, port, connection, secretKey, cursorSecret } = await parent.ask("settings");
  const log = withWorker(createLog(config.logLevel), name);
  const rateLimit = await openRateLimit(config.rateLimitPerMinute, name);
  const database = connect(connection, config.databasePool);
  serving = await serve({
    config: { ...config, port, uploadMemoryBytes: Math.floor(config.uploadMemoryBytes / config.workers) },
    ...{ log, database, secretKey, cursorSecret },
    shared: {
      rateLimit,
      attempts: {
        begin: (who) => parent.ask("beginAttempt", who),
        review: (who) => parent.ask("reviewAttempt", who),
        succeed: (who) => parent.ask("succeedAttempt", who),
      },
      isBackground: name === "1",
      peers: { self: name, figures: () => parent.ask("figures") },
    },
  });
  await parent.ask("listening", serving.url);
  await stopping.promise;
  await serving.stop();
  await database.close();
  process.exit(0);
} catch (error) {
  process.stderr.write(`Worker: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
