/** Directories that tests run servers and clusters in, and a guard beside each run that clears them when the run dies. */

import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tryLock } from "../src/database/postgres/lock.ts";
import { findPostmaster, halt } from "../src/database/postgres/server.ts";

type Guard = { note(line: string): void; release(): void };

const children = new Set<Bun.Subprocess>();
const places = new Set<string>();
let guard: Guard | undefined;

/** An empty directory of its own, to be ended with `removePlace`. */
export function createPlace(name: string, parent: string = tmpdir()): string {
  const place = mkdtempSync(join(parent, `assay-${name}-`));
  places.add(place);
  tellGuard(`place ${place}`);
  return place;
}

/** A process that is not to outlive the run, however that ends. */
export function guardProcess(child: Bun.Subprocess): void {
  children.add(child);
  tellGuard(`process ${child.pid} ${birthOf(child.pid)}`);
  void child.exited.then(() => {
    children.delete(child);
    tellGuard(`ended ${child.pid}`);
    releaseGuard();
  });
}

/** With the clusters in it, whose servers are halted, wherever they are. */
export async function removePlace(place: string): Promise<void> {
  await clear(place);
  places.delete(place);
  tellGuard(`removed ${place}`);
  releaseGuard();
}

function tellGuard(line: string): void {
  guard ??= startGuard();
  guard.note(`${line}\n`);
}

function releaseGuard(): void {
  if (places.size > 0 || children.size > 0) return;
  guard?.release();
  guard = undefined;
}

const runName = "assay-run-";
const lockOf = (run: string) => join(run, "lock");
const notesOf = (run: string) => join(run, "notes");

/** It learns that we are gone when it gets the lock that we hold. */
function startGuard(): Guard {
  const run = mkdtempSync(join(tmpdir(), runName));
  const lock = tryLock(lockOf(run))!;
  // Through a shell that ends at once: bun test kills the children of a test that takes too long, and Ctrl-C is for us.
  const command = ["sh", "-c", '"$@" &', "sh", process.execPath, import.meta.path, run];
  Bun.spawn(command, { detached: true, stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  return { note: (line) => appendFileSync(notesOf(run), line), release: lock.release };
}

/** Clears up after runs that are over and whose own guard was killed, then waits for the end of this one. */
async function keepGuard(run: string): Promise<void> {
  for (const name of readdirSync(tmpdir()).filter((name) => name.startsWith(runName))) {
    await clearRun(join(tmpdir(), name)).catch(console.error);
  }
  for (; existsSync(run); await Bun.sleep(200)) await clearRun(run);
}

async function clearRun(run: string): Promise<void> {
  if (!existsSync(notesOf(run))) return;
  const lock = tryLock(lockOf(run));
  if (!lock) return;
  const [processes, left] = [new Map<number, string>(), new Set<string>()];
  for (const [, what, value] of readFileSync(notesOf(run), "utf8").matchAll(/^(\w+) (.*)$/gm)) {
    if (what === "place") left.add(value!);
    if (what === "removed") left.delete(value!);
    const [pid, birth = ""] = value!.split(" ");
    if (what === "process") processes.set(Number(pid), birth);
    if (what === "ended") processes.delete(Number(pid));
  }
  for (const [pid, birth] of processes) if (birth !== "" && birthOf(pid) === birth) process.kill(pid, "SIGKILL");
  for (const place of left) await clear(place);
  rmSync(run, { recursive: true, force: true });
  lock.release();
}

/** Tells a process from a later one with its pid; empty where the system does not say, and when it has ended. */
export function birthOf(pid: number): string {
  try {
    // After the name, which may hold anything: the 22nd field, in ticks since the system was started.
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ")[19]!;
  } catch {
    return "";
  }
}

/** Whoever was killed may have left an initdb or a server that is about to start: they end when they find nothing. */
async function clear(place: string): Promise<void> {
  for (const deadline = Date.now() + 20_000; ; await Bun.sleep(20)) {
    try {
      for (const path of clustersIn(place)) await removeCluster(path);
      return rmSync(place, { recursive: true, force: true });
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}

/** A data directory, here or one further down, keeps its cluster in "postgres": a directory, or a link to one. */
function clustersIn(place: string): string[] {
  const isDirectory = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isDirectory();
  if (!isDirectory(place)) return [];
  const folders = readdirSync(place).map((name) => join(place, name));
  return [place, ...folders.filter(isDirectory)]
    .map((folder) => join(folder, "postgres"))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory());
}

/** Whether a program of PostgreSQL is at work in the home of a cluster, where the system says so. */
function isWorkedIn(home: string): boolean {
  const worksThere = (pid: string) => {
    try {
      const named = readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`${home}/`);
      return named || readlinkSync(`/proc/${pid}/cwd`).startsWith(`${home}/`);
    } catch {
      return false;
    }
  };
  return existsSync("/proc") && readdirSync("/proc").some((name) => /^\d+$/.test(name) && worksThere(name));
}

/** `path` may be a link: as root, PostgreSQL is often kept elsewhere. */
export async function removeCluster(path: string): Promise<void> {
  const home = realpathSync(path);
  const cluster = join(home, "cluster");
  for (const deadline = Date.now() + 10_000; ; await Bun.sleep(20)) {
    const server = findPostmaster(cluster);
    if (server) await halt(server, cluster);
    // An initdb, or a server that is just starting, would leave its shared memory behind.
    if (!isWorkedIn(home) || Date.now() > deadline) break;
  }
  // A path that is too long for a socket has a link to where it is.
  const socket = join(home, "socket");
  if (lstatSync(socket, { throwIfNoEntry: false })?.isSymbolicLink())
    rmSync(readlinkSync(socket), { recursive: true, force: true });
  rmSync(home, { recursive: true, force: true });
  rmSync(path, { recursive: true, force: true });
}

if (import.meta.main) await keepGuard(process.argv[2]!);

/** Reads what a process prints to its end; `url` resolves with the first that `find` sees in it, and rejects where it ends before. */
export function followOutput(
  child: Bun.Subprocess<"ignore", "pipe", "inherit">,
  find: (output: string) => string | undefined,
) {
  let output = "";
  const { promise: url, resolve, reject } = Promise.withResolvers<string>();
  // To the end: who writes to a pipe that nobody reads fails.
  (async () => {
    for await (const chunk of child.stdout) {
      output += new TextDecoder().decode(chunk);
      const found = find(output);
      if (found !== undefined) resolve(found);
    }
    reject(new Error(`The process ended with ${await child.exited} before it was ready:\n${output}`));
  })().catch(reject);
  return { url, output: () => output };
}

/** Waits for the end of a process, and reads all that it prints. */
export async function readOutput(child: Bun.Subprocess<Bun.SpawnOptions.Writable, "pipe", "pipe">) {
  const [code, output, errors] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code, output, errors };
}
