/** Tools that change something. They need a key of scope `triage`, or the project's own. */

import * as v from "valibot";
import { type BugReportDetail, bugReportPatch } from "../../schema/bug_reports.ts";
import type { Execution } from "../../schema/executions.ts";
import { described, text, timestamp, uuid } from "../../schema/fields.ts";
import { testCasesPatch } from "../../schema/test_cases.ts";
import { showBug, showExecution } from "../shown.ts";
import { type Tool, tool } from "../tool.ts";

export const quarantineTool: Tool = tool(
  {
    name: "quarantine",
    title: "Quarantine tests",
    description:
      "Quarantines tests, or ends that: the failures of a quarantined test are still counted, and turn no execution red. All of " +
      "the tests are changed, or none. Ask the user before you quarantine a test.",
    scope: "triage",
    isIdempotent: true,
    input: v.strictObject({
      testCaseIds: testCasesPatch.entries.testCaseIds,
      reason: described(v.nullable(text(1_000)), "Why, such as an issue; null ends the quarantine"),
      until: described(v.optional(timestamp), "When it ends by itself; default: when somebody ends it"),
    }),
  },
  async ({ api, args: { testCaseIds, reason, until } }) => {
    const body = { testCaseIds, quarantine: reason === null ? null : { reason, until: until ?? null } };
    return { data: await api.send<{ changed: number }>("PATCH", "/test-cases", body) };
  },
);

export const triageBugTool: Tool = tool(
  {
    name: "triage_bug",
    title: "Change a bug report",
    description:
      "Changes the status, severity, assignee, labels, title, description or links of a bug report; what is left out stays as it is.",
    scope: "triage",
    isIdempotent: true,
    input: v.strictObject({ bugReportId: described(uuid, "The bug report"), ...bugReportPatch.entries }),
  },
  async ({ api, args: { bugReportId, ...patch }, cleaner }) => {
    const changed = await api.send<BugReportDetail>("PATCH", `/bug-reports/${bugReportId}`, patch);
    const { grouping: _, history: __, mergedInto: ___, ...bug } = changed;
    return { data: { bugReport: showBug(bug, cleaner) } };
  },
);

export const rerunFailedTool: Tool = tool(
  {
    name: "rerun_failed",
    title: "Run the failed tasks again",
    description:
      "Makes a new execution that repeats the tasks of an ended execution which are not green. Runners of this server run them; " +
      "a CI system that was started by this server is asked again; otherwise the new execution waits for uploaded reports.",
    scope: "triage",
    input: v.strictObject({ executionId: described(uuid, "An execution that has ended") }),
  },
  async ({ api, args: { executionId }, cleaner }) => {
    const rerun = await api.send<Execution>("POST", `/executions/${executionId}/rerun`, { failedOnly: true });
    return { data: { execution: showExecution(rerun, cleaner) } };
  },
);
