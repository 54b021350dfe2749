/** Says where an execution comes from, and whether it belongs to the default branch. */

import { lineOf } from "../../rules/branch.ts";
import type { ExecutionData } from "../../schema/events.ts";
import type { ExecutionChange, LockedExecution } from "../../store/executions.ts";

/** Where an execution comes from, with what a report has just added. */
export function toOrigin(
  execution: LockedExecution,
  change: Partial<Omit<ExecutionChange, "status">> = {},
): ExecutionData {
  const { id, key, status } = execution;
  const queueRef = execution.queueRef ?? (execution.branch === null ? (change.queueRef ?? null) : null);
  return {
    id,
    key,
    status,
    branch: execution.branch ?? (execution.queueRef === null ? (change.branch ?? null) : null),
    commit: execution.commit ?? change.commit ?? null,
    pullRequest: execution.pullRequest ?? change.pullRequest ?? null,
    baseBranch: execution.baseBranch ?? change.baseBranch ?? (queueRef === null ? null : execution.defaultBranch),
    queueRef,
    buildUrl: execution.buildUrl ?? change.buildUrl ?? null,
    environment: execution.environment ?? change.environment ?? null,
  };
}

/** As `isOnDefault` (store/predicates.ts) has it. What names no branch counts as well: who has only one need not name it. */
export const isOnDefaultBranch = (
  { branch, pullRequest }: Pick<ExecutionData, "branch" | "pullRequest">,
  { defaultBranch, untrusted }: Pick<LockedExecution, "defaultBranch" | "untrusted">,
): boolean => !untrusted && lineOf({ branch, pullRequest }, defaultBranch) === defaultBranch;
