/** Executions, causes, test cases and bugs in answers of tools: each record has untrusted text below `untrusted`. */

import { ownFrames } from "../rules/stack.ts";
import { stripAnsi } from "../rules/ansi.ts";
import type { CaseAttachment } from "../schema/attachments.ts";
import type { BugReport } from "../schema/bug_reports.ts";
import type { Execution, Task } from "../schema/executions.ts";
import type { Cause } from "../schema/failures.ts";
import type { TestCase, TestCaseDetail } from "../schema/test_cases.ts";
import { blamePhrase } from "../wording/why.ts";
import type { Cleaner } from "./untrusted.ts";

/** Maximum number of tasks of an execution and of tests of a cause. */
const MAX_TASKS = 8;
const MAX_ROW_TASKS = 3;
const MAX_TESTS = 4;
/** Maximum number of attachments of a test. */
const MAX_ATTACHMENTS = 3;
const MAX_STACK_LENGTH = 500;
const MAX_FRAMES = 3;
const STACK_READ = 8_000;

const isRed = ({ status }: Task): boolean => status !== "passed";
const byRed = (one: Task, other: Task): number =>
  Number(isRed(other)) - Number(isRed(one)) || other.failed - one.failed;

const showTask = ({ slug, status, passed, failed, skipped, missingShards, reason }: Task, cleaner: Cleaner) => ({
  ...cleaner.split({ slug, status, reason }, ["status"]),
  ...{ passed, failed, skipped },
  ...(missingShards.length > 0 ? { missingShards } : {}),
});

/** Returns an execution with its tasks, the red ones first. */
export function showExecution(execution: Execution, cleaner: Cleaner) {
  const { tasks, total: _, machineTimeMs: __, ...rest } = execution;
  const shown = tasks.toSorted(byRed).slice(0, MAX_TASKS);
  return {
    ...cleaner.split(rest, [
      ...(["id", "status", "mode", "verdict", "repeatedStatus", "rerunOf", "baselineId", "trigger"] as const),
      ...([
        "passed",
        "failed",
        "skipped",
        "flaky",
        "durationMs",
        "createdAt",
        "completedAt",
        "url",
        "sample",
        "untrusted",
      ] as const),
    ]),
    tasks: shown.map((task) => showTask(task, cleaner)),
    ...(tasks.length > shown.length ? { furtherTasks: tasks.length - shown.length } : {}),
  };
}

/** Returns an execution as a row of a list, with its red tasks. */
export function showExecutionRow(execution: Execution, cleaner: Cleaner) {
  const { id, status, verdict, repeatedStatus, passed, failed, skipped, flaky, createdAt, completedAt } = execution;
  const untrusted = execution.untrusted ? { untrusted: true } : {};
  const { key, branch, baseBranch, commit, pullRequest, environment, reason } = execution;
  const red = execution.tasks.filter(isRed).toSorted(byRed).slice(0, MAX_ROW_TASKS);
  return {
    ...cleaner.split(
      {
        id,
        status,
        verdict,
        repeatedStatus,
        completedAt,
        key,
        branch,
        baseBranch,
        commit,
        pullRequest,
        environment,
        reason,
      },
      [...(["id", "status", "verdict", "repeatedStatus", "completedAt"] as const)],
    ),
    ...{ passed, failed, skipped, flaky, createdAt, ...untrusted },
    ...(red.length > 0 ? { redTasks: red.map((task) => showTask(task, cleaner)) } : {}),
  };
}

/** The project's own frames of a stack, or its beginning where none is recognised. */
function shownStack(stack: string | null, cleaner: Cleaner): string | null {
  if (stack === null) return null;
  const plain = stripAnsi(stack.slice(0, STACK_READ));
  const frames = ownFrames(plain)
    .slice(0, MAX_FRAMES)
    .map(({ file, function: name }) => [file, name].filter(Boolean).join(" "));
  return frames.length > 0 ? frames.join("\n") : cleaner.text(plain, MAX_STACK_LENGTH);
}

/** The files that explain a failure, each with the address of its page. */
const showAttachments = (attachments: readonly CaseAttachment[], cleaner: Cleaner) => ({
  ...(attachments.length === 0
    ? {}
    : {
        attachments: attachments
          .slice(0, MAX_ATTACHMENTS)
          .map(({ name, path, contentType, url }) =>
            cleaner.split({ name, path, contentType, url }, ["contentType", "url"]),
          ),
      }),
  ...(attachments.length > MAX_ATTACHMENTS ? { furtherAttachments: attachments.length - MAX_ATTACHMENTS } : {}),
});

/** Null is left out of an answer. */
const unlessEmpty = <Item>(list: readonly Item[]): readonly Item[] | null => (list.length === 0 ? null : list);

/** The blame and the reason of a test stand with it only where they are not those of the cause. */
export function showCause(cause: Cause, cleaner: Cleaner) {
  const { bugReport, failures, failed, stack, ...rest } = cause;
  const [first] = failures;
  const shown = failures.slice(0, MAX_TESTS);
  return {
    failed,
    ...(first?.blame ? { blame: first.blame, blameMeans: blamePhrase(first.blame) } : {}),
    ...(first?.reason ? { reason: first.reason } : {}),
    ...(bugReport ? { bugReport: cleaner.split(bugReport, ["id", "number", "status", "known"]) } : {}),
    ...cleaner.split({ ...rest, stack: shownStack(stack, cleaner) }, []),
    tests: shown.map(({ since, blame, reason, attachments, onlyWith, ...failure }) => ({
      ...cleaner.split({ ...failure, onlyWith: unlessEmpty(onlyWith), sinceCommit: since?.commit ?? null }, [
        ...(["testCaseId", "attempt", "line", "flakeRate", "lastFlakyAt"] as const),
      ]),
      ...(since ? { since: { executionId: since.executionId, at: since.at } } : {}),
      ...(blame === first?.blame ? {} : { blame, reason }),
      ...showAttachments(attachments, cleaner),
    })),
    ...(failed > shown.length ? { furtherTests: failed - shown.length } : {}),
  };
}

/** Returns a test case with its variants, if the answer of the API has any. */
export const showTestCase = (
  { tags, variants = [], byTag = [], ...testCase }: TestCase & Partial<TestCaseDetail>,
  cleaner: Cleaner,
) => {
  const ofVariants = { tags: unlessEmpty(tags), variants: unlessEmpty(variants), byTag: unlessEmpty(byTag) };
  return cleaner.split({ ...testCase, ...ofVariants, quarantined: testCase.quarantine !== null }, [
    ...(["id", "health", "flaky", "lastStatus", "lastRunAt", "lastPassedAt", "lastFailedAt", "runs"] as const),
    ...([
      "failures",
      "flakeFailures",
      "flakeResults",
      "flakeRate",
      "averageMs",
      "p95Ms",
      "quarantined",
      "sample",
    ] as const),
  ]);
};

const ROW_DESCRIPTION_LENGTH = 150;

/** Returns a bug as a row of a list, with a shortened description. */
export const showBugRow = ({ description, ...bug }: BugReport, cleaner: Cleaner) =>
  showBug({ ...bug, description: cleaner.text(description, ROW_DESCRIPTION_LENGTH) }, cleaner);

export const showBug = ({ testCaseIds, ...bug }: BugReport, cleaner: Cleaner) => ({
  ...cleaner.split(bug, [
    ...([
      "id",
      "number",
      "status",
      "severity",
      "source",
      "occurrences",
      "impact",
      "firstSeenAt",
      "lastSeenAt",
    ] as const),
    ...([
      "firstExecutionId",
      "lastExecutionId",
      "regressed",
      "createdAt",
      "updatedAt",
      "resolvedAt",
      "sample",
    ] as const),
  ]),
  testCaseIds: testCaseIds.slice(0, MAX_TESTS),
});
