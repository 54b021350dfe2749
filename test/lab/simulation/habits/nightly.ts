/**
 * One build a night, and none besides: at weekends nobody has committed anything, something outside of the code changes
 * then and stays so, or a service is away for a part of the tests.
 */

import type { Regression, Story, Trouble } from "../builds.ts";
import type { Random } from "../../../random.ts";
import { createScene, type Planned, runBuilds, type Scene, usually } from "../scene.ts";
import { createOutside } from "../failures.ts";
import { regressionsAt, type StoryOptions } from "../story.ts";
import { NOUNS } from "../team.ts";

const WEEKS = 9;
const NIGHTS = 7 * WEEKS;
const DAY_MS = 86_400_000;

/** Night 0 is that to a Tuesday: the fifth and sixth of each week test what the fourth has tested. */
const isWithoutCommit = (night: number) => night % 7 === 5 || night % 7 === 6;

export function createNightly({ seed, retries, end, keys = "build" }: StoryOptions): Story {
  const scene = createScene(seed, { tasks: 5, casesPerTask: [70, 150], flaky: 14, rates: [0.05, 0.3] });
  const { random, team, breakSome } = scene;
  const nightsWith = (from: number, to: number, fits: (night: number) => boolean) =>
    Array.from({ length: to - from }, (_, index) => from + index).filter(fits);

  /** Those of the code begin with a commit, and drift does not. */
  const breakFrom = (id: string, from: number, length: number): Regression => ({
    ...breakSome({ id, kind: "regression" }, random.integer(2, 6), { isExclusive: true }),
    from,
    until: from + length,
  });
  const regressions = [
    ...[12, 36].map((from, index) => {
      const night = random.pick(nightsWith(from, from + 10, (one) => !isWithoutCommit(one)));
      return breakFrom(`regression ${index + 1}`, night, random.integer(4, 9));
    }),
    ...[5, 19, 26, 47].map((from, index) => {
      const night = random.pick(nightsWith(from, from + 7, isWithoutCommit));
      return breakFrom(`drift ${index + 1}`, night, random.integer(3, 9));
    }),
  ];

  const outages = random.sample(nightsWith(7, NIGHTS - 3, isWithoutCommit), 5);
  const planned: Planned[] = [];
  let commit = "";
  for (let night = 0; night < NIGHTS; night++) {
    if (!isWithoutCommit(night) || commit === "") commit = random.text(40, "0123456789abcdef");
    const build: Planned = {
      ...usually(team, random),
      ...{ branch: "main", isDefault: true, version: night, commit, regressions: regressionsAt(regressions, night) },
      at: night,
    };
    planned.push(build);
    if (!outages.includes(night)) continue;
    build.trouble = takeServiceAway(scene, random);
    // Somebody starts it again on Monday, when the service is there.
    if (random.chance(0.5)) planned.push({ ...build, trouble: null, at: night + 0.4 });
  }
  const toClock = (night: number) => end - (NIGHTS - night) * DAY_MS;
  const run = runBuilds(scene, planned, { keys, retries, toClock });
  return { seed, team, flaky: scene.flaky, regressions, moved: [], ...run };
}

/** Of some tasks a part of the areas needs it. */
function takeServiceAway({ team }: Scene, random: Random): Trouble {
  const share = random.between(0.3, 0.7);
  const service = random.pick(NOUNS);
  const struck = new Map(
    random.sample(team.tasks, random.integer(1, 3)).map((task) => {
      const areas = new Set(team.cases.filter((testCase) => testCase.task === task).map(({ area }) => area));
      const cause = createOutside(task.language, random, { id: `outage of ${service}`, kind: "outage" }, service);
      return [task, { cause, areas: new Set(random.sample([...areas], Math.ceil(areas.size * share))) }];
    }),
  );
  return (testCase, chance) => {
    const hit = struck.get(testCase.task);
    return hit?.areas.has(testCase.area) && chance.chance(0.95) ? hit.cause : null;
  };
}
