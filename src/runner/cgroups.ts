/** Control groups of Linux (cgroups v2), one for each task: what runs in it can give up its parent, but not its group. */

import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { readProcess } from "./process_state.ts";

/**
 * Groups are named after the runner's PID namespace, its process and when it began, so that the next runner knows which were left behind.
 * A runner in another namespace, such as that of a container, cannot see whether the process is alive.
 */
const PREFIX = `assay-task-${findPidNamespace()}`;
/** A process that has been killed is gone some milliseconds later. */
const REMOVE_TRIES = 50;
const REMOVE_INTERVAL_MS = 20;

/** A task may create groups of its own, but looking at them must not take long. */
const MAX_GROUPS = 1_000;

/** Joins the group whose file $1 is, and becomes the rest of the arguments; without the group if that cannot be joined. */
const JOIN = '{ echo 0 > "$1"; } 2>/dev/null; shift; exec "$@"';

export type TaskCgroup = {
  path: string;
  /** The command that runs `command` in the group. */
  wrap(command: readonly string[]): string[];
  /** The processes in it and in groups below it. */
  pids(): number[];
  /** Kills all of them at once; does nothing where the kernel cannot (before Linux 5.14). */
  kill(): void;
  /** Removes the group once it is empty; one that does not become empty is left to the next start of a runner. */
  remove(): Promise<void>;
};

export type Cgroups = {
  /** undefined: it cannot be created. */
  create(): TaskCgroup | undefined;
};

/** The number of groups that this process has created: tests run several runners in one process. */
let groupCount = 0;

/**
 * The groups are below the runner's own, and no controller is enabled for them: so the runner may stay in its group.
 *
 * Ends what an earlier runner has left in the runner's own group. undefined: this system has no cgroups v2, or the runner may
 * not create groups below its own.
 */
export async function openCgroups(parent: string | undefined = findOwnCgroup()): Promise<Cgroups | undefined> {
  if (parent === undefined) return;
  await removeLeftovers(parent);
  const self = readProcess(process.pid);
  if (!self) return;
  const create = () => createGroup(join(parent, `${PREFIX}-${self.pid}-${self.started}-${groupCount++}`));
  const probe = create();
  if (!probe) return;
  const joined = Bun.spawnSync(["/bin/sh", "-c", 'echo 0 > "$0"', join(probe.path, "cgroup.procs")], {
    stdio: ["ignore", "ignore", "ignore"],
  });
  await probe.remove();
  return joined.exitCode === 0 ? { create } : undefined;
}

/** The number of the PID namespace of this process; 0 where the system has none. */
export function findPidNamespace(): string {
  try {
    return /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0";
  } catch {
    return "0";
  }
}

/** The directory of this process's group. The arguments are for tests. */
export function findOwnCgroup(
  groups = readText("/proc/self/cgroup"),
  mounts = readText("/proc/self/mountinfo"),
): string | undefined {
  const path = /^0::(\/.*)$/m.exec(groups)?.[1];
  if (path === undefined) return;
  for (const line of mounts.split("\n")) {
    const [mount, file] = line.split(" - ");
    if (file === undefined || !file.startsWith("cgroup2 ")) continue;
    const [root, point] = mount!.split(" ").slice(3, 5).map(unescapeMount) as [string, string];
    const below = relative(root, path);
    // Outside of what is mounted: the path begins above the root of our namespace.
    if (below.split("/").includes("..") || path.split("/").includes("..")) continue;
    return join(point, below);
  }
  return;
}

/** Blanks in paths are written in octal there. */
const unescapeMount = (path: string) =>
  path.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function createGroup(path: string): TaskCgroup | undefined {
  try {
    mkdirSync(path);
  } catch {
    return;
  }
  const group = openGroup(path);
  if (existsSync(join(path, "cgroup.procs"))) return group;
  // An ordinary directory.
  void group.remove();
  return;
}

/** A group that exists. */
export function openGroup(path: string): TaskCgroup {
  return {
    path,
    wrap: (command) => ["/bin/sh", "-c", JOIN, "sh", join(path, "cgroup.procs"), ...command],
    pids: () => groupsIn(path).flatMap((group) => numbersIn(join(group, "cgroup.procs"))),
    kill() {
      try {
        writeFileSync(join(path, "cgroup.kill"), "1", { flag: "r+" });
      } catch {
        // The caller kills them one by one.
      }
    },
    async remove() {
      for (let tries = 0; tries < REMOVE_TRIES && !removeNow(path); tries++) await Bun.sleep(REMOVE_INTERVAL_MS);
    },
  };
}

/** The group and those below it, the deepest ones first. */
function groupsIn(path: string): string[] {
  const groups = [path];
  for (let at = 0; at < groups.length && groups.length < MAX_GROUPS; at++)
    for (const entry of readDirectory(groups[at]!)) if (entry.isDirectory()) groups.push(join(groups[at]!, entry.name));
  return groups.reverse();
}

function readDirectory(path: string) {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch {
    return [];
  }
}

const numbersIn = (path: string): number[] =>
  readText(path)
    .split("\n")
    .map(Number)
    // Processes of another PID namespace are 0.
    .filter((pid) => pid > 0);

/** Whether it is gone. */
function removeNow(path: string): boolean {
  try {
    for (const group of groupsIn(path)) rmdirSync(group);
  } catch {
    // There is a process in it still.
  }
  return !existsSync(path);
}

/** Removes the groups of runners that were killed. */
async function removeLeftovers(parent: string): Promise<void> {
  const leftovers = readDirectory(parent).filter(({ name }) => {
    const [, pid, started] = new RegExp(`^${PREFIX}-(\\d+)-(\\d+)-\\d+$`).exec(name) ?? [];
    return pid !== undefined && readProcess(Number(pid))?.started !== started;
  });
  await Promise.all(
    leftovers.map(async ({ name }) => {
      const group = openGroup(join(parent, name));
      for (let tries = 0; tries < REMOVE_TRIES && !removeNow(group.path); tries++) {
        group.kill();
        for (const pid of group.pids()) killNow(pid);
        await Bun.sleep(REMOVE_INTERVAL_MS);
      }
    }),
  );
}

function killNow(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
