import { describe, expect, test } from "bun:test";
import {
  forgivenBlames,
  gateExecution,
  type GatedTask,
  type GatedUpload,
  gateTask,
  isExplainedByFailures,
} from "../../src/rules/gate.ts";
import { BLAME_ORDER } from "../../src/rules/blame.ts";
import type { GateMode } from "../../src/schema/gate.ts";

const upload = (more: Partial<GatedUpload> = {}): GatedUpload => ({
  ...{ exitCode: 1, failedCases: 2, isStandIn: false, isPartial: false },
  ...more,
});
const task = (more: Partial<GatedTask> = {}): GatedTask => ({
  ...{ slug: "unit", status: "failed", verdict: "failed", isOutage: false, missingShards: [] },
  ...{ isOnSharedBranch: false, isBaselineShared: true },
  ...{ uploads: [upload()], blames: { quarantined: 2 }, unjudged: 0, absence: null },
  ...more,
});
const MODES: GateMode[] = ["quarantine", "new"];
const reasonsOf = (mode: GateMode, more: Partial<GatedTask>) => gateTask(mode, task(more)).reasons;

describe("a failure", () => {
  const all = MODES.flatMap((mode) => BLAME_ORDER.map((blame) => [mode, blame] as const));
  test.each(all.flatMap(([mode, blame]) => [[mode, blame, false] as const, [mode, blame, true] as const]))(
    "with gate %s and blame %s is forgiven only if the mode says so; on a shared branch: %p",
    (mode, blame, isOnSharedBranch) => {
      const ofOthers = isOnSharedBranch ? [] : ["main", "still"];
      const forgiven = { quarantine: ["quarantined"], new: ["quarantined", "flaky", ...ofOthers] };
      const isForgiven = forgiven[mode].includes(blame);
      expect(gateTask(mode, task({ isOnSharedBranch, blames: { [blame]: 3 } }))).toEqual({
        slug: "unit",
        reasons: isForgiven ? [] : [{ kind: "failures", blame, count: 3 }],
        forgiven: isForgiven ? 3 : 0,
      });
    },
  );

  test("that is not forgiven keeps the others from turning the task green", () => {
    expect(gateTask("new", task({ blames: { flaky: 2, new: 1, quarantined: 1 } }))).toEqual({
      ...{ slug: "unit", forgiven: 3, reasons: [{ kind: "failures", blame: "new", count: 1 }] },
    });
  });

  test("of the baseline is not forgiven if that is an earlier build of a branch that is not shared", () => {
    const origin = { isOnSharedBranch: false, isBaselineShared: false };
    expect(forgivenBlames("new", origin)).toEqual(["quarantined", "flaky", "main"]);
  });
});

describe.each(MODES)("with gate %s, red stays", (mode) => {
  test.each([
    ["a task that was cancelled", { status: "cancelled" }, { kind: "ended" }],
    ["a task that did not report", { status: "timed_out", verdict: null, uploads: [], blames: {} }, { kind: "ended" }],
    ["missing shards", { status: "incomplete", missingShards: [2] }, { kind: "missing_shards" }],
    ["a task that did not finish", { status: "incomplete" }, { kind: "ended" }],
    ["an outage", { isOutage: true, blames: {}, unjudged: 20 }, { kind: "outage" }],
    ["failures that a report only counts", { unjudged: 4 }, { kind: "unjudged", count: 4 }],
    ["a truncated report", { uploads: [upload({ isPartial: true })] }, { kind: "partial" }],
    ["a tool that failed without a failed test", { uploads: [upload({ isStandIn: true })] }, { kind: "stand_in" }],
    ["a crash after failed tests", { uploads: [upload({ exitCode: 139 })] }, { kind: "exit_code", exitCode: 139 }],
    ["a replaced report", { isReplaced: true, verdict: "passed", blames: {} }, { kind: "replaced" }],
    ["a verdict that nothing explains", { blames: {} }, { kind: "unexplained" }],
  ] as const)("%s", (_, more, reason) => {
    expect(reasonsOf(mode, more as Partial<GatedTask>)).toEqual([reason]);
  });

  test("what one shard of several is red for", () => {
    const shards = [upload(), upload({ exitCode: 137 }), upload()];
    expect(reasonsOf(mode, { uploads: shards })).toEqual([{ kind: "exit_code", exitCode: 137 }]);
  });
});

test("failed tests explain the exit codes that tools have for them, and the number of failed tests", () => {
  const explained = (codes: number[], failedCases: number | null) =>
    codes.filter((code) => isExplainedByFailures(code, failedCases));
  expect(explained([0, 1, 8, 100, 101], null)).toEqual([0, 1, 8, 100, 101]);
  expect(explained([2, 3, 4, 5, 64, 125], 7)).toEqual([]);
  expect(explained([2, 125], 2)).toEqual([2]);
  // 126 and 127: not started; from 129 on: a signal, whatever the number of failed tests.
  expect(
    [126, 127, 128, 129, 130, 134, 137, 139, 143, 255].filter((code) => isExplainedByFailures(code, code)),
  ).toEqual([]);
  expect(explained([-1, -1073741819], 1)).toEqual([]);
});

describe("an execution", () => {
  const green = { status: "passed", verdict: "passed", blames: {}, uploads: [upload({ exitCode: 0 })] } as const;
  const passed = task({ slug: "lint", ...green });
  const whole = { isWhole: true };

  test.each(["queued", "running"] as const)("does not pass while it is %s", (status) => {
    const open = task({ slug: "e2e", status: "running", verdict: null, blames: {}, uploads: [] });
    expect(gateExecution("new", status, [passed, open, open], whole)).toMatchObject({
      ...{ pass: false, final: false, unreported: { open: 2, all: 3 } },
    });
    // All known tasks have reported, but others may come.
    const more = { pass: false, final: false, unreported: null };
    expect(gateExecution("new", status, [passed], whole)).toMatchObject(more);
  });

  test("a single task is final when it has reported, and an unknown one is not", () => {
    expect(gateExecution("new", "running", [passed], { isWhole: false })).toMatchObject({ pass: true, final: true });
    expect(gateExecution("new", "running", [], { isWhole: false })).toMatchObject({ pass: false, final: false });
    expect(gateExecution("new", "passed", [], { isWhole: false })).toMatchObject({ pass: false, final: true });
  });

  test("does not pass when it was cancelled or has no reports", () => {
    expect(gateExecution("new", "cancelled", [passed], whole)).toMatchObject({ pass: false, isCancelled: true });
    expect(gateExecution("new", "timed_out", [], whole).pass).toBe(false);
  });
});
