/** Decides what a gate forgives: whether a red build or upload may pass, although tests of it failed. */

import type { ExecutionStatus, TaskStatus } from "../schema/executions.ts";
import type { Blame } from "../schema/failures.ts";
import type { GateMode } from "../schema/gate.ts";
import { BLAME_ORDER } from "./blame.ts";
import { ABSENT_PERCENT, type AbsentCases, isAbove } from "./absent_tests.ts";
import { hasEnded } from "./execution.ts";

/** Blames other than the change. Such a failure is unclear if the share of the change exceeds that of the project's gates. */
export const EXPLAINED_BLAMES = ["flaky", "still", "main"] as const satisfies readonly Blame[];

/**
 * The failures that each mode forgives. An incident is forgiven by none: many tests failed for a cause outside the code, so
 * whether they would have passed is unknown, and a change that breaks a service looks the same.
 */
const FORGIVEN = {
  quarantine: ["quarantined"],
  new: ["quarantined", ...EXPLAINED_BLAMES],
} as const satisfies Record<GateMode, readonly Blame[]>;

/** The origin of a build, as far as gates depend on it. */
export type GatedBuild = {
  /** The build is of the default branch or a long-lived branch, and of no pull request: it stays red until its tests are fixed. */
  isOnSharedBranch: boolean;
  /** The baseline is such a build, or there is none. */
  isBaselineShared: boolean;
};

/**
 * The failures that a mode forgives a build. Failures that a shared branch has caused are only forgiven on other branches: a failure of an
 * earlier build of the same branch is not.
 */
export function forgivenBlames(mode: GateMode, { isOnSharedBranch, isBaselineShared }: GatedBuild): readonly Blame[] {
  const isOwn: Partial<Record<Blame, boolean>> = {
    still: isOnSharedBranch || !isBaselineShared,
    main: isOnSharedBranch,
  };
  return FORGIVEN[mode].filter((blame) => !isOwn[blame]);
}

/**
 * Exit codes that tools reserve for failed tests: 1 is that of nearly all, 8 of CTest, 100 of cargo-nextest, 101 of cargo test.
 * Others, such as 2 of pytest, also mean that the tool was interrupted or could not load a file.
 */
const FAILED_TESTS_CODES = [1, 8, 100, 101];

/** Codes from here on mean that a command could not be started (126, 127) or was ended by a signal (128 + n). */
const FIRST_SHELL_CODE = 126;

/** Whether a gate can forgive this exit code at all, as it may not where the tests were not run to their end. */
export const mayBeForgiven = (exitCode: number): boolean => exitCode >= 0 && exitCode < FIRST_SHELL_CODE;

/**
 * Whether failed tests explain an exit code. Mocha, Cypress, Robot Framework and others exit with the number of failed tests.
 * `failedCases` null: unknown.
 */
export const isExplainedByFailures = (exitCode: number, failedCases: number | null): boolean =>
  exitCode === 0 || FAILED_TESTS_CODES.includes(exitCode) || (mayBeForgiven(exitCode) && exitCode === failedCases);

/** The latest upload of a shard, or of a whole task. */
export type GatedUpload = {
  /** null: unknown. */
  exitCode: number | null;
  /** The number of test cases that the report says failed; null: unknown. */
  failedCases: number | null;
  /** Whether its only failure represents a test tool that failed although no test did. */
  isStandIn: boolean;
  /** The report was truncated, or files that the shard should have run are missing. */
  isPartial: boolean;
};

/** The facts about a task that its gate depends on. */
export type GatedTask = GatedBuild & {
  slug: string;
  status: TaskStatus;
  verdict: "passed" | "failed" | null;
  /** Nearly all tests failed, so no failure was judged. */
  isOutage: boolean;
  /** Numbers of the announced shards that have not reported. */
  missingShards: readonly number[];
  uploads: readonly GatedUpload[];
  /** The number of failed test cases by blame, without those that represent a test tool. */
  blames: Partial<Record<Blame, number>>;
  /** The number of failures that were not judged, because a report only counts them. */
  unjudged: number;
  /** Tests of the baseline that did not run; null: none, or that is not known yet. */
  absence: Pick<AbsentCases, "of" | "missing" | "skipped"> | null;
  /** The upload repeats a report that a later attempt has replaced, so the results of the run are not its own. */
  isReplaced?: boolean;
};

export type GateReason =
  | { kind: "failures"; blame: Blame; count: number }
  | { kind: "unjudged"; count: number }
  | { kind: "exit_code"; exitCode: number }
  | { kind: "absent"; missing: number; skipped: number }
  | { kind: "outage" | "replaced" | "stand_in" | "partial" | "missing_shards" | "ended" | "unexplained" };

export type TaskGate = { slug: string; reasons: GateReason[]; forgiven: number };

/**
 * Decides about a task that has reported or has ended. Failures are not forgiven where more than `missingPercent` of the baseline's tests did
 * not run: what they would have shown is unknown.
 */
export function gateTask(mode: GateMode, task: GatedTask, missingPercent: number = ABSENT_PERCENT): TaskGate {
  const reasons: GateReason[] = [];
  const forgiving = forgivenBlames(mode, task);
  if (task.status === "cancelled" || task.status === "timed_out" || task.status === "incomplete")
    reasons.push({ kind: task.missingShards.length > 0 ? "missing_shards" : "ended" });
  if (task.isReplaced) reasons.push({ kind: "replaced" });
  if (task.isOutage) reasons.push({ kind: "outage" });
  const counts = BLAME_ORDER.map((blame): [Blame, number] => [blame, task.blames[blame] ?? 0]);
  for (const [blame, count] of counts)
    if (count > 0 && !forgiving.includes(blame)) reasons.push({ kind: "failures", blame, count });
  if (task.unjudged > 0 && !task.isOutage) reasons.push({ kind: "unjudged", count: task.unjudged });
  const isPartial = task.uploads.some((upload) => upload.isPartial);
  if (isPartial) reasons.push({ kind: "partial" });
  if (task.uploads.some(({ isStandIn }) => isStandIn)) reasons.push({ kind: "stand_in" });
  for (const { exitCode, failedCases, isStandIn } of task.uploads)
    if (!isStandIn && exitCode !== null && !isExplainedByFailures(exitCode, failedCases))
      reasons.push({ kind: "exit_code", exitCode });
  const forgiven = counts.reduce((sum, [blame, count]) => sum + (forgiving.includes(blame) ? count : 0), 0);
  // The reason why is named already, if the report is incomplete.
  if (forgiven > 0 && !isPartial && task.absence !== null && isAbove(task.absence, missingPercent))
    reasons.push({ kind: "absent", missing: task.absence.missing, skipped: task.absence.skipped });
  // A task that is red for an unknown reason is not forgiven.
  if (task.verdict === "failed" && reasons.length === 0 && forgiven === 0) reasons.push({ kind: "unexplained" });
  return { slug: task.slug, reasons, forgiven };
}

export type ExecutionDecision = {
  pass: boolean;
  /** Whether everything expected has reported. */
  final: boolean;
  /** Tasks that have not reported, of all tasks; null: only the end of the execution is missing, or nothing is. */
  unreported: { open: number; all: number } | null;
  isCancelled: boolean;
  tasks: TaskGate[];
};

/** Decides about an execution, or about some of its tasks. */
export function gateExecution(
  mode: GateMode,
  status: ExecutionStatus,
  tasks: readonly GatedTask[],
  { isWhole, missingPercent }: { isWhole: boolean; missingPercent?: number | undefined },
): ExecutionDecision {
  const open = tasks.filter((task) => !hasEnded(task.status)).length;
  const final = hasEnded(status) || (!isWhole && tasks.length > 0 && open === 0);
  const gates = tasks.map((task) => gateTask(mode, task, missingPercent));
  const isCancelled = isWhole && status === "cancelled";
  const isEmpty = tasks.length === 0;
  return {
    pass: final && !isCancelled && !isEmpty && gates.every(({ reasons }) => reasons.length === 0),
    final,
    unreported: !final && open > 0 ? { open, all: tasks.length } : null,
    isCancelled,
    tasks: gates,
  };
}
