/** Ingests reports into their runs. Every upload goes through here. */

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
  /** The test_case.number of each case, in the order of the cases. */
  numbers: readonly number[];
  /** The failure of a runner that has no report. */
  failure?: RunnerFailure | undefined;
  /** The commit that the runner had checked out. */
  testedCommit?: string | undefined;
  /** Whether no events are stored. */
  isMuted?: boolean;
};

/** Returns the locks that the transaction of an upload with these parameters must hold before it ingests the report. */
export const locksFor = (projectId: string, { execution_id, execution_key }: UploadParameters): AdvisoryLock[] =>
  execution_id === undefined && execution_key !== undefined ? [lockOfKey(projectId, execution_key)] : [];

type MatchedBuild = Pick<MatchedReport, "time" | "origin" | "match">;

/**
 * Finds and locks the executions of the reports, in a transaction that holds the locks of the reports. The reports belong to different
 * builds. Refuses all if one is refused.
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

/** Ingests one report, in a transaction that holds its locks. Returns the result. */
export async function takeReport(
  sql: Tx,
  projectId: string,
  report: IncomingReport,
  now = new Date(),
): Promise<TakenReport> {
  // Planning the statements would cost more than executing them, so plans are kept. The setting and the first statement are sent together.
  const [, builds] = await Promise.all([
    setKeepsPlans(sql, true).execute(),
    matchReports(sql, projectId, [report], now),
  ]);
  const [taken] = await takeMatched(sql, projectId, [report], builds);
  return taken!;
}

/** Ingests reports after `matchReports`, in the same transaction. Returns their results, in the order of the reports. */
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
 * Returns the origin that the report may set. An execution of mode run got its branch, commit and variables when it was created; a report
 * adds only the tested commit, and only if the execution names none.
 */
function ownOrigin(
  { mode, commit }: LockedExecution,
  stated: ExecutionOrigin,
  { testedCommit }: IncomingReport,
): ExecutionOrigin {
  if (mode !== "run") return stated;
  return commit === null && testedCommit !== undefined && HASH.test(testedCommit) ? { commit: testedCommit } : {};
}

/** Decides how a report changes its run and its execution. */
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
  // The next state of an execution of mode run also depends on its leases, which are read when it is advanced.
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
