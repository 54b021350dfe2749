/** What every story begins with: a team, its flaky tests, and causes for which others fail. */

import { type Breakage, type Build, type FlakyCase, runBuild, type Story } from "./builds.ts";
import { type Cause, createCauses, type Frame } from "./failures.ts";
import { createRandom, type Random } from "../../random.ts";
import { createTeam, NOUNS, sourceOf, type Task, type Team, type TeamSize, type TestCase } from "./team.ts";

export type SceneSize = TeamSize & { flaky: number; rates: [lowest: number, highest: number] };

export type Scene = {
  seed: number;
  random: Random;
  team: Team;
  flaky: FlakyCase[];
  /** Flaky, or broken by what breaks nothing else. */
  taken: Set<TestCase>;
  causeIn: (task: Task, area: string | null, told: { id: string; kind: Cause["kind"] }) => Cause;
  /** Sound test cases of one area that fail for one reason; of one of `tasks` and of `areas` where they are given. */
  breakSome: (
    told: { id: string; kind: Cause["kind"] },
    wanted: number,
    options?: { isExclusive?: boolean; tasks?: readonly Task[]; areas?: ReadonlySet<string> },
  ) => Breakage;
};

export function createScene(seed: number, { flaky: count, rates: [lowest, highest], ...size }: SceneSize): Scene {
  const random = createRandom(seed, "story");
  const team = createTeam(createRandom(seed, "team"), size);
  // A thousand causes need more words than there are.
  const words =
    count > 100 ? ["", "old ", "shared ", "remote "].flatMap((kind) => NOUNS.map((noun) => kind + noun)) : NOUNS;
  const createCause = createCauses(createRandom(seed, "causes"), words);
  const frameOf = (task: Task, area: string): Frame => {
    const { file, functions } = sourceOf(task, area);
    return { file, function: random.pick(functions), line: random.integer(10, 400) };
  };
  const causeIn: Scene["causeIn"] = (task, area, told) =>
    createCause(task.language, { ...told, frame: area === null ? null : frameOf(task, area) });

  // Evenly spread, so that every seed has slow and quick ones.
  const flaky = random.sample(team.cases, count).map((testCase, index): FlakyCase => {
    const rate = lowest * (highest / lowest) ** ((index + random.next()) / count);
    const { task, area, name } = testCase;
    const frame = random.chance(0.5) ? frameOf(task, area) : null;
    const told = { id: `flaky ${task.slug} ${name}`, kind: "flaky" as const, frame };
    return { testCase, rate, cause: createCause(task.language, told, random.integer(1, 2)) };
  });
  const taken = new Set(flaky.map(({ testCase }) => testCase));

  const breakSome: Scene["breakSome"] = (told, wanted, { isExclusive = false, tasks, areas: among } = {}) => {
    const areas = Map.groupBy(
      team.cases.filter(
        (testCase) =>
          !taken.has(testCase) &&
          !testCase.added &&
          !testCase.removed &&
          !testCase.away &&
          (tasks?.includes(testCase.task) ?? true) &&
          (among?.has(testCase.area) ?? true),
      ),
      ({ task, area }) => `${task.slug} ${area}`,
    );
    const large = [...areas.values()].filter(({ length }) => length >= wanted);
    const most = [...areas.values()].reduce((a, b) => (b.length > a.length ? b : a));
    const cases = random.sample(large.length > 0 ? random.pick(large) : most, wanted);
    const { task, area } = cases[0]!;
    if (isExclusive) for (const testCase of cases) taken.add(testCase);
    return { cause: causeIn(task, area, told), cases };
  };
  return { seed, random, team, flaky, taken, causeIn, breakSome };
}

/** A build of which only its place in time is to be filled in; `at` as the habit measures time. */
export type Planned = Omit<Build, "number" | "key" | "startsAt"> & { at: number };

/** What a build has if nothing else is said. */
export const usually = (team: Team, random: Random) => ({
  commit: random.text(40, "0123456789abcdef"),
  tasks: team.tasks as readonly Task[],
  outage: new Set<Task>(),
  ...{
    isDefault: false,
    pullRequest: null,
    parent: null,
    isSelected: null,
    environment: null,
    regressions: [],
    own: [],
    trouble: null,
    isLost: null,
    hostOf: null,
    isOld: false,
  },
});

export const KEYS = ["build", "branch"] as const;
/** Each build has a number of its own, or the builds of each branch are counted, as Jenkins does. */
export type Keys = (typeof KEYS)[number];

type Running = { keys: Keys; retries: boolean; toClock: (at: number) => number };

/** Runs what is planned, in the order of time. */
export function runBuilds({ team, flaky, seed }: Scene, planned: readonly Planned[], running: Running) {
  const counts = new Map<string, number>();
  const builds = planned
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, ...build }, index): Build => {
      const number = 4_001 + index;
      const place = (counts.get(build.branch) ?? 0) + 1;
      counts.set(build.branch, place);
      const key = String(running.keys === "branch" ? place : number);
      return { ...build, number, key, startsAt: running.toClock(at) };
    });
  const uploads = builds
    .flatMap((build) => runBuild(build, { team, flaky, retries: running.retries, seed }))
    .sort((a, b) => a.at - b.at);
  return { builds, uploads } satisfies Pick<Story, "builds" | "uploads">;
}
