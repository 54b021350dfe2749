/** What happens to a cluster in operation, and how it is undone. */

import type { Application } from "./application.ts";
import type { DatabaseCluster } from "./database.ts";
import type { Machine } from "./machines.ts";

export type World = { database: DatabaseCluster; application: Application };

export type Fault = {
  name: string;
  /** `leader`: another machine becomes the leader. `standby`: the synchronous standby changes. `servers`: the database is not affected. */
  affects: "leader" | "standby" | "servers";
  times?: number;
  /** How long it lasts at least, and how long after its end is watched for effects. */
  holdMs?: number;
  watchMs?: number;
  /** `leader` is the leader at this moment; `round` counts from 0. Returns what undoes it. */
  strike(world: World, leader: Machine, round: number): Promise<() => Promise<void>>;
};

const ETCD_PORT = 2379;
/** Patroni does not leave a leader that only refuses writes. */
const FULL_DISK_MS = 10_000;
const DATABASE_PROGRAMS = ["postgres", "patroni"];

/** Processes of the machine die. If `hasPower` is false, it also falls silent before: its connections are not closed. */
async function killMachine({ database }: World, machine: Machine, hasPower: boolean): Promise<() => Promise<void>> {
  if (!hasPower) await machine.connect(false);
  await machine.kill();
  return async () => {
    if (!hasPower) await machine.connect(true);
    database.boot(machine);
  };
}

export const FAULTS: Record<string, Fault> = {
  kill: {
    name: "the leader's machine is killed",
    affects: "leader",
    times: 10,
    // Each second time its connections are not closed, as without power.
    strike: (world, leader, round) => killMachine(world, leader, round % 2 === 0),
  },
  crash: {
    name: "PostgreSQL of the leader is killed",
    affects: "leader",
    times: 2,
    async strike(_, leader) {
      leader.signal("SIGKILL", "postgres");
      return async () => {};
    },
  },
  freeze: {
    name: "the leader freezes for 40 s",
    affects: "leader",
    holdMs: 40_000,
    watchMs: 10_000,
    async strike(_, leader) {
      for (const program of DATABASE_PROGRAMS) leader.signal("SIGSTOP", program);
      return async () => {
        for (const program of DATABASE_PROGRAMS) leader.signal("SIGCONT", program);
      };
    },
  },
  agent: {
    name: "Patroni of the leader freezes for 40 s, PostgreSQL does not",
    affects: "leader",
    holdMs: 40_000,
    watchMs: 10_000,
    async strike(_, leader) {
      leader.signal("SIGSTOP", "patroni.yaml");
      return async () => leader.signal("SIGCONT", "patroni.yaml");
    },
  },
  etcd: {
    name: "the leader does not reach etcd for 40 s",
    affects: "leader",
    holdMs: 40_000,
    watchMs: 10_000,
    async strike(_, leader) {
      await leader.block(ETCD_PORT);
      return () => leader.unblock();
    },
  },
  network: {
    name: "the leader's machine loses its network for 40 s",
    affects: "leader",
    holdMs: 40_000,
    watchMs: 10_000,
    async strike(_, leader) {
      await leader.connect(false);
      return () => leader.connect(true);
    },
  },
  disk: {
    name: `the leader's disk is full, and after ${FULL_DISK_MS / 1_000} s the operator switches over`,
    affects: "leader",
    async strike({ database, application }, leader) {
      database.fillDisk(leader);
      await Bun.sleep(FULL_DISK_MS);
      if (await application.isReady()) throw new Error("The servers are ready although the disk is full");
      await database.switchOver(leader);
      return async () => database.emptyDisk(leader);
    },
  },
  switchover: {
    name: "a planned switchover",
    affects: "leader",
    async strike({ database }, leader) {
      await database.switchOver(leader);
      return async () => {};
    },
  },
  standby: {
    name: "the synchronous standby's machine is killed",
    affects: "standby",
    times: 2,
    async strike(world, _, round) {
      return await killMachine(world, (await world.database.find("sync_standby"))!, round % 2 === 0);
    },
  },
  servers: {
    name: "a server of Assay is killed",
    affects: "servers",
    times: 3,
    holdMs: 10_000,
    async strike({ application }, _, round) {
      const machine = application.machines[round % application.machines.length]!;
      await application.killServer(machine);
      return () => application.startServer(machine);
    },
  },
  upgrade: {
    name: "the servers are restarted one after the other",
    affects: "servers",
    async strike({ application }) {
      for (const machine of application.machines) {
        const code = await application.stopServer(machine);
        if (code !== 0) throw new Error(`${machine.name}: Assay ended with ${code}`);
        await application.startServer(machine);
      }
      return async () => {};
    },
  },
};
