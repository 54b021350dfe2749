/** Decides how a report changes its run and its execution. Reads nothing from the database. */

import { mergeResults, type MergedResults } from "./merge.ts";
import { changedByOthers } from "./outages.ts";
import { durationOf, machineOf, type ResolvedReport } from "./prepare.ts";
import { type ComparedDurations, slowerInRun } from "./slower.ts";
import { MAX_COUNT } from "../../reports/text.ts";
import { isOnDefaultBranch, toOrigin } from "../executions/origin.ts";
import type { SplitNote } from "../executions/split_files.ts";
import { type AbsentCases, hasStoppedEarly, toAbsence } from "../../rules/absent_tests.ts";
import { startOf, timesOf } from "../../rules/duration.ts";
import { endOfTask, type ExecutionEvent, hasEnded, verdictAtEnd } from "../../rules/execution.ts";
import { type Counts, countStatuses, isFailure, type ResultBlock } from "../../rules/merge.ts";
import { isRecent } from "../../rules/recency.ts";
import type { ReplacedFailure } from "../../rules/outside_of_tests.ts";
import { flawsOf } from "../../rules/red_reason.ts";
import { type BuildResults, toBuildResults } from "../../rules/rerun_results.ts";
import { findSlower } from "../../rules/slower.ts";
import {
  furtherRows,
  latestAttempts,
  mayBeOutage,
  nextNumber,
  outcomeOf,
  type RunOutcome,
  WHOLE,
} from "../../rules/run_outcome.ts";
import type { ExecutionData } from "../../schema/events.ts";
import type { ExecutionStatus } from "../../schema/executions.ts";
import type { Shard } from "../../schema/fields.ts";
import { refuse } from "../../schema/refusal.ts";
import type { UploadParameters } from "../../schema/test_runs.ts";
import type { ExecutionOrigin, LockedExecution } from "../../store/executions.ts";
import { caseTitle } from "../../wording/case_title.ts";
import type { EarlierResults } from "../../store/absent_tests.ts";
import type { SlowerResult } from "../../store/slower.ts";
import { type Attempt, newRun, type RunRow, type TestRunChange, type TestRunDetailRow } from "../../store/test_runs.ts";

/** Maximum number of uploads to one run. Only a client that sends the same execution_key for every build reaches it. */
const MAX_ATTEMPTS = 1_000;

/** Results of a run from before the report. */
export type StoredResults = {
  /** The blocks that the report changes. */
  blocks: ResultBlock[];
  /** The counts of all other blocks. */
  others: Counts & { quarantined: number };
};

/** The facts that `decideRun` decides by. */
export type ReportFacts = {
  resolved: ResolvedReport;
  parameters: UploadParameters;
  /** The branch, commit and pull request of the execution, as the report states them. */
  origin: ExecutionOrigin;
  time: ReportTime;
  execution: LockedExecution;
  /** Warnings about how the execution was matched. */
  warnings: readonly string[];
  /** All runs of the execution, ordered by id. */
  runs: readonly RunRow[];
  /** The earlier uploads to the run of this task. */
  attempts: readonly Attempt[];
  /** Undefined for the first attempt. */
  stored: StoredResults | undefined;
  /** The quarantined test cases among those that failed in the report or in the stored blocks. */
  quarantined: ReadonlySet<number>;
  /** The comparison of the report with the split of the task over shards; undefined: there is nothing to say. */
  splitNote: SplitNote | undefined;
  /** Earlier failures outside of tests, such as in hooks, that the report shows to be over. */
  replaced: readonly ReplacedFailure[];
  /** The results of the original build that this rerun does not repeat; undefined if the execution is not a rerun. */
  earlier: EarlierResults | undefined;
  /** Test cases of the baseline that the run lacks; undefined if they were not looked up. */
  absent: AbsentCases | undefined;
  durations: ComparedDurations;
};

/** The changes that a report makes to its run. */
export type DecidedRun = {
  /** The run after the report. */
  run: RunRow & TestRunDetailRow;
  change: TestRunChange;
  /** Whether the run already has a row: its task was declared, or has reported before. */
  isKnown: boolean;
  /** The run before the report. */
  former: RunRow;
  attempt: Attempt;
  /** All attempts of the run, the newest last. */
  attempts: readonly Attempt[];
  merged: MergedResults;
  outcome: RunOutcome;
  /** Test cases whose failures are over. Bugs that have no other test cases are resolved. */
  over: readonly number[];
  /** Results of the report that took longer than usual. */
  slower: readonly SlowerResult[];
  /** The branch, commit and pull request of the execution after the report. */
  from: ExecutionData;
  onDefaultBranch: boolean;
  /** Other complete runs of the execution whose `outage` changes with this one. */
  changedOthers: RunRow[];
  /** Whether the execution had ended before the report and still accepts the run; see `joinsEnded`. */
  joinsLate: boolean;
};

/** When a report was completed. */
export type ReportTime = {
  /** The time to store; ISO 8601. */
  completedAt: string;
  /** The same time, but not later than now: the clock of the client may be ahead. */
  at: Date;
  /** Whether the report is too old for notifications. */
  isOld: boolean;
};

export function timeOf({ completed_at }: UploadParameters, now: Date): ReportTime {
  const completedAt = new Date(completed_at ?? now).toISOString();
  const at = new Date(Math.min(Date.parse(completedAt), now.getTime()));
  return { completedAt, at, isOld: !isRecent(at.getTime(), now.getTime()) };
}

/** Returns the event for the execution. A report that names no execution creates one that it completes at once. */
export const toEvent = ({ execution_id, execution_key, complete }: UploadParameters): ExecutionEvent =>
  complete || (execution_id === undefined && execution_key === undefined) ? "completed" : "arrived";

/** Decides how the report changes its run. Refuses a report that cannot be merged into the run. */
export function decideRun(facts: ReportFacts): DecidedRun {
  const { resolved, parameters, origin, time, execution, runs, attempts: before, stored } = facts;
  const known = runs.find((run) => run.taskSlug === resolved.taskSlug);
  const former = known ?? newRun(execution, resolved.taskSlug, time.at);
  const shard = toShard(former, before, parameters);
  const joinsLate = joinsEnded(execution, former, shard);
  const attempt = toAttempt(facts, shard.index, [
    ...facts.warnings,
    ...(hasEnded(execution.status) ? [tooLate(execution, joinsLate)] : []),
  ]);
  if (resolved.report.countsOnly) requireMergeable(stored, attempt.shard, before);
  const merged = mergeResults(
    resolved.results,
    attempt,
    before,
    stored?.blocks ?? [],
    facts.replaced.flatMap(({ testCase, attempt }) => (attempt === null ? [] : testCase)),
  );
  const attempts = [...before, attempt];
  const latest = latestAttempts(attempts);
  const counts = addCounts(countResults(merged.blocks, stored, facts.quarantined), latest);
  const others = runs.filter((other) => other !== known);
  const complete = others.filter((other) => other.completedAt !== null);
  const build = toBuildResults(counts, facts.earlier);
  const notRerun = build.notRerun.filter((testCase) => !facts.quarantined.has(testCase)).length;
  const shadowed = counts.through + furtherRows(latest);
  const outcome = outcomeOf(former, attempts, shard.of, { ...counts, shadowed, notRerun }, complete);
  const absence = outcome.isIn ? toAbsence(facts.absent, hasStoppedEarly(resolved.report)) : null;
  const from = toOrigin(execution, origin);
  const isFinal = hasEnded(execution.status);
  const { untrusted } = execution;
  const about = { resolved, parameters, attempts, shards: shard.of, counts, outcome, time, isFinal, untrusted };
  const onDefaultBranch = isOnDefaultBranch(from, execution);
  const { slower, task } = facts.durations;
  const change = { ...toChange(former, { ...about, compared: task }), ...build, absence, shadowed };
  const run: RunRow & TestRunDetailRow = {
    ...former,
    ...change,
    namedShards: namedShardsOf(attempts, shard.of),
    reason: null,
    flaws: outcome.verdict === "failed" ? flawsOf(latest, messageOf(resolved), build.notRerun.length) : null,
  };
  return {
    over: [...merged.removed, ...facts.replaced.map(({ testCase }) => testCase)],
    ...{ run, change, isKnown: known !== undefined, former, attempt, attempts, merged, outcome, from, joinsLate },
    ...{ onDefaultBranch, slower: slowerInRun(slower, merged.blocks) },
    // The results of untrusted runs are not counted, so nothing has to be corrected.
    changedOthers: execution.untrusted ? [] : changedByOthers([...others, run]),
  };
}

/**
 * Returns the test cases of the run whose passes may resolve a bug. Only a run that has just become complete has them: a further attempt
 * would be counted twice. `watched` are the test cases of live bugs in the report; undefined if unknown. Returns null for all test cases,
 * because the results of other shards are not loaded, and undefined for none.
 */
export function resolvingCases(
  { run, former, outcome, onDefaultBranch, merged, attempts }: DecidedRun,
  { hasLiveBugs }: { hasLiveBugs: boolean },
  watched: ReadonlySet<number> | undefined,
): readonly number[] | null | undefined {
  if (!hasLiveBugs || !outcome.isIn || former.completedAt !== null || !onDefaultBranch || run.outage) return undefined;
  if (attempts.length > 1 || !watched) return null;
  const own = merged.blocks.flatMap(({ testCases }) => testCases.filter((one) => watched.has(one)));
  return own.length === 0 ? undefined : own;
}

function countResults(
  blocks: readonly ResultBlock[],
  stored: StoredResults | undefined,
  isQuarantined: ReadonlySet<number>,
): Counts & { quarantined: number } {
  const counts = countStatuses(blocks.map(({ statuses }) => statuses).join(""));
  const quarantined = isQuarantined.size === 0 ? 0 : failedCases(blocks).filter((one) => isQuarantined.has(one)).length;
  const others = stored?.others ?? { passed: 0, failed: 0, skipped: 0, flaky: 0, through: 0, quarantined: 0 };
  return {
    passed: counts.passed + others.passed,
    failed: counts.failed + others.failed,
    skipped: counts.skipped + others.skipped,
    flaky: counts.flaky + others.flaky,
    through: counts.through + others.through,
    quarantined: quarantined + others.quarantined,
  };
}

/** Returns the numbers of the test cases that failed. */
export const failedCases = (blocks: readonly ResultBlock[]): number[] =>
  blocks.flatMap(({ testCases, statuses }) => testCases.filter((_, index) => isFailure(statuses[index]!)));

type Change = Pick<ReportFacts, "resolved" | "parameters" | "time"> & {
  attempts: readonly Attempt[];
  shards: number;
  counts: Counts & { quarantined: number };
  outcome: RunOutcome;
  /** Whether the execution has ended, so that no further task can turn the run into an outage. */
  isFinal: boolean;
  untrusted: boolean;
  /** The durations that the wall time of the run is compared with. */
  compared: ComparedDurations["task"];
};

function toChange(
  run: RunRow,
  { resolved: { report }, parameters, attempts, shards, counts, outcome, time, isFinal, untrusted, compared }: Change,
): Omit<TestRunChange, keyof BuildResults | "absence" | "shadowed"> {
  const { status, verdict, isIn, outage, wasOutage, staysApplied } = outcome;
  const times = timesOf(attempts, run);
  // The wall time is not corrected for a slow machine, so the slowness is 1.
  const slower = status === "passed" ? findSlower({ ...compared, durationMs: times.durationMs }, 1) : undefined;
  return {
    passed: counts.passed,
    failed: counts.failed,
    skipped: counts.skipped,
    flaky: counts.flaky,
    quarantined: counts.quarantined,
    status,
    verdict,
    shards,
    attempt: Math.max(run.attempt, attempts.at(-1)!.number),
    ...times,
    slower: slower ?? null,
    exitCode: parameters.exit_code ?? run.exitCode,
    format: report.format,
    warnings: latestAttempts(attempts)
      .flatMap(({ warnings }) => warnings)
      .slice(0, 100),
    startedAt: run.startedAt ?? time.at.toISOString(),
    completedAt: isIn ? time.completedAt : null,
    outage,
    wasOutage,
    // A run is counted once it can no longer turn into an outage: at the latest at the end of the execution.
    healthApplied: !untrusted && isIn && (staysApplied || isFinal || !mayBeOutage(counts)) ? staysApplied : null,
  };
}

/** Returns the message of the failed case that stands for a failed test runner; null if there is none. */
const messageOf = ({ exitCase, details }: ResolvedReport): string | null =>
  exitCase === null ? null : (details.find(({ testCase }) => testCase === exitCase)?.message ?? null);

/** Returns the shards that have uploaded, in ascending order; none for a run that is not sharded. */
const namedShardsOf = (attempts: readonly Attempt[], shards: number): number[] =>
  shards === 1
    ? []
    : [...new Set(attempts.map(({ shard }) => shard))].filter((shard) => shard > 0).sort((a, b) => a - b);

/**
 * Whether an execution that has ended still accepts the task, with all events and notifications: the task is neither declared nor sharded,
 * and has not reported yet. So a team whose jobs all send `complete` is also notified of failures in the later jobs.
 */
const joinsEnded = ({ status, mode }: LockedExecution, { declared, attempt }: RunRow, { of: shards }: Shard): boolean =>
  mode === "report" && hasEnded(status) && status !== "cancelled" && !declared && attempt === 0 && shards === 1;

const tooLate = ({ status }: LockedExecution, joins: boolean) =>
  `The execution had ended before this upload, as "${status}": ` +
  (joins
    ? "this task is added to it"
    : "its counts, comment and commit statuses are updated, and no messages are sent");

/** Returns the status and verdict that a run still waiting for shards gets when its execution ends. */
export function endOf(
  { completedAt, status, attempt }: TestRunDetailRow,
  execution: ExecutionStatus,
): Partial<Pick<TestRunDetailRow, "status" | "verdict">> {
  if (completedAt !== null || hasEnded(status) || !hasEnded(execution)) return {};
  const end = endOfTask({ attempt }, execution);
  const verdict = verdictAtEnd(end, null);
  return verdict === null ? { status: end } : { status: end, verdict };
}

export function toShard(
  { shards }: Pick<TestRunDetailRow, "shards">,
  before: readonly Attempt[],
  { shard }: UploadParameters,
): Shard {
  const announced = { index: shard?.index ?? WHOLE, of: shard?.of ?? shards };
  if (before.some((attempt) => attempt.shard !== WHOLE) && announced.of !== shards)
    refuse(`Cannot read "shard": expected a shard of ${shards}, as announced before, got one of ${announced.of}`);
  return announced;
}

function toAttempt(
  { resolved, parameters, time, attempts: before, splitNote, replaced }: ReportFacts,
  shard: number,
  warnings: readonly string[],
): Attempt {
  const { report, rows, digest, exitCase } = resolved;
  const { exit_code, completed_at, lease_id } = parameters;
  if (before.length >= MAX_ATTEMPTS)
    refuse(`This run has ${MAX_ATTEMPTS} attempts: use another execution_key for another build`);
  const { passed, failed, skipped } = report.countsOnly ?? rows;
  const durationMs = durationOf(report);
  // A given completion time is the end of the tests, and a runner reports as soon as they end.
  const isAtEnd = completed_at !== undefined || lease_id !== undefined;
  return {
    ...{ shard, number: nextNumber(before, shard), digest, format: report.format },
    partial: report.partial || splitNote?.isPartial === true,
    exitCode: exit_code ?? null,
    tool: report.tool ?? null,
    ...{ exitCase, passed, failed, skipped, durationMs },
    failedCases:
      report.countsOnly?.failed ?? report.cases.filter(({ status }) => status === "failed").length + rows.failed,
    warnings: [
      ...warnings,
      ...replaced.map(replacedWarning),
      ...report.warnings,
      ...(splitNote === undefined ? [] : [splitNote.text]),
    ],
    startedAt: startOf({ durationMs, endedAt: report.completedAt }, time.at, isAtEnd),
    overheadCases: resolved.overheads.map(({ testCase }) => testCase),
    overheads: resolved.overheads.map(({ ms }) => ms),
    ...machineOf(parameters, report),
  };
}

const replacedWarning = ({ attempt, ...failure }: ReplacedFailure): string =>
  `${caseTitle(failure)} failed in ${attempt === null ? "the build" : `attempt ${attempt}`}, outside of a test`;

/** Adds the counts of attempts whose reports have counts instead of cases. */
function addCounts<C extends { passed: number; failed: number; skipped: number }>(
  counts: C,
  latest: readonly Attempt[],
): C {
  const sum = { ...counts };
  for (const { passed, failed, skipped } of latest) {
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped;
  }
  if (sum.passed + sum.failed + sum.skipped > MAX_COUNT)
    refuse(`Cannot count more than ${MAX_COUNT} test cases in a run`);
  return sum;
}

/** Refuses counts without cases if the run already has cases, because the same tests would be counted twice. */
function requireMergeable(stored: StoredResults | undefined, shard: number, before: readonly Attempt[]): void {
  if (before.length === 0 || stored === undefined) return;
  if (shard === WHOLE && before.some((attempt) => attempt.shard !== WHOLE))
    refuse(`Cannot merge counts without "cases" into a run of several shards: name the "shard"`);
  if (shard !== WHOLE && !before.some((attempt) => attempt.shard === shard)) return;
  const { passed, failed, skipped } = countResults(stored.blocks, stored, new Set());
  if (passed + failed + skipped > 0) refuse(`Cannot merge counts without "cases" into a run whose cases are known`);
}
