/** Loads the commits between the last pass of tests and their first failures. */

import type { Sql } from "../../database/connect.ts";
import { type ListedCommit, selectCommitsBetween } from "../../store/commits.ts";

/** The commit that a test passed on before its failures, and the one that it failed on first; null: unknown. */
type Broken = { goodCommit: string | null; sinceCommit: string | null };

/** Maximum number of ranges that are looked up for one page. */
const MAX_RANGES = 5;

const keyOfRange = ({ goodCommit, sinceCommit }: Broken): string | undefined =>
  goodCommit === null || sinceCommit === null || goodCommit === sinceCommit
    ? undefined
    : `${goodCommit} ${sinceCommit}`;

/** Returns the commits of a range, newest first; empty: they are unknown. */
export type CommitRanges = (broken: Broken) => readonly ListedCommit[];

export async function readCommitRanges(sql: Sql, projectId: string, tests: readonly Broken[]): Promise<CommitRanges> {
  const ranges = [...new Set(tests.flatMap((test) => keyOfRange(test) ?? []))].slice(0, MAX_RANGES);
  const found = await Promise.all(
    ranges.map(async (range) => {
      const [good = "", bad = ""] = range.split(" ");
      return [range, await selectCommitsBetween(sql, projectId, { good, bad })] as const;
    }),
  );
  const byRange = new Map(found);
  return (broken) => byRange.get(keyOfRange(broken) ?? "") ?? [];
}
