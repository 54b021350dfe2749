/** A runner: it asks one server for tasks, runs as many of them at a time as it may, and keeps the server informed. */

import type { Log } from "../log.ts";
import type { Cgroups } from "./cgroups.ts";
import { createCheckouts } from "./checkout.ts";
import type { TaskConfig } from "./config.ts";
import { createHeldLeases, type RunningLease } from "./held_leases.ts";
import { askForLeases } from "./lease_loop.ts";
import { createLeaseSync } from "./lease_sync.ts";
import { createLifecycle } from "./lifecycle.ts";
import { createLine } from "./line.ts";
import { GRACE_MS } from "./processes.ts";
import type { RunnerLease, Server } from "./protocol.ts";
import { type LeaseRun, runLease } from "./run_lease.ts";
import { RUNNER_STOPPED } from "./task_limits.ts";

export type RunnerOptions = {
  labels: readonly string[];
  /** From 1 to 64. */
  concurrency: number;
  /** Ends after one task. */
  once: boolean;
  /** By slug: others are not asked for. */
  tasks: ReadonlyMap<string, TaskConfig>;
  /** Where clones of repositories are kept. */
  folder: string;
  /** The environment of the runner. */
  host: Record<string, string | undefined>;
  /** The names of its machine, as parameters of an upload. */
  machine: Readonly<Record<string, string>>;
  server: Server;
  log: Log;
  graceMs?: number;
  cgroups?: Cgroups | undefined;
};

export type StartedRunner = {
  /** Whether every task passed. Rejects with a RunnerError where it cannot go on. */
  ended: Promise<boolean>;
  /** Takes nothing new and ends with what it has; called again, that is ended and goes to other runners, and called a third time, it is killed. */
  stop(): void;
};

export function startRunner(options: RunnerOptions): StartedRunner {
  const { labels, once, tasks, host, machine, server, log, graceMs = GRACE_MS, cgroups } = options;
  const line = createLine(server, log);
  const held = createHeldLeases(tasks, once ? 1 : options.concurrency, options.folder);
  const lifecycle = createLifecycle(once);
  const checkoutOf = createCheckouts(options.folder, host);
  const hurry = new AbortController();
  const shared: LeaseRun = {
    ...{ server, line, log, lifecycle, checkoutOf, host, machine, graceMs, cgroups },
    hurry: hurry.signal,
  };
  const sync = createLeaseSync({ labels, tasks, server, line, log, held, lifecycle, take });
  const runs = new Set<Promise<void>>();
  let allPassed = true;

  /** Starts the task of a lease; false: the runner cannot run it. */
  function take(lease: RunnerLease): boolean {
    if (held.get(lease.id)) return true;
    // The server learns of it at once: the open sync may not be the one that brought it.
    lifecycle.wake();
    const config = tasks.get(lease.taskSlug);
    const mayStart = config && !lifecycle.isEnding() && held.capacity() > 0;
    const one = mayStart ? held.add(lease, config) : undefined;
    if (!one) return false;
    lifecycle.noteTask();
    const ended = run(one);
    runs.add(ended);
    void ended.then(() => runs.delete(ended));
    return true;
  }

  /** Never rejects. */
  async function run(one: RunningLease): Promise<void> {
    try {
      const hasPassed = await runLease(one, shared);
      allPassed &&= hasPassed;
    } catch (error) {
      giveUp(error);
    }
    held.remove(one.lease.id);
    lifecycle.wake();
  }

  function giveUp(error: unknown): void {
    lifecycle.fail(error);
    for (const { stop, flush } of held.all()) {
      stop.abort("The runner cannot continue");
      flush?.resolve();
    }
    lifecycle.wake();
  }

  async function runUntilEnd(): Promise<boolean> {
    await askForLeases({ line, held, lifecycle, sync, giveUp });
    await Promise.all(runs);
    lifecycle.throwFailure();
    await sync.leave();
    return allPassed;
  }

  return {
    ended: runUntilEnd(),
    stop() {
      const stops = lifecycle.stop();
      if (stops === 1) log.info("Stopping: the runner takes no new tasks", { tasks: held.count() });
      if (stops === 2) for (const { stop } of held.all()) stop.abort(RUNNER_STOPPED);
      if (stops === 3) hurry.abort();
      lifecycle.wake();
    },
  };
}
