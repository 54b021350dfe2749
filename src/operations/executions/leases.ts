/** Leases: tasks are handed out to runners, which keep their leases alive. */

import type { ExecutionVariables } from "../../schema/environments.ts";
import type { Lease, LeaseState, LeaseSync } from "../../schema/leases.ts";
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
import { lockLease, renewLeases, selectExecutionsOf, startTasks } from "../../store/leases.ts";
import { selectListedRange } from "../../store/culprit_listings.ts";
import { selectOnly } from "../../store/probes.ts";
import { upsertRunner } from "../../store/runners.ts";
import { giveAgain, isHandedOut, type UnopenedLease } from "./lease_ends.ts";

export const sealVariables = (seal: Seal, projectId: string, variables: ExecutionVariables): Buffer =>
  seal.seal(executionVariablesPlace(projectId), JSON.stringify(variables));

export type Sync = Pick<LeaseSync, "free" | "held" | "returned" | "waitSeconds"> & { stopping?: boolean };

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

/**
 * In a transaction: all that a runner says, and all that it is to know. What is handed out has been opened before the
 * commit, so that nothing is handed out that cannot be told. Afterwards the caller calls `endUnopened` for the others.
 */
export async function syncRunner(
  sql: Tx,
  seal: Seal,
  projectId: string,
  asker: Asker,
  { free, held, returned, stopping = false, waitSeconds }: Sync,
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
    if (!execution || !lease || lease.runner !== asker.runner || !isHandedOut(lease)) continue;
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
  const runners = await upsertRunner(sql, projectId, asker, { free, held: ids.length, stopping });
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
