/** Everything that follows from stored reports: health, blame, bugs, events, and what becomes of their executions. */

import { endOf, toEvent } from "./decide.ts";
import { decideGate } from "./gates.ts";
import { judgeFailures } from "./judge.ts";
import { judgeAgain } from "./judge_again.ts";
import { type Answers, type StoredReport, reportTimes } from "./taken_report.ts";
import { resolveBugsOf, type TrackedRun, trackBugs } from "../bugs/bug_reports.ts";
import { countChanges } from "../health/case_records.ts";
import { discardDisturbedFlakes, refreshFlakiness } from "../health/flakiness.ts";
import {
  advanceExecution,
  type Advanced,
  type AdvancedTogether,
  quietEvents,
  storeAdvance,
} from "../executions/advance.ts";
import { toOrigin } from "../executions/origin.ts";
import { explainByTags } from "../executions/only_with.ts";
import { toCounts } from "../../rules/blame.ts";
import { lineOf } from "../../rules/branch.ts";
import { hasEnded } from "../../rules/execution.ts";
import { INCIDENT } from "../../rules/health.ts";
import { type ChangedResult, toStatus } from "../../rules/merge.ts";
import type { NewEvent } from "../../schema/events.ts";
import type { BlameCounts } from "../../schema/failures.ts";
import type { Tx } from "../../database/connect.ts";
import { taskLine } from "../../wording/reasons.ts";
import { insertEvents } from "../../store/events.ts";
import { lockHealth } from "../../store/pending_health.ts";
import { selectFailures, selectIncidentCases } from "../../store/failures.ts";
import { type RunRow, selectFlakyCounts } from "../../store/test_runs.ts";

/** Nothing is to be judged: the first results of a run, in which nothing failed, not even before a retry. */
const isQuiet = ({ decided: { run, attempts, changedOthers } }: StoredReport): boolean =>
  run.failed === 0 &&
  run.flaky === 0 &&
  run.notRerun.length === 0 &&
  attempts.length === 1 &&
  changedOthers.length === 0;

/** The events of a report for which nothing is to be read; undefined if something is. */
function quietEventsOf(one: StoredReport): readonly NewEvent[] | undefined {
  const advanced = isQuiet(one) ? toAdvanced(one, () => toCounts({})) : undefined;
  if (!advanced) return undefined;
  const { execution, mayHaveRedTasks } = one.report.match;
  // What is red is known by the name of the line, which for a pull request from a fork is not that of its branch.
  const { branch, pullRequest } = advanced.origin;
  const isFork = pullRequest !== null && (branch ?? execution.defaultBranch) === execution.defaultBranch;
  return quietEvents(advanced, mayHaveRedTasks || isFork);
}

/** The events of reports for which nothing is to be read, and the other reports: a branch that one of these may turn red is theirs. */
export function announceQuietly(reports: readonly StoredReport[]): { events: NewEvent[]; others: StoredReport[] } {
  const quiet = new Map(reports.map((one) => [one, quietEventsOf(one)]));
  const branchOf = ({ execution }: StoredReport) => lineOf(toOrigin(execution), execution.defaultBranch);
  const loud = new Set(reports.flatMap((one) => (quiet.get(one) ? [] : branchOf(one))));
  const others = reports.filter((one) => loud.has(branchOf(one)));
  return { events: reports.flatMap((one) => (others.includes(one) ? [] : quiet.get(one)!)), others };
}

/** `toAnnounce`: the reports whose events are not stored yet. */
export async function storeConsequences(
  sql: Tx,
  projectId: string,
  all: readonly StoredReport[],
  { answers, toAnnounce }: { answers: Answers; toAnnounce: readonly StoredReport[] },
): Promise<void> {
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
    complete.map((one) => toTracked(one)),
  );
  const over = all.flatMap(({ decided }) => (decided.run.untrusted ? [] : decided.over));
  if (over.length > 0) await resolveBugsOf(sql, projectId, over);
  for (const one of all) await judgeAgain(sql, projectId, one.decided.changedOthers, (run) => toTracked(one, run));
  const failed = all.flatMap(({ decided: { run } }) => (run.failed > 0 ? run.id : []));
  const failures = failed.length === 0 ? new Map() : await selectFailures(sql, projectId, failed);
  for (const { report, decided } of all) {
    const answer = answers.get(report.index)!;
    answer.blames = blames.get(decided.run.id) ?? toCounts({});
    answer.bugReports = touched.get(decided.run.id) ?? [];
    answer.failures = await explainByTags(sql, projectId, decided.run.executionId, failures.get(decided.run.id) ?? []);
  }
  // By branch, so that two batches do not wait for each other's red tasks.
  const branchOf = ({ execution }: StoredReport) => execution.branch ?? "";
  const together: AdvancedTogether = { events: [], states: new Map() };
  for (const one of toAnnounce.toSorted((a, b) => (branchOf(a) < branchOf(b) ? -1 : 1)))
    await advance(sql, projectId, one, (id) => blames.get(id) ?? toCounts({}), { answers, together });
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

/** `run`: another one of the execution that is judged again. */
function toTracked(
  { report, decided: { run: own, from, onDefaultBranch }, resolving, isMuted }: StoredReport,
  run: RunRow = own,
): TrackedRun {
  const { createdAt, depth } = report.match.execution;
  const completedAt = run.completedAt ?? report.time.completedAt;
  return {
    ...run,
    ...{ branch: from.branch, commit: from.commit, onDefaultBranch, isMuted, depth },
    resolving: run === own ? resolving : undefined,
    startedAt: completedAt < createdAt ? completedAt : createdAt,
    seenAt: report.time.at.toISOString(),
  };
}

/** What becomes of an execution, and its events. Undefined for one of mode run. */
function toAdvanced(one: StoredReport, blamesOf: (runId: string) => BlameCounts): Advanced | undefined {
  const { report, next, execution, decided, isMuted } = one;
  if (!next) return undefined;
  const { match } = report;
  return {
    ...next,
    execution: match.execution,
    isNew: match.isNew,
    origin: toOrigin(execution),
    events: isMuted ? [] : completedEvents(one, blamesOf),
    isAnnouncedAgain: isAnnouncedAgain(one),
    bringsResults: true,
    ...(match.isNew && { blames: blamesOf(decided.run.id) }),
    isMuted,
  };
}

/** A task that failed has joined an execution that had ended. */
const isAnnouncedAgain = ({ decided: { joinsLate, run } }: StoredReport) => joinsLate && run.verdict === "failed";

async function advance(
  sql: Tx,
  projectId: string,
  one: StoredReport,
  blamesOf: (runId: string) => BlameCounts,
  { answers, together }: { answers: Answers; together: AdvancedTogether },
): Promise<void> {
  const advanced = toAdvanced(one, blamesOf);
  if (advanced) return await storeAdvance(sql, projectId, advanced, { together });
  const { report, decided, isMuted } = one;
  const status = await advanceExecution(sql, projectId, report.match.execution, toEvent(report.parameters), {
    ...{ ...report.origin, ...reportTimes(one), arrived: true, isMuted },
    events: completedEvents(one, blamesOf),
    isAnnouncedAgain: isAnnouncedAgain(one),
    bringsResults: true,
  });
  Object.assign(answers.get(report.index)!.run, endOf(decided.run, status));
}

/** What comes after the end of an execution changes the figures, and is not announced. */
function completedEvents(
  { report, decided: { run, outcome, from, joinsLate } }: StoredReport,
  blamesOf: (runId: string) => BlameCounts,
): NewEvent[] {
  const { depth, status } = report.match.execution;
  if (!outcome.isIn || (hasEnded(status) && !joinsLate)) return [];
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
