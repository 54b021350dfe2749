/** Takes reports into their runs: the one way of every upload. */

import { decideRun, resolvingCases, timeOf, toEvent } from "./decide.ts";
import { type IngestFacts, loadFacts, type MatchedReport, MAX_WATCHED } from "./facts.ts";
import { matchBuilds } from "./match.ts";
import { originOf, type PreparedReport, type RunnerFailure, toResolved } from "./prepare.ts";
import { recordReports, repeatReport } from "./record.ts";
import type { StoredReport, TakenReport } from "./taken_report.ts";
import { decideNext } from "../executions/advance.ts";
import type { UploadParameters } from "../../schema/test_runs.ts";
import { setKeepsPlans, type Tx } from "../../database/connect.ts";
import type { AdvisoryLock } from "../../database/locks.ts";
import type { ExecutionOrigin, LockedExecution } from "../../store/executions.ts";
import type { TaskRow } from "../../store/execution_tasks.ts";
import { lockOfKey } from "../../store/execution_of_build.ts";
import type { RunRow } from "../../store/test_runs.ts";

export type IncomingReport = {
  prepared: PreparedReport;
  parameters: UploadParameters;
  /** test_case.number of each case, in their order. */
  numbers: readonly number[];
  /** What failed in a runner that has no report. */
  failure?: RunnerFailure | undefined;
  /** The commit that a runner has found checked out. */
  testedCommit?: string | undefined;
  /** No event is stored. */
  isMuted?: boolean;
};

/** What the transaction of an upload with these parameters is to hold before it takes the report. */
export const locksFor = (projectId: string, { execution_id, execution_key }: UploadParameters): AdvisoryLock[] =>
  execution_id === undefined && execution_key !== undefined ? [lockOfKey(projectId, execution_key)] : [];

type MatchedBuild = Pick<MatchedReport, "time" | "origin" | "match">;

/**
 * In a transaction that holds the locks of the reports, which are of different builds: finds and locks the executions that
 * they belong to. Refuses all if one is refused.
 */
export async function matchReports(
  sql: Tx,
  projectId: string,
  reports: readonly Pick<IncomingReport, "prepared" | "parameters">[],
  now = new Date(),
): Promise<MatchedBuild[]> {
  const builds = reports.map(({ prepared, parameters }) => {
    const time = timeOf(parameters, now);
    return { parameters, origin: originOf(parameters, prepared.report), now: time.at, time };
  });
  const matches = await matchBuilds(sql, projectId, builds);
  return builds.map(({ time, origin }, index) => ({ time, origin, match: matches[index]! }));
}

/** In a transaction that holds the locks of the report. Answers what has become of it. */
export async function takeReport(
  sql: Tx,
  projectId: string,
  report: IncomingReport,
  now = new Date(),
): Promise<TakenReport> {
  // Planning the statements would cost more than executing them. Both are sent at once.
  const [, builds] = await Promise.all([
    setKeepsPlans(sql, true).execute(),
    matchReports(sql, projectId, [report], now),
  ]);
  const [taken] = await takeMatched(sql, projectId, [report], builds);
  return taken!;
}

/** After `matchReports`, in the same transaction. Answers what has become of each, in their order. */
export async function takeMatched(
  sql: Tx,
  projectId: string,
  reports: readonly IncomingReport[],
  builds: readonly MatchedBuild[],
): Promise<TakenReport[]> {
  const matched = reports.map((report, index): MatchedReport => {
    const { prepared, parameters, numbers, failure } = report;
    const { time, origin, match } = builds[index]!;
    const own = ownOrigin(match.execution, origin, report);
    return { index, time, match, origin: own, resolved: toResolved(prepared, numbers), parameters, failure };
  });
  const facts = await loadFacts(sql, projectId, matched);
  const taken: TakenReport[] = [];
  const added: StoredReport[] = [];
  for (const report of matched) {
    const isMuted = reports[report.index]!.isMuted === true;
    const { isRepeated, attempts } = facts.byReport.get(report.index)!;
    if (isRepeated) taken[report.index] = await repeatReport(sql, projectId, report, { isMuted, attempts });
    else added.push(takeOne(report, facts, isMuted));
  }
  for (const [index, output] of await recordReports(sql, projectId, added)) taken[index] = output;
  return taken;
}

const HASH = /^[0-9a-f]{7,64}$/i;

/**
 * What runners run, and with which variables, was said when the execution began: reports add nothing to it but the commit that
 * was tested, where the execution names none.
 */
function ownOrigin(
  { mode, commit }: LockedExecution,
  stated: ExecutionOrigin,
  { testedCommit }: IncomingReport,
): ExecutionOrigin {
  if (mode !== "run") return stated;
  return commit === null && testedCommit !== undefined && HASH.test(testedCommit) ? { commit: testedCommit } : {};
}

/** Decides what a report makes of its execution. */
function takeOne(report: MatchedReport, facts: IngestFacts, isMuted: boolean): StoredReport {
  const { match, parameters, time } = report;
  const { execution } = match;
  const before = facts.runs.get(execution.id) ?? [];
  const own = facts.byReport.get(report.index)!;
  const { quarantined } = facts;
  const decided = decideRun({ ...report, ...own, execution, runs: before, warnings: match.warnings, quarantined });
  const { run, changedOthers, from, isKnown } = decided;
  const changed = new Map([run, ...changedOthers].map((one) => [one.id, one]));
  const others = before.map((one) => changed.get(one.id) ?? one);
  const runs = isKnown ? others : [...others, run].sort(byId);
  // What runners do with an execution of theirs is looked up when it is advanced.
  const next = execution.mode === "run" ? undefined : decideNext(execution, runs.map(toTask), toEvent(parameters));
  const status = next?.status ?? execution.status;
  const isWatched = report.resolved.results.length <= MAX_WATCHED;
  return {
    ...{ report, decided, runs, next, status },
    execution: { ...execution, ...from, status },
    resolving: resolvingCases(decided, match, isWatched ? facts.watched : undefined),
    isMuted: isMuted || time.isOld || execution.untrusted,
  };
}

const byId = (a: RunRow, b: RunRow) => (a.id < b.id ? -1 : 1);
const toTask = (run: RunRow): TaskRow => ({ ...run, slug: run.taskSlug, runner: null });
