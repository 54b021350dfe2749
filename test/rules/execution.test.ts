import { describe, expect, test } from "bun:test";
import { nextStatus, executionVerdict, type TaskState } from "../../src/rules/execution.ts";

const passed: TaskState = { status: "passed", declared: true, verdict: "passed" };
const failed: TaskState = { status: "failed", declared: true, verdict: "failed" };
const silent: TaskState = { status: "queued", declared: true, verdict: null };
const half: TaskState = { status: "running", declared: false, verdict: "passed" };
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
      expect(nextStatus("running", [half], event)).toBe("timed_out");
      expect(nextStatus("queued", [], event)).toBe("timed_out");
    }
  });

  test("what has ended stays ended; a late report changes the outcome, except of a cancelled one", () => {
    expect(nextStatus("passed", [passed, { ...failed, declared: false }], "arrived")).toBe("failed");
    expect(nextStatus("timed_out", [passed, passed], "arrived")).toBe("passed");
    expect(nextStatus("timed_out", [passed, { ...silent, status: "timed_out" }], "arrived")).toBe("timed_out");
    expect(nextStatus("cancelled", [passed], "arrived")).toBe("cancelled");
    expect(nextStatus("running", [passed], "cancelled")).toBe("cancelled");
  });
});

test("the verdict is failed as soon as anything has failed, and passed only at the end", () => {
  expect(executionVerdict("running", [passed])).toBeNull();
  expect(executionVerdict("running", [passed, failed])).toBe("failed");
  expect(executionVerdict("passed", [passed])).toBe("passed");
  expect(executionVerdict("timed_out", [passed])).toBe("failed");
  expect(executionVerdict("cancelled", [])).toBeNull();
});
