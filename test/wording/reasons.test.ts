import { describe, expect, test } from "bun:test";
import { executionReason, exitMessage, taskLine, taskReason, timeLimitReason } from "../../src/wording/reasons.ts";
import { flawsOf, type TaskEnd } from "../../src/rules/red_reason.ts";

const NONE = { brokeOff: false, standIns: 0, exitCode: null, says: null, notRerun: 0 };
const task = (more: Partial<TaskEnd> = {}): TaskEnd => ({
  ...{ slug: "e2e", status: "failed", attempt: 1, shards: 1, namedShards: [], completedAt: "2026-01-31T10:00:00Z" },
  ...{ failed: 0, verdict: "failed", reason: null, flaws: NONE },
  ...more,
});
const incomplete = { status: "incomplete", shards: 3, namedShards: [1, 3], completedAt: null } as const;
const silent = { status: "timed_out", attempt: 0, verdict: null, completedAt: null, flaws: null } as const;
const flaws = (more: object) => ({ flaws: { ...NONE, ...more } });
const LATE = "Timed out after 10 s";
const GREEN = { slug: "unit", status: "passed", verdict: "passed" } as const;
const OTHER = { ...incomplete, slug: "unit" };

describe("a task", () => {
  test.each<[Partial<TaskEnd>, string | null]>([
    [{ status: "passed", verdict: "passed", flaws: null }, null],
    [{ failed: 3 }, null],
    [incomplete, "shard 2 of 3 missing"],
    [{ ...incomplete, failed: 2, namedShards: [1] }, "shards 2 and 3 of 3 missing"],
    [{ ...incomplete, shards: 1, namedShards: [] }, "did not finish"],
    [silent, "did not report"],
    [{ ...silent, reason: "No report arrived in time" }, "did not report"],
    [{ ...silent, reason: "The runner r1 was lost" }, "did not report (The runner r1 was lost)"],
    [{ ...silent, status: "cancelled" }, "did not report"],
    [{ ...silent, status: "queued" }, null],
    [flaws({ brokeOff: true }), "report is incomplete"],
    [{ failed: 2, ...flaws({ brokeOff: true }) }, "report is incomplete"],
    [{ failed: 1, ...flaws({ standIns: 1, exitCode: 137 }) }, "test runner exited with code 137 (SIGKILL)"],
    [{ failed: 1, ...flaws({ standIns: 1, exitCode: 124 }) }, "test runner exited with code 124 (time limit)"],
    [{ failed: 3, ...flaws({ standIns: 1, says: LATE }) }, "timed out after 10 s"],
    [{ failed: 1, ...flaws({ standIns: 1, exitCode: 0, says: "No report: a" }) }, "no report: a"],
    [{ ...silent, reason: timeLimitReason(30) }, "did not report within 30 minutes"],
    [{ failed: 1, ...flaws({ standIns: 1 }) }, "test runner failed"],
    [{ failed: 1, ...flaws({ standIns: 1, exitCode: 1, says: LATE }) }, `test runner exited with code 1 (${LATE})`],
    [{ failed: 1, ...flaws({ standIns: 1, exitCode: 3, says: exitMessage(3) }) }, "test runner exited with code 3"],
    [{ failed: 2, ...flaws({ standIns: 1, exitCode: 1 }) }, null],
    [{ failed: 0 }, "failed without a failing test"],
  ])("%j: %p", (more, reason) => expect(taskReason(task(more))).toBe(reason));

  test("by itself begins with a capital letter", () => {
    expect([taskLine(task(incomplete)), taskLine(task({ failed: 1 }))]).toEqual(["Shard 2 of 3 missing", null]);
  });

  test("what a runner says of it stays on the line", () => {
    const said = taskReason(task({ ...silent, reason: `a\nb\u202ec${"x".repeat(1_000)}` }))!;
    expect(said).toStartWith("did not report (a b c");
    expect([said.includes("\n"), said.length < 400]).toEqual([false, true]);
  });
});

describe("an execution", () => {
  test.each<["failed" | "timed_out" | "passed" | "cancelled" | "running", Partial<TaskEnd>[], string | null]>([
    ["failed", [incomplete, GREEN], "Incomplete: e2e: shard 2 of 3 missing"],
    ["timed_out", [silent, OTHER], "Timed out: e2e: did not report, unit: shard 2 of 3 missing"],
    ["failed", [flaws({ brokeOff: true })], "Failed: e2e: report is incomplete"],
    ["failed", [{ failed: 4 }], null],
    ["failed", [], "Failed without results"],
    ["timed_out", [], "Timed out: no reports"],
    ["passed", [{ status: "passed", verdict: "passed" }], null],
    ["cancelled", [{ ...silent, status: "cancelled" }], null],
    ["running", [{ ...incomplete, status: "running" }], null],
  ])("that %s with %j: %p", (status, tasks, reason) => expect(executionReason(status, tasks.map(task))).toBe(reason));

  test("names three tasks and counts the others", () => {
    const tasks = Array.from({ length: 12 }, (_, index) => task({ ...silent, slug: `t${index}` }));
    const named = "t0: did not report, t1: did not report, t2: did not report";
    expect(executionReason("timed_out", tasks)).toBe(`Timed out: ${named} and 9 more`);
  });
});

test("the latest uploads of all shards tell what is wrong", () => {
  const upload = (more: object = {}) => ({ partial: false, exitCase: null, exitCode: 0, ...more });
  expect(flawsOf([upload()], null)).toEqual(NONE);
  expect(flawsOf([upload({ partial: true }), upload({ exitCase: 7, exitCode: 3 })], "Timed out")).toEqual({
    ...{ brokeOff: true, standIns: 1, exitCode: 3, says: "Timed out", notRerun: 0 },
  });
});
