/**
 * Trunk-based development: a pull request runs only the tests near its files, and main runs all. Merges are squashed, and
 * pull requests stack. A change that breaks main is reverted or fixed, and most reverted changes land again.
 */

import type { Breakage, PullRequest, Regression, Story } from "../builds.ts";
import type { Random } from "../../../random.ts";
import { createScene, type Planned, runBuilds, type Scene, usually } from "../scene.ts";
import { LOADS, regressionsAt, type StoryOptions, toWorkingClock } from "../story.ts";
import { NOUNS, type TestCase } from "../team.ts";

/** Hours of working time. */
const HOURS = 150;
const PULL_REQUESTS = 105;
const DIRECT_COMMITS = 15;
/** Shares of pull requests that break tests which they run, and tests which only main runs. */
const BREAKING = 0.25;
const BREAKING_UNSEEN = 0.13;
/** Share of pull requests that are based on another one. */
const STACKED = 0.3;
/** Share of pushes that are rebased onto the current head of their base. */
const REBASED = 0.6;
/** Share of changes that break main and are reverted; the others are fixed by a later commit. */
const REVERTED = 0.75;
/** Share of reverted changes that land again. */
const RELANDED = 0.85;

type Plan = {
  pullRequest: PullRequest;
  /** Areas whose files it changes. */
  areas: readonly string[];
  /** Tests that it runs regardless of its files: those for which the same change was reverted. */
  alwaysRun: ReadonlySet<TestCase>;
  parent: Plan | null;
  pushes: number[];
  /** The number of pushes, from the first one on, that contain what it breaks. */
  brokenPushes: number;
  /** What it breaks among the tests that it does not run. */
  unseen: Breakage | null;
  /** What it reverts or fixes on main. */
  fixes: Breakage | null;
  mergedAt: number | null;
};

export function createTrunk({ seed, retries, end, keys = "build" }: StoryOptions): Story {
  const scene = createScene(seed, LOADS.normal);
  const { random, team } = scene;
  const near = createSelection(scene);
  const plans = planPullRequests(scene, near);
  for (const plan of plans) plans.push(...planFollowUps(plan, 701 + plans.length, random));

  const commits = [
    { at: 0, plan: null },
    ...plans.flatMap((plan) => (plan.mergedAt === null ? [] : [{ at: plan.mergedAt, plan }])),
    ...Array.from({ length: DIRECT_COMMITS }, () => ({ at: random.between(1, HOURS), plan: null })),
  ].sort((a, b) => a.at - b.at);
  const regressions = plans.flatMap((plan): Regression[] => {
    const from = commits.findIndex((commit) => commit.plan === plan);
    if (plan.unseen === null || from === -1) return [];
    const until = commits.findIndex((one, version) => version > from && one.plan?.fixes === plan.unseen);
    return [{ ...plan.unseen, from, until: until === -1 ? commits.length : until }];
  });
  addTests(scene, plans, (plan) => commits.findIndex((commit) => commit.plan === plan));

  const planned = commits.map(({ at }, version): Planned => {
    const own = { branch: "main", isDefault: true, version, regressions: regressionsAt(regressions, version) };
    return { ...usually(team, random), ...own, own: [], at };
  });
  const versionAt = (at: number) => commits.findLastIndex((one) => one.at <= at);
  planned.push(...planBuilds(scene, plans, { near, versionAt, regressions }));
  const run = runBuilds(scene, planned, { keys, retries, toClock: toWorkingClock(end) });
  return { seed, team, flaky: scene.flaky, regressions, moved: [], ...run };
}

/** Returns the areas whose tests run when files of the given areas change: these areas, and those that depend on them. */
type Selection = (areas: readonly string[]) => ReadonlySet<string>;

function createSelection({ team, random }: Scene): Selection {
  const all = [...new Set(team.cases.map(({ area }) => area))];
  const needed = new Map(all.map((area, index) => [area, random.sample(all.slice(0, index), random.integer(0, 2))]));
  return (areas) => new Set([...areas, ...all.filter((area) => needed.get(area)!.some((one) => areas.includes(one)))]);
}

function planPullRequests(scene: Scene, near: Selection): Plan[] {
  const { random, team, breakSome } = scene;
  const all = [...new Set(team.cases.map(({ area }) => area))];
  const times = Array.from({ length: PULL_REQUESTS }, () => random.between(1, HOURS - 6)).sort((a, b) => a - b);
  const plans: Plan[] = [];
  for (const [index, createdAt] of times.entries()) {
    const number = 701 + index;
    const open = plans.filter(({ mergedAt }) => mergedAt === null || mergedAt > createdAt).slice(-8);
    const parent = open.length > 0 && random.chance(STACKED) ? random.pick(open) : null;
    const areas = random.sample(all, random.integer(1, 2));
    const pushes = [createdAt];
    for (let left = random.integer(0, 3); left > 0; left--) pushes.push(pushes.at(-1)! + random.between(0.4, 6));
    const kind = random.next();
    const identity = { id: `pull request ${number}`, kind: "pull request" as const };
    const isBreaking = kind < BREAKING;
    const breaks = isBreaking ? breakSome(identity, random.integer(1, 5), { areas: near(areas) }) : null;
    const brokenPushes = isBreaking ? random.integer(1, pushes.length) : 0;
    const run = near([...areas, ...ancestors(parent).flatMap((one) => one.areas)]);
    const others = new Set(all.filter((area) => !run.has(area)));
    const isUnseen = !isBreaking && kind < BREAKING + BREAKING_UNSEEN;
    const unseen = isUnseen ? breakUnseen(scene, `regression of ${number}`, others) : null;
    const pullRequest = { number, branch: `user/${random.pick(NOUNS)}-${number}`, breaks };
    let mergedAt: number | null = brokenPushes < pushes.length ? pushes.at(-1)! + random.between(0.5, 5) : null;
    if (parent && mergedAt !== null) {
      // The squashed parent is another commit: the branch is rebased, or keeps the original commits of its parent.
      if (parent.mergedAt !== null && parent.mergedAt > pushes.at(-1)!) pushes.push(parent.mergedAt + 0.2);
      mergedAt = parent.mergedAt === null ? null : Math.max(mergedAt, parent.mergedAt + random.between(0.4, 3));
    }
    if (mergedAt !== null && mergedAt >= HOURS) mergedAt = null;
    const usual = { alwaysRun: new Set<TestCase>(), fixes: null };
    plans.push({ ...usual, pullRequest, areas, parent, pushes, brokenPushes, unseen, mergedAt });
  }
  return plans;
}

const breakUnseen = ({ random, breakSome }: Scene, id: string, areas: ReadonlySet<string>): Breakage =>
  breakSome({ id, kind: "regression" }, random.integer(2, 6), { areas, isExclusive: true });

const ancestors = (plan: Plan | null): Plan[] => (plan === null ? [] : [plan, ...ancestors(plan.parent)]);

/** The pull requests that planFollowUps from a change that breaks main: one that reverts or fixes it, and the reland. */
function planFollowUps({ pullRequest, areas, unseen, mergedAt }: Plan, number: number, random: Random): Plan[] {
  if (unseen === null || mergedAt === null) return [];
  const fixedAt = mergedAt + random.between(2, 14);
  if (fixedAt >= HOURS) return [];
  const name = pullRequest.branch.slice("user/".length);
  const isReverted = random.chance(REVERTED);
  const plain = { areas, alwaysRun: new Set(unseen.cases), parent: null, brokenPushes: 0, unseen: null, fixes: null };
  const fix: Plan = {
    ...plain,
    pullRequest: { number, branch: `user/${isReverted ? "revert" : "fix"}-${name}`, breaks: null },
    pushes: [fixedAt - random.between(0.4, 1)],
    fixes: unseen,
    mergedAt: fixedAt,
  };
  if (!isReverted || !random.chance(RELANDED)) return [fix];
  const pushes = [fixedAt + random.between(1, 10)];
  for (let left = random.integer(0, 2); left > 0; left--) pushes.push(pushes.at(-1)! + random.between(0.4, 4));
  const merge = pushes.at(-1)! + random.between(0.5, 4);
  const outcome = random.next();
  // Fixed before it lands again; broken in its first builds; or broken in tests that it does not run.
  const brokenPushes = outcome < 0.4 || outcome > 0.85 ? 0 : random.integer(1, pushes.length);
  const isUnseen = outcome > 0.85;
  const reland: Plan = {
    ...plain,
    pullRequest: { number: number + 1, branch: `user/reland-${name}`, breaks: brokenPushes > 0 ? unseen : null },
    alwaysRun: isUnseen ? new Set() : plain.alwaysRun,
    pushes,
    brokenPushes,
    unseen: isUnseen ? unseen : null,
    mergedAt: brokenPushes < pushes.length && merge < HOURS ? merge : null,
  };
  return [fix, reland];
}

/** Sound pull requests add tests to the files of their areas. */
function addTests({ team, random }: Scene, plans: readonly Plan[], versionOf: (plan: Plan) => number): void {
  for (const plan of plans) {
    if (plan.pullRequest.breaks || plan.unseen || plan.mergedAt === null || !random.chance(0.3)) continue;
    const added = { at: versionOf(plan), pullRequest: plan.pullRequest.number };
    const { task, area, file } = random.pick(team.cases.filter((one) => plan.areas.includes(one.area)));
    for (let left = random.integer(1, 3); left > 0; left--)
      team.cases.push({ ...team.create(task, area), file, added });
  }
}

/** What a push is based on: a version of main, with the breaking changes and the areas of the parents since then. */
type Base = { version: number; changes: readonly Breakage[]; areas: readonly string[] };
type Push = { at: number; base: Base; head: Base };

type Mainline = { near: Selection; versionAt: (at: number) => number; regressions: readonly Regression[] };

function planBuilds({ team, random }: Scene, plans: readonly Plan[], main: Mainline): Planned[] {
  const pushesOf = new Map<Plan, Push[]>();
  return plans.flatMap((plan) => {
    const { pullRequest, parent, areas, alwaysRun, unseen, fixes } = plan;
    const done: Push[] = [];
    pushesOf.set(plan, done);
    return plan.pushes.flatMap((at, push): Planned[] => {
      if (at >= HOURS) return [];
      const open = parent && (parent.mergedAt === null || at < parent.mergedAt) ? parent : null;
      const isRebased = push === 0 || random.chance(REBASED);
      const base = isRebased ? baseOf(at, open && pushesOf.get(open)!, main) : done.at(-1)!.base;
      const broken = push < plan.brokenPushes ? [pullRequest.breaks!] : [];
      const changes = [...base.changes, ...broken, ...(unseen ? [unseen] : [])];
      done.push({ at, base, head: { version: base.version, changes, areas: [...base.areas, ...areas] } });
      const selected = main.near([...base.areas, ...areas]);
      const isSelected = (testCase: TestCase) => selected.has(testCase.area) || alwaysRun.has(testCase);
      const inherited = [...regressionsAt([...main.regressions], base.version), ...base.changes];
      return [
        {
          ...usually(team, random),
          ...{ branch: pullRequest.branch, pullRequest, parent: open?.pullRequest ?? null, version: base.version, at },
          tasks: team.tasks.filter((task) =>
            team.cases.some((one) => one.task === task && !one.added && isSelected(one)),
          ),
          isSelected,
          regressions: inherited.filter(({ cause }) => cause !== fixes?.cause),
          own: broken,
        },
      ];
    });
  });
}

function baseOf(at: number, parent: readonly Push[] | null, { versionAt }: Mainline): Base {
  const pushed = parent?.findLast((one) => one.at <= at);
  return pushed?.head ?? { version: versionAt(at), changes: [], areas: [] };
}
