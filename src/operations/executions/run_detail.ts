/** Reads a test run as answers of the API hold it. */

import { taskReason } from "../../wording/reasons.ts";
import { shardsOf, toShardList } from "../../rules/shards.ts";
import { readVariant } from "../../rules/variants.ts";
import type { AbsentTests } from "../../schema/absent_tests.ts";
import type { TestRun } from "../../schema/test_runs.ts";
import type { LocatedRun } from "../../store/test_runs.ts";
import type { SlowerRow } from "../../store/slower.ts";
import { executionUrl } from "../../schema/urls.ts";

/** The number of results in a run. */
export const totalResults = ({ passed, failed, skipped }: Pick<TestRun, "passed" | "failed" | "skipped">) =>
  passed + failed + skipped;

export function toRunDetail(publicUrl: string, projectId: string, run: LocatedRun, absent: AbsentTests) {
  const shards = shardsOf(run, run.namedShards);
  const never = `The execution has ended without ${toShardList(shards.missingShards)} of ${run.shards}`;
  return {
    executionId: run.executionId,
    taskSlug: run.taskSlug,
    tags: readVariant(run.taskSlug).tags,
    ...(run.completedAt === null ? {} : { completedAt: run.completedAt }),
    passed: run.passed,
    failed: run.failed,
    skipped: run.skipped,
    total: totalResults(run),
    ...shards,
    status: run.status,
    attempt: run.attempt,
    flaky: run.flaky,
    durationMs: run.durationMs,
    verdict: run.verdict,
    reason: taskReason(run),
    warnings: run.status === "incomplete" ? [never, ...run.warnings] : run.warnings,
    outage: run.outage,
    slower: run.slower,
    ...absent,
    ranOn: run.ranOn,
    url: executionUrl(publicUrl, projectId, run.executionId),
  };
}

/** Returns a test as answers list it: without the number of all of them. */
export const toSlowerTest = ({ total: _, ...test }: SlowerRow) => test;
