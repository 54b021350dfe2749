/** Runs the task of one lease, from the plan of its shard to the delivery of its report. */

import type { Log } from "../log.ts";
import { askServerForFiles, askServerForPlan } from "./ask_files.ts";
import type { Cgroups } from "./cgroups.ts";
import type { Checkouts } from "./checkout.ts";
import { deliver, type Delivered } from "./deliver.ts";
import { type RunningLease, logFieldsOf } from "./held_leases.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { type ServerConnection, SERVER_PATIENCE_MS } from "./line.ts";
import { fitLogPart, MAX_LOG_JSON_BYTES, MAX_LOG_PART_BYTES } from "./log_part.ts";
import type { Server } from "./protocol.ts";
import { runTask } from "./task.ts";
import type { TaskOutcome } from "./task_outcome.ts";
import { createSettleCommit } from "./tested_commit.ts";
import { sendTaskAttachments } from "./task_attachments.ts";

/** While a delivery takes less, no sync is sent: the next one then reports the end of the lease as well. */
export const DELIVERY_MS = 1_000;

/** Everything that all leases of a runner share. */
export type LeaseRun = {
  server: Server;
  line: ServerConnection;
  log: Log;
  lifecycle: Lifecycle;
  checkoutOf: Checkouts;
  host: Record<string, string | undefined>;
  machine: Readonly<Record<string, string>>;
  graceMs: number;
  cgroups: Cgroups | undefined;
  /** Kills the commands: the user has asked for it. */
  hurry: AbortSignal;
};

/** Returns whether the task has passed; its slot is free then. Throws a RunnerError where the runner cannot go on. */
export async function runLease(held: RunningLease, shared: LeaseRun): Promise<boolean> {
  const { log, lifecycle } = shared;
  const names = logFieldsOf(held.lease);
  log.info("Task started", names);
  const began = performance.now();
  const { end, release } = await runCommands(held, shared);
  held.log.end();
  const seconds = Math.round((performance.now() - began) / 1000);
  const isOurs = !lifecycle.hasFailed() && !held.isGone;
  const delivered: Delivered = isOurs
    ? await deliverEnd(held, end, shared)
    : { refused: "the lease belongs to another runner" };
  if ("result" in delivered && delivered.result !== "given to another runner") await attach(held, end, shared);
  release();
  const hasPassed = "result" in delivered && delivered.result === "passed";
  const failure = "message" in end && !hasPassed ? { failure: held.mask.text(end.message) } : {};
  log.info("Task ended", { ...names, seconds, ...failure, ...delivered });
  return hasPassed;
}

/** A file that cannot be sent changes nothing of the result. */
async function attach({ lease, config, mask }: RunningLease, end: TaskOutcome, shared: LeaseRun): Promise<void> {
  const { line, server, log } = shared;
  try {
    for (const note of await sendTaskAttachments(line, server, { lease, config, mask, end }))
      log.info("Attachments of a task", { ...logFieldsOf(lease), note });
  } catch (error) {
    log.warn("Attachments were not sent", { ...logFieldsOf(lease), problem: mask.text((error as Error).message) });
  }
}

/** `release` gives the work tree back, once nobody reads the report in it any more. */
async function runCommands(held: RunningLease, shared: LeaseRun): Promise<{ end: TaskOutcome; release: () => void }> {
  const { lease, config, mask, stop } = held;
  const { line, log, host, graceMs, cgroups, hurry } = shared;
  const onOutput = (bytes: Uint8Array) => held.log.write(bytes);
  const plan = await askShardPlan(held, shared);
  let release = () => {};
  if (plan === "no answer") {
    const message = "Cannot get the plan of the shard: the server does not respond";
    return { end: { kind: "infrastructure", message }, release };
  }
  let checkout;
  try {
    checkout = shared.checkoutOf(config.git);
  } catch (error) {
    return { end: { kind: "infrastructure", message: `Cannot check out: ${(error as Error).message}` }, release };
  }
  const end = await runTask({
    ...{ lease, config, plan, host, mask, graceMs, cgroups, hurry, onOutput },
    askFiles: (kind, files) => askServerForFiles(line, lease, stop.signal, kind, files),
    onNote: (note) => log.info("A rerun", { ...logFieldsOf(lease), note: mask.text(note) }),
    settleCommit: createSettleCommit(line, shared.server, lease, stop.signal),
    checkout,
    onTree: (give) => void (release = give),
    stop: stop.signal,
    locks: held.occupied.descriptors,
  });
  return { end, release };
}

async function askShardPlan(
  { lease, stop }: RunningLease,
  { line, log, server }: LeaseRun,
): Promise<string | "no answer" | undefined> {
  const answer = await askServerForPlan(line, lease, stop.signal);
  if (answer === "no answer" || answer === undefined) return answer;
  if (answer.status === 200) return answer.text;
  log.warn("The shard has no plan", { ...logFieldsOf(lease), reason: server.messageOf(answer) });
}

/** Delivers the log first, because the server takes none after the end of the lease. */
async function deliverEnd(held: RunningLease, end: TaskOutcome, shared: LeaseRun): Promise<Delivered> {
  const { line, server, machine, lifecycle } = shared;
  const { lease, config, mask, log } = held;
  if (log.unsentBytes() > (end.kind === "report" ? 0 : MAX_LOG_PART_BYTES)) {
    held.flush = Promise.withResolvers();
    lifecycle.wake();
    await Promise.race([held.flush.promise, Bun.sleep(SERVER_PATIENCE_MS)]);
    held.flush = undefined;
  }
  const late = setTimeout(lifecycle.wake, DELIVERY_MS);
  try {
    return await deliver(line, server, {
      ...{ leaseId: lease.id, isProbe: lease.probe, config, mask, end, machine },
      tail: () => fitLogPart(log.tail, MAX_LOG_JSON_BYTES),
      isGone: () => held.isGone,
    });
  } finally {
    clearTimeout(late);
  }
}
