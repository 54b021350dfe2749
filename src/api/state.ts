/** Whether a branch is red or green. */

import { absent } from "../http/problem.ts";
import { route, type Route } from "../request/route.ts";
import type { BranchTask } from "../rules/branch_state.ts";
import { branchState, stateFilter } from "../schema/state.ts";
import { selectProject } from "../store/projects.ts";
import { selectBranch, selectBranchState } from "../store/state.ts";

const toBound = (isLonger: boolean) => (isLonger ? { isLonger: true as const } : {});

const toTask = ({ slug, status, since, executionId, isLonger, lastExecutionId, passed, failed }: BranchTask) => {
  return { slug, status, since, executionId, ...toBound(isLonger), lastExecutionId, passed, failed };
};

export const state: Route[] = [
  route(
    "GET /projects/:projectId/state",
    {
      summary: "Get the state of a branch, and since when",
      description:
        "The state of a branch is the latest result of each of its tasks, in the order in which builds began: a build of one " +
        "task does not change the state of other tasks, and a rerun counts for the build that it repeats, test by test. On the default branch, " +
        "executions that name no branch count as well.",
      example: { query: { branch: "main" } },
      query: stateFilter,
      answer: branchState,
    },
    async ({ sql, params: { projectId }, query }) => {
      const { defaultBranch } = (await selectProject(sql, projectId)) ?? absent();
      const of = await selectBranch(sql, projectId, query.branch ?? defaultBranch, defaultBranch);
      const { state, since, executionId, isLonger, tasks, missing } = await selectBranchState(sql, projectId, of);
      return {
        branch: of.branch,
        state,
        since,
        executionId,
        ...toBound(isLonger),
        tasks: tasks.map(toTask),
        missing: missing.map(toTask),
        ...(of.sample && state !== null ? { sample: true as const } : {}),
      };
    },
  ),
];
