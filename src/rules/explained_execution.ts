/** Chooses the execution that explains why a branch or a pull request is red. */

import type { Execution } from "../schema/executions.ts";
import type { BranchStateAnswer } from "../schema/state.ts";
import { hasEnded } from "./execution.ts";

type ExplainedExecution = {
  /** Undefined: there is none. */
  executionId: string | undefined;
  /** The newest execution, if it goes on and is not the explained one. */
  running: string | undefined;
};

const newestOf = (ids: readonly string[]): string | undefined => ids.toSorted().at(-1);

/**
 * Returns the newest execution with the latest result of a red task, because a green build of one task says nothing of the
 * others; if no task is red, the newest execution that has ended. `executions` are the newest first; `state` is null for a
 * pull request, where the newest that has ended counts.
 */
export function explainedExecution(
  state: Pick<BranchStateAnswer, "tasks"> | null,
  executions: readonly Pick<Execution, "id" | "status">[],
): ExplainedExecution {
  const tasks = state?.tasks ?? [];
  const red = tasks.filter(({ status }) => status !== "passed");
  const ended = executions.filter(({ status }) => hasEnded(status) && status !== "cancelled").map(({ id }) => id);
  const candidates = red.length > 0 ? red : tasks;
  const latest = candidates.map(({ lastExecutionId }) => lastExecutionId);
  const executionId = newestOf(red.length > 0 ? latest : [...latest, ...ended]) ?? executions[0]?.id;
  const newest = executions.find(({ status }) => !hasEnded(status));
  const isNewer = newest !== undefined && executionId !== undefined && newest.id > executionId;
  return { executionId, running: isNewer ? newest.id : undefined };
}
