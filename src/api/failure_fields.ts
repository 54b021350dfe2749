/** Turns the failures of an execution and their causes into the fields of the API. */

import type { CaseAttachments } from "../operations/attachments/read.ts";
import type { CauseFailures as FoundCause, ExplainedFailure } from "../operations/executions/failures.ts";
import { WORD_OF } from "../rules/blame.ts";
import { failureReason } from "../wording/failure_reason.ts";
import { readFailure } from "../rules/fingerprint.ts";
import type { CaseAttachment } from "../schema/attachments.ts";
import { type Cause, EXPLANATION_KINDS } from "../schema/failures.ts";
import type { FailureEvidence } from "../store/failures.ts";

export const keyOf = ({ runId, number }: { runId: string; number: number }) => `${runId} ${number}`;

type Evidence = ReadonlyMap<string, FailureEvidence>;

export const toCause = (
  { failed, failures, bug }: FoundCause,
  evidence: Evidence,
  filesOf: CaseAttachments<CaseAttachment>,
): Cause => {
  const [first] = failures;
  const { message, stack } = first;
  return {
    message,
    stack,
    exceptionType: readFailure(first).type,
    bugReport: bug,
    failed,
    failures: failures.map((failure) => ({
      ...toFailure(failure, evidence.get(keyOf(failure))),
      attachments: filesOf(failure),
    })),
  };
};

const toExplanations = (shares: ExplainedFailure["shares"]) =>
  shares === null
    ? []
    : EXPLANATION_KINDS.map((kind) => ({ kind, share: Math.round(shares[kind] * 1_000) / 1_000 })).toSorted(
        (a, b) => b.share - a.share,
      );

const toFailure = (
  row: ExplainedFailure,
  since: FailureEvidence | undefined,
): Omit<Cause["failures"][number], "attachments"> => ({
  testCaseId: row.testCaseId,
  taskSlug: row.taskSlug,
  suite: row.suite,
  name: row.name,
  file: row.file,
  line: row.line,
  attempt: row.attempt,
  host: row.host,
  blame: row.blame === null ? null : WORD_OF[row.blame],
  reason: failureReason(row),
  explanations: toExplanations(row.shares),
  infrastructureRule: row.ruleId === null ? null : { id: row.ruleId, name: row.ruleName ?? "", url: row.ruleUrl },
  since: since?.sinceExecutionId
    ? { executionId: since.sinceExecutionId, commit: since.sinceCommit, at: since.sinceAt }
    : null,
  onlyWith: row.onlyWith,
  owner: row.owners[0] ?? null,
  owners: row.owners,
  flakeRate: row.flakeRate,
  lastFlakyAt: row.lastFlakyAt,
});
