/**
 * A device farm: the tests of a build are dealt out in a drawn order to three to five devices, of which some are bad or
 * lose their results, and a crash of the application ends with the rest of its device's tests failed.
 */

import type { Story } from "../builds.ts";
import { createRandom, type Random } from "../../../random.ts";
import type { Planned } from "../scene.ts";
import { type Alter, createStory, LOADS, type StoryOptions } from "../story.ts";
import { createOutside, type Cause } from "../failures.ts";
import { TASKS, type TestCase } from "../team.ts";

/** Shares of the devices of a build. */
const BAD = 0.05;
const LOST = 0.04;
const CRASHED = 0.02;
/** Of the tests on a bad device, the share that fails. */
const FAILING = 0.4;

export const createDevices = (options: StoryOptions): Story =>
  createStory({ ...LOADS.normal, tasks: TASKS.slice(1, 4), casesPerTask: [120, 200], flaky: 20 }, options, alter);

const alter: Alter = ({ seed, team, causeIn }) => {
  const random = createRandom(seed, "devices");
  const planned = (builds: readonly Planned[]): Planned[] => {
    const bad = new Map(
      team.tasks.map((task) => [
        task,
        [
          createOutside(task.language, random, { id: "bad device", kind: "incident" }, "device"),
          causeIn(task, null, { id: "bad device", kind: "incident" }),
        ],
      ]),
    );
    const crash = new Map(team.tasks.map((task) => [task, causeIn(task, null, { id: "crash", kind: "incident" })]));
    for (const build of builds) {
      if (build.outage.size > 0) continue;
      const deal = dealer(random, build, team.cases);
      build.trouble = (testCase, chance): Cause | null => {
        const device = deal(testCase);
        if (device.isBad && chance.chance(FAILING)) return chance.pick(bad.get(testCase.task)!);
        return device.crashed.has(testCase) ? crash.get(testCase.task)! : null;
      };
      build.isLost = (testCase) => deal(testCase).isLost;
    }
    return [];
  };
  return { planned };
};

type Device = { isBad: boolean; isLost: boolean; crashed: Set<TestCase> };

function dealer(random: Random, { tasks }: Planned, cases: readonly TestCase[]): (testCase: TestCase) => Device {
  const dealt = new Map<TestCase, Device>();
  for (const task of tasks) {
    const own = cases.filter((testCase) => testCase.task === task);
    const order = random.sample(own, own.length);
    const count = random.integer(3, 5);
    const size = Math.ceil(order.length / count);
    for (let start = 0; start < order.length; start += size) {
      const mine = order.slice(start, start + size);
      const crashed = random.chance(CRASHED) ? mine.slice(random.integer(1, mine.length - 1)) : [];
      const device = { isBad: random.chance(BAD), isLost: random.chance(LOST), crashed: new Set(crashed) };
      for (const testCase of mine) dealt.set(testCase, device);
    }
  }
  const whole: Device = { isBad: false, isLost: false, crashed: new Set() };
  return (testCase) => dealt.get(testCase) ?? whole;
}
