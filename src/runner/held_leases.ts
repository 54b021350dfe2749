/** The leases that a runner holds, the slots that their tasks occupy, and which tasks may start beside them. */

import { dirname, isAbsolute } from "node:path";
import { passwordsOf } from "./checkout.ts";
import { createFolderLocks, type Occupied } from "./folder_lock.ts";
import { inSlot, type TaskConfig } from "./config.ts";
import { createMask, type Mask } from "../secrets/mask.ts";
import type { RunnerLease } from "./protocol.ts";
import { mayShareReport, type Reach, reachesOf } from "./report_files.ts";
import { createTaskLog, type TaskLog } from "./task_log.ts";

export type RunningLease = {
  lease: RunnerLease;
  /** With the number of the slot filled in. */
  config: TaskConfig;
  slot: number;
  log: TaskLog;
  mask: Mask;
  stop: AbortController;
  /** Where the task may write its reports, outside of a work tree. */
  reaches: readonly Reach[];
  /** The folders that no other process gets as long as the task runs. */
  occupied: Occupied;
  /** The server says that the lease does not belong to this runner any more. */
  isGone: boolean;
  /** The server must have the whole log before it gets the report. */
  flush: PromiseWithResolvers<void> | undefined;
};

/** A task occupies its slot and its folders until its report is delivered. */
export type HeldLeases = {
  get(id: string): RunningLease | undefined;
  /** Begins to hold the lease of a task, in the lowest free slot; undefined: the task is blocked. */
  add(lease: RunnerLease, config: TaskConfig): RunningLease | undefined;
  remove(id: string): void;
  all(): RunningLease[];
  count(): number;
  /** How many tasks may start now. */
  capacity(): number;
  /**
   * The slugs of the tasks that may start: no task that runs may write the same report, which would be taken for the other. `isElsewhere`:
   * another runner process works in the folder of a task.
   */
  startable(): { slugs: string[]; isElsewhere: boolean };
  /** Whether a task waits until the server has its log. */
  isFlushing(): boolean;
};

/** `maxRunning` tasks run at the same time. `folder` is that of assay.yaml. */
export function createHeldLeases(
  tasks: ReadonlyMap<string, TaskConfig>,
  maxRunning: number,
  folder: string,
): HeldLeases {
  const leases = new Map<string, RunningLease>();
  const all = () => [...leases.values()];
  const occupy = createFolderLocks();

  /** "{slot}" in assay.yaml is the number of the slot. */
  const freeSlot = () => {
    const taken = new Set(all().map(({ slot }) => slot));
    for (let slot = 1; ; slot++) if (!taken.has(slot)) return slot;
  };
  const foldersOf = (config: TaskConfig): string[] => {
    const outside = outsideOf(config);
    // Runners of other folders may write the same report.
    const ofReports = reachesOf({ ...config, report: outside }).map(({ path, isOpen }) =>
      isOpen ? path : dirname(path),
    );
    if (config.git) return outside.length > 0 ? [folder, ...ofReports] : [];
    return [folder, config.workingDirectory, ...ofReports];
  };
  const isBeside = (own: readonly Reach[]) => !all().some(({ reaches }) => mayShareReport(reaches, own));
  return {
    get: (id) => leases.get(id),
    add(lease, config) {
      const slot = freeSlot();
      const own = inSlot(config, slot);
      const reaches = reachesIn(own);
      const occupied = isBeside(reaches) ? occupy(foldersOf(own)) : undefined;
      if (!occupied) return undefined;
      const mask = maskOf(lease, own);
      const held: RunningLease = {
        ...{ lease, config: own, slot, mask, reaches, occupied, log: createTaskLog(mask), stop: new AbortController() },
        ...{ isGone: false, flush: undefined },
      };
      leases.set(lease.id, held);
      return held;
    },
    remove(id) {
      leases.get(id)?.occupied.release();
      leases.delete(id);
    },
    all,
    count: () => leases.size,
    capacity: () => Math.max(0, maxRunning - leases.size),
    startable() {
      const slot = freeSlot();
      const beside = [...tasks].filter(([, config]) => isBeside(reachesIn(inSlot(config, slot))));
      const slugs = beside.filter(([, config]) => {
        const occupied = occupy(foldersOf(inSlot(config, slot)));
        occupied?.release();
        return occupied !== undefined;
      });
      return { slugs: slugs.map(([slug]) => slug), isElsewhere: slugs.length < beside.length };
    },
    isFlushing: () => all().some(({ flush, log }) => flush && log.unsentBytes() > 0),
  };
}

/** Hides the secret variables of a task, and the passwords in the address of its repository. */
function maskOf({ secretNames, variables }: RunnerLease, { git }: TaskConfig): Mask {
  const passwords = git ? passwordsOf(git) : [];
  return createMask([...secretNames.map((name) => variables[name] ?? ""), ...passwords]);
}

/** The reports of a task with a work tree that lie outside of the tree. */
const outsideOf = ({ report }: TaskConfig): string[] =>
  report.filter((path) => isAbsolute(path) || path.split("/").includes(".."));

/** A work tree belongs to one task, so that only reports outside of it can collide. */
const reachesIn = (config: TaskConfig): Reach[] =>
  reachesOf(config.git ? { ...config, report: outsideOf(config) } : config);

/** The fields by which log lines of the runner identify a lease. */
export const logFieldsOf = ({ id, execution, taskSlug, shard }: RunnerLease) => ({
  task: taskSlug,
  ...(shard ? { shard: `${shard.index}/${shard.total}` } : {}),
  execution: execution.id,
  lease: id,
});
