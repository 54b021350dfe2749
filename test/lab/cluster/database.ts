/** Three machines with etcd, Patroni and PostgreSQL, configured as the examples of deploy/cluster/. */

import { chownSync, closeSync, mkdirSync, openSync, readdirSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { etcdVariables, patroniConfig } from "./examples.ts";
import { type Account, createMachine, type Machine } from "./machines.ts";

const DISK_MB = 2_000;
const POSTGRES = "/usr/lib/postgresql";
/** What a machine is given to come back as a member that streams: at the worst it copies everything. */
const REJOIN_MS = 180_000;

type Member = { name: string; role: string; state: string; timeline?: number; lag?: number | string };

const accountOf = (name: string): Account => {
  const [, uid, gid] = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, "m").exec(
    Bun.spawnSync(["getent", "passwd", name]).stdout.toString(),
  )!;
  return { uid: Number(uid), gid: Number(gid) };
};

/** The newest PostgreSQL of Debian's packages, undefined if there is none. */
export function findPostgres(): string | undefined {
  try {
    const versions = readdirSync(POSTGRES).map(Number).filter(Boolean);
    return versions.length === 0 ? undefined : join(POSTGRES, String(Math.max(...versions)), "bin");
  } catch {
    return undefined;
  }
}

export async function startDatabase(parent: string, logs: string) {
  const account = accountOf("postgres");
  const machines: Machine[] = [];
  for (const at of [1, 2, 3]) machines.push(await createMachine(`db${at}`, `10.0.0.2${at}`, parent, logs));
  const diskOf = ({ folder }: Machine) => join(folder, "disk");

  for (const machine of machines) {
    mkdirSync(diskOf(machine));
    await Bun.$`mount -t tmpfs -o size=${DISK_MB}m,mode=755 none ${diskOf(machine)}`;
    for (const path of [machine.folder, diskOf(machine)]) chownSync(path, account.uid, account.gid);
    const paths = { data: join(diskOf(machine), "data"), programs: findPostgres()!, folder: machine.folder };
    writeFileSync(join(machine.folder, "patroni.yaml"), patroniConfig(machine, paths));
  }

  function boot(machine: Machine): void {
    const { folder } = machine;
    machine.start("etcd", ["etcd"], { env: etcdVariables(machine, join(folder, "etcd")) });
    machine.start("patroni", ["patroni", join(folder, "patroni.yaml")], { account });
  }

  /** What the cluster looks like to a machine, undefined if it does not answer. */
  async function ask({ address }: Machine): Promise<Member[] | undefined> {
    try {
      const answer = await fetch(`http://${address}:8008/cluster`, { signal: AbortSignal.timeout(1_500) });
      return ((await answer.json()) as { members: Member[] }).members;
    } catch {
      return undefined;
    }
  }

  const named = (name: string | undefined) => machines.find((machine) => machine.name === name);

  /** The machine with a role, as others than `except` see it. */
  async function find(role: "leader" | "sync_standby", except?: Machine): Promise<Machine | undefined> {
    for (const machine of machines.filter((machine) => machine !== except)) {
      const members = await ask(machine);
      const member = members?.find((member) => member.role === role);
      if (member) return named(member.name);
    }
    return undefined;
  }

  async function isWhole(): Promise<boolean> {
    const views = await Promise.all(machines.map(ask));
    return views.every((members) => {
      if (members?.length !== 3) return false;
      const roles = members.map(({ role }) => role).sort();
      const isCaughtUp = members.every(({ lag, role }) => role === "leader" || (typeof lag === "number" && lag < 1e6));
      const states = members.every(({ state }) => state === "running" || state === "streaming");
      const timelines = new Set(members.map(({ timeline }) => timeline));
      return roles.join() === "leader,replica,sync_standby" && isCaughtUp && states && timelines.size === 1;
    });
  }

  /** Waits until a leader, a synchronous standby and a replica stream. Returns false if that takes too long. */
  async function untilWhole(ms = REJOIN_MS): Promise<boolean> {
    for (const began = performance.now(); !(await isWhole()); await Bun.sleep(300))
      if (performance.now() - began > ms) return false;
    return true;
  }

  for (const machine of machines) boot(machine);
  if (!(await untilWhole())) throw new Error(`The cluster does not start: see ${logs}`);

  return {
    machines,
    boot,
    find,
    untilWhole,
    describe: async () => {
      for (const machine of machines) {
        const members = await ask(machine);
        if (members)
          return members.map(({ name, role, state, lag }) => `${name} ${role} ${state} ${lag ?? ""}`).join(", ");
      }
      return "no answer";
    },
    /** Makes the synchronous standby the leader, as `patronictl switchover` does. */
    async switchOver(leader: Machine): Promise<void> {
      const candidate = await find("sync_standby");
      const body = JSON.stringify({ leader: leader.name, candidate: candidate?.name });
      const answer = await fetch(`http://${leader.address}:8008/switchover`, { method: "POST", body });
      if (!answer.ok) throw new Error(`switchover: ${answer.status} ${await answer.text()}`);
    },
    /** Leaves no byte of the disk with the data directory. */
    fillDisk(machine: Machine): void {
      const file = openSync(join(diskOf(machine), "filler"), "w");
      try {
        for (const chunk of [Buffer.alloc(1_048_576), Buffer.alloc(4_096)]) {
          try {
            for (;;) if (writeSync(file, chunk) < chunk.length) break;
          } catch (error) {
            if ((error as { code?: string }).code !== "ENOSPC") throw error;
          }
        }
      } finally {
        closeSync(file);
      }
    },
    emptyDisk: (machine: Machine) => rmSync(join(diskOf(machine), "filler")),
  };
}

export type DatabaseCluster = Awaited<ReturnType<typeof startDatabase>>;
