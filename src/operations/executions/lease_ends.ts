/** Ends leases: by a report, a cancellation or an infrastructure failure, or because the runner is lost. */

import { advanceExecution } from "./advance.ts";
import { releaseFiles } from "./file_queues.ts";
import { hasEnded } from "../../rules/execution.ts";
import { refuse } from "../../schema/refusal.ts";
import type { Tx } from "../../database/connect.ts";
import { type LockedExecution, lockExecution } from "../../store/executions.ts";
import {
  type HeldLease,
  lockLease,
  lockOverdueLease,
  requeueLease,
  selectSuccessor,
  stopOvertime,
  updateEndedLease,
} from "../../store/leases.ts";
import { noteInfrastructureFailure } from "../../store/runners.ts";
import { appendLogNote } from "../../store/lease_logs.ts";
import { notifyLeases } from "../../database/signals.ts";

/** A lease whose variables do not open. */
export type UnopenedLease = {
  id: string;
  executionId: string;
  taskSlug: string;
  /** Names the variable that cannot be decrypted, and what to do; for people. */
  message: string;
  /** The server has another SECRET_KEY than the database: it has left the lease to other servers, in its place in the queue. */
  isLeft: boolean;
};

/** The next task of its concurrency group may begin. */
async function endLease(
  sql: Tx,
  projectId: string,
  id: string,
  end: Parameters<typeof updateEndedLease>[3],
): Promise<void> {
  const [ended] = await updateEndedLease(sql, projectId, id, end);
  if (ended?.hasGroup) await notifyLeases(sql, projectId);
}

export const isHandedOut = ({ status }: { status: string }) => status === "offered" || status === "running";

type LeaseEnd = { message: string; exitCode?: number | undefined };

type Locked = { execution: LockedExecution; lease: HeldLease };

/** Ends a lease of a locked execution. Its work waits for another runner, unless nobody wants it any more. */
export async function giveAgain(
  sql: Tx,
  projectId: string,
  execution: LockedExecution,
  lease: HeldLease,
  { status, message, exitCode }: LeaseEnd & { status: "returned" | "lost" | "infrastructure" },
): Promise<void> {
  const isUnwanted = lease.stopReason !== null || hasEnded(execution.status);
  await endLease(sql, projectId, lease.id, { status: isUnwanted ? "cancelled" : status, message, exitCode });
  if (isUnwanted) return await settle(sql, projectId, execution);
  const { executionId, taskSlug, shard, shards } = lease;
  await releaseFiles(sql, { projectId, executionId, taskSlug }, { index: shard || 1, of: shards });
  await requeueLease(sql, projectId, lease.id, { costs: status === "returned" ? 0 : 1 });
  await notifyLeases(sql, projectId);
}

/** Brings the task and the execution up to date after the end of a lease. */
async function settle(sql: Tx, projectId: string, execution: LockedExecution): Promise<void> {
  await advanceExecution(sql, projectId, execution, "arrived", {
    arrived: !hasEnded(execution.status),
    now: new Date(),
  });
}

/**
 * In a transaction of its own, because executions are locked before their leases: the task ends, and its `reason` says why.
 * Where this is never called the offer runs out, and the next runner that asks comes to the same.
 */
export async function endUnopened(
  sql: Tx,
  projectId: string,
  { id, executionId, message }: UnopenedLease,
): Promise<void> {
  const execution = await lockExecution(sql, projectId, executionId);
  const lease = execution && (await lockLease(sql, projectId, id));
  if (!execution || !lease || lease.status !== "offered") return;
  await endLease(sql, projectId, id, { status: "cancelled", message });
  await settle(sql, projectId, execution);
}

/**
 * Ends a lease of a locked execution by its report, once. Returns true if the report has ended it before: what comes now can only be
 * the same again. The report of a lost lease is taken as long as the runner that got its work has not reported: then that
 * one is not wanted any more.
 */
export async function endByReport(
  sql: Tx,
  projectId: string,
  leaseId: string,
  end: { status: "reported" | "failed"; message?: string | undefined; exitCode?: number | undefined },
): Promise<boolean> {
  const lease = (await lockLease(sql, projectId, leaseId)) ?? refuse(`Cannot read "lease_id": there is no such lease`);
  if (lease.status === end.status) return true;
  if (lease.status === "lost" && lease.hasStarted) await endSuccessor(sql, projectId, lease);
  else if (!isHandedOut(lease)) refuse(`Cannot accept the report: the lease has ended, it is "${lease.status}"`);
  await endLease(sql, projectId, leaseId, end);
  return false;
}

async function endSuccessor(sql: Tx, projectId: string, { id, runner }: HeldLease): Promise<void> {
  const next = await selectSuccessor(sql, projectId, id);
  if (!next) return;
  if (["reported", "failed"].includes(next.status))
    refuse(`Cannot accept the report: the lease was lost, and another runner has reported in its place`);
  if (next.status !== "queued" && !isHandedOut(next)) return;
  await endLease(sql, projectId, next.id, {
    status: "cancelled",
    message: `The runner ${runner} has reported later`,
  });
  await notifyLeases(sql, projectId);
}

/** Ends a lease of a locked execution whose runner has ended what it was told to end. */
export async function endStopped(
  sql: Tx,
  projectId: string,
  { execution, lease }: Locked,
  message: string,
): Promise<void> {
  // Told twice, it stays as it was.
  if (!isHandedOut(lease)) return;
  await endLease(sql, projectId, lease.id, { status: "cancelled", message });
  await settle(sql, projectId, execution);
}

/** How often a task that a runner could not run goes to another one. */
const MAX_INFRASTRUCTURE_RETRIES = 2;
/** The page of runners shows so many characters of a message. */
const MAX_PAUSE_REASON = 300;

/**
 * Ends a lease of a locked execution whose runner could not run the task, which says nothing about the tests. Another runner
 * gets it, twice at most; then the task ends as incomplete. Answers whether it waits again.
 */
export async function endByInfrastructure(
  sql: Tx,
  projectId: string,
  { execution, lease }: Locked,
  { message, exitCode }: LeaseEnd,
): Promise<boolean> {
  // Told twice, it stays as it was.
  if (lease.status === "infrastructure") return (await selectSuccessor(sql, projectId, lease.id)) !== undefined;
  if (!isHandedOut(lease)) refuse(`Cannot accept the failure: the lease has ended, it is "${lease.status}"`);
  const firstLine = message.split("\n")[0]!.slice(0, MAX_PAUSE_REASON).toWellFormed();
  // Dependencies of an old commit may no longer exist, which is not the runner's fault.
  if (!lease.probe) await noteInfrastructureFailure(sql, projectId, lease.id, firstLine);
  if (lease.avoid.length < MAX_INFRASTRUCTURE_RETRIES) {
    const said = `The runner ${lease.runner} could not run it: ${message}`;
    await giveAgain(sql, projectId, execution, lease, { status: "infrastructure", message: said, exitCode });
    return lease.stopReason === null && !hasEnded(execution.status);
  }
  const runners = new Set([...lease.avoid, lease.runner]).size;
  const whoever =
    runners === 1
      ? `The runner ${lease.runner} could not run it in three attempts`
      : `${runners} runners could not run it`;
  const said = `${whoever}; the last time: ${message}`;
  await endLease(sql, projectId, lease.id, { status: "infrastructure", message: said, exitCode });
  await settle(sql, projectId, execution);
  return false;
}

/** How often a task may be lost with its runner. */
const MAX_ATTEMPTS = 2;

/** In a transaction: a lease whose time is over goes to another runner, or is to be ended. False when it is not so any more. */
export async function endOverdue(
  sql: Tx,
  projectId: string,
  { id, executionId }: { id: string; executionId: string },
): Promise<boolean> {
  const execution = await lockExecution(sql, projectId, executionId);
  const lease = execution && (await lockOverdueLease(sql, projectId, id));
  if (!lease) return false;
  const { isExpired, isTooLong, attempt, runner, status } = lease;
  const overtime = `It exceeded its time limit of ${lease.timeoutSeconds} s`;
  if (!isExpired && !isTooLong) {
    await stopOvertime(sql, projectId, id, overtime);
    await notifyLeases(sql, projectId);
  } else if (status === "offered") {
    const message = `The runner ${runner} did not confirm the task`;
    await giveAgain(sql, projectId, execution, lease, { status: "returned", message });
  } else if (isTooLong || lease.overtime) {
    await appendLogNote(sql, projectId, id, overtime);
    await endLease(sql, projectId, id, { status: "timed_out", message: overtime });
    await settle(sql, projectId, execution);
  } else if (attempt - lease.avoid.length < MAX_ATTEMPTS || lease.stopReason !== null) {
    const message = `The runner ${runner} was lost`;
    await appendLogNote(sql, projectId, id, message);
    await giveAgain(sql, projectId, execution, lease, { status: "lost", message });
  } else {
    const message = `The runner ${runner} was lost, like the one before it`;
    await appendLogNote(sql, projectId, id, message);
    await endLease(sql, projectId, id, { status: "lost", message });
    await settle(sql, projectId, execution);
  }
  return true;
}
