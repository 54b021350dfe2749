/** Stores what has been decided about reports, and everything that follows from it. */

import { type DecidedRun, endOf, toEvent } from "./decide.ts";
import type { MatchedReport } from "./facts.ts";
import { decideGate, decideQuietGate } from "./gates.ts";
import { judgeFailures, toBlameCounts } from "./judge.ts";
import type { MatchedExecution } from "./match.ts";
import { judgeAgain } from "./judge_again.ts";
import { toRunDetails } from "./prepare.ts";
import { resolveBugsOf, type TrackedRun, trackBugs } from "../bugs/bug_reports.ts";
import { countChanges } from "../health/case_records.ts";
import { discardDisturbedFlakes, refreshFlakiness } from "../health/flakiness.ts";
import {
  advanceExecution,
  type Advanced,
  type AdvancedTogether,
  type NextState,
  quietEvents,
  storeAdvance,
} from "../executions/advance.ts";
import { toOrigin } from "../executions/origin.ts";
import { explainByTags } from "../executions/only_with.ts";
import { NOTHING_ABSENT, readAbsentTests } from "../executions/absent_tests.ts";
import { sumBlames, type Blamed, toCounts } from "../../rules/blame.ts";
import { hasEnded } from "../../rules/execution.ts";
import { INCIDENT } from "../../rules/health.ts";
import { type ChangedResult, toStatus } from "../../rules/merge.ts";
import { toRanOn } from "../../rules/ran_on.ts";
import { taskLine } from "../../wording/reasons.ts";
import { latestAttempts } from "../../rules/run_outcome.ts";
import type { AbsentTests } from "../../schema/absent_tests.ts";
import type { TouchedBug } from "../../schema/bug_reports.ts";
import type { NewEvent } from "../../schema/events.ts";
import type { ExecutionStatus } from "../../schema/executions.ts";
import type { BlameCounts } from "../../schema/failures.ts";
import type { GateDecision } from "../../schema/gate.ts";
import { refuseAbsent } from "../../schema/refusal.ts";
import type { Tx } from "../../database/connect.ts";
import { selectBugsOfRun } from "../../store/bug_occurrences.ts";
import { insertEvents } from "../../store/events.ts";
import { lockHealth } from "../../store/pending_health.ts";
import { deleteBlock } from "../../store/case_results.ts";
import type { ExecutionOrigin, LockedExecution } from "../../store/executions.ts";
import type { UploadedExecution } from "../../store/new_executions.ts";
import { countRunFailures, LISTED, selectFailures, selectIncidentCases } from "../../store/failures.ts";
import { type IngestWrites, noWrites, storeIngest } from "../../store/ingest.ts";
import { deleteSlowerResults, selectSlowerTestsOfRun, type SlowerRow } from "../../store/slower.ts";
import { type Attempt, type LocatedRun, type RunRow, selectFlakyCounts, selectTestRun } from "../../store/test_runs.ts";

/** A report that is to be stored. */
export type StoredReport = {
  report: MatchedReport;
  decided: DecidedRun;
  /** Passes of the run may resolve a bug. */
  mayResolve: boolean;
  /** No event is stored. */
  isMuted: boolean;
  /** Of the execution before the report, and after it. */
  formerStatus: ExecutionStatus;
  status: ExecutionStatus;
};

/** What the reports of one execution have made of it. */
export type TakenBuild = {
  match: MatchedExecution;
  /** As it is by now. */
  execution: LockedExecution;
  /** All of them, as they are by now, ordered by id. */
  runs: readonly RunRow[];
  /** Where the reports say that they come from. */
  told: ExecutionOrigin;
  /** Undefined for an execution of mode run, which runners change as well. */
  next: NextState | undefined;
  reports: StoredReport[];
};

/** What has become of a report. */
export type TakenReport = {
  run: LocatedRun;
  /** False when these very bytes were there before. */
  added: boolean;
  bugReports: TouchedBug[];
  /** The number of failures of the run by blame. */
  blames: BlameCounts;
  /** At most 100 of each blame. */
  failures: readonly Blamed[];
  /** The first test cases of the run that took longer than usual. */
  slowerTests: readonly SlowerRow[];
  absent: AbsentTests;
  /** Of this upload, where it was added; those of the run are of its other shards as well. */
  warnings: readonly string[];
  /** Undefined: the upload asks for no decision of a gate. */
  gate: GateDecision | undefined;
};

type Answers = Map<number, TakenReport>;

/** In a transaction. Answers by the places of the reports; `written`: until everything is stored. */
export async function storeReports(
  sql: Tx,
  projectId: string,
  builds: readonly TakenBuild[],
): Promise<{ answers: Answers; written: Promise<unknown> }> {
  const reports = builds.flatMap((build) => build.reports);
  if (reports.length === 0) return { answers: new Map(), written: Promise.resolve() };
  const writes = toWrites(builds);
  const quiet = reports.every(isQuiet) ? builds.map((build) => quietEventsOf(build)) : [undefined];
  const answers: Answers = new Map(reports.map((one) => [one.report.index, toAnswer(one)]));
  if (!quiet.includes(undefined)) {
    writes.events = quiet.flatMap((events) => events!);
    const written = storeIngest(sql, projectId, writes);
    const resolving = builds.flatMap(resolvingRuns);
    if (resolving.length > 0) await written.then(() => trackBugs(sql, projectId, resolving));
    await readTests(sql, projectId, reports, answers);
    return { answers, written };
  }
  for (const { report, decided } of reports) {
    const { merged, run, attempts } = decided;
    for (const block of merged.emptied) await deleteBlock(sql, projectId, run, block);
    if (attempts.length === 1) continue;
    const replaced = report.resolved.results.flatMap(({ testCase, letter }) =>
      toStatus(letter) === "skipped" ? [] : testCase,
    );
    await deleteSlowerResults(sql, projectId, run.id, replaced);
  }
  await storeIngest(sql, projectId, writes);
  await storeConsequences(sql, projectId, builds, answers);
  await readTests(sql, projectId, reports, answers);
  return { answers, written: Promise.resolve() };
}

/** After the reports were stored, or have been sent to be. */
async function readTests(
  sql: Tx,
  projectId: string,
  reports: readonly StoredReport[],
  answers: Answers,
): Promise<void> {
  for (const { report, decided } of reports) {
    const { run, slower, attempts } = decided;
    const answer = answers.get(report.index)!;
    if (slower.length > 0 || attempts.length > 1)
      answer.slowerTests = await selectSlowerTestsOfRun(sql, projectId, run.id, LISTED);
    if (run.absence !== null || run.notRerun.length > 0) answer.absent = await readAbsentTests(sql, projectId, [run]);
  }
}

/** Nothing is to be judged: the first results of a run, in which nothing failed, not even before a retry. */
const isQuiet = ({ decided: { run, attempts, changedOthers } }: StoredReport): boolean =>
  run.failed === 0 &&
  run.flaky === 0 &&
  run.notRerun.length === 0 &&
  attempts.length === 1 &&
  changedOthers.length === 0;

const quietEventsOf = (build: TakenBuild): readonly NewEvent[] | undefined => {
  const advanced = toAdvanced(build, () => toCounts({}));
  // What is red is known by the name of the line, which for a pull request from a fork is not that of its branch.
  const { branch, pullRequest } = advanced?.origin ?? { branch: null, pullRequest: null };
  const isFork = pullRequest !== null && (branch ?? build.execution.defaultBranch) === build.execution.defaultBranch;
  return advanced && quietEvents(advanced, build.match.mayHaveRedTasks || isFork);
};

const resolvingRuns = ({ reports, match }: TakenBuild): TrackedRun[] =>
  reports.filter(({ mayResolve }) => mayResolve).map((one) => toTracked(match.execution, one));

function toAnswer({ report, decided, status }: StoredReport): TakenReport {
  const { run, attempt, attempts } = decided;
  return {
    run: { ...run, ...endOf(run, status), ranOn: toRanOn(latestAttempts(attempts)) },
    added: true,
    bugReports: [],
    blames: toCounts({}),
    failures: [],
    slowerTests: [],
    absent: NOTHING_ABSENT,
    warnings: attempt.warnings,
    gate: decideQuietGate(report, decided),
  };
}

/** The rows of the reports themselves. */
function toWrites(builds: readonly TakenBuild[]): IngestWrites {
  const writes = noWrites();
  for (const build of builds) {
    const { match, execution, next, told, reports } = build;
    if (match.isNew) writes.newExecutions.push(toUploaded(build));
    else if (next)
      writes.changedExecutions.push({
        ...told,
        ...timesOf(build),
        id: execution.id,
        endedAt: execution.completedAt,
        status: next.status,
        arrived: true,
      });
    for (const { decided } of reports) {
      const { run, change, attempt, merged } = decided;
      const { id, executionId, taskSlug } = run;
      if (decided.isKnown) writes.changedRuns.push({ ...change, id });
      else writes.newRuns.push({ ...change, id, executionId, taskSlug, untrusted: run.untrusted });
      writes.attempts.push({ ...attempt, runId: id });
      writes.blocks.push(...merged.blocks.map((block) => ({ ...block, runId: id, untrusted: run.untrusted })));
    }
    for (const { report, decided } of reports) {
      const { run, attempt, slower } = decided;
      writes.slowerResults.push(...slower.map((result) => ({ ...result, runId: run.id })));
      writes.details.push(...toRunDetails(report.resolved.details, run.id, attempt));
      const origin = { runId: run.id, shard: attempt.shard, attempt: attempt.number };
      writes.references.push(...report.resolved.references.map((reference) => ({ ...reference, ...origin })));
    }
  }
  return writes;
}

/** When the earliest of the reports was completed, and the latest of all runs. */
function timesOf({ reports, runs }: TakenBuild): { now: Date; completedAt: string | null } {
  const times = reports.map(({ report }) => report.time.at.getTime());
  const completed = runs.flatMap((run) => run.completedAt ?? []).sort();
  return { now: new Date(Math.min(...times)), completedAt: completed.at(-1) ?? null };
}

/** An execution that reports begin, as it is to be stored. */
function toUploaded(build: TakenBuild): UploadedExecution {
  const { id, key, trigger, createdAt, baselineId, ...execution } = build.execution;
  const { branch, commit, pullRequest, baseBranch, queueRef, buildUrl, environment, status, untrusted } = execution;
  const { now, completedAt } = timesOf(build);
  return {
    ...{
      id,
      key,
      trigger,
      branch,
      commit,
      pullRequest,
      baseBranch,
      queueRef,
      buildUrl,
      environment,
      createdAt,
      baselineId,
      status,
      untrusted,
    },
    startedAt: now.toISOString(),
    runCompletedAt: completedAt,
    timeoutMinutes: build.match.timeoutMinutes,
  };
}

/** What follows from stored reports: health, blame, bugs, and what becomes of their executions. */
async function storeConsequences(
  sql: Tx,
  projectId: string,
  builds: readonly TakenBuild[],
  answers: Answers,
): Promise<void> {
  const all = builds.flatMap((build) => build.reports.map((one) => ({ ...one, first: build.match.execution })));
  const changed = all.filter(changesHealth);
  for (const one of changed) await countHealthChanges(sql, projectId, one);
  const toJudge = all.filter(
    ({ decided: { run, attempts } }) => run.failed > 0 || run.flaky > 0 || attempts.length > 1,
  );
  const blames = await judgeFailures(
    sql,
    projectId,
    toJudge.map(({ decided: { run, attempts } }) => ({
      ...run,
      isJudged: attempts.length > 1,
      isCounted: run.healthApplied === true,
    })),
  );
  await correctFlakyCounts(sql, projectId, toJudge, answers);
  for (const { decided, isMuted } of changed) {
    const { run } = decided;
    await discardDisturbedFlakes(sql, projectId, [run]);
    await refreshFlakiness(sql, projectId, [run.id], new Set(isMuted ? [] : [run.id]));
  }
  const complete = all.filter(({ decided }) => decided.outcome.isIn && !decided.run.untrusted);
  const touched = await trackBugs(
    sql,
    projectId,
    complete.map((one) => toTracked(one.first, one)),
  );
  const over = all.flatMap(({ decided }) => (decided.run.untrusted ? [] : decided.over));
  if (over.length > 0) await resolveBugsOf(sql, projectId, over);
  for (const one of all)
    await judgeAgain(sql, projectId, one.decided.changedOthers, (run) => toTracked(one.first, one, run));
  const failed = all.flatMap(({ decided: { run } }) => (run.failed > 0 ? run.id : []));
  const failures = failed.length === 0 ? new Map() : await selectFailures(sql, projectId, failed);
  for (const { report, decided } of all) {
    const answer = answers.get(report.index)!;
    answer.blames = blames.get(decided.run.id) ?? toCounts({});
    answer.bugReports = touched.get(decided.run.id) ?? [];
    answer.failures = await explainByTags(sql, projectId, decided.run.executionId, failures.get(decided.run.id) ?? []);
  }
  // By branch, so that two batches do not wait for each other's red tasks.
  const branchOf = ({ execution }: TakenBuild) => execution.branch ?? "";
  const together: AdvancedTogether = { events: [], states: new Map() };
  for (const build of builds.toSorted((a, b) => (branchOf(a) < branchOf(b) ? -1 : 1)))
    await advance(sql, projectId, build, (id) => blames.get(id) ?? toCounts({}), { answers, together });
  if (together.events.length > 0) await insertEvents(sql, projectId, together.events);
  for (const { report, decided } of all)
    if (decided.run.failed > 0 || decided.run.notRerun.length > 0 || decided.attempts.length > 1)
      answers.get(report.index)!.gate = await decideGate(sql, projectId, report, {
        ...{ runId: decided.run.id, attempts: decided.attempts },
      });
}

/** Passes after failures that have a cause outside of the code are not flaky, which was not known when the runs were decided. */
async function correctFlakyCounts(
  sql: Tx,
  projectId: string,
  reports: readonly StoredReport[],
  answers: Answers,
): Promise<void> {
  const retried = reports.filter(({ decided }) => decided.run.flaky > 0);
  if (retried.length === 0) return;
  const counts = await selectFlakyCounts(
    sql,
    projectId,
    retried.map(({ decided }) => decided.run.id),
  );
  for (const { report, decided } of retried) {
    decided.run.flaky = counts.get(decided.run.id)!;
    answers.get(report.index)!.run.flaky = decided.run.flaky;
  }
}

/** Whether a further attempt has changed a run that was counted already. */
const changesHealth = ({ decided: { outcome, merged } }: StoredReport): boolean =>
  outcome.staysApplied && merged.changes.length > 0;

async function countHealthChanges(sql: Tx, projectId: string, { decided, report }: StoredReport): Promise<void> {
  const { run, former, merged, onDefaultBranch } = decided;
  await lockHealth(sql, projectId);
  const counted = { id: run.id, outage: former.outage, onDefaultBranch, completedAt: report.time.completedAt };
  const ofIncident = await selectIncidentCases(sql, projectId, run.id);
  const changes = merged.changes.map((change) => (ofIncident.has(change.testCase) ? afterIncident(change) : change));
  await countChanges(sql, projectId, counted, changes);
}

/** Of a case whose failure was not counted: that it passes after the incident, or fails again, says nothing else of it. */
const afterIncident = ({ letter, ...change }: ChangedResult): ChangedResult => ({
  ...change,
  before: INCIDENT,
  letter: letter === "P" ? "p" : toStatus(letter) === "failed" ? INCIDENT : letter,
});

/** `first` is the execution as it was before the reports, `run` another one of its runs that is judged again. */
function toTracked(
  { createdAt, depth }: LockedExecution,
  { report, decided: { run: own, from, onDefaultBranch }, mayResolve, isMuted }: StoredReport,
  run: RunRow = own,
): TrackedRun {
  const completedAt = run.completedAt ?? report.time.completedAt;
  return {
    ...run,
    ...{ branch: from.branch, commit: from.commit, onDefaultBranch, isMuted, depth },
    mayResolve: mayResolve && run === own,
    startedAt: completedAt < createdAt ? completedAt : createdAt,
    seenAt: report.time.at.toISOString(),
  };
}

/** What becomes of an execution, and its events. Undefined for one of mode run. */
function toAdvanced(build: TakenBuild, blamesOf: (runId: string) => BlameCounts): Advanced | undefined {
  const { match, next, execution, reports } = build;
  if (!next) return undefined;
  return {
    ...next,
    execution: match.execution,
    isNew: match.isNew,
    origin: toOrigin(execution),
    events: reports.flatMap((one) => (one.isMuted ? [] : completedEvents(match.execution, one, blamesOf))),
    isAnnouncedAgain: reports.some(isAnnouncedAgain),
    bringsResults: true,
    ...(match.isNew && { blames: sumBlames(reports.map(({ decided }) => blamesOf(decided.run.id))) }),
    isMuted: reports.every(({ isMuted }) => isMuted),
  };
}

/** A task that failed has joined an execution that had ended. */
const isAnnouncedAgain = ({ decided: { joinsLate, run } }: StoredReport) => joinsLate && run.verdict === "failed";

async function advance(
  sql: Tx,
  projectId: string,
  build: TakenBuild,
  blamesOf: (runId: string) => BlameCounts,
  { answers, together }: { answers: Answers; together: AdvancedTogether },
): Promise<void> {
  const advanced = toAdvanced(build, blamesOf);
  if (advanced) return await storeAdvance(sql, projectId, advanced, { together });
  const { match, told, reports } = build;
  for (const one of reports) {
    const { report, decided, isMuted } = one;
    const status = await advanceExecution(sql, projectId, match.execution, toEvent(report.parameters), {
      ...{ ...told, ...timesOf(build), arrived: true, isMuted },
      events: completedEvents(match.execution, one, blamesOf),
      isAnnouncedAgain: isAnnouncedAgain(one),
      bringsResults: true,
    });
    const answer = answers.get(report.index)!;
    Object.assign(answer.run, endOf(decided.run, status));
  }
}

/** What comes after the end of an execution changes the figures, and is not announced. */
function completedEvents(
  { depth }: LockedExecution,
  { decided: { run, outcome, from, joinsLate }, formerStatus }: StoredReport,
  blamesOf: (runId: string) => BlameCounts,
): NewEvent[] {
  if (!outcome.isIn || (hasEnded(formerStatus) && !joinsLate)) return [];
  const { taskSlug, attempt, verdict, durationMs, passed, failed, skipped, flaky } = run;
  const total = passed + failed + skipped;
  const reason = taskLine(run);
  const testRun = {
    ...{ taskSlug, attempt, verdict, passed, failed, skipped, total, flaky, durationMs },
    ...(failed > 0 ? blamesOf(run.id) : {}),
    ...(reason === null ? {} : { reason }),
  };
  return [{ type: "test_run.completed", depth, data: { execution: from, testRun } }];
}

/** In the transaction of a report whose very bytes are there already: nothing is stored but that something has arrived. */
export async function repeatReport(
  sql: Tx,
  projectId: string,
  report: MatchedReport,
  { isMuted, attempts }: { isMuted: boolean; attempts: readonly Attempt[] },
): Promise<TakenReport> {
  const { match, resolved, parameters, origin, time } = report;
  const { execution } = match;
  await advanceExecution(sql, projectId, execution, toEvent(parameters), {
    ...{ ...origin, arrived: true, now: time.at, isMuted: isMuted || time.isOld },
  });
  const run = (await selectTestRun(sql, projectId, execution.id, resolved.taskSlug)) ?? refuseAbsent();
  const touched = run.failed === 0 ? [] : await selectBugsOfRun(sql, projectId, run.id);
  const bugReports = touched.map((bug): TouchedBug => ({ ...bug, change: "occurred" }));
  const blames = toBlameCounts(run.failed === 0 ? [] : await countRunFailures(sql, projectId, [run.id]));
  const found = run.failed === 0 ? [] : ((await selectFailures(sql, projectId, [run.id])).get(run.id) ?? []);
  const failures = await explainByTags(sql, projectId, execution.id, found);
  const gate = await decideGate(sql, projectId, report, { runId: run.id, attempts });
  const slowerTests = await selectSlowerTestsOfRun(sql, projectId, run.id, LISTED);
  const absent = await readAbsentTests(sql, projectId, [run]);
  return { run, added: false, bugReports, blames, failures, slowerTests, absent, warnings: [], gate };
}
