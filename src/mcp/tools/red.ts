/** Tools that say why something is red: the start of every question. */

import * as v from "valibot";
import { branchName, described, integer, text, uuid } from "../../schema/fields.ts";
import { refuse } from "../../schema/refusal.ts";
import type { ExecutionFailures } from "../../schema/failures.ts";
import type { ExecutionGate } from "../../schema/gate.ts";
import { blameCountWords } from "../../wording/blame.ts";
import { absentLines } from "../../wording/absent_tests.ts";
import { counted } from "../../wording/numbers.ts";
import { branchSentence, noExecution, redElsewhere } from "../../wording/why.ts";
import type { JsonRecord } from "../json_rpc.ts";
import { showCause, showExecution } from "../shown.ts";
import { type ProjectApi, type Tool, tool } from "../tool.ts";
import type { Cleaner } from "../untrusted.ts";
import { findWhy, isRed, type Why } from "../why.ts";

const CAUSES = 10;
const MAX_CAUSES = 25;

function showState({ state }: Why, cleaner: Cleaner): JsonRecord {
  if (!state) return {};
  const red = state.tasks.filter(({ status }) => status !== "passed");
  return {
    branch: {
      ...cleaner.split({ branch: state.branch, sentence: branchSentence(state) }, []),
      state: state.state,
      since: state.since,
      redTasks: red.map((task) =>
        cleaner.split(task, ["status", "since", "executionId", "lastExecutionId", "passed", "failed"]),
      ),
    },
  };
}

const furtherCauses = ({ causeCount, causes }: ExecutionFailures, hint: string): string[] =>
  causeCount > causes.length ? [`${counted(causeCount - causes.length, "more cause")}; ${hint}`] : [];

const MAX_ELSEWHERE = 5;

/** Says how to explain the red tasks of the branch that the explained execution does not contain. */
function furtherTasks({ state }: Why, executionId: string): string[] {
  const elsewhere = state ? [...redElsewhere(state, executionId)] : [];
  return elsewhere
    .slice(0, MAX_ELSEWHERE)
    .map(([id, slugs]) => `${counted(slugs.length, "more red task")}; call why_is_it_red with executionId ${id}`);
}

/** Shows whether the gate "new" forgives the failures of an execution; the tests that it forgives are among the causes. */
async function showGate({ get }: ProjectApi, executionId: string, cleaner: Cleaner): Promise<JsonRecord> {
  const decision = await get<ExecutionGate>(`/executions/${executionId}/verdict`, { gate: "new" });
  const { gate, pass, final, forgivenCount, reasons } = decision;
  return {
    gate: cleaner.split({ mode: gate, pass, final, forgivenCount, reasons }, [
      "mode",
      "pass",
      "final",
      "forgivenCount",
    ]),
  };
}

export const whyIsItRedTool: Tool = tool(
  {
    name: "why_is_it_red",
    title: "Why is it red?",
    description:
      "Start here. Explains the last result of a branch (default: the default branch), of a pull request, or of one execution: its " +
      "failures by cause, new ones first, with why each counts as new, unclear, known or flaky, since when it fails, its owner and its bug " +
      'report, and whether the gate "new" forgives them all. An execution is one run of the project\'s tests in CI.',
    scope: "read",
    input: v.strictObject({
      branch: described(v.optional(branchName), "The branch; default: the project's default branch"),
      pullRequest: described(v.optional(text(200)), "The number of a pull or merge request, in place of a branch"),
      executionId: described(v.optional(uuid), "One execution, in place of a branch"),
    }),
  },
  async ({ api, args, cleaner }) => {
    if (Object.keys(args).length > 1)
      refuse(`Cannot read the arguments: give one of "branch", "pullRequest", "executionId"`);
    const why = await findWhy(api, args, CAUSES);
    const { execution, failures, running } = why;
    if (!execution || !failures)
      return {
        data: { red: false, summary: noExecution(why.state ? "branch" : "pull request"), ...showState(why, cleaner) },
      };
    const hint = `call get_failures with executionId ${execution.id}`;
    const absent = absentLines(failures);
    return {
      hint,
      data: {
        red: isRed(why),
        summary:
          blameCountWords(failures.counts) || (execution.verdict === "failed" ? "no failing test" : "no failures"),
        ...cleaner.split({ headline: failures.headline, ...(absent.length === 0 ? {} : { didNotRun: absent }) }, []),
        ...showState(why, cleaner),
        ...(running === null ? {} : { newerExecutionStillRunning: running }),
        execution: showExecution(execution, cleaner),
        ...(execution.verdict === "failed" ? await showGate(api, execution.id, cleaner) : {}),
        causeCount: failures.causeCount,
        causes: failures.causes.map((cause) => showCause(cause, cleaner)),
      },
      leftOut: [...furtherCauses(failures, hint), ...furtherTasks(why, execution.id)],
    };
  },
);

export const getFailuresTool: Tool = tool(
  {
    name: "get_failures",
    title: "Failures of an execution",
    description:
      "All failures of one execution by cause, new ones first, page by page. Use it where why_is_it_red left causes out.",
    scope: "read",
    input: v.strictObject({
      executionId: described(uuid, "The execution"),
      limit: described(v.optional(integer(1, MAX_CAUSES), CAUSES), "How many causes to answer"),
      cursor: described(v.optional(v.string()), "nextCursor of the page before"),
    }),
  },
  async ({ api, args: { executionId, limit, cursor }, cleaner }) => {
    const found = await api.get<ExecutionFailures>(`/executions/${executionId}/failures`, { limit, cursor });
    return {
      data: {
        ...cleaner.split({ headline: found.headline }, []),
        executionId,
        baselineId: found.baselineId,
        failed: found.failed,
        counts: found.counts,
        causeCount: found.causeCount,
        nextCursor: found.pagination.cursor ?? null,
        causes: found.causes.map((cause) => showCause(cause, cleaner)),
      },
      leftOut: found.pagination.hasMore ? ["more causes: call again with nextCursor as cursor"] : [],
    };
  },
);
