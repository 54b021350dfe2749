/** Finds tests, bugs and executions. */

import type { Sql } from "../../../database/connect.ts";
import type { Path } from "../../../http/html.ts";
import { type BugReportRow, type BugState, selectBugByNumber, selectBugReports } from "../../../store/bug_reports.ts";
import type { ExecutionSummary } from "../../../store/execution_list.ts";
import { searchBuilds, selectExactBuild } from "../../../store/search.ts";
import { type TestCaseRow, selectTestCases } from "../../../store/test_cases.ts";
import { bugPath, executionPath } from "../../site/paths.ts";

export const MAX_RESULTS_PER_KIND = 8;

/** The first results of a kind, and whether there are more. */
type Found<Row> = { rows: readonly Row[]; hasMore: boolean };

export type SearchResults = {
  tests: Found<TestCaseRow>;
  /** The bug with the number comes first. */
  bugs: Found<BugState | BugReportRow>;
  /** `branch` is the branch that all of them have, also those that are not returned. */
  executions: Found<ExecutionSummary> & { branch: string | undefined };
};

const toFound = <Row>(rows: readonly Row[]): Found<Row> => ({
  rows: rows.slice(0, MAX_RESULTS_PER_KIND),
  hasMore: rows.length > MAX_RESULTS_PER_KIND,
});

/** Returns the path of the page of an exact match, or the results. */
export async function loadSearch(sql: Sql, projectId: string, q: string): Promise<Path | SearchResults> {
  const exact = await selectExactBuild(sql, projectId, q);
  if (exact !== undefined) return executionPath(projectId, exact);
  const [, sign, digits] = /^(bug\s*#?|#)?(\d{1,9})$/i.exec(q) ?? [];
  const numbered = digits === undefined ? undefined : await selectBugByNumber(sql, projectId, Number(digits));
  if (numbered && sign?.toLowerCase().startsWith("bug")) return bugPath(projectId, numbered.id);
  const limit = MAX_RESULTS_PER_KIND;
  const [tests, bugs, executions] = await Promise.all([
    selectTestCases(sql, projectId, { limit, conditions: [{ field: "text", is: q }] }),
    selectBugReports(sql, projectId, { limit, conditions: [{ field: "text", is: q }] }),
    searchBuilds(sql, projectId, q, limit),
  ]);
  // "#412" means an execution first, and a bug if no execution or pull request has the number.
  if (numbered && sign !== undefined && executions.length === 0) return bugPath(projectId, numbered.id);
  const { rows, hasMore } = toFound(bugs);
  const branches = new Set(executions.map(({ branch }) => branch));
  return {
    tests: toFound(tests),
    bugs: { rows: [...(numbered ? [numbered] : []), ...rows.filter(({ id }) => id !== numbered?.id)], hasMore },
    executions: {
      ...toFound(executions),
      branch: branches.size === 1 ? (executions[0]!.branch ?? undefined) : undefined,
    },
  };
}
