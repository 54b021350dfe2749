/** The commit of an execution that names only a branch, or nothing: the first runner that looks decides it for all tasks. */

import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import type { Tx } from "../../database/connect.ts";
import { lockExecution, updateExecutionCommit } from "../../store/executions.ts";
import { lockLease } from "../../store/leases.ts";
import { isHandedOut } from "./lease_ends.ts";

/** In a transaction: stores the commit unless the execution has one. Returns the commit of the execution. */
export async function settleCommit(
  sql: Tx,
  projectId: string,
  { leaseId, executionId }: { leaseId: string; executionId: string },
  commit: string,
): Promise<string> {
  const execution = (await lockExecution(sql, projectId, executionId)) ?? refuseAbsent();
  const lease = (await lockLease(sql, projectId, leaseId)) ?? refuseAbsent();
  if (!isHandedOut(lease)) refuse(`Cannot accept the commit: the lease has ended, it is "${lease.status}"`);
  if (execution.commit !== null) return execution.commit;
  await updateExecutionCommit(sql, projectId, executionId, commit);
  return commit;
}
