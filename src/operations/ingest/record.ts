/** Stores decided reports and returns the result of each. */

import { type DecidedRun, endOf, toEvent } from "./decide.ts";
import { announceQuietly, storeConsequences } from "./consequences.ts";
import type { MatchedReport } from "./facts.ts";
import { decideGate, decideQuietGate } from "./gates.ts";
import { toBlameCounts } from "./judge.ts";
import { toRunDetails } from "./prepare.ts";
import { type Answers, type StoredReport, type TakenReport, reportTimes } from "./taken_report.ts";
import { advanceExecution } from "../executions/advance.ts";
import { explainByTags } from "../executions/only_with.ts";
import { NOTHING_ABSENT, readAbsentTests } from "../executions/absent_tests.ts";
import { toCounts } from "../../rules/blame.ts";
import { toStatus } from "../../rules/merge.ts";
import { toRanOn } from "../../rules/ran_on.ts";
import { latestAttempts } from "../../rules/run_outcome.ts";
import type { TouchedBug } from "../../schema/bug_reports.ts";
import { refuseAbsent } from "../../schema/refusal.ts";
import type { Tx } from "../../database/connect.ts";
import { selectBugsOfRun } from "../../store/bug_occurrences.ts";
import { deleteBlock } from "../../store/case_results.ts";
import type { UploadedExecution } from "../../store/new_executions.ts";
import { countRunFailures, LISTED, selectFailures } from "../../store/failures.ts";
import { noWrites, type ReportWrites, writeReports } from "../../store/report_writes.ts";
import { deleteSlowerResults, selectSlowerTestsOfRun } from "../../store/slower.ts";
import { type Attempt, selectTestRun } from "../../store/test_runs.ts";

/** Stores reports of different executions, in a transaction that has locked these. Returns the results. */
export async function recordReports(sql: Tx, projectId: string, reports: readonly StoredReport[]): Promise<Answers> {
  const answers: Answers = new Map(reports.map((one) => [one.report.index, toAnswer(one)]));
  if (reports.length === 0) return answers;
  const writes = toWrites(reports);
  const { events, others } = announceQuietly(reports);
  writes.events = events;
  for (const { report, decided } of reports) await removeReplaced(sql, projectId, report, decided);
  await writeReports(sql, projectId, writes);
  await storeConsequences(sql, projectId, reports, { answers, toAnnounce: others });
  for (const { report, decided } of reports) {
    const { run, slower, attempts } = decided;
    const answer = answers.get(report.index)!;
    if (slower.length > 0 || attempts.length > 1)
      answer.slowerTests = await selectSlowerTestsOfRun(sql, projectId, run.id, LISTED);
    if (run.absence !== null || run.notRerun.length > 0) answer.absent = await readAbsentTests(sql, projectId, [run]);
  }
  return answers;
}

/** Deletes rows that a further attempt makes obsolete and that the writes do not overwrite. */
async function removeReplaced(
  sql: Tx,
  projectId: string,
  { resolved }: MatchedReport,
  { merged, run, attempts }: DecidedRun,
): Promise<void> {
  for (const block of merged.emptied) await deleteBlock(sql, projectId, run, block);
  if (attempts.length === 1) return;
  const replaced = resolved.results.flatMap(({ testCase, letter }) => (toStatus(letter) === "skipped" ? [] : testCase));
  await deleteSlowerResults(sql, projectId, run.id, replaced);
}

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

/** Returns the rows to write for the reports themselves, without their consequences. */
function toWrites(reports: readonly StoredReport[]): ReportWrites {
  const writes = noWrites();
  for (const one of reports) {
    const { report, execution, next, decided } = one;
    const { run, change, attempt, merged, slower } = decided;
    const { id, executionId, taskSlug, untrusted } = run;
    if (!untrusted) writes.commits.push(...(report.parameters.commits ?? []));
    if (report.match.isNew) writes.newExecutions.push(toUploaded(one));
    else if (next)
      writes.changedExecutions.push({
        ...report.origin,
        ...reportTimes(one),
        id: execution.id,
        endedAt: execution.completedAt,
        status: next.status,
        arrived: true,
      });
    if (decided.isKnown) writes.changedRuns.push({ ...change, id });
    else writes.newRuns.push({ ...change, id, executionId, taskSlug, untrusted });
    writes.attempts.push({ ...attempt, runId: id });
    writes.blocks.push(...merged.blocks.map((block) => ({ ...block, runId: id, untrusted })));
    writes.slowerResults.push(...slower.map((result) => ({ ...result, runId: id })));
    writes.details.push(...toRunDetails(report.resolved.details, id, attempt));
    const origin = { runId: id, shard: attempt.shard, attempt: attempt.number };
    writes.references.push(...report.resolved.references.map((reference) => ({ ...reference, ...origin })));
  }
  return writes;
}

/** Returns the row of an execution that a report creates. */
function toUploaded(one: StoredReport): UploadedExecution {
  const { id, key, trigger, createdAt, baselineId, ...execution } = one.execution;
  const { branch, commit, pullRequest, baseBranch, queueRef, buildUrl, environment, status, untrusted } = execution;
  const { now, completedAt } = reportTimes(one);
  return {
    ...{ id, key, trigger, branch, commit, pullRequest, baseBranch, queueRef, buildUrl, environment, createdAt },
    ...{ baselineId, status, untrusted },
    startedAt: now.toISOString(),
    runCompletedAt: completedAt,
    timeoutMinutes: one.report.match.timeoutMinutes,
  };
}

/** Handles a repeated upload of the same bytes, in its transaction: advances the execution, stores no results, returns the stored run. */
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
