/** Verdicts: whether an execution may pass although tests of it failed. */

import { absent } from "../http/problem.ts";
import { readGate } from "../operations/executions/gate.ts";
import { awaitEnd } from "../request/await_end.ts";
import { plainText } from "../request/reply.ts";
import { route, type Route } from "../request/route.ts";
import { executionGate, gateQuery } from "../schema/gate.ts";
import { selectExecutionStatus } from "../store/executions.ts";
import { gateLines } from "../wording/gate.ts";

/** Maximum number of forgiven failures in the text of an answer. */
const MAX_LINES = 20;

export const verdicts: Route[] = [
  route(
    "GET /projects/:projectId/executions/:executionId/verdict",
    {
      summary: "Decide whether the failures of an execution are forgiven",
      description:
        "The decision of a gate about the whole execution, or about one of its tasks. An execution passes when all its " +
        "tasks have reported and nothing is wrong but failures that the gate forgives. New failures, failures in an " +
        "incident or an outage, missing shards, tasks that were cancelled or did not report, an incomplete report, and " +
        "an exit code that means more than failed tests are never forgiven, and nothing is in a task of which more than 5 % of the " +
        "baseline's tests did not run (gate_missing). A task that was rerun counts as its last " +
        "rerun left it. With wait, the answer is sent as soon as the execution has ended.",
      example: { query: { gate: "new" } },
      text: 'The first line begins with "Gate new: passed" or "Gate new: failed"; forgiven failures and reasons follow',
      query: gateQuery,
      answer: executionGate,
      deadlineSeconds: 60,
    },
    async (context) => {
      const { sql, fast, params, query, wantsText } = context;
      const { projectId, executionId } = params;
      const read = async () => {
        const status = (await selectExecutionStatus(fast, projectId, executionId)) ?? absent();
        const choice = { mode: query.gate, missingPercent: query.gate_missing };
        const decision = await readGate(sql, projectId, choice, { id: executionId, status }, query.task_slug);
        return { executionId, status, ...decision };
      };
      const found = await awaitEnd(context, query.wait, read, ({ final }) => final);
      return wantsText ? plainText(200, `${gateLines(found, MAX_LINES).join("\n")}\n`) : found;
    },
  ),
];
