/** Turns executions and their tasks into the fields of the API. */

import { executionVerdict, sumTasks } from "../rules/execution.ts";
import { newTestWords } from "../wording/verification.ts";
import { reasonOfTask } from "../wording/missing_runner.ts";
import { executionReason, taskReason } from "../wording/reasons.ts";
import { missingShardsOf } from "../rules/shards.ts";
import { readVariant } from "../rules/variants.ts";
import type { Execution, Task } from "../schema/executions.ts";
import type { ExecutionRow } from "../store/executions.ts";
import { executionUrl } from "../schema/urls.ts";
import type { TimedExecutionRow } from "../store/execution_list.ts";

export function toExecution(publicUrl: string, projectId: string, row: TimedExecutionRow): Execution {
  const counts = {
    passed: sumTasks(row.tasks, "passed"),
    failed: sumTasks(row.tasks, "failed"),
    skipped: sumTasks(row.tasks, "skipped"),
  };
  return {
    id: row.id,
    key: row.key,
    status: row.status,
    mode: row.mode,
    branch: row.branch,
    commit: row.commit,
    commitAuthor: row.commitAuthor,
    commitSubject: row.commitSubject,
    pullRequest: row.pullRequest,
    baseBranch: row.baseBranch,
    queueRef: row.queueRef,
    buildUrl: row.buildUrl,
    environment: row.environment,
    trigger: row.trigger,
    rerunOf: row.rerunOf,
    repeatedStatus: row.repeatedStatus,
    baselineId: row.baselineId,
    tasks: row.tasks.map(toTask),
    ...counts,
    total: counts.passed + counts.failed + counts.skipped,
    flaky: sumTasks(row.tasks, "flaky"),
    verdict: executionVerdict(row.status, row.tasks),
    durationMs: row.durationMs,
    machineTimeMs: row.machineTimeMs,
    reason: executionReason(row.status, row.tasks),
    createdAt: row.createdAt,
    startedAt: row.startedAt,
    completedAt: row.completedAt,
    url: executionUrl(publicUrl, projectId, row.id),
    untrusted: row.untrusted && !row.probe,
    probe: row.probeOf,
    newTests: row.newTests.map(({ runs, ...test }) => ({ ...test, statement: newTestWords({ ...test, runs }) })),
    ...(row.sample ? { sample: true } : {}),
  };
}

const toTask = (task: ExecutionRow["tasks"][number]): Task => ({
  slug: task.slug,
  tags: readVariant(task.slug).tags,
  status: task.status,
  attempt: task.attempt,
  missingShards: missingShardsOf(task),
  passed: task.passed,
  failed: task.failed,
  skipped: task.skipped,
  total: task.passed + task.failed + task.skipped,
  startedAt: task.startedAt,
  completedAt: task.completedAt,
  runner: task.runner,
  reason: reasonOfTask(task) ?? taskReason(task),
  slower: task.slower,
});
