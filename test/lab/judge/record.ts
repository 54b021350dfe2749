/** What is known of the builds of a team when they end, with the truth about each failure beside it: what a judge is given. */

import { fingerprint } from "../../../src/rules/fingerprint.ts";
import { isFromOutside } from "../../../src/rules/outside.ts";
import { createRandom } from "../../random.ts";
import type { Cause } from "../simulation/failures.ts";
import { type Build, fileIn, type Story, type Upload } from "../simulation/builds.ts";
import type { TestCase } from "../simulation/team.ts";

/** A failed result. `test` counts the tests of the team. */
export type Failure = {
  test: number;
  file: string;
  /** The stored fingerprint of type and message, without numbers and drawn values. */
  cause: string;
  /** The message says that something outside of the code did not answer, or ran out. */
  saysOutside: boolean;
  /** It failed, and a later attempt of the same build passed. */
  isRetried: boolean;
  truth: Cause;
};

/** A task in a build, all its attempts together. */
export type Run = { task: string; tests: ReadonlySet<number>; failures: Failure[]; host: string | null };

export type RecordedBuild = {
  number: number;
  /** Milliseconds since 1970. */
  startedAt: number;
  endedAt: number;
  commit: string;
  /** Null: the build is of a line. */
  pullRequest: number | null;
  /** The pull request, not merged yet, whose branch is the base of this one: `line` and `position` are those of that one. */
  parent: number | null;
  /** The CI system, where the team has several: each reports the same tasks. */
  environment: string | null;
  /** The default branch or a long-lived one, of which the build is, or into which its pull request goes. */
  line: string;
  /** The place in the line's order of commits: of the build's own commit, or of the one that its pull request began at. */
  position: number;
  /** The repetition of an old build. */
  isOld: boolean;
  runs: Run[];
  /** Whether the build holds a change of its own that breaks something. */
  isGuilty: boolean;
  /** The causes that are its own doing. */
  own: ReadonlySet<string>;
};

export type Recorded = {
  team: string;
  seed: number;
  builds: RecordedBuild[];
  flaky: Map<number, number>;
  tests: number;
};

/** In the order in which the builds end. */
export function record(team: string, story: Story): Recorded {
  const numbers = new Map<TestCase, number>();
  const numberOf = (testCase: TestCase) => {
    if (!numbers.has(testCase)) numbers.set(testCase, numbers.size);
    return numbers.get(testCase)!;
  };
  for (const testCase of story.team.cases) numberOf(testCase);
  const random = createRandom(story.seed, "record");
  const uploads = Map.groupBy(story.uploads, ({ build }) => build);
  const builds = story.builds
    .map((build) => recordBuild(build, uploads.get(build) ?? [], { numberOf, random }))
    .toSorted((a, b) => a.endedAt - b.endedAt);
  placeOnLines(builds);
  const flaky = new Map(story.flaky.map(({ testCase, rate }) => [numberOf(testCase), rate]));
  return { team, seed: story.seed, builds, flaky, tests: numbers.size };
}

type Recording = { numberOf: (testCase: TestCase) => number; random: ReturnType<typeof createRandom> };

function recordBuild(build: Build, uploads: readonly Upload[], { numberOf, random }: Recording): RecordedBuild {
  const runs = [...Map.groupBy(uploads, ({ task }) => task)].map(([task, own]): Run => {
    const tests = new Set(own.flatMap(({ cases }) => cases.map(numberOf)));
    const last = new Map<TestCase, Upload>();
    for (const upload of own) for (const testCase of upload.cases) last.set(testCase, upload);
    const seen = new Map<TestCase, { cause: Cause }>();
    for (const { failed } of own)
      for (const [testCase, cause] of failed) if (!seen.has(testCase)) seen.set(testCase, { cause });
    const failures = [...seen].map(([testCase, { cause }]): Failure => {
      const file = fileIn(build, testCase);
      const place = { file, function: testCase.name, line: 10 };
      const final = last.get(testCase)!.failed.get(testCase);
      const told = (final ?? cause).tell(random, place);
      const failure = {
        kind: told.type,
        message: told.message,
        stack: told.stack,
        suite: "",
        name: testCase.name,
        file,
      };
      return {
        test: numberOf(testCase),
        file,
        cause: fingerprint(failure).digest,
        saysOutside: isFromOutside(failure),
        isRetried: final === undefined,
        truth: final ?? cause,
      };
    });
    return { task: task.slug, tests, failures, host: build.hostOf?.(task) ?? null };
  });
  const queued = /^gh-readonly-queue\/main\/pr-(\d+)-/.exec(build.branch)?.[1];
  return {
    number: build.number,
    startedAt: build.startsAt,
    endedAt: Math.max(...uploads.map(({ at }) => at), build.startsAt),
    commit: build.commit,
    pullRequest: build.pullRequest?.number ?? (queued === undefined ? null : Number(queued)),
    parent: build.parent?.number ?? null,
    environment: build.environment,
    line: lineOf(build),
    position: build.version,
    isOld: build.isOld,
    runs,
    isGuilty: build.own.length > 0,
    own: new Set(build.own.map(({ cause }) => cause.id)),
  };
}

/** A backport goes into a release branch. */
const lineOf = ({ branch, isDefault, pullRequest }: Build): string =>
  isDefault || branch.startsWith("gh-readonly-queue/")
    ? "main"
    : pullRequest === null
      ? branch
      : (/^backport\/\d+-to-(.+)$/.exec(branch)?.[1] ?? "main").replace(/^(?=\d)/, "release/");

/** On other lines than the default branch the order of builds is that of commits; a pull request begins at the last one. */
function placeOnLines(builds: RecordedBuild[]): void {
  const counts = new Map<string, number>();
  const commits = new Map<string, number>();
  for (const build of builds.toSorted((a, b) => a.startedAt - b.startedAt)) {
    if (build.line === "main") continue;
    const count = counts.get(build.line) ?? 0;
    build.position = build.pullRequest === null ? (commits.get(build.commit) ?? count + 1) : count;
    if (build.pullRequest !== null) continue;
    counts.set(build.line, Math.max(count, build.position));
    commits.set(build.commit, build.position);
  }
}
