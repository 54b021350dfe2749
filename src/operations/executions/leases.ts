/** Leases: handed out to runners, kept alive by them, ended by their reports, and given to others when they are lost. */

import { advanceExecution } from "./advance.ts";
import { releaseFiles } from "./file_queues.ts";
import { hasEnded } from "../../rules/execution.ts";
import type { ExecutionVariables } from "../../schema/environments.ts";
import type { Lease, LeaseState, LeaseSync } from "../../schema/leases.ts";
import { refuse } from "../../schema/refusal.ts";
import { executionVariablesPlace, variablePlace } from "../../secrets/places.ts";
import { type Seal, SealError } from "../../secrets/seal.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { selectVariablesToOpen } from "../../store/environments.ts";
import { type LockedExecution, lockExecution } from "../../store/executions.ts";
import { selectSecretKeyDigest } from "../../store/instance.ts";
import { appendLogs } from "../../store/lease_logs.ts";
import {
  type Asker,
  leaveLeases,
  lockConcurrencyGroups,
  type OfferedLease,
  takeLeases,
} from "../../store/lease_offers.ts";
import {
  type HeldLease,
  lockLease,
  lockOverdueLease,
  renewLeases,
  requeueLease,
  selectSuccessor,
  selectExecutionsOf,
  startTasks,
  stopOvertime,
  updateEndedLease,
} from "../../store/leases.ts";
import { selectListedRange } from "../../store/culprit_listings.ts";
import { selectOnly } from "../../store/probes.ts";
import { noteInfrastructureFailure, upsertRunner } from "../../store/runners.ts";
import { notifyLeases } from "../../database/signals.ts";

export const sealVariables = (seal: Seal, projectId: string, variables: ExecutionVariables): Buffer =>
  seal.seal(executionVariablesPlace(projectId), JSON.stringify(variables));

export type Sync = Pick<LeaseSync, "free" | "held" | "returned" | "waitSeconds">;

export type Synced = {
  leases: Lease[];
  /** Leases that were to be handed out, and whose variables do not open. */
  unopened: UnopenedLease[];
  held: LeaseState[];
  /** The runner learns of something that it is to end. */
  hasStops: boolean;
  /** Somebody looks at what it holds. */
  isWatched: boolean;
  /** How many runners of the project have asked lately. */
  runners: number;
};

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

/**
 * In a transaction: all that a runner says, and all that it is to know. What is handed out has been opened before the
 * commit, so that nothing is handed out that cannot be told. Afterwards the caller calls `endUnopened` for the others.
 */
export async function syncRunner(
  sql: Tx,
  seal: Seal,
  projectId: string,
  asker: Asker,
  { free, held, returned, waitSeconds }: Sync,
): Promise<Synced> {
  const ids = held.map(({ id }) => id);
  // Executions first, then their leases: everybody locks in this order.
  const concerned = await selectExecutionsOf(sql, projectId, asker.runner, { offered: ids, returned });
  const executions = new Map<string, LockedExecution>();
  for (const { executionId } of concerned) {
    const execution = executions.has(executionId) ? undefined : await lockExecution(sql, projectId, executionId);
    if (execution) executions.set(executionId, execution);
  }
  for (const { id, executionId, isReturned } of concerned) {
    const execution = executions.get(executionId);
    const lease = isReturned && execution ? await lockLease(sql, projectId, id) : undefined;
    if (!execution || !lease || lease.runner !== asker.runner || !isHeld(lease)) continue;
    await giveAgain(sql, projectId, execution, lease, {
      status: "returned",
      message: `Returned by runner ${asker.runner}`,
    });
  }

  const renewed = ids.length === 0 ? [] : await renewLeases(sql, projectId, asker.runner, { ids, waitSeconds });
  for (const executionId of new Set(concerned.flatMap((lease) => (lease.isReturned ? [] : [lease.executionId]))))
    await startTasks(sql, projectId, executionId);
  const mine = new Map(renewed.map((lease) => [lease.id, lease]));
  const parts = held.flatMap(({ id, log }) =>
    log && mine.has(id) ? [{ id, offset: log.offset, bytes: new TextEncoder().encode(log.text) }] : [],
  );
  await appendLogs(sql, projectId, parts);
  for (const { id, offset, bytes } of parts) {
    const lease = mine.get(id)!;
    lease.logOffset = Math.max(lease.logOffset, offset + bytes.length);
  }
  const runners = await upsertRunner(sql, projectId, asker, { free, held: ids.length });
  if (free > 0) await lockConcurrencyGroups(sql, projectId);
  const taken = free === 0 ? [] : await takeLeases(sql, projectId, asker, free);
  return {
    ...(await openLeases(sql, seal, projectId, taken)),
    held: ids.map((id) => {
      const lease = mine.get(id);
      if (!lease)
        return { id, expiresAt: null, cancelled: true, reason: "This runner no longer holds the task", logOffset: 0 };
      const { expiresAt, stopReason, logOffset } = lease;
      return { id, expiresAt, cancelled: stopReason !== null, reason: stopReason, logOffset };
    }),
    hasStops: ids.some((id) => {
      const lease = mine.get(id);
      return !lease || (lease.stopReason !== null && !lease.wasTold);
    }),
    isWatched: renewed.some(({ isWatched }) => isWatched),
    runners,
  };
}

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

const isHeld = ({ status }: { status: string }) => status === "offered" || status === "running";

type LeaseEnd = { message: string; exitCode?: number | undefined };

type Locked = { execution: LockedExecution; lease: HeldLease };

/** Of a locked execution: the lease is over, and its work waits for another runner, unless nobody wants it any more. */
async function giveAgain(
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

/** What the end of a lease makes of its task and its execution. */
async function settle(sql: Tx, projectId: string, execution: LockedExecution): Promise<void> {
  await advanceExecution(sql, projectId, execution, "arrived", {
    arrived: !hasEnded(execution.status),
    now: new Date(),
  });
}

/** Splits the leases that the transaction has just taken into those for the runner and those whose variables cannot be decrypted. */
async function openLeases(
  sql: Tx,
  seal: Seal,
  projectId: string,
  taken: readonly OfferedLease[],
): Promise<Pick<Synced, "leases" | "unopened">> {
  const leases: Lease[] = [];
  const unopened: UnopenedLease[] = [];
  for (const lease of taken) {
    try {
      leases.push(await toLease(sql, seal, projectId, lease));
    } catch (error) {
      if (!(error instanceof UnopenedError)) throw error;
      const { id, executionId, taskSlug } = lease;
      unopened.push({ id, executionId, taskSlug, message: error.message, isLeft: false });
    }
  }
  if (unopened.length === 0) return { leases, unopened };
  // A server that still runs with the key from before a rotation is wrong, and not the task.
  const digest = await selectSecretKeyDigest(sql);
  if (digest === null || digest === seal.keyDigest) return { leases, unopened };
  await leaveLeases(
    sql,
    projectId,
    unopened.map(({ id }) => id),
  );
  return { leases, unopened: unopened.map((lease) => ({ ...lease, isLeft: true })) };
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

/** Names the variable that cannot be decrypted, in a sentence for people. */
class UnopenedError extends Error {}

function open(seal: Seal, place: readonly string[], sealed: Buffer, what: string): string {
  try {
    return seal.open(place, sealed);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    throw new UnopenedError(`Cannot decrypt ${what}: SECRET_KEY or the stored value has changed`, { cause: error });
  }
}

/** A lease as its runner gets it, with the variables in the clear. Throws UnopenedError. */
async function toLease(
  sql: Sql,
  seal: Seal,
  projectId: string,
  { executionId, key, branch, commit, pullRequest, environment, baseUrl, ...lease }: OfferedLease,
): Promise<Lease> {
  const { id, expiresAt, timeoutSeconds, taskSlug, attempt, shard, shards, teamId, environmentId } = lease;
  const given = environmentId === null ? [] : await selectVariablesToOpen(sql, teamId, environmentId);
  const variables: Record<string, string> = {};
  for (const { name, sealed } of given)
    variables[name] = open(
      seal,
      variablePlace(teamId, environmentId!, name),
      sealed,
      `the variable ${JSON.stringify(name)} of the environment ${JSON.stringify(environment)}, which is to be set anew`,
    );
  const own: Record<string, string> = lease.ownVariables
    ? JSON.parse(open(seal, executionVariablesPlace(projectId), lease.ownVariables, "the variables of the execution"))
    : {};
  Object.assign(variables, own);
  const only = await selectOnly(sql, projectId, { ...lease, executionId });
  const commits = lease.probe && !only ? await selectListedRange(sql, projectId, executionId) : undefined;
  return {
    id,
    expiresAt,
    timeoutSeconds,
    execution: { id: executionId, key, branch, commit, pullRequest, environment, baseUrl },
    taskSlug,
    attempt,
    ...(shard === 0 ? {} : { shard: { index: shard, total: shards } }),
    ...(only ? { only } : {}),
    ...(lease.probe ? { probe: true } : {}),
    ...(commits ? { commits } : {}),
    variables,
    secretNames: given.flatMap(({ name, secret }) => (secret ? [name] : [])),
    executionNames: Object.keys(own),
  };
}

/**
 * Of a locked execution: the report of a lease ends it, once. True when it has ended it before, so that what comes now can
 * only be the same again. The report of a lost lease is taken as long as the runner that got its work has not reported: then that
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
  else if (!isHeld(lease)) refuse(`Cannot accept the report: the lease has ended, it is "${lease.status}"`);
  await endLease(sql, projectId, leaseId, end);
  return false;
}

async function endSuccessor(sql: Tx, projectId: string, { id, runner }: HeldLease): Promise<void> {
  const next = await selectSuccessor(sql, projectId, id);
  if (!next) return;
  if (["reported", "failed"].includes(next.status))
    refuse(`Cannot accept the report: the lease was lost, and another runner has reported in its place`);
  if (next.status !== "queued" && !isHeld(next)) return;
  await endLease(sql, projectId, next.id, {
    status: "cancelled",
    message: `The runner ${runner} has reported later`,
  });
  await notifyLeases(sql, projectId);
}

/** Of a locked execution: the runner has ended what it was told to end. */
export async function endStopped(
  sql: Tx,
  projectId: string,
  { execution, lease }: Locked,
  message: string,
): Promise<void> {
  // Told twice, it stays as it was.
  if (!isHeld(lease)) return;
  await endLease(sql, projectId, lease.id, { status: "cancelled", message });
  await settle(sql, projectId, execution);
}

/** How often a task that a runner could not run goes to another one. */
const MAX_INFRASTRUCTURE_RETRIES = 2;
/** Of a message that stands on the page of runners. */
const MAX_PAUSE_REASON = 300;

/**
 * Of a locked execution: the runner could not run the task, which says nothing about the tests. Another runner gets it, twice at
 * most; then the task ends as incomplete. Answers whether it waits again.
 */
export async function endByInfrastructure(
  sql: Tx,
  projectId: string,
  { execution, lease }: Locked,
  { message, exitCode }: LeaseEnd,
): Promise<boolean> {
  // Told twice, it stays as it was.
  if (lease.status === "infrastructure") return (await selectSuccessor(sql, projectId, lease.id)) !== undefined;
  if (!isHeld(lease)) refuse(`Cannot accept the failure: the lease has ended, it is "${lease.status}"`);
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
    runners === 1 ? `The runner ${lease.runner} failed to start it three times` : `${runners} runners could not run it`;
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
    await endLease(sql, projectId, id, { status: "timed_out", message: overtime });
    await settle(sql, projectId, execution);
  } else if (attempt - lease.avoid.length < MAX_ATTEMPTS || lease.stopReason !== null) {
    await giveAgain(sql, projectId, execution, lease, { status: "lost", message: `The runner ${runner} was lost` });
  } else {
    const message = `The runner ${runner} was lost, like the one before it`;
    await endLease(sql, projectId, id, { status: "lost", message });
    await settle(sql, projectId, execution);
  }
  return true;
}
