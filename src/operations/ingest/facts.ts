/** Loads the stored facts that decide about reports, after their executions have been matched. */

import type { MatchedExecution } from "./match.ts";
import { type ReportTime, type StoredResults, failedCases, toShard } from "./decide.ts";
import { blocksToMerge } from "./merge.ts";
import { type ComparedDurations, compareDurations, type ReportDurations } from "./slower.ts";
import type { ResolvedReport, RunnerFailure } from "./prepare.ts";
import { isOnDefaultBranch, toOrigin } from "../executions/origin.ts";
import { findNotRerun } from "../executions/rerun_results.ts";
import { findReplaced } from "./replaced.ts";
import { readSplit, type SplitNote } from "../executions/split_files.ts";
import { endByReport } from "../executions/lease_ends.ts";
import type { ReplacedFailure } from "../../rules/outside_of_tests.ts";
import { isFailure, toStatus } from "../../rules/merge.ts";
import { refuse } from "../../schema/refusal.ts";
import type { UploadParameters } from "../../schema/test_runs.ts";
import type { Tx } from "../../database/connect.ts";
import { selectCasesOfBugs } from "../../store/bug_cases.ts";
import { selectBlocks, selectOtherCounts, selectQuarantined } from "../../store/case_results.ts";
import { type ExecutionOrigin, lockExecution } from "../../store/executions.ts";
import { selectHasOpenLease } from "../../store/leases.ts";
import { hasStoppedEarly, mayBeShort, type AbsentCases } from "../../rules/absent_tests.ts";
import { type EarlierResults, selectAbsentCases, selectExpectedCounts } from "../../store/absent_tests.ts";
import { type Attempt, newRun, type RunRow, selectRuns } from "../../store/test_runs.ts";

/** A report whose test cases and execution are known. */
export type MatchedReport = {
  /** Its index in the batch. */
  index: number;
  resolved: ResolvedReport;
  parameters: UploadParameters;
  /** The branch, commit and pull request of the execution, as the report states them. */
  origin: ExecutionOrigin;
  time: ReportTime;
  match: MatchedExecution;
  /** The failure of a runner that has no report. */
  failure: RunnerFailure | undefined;
};

/** The stored facts about the run and the build of a report. Their fields are described at `ReportFacts`. */
export type LoadedFacts = {
  attempts: readonly Attempt[];
  stored: StoredResults | undefined;
  splitNote: SplitNote | undefined;
  replaced: readonly ReplacedFailure[];
  earlier: EarlierResults | undefined;
  absent: AbsentCases | undefined;
  durations: ComparedDurations;
  /** Whether the same bytes were uploaded before. */
  isRepeated: boolean;
};

/** `isIn`: with this report, all announced shards have reported. */
type RunFacts = Omit<LoadedFacts, "durations" | "absent"> & { isIn: boolean };

export type IngestFacts = {
  /** All runs by execution, ordered by id. */
  runs: ReadonlyMap<string, readonly RunRow[]>;
  /** Facts by `index` of the report. */
  byReport: ReadonlyMap<number, LoadedFacts>;
  quarantined: ReadonlySet<number>;
  /** The test cases whose passes may resolve a bug. */
  watched: ReadonlySet<number>;
};

/** Loads the facts in the transaction of the reports. Refuses reports that a lease or a run does not allow. */
export async function loadFacts(sql: Tx, projectId: string, reports: readonly MatchedReport[]): Promise<IngestFacts> {
  const ended = new Map<number, boolean>();
  for (const report of reports) ended.set(report.index, await endLease(sql, projectId, report));
  // The lock serialises reports of reruns of one build, because each must see the results of the others.
  const builds = new Set(reports.flatMap(({ match }) => match.execution.buildId ?? []));
  for (const id of [...builds].sort()) await lockExecution(sql, projectId, id);
  const known = reports.filter(({ match }) => !match.isNew);
  const tasks = known.map(({ match, resolved }) => ({ executionId: match.execution.id, taskSlug: resolved.taskSlug }));
  const runs = tasks.length === 0 ? [] : await selectRuns(sql, projectId, tasks);
  const byExecution = Map.groupBy(runs, ({ executionId }) => executionId);
  const loaded = new Map<number, RunFacts>();
  const ownRuns = reports.map(({ match, resolved }) =>
    byExecution.get(match.execution.id)?.find(({ taskSlug }) => taskSlug === resolved.taskSlug),
  );
  for (const [at, report] of reports.entries()) {
    const { index } = report;
    const own = ownRuns[at];
    const attempts = own?.attempts ?? [];
    const facts = await loadRunFacts(sql, projectId, report, { run: own, attempts });
    if (ended.get(index) && !facts.isRepeated) refuse("Cannot accept the report: this lease has reported already");
    loaded.set(index, { ...facts, attempts });
  }
  const failed = reports.map(({ index, resolved }) => failedIn(resolved, loaded.get(index)!));
  const timed = reports.map((report, at) => toReportDurations(report, (ownRuns[at]?.attempts ?? []).length > 0));
  const [quarantined, durations, absences, watched] = await Promise.all([
    selectQuarantined(sql, projectId, [...new Set(failed.flat())]),
    compareDurations(sql, projectId, timed),
    findAbsent(
      sql,
      projectId,
      reports.map((report, at) => ({ report, run: ownRuns[at], facts: loaded.get(report.index)! })),
    ),
    selectWatched(sql, projectId, reports),
  ]);
  return {
    runs: byExecution,
    byReport: new Map(
      reports.map(
        ({ index }, at) => [index, { ...loaded.get(index)!, absent: absences[at], durations: durations[at]! }] as const,
      ),
    ),
    quarantined,
    watched,
  };
}

function toReportDurations(
  { resolved, match: { execution }, origin, time: { completedAt } }: MatchedReport,
  isFurther: boolean,
): ReportDurations {
  const from = toOrigin(execution, origin);
  const { id: executionId, untrusted } = execution;
  const { branch, pullRequest } = from;
  return {
    resolved,
    build: isOnDefaultBranch(from, execution)
      ? undefined
      : { executionId, branch, pullRequest, untrusted, completedAt },
    isFurther,
  };
}

/** Ends the lease of the report, if it has one. Returns true if an earlier report had already ended it. */
const endLease = async (
  sql: Tx,
  projectId: string,
  { parameters: { lease_id }, failure }: MatchedReport,
): Promise<boolean> =>
  lease_id !== undefined &&
  (await endByReport(sql, projectId, lease_id, failure ? { status: "failed", ...failure } : { status: "reported" }));

async function loadRunFacts(
  sql: Tx,
  projectId: string,
  { match: { execution }, resolved, parameters, time }: MatchedReport,
  { run, attempts }: { run: RunRow | undefined; attempts: readonly Attempt[] },
): Promise<Omit<RunFacts, "attempts">> {
  const isOwn = execution.mode !== "run" || parameters.lease_id !== undefined;
  if (!isOwn && run && (await selectHasOpenLease(sql, projectId, run.id)))
    refuse(
      `Cannot accept the report: the task ${JSON.stringify(resolved.taskSlug)} is run by runners, which report with their lease_id`,
    );
  const shard = toShard(run ?? newRun(execution, resolved.taskSlug, time.at), attempts, parameters);
  if (attempts.some((attempt) => attempt.shard === shard.index && attempt.digest === resolved.digest))
    return {
      ...{ stored: undefined, splitNote: undefined, replaced: [], earlier: undefined },
      ...{ isRepeated: true, isIn: false },
    };
  const arrived = new Set(attempts.map((attempt) => attempt.shard)).add(shard.index);
  const isSplit = shard.of > 1 || parameters.lease_id !== undefined;
  const key = { projectId, executionId: execution.id, taskSlug: resolved.taskSlug };
  const inRun =
    run && attempts.length > 0
      ? await findReplaced(sql, projectId, { run, attempts, resolved, shard: shard.index })
      : [];
  const inBuild =
    execution.buildId === null
      ? undefined
      : await findNotRerun(
          sql,
          projectId,
          { buildId: execution.buildId, executionId: execution.id, taskSlug: resolved.taskSlug },
          { runId: run?.id, fresh: resolved.results, isComplete: !resolved.report.partial },
        );
  return {
    isRepeated: false,
    isIn: arrived.size >= shard.of,
    splitNote: isSplit
      ? await readSplit(sql, key, shard, {
          ...{ run, report: resolved.report, hasAllOthers: arrived.size >= shard.of },
          isEmpty: resolved.results.length === 0 && resolved.report.countsOnly === null,
          needsEmptyShard: parameters.allow_empty === "if_no_files",
        })
      : undefined,
    stored:
      run && attempts.length > 0
        ? await loadStored(sql, projectId, { run, attempts, resolved, shard, replaced: inRun })
        : undefined,
    replaced: [...inRun, ...(inBuild?.replaced ?? [])],
    earlier: inBuild?.earlier,
  };
}

type ReportOfRun = { report: MatchedReport; run: RunRow | undefined; facts: RunFacts };

/**
 * Returns the test cases of the baseline that each run lacks, in the order of the reports. They are looked up only if the run is a rerun or
 * has an earlier attempt, if it has fewer results than expected, or if it failed and the upload asks for a gate decision.
 */
async function findAbsent(
  sql: Tx,
  projectId: string,
  reports: readonly ReportOfRun[],
): Promise<(AbsentCases | undefined)[]> {
  const asked = reports.flatMap(({ report: { match, resolved } }) =>
    match.execution.baselineId === null ? [] : { baselineId: match.execution.baselineId, taskSlug: resolved.taskSlug },
  );
  const expected = await selectExpectedCounts(sql, projectId, asked);
  const found: (AbsentCases | undefined)[] = [];
  for (const { report, run, facts } of reports) {
    const { resolved, match, parameters } = report;
    const { id: executionId, baselineId, buildId } = match.execution;
    const count = baselineId === null ? null : expected.shift()!;
    const isPart = facts.attempts.length > 0 || buildId !== null;
    const hasFailed = () => resolved.results.some(({ letter }) => toStatus(letter) === "failed");
    const countRun = () => resolved.results.filter(({ letter }) => toStatus(letter) !== "skipped").length;
    const isShort =
      facts.isIn &&
      !facts.isRepeated &&
      resolved.report.countsOnly === null &&
      baselineId !== null &&
      (isPart ||
        (parameters.gate !== undefined && hasFailed()) ||
        mayBeShort(countRun(), count, hasStoppedEarly(resolved.report)));
    const task = { baselineId: baselineId ?? "", taskSlug: resolved.taskSlug, executionId, buildId };
    const of = { runId: run?.id, fresh: resolved.results };
    found.push(isShort ? await selectAbsentCases(sql, projectId, task, of) : undefined);
  }
  return found;
}

async function loadStored(
  sql: Tx,
  projectId: string,
  {
    run,
    attempts,
    resolved: { results, exitCase },
    shard,
    replaced,
  }: {
    run: RunRow;
    attempts: readonly Attempt[];
    resolved: ResolvedReport;
    shard: { index: number };
    replaced: readonly ReplacedFailure[];
  },
): Promise<StoredResults> {
  const touched = blocksToMerge(
    results,
    { shard: shard.index, exitCase },
    attempts,
    replaced.map(({ testCase }) => testCase),
  );
  const [blocks, others] = await Promise.all([
    selectBlocks(sql, projectId, run, touched),
    selectOtherCounts(sql, projectId, run, touched),
  ]);
  return { blocks, others };
}

const failedIn = (
  { results }: ResolvedReport,
  { stored, earlier }: Pick<LoadedFacts, "stored" | "earlier">,
): number[] => [
  ...results.flatMap(({ testCase, letter }) => (isFailure(letter) ? testCase : [])),
  ...failedCases(stored?.blocks ?? []),
  ...(earlier?.notRerun ?? []),
];

/**
 * Maximum number of results of a report whose test cases are looked up among those of live bugs. For a larger report, the test cases of all
 * live bugs are looked up in its results instead.
 */
export const MAX_WATCHED = 1_000;

/** Returns the test cases of live bugs that the reports may resolve. */
async function selectWatched(sql: Tx, projectId: string, reports: readonly MatchedReport[]): Promise<Set<number>> {
  const passing = reports.flatMap(({ match, origin, resolved }) =>
    match.hasLiveBugs &&
    resolved.results.length <= MAX_WATCHED &&
    isOnDefaultBranch(toOrigin(match.execution, origin), match.execution)
      ? resolved.results.map(({ testCase }) => testCase)
      : [],
  );
  return passing.length === 0 ? new Set() : await selectCasesOfBugs(sql, projectId, [...new Set(passing)]);
}
