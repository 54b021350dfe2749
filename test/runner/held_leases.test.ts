/** Which tasks may start beside those that a runner holds. */

import { afterAll, expect, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { TaskConfig } from "../../src/runner/config.ts";
import { createHeldLeases } from "../../src/runner/held_leases.ts";
import type { RunnerLease } from "../../src/runner/protocol.ts";
import { createPlace, removePlace } from "../places.ts";

const taskOf = (report: string, more: Partial<TaskConfig> = {}) =>
  ({ report: [report], artifacts: [], workingDirectory: "/nowhere", git: undefined, ...more }) as TaskConfig;
const leaseOf = (id: string, variables: Record<string, string> = {}) =>
  ({ id, taskSlug: "unit", secretNames: Object.keys(variables), variables }) as unknown as RunnerLease;

const hold = (tasks: Record<string, TaskConfig>, maxRunning: number, folder = "/nowhere") =>
  createHeldLeases(new Map(Object.entries(tasks)), maxRunning, folder);

test("each running task occupies the lowest free slot, whose number is in its paths", () => {
  const config = taskOf("r-{slot}.xml", { workingDirectory: "/nowhere-{slot}" });
  const held = hold({ unit: config }, 3);
  const [one, two] = [held.add(leaseOf("a"), config)!, held.add(leaseOf("b"), config)!];
  expect([one.slot, two.slot, two.config.workingDirectory, two.config.report]).toEqual([
    1,
    2,
    "/nowhere-2",
    ["r-2.xml"],
  ]);
  held.remove("a");
  expect([held.add(leaseOf("c"), config)!.slot, held.count()]).toEqual([1, 2]);
});

test("no more tasks start than may run at the same time", () => {
  const config = taskOf("r-{slot}.xml");
  const held = hold({}, 2);
  expect(held.capacity()).toBe(2);
  const one = held.add(leaseOf("a"), config)!;
  held.add(leaseOf("b"), config);
  expect(held.capacity()).toBe(0);
  held.remove("b");
  expect([held.capacity(), held.get("b"), held.all()]).toEqual([1, undefined, [one]]);
});

test("a task that may write the same report as a running one is blocked until that has ended", () => {
  const [unit, other] = [taskOf("results/*.xml"), taskOf("other.xml")];
  const held = hold({ unit, other }, 4);
  held.add(leaseOf("a"), unit);
  expect([held.startable(), held.add(leaseOf("b"), unit)]).toEqual([
    { slugs: ["other"], isElsewhere: false },
    undefined,
  ]);
  held.remove("a");
  expect(held.startable().slugs).toEqual(["unit", "other"]);
});

test("tasks with work trees of their own are blocked only by reports outside of the trees", () => {
  const git = { repository: "/srv/shop" } as TaskConfig["git"];
  const [inside, outside] = [taskOf("r.xml", { git }), taskOf("/results/r.xml", { git })];
  const held = hold({ inside, outside }, 4);
  held.add(leaseOf("a"), inside);
  held.add(leaseOf("b"), outside);
  expect(held.startable().slugs).toEqual(["inside"]);
});

test("a folder under two names is one folder, within a process and between two", () => {
  const folder = createPlace("folders");
  afterAll(() => removePlace(folder));
  mkdirSync(join(folder, "real"));
  symlinkSync("real", join(folder, "link"));
  const tasks = {
    real: taskOf("r.xml", { workingDirectory: join(folder, "real") }),
    link: taskOf("r.xml", { workingDirectory: join(folder, "link") }),
    tree: taskOf("r.xml", { git: { repository: "/srv/shop" } as TaskConfig["git"] }),
  };
  const [one, other] = [hold(tasks, 4, folder), hold(tasks, 4, join(folder, "link"))];
  one.add(leaseOf("a"), tasks.real);
  expect(one.startable()).toEqual({ slugs: ["tree"], isElsewhere: false });
  expect(other.startable()).toEqual({ slugs: ["tree"], isElsewhere: true });
  expect(other.add(leaseOf("b"), tasks.link)).toBeUndefined();
  one.remove("a");
  expect(other.startable()).toEqual({ slugs: ["real", "link", "tree"], isElsewhere: false });
});

test("runners of different folders do not write the same report at the same time", () => {
  const folder = createPlace("folders");
  afterAll(() => removePlace(folder));
  for (const name of ["a", "b", "results"]) mkdirSync(join(folder, name));
  const git = { repository: "/srv/shop" } as TaskConfig["git"];
  const shared = taskOf(join(folder, "results/r.xml"), { git });
  const tasks = { shared, tree: taskOf("r.xml", { git }) };
  const [one, other] = [hold(tasks, 4, join(folder, "a")), hold(tasks, 4, join(folder, "b"))];
  one.add(leaseOf("a"), shared);
  expect(other.startable()).toEqual({ slugs: ["tree"], isElsewhere: true });
  expect(other.add(leaseOf("b"), shared)).toBeUndefined();
  one.remove("a");
  expect(other.startable()).toEqual({ slugs: ["shared", "tree"], isElsewhere: false });
});

test("the log of a task has neither its secret variables nor the password of its repository", () => {
  const git = { repository: "https://bot:pass-4711@git.example/shop.git" } as TaskConfig["git"];
  const held = hold({}, 1);
  const { log } = held.add(leaseOf("a", { TOKEN: "t-secret" }), taskOf("r.xml", { git }))!;
  log.write(new TextEncoder().encode("t-secret and pass-4711."));
  log.end();
  expect(log.unsent(100)?.text).toBe("*** and ***.");
});

test("a log is flushed while a task waits and the server does not have all of it", () => {
  const held = hold({}, 1);
  const one = held.add(leaseOf("a"), taskOf("r.xml"))!;
  one.log.write(new TextEncoder().encode("printed"));
  expect(held.isFlushing()).toBe(false);
  one.flush = Promise.withResolvers();
  expect(held.isFlushing()).toBe(true);
  one.log.acknowledge(7);
  expect(held.isFlushing()).toBe(false);
});
