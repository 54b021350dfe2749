import { describe, expect, test } from "bun:test";
import { endOfTask, nextStatus, executionVerdict, type TaskState } from "../../src/rules/execution.ts";

const passed: TaskState = { status: "passed", declared: true, verdict: "passed", attempt: 1 };
const failed: TaskState = { status: "failed", declared: true, verdict: "failed", attempt: 1 };
const silent: TaskState = { status: "queued", declared: true, verdict: null, attempt: 0 };
const half: TaskState = { status: "running", declared: false, verdict: "passed", attempt: 1 };
const extra: TaskState = { ...passed, declared: false };

describe("executionStatus", () => {
  test("an arrival ends it when all declared tasks have reported, and not without declarations", () => {
    expect(nextStatus("queued", [passed, silent], "arrived")).toBe("running");
    expect(nextStatus("running", [passed, passed], "arrived")).toBe("passed");
    expect(nextStatus("running", [passed, failed], "arrived")).toBe("failed");
    expect(nextStatus("running", [extra], "arrived")).toBe("running");
    expect(nextStatus("running", [passed, half], "arrived")).toBe("running");
  });

  test("completed or expired, silence is never green", () => {
    for (const event of ["completed", "expired"] as const) {
      expect(nextStatus("running", [passed, extra], event)).toBe("passed");
      expect(nextStatus("running", [passed, failed], event)).toBe("failed");
      expect(nextStatus("running", [passed, silent], event)).toBe("timed_out");
      // Some shards of it have come: by results, and those are not all of them.
      expect(nextStatus("running", [half], event)).toBe("failed");
      expect(nextStatus("running", [passed, half], event)).toBe("failed");
      expect(nextStatus("running", [silent, half], event)).toBe("timed_out");
      expect(nextStatus("queued", [], event)).toBe("timed_out");
    }
  });

  test("what has ended stays ended; a late report changes the outcome, except of a cancelled one", () => {
    expect(nextStatus("passed", [passed, { ...failed, declared: false }], "arrived")).toBe("failed");
    expect(nextStatus("timed_out", [passed, passed], "arrived")).toBe("passed");
    expect(nextStatus("timed_out", [passed, { ...silent, status: "timed_out" }], "arrived")).toBe("timed_out");
    expect(nextStatus("failed", [{ ...failed, status: "incomplete" }, passed], "arrived")).toBe("failed");
    expect(nextStatus("cancelled", [passed], "arrived")).toBe("cancelled");
    expect(nextStatus("running", [passed], "cancelled")).toBe("cancelled");
  });
});

test("an open task ends as incomplete where some of it has come, else as its execution does", () => {
  expect(endOfTask(half, "failed")).toBe("incomplete");
  expect(endOfTask(silent, "timed_out")).toBe("timed_out");
  expect([endOfTask(half, "cancelled"), endOfTask(silent, "cancelled")]).toEqual(["cancelled", "cancelled"]);
});

test("the verdict is failed as soon as anything has failed, and passed only at the end", () => {
  expect(executionVerdict("running", [passed])).toBeNull();
  expect(executionVerdict("running", [passed, failed])).toBe("failed");
  expect(executionVerdict("passed", [passed])).toBe("passed");
  expect(executionVerdict("timed_out", [passed])).toBe("failed");
  expect(executionVerdict("cancelled", [])).toBeNull();
});
