/** The leases that a runner holds, the slots that their tasks occupy, and which tasks may start beside them. */

import { isAbsolute } from "node:path";
import { passwordsOf } from "./checkout.ts";
import { inSlot, type TaskConfig } from "./config.ts";
import { createMask, type Mask } from "../secrets/mask.ts";
import type { RunnerLease } from "./protocol.ts";
import { mayShareReport } from "./report_files.ts";
import { createTaskLog, type TaskLog } from "./task_log.ts";

/** The limit of the server is a little higher; a lease whose report is being delivered counts as well. */
const MAX_HELD_LEASES = 200;

export type RunningLease = {
  lease: RunnerLease;
  /** With the number of the slot filled in. */
  config: TaskConfig;
  slot: number;
  log: TaskLog;
  mask: Mask;
  stop: AbortController;
  /** The task runs or its report is being delivered: it occupies its slot. */
  isRunning: boolean;
  /** The server says that the lease does not belong to this runner any more. */
  isGone: boolean;
  /** The server must have the whole log before it gets the report. */
  flush: PromiseWithResolvers<void> | undefined;
};

export type HeldLeases = {
  get(id: string): RunningLease | undefined;
  /** Begins to hold the lease of a task, in the lowest free slot. */
  add(lease: RunnerLease, config: TaskConfig): RunningLease;
  remove(id: string): void;
  all(): RunningLease[];
  count(): number;
  runningCount(): number;
  /** How many tasks may start now. */
  capacity(): number;
  /** Whether a task that runs may write the same report. Then one report would be taken for the other. */
  isBlocked(config: TaskConfig): boolean;
  /** The slugs of the tasks that are not blocked. */
  startableSlugs(): string[];
  /** Whether a task waits until the server has its log. */
  isFlushing(): boolean;
};

/** `maxRunning` tasks run at the same time. */
export function createHeldLeases(tasks: ReadonlyMap<string, TaskConfig>, maxRunning: number): HeldLeases {
  const leases = new Map<string, RunningLease>();
  const all = () => [...leases.values()];
  const running = () => all().filter(({ isRunning }) => isRunning);

  /** "{slot}" in assay.yaml is the number of the slot. */
  const freeSlot = () => {
    const taken = new Set(running().map(({ slot }) => slot));
    for (let slot = 1; ; slot++) if (!taken.has(slot)) return slot;
  };
  const isBlocked = (config: TaskConfig) => {
    const own = inSlot(config, freeSlot());
    // A work tree belongs to one task, so that only reports outside of it can collide.
    return running().some(({ config: other }) =>
      other.git && own.git ? mayShareReport(outsideOf(other), outsideOf(own)) : mayShareReport(other, own),
    );
  };
  return {
    get: (id) => leases.get(id),
    add(lease, config) {
      const slot = freeSlot();
      const own = inSlot(config, slot);
      const mask = maskOf(lease, own);
      const held: RunningLease = {
        ...{ lease, config: own, slot, mask, log: createTaskLog(mask), stop: new AbortController() },
        ...{ isRunning: true, isGone: false, flush: undefined },
      };
      leases.set(lease.id, held);
      return held;
    },
    remove: (id) => void leases.delete(id),
    all,
    count: () => leases.size,
    runningCount: () => running().length,
    capacity: () => Math.max(0, Math.min(maxRunning - running().length, MAX_HELD_LEASES - leases.size)),
    isBlocked,
    startableSlugs: () => [...tasks].filter(([, config]) => !isBlocked(config)).map(([slug]) => slug),
    isFlushing: () => all().some(({ flush, log }) => flush && log.unsentBytes() > 0),
  };
}

/** Hides the secret variables of a task, and the passwords in the address of its repository. */
function maskOf({ secretNames, variables }: RunnerLease, { git }: TaskConfig): Mask {
  const passwords = git ? passwordsOf(git) : [];
  return createMask([...secretNames.map((name) => variables[name] ?? ""), ...passwords]);
}

/** Returns the configuration of a task with a work tree, with only the reports that lie outside of the tree. */
const outsideOf = (config: TaskConfig) => ({
  ...config,
  report: config.report.filter((path) => isAbsolute(path) || path.split("/").includes("..")),
});

/** The fields by which log lines of the runner identify a lease. */
export const logFieldsOf = ({ id, execution, taskSlug, shard }: RunnerLease) => ({
  task: taskSlug,
  ...(shard ? { shard: `${shard.index}/${shard.total}` } : {}),
  execution: execution.id,
  lease: id,
});
