/** Takes a report into its run: names its test cases, merges it case by case, and decides what that makes of the run. */

import { type TrackedRun, trackBugs } from "./bug_reports.ts";
import { countChanges } from "./case_health.ts";
import { isDisturbedRun } from "./flaky_evidence.ts";
import { judgeFailures } from "./failures.ts";
import { machineOf, type NamedReport, originOf, type RunnerFailure, toRunDetails } from "./named_reports.ts";
import type { Report } from "../reports/report.ts";
import { MAX_COUNT } from "../reports/text.ts";
import { type ChangedResult, type Counts, countStatuses, type ResultBlock, toStatus } from "../rules/merge.ts";
import { endOfTask, type ExecutionEvent, hasEnded } from "../rules/execution.ts";
import { startOf, timesOf } from "../rules/duration.ts";
import { toCounts } from "../rules/blame.ts";
import { flawsOf } from "../rules/red_reason.ts";
import { taskLine } from "../wording/reasons.ts";
import { INCIDENT } from "../rules/health.ts";
import { isNews } from "../rules/news.ts";
import { toRanOn } from "../rules/ran_on.ts";
import { latestAttempts, mayBeOutage, nextNumber, outcomeOf, type RunOutcome, WHOLE } from "../rules/run_outcome.ts";
import type { TouchedBug } from "../schema/bug_reports.ts";
import type { ExecutionStatus } from "../schema/executions.ts";
import type { ExecutionData, NewEvent } from "../schema/events.ts";
import type { BlameCounts } from "../schema/failures.ts";
import type { Shard } from "../schema/fields.ts";
import { refuse, refuseAbsent } from "../schema/refusal.ts";
import type { UploadParameters } from "../schema/test_runs.ts";
import { selectBugsOfRun } from "../store/bug_reports.ts";
import { lockHealth } from "../store/case_health.ts";
import {
  countQuarantined,
  insertAllDetails,
  selectCounts,
  toBlockColumns,
  upsertBlocks,
} from "../store/case_results.ts";
import { setKeepsPlans, toRows, type Tx, writeTogether } from "../database/connect.ts";
import { countRunFailures } from "../store/failures.ts";
import { selectIncidentCases } from "../store/incidents.ts";
import { insertTurns } from "../store/events.ts";
import { selectHasOpenLease } from "../store/leases.ts";
import {
  type ExecutionRow,
  insertUploadedExecutions,
  type LockedExecution,
  type TaskRow,
  toExecutionRows,
  turnOfKey,
} from "../store/executions.ts";
import type { Turn } from "../database/locks.ts";
import { endByReport } from "./leases.ts";
import {
  advanceExecution,
  type ExecutionAdvance,
  isOnDefaultBranch,
  meetExecution,
  toOrigin,
  toUploaded,
} from "./executions.ts";
import { findUnrunFiles } from "./file_queues.ts";
import { changedByOthers, judgeAgain } from "./outages.ts";
import { mergeResults } from "./results.ts";
import type { PlanKey } from "../store/plans.ts";
import {
  type Attempt,
  insertAttempts,
  insertTestRuns,
  type LocatedRun,
  lockRunAmongOthers,
  newRun,
  type RunRow,
  selectTestRun,
  type TestRunChange,
  type TestRunDetailRow,
  updateTestRun,
} from "../store/test_runs.ts";

/** Who comes near it gives every build the same execution_key. */
const MAX_ATTEMPTS = 1_000;

export type TakenReport = {
  run: LocatedRun;
  added: boolean;
  bugReports: TouchedBug[];
  /** The number of failures of the run by blame. */
  blames: BlameCounts;
  /** Of this upload, where it was added; those of the run are of its other shards as well. */
  warnings: readonly string[];
};

/** What the transaction of an upload with these parameters is to hold before it takes the report. */
export const turnsOf = (projectId: string, { execution_id, execution_key }: UploadParameters): Turn[] =>
  execution_id === undefined && execution_key !== undefined ? [turnOfKey(projectId, execution_key)] : [];

const HASH = /^[0-9a-f]{7,64}$/i;

/** The commit that a runner has found checked out, where the execution names none. */
const commitOf = ({ commit }: { commit: string | null }, tested: string | undefined) =>
  commit === null && tested !== undefined && HASH.test(tested) ? { commit: tested } : {};

/**
 * In a transaction that holds the turns of the upload. `added` is false when these very bytes were there before. What most
 * reports are has a shorter way: `takeUsualReports`.
 */
export async function takeReport(
  sql: Tx,
  projectId: string,
  named: NamedReport,
  parameters: UploadParameters,
  {
    now = new Date(),
    ...options
  }: { now?: Date; silent?: boolean; failure?: RunnerFailure; testedCommit?: string | undefined } = {},
): Promise<TakenReport> {
  const { report, taskSlug } = named;
  const stated = originOf(parameters, report);
  const { completedAt, at, isOld } = timeOf(parameters, now);
  const silent = options.silent === true || isOld;
  const met = await meetExecution(sql, projectId, parameters, stated, at);
  const { execution, isNew, timeoutMinutes } = met;
  // What runners run, and with which variables, was said when it began: reports add nothing to it but the commit that was tested.
  const origin = execution.mode === "run" ? commitOf(execution, options.testedCommit) : stated;
  const { failure } = options;
  const end = failure ? { status: "failed" as const, ...failure } : { status: "reported" as const };
  const isOver = parameters.lease_id !== undefined && (await endByReport(sql, projectId, parameters.lease_id, end));
  const { runs, attempts: before } = isNew
    ? { runs: [], attempts: [] }
    : await lockRunAmongOthers(sql, projectId, execution.id, taskSlug);
  const known = runs.find((run) => run.taskSlug === taskSlug);
  const run = known ?? newRun(execution.id, taskSlug, at);
  const isOwn = execution.mode !== "run" || parameters.lease_id !== undefined;
  if (!isOwn && (await selectHasOpenLease(sql, projectId, run.id)))
    refuse(
      `Cannot take the report: the task ${JSON.stringify(taskSlug)} is run by runners, which report with their lease_id`,
    );
  const shard = toShard(run, before, parameters);
  const event = toEvent(parameters);
  const change: ExecutionAdvance = { ...origin, arrived: true, now: at, silent, isNew };
  if (before.some((attempt) => attempt.shard === shard.index && attempt.digest === named.digest)) {
    await advanceExecution(sql, projectId, execution, event, change);
    return await selectAgain(sql, projectId, execution.id, taskSlug);
  }
  if (isOver) refuse("Cannot take the report: there is another one of this lease already");

  const joins = joinsLate(execution, run, shard);
  const attempt = toAttempt(named, { parameters, shard: shard.index, before, at }, [
    ...met.warnings,
    ...(hasEnded(execution.status) ? [tooLate(execution, joins)] : []),
  ]);
  const unrun = await whatIsUnrun(sql, { projectId, executionId: execution.id, taskSlug }, shard, before, parameters);
  if (unrun !== undefined) {
    attempt.partial = true;
    attempt.warnings.push(unrun);
  }
  if (report.countsOnly) await requireMergeable(sql, projectId, run.id, attempt.shard, before);
  const { blocks, changes } = await mergeResults(sql, projectId, run.id, named.results, attempt, before);
  let writes = [
    insertAttempts(sql, projectId, toRows([{ ...attempt, runId: run.id }])),
    ...(blocks.length > 0
      ? [upsertBlocks(sql, projectId, toBlockColumns(blocks.map((block) => ({ ...block, runId: run.id }))))]
      : []),
  ];
  const isFirst = before.length === 0;
  if (!isFirst) {
    await writeTogether(sql, writes);
    writes = [];
  }
  const attempts = [...before, attempt];
  const latest = latestAttempts(attempts);
  const results = isFirst ? await countFirst(sql, projectId, blocks) : await selectCounts(sql, projectId, run.id);
  const counts = addCounts(results, latest);
  const others = runs.filter((other) => other !== known);
  const complete = others.filter((other) => other.completedAt !== null);
  const outcome = outcomeOf(run, attempts, shard.of, counts, complete);
  const { isIn, outage, staysRemembered } = outcome;
  const from = toOrigin(execution, origin);
  const onDefaultBranch = isOnDefaultBranch(from, execution);
  if (staysRemembered && changes.length > 0) {
    await lockHealth(sql, projectId);
    const disturbed = await isDisturbedRun(sql, projectId, { ...counts, id: run.id });
    const counted = {
      id: run.id,
      outage: run.outage,
      wasOutage: outcome.wasOutage,
      completedAt,
      onDefaultBranch,
      disturbed,
    };
    const ofIncident = await selectIncidentCases(sql, projectId, run.id);
    const turns = await countChanges(
      sql,
      projectId,
      counted,
      changes.map((change) => (ofIncident.has(change.testCase) ? afterIncident(change) : change)),
    );
    if (!silent) await insertTurns(sql, projectId, run.id, turns);
  }
  const ended = hasEnded(execution.status);
  const about = { named, parameters, attempts, shards: shard.of, counts, outcome, at, completedAt };
  const runChange = toChange(run, { ...about, isFinal: ended });
  const updated: RunRow & TestRunDetailRow = {
    ...run,
    ...runChange,
    namedShards: namedShardsOf(attempts, shard.of),
    reason: null,
    flaws: outcome.verdict === "failed" ? flawsOf(latest, messageOf(named)) : null,
  };
  writes.unshift(
    known
      ? updateTestRun(sql, projectId, run.id, runChange)
      : insertTestRuns(sql, projectId, toRows([{ ...runChange, id: run.id, executionId: execution.id, taskSlug }])),
  );
  const turned = changedByOthers([...others, updated]);
  const mayResolve = met.hasLiveBugs && isIn && run.completedAt === null && onDefaultBranch && !outage;
  const isQuiet =
    !isNew &&
    isFirst &&
    isIn &&
    updated.failed === 0 &&
    named.details.length === 0 &&
    !mayResolve &&
    turned.length === 0 &&
    // Whose leases are settled by what is written.
    execution.mode !== "run";
  if (!isQuiet) {
    // What comes next reads them.
    if (isNew) {
      const begun = toUploaded(execution, { timeoutMinutes, status: "running", at, runCompletedAt: null });
      writes.unshift(insertUploadedExecutions(sql, projectId, toExecutionRows([begun])));
    }
    await writeTogether(sql, writes);
    // Failures are judged by statements that want a plan for what they are given.
    await setKeepsPlans(sql, false);
    await insertAllDetails(sql, projectId, toRunDetails(named.details, run.id, attempt));
    writes = [];
  }
  const blames = await judgeFailures(sql, projectId, updated, { before: !isFirst, onDefaultBranch });
  const tracked = toTracked(execution, from, updated, { completedAt, onDefaultBranch, mayResolve, silent });
  const bugReports = isIn ? await trackBugs(sql, projectId, tracked, at.toISOString()) : [];
  await judgeAgain(sql, projectId, turned, {
    toTracked: (other) =>
      toTracked(execution, from, other, {
        ...{ completedAt: other.completedAt ?? completedAt, onDefaultBranch, silent },
        mayResolve: false,
      }),
    now: at.toISOString(),
  });
  const judged = new Map(turned.map((other) => [other.id, other]));
  // Anything else that comes after the end changes the figures, and is not announced.
  const events =
    isIn && (joins || !hasEnded(execution.status))
      ? [completedEvent(execution.depth, from, { ...updated, blames })]
      : [];
  const tasks = [...others.map((other) => judged.get(other.id) ?? other), updated].sort(byId).map(toTask);
  const status = await advanceExecution(sql, projectId, execution, event, {
    ...change,
    ...(execution.mode === "run" ? {} : { tasks }),
    completedAt: updated.completedAt,
    writes,
    events,
    isToldAgain: joins && updated.verdict === "failed",
  });
  const { warnings } = attempt;
  const located = { ...updated, ...endOf(updated, status), ranOn: toRanOn(latest) };
  return { run: located, added: true, bugReports, blames, warnings };
}

/** Of a case whose failure was not counted: that it passes after the incident, or fails again, says nothing else of it. */
const afterIncident = ({ letter, ...change }: ChangedResult): ChangedResult => ({
  ...change,
  before: INCIDENT,
  letter: letter === "P" ? "p" : toStatus(letter) === "failed" ? INCIDENT : letter,
});

/** When it was completed, as it is stored; `at`: what was completed in the past has its place there, with all that comes of it. */
export function timeOf(
  { completed_at }: UploadParameters,
  now: Date,
): { completedAt: string; at: Date; isOld: boolean } {
  const completedAt = new Date(completed_at ?? now).toISOString();
  const at = new Date(Math.min(Date.parse(completedAt), now.getTime()));
  return { completedAt, at, isOld: !isNews(at.getTime(), now.getTime()) };
}

type Change = {
  named: NamedReport;
  parameters: UploadParameters;
  /** The newest last. */
  attempts: readonly Attempt[];
  shards: number;
  counts: Counts & { quarantined: number };
  outcome: RunOutcome;
  at: Date;
  completedAt: string;
  /** The execution has ended: no other task can make an outage of the run. */
  isFinal: boolean;
};

/** What a report makes of its run. */
export function toChange(
  run: RunRow,
  { named: { report }, parameters, attempts, shards, counts, outcome, at, completedAt, isFinal }: Change,
): TestRunChange {
  const { status, verdict, isIn, outage, wasOutage, staysRemembered } = outcome;
  return {
    ...counts,
    status,
    verdict,
    shards,
    attempt: Math.max(run.attempt, attempts.at(-1)!.number),
    ...timesOf(attempts, run),
    exitCode: parameters.exit_code ?? run.exitCode,
    format: report.format,
    warnings: latestAttempts(attempts)
      .flatMap(({ warnings }) => warnings)
      .slice(0, 100),
    startedAt: run.startedAt ?? at.toISOString(),
    completedAt: isIn ? completedAt : null,
    outage,
    wasOutage,
    // Counted when it is known what it is: at the latest at the end of the execution.
    remembered: isIn && (staysRemembered || isFinal || !mayBeOutage(counts)) ? staysRemembered : null,
  };
}

export const byId = (a: RunRow, b: RunRow) => (a.id < b.id ? -1 : 1);
export const toTask = (run: RunRow): TaskRow => ({ ...run, slug: run.taskSlug, runner: null });

/** Of a run that has no results yet. */
async function countFirst(sql: Tx, projectId: string, blocks: readonly ResultBlock[]) {
  const counts = countStatuses(blocks.map(({ statuses }) => statuses).join(""));
  if (counts.failed === 0) return { ...counts, quarantined: 0 };
  const failed = blocks.flatMap(({ testCases, statuses }) =>
    testCases.filter((_, index) => toStatus(statuses[index]!) === "failed"),
  );
  return { ...counts, quarantined: await countQuarantined(sql, projectId, failed) };
}

/** The message of the failure that stands for the runner of an upload. */
const messageOf = ({ exitCase, details }: NamedReport): string | null =>
  exitCase === null ? null : (details.find(({ testCase }) => testCase === exitCase)?.message ?? null);

/** Those that its uploads have named; none for a run that is not sharded. */
const namedShardsOf = (attempts: readonly Attempt[], shards: number): number[] =>
  shards === 1
    ? []
    : [...new Set(attempts.map(({ shard }) => shard))].filter((shard) => shard > 0).sort((a, b) => a - b);

/**
 * Whether an execution that has ended takes a task in, with everything that follows: a whole one that nobody had announced.
 * A team whose jobs all say `complete` is told of the failures of the later ones as well.
 */
const joinsLate = ({ status, mode }: LockedExecution, { declared, attempt }: RunRow, { of: shards }: Shard): boolean =>
  mode === "report" && hasEnded(status) && status !== "cancelled" && !declared && attempt === 0 && shards === 1;

const tooLate = ({ status }: LockedExecution, joins: boolean) =>
  `The execution had ended before this upload, as "${status}": ` +
  (joins ? "this task joins it" : "its figures change, and nobody is told");

/** What the end of its execution makes of a run that waits for shards. */
function endOf(
  { completedAt, status, attempt }: TestRunDetailRow,
  execution: ExecutionStatus,
): Partial<Pick<TestRunDetailRow, "status" | "verdict">> {
  if (completedAt !== null || hasEnded(status) || !hasEnded(execution)) return {};
  const end = endOfTask({ attempt }, execution);
  return end === "incomplete" ? { status: end, verdict: "failed" } : { status: end };
}

/** Fails where an upload contradicts what others have announced. */
function toShard(
  { shards }: Pick<TestRunDetailRow, "shards">,
  before: readonly Attempt[],
  { shard }: UploadParameters,
): Shard {
  const announced = { index: shard?.index ?? WHOLE, of: shard?.of ?? shards };
  if (before.some((attempt) => attempt.shard !== WHOLE) && announced.of !== shards)
    refuse(`Cannot read "shard": expected a shard of ${shards}, as announced before, got one of ${announced.of}`);
  return announced;
}

/** Of a task that is split while it runs: the files that nobody has run, in words. */
async function whatIsUnrun(
  sql: Tx,
  key: PlanKey,
  shard: Shard,
  before: readonly Attempt[],
  { lease_id }: UploadParameters,
): Promise<string | undefined> {
  if (shard.of < 2 && lease_id === undefined) return undefined;
  const arrived = new Set(before.map((attempt) => attempt.shard)).add(shard.index);
  return await findUnrunFiles(sql, key, { ...shard, index: shard.index || 1 }, arrived.size >= shard.of);
}

async function selectAgain(sql: Tx, projectId: string, executionId: string, taskSlug: string): Promise<TakenReport> {
  const run = (await selectTestRun(sql, projectId, executionId, taskSlug)) ?? refuseAbsent();
  const touched = run.failed === 0 ? [] : await selectBugsOfRun(sql, projectId, run.id);
  const bugReports = touched.map((bug): TouchedBug => ({ ...bug, change: "occurred" }));
  const blames = toCounts(run.failed === 0 ? {} : await countRunFailures(sql, projectId, run.id));
  return { run, added: false, bugReports, blames, warnings: [] };
}

export function toAttempt(
  { report, digest, exitCase }: NamedReport,
  {
    parameters,
    shard,
    before,
    at,
  }: { parameters: UploadParameters; shard: number; before: readonly Attempt[]; at: Date },
  more: readonly string[],
): Attempt {
  const { exit_code, completed_at, lease_id } = parameters;
  if (before.length >= MAX_ATTEMPTS)
    refuse(`This run has ${MAX_ATTEMPTS} attempts: use another execution_key for another build`);
  const { format, partial, warnings } = report;
  const { passed, failed, skipped } = report.countsOnly ?? { passed: 0, failed: 0, skipped: 0 };
  const number = nextNumber(before, shard);
  const durationMs = durationOf(report);
  // Whoever says when the run was completed says when its tests ended; a runner reports as soon as they have.
  const isAtEnd = completed_at !== undefined || lease_id !== undefined;
  return {
    shard,
    number,
    digest,
    format,
    partial,
    exitCode: exit_code ?? null,
    exitCase,
    passed,
    failed,
    skipped,
    warnings: [...more, ...warnings],
    durationMs,
    startedAt: startOf({ durationMs, endedAt: report.completedAt }, at, isAtEnd),
    ...machineOf(parameters, report),
  };
}

/** Adds what reports without cases have counted. */
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

/** Counts name no cases: what is there already would be counted twice. */
async function requireMergeable(
  sql: Tx,
  projectId: string,
  runId: string,
  shard: number,
  attempts: readonly Attempt[],
): Promise<void> {
  if (attempts.length === 0) return;
  if (shard === WHOLE && attempts.some((attempt) => attempt.shard !== WHOLE))
    refuse(`Cannot merge counts without "cases" into a run of several shards: name the "shard"`);
  if (shard !== WHOLE && !attempts.some((attempt) => attempt.shard === shard)) return;
  const { passed, failed, skipped } = await selectCounts(sql, projectId, runId);
  if (passed + failed + skipped > 0) refuse(`Cannot merge counts without "cases" into a run whose cases are known`);
}

/** Whole milliseconds; the report's own word, else the sum of its cases. */
const durationOf = (report: Report): number =>
  Math.round(report.durationMs ?? report.cases.reduce((sum, { durationMs }) => sum + (durationMs ?? 0), 0));

export function completedEvent(
  depth: number,
  execution: ExecutionData,
  run: TestRunDetailRow & { blames: BlameCounts },
): NewEvent {
  const { taskSlug, attempt, verdict, durationMs, passed, failed, skipped, flaky, blames } = run;
  const total = passed + failed + skipped;
  const reason = taskLine(run);
  return {
    type: "test_run.completed",
    depth,
    data: {
      execution,
      testRun: {
        taskSlug,
        attempt,
        verdict,
        passed,
        failed,
        skipped,
        total,
        flaky,
        durationMs,
        ...(failed > 0 ? blames : {}),
        ...(reason === null ? {} : { reason }),
      },
    },
  };
}

/** `origin` is where the execution comes from by now. */
export const toTracked = (
  { createdAt, depth }: LockedExecution,
  { branch, commit }: Pick<ExecutionRow, "branch" | "commit">,
  run: RunRow,
  { completedAt, ...about }: { completedAt: string } & Pick<TrackedRun, "onDefaultBranch" | "mayResolve" | "silent">,
): TrackedRun => ({
  ...run,
  ...about,
  branch,
  commit,
  startedAt: completedAt < createdAt ? completedAt : createdAt,
  depth,
});

/** A report that names no execution is one of its own, complete at once. */
export const toEvent = ({ execution_id, execution_key, complete }: UploadParameters): ExecutionEvent =>
  complete || (execution_id === undefined && execution_key === undefined) ? "completed" : "arrived";
