/** The server process of the built-in PostgreSQL: finds the one that runs, launches one, waits for it, halts it. */
import {
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Binaries } from "./binaries.ts";
import { as, give, type Home } from "./home.ts";

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;

/** The server as described in postmaster.pid. */
export type Postmaster = { pid: number; socket: string; status: string };

type RunOptions = { fsync: boolean };

/** Enough for two servers, and for commands beside them. */
const MAX_CONNECTIONS = 100;

/** A part of the name of the socket; nothing listens on this port. */
export const serverPort = 5432;

/** Waits while the server starts, recovers or stops; undefined when there is none and `isComing` says none will be. */
export async function whenReady(
  cluster: string,
  isComing: () => boolean,
  say: (message: string) => void,
): Promise<Postmaster | undefined> {
  const started = Date.now();
  let said = 0;
  for (;;) {
    const coming = isComing();
    const server = findPostmaster(cluster);
    if (server?.status === "ready") return server;
    if (!server && !coming) return undefined;
    const waited = Math.floor((Date.now() - started) / 5000);
    if (waited > said) say(`PostgreSQL is not ready yet (${server?.status ?? "starting"}), waiting`);
    if (waited > 120) throw new Error(`PostgreSQL is still not ready after 10 minutes: see "${cluster}/../server.log"`);
    said = waited;
    await Bun.sleep(5);
  }
}

export function findPostmaster(cluster: string): Postmaster | undefined {
  try {
    const lines = readFileSync(join(cluster, "postmaster.pid"), "utf8").split("\n");
    const pid = Number(lines[0]);
    if (!isPostmaster(pid, cluster)) return undefined;
    return { pid, socket: localSocket(cluster, lines[4] ?? ""), status: lines[7]?.trim() ?? "" };
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return undefined;
    throw error;
  }
}

/** The server names its socket directory by the path that it was started with; here another path may lead there. */
function localSocket(cluster: string, named: string): string {
  const home = dirname(cluster);
  return basename(named).startsWith(prefix) && fitsInside(home) ? join(home, basename(named)) : named;
}

// After a reboot, or in a new container, the pid may belong to another process. A postmaster works in its data directory. Paths are not
// compared, because another path or mount namespace may lead to the same directory.
function isPostmaster(pid: number, cluster: string): boolean {
  try {
    const works = statSync(`/proc/${pid}/cwd`, { bigint: true });
    const { ino, dev } = statSync(cluster, { bigint: true });
    return works.ino === ino && works.dev === dev;
  } catch (error) {
    return (process.platform !== "linux" || (error as { code?: string }).code === "EACCES") && isAlive(pid);
  }
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch (error) {
    return (error as { code?: string }).code === "EPERM";
  }
}

/** Stops the server regardless of its clients, and waits until it has ended. */
export async function halt(server: Postmaster, cluster: string): Promise<void> {
  process.kill(server.pid, "SIGINT"); // PostgreSQL's fast shutdown
  if (!(await endsWithin(60_000, server, cluster))) {
    throw new Error(`PostgreSQL (pid ${server.pid}) has not stopped within a minute: see "${cluster}/../server.log"`);
  }
}

export async function endsWithin(milliseconds: number, server: Postmaster, cluster: string): Promise<boolean> {
  for (const deadline = Date.now() + milliseconds; isPostmaster(server.pid, cluster); await Bun.sleep(5)) {
    if (Date.now() > deadline) return false;
  }
  return true;
}

/** Starts the server of a complete cluster and waits until it accepts connections. */
export async function launch(
  home: Home,
  { directory }: Binaries,
  run: RunOptions,
  say: (message: string) => void,
): Promise<Postmaster> {
  const cluster = join(home.directory, "cluster");
  const log = join(home.directory, "server.log");
  removeForeignPid(cluster);
  for (const deadline = Date.now() + 15_000; ; await Bun.sleep(50)) {
    const socket = socketDirectory(home);
    const output = openSync(log, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
    give(home.account, log);
    const before = statSync(log).size;
    // Runs in a session of its own: Ctrl-C in our terminal would otherwise stop it before we have drained.
    const child = Bun.spawn([join(directory, "postgres"), "-D", cluster, ...settings(socket, run)], {
      ...as(home.account),
      stdout: output,
      stderr: output,
      detached: true,
    });
    child.unref();
    closeSync(output);
    const server = await whenReady(cluster, () => child.exitCode === null && child.signalCode === null, say);
    if (server) return server;
    const said = readFileSync(log).subarray(before).toString().trim().slice(-2000);
    // Processes of a killed postmaster end after a moment.
    if (!said.includes("shared memory block") || Date.now() > deadline) {
      const why = said.includes("No space left on device") ? ", because its disk is full" : "";
      throw new Error(`PostgreSQL does not start${why}; its log "${log}" ends with:\n${said}`);
    }
  }
}

// PostgreSQL takes any living process with the pid of a postmaster that was killed for that postmaster.
function removeForeignPid(cluster: string): void {
  const path = join(cluster, "postmaster.pid");
  if (!existsSync(path) || findPostmaster(cluster)) return;
  if (isAlive(Number.parseInt(readFileSync(path, "utf8"), 10))) rmSync(path);
}

/** Whether a server listens on the socket of this cluster, also if it runs in another container and its pid is unknown here. */
export async function isAnswering(home: Home): Promise<boolean> {
  const known = findSocketDirectory(home);
  if (!known) return false;
  try {
    (await Bun.connect({ unix: join(known, socketName), socket: { data() {} } })).end();
    return true;
  } catch {
    return false;
  }
}

/** Returns the directory that this cluster has always used, so that clients of a server that died find its successor. */
function socketDirectory(home: Home): string {
  const known = findSocketDirectory(home);
  if (known) {
    // Left by a server that was killed; PostgreSQL takes any living process with its pid for that server.
    for (const name of [socketName, `${socketName}.lock`]) rmSync(join(known, name), { force: true });
    return known;
  }
  const isInside = fitsInside(home.directory);
  if (!isInside) rmSync(join(home.directory, link), { force: true });
  const made = mkdtempSync(isInside ? join(home.directory, prefix) : outsidePrefix(home));
  give(home.account, made);
  if (!isInside) symlinkSync(made, join(home.directory, link));
  return made;
}

/** The name of the socket in its directory. */
export const socketName = `.s.PGSQL.${serverPort}`;
const prefix = "socket-";
const link = "socket";

// 103 bytes is all that macOS allows (Linux: 107); a comma would separate hosts.
const fitsInside = (home: string) => home.length <= 70 && /^[\w/.-]+$/.test(home);

/** Returns a prefix that is the same for every path to the directory, and different for a copy of it. */
const outsidePrefix = (home: Home) =>
  `/tmp/assay-socket-${Bun.hash(String(statSync(home.directory, { bigint: true }).ino)).toString(36)}-`;

const findSocketDirectory = (home: Home) => (fitsInside(home.directory) ? findInside(home) : findLinked(home));

function findInside(home: Home): string | undefined {
  const name = readdirSync(home.directory).find((name) => name.startsWith(prefix));
  return name && join(home.directory, name);
}

// The parent directory is writable by all, so only a directory that belongs to the account, and not to a copied cluster, is used.
function findLinked(home: Home): string | undefined {
  const path = join(home.directory, link);
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return undefined;
  const linked = readlinkSync(path);
  const found = lstatSync(linked, { throwIfNoEntry: false });
  const isOurs = linked.startsWith(outsidePrefix(home)) && found?.uid === (home.account?.uid ?? process.getuid?.());
  return found?.isDirectory() && isOurs ? linked : undefined;
}

/** Prepares a new cluster. The server of a deleted cluster may still run, and removes its socket when it ends. */
export function forgetSocketDirectory(home: Home): void {
  for (const name of readdirSync(home.directory)) {
    if (name.startsWith(prefix)) renameSync(join(home.directory, name), join(home.directory, `old-${name}`));
    if (name === link) rmSync(join(home.directory, name));
  }
}

// On the command line, so that they also reach a cluster made by an earlier Assay.
const settings = (socket: string, { fsync }: RunOptions) =>
  Object.entries({
    listen_addresses: "",
    port: serverPort,
    unix_socket_directories: socket,
    unix_socket_permissions: "0700",
    max_connections: MAX_CONNECTIONS,
    // A statement whose client was killed would run to its end, and take a connection and the processor for as long.
    client_connection_check_interval: "1s",
    shared_buffers: "128MB",
    work_mem: "8MB",
    maintenance_work_mem: "64MB",
    max_parallel_workers_per_gather: 0,
    jit: "off",
    random_page_cost: 1.1,
    wal_compression: "on",
    min_wal_size: "64MB",
    max_wal_size: "512MB",
    checkpoint_timeout: "15min",
    log_checkpoints: "off",
    // A failed statement is the caller's to report; here it would leave users' data in a file.
    log_min_messages: "log",
    log_min_error_statement: "panic",
    timezone: "UTC",
    log_timezone: "UTC",
    ...(fsync ? {} : { fsync: "off", synchronous_commit: "off", full_page_writes: "off" }),
  }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
