/** Three weeks of a team's builds and the truth about them: what runs when, what fails in it, and for which cause. */

import { type Cause, createCauses, createOutage, type Frame } from "./failures.ts";
import { createRandom, type Random } from "./random.ts";
import {
  type Change,
  createTeam,
  NOUNS,
  sourceOf,
  type Task,
  type Team,
  type TeamSize,
  type TestCase,
} from "./team.ts";

export type Load = TeamSize & {
  pullRequests: number;
  /** The share of them that break something. */
  breaking: number;
  /** Commits to main that no pull request has brought. */
  directCommits: number;
  flaky: number;
  rates: [lowest: number, highest: number];
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

/** What a test case fails for, and how often. */
export type FlakyCase = { testCase: TestCase; rate: number; cause: Cause };
/** What breaks test cases each time: from one version of main until before another, or in some builds of a pull request. */
export type Breakage = { cause: Cause; cases: TestCase[] };
export type Regression = Breakage & { from: number; until: number };

export type PullRequest = { number: number; branch: string; breaks: Breakage | null };

export type Build = {
  number: number;
  /** As the CI system tells the server. */
  key: string;
  commit: string;
  branch: string;
  pullRequest: PullRequest | null;
  /** Of main, which it holds. */
  version: number;
  /** What its pull request breaks and has not mended yet. */
  breaks: Breakage | null;
  tasks: readonly Task[];
  /** Those whose services are down. */
  outage: ReadonlySet<Task>;
  /** Milliseconds since 1970. */
  startsAt: number;
};

/** One report: of all test cases of the task, or of those that are run again. */
export type Upload = {
  build: Build;
  task: Task;
  attempt: number;
  at: number;
  cases: TestCase[];
  failed: Map<TestCase, Cause>;
  /** The last of its task in the build, and of the build. */
  isLastOfTask: boolean;
  isLastOfBuild: boolean;
};

export type Story = {
  seed: number;
  team: Team;
  flaky: FlakyCase[];
  regressions: Regression[];
  builds: Build[];
  /** In the order in which they arrive. */
  uploads: Upload[];
  moved: TestCase[];
};

const isThere = (build: Build, { at, pullRequest }: Change) =>
  at <= build.version || (build.pullRequest !== null && build.pullRequest.number === pullRequest);

const exists = (build: Build, { added, removed }: TestCase) =>
  (added === null || isThere(build, added)) && !(removed !== null && isThere(build, removed));

/** Where the test case is in the checkout of the build. */
export const fileIn = (build: Build, { file, moved }: TestCase): string =>
  moved.findLast((move) => isThere(build, move))?.file ?? file;

export const KEYS = ["build", "branch"] as const;

export type StoryOptions = {
  seed: number;
  /** Failed tests are run again, once or twice. */
  retries: boolean;
  /** When the last of its builds begins at the latest, in milliseconds since 1970. */
  end: number;
  /** Each build has a number of its own, or the builds of each branch are counted, as Jenkins does. */
  keys?: (typeof KEYS)[number];
};

/** The same for the same seed. */
export function createStory(load: Load, { seed, retries, end, keys = "build" }: StoryOptions): Story {
  const random = createRandom(seed, "story");
  const team = createTeam(createRandom(seed, "team"), load);
  const createCause = createCauses(createRandom(seed, "causes"), NOUNS);
  const frameOf = (task: Task, area: string): Frame => {
    const { file, functions } = sourceOf(task, area);
    return { file, function: random.pick(functions), line: random.integer(10, 400) };
  };

  // Evenly spread, so that every seed has slow and quick ones.
  const [lowest, highest] = load.rates;
  const flaky = random.sample(team.cases, load.flaky).map((testCase, index): FlakyCase => {
    const rate = lowest * (highest / lowest) ** ((index + random.next()) / load.flaky);
    const { task, area, name } = testCase;
    const frame = random.chance(0.5) ? frameOf(task, area) : null;
    const id = `flaky ${task.slug} ${name}`;
    return { testCase, rate, cause: createCause(task.language, { id, kind: "flaky", frame }, random.integer(1, 2)) };
  });
  const taken = new Set(flaky.map(({ testCase }) => testCase));

  /** Sound test cases of one area that fail for one reason. */
  const breakSome = (id: string, kind: Cause["kind"], wanted: number, isExclusive: boolean): Breakage => {
    const areas = Map.groupBy(
      team.cases.filter((testCase) => !taken.has(testCase) && !testCase.added && !testCase.removed),
      ({ task, area }) => `${task.slug} ${area}`,
    );
    const cases = random.sample(random.pick([...areas.values()].filter(({ length }) => length >= wanted)), wanted);
    const { task, area } = cases[0]!;
    if (isExclusive) for (const testCase of cases) taken.add(testCase);
    return { cause: createCause(task.language, { id, kind, frame: frameOf(task, area) }), cases };
  };

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
    const broken = breakSome(`regression ${index + 1}`, "regression", random.integer(3, 7), true);
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
        `pull request ${one.pullRequest.number}`,
        "pull request",
        random.integer(1, 5),
        false,
      );

  const toClock = (hour: number) => {
    const day = Math.floor(hour / HOURS_A_DAY);
    const last = DAYS - 1 + 2 * Math.floor((DAYS - 1) / 5);
    const calendarDay = day + 2 * Math.floor(day / 5);
    return end - (last - calendarDay) * 24 * HOUR_MS - (HOURS_A_DAY - (hour % HOURS_A_DAY)) * HOUR_MS;
  };
  const planned: Planned[] = [];
  const add = (hour: number, build: Omit<Build, "number" | "key" | "startsAt" | "commit" | "tasks" | "outage">) =>
    planned.push({ ...build, hour, commit: random.text(40, "0123456789abcdef"), tasks: team.tasks, outage: new Set() });
  for (const [version, { hour }] of mainTimes.entries())
    add(hour, { branch: "main", pullRequest: null, version, breaks: null });
  for (const { pullRequest, createdAt, pushes, breaksFrom, mendedFrom } of plan) {
    let version = versionAt(createdAt);
    for (const [push, hour] of pushes.entries()) {
      // Most CI systems build the merge of the branch with main, the others the branch itself.
      if (random.chance(0.7)) version = versionAt(hour);
      const breaks = breaksFrom !== null && push >= breaksFrom && push < mendedFrom ? pullRequest.breaks : null;
      add(hour, { branch: pullRequest.branch, pullRequest, version, breaks });
    }
  }
  strike(planned, regressions, team.tasks, random);

  const counts = new Map<string, number>();
  const builds = planned
    .sort((a, b) => a.hour - b.hour)
    .map(({ hour, ...build }, index): Build => {
      const number = 4_001 + index;
      const place = (counts.get(build.branch) ?? 0) + 1;
      counts.set(build.branch, place);
      return { ...build, number, key: String(keys === "branch" ? place : number), startsAt: toClock(hour) };
    });
  const uploads = builds.flatMap((build) => runBuild(build, { team, flaky, regressions, retries, seed }));
  uploads.sort((a, b) => a.at - b.at);
  return { seed, team, flaky, regressions, builds, uploads, moved };
}

type Planned = Omit<Build, "number" | "key" | "startsAt"> & { hour: number };

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
function strike(builds: Planned[], regressions: readonly Regression[], tasks: readonly Task[], random: Random): void {
  const isSound = ({ version, breaks }: Planned) =>
    breaks === null && regressions.every(({ from, until }) => version < from || version >= until);
  const middle = builds.filter((build) => isSound(build) && build.hour > 0.3 * HOURS && build.hour < 0.9 * HOURS);
  for (const [isMain, struck] of [
    [true, tasks],
    [false, random.sample(tasks, Math.max(1, Math.floor(tasks.length / 2)))],
  ] as const) {
    const build = random.pick(middle.filter(({ pullRequest }) => (pullRequest === null) === isMain));
    builds.push({ ...build, hour: build.hour + 1, tasks: struck });
    build.outage = new Set(struck);
  }
}

type Running = Pick<Story, "team" | "flaky" | "regressions"> & { retries: boolean; seed: number };

/** A task with more failures than this share is not run again. */
const MAX_RETRIED = 0.2;

function runBuild(build: Build, { team, flaky, regressions, retries, seed }: Running): Upload[] {
  const broken = new Map<TestCase, Cause>();
  for (const { cause, cases } of regressions.filter(
    ({ from, until }) => build.version >= from && build.version < until,
  ))
    for (const testCase of cases) broken.set(testCase, cause);
  for (const testCase of build.breaks?.cases ?? []) broken.set(testCase, build.breaks!.cause);
  const shaky = new Map(flaky.map((one) => [one.testCase, one]));
  const uploads = build.tasks.flatMap((task): Upload[] => {
    const random = createRandom(seed, `${build.number} ${task.slug}`);
    const outage = build.outage.has(task) ? createOutage(task.language) : null;
    const causeOf = (testCase: TestCase): Cause | null => {
      if (outage) return random.chance(0.96) ? outage : null;
      const certain = broken.get(testCase);
      if (certain) return certain;
      const maybe = shaky.get(testCase);
      return maybe && random.chance(maybe.rate) ? maybe.cause : null;
    };
    const all = team.cases.filter((testCase) => testCase.task === task && exists(build, testCase));
    let cases = all;
    let at = build.startsAt + task.minutes * random.between(0.8, 1.3) * 60_000;
    const own: Upload[] = [];
    for (let attempt = 1, left = random.integer(1, 2); ; attempt++, left--) {
      const failed = new Map(
        cases.flatMap((testCase) => {
          const cause = causeOf(testCase);
          return cause ? [[testCase, cause] as const] : [];
        }),
      );
      own.push({ build, task, attempt, at: Math.round(at), cases, failed, isLastOfTask: false, isLastOfBuild: false });
      if (!retries || left === 0 || failed.size === 0 || failed.size > MAX_RETRIED * all.length) break;
      cases = [...failed.keys()];
      at += random.between(0.5, 2) * 60_000;
    }
    own.at(-1)!.isLastOfTask = true;
    return own;
  });
  const last = uploads.reduce((latest, upload) => (upload.at > latest.at ? upload : latest));
  last.isLastOfBuild = true;
  return uploads;
}
