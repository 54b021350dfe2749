import { expect, test } from "bun:test";
import { progressOf } from "../../src/rules/execution.ts";

const now = Date.parse("2026-01-31T12:00:00Z");
const task = (slug: string, status: "queued" | "running" | "passed", seconds = 0) => ({
  slug,
  status,
  startedAt: status === "queued" ? null : new Date(now - seconds * 1_000).toISOString(),
});
const usual = new Map([
  ["unit", 10_000],
  ["e2e", 30_000],
]);

test("an execution that has ended, or has no tasks, has no progress", () => {
  expect(progressOf("passed", [task("unit", "passed")], usual, now)).toBeNull();
  expect(progressOf("running", [], usual, now)).toBeNull();
});

test("what remains is the longest open task, as long as the others run beside it", () => {
  const tasks = [task("unit", "running", 4), task("e2e", "running", 10)];
  expect(progressOf("running", tasks, usual, now)).toEqual({ share: 1 - 26 / 40, remainingMs: 20_000 });
});

test("tasks that wait come after those that run", () => {
  const tasks = [task("unit", "running", 4), task("e2e", "queued")];
  expect(progressOf("running", tasks, usual, now)).toEqual({ share: 1 - 36 / 40, remainingMs: 36_000 });
});

test("a task that takes longer than usual has nothing left that could be said", () => {
  const tasks = [task("unit", "passed"), task("e2e", "running", 90)];
  expect(progressOf("running", tasks, usual, now)).toEqual({ share: 1, remainingMs: 0 });
});

test("with a task of unknown duration only the tasks are counted", () => {
  const tasks = [task("unit", "passed"), task("new", "running", 1)];
  expect(progressOf("running", tasks, usual, now)).toEqual({ share: 0.5, remainingMs: null });
});
