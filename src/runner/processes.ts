/** Ends all processes of a task: its control group and process groups, and on Linux all with its mark in the environment. */

import { readdirSync, readFileSync } from "node:fs";
import type { TaskCgroup } from "./cgroups.ts";
import { readProcess } from "./process_state.ts";

/** How long processes have between SIGTERM and SIGKILL. */
export const GRACE_MS = 10_000;
/** A process that survives SIGKILL hangs in the kernel or belongs to another user. */
const KILL_MS = 5_000;
/** All processes of the machine are looked at for it: less often the longer it takes. */
const LOOK_MS = { first: 10, last: 250 };

export type ProcessFamily = {
  /** `NAME=value`, in the environment of all of them. */
  mark: string;
  /** Their groups, which are sessions as well. */
  groups: ReadonlySet<number>;
  /** All processes in it belong to the task; undefined where the system has none. */
  cgroup?: TaskCgroup | undefined;
};

/** With those that were found once, by pid: one may have thrown off the mark and the session, and lose its parent. */
type KnownFamily = ProcessFamily & { started: Map<number, string> };

/**
 * Ends when none of them is left: SIGTERM, and SIGKILL after `graceMs` or when `hurry` is aborted. False: some could not
 * be ended.
 */
export async function endProcesses(of: ProcessFamily, graceMs: number, hurry?: AbortSignal): Promise<boolean> {
  const family: KnownFamily = { ...of, started: new Map() };
  if (!isAlive(family)) return true;
  send(family, "SIGTERM");
  if (await areGone(family, graceMs, hurry)) return true;
  for (const end = performance.now() + KILL_MS; performance.now() < end;) {
    family.cgroup?.kill();
    // Again and again: one that forks all the time may have slipped through.
    send(family, "SIGKILL");
    if (await areGone(family, 100)) return true;
  }
  return false;
}

async function areGone(family: KnownFamily, ms: number, hurry?: AbortSignal): Promise<boolean> {
  const end = performance.now() + ms;
  for (let wait = LOOK_MS.first; ; wait = Math.min(2 * wait, LOOK_MS.last)) {
    await Bun.sleep(wait);
    if (!isAlive(family)) return true;
    if (performance.now() > end || hurry?.aborted) return false;
  }
}

function isAlive(family: KnownFamily): boolean {
  const found = find(family);
  return found ? found.length > 0 : [...family.groups].some((group) => signal(-group, 0));
}

function send(family: KnownFamily, name: NodeJS.Signals): void {
  // Before any of them ends: it may be the parent by which another one is known.
  const found = find(family) ?? [];
  for (const group of family.groups) signal(-group, name);
  for (const pid of found) signal(pid, name);
}

function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

/** undefined: the system does not tell what processes there are. */
function find({ mark, groups, cgroup, started }: KnownFamily): number[] | undefined {
  let names: string[];
  try {
    names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return;
  }
  const processes = names.map((name) => readProcess(Number(name))).filter((one) => one !== undefined);
  const inCgroup = new Set(cgroup?.pids());
  const members = new Set(
    processes
      .filter(
        (one) =>
          inCgroup.has(one.pid) ||
          groups.has(one.group) ||
          groups.has(one.session) ||
          started.get(one.pid) === one.started ||
          hasMark(one.pid, mark),
      )
      .map(({ pid }) => pid),
  );
  // Children that have thrown off all of that, as long as their parents are there.
  for (let before = -1; before !== members.size;) {
    before = members.size;
    for (const { pid, parent } of processes) if (members.has(parent)) members.add(pid);
  }
  for (const { pid, started: at } of processes) if (members.has(pid)) started.set(pid, at);
  return [...members];
}

function hasMark(pid: number, mark: string): boolean {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`.includes(`\0${mark}\0`);
  } catch {
    return false;
  }
}

/**
 * Reads process groups, a line each, until "end"; if that never comes, the runner is gone. $0 is the mark, $1 how many
 * seconds they have, and $2 the directory of the control group; empty: there is none.
 */
const GUARD = `
groups=
while read -r word; do
  [ "$word" = end ] && exit 0
  groups="$groups $word"
done
send() {
  for group in $groups; do kill -s "$1" -- "-$group" 2>/dev/null; done
  for file in $(grep -slF "$0" /proc/[0-9]*/environ); do
    pid=\${file#/proc/}
    kill -s "$1" "\${pid%/environ}" 2>/dev/null
  done
  if [ -n "$cgroup" ]; then
    for pid in $(find "$cgroup" -name cgroup.procs -exec cat {} + 2>/dev/null); do kill -s "$1" "$pid" 2>/dev/null; done
  fi
}
cgroup=$2
send TERM
sleep "$1"
if [ -n "$cgroup" ]; then { echo 1 > "$cgroup/cgroup.kill"; } 2>/dev/null; fi
send KILL
if [ -n "$cgroup" ]; then
  sleep 1
  find "$cgroup" -depth -type d -exec rmdir {} \\; 2>/dev/null
fi
`;

export type Guard = {
  /** One more group to be ended. */
  add(group: number): void;
  release(): void;
};

/** A small process beside the runner: should that be killed, the task's processes are ended all the same. `locks` are descriptors. */
export function startGuard(
  mark: string,
  path: string | undefined,
  cgroup: TaskCgroup | undefined,
  locks: readonly number[] = [],
): Guard {
  const child = Bun.spawn(["/bin/sh", "-c", GUARD, mark, String(GRACE_MS / 1000), cgroup?.path ?? ""], {
    // In a session of its own: what is sent to the runner's group is not for it.
    detached: true,
    env: path === undefined ? {} : { PATH: path },
    // It has the locks of a runner that was killed until the processes are gone.
    stdio: ["pipe", "ignore", "ignore", ...locks],
  });
  // Somebody may have ended it: that is no reason to fail.
  const tell = async (line: string) => {
    try {
      child.stdin.write(`${line}\n`);
      await child.stdin.flush();
      if (line === "end") await child.stdin.end();
    } catch {
      child.kill("SIGKILL");
    }
  };
  return { add: (group) => void tell(String(group)), release: () => void tell("end") };
}
