/** The tool about bug reports. */

import * as v from "valibot";
import { type BugReport, type BugReportDetail, bugReportFilter, bugStatus } from "../../schema/bug_reports.ts";
import { described, integer, text, uuid } from "../../schema/fields.ts";
import type { ListPage } from "../../schema/page.ts";
import { showBug, showBugRow } from "../shown.ts";
import { type Tool, tool } from "../tool.ts";

const MAX_HISTORY = 10;
const MAX_GROUPING = 3;

export const bugReportsTool: Tool = tool(
  {
    name: "bug_reports",
    title: "Bug reports",
    description:
      "The bug reports of the project, newest first or sorted: failures that are one bug, with status, severity, assignee and occurrences. " +
      "With bugReportId one of them, with why its failures were grouped and the changes of its status.",
    scope: "read",
    input: v.strictObject({
      bugReportId: described(v.optional(uuid), "One bug report, in place of the list"),
      status: described(v.optional(bugStatus), "Only those of this status"),
      sort: bugReportFilter.entries.sort,
      text: described(v.optional(text(200)), "Only those with this text in title or description"),
      limit: described(v.optional(integer(1, 50), 10), "How many bug reports to answer"),
      cursor: described(v.optional(v.string()), "nextCursor of the page before, with the same filters"),
    }),
  },
  async ({ api, args: { bugReportId, text: q, ...filter }, cleaner }) => {
    if (bugReportId !== undefined) {
      const { grouping, history, mergedInto, ...bug } = await api.get<BugReportDetail>(`/bug-reports/${bugReportId}`);
      return {
        data: {
          bugReport: showBug(bug, cleaner),
          mergedInto,
          grouping: grouping
            .slice(0, MAX_GROUPING)
            .map((one) => cleaner.split(one, ["kind", "fingerprint", "version"])),
          history: history.slice(-MAX_HISTORY),
        },
        leftOut: [
          ...(grouping.length > MAX_GROUPING ? [`grouping: ${MAX_GROUPING} of ${grouping.length}`] : []),
          ...(history.length > MAX_HISTORY ? [`history: the last ${MAX_HISTORY} of ${history.length}`] : []),
        ],
      };
    }
    const { data, pagination } = await api.get<ListPage<BugReport>>("/bug-reports", { ...filter, q });
    return {
      data: { nextCursor: pagination.cursor ?? null, bugReports: data.map((bug) => showBugRow(bug, cleaner)) },
      leftOut: pagination.hasMore ? ["more bug reports: call again with nextCursor as cursor"] : [],
    };
  },
);
