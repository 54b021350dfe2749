/** The tool about the commit that broke a test. */

import * as v from "valibot";
import type { CulpritSearch } from "../../schema/culprit_searches.ts";
import { described, uuid } from "../../schema/fields.ts";
import { type Tool, tool } from "../tool.ts";

const MAX_FILES = 20;

export const culpritTool: Tool = tool(
  {
    name: "culprit",
    title: "The commit that broke a test",
    description:
      "The newest search for the commit that broke the test of a bug: its verdict, the suspects and the probes. verdict culprit: the commit is proven, " +
      "because it failed twice and its parent passed twice; environment: not the code; undecided: it cannot tell; none: the search is running " +
      "or was cancelled. Only a commit in culprit is proven; suspects are not. Fails if the bug was never searched for.",
    scope: "read",
    input: v.strictObject({ bugReportId: described(uuid, "The bug report") }),
  },
  async ({ api, args: { bugReportId }, cleaner }) => {
    const { culprit, parent, suspects, probes, summary, ...search } = await api.get<CulpritSearch>(
      `/bug-reports/${bugReportId}/culprit`,
    );
    const files = culprit?.files ?? [];
    return {
      data: {
        search: cleaner.split({ ...search, summary }, [
          ...(["id", "bugReportId", "testCaseId", "status", "verdict", "reason", "goodCommit", "badCommit"] as const),
          ...(["commitCount", "maxProbes", "maxMinutes", "createdAt", "endedAt"] as const),
        ]),
        culprit: culprit && cleaner.split({ ...culprit, files: files.slice(0, MAX_FILES) }, ["commit", "date"]),
        parent: parent && cleaner.split(parent, ["commit", "date"]),
        suspects: suspects.map((suspect) => cleaner.split(suspect, ["commit", "date", "chance"])),
        probes,
      },
      leftOut: files.length > MAX_FILES ? [`files of the culprit: ${MAX_FILES} of ${files.length}`] : [],
    };
  },
);
