/** Finds out why a branch, a pull request or an execution is red, from the answers of the API. */

import { explainedExecution } from "../rules/explained_execution.ts";
import type { Execution } from "../schema/executions.ts";
import type { ExecutionFailures } from "../schema/failures.ts";
import type { ListPage } from "../schema/page.ts";
import type { BranchStateAnswer } from "../schema/state.ts";
import type { ProjectApi } from "./tool.ts";

/** At most one field is set; none: the default branch. */
export type WhyQuery = {
  branch?: string | undefined;
  pullRequest?: string | undefined;
  executionId?: string | undefined;
};

export type Why = {
  /** The branch's state; null where a pull request or an execution was asked for. */
  state: BranchStateAnswer | null;
  /** Null: there is no execution. */
  execution: Execution | null;
  failures: ExecutionFailures | null;
  /** A newer execution that goes on. */
  running: string | null;
};

/** Maximum number of executions that are searched for one that has ended. */
const MAX_EXECUTIONS_SEARCHED = 20;

/** Fails like the API, with NOT_FOUND if the requested execution does not exist. */
export async function findWhy({ get }: Pick<ProjectApi, "get">, query: WhyQuery, causes: number): Promise<Why> {
  const { branch, pullRequest, executionId: wanted } = query;
  if (wanted !== undefined) return { state: null, running: null, ...(await read(wanted)) };
  const isBranch = pullRequest === undefined;
  const state = isBranch ? await get<BranchStateAnswer>("/state", { branch }) : null;
  const { data: executions } = await get<ListPage<Execution>>("/executions", {
    limit: MAX_EXECUTIONS_SEARCHED,
    // Reports of forks are no evidence about a branch.
    ...(state ? { branch: state.branch, untrusted: "false" } : { pull_request: pullRequest }),
  });
  const { executionId, running } = explainedExecution(state, executions);
  if (executionId === undefined) return { state, execution: null, failures: null, running: null };
  return { state, running: running ?? null, ...(await read(executionId, executions)) };

  async function read(id: string, known: readonly Execution[] = []) {
    const [execution, failures] = await Promise.all([
      known.find((one) => one.id === id) ?? get<Execution>(`/executions/${id}`),
      get<ExecutionFailures>(`/executions/${id}/failures`, { limit: causes }),
    ]);
    return { execution, failures };
  }
}

/** Whether the answer is red: the branch where one was asked for, else the execution. */
export const isRed = ({ state, execution }: Why): boolean =>
  state?.state === "failed" || (state?.state !== "passed" && execution?.verdict === "failed");
