/** Which tasks may start beside those that a runner holds. */

import { expect, test } from "bun:test";
import type { TaskConfig } from "../../src/runner/config.ts";
import { createHeldLeases } from "../../src/runner/held_leases.ts";
import type { RunnerLease } from "../../src/runner/protocol.ts";

const taskOf = (report: string, more: Partial<TaskConfig> = {}) =>
  ({ report: [report], artifacts: [], workingDirectory: "/work", git: undefined, ...more }) as TaskConfig;
const leaseOf = (id: string, variables: Record<string, string> = {}) =>
  ({ id, taskSlug: "unit", secretNames: Object.keys(variables), variables }) as unknown as RunnerLease;

test("each running task occupies the lowest free slot, whose number is in its paths", () => {
  const config = taskOf("r-{slot}.xml", { workingDirectory: "/work-{slot}" });
  const held = createHeldLeases(new Map([["unit", config]]), 3);
  const [one, two] = [held.add(leaseOf("a"), config), held.add(leaseOf("b"), config)];
  expect([one.slot, two.slot, two.config.workingDirectory, two.config.report]).toEqual([1, 2, "/work-2", ["r-2.xml"]]);
  one.isRunning = false;
  expect([held.add(leaseOf("c"), config).slot, held.count(), held.runningCount()]).toEqual([1, 3, 2]);
});

test("no more tasks start than may run at the same time", () => {
  const config = taskOf("r-{slot}.xml");
  const held = createHeldLeases(new Map(), 2);
  expect(held.capacity()).toBe(2);
  const one = held.add(leaseOf("a"), config);
  held.add(leaseOf("b"), config);
  expect(held.capacity()).toBe(0);
  one.isRunning = false;
  expect(held.capacity()).toBe(1);
  held.remove("b");
  expect([held.capacity(), held.get("b"), held.all()]).toEqual([2, undefined, [one]]);
});

test("a task that may write the same report as a running one is blocked until that has ended", () => {
  const [unit, other] = [taskOf("results/*.xml"), taskOf("other.xml")];
  const held = createHeldLeases(
    new Map([
      ["unit", unit],
      ["other", other],
    ]),
    4,
  );
  const one = held.add(leaseOf("a"), unit);
  expect(held.startableSlugs()).toEqual(["other"]);
  one.isRunning = false;
  expect(held.startableSlugs()).toEqual(["unit", "other"]);
});

test("tasks with work trees of their own are blocked only by reports outside of the trees", () => {
  const git = { repository: "/srv/shop" } as TaskConfig["git"];
  const [inside, outside] = [taskOf("r.xml", { git }), taskOf("/results/r.xml", { git })];
  const held = createHeldLeases(new Map(), 4);
  held.add(leaseOf("a"), inside);
  expect(held.isBlocked(inside)).toBe(false);
  held.add(leaseOf("b"), outside);
  expect([held.isBlocked(inside), held.isBlocked(outside)]).toEqual([false, true]);
});

test("the log of a task has neither its secret variables nor the password of its repository", () => {
  const git = { repository: "https://bot:pass-4711@git.example/shop.git" } as TaskConfig["git"];
  const held = createHeldLeases(new Map(), 1);
  const { log } = held.add(leaseOf("a", { TOKEN: "t-secret" }), taskOf("r.xml", { git }));
  log.write(new TextEncoder().encode("t-secret and pass-4711."));
  log.end();
  expect(log.unsent(100)?.text).toBe("*** and ***.");
});

test("a log is flushed while a task waits and the server does not have all of it", () => {
  const held = createHeldLeases(new Map(), 1);
  const one = held.add(leaseOf("a"), taskOf("r.xml"));
  one.log.write(new TextEncoder().encode("printed"));
  expect(held.isFlushing()).toBe(false);
  one.flush = Promise.withResolvers();
  expect(held.isFlushing()).toBe(true);
  one.log.acknowledge(7);
  expect(held.isFlushing()).toBe(false);
});
