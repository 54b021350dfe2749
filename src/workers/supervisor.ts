/** The parent of several processes that serve on one port.
 *
 * With WORKERS=1 there is none of this. With more, the parent owns what there must be one of: the built-in PostgreSQL,
 * migrations, the first start, the secret key, the port's choice, how often passwords were tried, and the workers
 * themselves. It answers no request and reads nothing of the database once it is ready, so that nothing keeps it from
 * that. The workers are what several servers on one database have always been: each has connections and caches of its
 * own, and an upload thread. The first one alone runs the background loops. They would be right in all, as they are in
 * several servers; but what counts a project takes turns, so that more of them would do no more, and wait for each other
 * while uploads want the same connections. Nothing else hangs on the first: it is replaced at once.
 *
 * The rate limit stays exact because all workers count in one log in shared memory (http/shared_rate_limit.ts). Had the
 * parent counted, each request would have waited for it: measured with Bun 1.4.5 on two cores, one question at a time
 * takes 130 µs and 55 µs of a worker's processor over Bun's own channel between processes, 19 and 10 µs over a bare
 * socket, and the parent as much again; counting in the log takes 0.3 µs more than counting alone. Had each key belonged to one worker,
 * all but one in n requests would have asked another, and its counts would have died with it. The log does not: whoever
 * comes in the place of a worker that has died reads the last minute first.
 *
 * The system (SO_REUSEPORT) gives each new connection to one of the workers, on Linux by a hash of its addresses, which
 * is even only over many connections. macOS gives all of them to one.
 *
 * A worker that dies is replaced, at once and then ever later while it keeps dying; when it cannot even start, several
 * times in a row or at the very first, the whole ends with an error. When the parent dies, however it does, the workers'
 * channel to it closes, and they end.
 */

import { closeSync } from "node:fs";
import { tmpdir } from "node:os";
import type { Config } from "../config.ts";
import { serverProcessCommand } from "../executable.ts";
import { createSharedRateLimitFile, openSharedRateLimit } from "../http/shared_rate_limit.ts";
import { createCounter, type Figure, processFamilies, readFigures } from "../http/metrics.ts";
import { findPort, toServerUrl } from "../http/serve.ts";
import type { Log } from "../log.ts";
import { type SignInAttempt, createAttempts } from "../secrets/attempts.ts";
import type { ConnectionOptions } from "../database/connect.ts";
import { selectMaxConnections } from "../store/instance.ts";
import { MAX_CONNECTIONS, type OpenDatabase, type OpenOptions } from "../database/open.ts";
import { type Loop, startLoop } from "../work/loop.ts";
import { type Channel, createChannel } from "./channel.ts";

const ENTRY = Bun.fileURLToPath(new URL("./worker.ts", import.meta.url));
/** The descriptor under which a worker finds the log of admissions. */
export const ADMISSIONS = 3;
/** 16 bytes each; a power of two. At 4,000 admissions a second by each of 8 workers they are one minute. */
const ADMISSIONS_PER_WORKER = 2 ** 18;
const MAX_ADMISSIONS = 2 ** 21;
/**
 * Beside what the pools hold: two for fast reads of the API, one each for keys and pages, the listener, 5 of the upload thread,
 * and one that each of the two opens when another has fallen silent.
 */
const OTHER_CONNECTIONS = 12;
/** The parent's own three and the one that holds PostgreSQL, four for exports, and some for commands. */
const SPARE_CONNECTIONS = 14;
/** Who has lived for so long starts anew with a clean record. */
const SOUND_MS = 60_000;
const [SHORTEST_WAIT_MS, LONGEST_WAIT_MS] = [250, 30_000];
/** So many starts of a worker in a row may fail, once all have been there. */
const MAX_FAILED_STARTS = 5;
/** Longer than a worker's own drain may take: who is still there then will not end by itself. */
const LAST_MS = 60_000;
const FIGURES_MS = 1_000;

/** What a worker gets to begin with. */
export type WorkerSettings = {
  name: string;
  port: number;
  connection: ConnectionOptions;
  secretKey: Uint8Array;
  cursorSecret: Uint8Array;
};

/** What a worker asks. */
export type ParentAnswers = {
  settings(): WorkerSettings;
  /** Milliseconds, of the clock that all have in common. */
  clock(): number;
  listening(url: string): void;
  beginAttempt(who: SignInAttempt): number;
  reviewAttempt(who: SignInAttempt): number;
  succeedAttempt(who: SignInAttempt): void;
  /** Of all processes but the one that asks. */
  figures(): Promise<[name: string, figures: Figure[]][]>;
};

/** What the parent asks. */
export type WorkerAnswers = { figures(): Figure[]; stop(): void };

export type WorkersOptions = {
  config: Config;
  log: Log;
  database: OpenDatabase;
  secretKey: Uint8Array;
  cursorSecret: Uint8Array;
  /** Runs when the port is known to be free, and before any worker is ready. */
  announce: (url: string) => Promise<void>;
};

/** Returns how many connections to the database a server opens at most. */
export const connectionsOf = ({ workers, databasePool }: Pick<Config, "workers" | "databasePool">): number =>
  workers * (2 * databasePool + OTHER_CONNECTIONS) + SPARE_CONNECTIONS;

/** How the parent opens the database: with little for itself, and enough for all where it is ours to start. */
export function parentPool(config: Config): OpenOptions {
  const { databaseUrl, dataDir } = config;
  // As for one process: enough for two such servers.
  const maxConnections = Math.max(MAX_CONNECTIONS, 2 * connectionsOf(config));
  return { databaseUrl, dataDir, databasePool: 1, maxConnections };
}

export const hasEnoughConnections = async ({ pool }: OpenDatabase, config: Config): Promise<boolean> =>
  (await selectMaxConnections(pool)) >= connectionsOf(config);

async function requireConnections({ pool }: OpenDatabase, config: Config): Promise<void> {
  const max = await selectMaxConnections(pool);
  const needed = connectionsOf(config);
  if (needed > max)
    throw new Error(
      `PostgreSQL takes ${max} connections, WORKERS=${config.workers} with DATABASE_POOL=${config.databasePool} may ` +
        `need ${needed}: raise its max_connections, or lower WORKERS or DATABASE_POOL`,
    );
}

const powerOfTwo = (atLeast: number): number => 2 ** Math.ceil(Math.log2(atLeast));

/** What the workers count admissions in; nothing where there is no limit. */
function createAdmissions({ workers, rateLimitPerMinute, dataDir }: Config) {
  if (rateLimitPerMinute === 0) return undefined;
  const entries = Math.min(powerOfTwo(workers * ADMISSIONS_PER_WORKER), MAX_ADMISSIONS);
  // The first is memory; the system writes what changes in the others to their disk now and then.
  const file = createSharedRateLimitFile(entries, ["/dev/shm", tmpdir(), dataDir]);
  const log = openSharedRateLimit(file, 0);
  return { file, forget: log.forget, close: () => closeSync(file) };
}

type Worker = {
  name: string;
  number: number;
  child: Bun.Subprocess | undefined;
  channel: Channel<WorkerAnswers> | undefined;
  isReady: boolean;
  /** Resolves when it is not there any more, until it is started again. */
  ended: Promise<unknown>;
  failedStarts: number;
  /** Deaths without a sound life between them. */
  inARow: number;
  again: Timer | undefined;
};

/** Resolves when all listen; rejects when one cannot. `failed` rejects when it does not go on any more. */
export async function startWorkers({ config, log, database, secretKey, cursorSecret, announce }: WorkersOptions) {
  await requireConnections(database, config);
  const port = await findPort(config.host, config.port);
  await announce(toServerUrl(config.host, port));
  const admissions = createAdmissions(config);
  const attempts = createAttempts();
  const restarts = createCounter({
    name: "assay_worker_restarts_total",
    help: "How often another process has taken the place of a worker that ended.",
  });
  const own = [restarts.family, ...processFamilies()];
  const failing = Promise.withResolvers<never>();
  failing.promise.catch(() => {});
  let isStopping = false;
  let url = "";

  const workers = Array.from({ length: config.workers }, (_, at): Worker => {
    const number = at + 1;
    const name = String(number);
    restarts.at({ worker: name });
    const nobody = { child: undefined, channel: undefined, isReady: false, ended: Promise.resolve(), again: undefined };
    return { name, number, ...nobody, failedStarts: 0, inARow: 0 };
  });

  /** Resolves when it listens; rejects with what it died of when it does not come to that. */
  function start(worker: Worker): Promise<void> {
    const started = performance.now();
    const listening = Promise.withResolvers<void>();
    const answers: ParentAnswers = {
      settings: () => ({ name: worker.name, port, connection: database.connection, secretKey, cursorSecret }),
      clock: () => performance.now(),
      listening(itsUrl) {
        url = itsUrl;
        worker.isReady = true;
        worker.failedStarts = 0;
        listening.resolve();
      },
      beginAttempt: attempts.begin,
      reviewAttempt: attempts.review,
      succeedAttempt: attempts.succeed,
      figures: () => figuresFor(worker),
    };
    const child = Bun.spawn(serverProcessCommand(ENTRY), {
      stdio: ["ignore", "inherit", "inherit", ...(admissions ? [admissions.file] : [])],
      ipc: (message) => channel.receive(message),
    });
    const channel = createChannel<WorkerAnswers>((message) => child.send(message), answers);
    Object.assign(worker, { child, channel, isReady: false });
    worker.ended = child.exited.then(() => {
      channel.close();
      admissions?.forget(worker.number);
      const reason = child.signalCode ? `signal ${child.signalCode}` : `exit code ${child.exitCode}`;
      const wasReady = worker.isReady;
      Object.assign(worker, { child: undefined, channel: undefined, isReady: false });
      listening.reject(new Error(`Worker ${worker.name} did not start (${reason})`));
      if (wasReady || isStarted) bury(worker, { wasReady, reason, livedMs: performance.now() - started });
    });
    return listening.promise;
  }

  /** Sees to it that another one comes, unless that has no point. */
  function bury(worker: Worker, { wasReady, reason, livedMs }: { wasReady: boolean; reason: string; livedMs: number }) {
    if (isStopping) return;
    const { name } = worker;
    if (!wasReady && ++worker.failedStarts >= MAX_FAILED_STARTS) {
      failing.reject(new Error(`Worker ${name} could not start ${worker.failedStarts} times in a row (${reason})`));
      return;
    }
    worker.inARow = livedMs >= SOUND_MS ? 0 : worker.inARow + 1;
    const waitMs = worker.inARow <= 1 ? 0 : Math.min(SHORTEST_WAIT_MS * 2 ** (worker.inARow - 2), LONGEST_WAIT_MS);
    const about = { worker: name, reason, livedSeconds: Math.round(livedMs / 1_000), waitSeconds: waitMs / 1_000 };
    log.warn("A worker has ended and is replaced", about);
    restarts.at({ worker: name }).value++;
    worker.again = setTimeout(() => void start(worker).catch(() => {}), waitMs);
  }

  async function figuresFor(asking: Worker): Promise<[string, Figure[]][]> {
    const others = workers
      .filter((worker) => worker !== asking && worker.isReady)
      .map(async ({ name, channel }): Promise<[string, Figure[]][]> => {
        const figures = channel!.ask("figures").catch(() => undefined);
        const found = await Promise.race([figures, Bun.sleep(FIGURES_MS).then(() => undefined)]);
        return found ? [[name, found]] : [];
      });
    return [["parent", readFigures(own)], ...(await Promise.all(others)).flat()];
  }

  async function stop(): Promise<void> {
    isStopping = true;
    await reviving?.stop();
    for (const { again, channel } of workers) {
      clearTimeout(again);
      channel?.ask("stop").catch(() => {});
    }
    const kill = setTimeout(() => {
      for (const { child, name } of workers) {
        if (!child) continue;
        log.error("A worker has not ended in time and is killed", { worker: name });
        child.kill("SIGKILL");
      }
    }, LAST_MS);
    await Promise.all(workers.map(({ ended }) => ended));
    clearTimeout(kill);
    admissions?.close();
  }

  let isStarted = false;
  let reviving: Loop | undefined;
  try {
    await Promise.all(workers.map(start));
    isStarted = true;
  } catch (error) {
    await stop();
    throw error;
  }
  if (database.revive) reviving = startLoop("keep PostgreSQL running", 1_000, log, database.revive);
  return { url, failed: failing.promise, stop };
}
