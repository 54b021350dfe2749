/** Which executions of a watched project are shown, and when their versions change. */

import { expect, test } from "bun:test";
import { createLiveStates } from "../../src/operations/live/live_states.ts";
import type { LiveRow, LiveRows } from "../../src/store/live.ts";

const rowOf = (id: string, more: object = {}) =>
  ({ id, mode: "upload", status: "running", running: 0, tasks: [], ...more }) as unknown as LiveRow;
const taskOf = (slug: string, passed: number) => ({ slug, passed, failed: 0, skipped: 0, flaky: 0, verdict: null });
const rowsOf = (...executions: LiveRow[]): LiveRows => ({ xmax: 1, keys: ["k"], executions });
const ALL = { followed: new Set<string>(), openToo: true };

test("the version of an execution and of each task changes only when that has changed", () => {
  const states = createLiveStates(() => 0);
  const versions = () => {
    const { version, executionVersion, tasks } = states.get("a")!;
    return [version, executionVersion, ...[...tasks.values()].map(({ version }) => version)];
  };
  states.update(rowsOf(rowOf("a", { tasks: [taskOf("x", 1), taskOf("y", 1)] })), ALL);
  expect(versions()).toEqual([3, 1, 2, 3]);
  states.update(rowsOf(rowOf("a", { tasks: [taskOf("x", 1), taskOf("y", 1)] })), ALL);
  expect(versions()).toEqual([3, 1, 2, 3]);
  // The sum of the execution changes with its task.
  states.update(rowsOf(rowOf("a", { tasks: [taskOf("x", 1), taskOf("y", 2)] })), ALL);
  expect(versions()).toEqual([5, 4, 2, 5]);
});

test("the counts of an execution are the sums of its tasks", () => {
  const states = createLiveStates(() => 0);
  states.update(rowsOf(rowOf("a", { tasks: [taskOf("x", 2), { ...taskOf("y", 1), failed: 3, flaky: 1 }] })), ALL);
  expect(states.get("a")!.execution).toMatchObject({ passed: 3, failed: 3, skipped: 0, total: 6, flaky: 1 });
  expect(states.get("a")!.tasks.get("y")!.task).toMatchObject({ passed: 1, failed: 3, total: 4 });
});

test("what has ended is shown for a minute, and for as long as it is followed", () => {
  let now = 0;
  const states = createLiveStates(() => now);
  const rows = rowsOf(rowOf("a", { status: "passed" }), rowOf("b", { status: "passed" }), rowOf("c"));
  const shown = { followed: new Set(["b"]), openToo: true };
  states.update(rows, shown);
  expect([states.ids(), states.get("a")!.isOver, states.get("c")!.isOver]).toEqual([["a", "b", "c"], true, false]);
  now = 59_999;
  states.update(rows, shown);
  expect(states.ids()).toEqual(["a", "b", "c"]);
  now = 60_000;
  states.update(rows, shown);
  expect(states.ids()).toEqual(["b", "c"]);
});

test("an execution that a runner still works on is not over", () => {
  const states = createLiveStates(() => 0);
  states.update(rowsOf(rowOf("a", { status: "cancelled", running: 1 })), ALL);
  expect(states.get("a")!.isOver).toBe(false);
});

test("the hundred newest of a project are shown, and those that are followed", () => {
  const states = createLiveStates(() => 0);
  const ids = Array.from({ length: 110 }, (_, at) => String(at).padStart(3, "0"));
  states.update(rowsOf(...ids.map((id) => rowOf(id))), { followed: new Set(["003"]), openToo: true });
  expect(states.ids()).toEqual(["003", ...ids.slice(10)]);
  states.update(rowsOf(...ids.map((id) => rowOf(id))), { followed: new Set(["003"]), openToo: false });
  expect(states.ids()).toEqual(["003"]);
});

test("an execution that has been deleted is forgotten, although it is followed", () => {
  const states = createLiveStates(() => 0);
  const shown = { followed: new Set(["a"]), openToo: false };
  states.update(rowsOf(rowOf("a")), shown);
  expect(states.has("a")).toBe(true);
  states.update(rowsOf(), shown);
  expect([states.has("a"), states.all()]).toEqual([false, []]);
});
