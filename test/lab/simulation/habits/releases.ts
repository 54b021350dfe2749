/**
 * `develop` is the default branch, three release branches live beside it: what is mended there, or broken, comes by backports;
 * forks name their branches as they like, and jobs of a week ago are run again.
 */

import type { Breakage, PullRequest, Regression, Story } from "../builds.ts";
import { createRandom } from "../../../random.ts";
import type { Planned } from "../scene.ts";
import { type Alter, createStory, LOADS, type StoryOptions } from "../story.ts";

const DEFAULT = "develop";
const RELEASES = ["release/3.1", "release/3.2", "release/4.0"];
/** Of working time. */
const HOURS = 150;
const WEEK = 50;
const FORKS = 14;
const RERUNS = 14;

export const createReleases = (options: StoryOptions): Story =>
  createStory({ ...LOADS.normal, pullRequests: 60, directCommits: 60 }, { ...options, defaultBranch: DEFAULT }, alter);

/** What a release branch fails for from one hour until before another. */
type Broken = { breakage: Breakage; from: number; until: number };

const alter: Alter = ({ seed, team, usually, breakSome, versionAt, regressionsAt }) => {
  const random = createRandom(seed, "releases");
  const planned = (builds: readonly Planned[]): Planned[] => {
    const added: Planned[] = [];
    const add = (at: number, version: number, build: Pick<Planned, "branch"> & Partial<Planned>) =>
      added.push({ ...usually(), regressions: regressionsAt(version), version, ...build, at });

    // One mistake is carried to all releases, others are of one alone.
    const carried = breakSome({ id: "carried to all releases", kind: "regression" }, 4, { isExclusive: true });
    const carriedAt = random.between(60, 80);
    for (const [index, branch] of RELEASES.entries()) {
      const cutAt = 4 + index * 12;
      const version = versionAt(cutAt);
      const inherited = regressionsAt(version).map((one: Regression): Broken => {
        return { breakage: one, from: 0, until: cutAt + random.between(15, 40) };
      });
      const ownFrom = random.between(cutAt + 15, 110);
      const own: Broken[] = [
        {
          breakage: breakSome({ id: `${branch} itself`, kind: "regression" }, random.integer(2, 5), {
            isExclusive: true,
          }),
          ...{ from: ownFrom, until: ownFrom + random.between(15, 35) },
        },
        { breakage: carried, from: carriedAt + index * 3, until: carriedAt + index * 3 + random.between(15, 30) },
      ];
      const at = (hour: number, broken: readonly Broken[]) =>
        broken.filter(({ from, until }) => hour >= from && hour < until).map(({ breakage }) => breakage);
      for (let hour = cutAt; hour < HOURS; hour += random.between(2.5, 6))
        add(hour, version, { branch, regressions: at(hour, inherited), own: at(hour, own) });
      for (let left = 5; left > 0; left--) {
        const hour = random.between(cutAt + 1, HOURS);
        const number = 900 + added.length;
        const told = { id: `pull request ${number}`, kind: "pull request" as const };
        const breaks = random.chance(0.4) ? breakSome(told, random.integer(1, 4)) : null;
        const pullRequest: PullRequest = { number, branch: `backport/${number}-to-${branch.slice(8)}`, breaks };
        // The release's own failures are no more its doing than those of the default branch are.
        const regressions = at(hour, [...inherited, ...own]);
        add(hour, version, { branch: pullRequest.branch, pullRequest, regressions, own: breaks ? [breaks] : [] });
      }
    }
    for (let index = 0; index < FORKS; index++) {
      const number = 1_100 + index;
      const told = { id: `pull request ${number}`, kind: "pull request" as const };
      const breaks = random.chance(0.5) ? breakSome(told, random.integer(1, 4)) : null;
      const pullRequest: PullRequest = { number, branch: random.pick([DEFAULT, DEFAULT, "main", "patch-1"]), breaks };
      const at = random.between(5, HOURS);
      for (let push = random.integer(1, 2); push > 0; push--)
        if (at + push < HOURS)
          add(at + push, versionAt(at), { branch: pullRequest.branch, pullRequest, own: breaks ? [breaks] : [] });
    }
    // The same commit, and what it holds.
    const old = [...builds, ...added].filter(({ at, pullRequest }) => at < HOURS - WEEK && pullRequest === null);
    for (const build of random.sample(old, RERUNS))
      added.push({
        ...build,
        at: build.at + WEEK,
        isOld: true,
        outage: new Set(),
        tasks: random.sample(team.tasks, 3),
      });
    return added;
  };
  return { planned };
};
