/** Records and locks the use of a cluster. The pid of its server is not sufficient: processes in another container do not see it. */
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { give, type Home } from "./home.ts";
import { type Lock, tryLock } from "./lock.ts";
import { isAnswering, type Postmaster, socketName } from "./server.ts";

/** The process that started PostgreSQL last. The file remains when PostgreSQL stops; only the lock shows whether the cluster is in use. */
type Use = {
  host: string;
  pid: number;
  /** The path by which that process opened the directory. */
  path: string;
  since: string;
  /** The PID namespace, in which all processes see each other. */
  pidNamespace: string;
} & Identity;

/** Tells a directory, by whatever path, from its copies. `created` is null where the file system does not know it. */
type Identity = { inode: string; created: string | null };

const recordPath = (home: Home) => join(home.directory, "used-by.json");
const useLock = (home: Home) => join(home.directory, "use.lock");

/** Held by every process that uses the cluster, for as long as it does. Call it under the start lock, as all functions here. */
export function holdUse(home: Home): Lock {
  const lock = tryLock(useLock(home), "shared");
  if (!lock) throw new Error(`Another program has locked "${useLock(home)}": end it`);
  return lock;
}

/** Call it before PostgreSQL is started. */
export function recordUse(home: Home, path: string): void {
  const use: Use = {
    host: hostname(),
    pid: process.pid,
    path,
    since: new Date().toISOString(),
    pidNamespace: pidNamespace(),
    ...identify(home),
  };
  // A new file that takes the name: PostgreSQL's account may own the directory and could put a link there.
  const unfinished = `${recordPath(home)}.new`;
  rmSync(unfinished, { force: true });
  const file = openSync(unfinished, "wx", 0o600);
  writeSync(file, `${JSON.stringify(use)}\n`);
  closeSync(file);
  give(home.account, unfinished);
  renameSync(unfinished, recordPath(home));
}

/** Refuses to start PostgreSQL, of which no process is seen here, on files that another container uses or that are torn. */
export async function refuseUsedElsewhere(home: Home): Promise<void> {
  const use = readUse(home);
  // PostgreSQL removes it when it stops.
  const isClosed = !existsSync(join(home.directory, "cluster/postmaster.pid"));
  if (use && !isClosed && isCopy(use, identify(home))) {
    throw new Error(
      `It is a copy of a running database (${describe(use)}), whose files do not fit together: restore a backup instead. ` +
        `If nothing wrote to the database while it was copied, delete "${recordPath(home)}" and start again`,
    );
  }
  // Our own processes may use a cluster whose PostgreSQL has died.
  const isElsewhere = () => use !== undefined && use.pidNamespace !== pidNamespace() && isHeld(home);
  // A process that was killed just now keeps its locks and sockets for a moment.
  for (
    const deadline = Date.now() + 1000;
    isElsewhere() || (!isClosed && (await isAnswering(home)));
    await Bun.sleep(10)
  ) {
    if (Date.now() > deadline) throw inUse(use);
  }
}

/** Refuses the server that a process in use of it started where this one cannot reach its socket. */
export function refuseUnreachable(home: Home, { socket }: Postmaster): void {
  if (!existsSync(join(socket, socketName)) && isHeld(home)) throw inUse(readUse(home));
}

const inUse = (use: Use | undefined) =>
  new Error(
    `It is in use by ${use ? describe(use) : "a server"}, which cannot be reached from here: ` +
      "run commands there, and stop that server before you start one here",
  );

const describe = ({ host, pid, path, since }: Use) => `process ${pid} on "${host}", as "${path}" since ${since}`;

function isHeld(home: Home): boolean {
  const lock = tryLock(useLock(home));
  lock?.release();
  return lock === undefined;
}

function readUse(home: Home): Use | undefined {
  try {
    return JSON.parse(readFileSync(recordPath(home), "utf8"));
  } catch {
    return undefined; // None yet, or a power failure came before it was on the disk.
  }
}

// Excludes the device number, which may change with a restart or a remount.
function identify(home: Home): Identity {
  const { ino, birthtimeNs, ctimeNs } = statSync(home.directory, { bigint: true });
  // File systems that do not store the creation time report 0 or the time of the last change.
  const isKnown = birthtimeNs > 0n && birthtimeNs !== ctimeNs;
  return { inode: String(ino), created: isKnown ? String(birthtimeNs) : null };
}

const isCopy = (one: Identity, other: Identity) =>
  one.inode !== other.inode || (one.created !== other.created && one.created !== null && other.created !== null);

function pidNamespace(): string {
  if (process.platform !== "linux") return process.platform;
  try {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return hostname(); // A sandbox that lacks these files.
  }
}
