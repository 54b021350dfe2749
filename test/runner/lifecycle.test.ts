/** When a runner takes no more tasks, and what wakes its loop. */

import { expect, test } from "bun:test";
import { createLifecycle } from "../../src/runner/lifecycle.ts";

test("only a runner for one task ends after the first one", () => {
  for (const once of [true, false]) {
    const lifecycle = createLifecycle(once);
    expect(lifecycle.isEnding()).toBe(false);
    lifecycle.noteTask();
    expect([lifecycle.isEnding(), lifecycle.isStopping(), lifecycle.hasFailed()]).toEqual([once, false, false]);
  }
});

test("a stop ends the runner, and the requests for it are counted", () => {
  const lifecycle = createLifecycle(false);
  expect([lifecycle.stop(), lifecycle.stop(), lifecycle.isEnding(), lifecycle.isStopping()]).toEqual([
    1,
    2,
    true,
    true,
  ]);
});

test("the first error is the one that is thrown at the end", () => {
  const lifecycle = createLifecycle(false);
  lifecycle.throwFailure();
  lifecycle.fail(new Error("first"));
  lifecycle.fail(new Error("second"));
  expect([lifecycle.isEnding(), lifecycle.hasFailed()]).toEqual([true, true]);
  expect(lifecycle.throwFailure).toThrow("first");
});

test("a wake resolves the latest wait, and none that begins after it", async () => {
  const lifecycle = createLifecycle(false);
  const first = lifecycle.nextWake();
  lifecycle.wake();
  await first;
  const second = lifecycle.nextWake();
  expect(Bun.peek.status(second)).toBe("pending");
  lifecycle.wake();
  await second;
});
