/** Tools about executions: their list, the differences between two of them, and the output of a task. */

import * as v from "valibot";
import { stripAnsi } from "../../rules/ansi.ts";
import { isErrorLine } from "../../rules/log_errors.ts";
import type { Comparison } from "../../schema/comparisons.ts";
import { type Execution, executionStatus } from "../../schema/executions.ts";
import { branchName, described, integer, slug, text, uuid } from "../../schema/fields.ts";
import type { ListPage } from "../../schema/page.ts";
import { showExecutionRow } from "../shown.ts";
import { type Tool, tool } from "../tool.ts";

export const listExecutionsTool: Tool = tool(
  {
    name: "list_executions",
    title: "List executions",
    description:
      "The executions of the project (runs of its tests in CI), newest first, with their counts and red tasks.",
    scope: "read",
    input: v.strictObject({
      branch: described(v.optional(branchName), "Only those of this branch"),
      pullRequest: described(v.optional(text(200)), "Only those of this pull or merge request"),
      commit: described(
        v.optional(text(200)),
        "Only those of this commit, or of those that begin with 7 digits or more",
      ),
      status: described(v.optional(executionStatus), "Only those of this status"),
      limit: described(v.optional(integer(1, 50), 10), "How many executions to answer"),
      cursor: described(v.optional(v.string()), "nextCursor of the page before, with the same filters"),
    }),
  },
  async ({ api, args: { pullRequest, ...filter }, cleaner }) => {
    const { data, pagination } = await api.get<ListPage<Execution>>("/executions", {
      ...filter,
      pull_request: pullRequest,
    });
    return {
      data: {
        nextCursor: pagination.cursor ?? null,
        executions: data.map((execution) => showExecutionRow(execution, cleaner)),
      },
      leftOut: pagination.hasMore ? ["older executions: call again with nextCursor as cursor"] : [],
    };
  },
);

const MAX_LISTED = 15;

export const compareTool: Tool = tool(
  {
    name: "compare",
    title: "Compare two executions",
    description:
      "What has changed between an execution and its baseline, another execution or a branch: new failures, fixed, added and " +
      "missing tests.",
    scope: "read",
    input: v.strictObject({
      executionId: described(uuid, "The execution"),
      baselineId: described(v.optional(uuid), "The execution to compare with; default: its baseline"),
      branch: described(
        v.optional(branchName),
        "Compare with the last execution of this branch, in place of baselineId",
      ),
    }),
  },
  async ({ api, args: { executionId, baselineId, branch }, cleaner }) => {
    const path = `/executions/${executionId}/comparison`;
    const found = await api.get<Comparison>(path, { baseline: baselineId, branch });
    const { executionId: _, baselineId: against, counts, ...lists } = found;
    const cut = Object.entries(lists).filter(
      ([name, list]) => counts[name as keyof typeof counts] > Math.min(list.length, MAX_LISTED),
    );
    return {
      data: {
        executionId,
        baselineId: against,
        counts,
        ...Object.fromEntries(
          Object.entries(lists).map(([name, list]) => [
            name,
            list.slice(0, MAX_LISTED).map((test) => cleaner.split(test, ["testCaseId"])),
          ]),
        ),
      },
      leftOut: cut.map(
        ([name]) => `${name}: ${MAX_LISTED} of ${counts[name as keyof typeof counts]} at most are listed`,
      ),
    };
  },
);

/** Maximum number of characters of a log in one answer, and of lines that report an error. */
const LOG_LENGTH = 5_000;
const MAX_ERROR_LINES = 10;
/** Maximum number of characters before the answered part that are searched for errors. */
const SEARCHED_LENGTH = 200_000;

export const getLogTool: Tool = tool(
  {
    name: "get_log",
    title: "Log of a task",
    description:
      "The end of what a task has printed, and the lines before it that report errors. Only tasks that a runner of this server ran " +
      "have a log; what tests of other tasks said is in get_failures.",
    scope: "read",
    input: v.strictObject({
      executionId: described(uuid, "The execution"),
      task: described(slug, "The slug of the task, as list_executions names it"),
      shard: described(v.optional(integer(1, 9_999)), "Which shard of the task; default: the one that began last"),
      skipFromEnd: described(
        v.optional(integer(0, 2_000_000), 0),
        "How many characters at the end to skip, for reading backwards",
      ),
    }),
  },
  async ({ api, args: { executionId, task, shard, skipFromEnd }, cleaner }) => {
    const path = `/executions/${executionId}/test-runs/${encodeURIComponent(task)}/log`;
    const log = stripAnsi(await api.getText(path, { shard }));
    const end = Math.max(0, log.length - skipFromEnd);
    const start = Math.max(0, end - LOG_LENGTH);
    const lines = log
      .slice(Math.max(0, start - SEARCHED_LENGTH), start)
      .split("\n")
      .filter(isErrorLine);
    return {
      data: {
        executionId,
        length: log.length,
        start,
        end,
        untrusted: {
          errorLinesBefore: lines.slice(-MAX_ERROR_LINES).map((line) => cleaner.text(line, 200)),
          log: cleaner.text(log.slice(start, end), LOG_LENGTH),
        },
      },
      leftOut: [
        ...(log === "" ? ["no log: no runner of this server ran the task, or it printed nothing"] : []),
        ...(start > 0 ? [`${start} characters before: call again with skipFromEnd ${log.length - start}`] : []),
      ],
    };
  },
);
