/**
 * Machines as network namespaces: each has an address of its own, its connections can be cut without a word, and its processes end or freeze
 * together. The caller has namespaces of its own for mounts, processes and network (cluster.ts), so that nothing remains outside.
 */

import { mkdirSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";

/** The address of the caller, who has the network of no machine. */
export const OUTSIDE = "10.0.0.1";

export type Account = { uid: number; gid: number };

export type StartOptions = {
  account?: Account;
  env?: Record<string, string>;
  cwd?: string;
};

export type Machine = {
  name: string;
  address: string;
  /** A directory for its files. */
  folder: string;
  /** Starts a program, whose output is appended to `PROGRAM.log`. */
  start(program: string, command: readonly string[], options?: StartOptions): Bun.Subprocess;
  /** Everything that was logged by a program. */
  log(program: string): string;
  /** Signals all processes of the machine, or those whose command line contains `program`. */
  signal(signal: NodeJS.Signals, program?: string): void;
  /** Kills all processes of the machine, and waits for their end. */
  kill(): Promise<void>;
  /** Connects the machine, or disconnects it: its packets are lost, and no connection is closed. */
  connect(isConnected: boolean): Promise<void>;
  /** Drops all packets to and from a port of any machine. */
  block(port: number): Promise<void>;
  unblock(): Promise<void>;
};

export async function createNetwork(): Promise<void> {
  await Bun.$`mount -t tmpfs none /run`;
  await Bun.$`ip link set lo up`;
  await Bun.$`ip link add machines type bridge`;
  await Bun.$`ip address add ${OUTSIDE}/24 dev machines`;
  await Bun.$`ip link set machines up`;
}

export async function createMachine(name: string, address: string, parent: string, logs: string): Promise<Machine> {
  const folder = join(parent, name);
  mkdirSync(folder, { mode: 0o755 });
  await Bun.$`ip netns add ${name}`;
  await Bun.$`ip link add ${name} type veth peer name eth0 netns ${name}`;
  await Bun.$`ip link set ${name} master machines up`;
  await Bun.$`ip -n ${name} address add ${address}/24 dev eth0`;
  await Bun.$`ip -n ${name} link set eth0 up`;
  await Bun.$`ip -n ${name} link set lo up`;
  const network = `/run/netns/${name}`;
  const inode = statSync(network).ino;
  const logOf = (program: string) => join(logs, `${name}.${program}.log`);
  const inside = (...command: string[]) => Bun.$`nsenter --net=${network} ${command}`.quiet();

  const pids = (program = ""): number[] =>
    readdirSync("/proc")
      .filter((pid) => /^\d+$/.test(pid))
      .filter((pid) => {
        try {
          if (readlinkSync(`/proc/${pid}/ns/net`) !== `net:[${inode}]`) return false;
          return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").includes(program);
        } catch {
          // It has ended meanwhile.
          return false;
        }
      })
      .map(Number);

  function signal(signal: NodeJS.Signals, program?: string): void {
    for (const pid of pids(program)) {
      try {
        process.kill(pid, signal);
      } catch (error) {
        if ((error as { code?: string }).code !== "ESRCH") throw error;
      }
    }
  }

  return {
    name,
    address,
    folder,
    start(program, command, { account, env = {}, cwd = folder } = {}) {
      const asAccount = account
        ? ["setpriv", `--reuid=${account.uid}`, `--regid=${account.gid}`, "--clear-groups"]
        : [];
      const output = Bun.file(logOf(program));
      return Bun.spawn(
        ["sh", "-c", 'exec "$@" >>"$0" 2>&1', output.name!, "nsenter", `--net=${network}`, ...asAccount, ...command],
        { cwd, env: { PATH: process.env["PATH"]!, LC_ALL: "C.UTF-8", ...env }, stdio: ["ignore", "ignore", "inherit"] },
      );
    },
    log: (program) => readFileSync(logOf(program), "utf8"),
    signal,
    async kill() {
      for (; pids().length > 0; await Bun.sleep(20)) signal("SIGKILL");
    },
    async connect(isConnected) {
      await Bun.$`ip link set ${name} ${isConnected ? "up" : "down"}`;
    },
    async block(port) {
      const rules = ["input", "output"].map(
        (hook) => `add chain ip cut ${hook} { type filter hook ${hook} priority 0; };
          add rule ip cut ${hook} tcp dport ${port} drop; add rule ip cut ${hook} tcp sport ${port} drop;`,
      );
      await inside("nft", `add table ip cut; ${rules.join(" ")}`);
    },
    async unblock() {
      await inside("nft", "delete", "table", "ip", "cut");
    },
  };
}
