import { describe, expect, test } from "bun:test";
import { explainedExecution } from "../../src/rules/explained_execution.ts";
import type { BranchStateAnswer } from "../../src/schema/state.ts";
import type { ExecutionStatus } from "../../src/schema/executions.ts";

const executions = (...given: [id: string, status: ExecutionStatus][]) => given.map(([id, status]) => ({ id, status }));

const stateOf = (...given: [lastExecutionId: string, status: "passed" | "failed"][]) =>
  ({ tasks: given.map(([lastExecutionId, status]) => ({ lastExecutionId, status })) }) as Pick<
    BranchStateAnswer,
    "tasks"
  >;

describe("the execution that explains a branch", () => {
  test("is the newest with the result of a red task, whatever is green since then", () => {
    const list = executions(["9", "passed"], ["7", "failed"], ["5", "failed"]);
    const state = stateOf(["9", "passed"], ["7", "failed"], ["5", "failed"]);
    expect(explainedExecution(state, list)).toEqual({ executionId: "7", running: undefined });
  });

  test("is the newest where no task is red", () => {
    const list = executions(["9", "passed"], ["7", "passed"]);
    expect(explainedExecution(stateOf(["7", "passed"]), list).executionId).toBe("9");
    // Executions without a branch count for the default branch, and the list of a branch lacks them.
    expect(explainedExecution(stateOf(["8", "passed"]), executions(["7", "passed"])).executionId).toBe("8");
  });
});

describe("the execution that explains a pull request", () => {
  test("is the newest that has ended and was not cancelled", () => {
    const list = executions(["9", "cancelled"], ["8", "timed_out"], ["7", "passed"]);
    expect(explainedExecution(null, list)).toEqual({ executionId: "8", running: undefined });
  });

  test("is one that goes on, or was cancelled, if there is no other", () => {
    expect(explainedExecution(null, executions(["9", "running"]))).toEqual({ executionId: "9", running: undefined });
    expect(explainedExecution(null, executions(["9", "cancelled"])).executionId).toBe("9");
    expect(explainedExecution(null, [])).toEqual({ executionId: undefined, running: undefined });
  });
});

test("a newer execution that goes on is named", () => {
  const list = executions(["9", "running"], ["8", "failed"]);
  expect(explainedExecution(null, list)).toEqual({ executionId: "8", running: "9" });
  expect(explainedExecution(stateOf(["8", "failed"]), list)).toEqual({ executionId: "8", running: "9" });
  // It began before the explained one.
  expect(explainedExecution(null, executions(["9", "failed"], ["8", "running"])).running).toBeUndefined();
});
