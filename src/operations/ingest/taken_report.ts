/** What reports are while they are stored, and what has become of them. */

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

/** A report that is to be stored. */
export type StoredReport = {
  report: MatchedReport;
  decided: DecidedRun;
  /** The execution as it is with the report. */
  execution: LockedExecution;
  /** All runs of the execution with that of the report, ordered by id. */
  runs: readonly RunRow[];
  /** Undefined for an execution of mode run, which runners change as well. */
  next: NextState | undefined;
  /** Of the execution, after the report. */
  status: ExecutionStatus;
  /** See `resolvingCases`. */
  resolving: ReturnType<typeof resolvingCases>;
  /** No event is stored. */
  isMuted: boolean;
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

/** What has become of reports, by their places. */
export type Answers = Map<number, TakenReport>;

/** When the report was completed, and the latest of all runs of its execution. */
export function reportTimes({ report, runs }: StoredReport): { now: Date; completedAt: string | null } {
  const completed = runs.flatMap((run) => run.completedAt ?? []).sort();
  return { now: report.time.at, completedAt: completed.at(-1) ?? null };
}
