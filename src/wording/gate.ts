/** Says what a gate forgives and why it does not pass. */

import type { ExecutionDecision, GateReason, TaskGate } from "../rules/gate.ts";
import { toShardList } from "../rules/shards.ts";
import type { ForgivenFailure, GateDecision } from "../schema/gate.ts";
import type { Blame } from "../schema/failures.ts";
import { absenceWords } from "./absent_tests.ts";
import { caseTitle } from "./case_title.ts";
import { counted } from "./numbers.ts";
import { exitWords } from "./reasons.ts";
import { singleLine } from "./single_line.ts";

const FAILURES: Record<Blame, (count: number) => string> = {
  new: (count) => counted(count, "new failure"),
  unclear: (count) => `${counted(count, "failure")} ${count === 1 ? "is" : "are"} unclear: a rerun tells`,
  flaky: (count) => `${counted(count, "failure")} of known flaky tests`,
  main: (count) => `${counted(count, "failure")} that the default branch has too`,
  still: (count) => `${counted(count, "failure")} that the baseline has too`,
  quarantined: (count) => `${counted(count, "failure")} of quarantined tests`,
  incident: (count) => `${counted(count, "failure")} in an incident; rerun the tests when it is over`,
};

/** Facts about a task besides its gate. */
export type GatedTaskText = {
  slug: string;
  shards: number;
  missingShards: readonly number[];
  /** Why it ended without a complete report, or is red without a failed test; null: unknown. */
  reason: string | null;
};

function reasonText(reason: GateReason, { shards, missingShards, reason: known }: GatedTaskText): string {
  switch (reason.kind) {
    case "failures":
      return FAILURES[reason.blame](reason.count);
    case "unjudged":
      return `${counted(reason.count, "failure")} without a test case in the report`;
    case "exit_code":
      return `exit ${exitWords(reason.exitCode)}, which means more than failed tests`;
    case "absent":
      return absenceWords({ missing: reason.missing, newlySkipped: reason.skipped });
    case "outage":
      return "an outage: nearly all tests failed";
    case "replaced":
      return "the report repeats an earlier attempt, which a later one has replaced";
    case "stand_in":
      return known ?? "the test runner failed although no test did";
    case "partial":
      return "the report is incomplete";
    case "missing_shards":
      return `${toShardList(missingShards)} of ${shards} missing`;
    case "ended":
      return known ?? "did not report";
    case "unexplained":
      return known ?? "failed without a failing test";
  }
}

const MAX_REASONS = 20;

/** Returns at most 20 reasons. */
function toReasons(gates: readonly TaskGate[], texts: readonly GatedTaskText[], first: readonly string[]): string[] {
  const bySlug = new Map(texts.map((text) => [text.slug, text]));
  const all = [
    ...first,
    ...gates.flatMap(({ slug, reasons }) =>
      // Several shards can have the same reason.
      [...new Set(reasons.map((reason) => reasonText(reason, bySlug.get(slug)!)))].map(
        (text) => `${singleLine(slug)}: ${text}`,
      ),
    ),
  ];
  const more = all.length - MAX_REASONS + 1;
  return all.length <= MAX_REASONS ? all : [...all.slice(0, MAX_REASONS - 1), `and ${counted(more, "other reason")}`];
}

export const taskGateReasons = (gate: TaskGate, text: GatedTaskText): string[] => toReasons([gate], [text], []);

export function executionGateReasons(decision: ExecutionDecision, texts: readonly GatedTaskText[]): string[] {
  const { unreported, isCancelled, final, tasks } = decision;
  const first = isCancelled
    ? ["The execution was cancelled"]
    : unreported !== null
      ? [
          `${unreported.open} of ${counted(unreported.all, "task")} ${unreported.all === 1 ? "has" : "have"} not reported`,
        ]
      : !final
        ? ["The execution has not ended"]
        : tasks.length === 0
          ? ["There are no reports"]
          : [];
  return toReasons(tasks, texts, first);
}

/** Returns "2 failures forgiven". */
export const forgivenWords = (count: number): string => `${counted(count, "failure")} forgiven`;

/** Returns "Passed, 2 failures forgiven" or "Failed: unit: 1 new failure". */
export function gateSummary({
  pass,
  reasons,
  forgivenCount,
}: Pick<GateDecision, "pass" | "reasons" | "forgivenCount">) {
  if (!pass) return `Failed: ${reasons.join("; ")}`;
  return forgivenCount === 0 ? "Passed" : `Passed, ${forgivenWords(forgivenCount)}`;
}

type DecisionText = Pick<GateDecision, "gate" | "pass" | "reasons" | "forgivenCount"> & {
  forgiven: readonly NamedFailure[];
  unclear: readonly NamedFailure[];
};
type NamedFailure = Pick<ForgivenFailure, "suite" | "name" | "reason">;

/** The first line says the outcome, then one line for each forgiven failure, each reason and each unclear failure. */
export function gateLines(decision: DecisionText, maxFailures: number): string[] {
  const { pass, reasons, forgiven, forgivenCount, unclear } = decision;
  const named = forgiven.slice(0, maxFailures);
  const lineOf = (word: string) => (failure: NamedFailure) => `${word}: ${caseTitle(failure)}: ${failure.reason}`;
  const more = forgivenCount - named.length;
  return [
    `Gate ${decision.gate}: ${pass ? gateSummary(decision).toLowerCase() : "failed"}`,
    ...named.map(lineOf(pass ? "Forgiven" : "Would be forgiven")),
    ...(more > 0 ? [`and ${counted(more, "other failure")}`] : []),
    ...(pass ? [] : reasons.map((reason) => `Stays red: ${reason}`)),
    ...(pass ? [] : unclear.slice(0, maxFailures).map(lineOf("Unclear"))),
  ].map(singleLine);
}

/** Returns "Passed the gate "new": 3 failures forgiven" or "Failed the gate "new": 1 new failure"; null if nothing is to be said. */
export function gateHeadline({
  gate,
  pass,
  reasons,
  forgivenCount,
}: Omit<GateDecision, "forgiven" | "unclear">): string | null {
  if (!pass) return `Failed the gate "${gate}": ${reasons.join("; ")}`;
  return forgivenCount === 0 ? null : `Passed the gate "${gate}": ${forgivenWords(forgivenCount)}`;
}
