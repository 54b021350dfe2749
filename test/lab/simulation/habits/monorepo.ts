/**
 * A monorepo of 40 packages: a change runs the packages that it touches and those that depend on them; what is merged goes
 * through a queue, whose build is that of the commit which main gets.
 */

import type { Breakage, PullRequest, Regression, Story } from "../builds.ts";
import { createScene, type Planned, runBuilds, usually } from "../scene.ts";
import { regressionsAt, type StoryOptions, toWorkingClock } from "../story.ts";
import { NOUNS, type Task, TASKS } from "../team.ts";

const PACKAGES = 40;
const PULL_REQUESTS = 100;
const HOTFIXES = 24;
const HOURS = 150;
/** What fails in the queue is mended, and waits once more. */
const HOURS_LOST_IN_QUEUE = 3;

export function createMonorepo({ seed, retries, end, keys = "build" }: StoryOptions): Story {
  const packages = Array.from({ length: PACKAGES }, (_, index): Task => {
    const slug = `${NOUNS[index % NOUNS.length]}${index < NOUNS.length ? "" : "-admin"}`;
    return { ...TASKS[index % TASKS.length]!, slug, folder: `packages/${slug}/`, minutes: 1 + (index % 6) };
  });
  const scene = createScene(seed, { tasks: packages, casesPerTask: [14, 30], flaky: 16, rates: [0.03, 0.25] });
  const { random, team, breakSome } = scene;

  const needs = packages.map((_, index) =>
    random.sample([...Array(index).keys()], index < 3 ? 0 : random.integer(0, 2)),
  );
  const affectedBy = (touched: readonly Task[]): Task[] => {
    const affected = new Set(touched.map((task) => packages.indexOf(task)));
    for (const [index, needed] of needs.entries()) if (needed.some((one) => affected.has(one))) affected.add(index);
    return [...affected].sort((a, b) => a - b).map((index) => packages[index]!);
  };

  type Merge = { at: number; touched: Task[]; plan: Plan | null; commit: string };
  type Plan = {
    pullRequest: PullRequest;
    touched: Task[];
    pushes: number[];
    brokenPushes: number;
    /** It breaks something only together with what main has got meanwhile. */
    clash: Breakage | null;
    mergedAt: number | null;
  };
  const plans = Array.from({ length: PULL_REQUESTS }, (_, index): Plan => {
    const number = 501 + index;
    const touched = random.sample(packages.slice(random.chance(0.2) ? 0 : 8), random.integer(1, 3));
    const pushes = [random.between(1, HOURS - 6)];
    for (let left = random.integer(0, 3); left > 0; left--) pushes.push(pushes.at(-1)! + random.between(0.4, 6));
    const breaking = random.chance(0.3);
    const brokenPushes = breaking ? random.integer(1, pushes.length) : 0;
    const told = { id: `pull request ${number}`, kind: "pull request" as const };
    const breaks = breaking ? breakSome(told, random.integer(1, 5), { tasks: touched }) : null;
    const clash =
      !breaking && random.chance(0.12)
        ? breakSome({ ...told, id: `${told.id} in the queue` }, random.integer(1, 3), { tasks: touched })
        : null;
    const merge = pushes.at(-1)! + random.between(0.5, 5);
    const ends = clash ? merge + HOURS_LOST_IN_QUEUE : merge;
    const mergedAt = brokenPushes < pushes.length && ends < HOURS ? merge : null;
    const pullRequest = { number, branch: `user/${random.pick(NOUNS)}-${number}`, breaks };
    return { pullRequest, touched, pushes, brokenPushes, clash, mergedAt };
  });
  const commit = () => random.text(40, "0123456789abcdef");
  const merges: Merge[] = [
    { at: 0, touched: packages, plan: null, commit: commit() },
    ...plans.flatMap((plan) => {
      if (plan.mergedAt === null) return [];
      const { touched, mergedAt, clash } = plan;
      return [{ at: clash ? mergedAt + HOURS_LOST_IN_QUEUE : mergedAt, touched, plan, commit: commit() }];
    }),
    ...Array.from({ length: HOTFIXES }, () => {
      const touched = random.sample(packages, random.integer(1, 2));
      return { at: random.between(1, HOURS), touched, plan: null, commit: commit() };
    }),
  ].sort((a, b) => a.at - b.at);
  const versionAt = (at: number) => merges.findLastIndex((one) => one.at <= at);

  // What is pushed past the queue breaks main until a later commit to the same package.
  const hotfixes = merges.flatMap(({ plan, at }, version) => (plan === null && at > 20 && at < 110 ? [version] : []));
  const regressions = random.sample(hotfixes, 4).map((from, index): Regression => {
    const { touched } = merges[from]!;
    const told = { id: `regression ${index + 1}`, kind: "regression" as const };
    const broken = breakSome(told, random.integer(2, 6), { isExclusive: true, tasks: touched });
    return { ...broken, from, until: from + random.integer(8, 30) };
  });
  // Whoever mends it touches the package.
  for (const { until, cases } of regressions) if (merges[until]) merges[until].touched = [cases[0]!.task];

  const planned: Planned[] = [];
  const add = (at: number, version: number, build: Pick<Planned, "branch"> & Partial<Planned>) =>
    planned.push({ ...usually(team, random), regressions: regressionsAt(regressions, version), version, ...build, at });
  for (const [version, { at, touched, plan, commit }] of merges.entries()) {
    const tasks = affectedBy(touched);
    add(at, version, { branch: "main", isDefault: true, commit, tasks });
    if (plan) add(at - 0.4, version, { branch: queueOf(plan.pullRequest, commit), commit, tasks });
  }
  for (const { pullRequest, touched, pushes, brokenPushes, clash, mergedAt } of plans) {
    const tasks = affectedBy(touched);
    for (const [push, at] of pushes.entries()) {
      const own = push < brokenPushes ? [pullRequest.breaks!] : [];
      if (at < HOURS) add(at, versionAt(at), { branch: pullRequest.branch, pullRequest, tasks, own });
    }
    if (!clash || mergedAt === null) continue;
    const failed = { tasks, own: [clash], commit: commit() };
    add(mergedAt - 0.4, versionAt(mergedAt), { branch: queueOf(pullRequest, failed.commit), ...failed });
  }
  const run = runBuilds(scene, planned, { keys, retries, toClock: toWorkingClock(end) });
  return { seed, team, flaky: scene.flaky, regressions, moved: [], ...run };
}

const queueOf = ({ number }: PullRequest, commit: string) => `gh-readonly-queue/main/pr-${number}-${commit}`;
