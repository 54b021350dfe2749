/** Builds of a team, what fails in each of them and why, and the reports that come of it. */

import { type Cause, createOutage } from "./failures.ts";
import { createRandom, type Random } from "../../random.ts";
import type { Change, Task, Team, TestCase } from "./team.ts";

/** What a test case fails for, and how often. */
export type FlakyCase = { testCase: TestCase; rate: number; cause: Cause };
/** What breaks test cases each time: from one version of main until before another, or in some builds of a pull request. */
export type Breakage = { cause: Cause; cases: TestCase[] };
export type Regression = Breakage & { from: number; until: number };

export type PullRequest = { number: number; branch: string; breaks: Breakage | null };

/** What the surroundings of a build do to its test cases. */
export type Trouble = (testCase: TestCase, random: Random) => Cause | null;

export type Build = {
  number: number;
  /** As the CI system tells the server. */
  key: string;
  commit: string;
  branch: string;
  /** It shows how the default branch stands. */
  isDefault: boolean;
  pullRequest: PullRequest | null;
  /** The pull request whose branch this one is based on, until that one is merged. */
  parent: PullRequest | null;
  /** Of the default branch, which it holds. */
  version: number;
  /** What fails in it because of the default branch. */
  regressions: readonly Breakage[];
  /** What fails in it because of its own changes: of its pull request, or of a release branch. */
  own: readonly Breakage[];
  tasks: readonly Task[];
  /** The tests that test selection runs; null: all. */
  isSelected: ((testCase: TestCase) => boolean) | null;
  /** Those whose services are down. */
  outage: ReadonlySet<Task>;
  trouble: Trouble | null;
  /** Results that never arrive. */
  isLost: ((testCase: TestCase) => boolean) | null;
  /** The machine of each task, where it is known. */
  hostOf: ((task: Task) => string) | null;
  /** The CI system, where a team has several. */
  environment: string | null;
  /** An old commit of its branch is run again. */
  isOld: boolean;
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

export const exists = (build: Build, { added, removed, away }: TestCase) =>
  (added === null || isThere(build, added)) &&
  !(removed !== null && isThere(build, removed)) &&
  !(away !== null && build.version >= away.from && build.version < away.until);

/** Where the test case is in the checkout of the build. */
export const fileIn = (build: Build, { file, moved }: TestCase): string =>
  moved.findLast((move) => isThere(build, move))?.file ?? file;

type Running = Pick<Story, "team" | "flaky"> & { retries: boolean; seed: number };

/** A task with more failures than this share is not run again. */
const MAX_RETRIED = 0.2;

export function runBuild(build: Build, { team, flaky, retries, seed }: Running): Upload[] {
  const broken = new Map<TestCase, Cause>();
  for (const { cause, cases } of [...build.regressions, ...build.own])
    for (const testCase of cases) broken.set(testCase, cause);
  const shaky = new Map(flaky.map((one) => [one.testCase, one]));
  const uploads = build.tasks.flatMap((task): Upload[] => {
    const random = createRandom(seed, `${build.number} ${task.slug}`);
    const outage = build.outage.has(task) ? createOutage(task.language) : null;
    const causeOf = (testCase: TestCase): Cause | null => {
      if (outage) return random.chance(0.96) ? outage : null;
      const trouble = build.trouble?.(testCase, random);
      if (trouble) return trouble;
      const certain = broken.get(testCase);
      if (certain) return certain;
      const maybe = shaky.get(testCase);
      return maybe && random.chance(maybe.rate) ? maybe.cause : null;
    };
    const all = team.cases.filter(
      (testCase) =>
        testCase.task === task &&
        exists(build, testCase) &&
        !build.isLost?.(testCase) &&
        (build.isSelected?.(testCase) ?? true),
    );
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
