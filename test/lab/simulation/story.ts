/** Three weeks of a team's builds and the truth about them: what runs when, what fails in it, and for which cause. */

import type { Build, FlakyCase, PullRequest, Regression, Story } from "./builds.ts";
import type { Random } from "../../random.ts";
import { createScene, type Keys, type Planned, runBuilds, type Scene, type SceneSize, usually } from "./scene.ts";
import { type Change, NOUNS, type Task, type Team, type TestCase } from "./team.ts";

export type Load = SceneSize & {
  pullRequests: number;
  /** The share of them that break something. */
  breaking: number;
  /** Commits to main that no pull request has brought. */
  directCommits: number;
  /** Each by the number of main's builds until it is mended. */
  regressions: [from: number, to: number][];
};

export const LOADS = {
  small: {
    ...{ tasks: 2, casesPerTask: [24, 30], flaky: 4, rates: [0.15, 0.3] },
    ...{ pullRequests: 22, breaking: 0.5, directCommits: 38 },
    regressions: [[6, 9]],
  },
  normal: {
    ...{ tasks: 5, casesPerTask: [100, 300], flaky: 14, rates: [0.02, 0.25] },
    ...{ pullRequests: 95, breaking: 0.25, directCommits: 50 },
    regressions: [
      [7, 14],
      [7, 20],
    ],
  },
  strong: {
    ...{ tasks: 5, casesPerTask: [100, 200], flaky: 24, rates: [0.03, 0.4] },
    ...{ pullRequests: 140, breaking: 0.25, directCommits: 110 },
    regressions: [
      [7, 14],
      [10, 30],
      [1, 3],
    ],
  },
} satisfies Record<string, Load>;
export type LoadName = keyof typeof LOADS;

const DAYS = 15;
const HOURS_A_DAY = 10;
/** Of working time. */
const HOURS = DAYS * HOURS_A_DAY;
const HOUR_MS = 3_600_000;

export type StoryOptions = {
  seed: number;
  /** Failed tests are run again, once or twice. */
  retries: boolean;
  /** When the last of its builds begins at the latest, in milliseconds since 1970. */
  end: number;
  keys?: Keys;
};

/** What other habits know of the usual builds, to change them. */
export type Altered = Scene & {
  /** How many commits the default branch has got. */
  versions: number;
  versionAt: (hour: number) => number;
  regressionsAt: (version: number) => Regression[];
  pullRequests: readonly PullRequest[];
  usually: () => ReturnType<typeof usually>;
};

/** Changes tests before the builds are planned, and answers what comes to it; `planned` answers further builds. */
export type Alter = (scene: Altered) => {
  moved?: TestCase[];
  regressions?: Regression[];
  planned?: (builds: readonly Planned[]) => Planned[];
};

/** The same for the same seed. */
export function createStory(
  load: Load,
  { seed, retries, end, keys = "build", defaultBranch = "main" }: StoryOptions & { defaultBranch?: string },
  alter?: Alter,
): Story {
  const scene = createScene(seed, load);
  const { random, team, flaky, taken, breakSome } = scene;
  const plan = planPullRequests(load, random);
  const mainTimes = [
    { hour: 0, pullRequest: null },
    ...plan.flatMap(({ pullRequest, mergedAt }) => (mergedAt === null ? [] : [{ hour: mergedAt, pullRequest }])),
    ...Array.from({ length: load.directCommits }, () => ({ hour: random.between(0, HOURS), pullRequest: null })),
  ].sort((a, b) => a.hour - b.hour);
  const versionAt = (hour: number) => mainTimes.findLastIndex((commit) => commit.hour <= hour);
  const versions = mainTimes.length;

  const regressions = load.regressions.map(([from, to], index): Regression => {
    const share = versions / load.regressions.length;
    const first = Math.floor(index * share + random.between(0.15, 0.5) * share);
    const length = Math.min(random.integer(from, to), Math.floor(share * 0.45));
    const told = { id: `regression ${index + 1}`, kind: "regression" as const };
    const broken = breakSome(told, random.integer(3, 7), { isExclusive: true });
    return { ...broken, from: first, until: first + length };
  });

  // What pull requests change besides: they bring it to main when they are merged.
  const versionOf = (pullRequest: PullRequest | null) => {
    const at = pullRequest === null ? -1 : mainTimes.findIndex((commit) => commit.pullRequest === pullRequest);
    return at === -1 ? Infinity : at;
  };
  const sound = plan.filter(({ breaksFrom, mergedAt }) => breaksFrom === null && mergedAt !== null);
  const toChange = ({ pullRequest }: PlannedPullRequest): Change => ({
    at: versionOf(pullRequest),
    pullRequest: pullRequest.number,
  });
  const changers = random.sample(sound, sound.length);
  for (const adder of changers.splice(0, Math.ceil(sound.length / 3)))
    for (let left = random.integer(1, 3); left > 0; left--) {
      const { task, area, file } = random.pick(team.cases);
      team.cases.push({ ...team.create(task, area), file, added: toChange(adder) });
    }
  for (const remover of changers.splice(0, Math.ceil(sound.length / 20)))
    for (const testCase of random.sample(
      team.cases.filter((testCase) => !taken.has(testCase) && !testCase.added),
      2,
    ))
      testCase.removed ??= toChange(remover);
  const moved = moveFiles(team, flaky, changers, random, toChange);

  for (const one of plan)
    if (one.breaksFrom !== null)
      one.pullRequest.breaks = breakSome(
        { id: `pull request ${one.pullRequest.number}`, kind: "pull request" },
        random.integer(1, 5),
      );

  const altered = alter?.({
    ...scene,
    ...{ versions, versionAt, usually: () => usually(team, random) },
    regressionsAt: (version) => regressionsAt(regressions, version),
    pullRequests: plan.map(({ pullRequest }) => pullRequest),
  });
  moved.push(...(altered?.moved ?? []));
  regressions.push(...(altered?.regressions ?? []));
  const planned: Planned[] = [];
  const add = (at: number, build: Pick<Build, "branch" | "isDefault" | "pullRequest" | "version" | "own">) =>
    planned.push({ ...usually(team, random), ...build, at, regressions: regressionsAt(regressions, build.version) });
  for (const [version, { hour }] of mainTimes.entries())
    add(hour, { branch: defaultBranch, isDefault: true, pullRequest: null, version, own: [] });
  for (const { pullRequest, createdAt, pushes, breaksFrom, mendedFrom } of plan) {
    let version = versionAt(createdAt);
    for (const [push, hour] of pushes.entries()) {
      // Most CI systems build the merge of the branch with main, the others the branch itself.
      if (random.chance(0.7)) version = versionAt(hour);
      const isBroken = breaksFrom !== null && push >= breaksFrom && push < mendedFrom;
      const own = isBroken ? [pullRequest.breaks!] : [];
      add(hour, { branch: pullRequest.branch, isDefault: false, pullRequest, version, own });
    }
  }
  strike(planned, team.tasks, random);
  planned.push(...(altered?.planned?.(planned) ?? []));
  const run = runBuilds(scene, planned, { keys, retries, toClock: toWorkingClock(end) });
  return { seed, team, flaky, regressions, moved, ...run };
}

/** From hours of working time to milliseconds since 1970. */
export const toWorkingClock = (end: number) => (hour: number) => {
  const day = Math.floor(hour / HOURS_A_DAY);
  const last = DAYS - 1 + 2 * Math.floor((DAYS - 1) / 5);
  const calendarDay = day + 2 * Math.floor(day / 5);
  return end - (last - calendarDay) * 24 * HOUR_MS - (HOURS_A_DAY - (hour % HOURS_A_DAY)) * HOUR_MS;
};

export const regressionsAt = (regressions: readonly Regression[], version: number): Regression[] =>
  regressions.filter(({ from, until }) => version >= from && version < until);

type PlannedPullRequest = {
  pullRequest: PullRequest;
  /** Hours of working time. */
  createdAt: number;
  pushes: number[];
  mergedAt: number | null;
  /** The first push that breaks something; the first after it that does not. */
  breaksFrom: number | null;
  mendedFrom: number;
};

/** Most of those that break something do so from the first push on; what is not mended is not merged. */
function planPullRequests({ pullRequests, breaking }: Load, random: Random): PlannedPullRequest[] {
  return Array.from({ length: pullRequests }, (_, index): PlannedPullRequest => {
    const createdAt = random.between(1, HOURS - 4);
    const pushes = [createdAt];
    for (let left = random.pick([0, 0, 1, 1, 1, 2, 2, 3, 4]); left > 0; left--) {
      const next = pushes.at(-1)! + Math.max(0.3, random.wait(4));
      if (next < HOURS) pushes.push(next);
    }
    const breaksFrom = random.chance(breaking) ? (random.chance(0.8) ? 0 : random.integer(0, pushes.length - 1)) : null;
    let mendedFrom = (breaksFrom ?? 0) + 1;
    while (mendedFrom < pushes.length && random.chance(0.6)) mendedFrom++;
    const isMended = breaksFrom === null || mendedFrom < pushes.length;
    const merge = pushes.at(-1)! + random.between(0.5, 4);
    const mergedAt = isMended && merge < HOURS && random.chance(0.93) ? merge : null;
    const branch = `feature/${random.pick(NOUNS)}-${101 + index}`;
    const pullRequest = { number: 101 + index, branch, breaks: null };
    return { pullRequest, createdAt, pushes, mergedAt, breaksFrom, mendedFrom };
  });
}

/** A file goes to another folder, one gets another name, one of a task whose tests are named by their file moves too. */
function moveFiles(
  team: Team,
  flaky: readonly FlakyCase[],
  movers: PlannedPullRequest[],
  random: Random,
  toChange: (mover: PlannedPullRequest) => Change,
): TestCase[] {
  const moves: [Task["language"], (file: string) => string][] = [
    ["vitest", (file) => file.replace(/^src\//, "src/modules/")],
    ["cypress", (file) => file.replace(/\.cy\.ts$/, "-page.cy.ts")],
    ["pytest", (file) => file.replace("tests/api/", "tests/http/")],
  ];
  return moves.flatMap(([language, rename]) => {
    const mover = movers.pop();
    const own = team.cases.filter(({ task }) => task.language === language);
    if (!mover || own.length === 0) return [];
    // The first one takes a flaky test with it, where there is one.
    const chosen = flaky.find(({ testCase }) => testCase.task.language === language)?.testCase ?? random.pick(own);
    const change = toChange(mover);
    const cases = own.filter(({ file }) => file === chosen.file);
    for (const testCase of cases) testCase.moved.push({ ...change, file: rename(testCase.file) });
    return cases;
  });
}

/** One outage on main and one on a pull request; what it struck is run again on the same commit when it is over. */
function strike(builds: Planned[], tasks: readonly Task[], random: Random): void {
  const isSound = ({ regressions, own }: Planned) => regressions.length + own.length === 0;
  const middle = builds.filter((build) => isSound(build) && build.at > 0.3 * HOURS && build.at < 0.9 * HOURS);
  for (const [isMain, struck] of [
    [true, tasks],
    [false, random.sample(tasks, Math.max(1, Math.floor(tasks.length / 2)))],
  ] as const) {
    const build = random.pick(middle.filter(({ isDefault }) => isDefault === isMain));
    builds.push({ ...build, at: build.at + 1, tasks: struck });
    build.outage = new Set(struck);
  }
}
