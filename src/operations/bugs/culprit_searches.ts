/** Searches for the commit that broke the test of a bug: started, cancelled and read. */

import { findSearchRange, type GivenRange, type RangeCommit, type SearchRange } from "../../rules/culprit_range.ts";
import type { CulpritSearch, NewCulpritSearch } from "../../schema/culprit_searches.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { selectBugState } from "../../store/bug_reports.ts";
import {
  lockSearchedBug,
  type SearchedBug,
  type SearchedCase,
  selectCasesOfBug,
  selectRangeResults,
} from "../../store/culprit_evidence.ts";
import {
  insertCulpritSearch,
  lockRunningSearch,
  type NewestSearchRow,
  selectIsSearched,
  selectNewestSearch,
  updateCancelledSearch,
} from "../../store/culprit_searches.ts";
import { waitingWords } from "../../wording/culprit.ts";
import { cancelProbes, refuseUnlessProbeable } from "../probes/probes.ts";
import { readSearchProbes } from "./culprit_evidence.ts";

/** The test cases of a bug that are tried for a range. */
const MAX_CASES = 5;

type Start = { test: SearchedCase; range: SearchRange; number: number };

/**
 * Returns the start of a search of the bug, or why there can be none. Locks the bug until the commit, so that it has one search at a time.
 */
export async function findSearchStart(
  sql: Tx,
  projectId: string,
  bugId: string,
  given: GivenRange = {},
): Promise<Start | { obstacle: string }> {
  const bug = (await lockSearchedBug(sql, projectId, bugId)) ?? refuseAbsent();
  const obstacle = obstacleOf(bug);
  if (obstacle !== undefined) return { obstacle };
  if (await selectIsSearched(sql, projectId, bugId)) return { obstacle: "a search is running already" };
  let reason = "it has no test cases";
  for (const test of await selectCasesOfBug(sql, projectId, bugId, MAX_CASES)) {
    if (test.isFlaky) {
      reason = "its test is flaky: it fails without a change of the code";
      continue;
    }
    const range = findSearchRange(await selectRangeResults(sql, projectId, { bugId, testCase: test.number }), given);
    if (!("obstacle" in range)) return { test, range, number: bug.number };
    reason = range.obstacle;
  }
  return { obstacle: reason };
}

function obstacleOf({ mergedInto, sample, kinds }: SearchedBug): string | undefined {
  if (mergedInto !== null) return "it was merged into another bug report";
  if (sample) return "it is sample data";
  if (kinds.includes("flaky")) return "its test is flaky: it fails without a change of the code";
  if (kinds.includes("outage")) return "it is an outage: nearly all tests failed";
  if (kinds.includes("infrastructure")) return "its failures match an infrastructure rule";
  return undefined;
}

/** Starts a search. Refuses if there is nothing to search for, or if no runner can probe. */
export async function startSearch(
  sql: Tx,
  projectId: string,
  bugId: string,
  { maxProbes, maxMinutes, goodCommit, badCommit, depth = 0, now }: NewCulpritSearch & { depth?: number; now: Date },
): Promise<{ id: string; number: number }> {
  const start = await findSearchStart(sql, projectId, bugId, { good: goodCommit, bad: badCommit });
  if ("obstacle" in start) refuse(`Cannot search for the commit that broke it: ${start.obstacle}`);
  const { test, range, number } = start;
  await refuseUnlessProbeable(sql, projectId, test.taskSlug);
  const id = Bun.randomUUIDv7();
  const search = {
    ...{ id, bugReportId: bugId, testCaseId: test.id, taskSlug: test.taskSlug, maxProbes, maxMinutes, depth },
    ...{ goodCommit: range.good, badCommit: range.bad, badExecutionId: range.failure },
    summary: `Listing the commits after ${range.good.slice(0, 10)} up to ${range.bad.slice(0, 10)}`,
  };
  await insertCulpritSearch(sql, projectId, search, now.toISOString());
  return { id, number };
}

/** Cancels a search and its open probes. */
export async function cancelSearch(
  sql: Tx,
  projectId: string,
  bugId: string,
  now: Date,
): Promise<{ id: string; number: number }> {
  const { number } = (await selectBugState(sql, projectId, bugId)) ?? refuseAbsent();
  const search =
    (await lockRunningSearch(sql, projectId, bugId)) ??
    refuse("Cannot cancel the search: no search of this bug is running");
  const { id } = search;
  await cancelProbes(sql, projectId, { culpritSearchId: id }, "The search for the commit was cancelled");
  await updateCancelledSearch(sql, projectId, id, "Cancelled", now);
  return { id, number };
}

const toCommit = ({ hash, author, date, subject }: RangeCommit) => ({ commit: hash, author, date, subject });

/** The newest search of a bug with its probes; undefined: there was none. */
export async function readNewestSearch(sql: Sql, projectId: string, bugId: string): Promise<CulpritSearch | undefined> {
  const search = await selectNewestSearch(sql, projectId, bugId);
  return search && toSearch(search, await readSearchProbes(sql, projectId, search));
}

function toSearch(search: NewestSearchRow, probes: CulpritSearch["probes"]): CulpritSearch {
  const { id, bugReportId, testCaseId, taskSlug, status, verdict, reason, summary, commits, suspects, culprit } =
    search;
  const named = culprit === null ? undefined : commits?.[culprit];
  return {
    ...{ id, bugReportId, testCaseId, taskSlug, status, verdict, reason, summary },
    waitingFor: waitingWords(search.open),
    ...{ goodCommit: search.goodCommit, badCommit: search.badCommit },
    commitCount: commits && commits.length - 1,
    ...{ maxProbes: search.maxProbes, maxMinutes: search.maxMinutes },
    culprit: named ? { ...toCommit(named), files: named.files } : null,
    parent: named ? toCommit(commits![culprit! - 1]!) : null,
    suspects: suspects.flatMap(({ index, chance }) => {
      const commit = commits?.[index];
      return commit ? [{ ...toCommit(commit), chance }] : [];
    }),
    probes,
    ...{ createdAt: search.createdAt, endedAt: search.endedAt },
  };
}
