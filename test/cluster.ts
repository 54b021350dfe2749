/** The PostgreSQL of a test run: one cluster for all files, owned by a keeper process that outlives them by seconds. */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statfsSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import postgres from "postgres";
import { connect } from "../src/database/connect.ts";
import { type Embedded, holderName, startEmbedded } from "../src/database/postgres/embedded.ts";
import { migrate } from "../src/database/migrate.ts";
import { createPartitions } from "../src/database/partitions.ts";
import { tryLock } from "../src/database/postgres/lock.ts";
import { removeCluster } from "./places.ts";

type Connection = Embedded["connection"];

const checkout = join(import.meta.dir, "..");
const binaries = process.env.ASSAY_TEST_POSTGRES;
const template = "assay_template";
const idleSeconds = 5;
const patientMinutes = 30;
const MAX_LOCK_FAILURES = 100;

/** Connection options of a running cluster whose database `assay_template` has been migrated. */
export async function testCluster(): Promise<Connection> {
  const began = Date.now();
  let place = accessibleDirectory();
  for (let nextKeeper = began; ; await Bun.sleep(20)) {
    const connection = await lease(place);
    if (connection) return connection;
    const failed = statSync(place.failed, { throwIfNoEntry: false });
    if (failed && failed.mtimeMs >= began) throw new Error(readFileSync(place.failed, "utf8"));
    if (Date.now() > began + 60_000) throw new Error(`No PostgreSQL for the tests after a minute: see "${place.log}"`);
    // A keeper that finds another at work goes away again, so one too many does no harm.
    if (Date.now() < nextKeeper) continue;
    nextKeeper = Date.now() + 3000;
    place = accessibleDirectory();
    // Through a shell that ends at once: bun test kills the children of a test that takes too long.
    const keeper = ["sh", "-c", '"$@" >>"$0" 2>&1 &', place.log, process.execPath, import.meta.path];
    await Bun.spawn(keeper, { cwd: checkout, detached: true, stdin: "ignore", stdout: "ignore" }).exited;
  }
}

/** In memory where there is plenty: most of what a cluster costs is writing files. An explicit TMPDIR is obeyed. */
export function quickDirectory(): string {
  const memory = "/dev/shm";
  if (process.env.TMPDIR || !existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize > 4 * 2 ** 30 ? memory : tmpdir();
}

type Place = ReturnType<typeof accessibleDirectory>;

function accessibleDirectory() {
  const uid = process.getuid?.() ?? 0;
  const shared = join(quickDirectory(), `assay-test-${uid}`);
  const hash = new Bun.CryptoHasher("sha256").update(JSON.stringify([checkout, uid, binaries]));
  const migrations = readdirSync(join(checkout, "sql")).sort();
  for (const file of [...migrations.map((name) => join("sql", name)), "src/database/migrate.ts"]) {
    hash.update(`\0${file}\0`).update(readFileSync(join(checkout, file)));
  }
  const directory = join(shared, hash.digest("hex").slice(0, 16));
  for (const path of [shared, directory]) openDirectory(path, uid);
  return {
    shared,
    directory,
    postgres: join(directory, "postgres"),
    ready: join(directory, "ready.json"),
    log: `${directory}.log`,
    failed: `${directory}.failed`,
  };
}

function openDirectory(path: string, uid: number): void {
  try {
    mkdirSync(path, { recursive: true });
    if (!lstatSync(path).isDirectory() || lstatSync(path).uid !== uid) throw new Error(`"${path}" is somebody else's`);
    // The account that PostgreSQL runs under when we are root passes through.
    chmodSync(path, 0o711);
  } catch (error) {
    if ((error as { code?: string }).code !== "ENOENT") throw error;
    // A keeper that ends has removed it just now.
    openDirectory(path, uid);
  }
}

/** Whoever holds it may also remove its file: a lock on a file that is gone is none, and is taken again. */
function tryKeeperLock(directory: string): ReturnType<typeof tryLock> {
  const path = `${directory}.lock`;
  for (let failures = 0; ;) {
    try {
      mkdirSync(dirname(path), { recursive: true });
      const known = inode(path);
      const lock = tryLock(path);
      if (!lock || (known !== undefined && inode(path) === known)) return lock;
      lock.release();
    } catch (error) {
      // A keeper that ends has removed the directory just now, and another process may have made it again since.
      if (++failures === MAX_LOCK_FAILURES) throw error;
    }
  }
}

const inode = (path: string) => statSync(path, { throwIfNoEntry: false })?.ino;

/** The connection, if a keeper is there and now knows that the cluster is wanted. */
async function lease(place: Place): Promise<Connection | undefined> {
  const keeperless = tryKeeperLock(place.directory);
  if (keeperless) return void keeperless.release();
  try {
    // The keeper renames the file, then looks at its time again, before it stops: either this fails or it stays.
    utimesSync(place.ready, new Date(), new Date());
    const connection: Connection = JSON.parse(readFileSync(place.ready, "utf8"));
    const sql = postgres({ ...connection, database: "postgres", max: 1 });
    await sql`select 1`.finally(() => sql.end());
    return existsSync(place.ready) ? connection : undefined;
  } catch {
    return undefined;
  }
}

async function keep(place: Place): Promise<void> {
  let lock = tryKeeperLock(place.directory);
  for (const deadline = Date.now() + 60_000; !lock; lock = tryKeeperLock(place.directory)) {
    if (existsSync(place.ready) || Date.now() > deadline) return;
    await Bun.sleep(20);
  }
  rmSync(place.failed, { force: true });
  // The keeper before us may just have removed the directory.
  accessibleDirectory();
  try {
    const cluster = await start(place).catch(async () => {
      // What a killed keeper left may be beyond repair: it ran without fsync.
      if (existsSync(place.postgres)) await removeCluster(place.postgres);
      return start(place);
    });
    await prepare(cluster.connection);
    writeFileSync(`${place.ready}.new`, JSON.stringify(cluster.connection), { mode: 0o600 });
    renameSync(`${place.ready}.new`, place.ready);
    await removeForgotten(place);
    await watch(place, cluster.connection);
    await cluster.stop();
  } catch (error) {
    writeFileSync(place.failed, `No PostgreSQL for the tests: ${error instanceof Error ? error.message : error}`);
  }
  await removeKept(place.directory);
  lock.release();
  removeIfEmpty(place.shared);
}

const start = ({ postgres: directory }: Place) =>
  startEmbedded({ directory, fsync: false, say: console.log, ...(binaries && { binaries }) });

async function prepare(connection: Connection): Promise<void> {
  const admin = postgres({ ...connection, database: "postgres", max: 1, onnotice: () => {} });
  try {
    const done = await admin`select from pg_database where datname = ${template} and datistemplate`;
    if (done.length > 0) return;
    await admin`drop database if exists ${admin(template)} with (force)`;
    await admin`create database ${admin(template)}`;
    const database = connect({ ...connection, database: template }, 1);
    await migrate(database, console.log)
      .then(() => createPartitions(database, new Date()))
      .finally(() => database.close());
    // Nobody can connect to it any more, so that it can always be copied.
    await admin`alter database ${admin(template)} with is_template true allow_connections false`;
  } finally {
    await admin.end();
  }
}

/** Resolves when nobody has wanted the cluster for some seconds, or on SIGTERM. */
async function watch(place: Place, connection: Connection): Promise<void> {
  const ownName = "assay test keeper";
  const sql = postgres({
    ...connection,
    database: "postgres",
    max: 1,
    max_lifetime: null,
    connection: { application_name: ownName },
  });
  const isUsed = async () => {
    // A process that hangs keeps its connections open: from some time on only what they do counts.
    const idleCounts = Date.now() < born + patientMinutes * 60_000;
    const clients = await sql`
      select from pg_stat_activity
      where backend_type = 'client backend' and application_name not in (${ownName}, ${holderName})
        and (${idleCounts} or state <> 'idle' or state_change > now() - interval '1 minute')`;
    return clients.length > 0;
  };
  const wantedAt = (path: string) => statSync(path).mtimeMs;
  const isRecent = (time: number) => Date.now() - time < idleSeconds * 1000;
  const stopping = `${place.ready}.stopping`;
  const born = Date.now();
  let usedAt = born;
  let told = false;
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => (told = true));
  try {
    while (!told) {
      await Bun.sleep(200);
      if (await isUsed()) usedAt = Date.now();
      if (isRecent(Math.max(usedAt, wantedAt(place.ready)))) continue;
      renameSync(place.ready, stopping);
      if (!isRecent(wantedAt(stopping)) && !(await isUsed())) return;
      renameSync(stopping, place.ready);
    }
  } finally {
    rmSync(place.ready, { force: true });
    await sql.end();
  }
}

/** What keepers of other states of the checkout left when they were killed. */
async function removeForgotten({ shared, directory }: Place): Promise<void> {
  const names = readdirSync(shared).map((name) => /^\w+/.exec(name)![0]);
  for (const other of new Set(names.map((name) => join(shared, name)))) {
    if (other === directory) continue;
    const lock = tryKeeperLock(other);
    if (!lock) continue;
    rmSync(`${other}.failed`, { force: true });
    await removeKept(other);
    lock.release();
  }
}

/** By the holder of its lock. What went wrong with it stays to be read. */
async function removeKept(directory: string): Promise<void> {
  const home = join(directory, "postgres");
  if (existsSync(home)) await removeCluster(home);
  rmSync(directory, { recursive: true, force: true });
  if (!existsSync(`${directory}.failed`)) rmSync(`${directory}.log`, { force: true });
  rmSync(`${directory}.lock`, { force: true });
}

function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // Others are at work in it.
  }
}

if (import.meta.main) await keep(accessibleDirectory());
