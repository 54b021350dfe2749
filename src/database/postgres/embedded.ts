/** The built-in PostgreSQL: makes, starts, adopts and stops a cluster of our own, reachable by a Unix socket only. */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import postgres from "postgres";
import { toDiskReason, toPlainError } from "../../file_failure.ts";
import { type Binaries, findBinaries, removeOtherCopies } from "./binaries.ts";
import {
  as,
  give,
  type Home,
  makeAccessibleDirectory,
  openHome,
  accessibleDirectory,
  removeUnfinished,
} from "./home.ts";
import { locked } from "./lock.ts";
import { endsWithin, findPostmaster, forgetSocketDirectory, halt, launch, serverPort, whenReady } from "./server.ts";
import { holdUse, recordUse, refuseUnreachable, refuseUsedElsewhere } from "./use.ts";

export type Embedded = {
  /** Options for postgres.js: socket directory as host, port, username, password, database. */
  connection: { host: string; port: number; username: string; password: string; database: string };
  /**
   * Restarts the server at the same address if it has died, or if it was stopped from outside and waits for its clients (this process) for
   * longer than `graceMs`. Cheap while the server runs.
   */
  revive(graceMs?: number): Promise<void>;
  /** Stops the server if no other process is connected; otherwise leaves it running for them. */
  stop(): Promise<void>;
};

type EmbeddedOptions = {
  /** Made when absent; holds the cluster, its password and its log, or is a link to where they are. */
  directory: string;
  /** A bin directory of another PostgreSQL; without it the npm package is used. */
  binaries?: string;
  /** False is for tests only: a power cut then ruins the data. */
  fsync?: boolean;
  say?: (message: string) => void;
};

/** Stopping a whole unit signals PostgreSQL and this process at once; this process then ends within this time. */
const STOPPING_GRACE_MS = 10_000;

/** The name under which a handle's own connection is seen in pg_stat_activity. */
export const holderName = "assay holder";

/** Whether `directory` contains a cluster, or a link to a missing one, which `startEmbedded` reports. */
export function holdsCluster(directory: string): boolean {
  const isLink = lstatSync(directory, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  if (isLink && !existsSync(directory)) return true;
  // Not existsSync: what may not be looked into is not nothing.
  return statSync(join(directory, "cluster"), { throwIfNoEntry: false }) !== undefined;
}

/** Starts the cluster in `directory`, or adopts it when it already runs. Throws an Error that says what to do. */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const directory = resolve(options.directory);
  try {
    mkdirSync(dirname(directory), { recursive: true, mode: 0o700 });
    // The directory may not exist yet, so the first lock is beside it. The second one is the same by every path to the directory.
    return await locked(`${directory}.lock`, async () => {
      const home = openHome(directory, options.say ?? (() => {}));
      return await locked(startLock(home), () => open({ ...options, directory }, home));
    });
  } catch (error) {
    const shown = toPlainError(error);
    const reason = toDiskReason(error) ?? (shown instanceof Error ? shown.message : String(shown));
    throw new Error(
      `Cannot start the built-in PostgreSQL in "${directory}": ${reason}\n` +
        "Fix this, or set DATABASE_URL to use a PostgreSQL of your own",
      { cause: error },
    );
  }
}

const startLock = (home: Home) => join(home.directory, "start.lock");

async function open(options: EmbeddedOptions, home: Home): Promise<Embedded> {
  const { directory, binaries, fsync = true, say = () => {} } = options;
  const cluster = join(home.directory, "cluster");
  const running = await whenReady(cluster, () => false, say);
  const programs = () =>
    findBinaries(binaries, home.account, () => {
      if (!home.account) return dirname(directory);
      makeAccessibleDirectory();
      return accessibleDirectory;
    });
  const launchHere = async (found: Binaries) => {
    recordUse(home, directory);
    return await launch(home, found, { fsync }, say);
  };
  let server = running;
  if (server) {
    refuseUnreachable(home, server);
    say(`PostgreSQL already runs (pid ${server.pid})`);
  } else {
    await refuseUsedElsewhere(home);
    const found = await programs();
    if (existsSync(cluster)) checkVersion(cluster, found);
    else await create(home, found, fsync, say);
    server = await launchHere(found);
    // Several servers share the copies that an unprivileged account uses.
    if (!home.account) removeOtherCopies(dirname(directory), found);
    say(
      `PostgreSQL ${found.major} runs (pid ${server.pid})${home.account ? ` under the account ${home.account.name}` : ""}`,
    );
  }
  const password = readFileSync(join(home.directory, "password"), "utf8");
  const connection = { host: server.socket, port: serverPort, username: "assay", password, database: "assay" };
  // Held until stop(), so that another process that stops meanwhile sees that the server is in use.
  const holder = postgres({
    ...connection,
    database: "postgres",
    max: 1,
    idle_timeout: 0,
    max_lifetime: null,
    // By itself it would wait longer with every time that the server was away.
    backoff: (() => 0.2) as never,
    onnotice: () => {},
    connection: { application_name: holderName },
  });
  try {
    const found = await whenLetIn(() => holder`select from pg_database where datname = 'assay'`);
    if (found.length === 0) await holder`create database assay strategy file_copy`;
  } catch (error) {
    await holder.end({ timeout: 0 });
    // A server that is being killed accepts connections for a moment.
    if (running && (await endsWithin(1000, running, cluster))) return open(options, home);
    if (!running) {
      await halt(server, cluster);
      throw new Error(
        `PostgreSQL cannot be used: ${(error as Error).message}; its log is "${join(home.directory, "server.log")}"`,
      );
    }
    throw new Error(
      `PostgreSQL runs (pid ${server.pid}) but does not let us in: ${(error as Error).message}. ` +
        `Stop it with "kill -INT ${server.pid}" and start again; its log is "${join(home.directory, "server.log")}"`,
    );
  }
  const use = holdUse(home);
  let stopped: Promise<void> | undefined;
  let stoppingSince: number | undefined;
  const locks = [`${directory}.lock`, startLock(home)] as const;
  const exclusively = (action: () => Promise<void>) => locked(locks[0], () => locked(locks[1], action));
  return {
    connection,
    async revive(graceMs = STOPPING_GRACE_MS) {
      const found = findPostmaster(cluster);
      if (found?.status !== "stopping") stoppingSince = undefined;
      else stoppingSince ??= performance.now();
      const isStuck = stoppingSince !== undefined && performance.now() - stoppingSince >= graceMs;
      if (stopped || (found && !isStuck)) return;
      if (!existsSync(cluster)) throw new Error(`The database in "${cluster}" is gone: restore it from a backup`);
      await exclusively(async () => {
        const stuck = findPostmaster(cluster);
        if (!stopped && stuck?.status === "stopping") await halt(stuck, cluster);
        // Another server on this cluster may have been quicker.
        if (stopped || (await whenReady(cluster, () => false, say))) return;
        await refuseUsedElsewhere(home);
        const { pid } = await launchHere(await programs());
        stoppingSince = undefined;
        say(`PostgreSQL had died and runs again (pid ${pid})`);
      });
      await holder`select`;
    },
    stop() {
      const end = () => stop(cluster, holder).finally(use.release);
      // Runs without the locks if DATA_DIR was deleted meanwhile.
      return (stopped ??= locks.every((lock) => existsSync(lock)) ? exclusively(end) : end());
    },
  };
}

async function stop(cluster: string, holder: postgres.Sql): Promise<void> {
  try {
    const server = findPostmaster(cluster);
    if (!server) return;
    // A server that was stopped from outside (systemd signals the whole unit) ends with its last client.
    if (server.status === "stopping" || (await isShared(holder))) return;
    await holder.end({ timeout: 1 });
    await halt(server, cluster);
  } finally {
    await holder.end({ timeout: 1 });
  }
}

const RECOVERY_MS = 60_000;
const CUT = new Set(["CONNECTION_CLOSED", "ECONNRESET", "EPIPE", "57P02"]);

/** Retries while PostgreSQL recovers from the crash of one of its processes, during which it accepts no connections. */
async function whenLetIn<T>(ask: () => PromiseLike<T>): Promise<T> {
  const deadline = Date.now() + RECOVERY_MS;
  for (;;)
    try {
      return await ask();
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      const isCut = CUT.has(String(code));
      if (!(isCut || /recovery mode|starting up|not yet accepting/.test(message)) || Date.now() > deadline) throw error;
      await Bun.sleep(50);
    }
}

async function isShared(holder: postgres.Sql): Promise<boolean> {
  // A connection that was closed just now is seen for some milliseconds more, and for a second if its statement still ran.
  const deadline = Date.now() + 1_500;
  for (;;) {
    const others = await whenLetIn(
      () => holder`select from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`,
    );
    if (others.length === 0 || Date.now() > deadline) return others.length > 0;
    await Bun.sleep(10);
  }
}

function checkVersion(cluster: string, { major, directory }: Binaries): void {
  const made = readFileSync(join(cluster, "PG_VERSION"), "utf8").trim();
  if (made !== String(major)) {
    throw new Error(
      `The database was made by PostgreSQL ${made}, but "${directory}" is PostgreSQL ${major}: ` +
        `back it up with the Assay that made it (assay backup) and restore it into an empty directory (assay restore)`,
    );
  }
}

/** Creates the cluster under a temporary name first, so that a cluster with the final name is always complete. */
async function create(home: Home, { directory, major }: Binaries, fsync: boolean, say: (message: string) => void) {
  say(`Making a PostgreSQL ${major} cluster in "${home.directory}"`);
  removeUnfinished(home);
  forgetSocketDirectory(home);
  const password = join(home.directory, "password");
  rmSync(password, { force: true });
  const file = openSync(password, "wx", 0o600);
  writeSync(file, randomBytes(24).toString("base64url"));
  fsyncSync(file);
  closeSync(file);
  give(home.account, password);
  let output = "";
  for (const locale of ["C.UTF-8", "C"]) {
    const unfinished = mkdtempSync(join(home.directory, "new-"));
    give(home.account, unfinished);
    const initdb = Bun.spawn(
      [
        ...[join(directory, "initdb"), "-D", unfinished, `--pwfile=${password}`, "--username=assay"],
        ...["--auth=scram-sha-256", "--encoding=UTF8", `--locale=${locale}`, "--data-checksums", "--no-instructions"],
        ...(fsync ? [] : ["--no-sync"]),
      ],
      { ...as(home.account), stdout: "ignore", stderr: "pipe" },
    );
    output = await new Response(initdb.stderr).text();
    if ((await initdb.exited) === 0) {
      renameSync(unfinished, join(home.directory, "cluster"));
      const parent = openSync(home.directory, "r");
      fsyncSync(parent);
      return closeSync(parent);
    }
    removeUnfinished(home);
    if (!output.includes("locale")) break;
  }
  throw new Error(`initdb failed: ${output.trim()}`);
}
