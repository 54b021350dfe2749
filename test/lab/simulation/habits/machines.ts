/** The usual builds, on five machines of which one is ill for a while; a matrix of systems; a service that is away for some tests. */

import type { Story, Trouble } from "../builds.ts";
import { createRandom } from "../../../random.ts";
import type { Planned } from "../scene.ts";
import { type Alter, createStory, LOADS, type StoryOptions } from "../story.ts";
import { createOutside } from "../failures.ts";
import { type Task, TASKS, type TestCase } from "../team.ts";

const MACHINES = ["forge-1", "forge-2", "forge-3", "forge-4", "forge-5"];
const ILL = MACHINES[3]!;
/** Of working time. */
const HOURS = 150;
/** Of the tests that run on the machine that is ill, the share that fails. */
const FAILING = [0.06, 0.18] as const;
/** Builds during which a service is away, and the share of the tests that need it. */
const AWAY = { builds: 6, share: 0.15 };

const [unit, e2e, api, backend] = TASKS as [Task, Task, Task, Task, Task];
const SYSTEMS = ["linux", "mac", "windows"];
const MATRIX = SYSTEMS.map((system): Task => ({ ...unit, slug: `unit-${system}` }));

const LOAD = { ...LOADS.normal, tasks: [...MATRIX, e2e, api, backend], casesPerTask: [90, 180] as [number, number] };

export const createMachines = (options: StoryOptions): Story => createStory(LOAD, options, alter({}));

/** No report names its machine, and the one that is ill fails 30 % of its tests for four days of 15. */
export const createNamelessMachines = (options: StoryOptions): Story =>
  createStory(LOAD, options, alter({ isNamed: false, failing: [0.3, 0.3], days: 0.27 }));

type Machines = { isNamed?: boolean; failing?: readonly [number, number]; days?: number };

const alter =
  ({ isNamed = true, failing = FAILING, days = 0.3 }: Machines): Alter =>
  ({ seed, team, flaky, taken, causeIn }) => {
    const random = createRandom(seed, "machines");
    const onWindows = team.cases.filter(({ task, added }) => task.slug === "unit-windows" && !added);
    for (const testCase of random.sample(
      onWindows.filter((one) => !taken.has(one)),
      3,
    )) {
      taken.add(testCase);
      const told = { id: `flaky on windows ${testCase.name}`, kind: "flaky" as const };
      flaky.push({ testCase, rate: random.between(0.08, 0.25), cause: causeIn(testCase.task, null, told) });
    }
    const planned = (builds: readonly Planned[]): Planned[] => {
      const from = random.between(0.2, 0.35) * HOURS;
      const until = from + days * HOURS;
      const share = random.between(...failing);
      const ill = new Map(
        team.tasks.map((task) => {
          const told = { id: `${ILL} is ill`, kind: "incident" as const };
          return [task, createOutside(task.language, random, told, "workspace")];
        }),
      );
      // What a slow or broken machine does is told by each test in its own words.
      const own = new Map<TestCase, ReturnType<typeof causeIn>>();
      const ownCause = (testCase: TestCase) => {
        const told = { id: `${ILL} is ill: ${testCase.task.slug} ${testCase.name}`, kind: "incident" as const };
        if (!own.has(testCase))
          own.set(testCase, own.size < 250 ? causeIn(testCase.task, testCase.area, told) : ill.get(testCase.task)!);
        return own.get(testCase)!;
      };
      for (const build of builds) {
        const machines = new Map(build.tasks.map((task) => [task, random.pick(MACHINES)]));
        if (isNamed) build.hostOf = (task) => machines.get(task)!;
        if (build.at < from || build.at >= until) continue;
        build.trouble = (testCase, chance) => {
          if (machines.get(testCase.task) !== ILL || !chance.chance(share)) return null;
          return chance.chance(0.5) ? ill.get(testCase.task)! : ownCause(testCase);
        };
      }
      const needing = new Set(random.sample([...team.cases], Math.floor(team.cases.length * AWAY.share)));
      const away = new Map(
        team.tasks.map((task) => {
          const told = { id: "a service is away", kind: "incident" as const };
          return [task, createOutside(task.language, random, told, "payment")];
        }),
      );
      const free = builds.filter((build) => build.trouble === null && build.outage.size === 0 && build.at > 10);
      const struck: Trouble = (testCase, chance) =>
        needing.has(testCase) && chance.chance(0.97) ? away.get(testCase.task)! : null;
      for (const build of random.sample(free, AWAY.builds)) build.trouble = struck;
      return [];
    };
    return { planned };
  };
