/** What tools show of executions, causes, test cases and bugs: each record with the words of others below `untrusted`. */

import { ownFrames } from "../rules/stack.ts";
import { stripAnsi } from "../rules/ansi.ts";
import type { BugReport } from "../schema/bug_reports.ts";
import type { Execution, Task } from "../schema/executions.ts";
import type { Cause } from "../schema/failures.ts";
import type { TestCase } from "../schema/test_cases.ts";
import { blamePhrase } from "../wording/why.ts";
import type { Cleaner } from "./untrusted.ts";

/** Maximum number of tasks of an execution and of tests of a cause. */
const MAX_TASKS = 8;
const MAX_TESTS = 4;
const MAX_STACK_LENGTH = 500;
const MAX_FRAMES = 3;
const STACK_READ = 8_000;

const TASK_FIELDS = ["status", "passed", "failed", "skipped", "attempt", "missingShards"] as const;
const byRed = (one: Task, other: Task): number =>
  Number(one.status === "passed") - Number(other.status === "passed") || other.failed - one.failed;

/** With its tasks, the red ones first. */
export function showExecution(execution: Execution, cleaner: Cleaner) {
  const { tasks, ...rest } = execution;
  const shown = tasks.toSorted(byRed).slice(0, MAX_TASKS);
  return {
    ...cleaner.split(rest, [
      ...(["id", "status", "mode", "verdict", "repeatedStatus", "rerunOf", "baselineId", "trigger"] as const),
      ...(["passed", "failed", "skipped", "total", "flaky", "durationMs", "machineTimeMs"] as const),
      ...(["createdAt", "startedAt", "completedAt", "url", "sample"] as const),
    ]),
    tasks: shown.map(({ startedAt: _, completedAt: __, total: ___, ...task }) => cleaner.split(task, TASK_FIELDS)),
    ...(tasks.length > shown.length ? { furtherTasks: tasks.length - shown.length } : {}),
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

export function showCause(cause: Cause, cleaner: Cleaner) {
  const { bugReport, failures, failed, stack, ...rest } = cause;
  const shown = failures.slice(0, MAX_TESTS);
  const [first] = failures;
  return {
    failed,
    blame: first?.blame ?? null,
    blameMeans: blamePhrase(first?.blame ?? null),
    bugReport: bugReport && cleaner.split(bugReport, ["id", "number", "status"]),
    ...cleaner.split({ ...rest, stack: shownStack(stack, cleaner) }, []),
    tests: shown.map(({ since, ...failure }) => ({
      ...cleaner.split({ ...failure, sinceCommit: since?.commit ?? null }, [
        ...(["testCaseId", "blame", "reason", "attempt", "line", "flakeRate", "lastFlakyAt"] as const),
      ]),
      since: since && { executionId: since.executionId, at: since.at },
    })),
    ...(failed > shown.length ? { furtherTests: failed - shown.length } : {}),
  };
}

export const showTestCase = (testCase: TestCase, cleaner: Cleaner) =>
  cleaner.split({ ...testCase, quarantined: testCase.quarantine !== null }, [
    ...(["id", "health", "flaky", "lastStatus", "lastRunAt", "lastPassedAt", "lastFailedAt", "runs"] as const),
    ...(["failures", "flakeRate", "averageMs", "p95Ms", "quarantined", "sample"] as const),
  ]);

export const showBug = ({ testCaseIds, ...bug }: BugReport, cleaner: Cleaner) => ({
  ...cleaner.split(bug, [
    ...(["id", "number", "status", "severity", "source", "occurrences", "firstSeenAt", "lastSeenAt"] as const),
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
