/** The types of reports while they are ingested, and of the results. */

import type { DecidedRun, resolvingCases } from "./decide.ts";
import type { MatchedReport } from "./facts.ts";
import type { NextState } from "../executions/advance.ts";
import type { Blamed } from "../../rules/blame.ts";
import type { AbsentTests } from "../../schema/absent_tests.ts";
import type { TouchedBug } from "../../schema/bug_reports.ts";
import type { ExecutionStatus } from "../../schema/executions.ts";
import type { BlameCounts } from "../../schema/failures.ts";
import type { GateDecision } from "../../schema/gate.ts";
import type { LockedExecution } from "../../store/executions.ts";
import type { SlowerRow } from "../../store/slower.ts";
import type { LocatedRun, RunRow } from "../../store/test_runs.ts";

/** A report that has been decided and is being stored. */
export type StoredReport = {
  report: MatchedReport;
  decided: DecidedRun;
  /** The execution after the report. */
  execution: LockedExecution;
  /** All runs of the execution after the report, ordered by id. */
  runs: readonly RunRow[];
  /** The next state of the execution; undefined for one of mode run, whose state also depends on leases. */
  next: NextState | undefined;
  /** The status of the execution after the report. */
  status: ExecutionStatus;
  /** The test cases whose passes may resolve a bug; see `resolvingCases`. */
  resolving: ReturnType<typeof resolvingCases>;
  /** Whether no events are stored. */
  isMuted: boolean;
};

/** The result of an ingested report. */
export type TakenReport = {
  run: LocatedRun;
  /** False if the same bytes were uploaded before, so that nothing was added. */
  added: boolean;
  bugReports: TouchedBug[];
  /** The number of failures of the run by blame. */
  blames: BlameCounts;
  /** Failures of the run, at most 100 of each blame. */
  failures: readonly Blamed[];
  /** The first test cases of the run that took longer than usual. */
  slowerTests: readonly SlowerRow[];
  absent: AbsentTests;
  /** Warnings about this upload, if it was added. `run.warnings` also has those of other shards. */
  warnings: readonly string[];
  /** The gate decision; undefined if the upload asks for none. */
  gate: GateDecision | undefined;
};

/** Results by `index` of the report. */
export type Answers = Map<number, TakenReport>;

/** Returns the completion time of the report, and the latest completion time of all runs of its execution. */
export function reportTimes({ report, runs }: StoredReport): { now: Date; completedAt: string | null } {
  const completed = runs.flatMap((run) => run.completedAt ?? []).sort();
  return { now: report.time.at, completedAt: completed.at(-1) ?? null };
}
