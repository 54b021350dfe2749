import { expect, test } from "bun:test";
import { redTaskWords, type TaskFigures, taskHeadline } from "../../src/wording/task.ts";

const task = (more: Partial<TaskFigures>): TaskFigures => ({
  ...{ slug: "e2e", status: "passed", attempt: 1, shards: 1, namedShards: [], completedAt: "2026-01-31T10:00:00Z" },
  ...{ passed: 0, failed: 0, skipped: 0, flaky: 0, durationMs: 0, verdict: "passed", reason: null, flaws: null },
  ...more,
});

test.each<[Partial<TaskFigures>, string]>([
  [{ status: "queued", attempt: 0 }, "waiting"],
  [{ status: "running", attempt: 0 }, "runs"],
  [{ status: "cancelled", attempt: 0 }, "cancelled"],
  [{ status: "timed_out", attempt: 0, completedAt: null, verdict: null }, "did not report"],
  [{ passed: 1_210 }, "1,210 passed"],
  [{ passed: 4, durationMs: 8_300 }, "4 passed in 8.3 s"],
  [
    { status: "failed", verdict: "failed", failed: 1, passed: 4, skipped: 2, flaky: 1 },
    "1 failed, 4 passed, 2 skipped, 1 flaky",
  ],
  [{ status: "failed", verdict: "failed", passed: 4 }, "failed without a failing test; 4 passed"],
])("a task with %j: %s", (more, words) => {
  expect(taskHeadline(task(more))).toBe(words);
});

test("a red task of a branch has its failures, or what else is wrong with it", () => {
  expect(redTaskWords({ status: "failed", failed: 1 })).toBe("1 failure");
  expect(redTaskWords({ status: "failed", failed: 0 })).toBe("failed");
  expect(redTaskWords({ status: "incomplete", failed: 3 })).toBe("is incomplete");
  expect(redTaskWords({ status: "timed_out", failed: 0 })).toBe("has not reported");
});
