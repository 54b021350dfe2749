/** Holds what an Assay has made of a story against the truth. */

import type { Named, Recording } from "./play.ts";
import type { TestCase } from "./team.ts";

/** From this rate on a flaky test has to be found. */
const COUNTED_RATE = 0.05;
/** So many failures in a row on main make a test broken. */
const BROKEN = 5;

/** NaN where there is nothing to count. */
export type Score = {
  executions: number;
  flakyPrecision: number;
  flakyRecall: number;
  /** Times that the catalogue began or ceased to call a truly flaky test so, as seen after each build of main. */
  flakyTurns: number;
  /** Sound tests that it called flaky at any time. */
  soundCalledFlaky: number;
  newPrecision: number;
  newRecall: number;
  /** Of the failures of flaky tests in pull requests, the share told as such. */
  flakyTold: number;
  /** Of the failures in pull requests that main had broken, the share told as such. */
  mainTold: number;
  bugs: number;
  /** Regressions, an outage, and each flaky test that failed on main. */
  trueBugs: number;
  /** Bugs with failures of different causes. */
  wrongBugs: number;
  comparisons: number;
  movedComparisons: number;
  /** Share of the looks at tests of regressions, build by build of main, at which broken was right. */
  brokenRight: number;
  /** Sound tests called broken that were not. */
  wronglyBroken: number;
  /** The build of main, counted from 1, that tells of all tests of a regression; the worst of the regressions. */
  toldInBuild: number;
  /** Catalogue entries beyond one for each test whose file moved. */
  duplicates: number;
  seconds: number;
};

const share = (part: number, whole: number) => (whole === 0 ? Number.NaN : part / whole);
/** What a test may be called in a report: some tools join the titles of suites and test. */
const keysOf = ({ taskSlug, suite, name }: Named) =>
  [name, `${suite} > ${name}`, `${suite} ${name}`].map((title) => `${taskSlug} ${title}`);

export function score(recording: Recording): Score {
  const { story, snapshots, comparisons } = recording;
  const byName = new Map(story.team.cases.map((testCase) => [`${testCase.task.slug} ${testCase.name}`, testCase]));
  const find = (named: Named): TestCase => {
    const found = keysOf(named).flatMap((key) => byName.get(key) ?? [])[0];
    if (!found) throw new Error(`No report named ${JSON.stringify(named)}`);
    return found;
  };
  return {
    executions: story.builds.length,
    ...scoreFlaky(recording, find),
    ...scoreNewFailures(recording, find),
    ...scoreBugs(recording, find),
    comparisons: comparisons.length,
    movedComparisons: comparisons.filter(({ first, again }) => first.baselineId !== again.baselineId).length,
    ...scoreBroken(snapshots, recording, find),
    toldInBuild: Math.max(...story.regressions.map((regression) => buildThatTells(regression, recording, find))),
    duplicates: scoreDuplicates(recording, find),
    seconds: recording.seconds,
  };
}

type Find = (named: Named) => TestCase;

function scoreFlaky({ story, snapshots, catalogue }: Recording, find: Find) {
  const rates = new Map(story.flaky.map(({ testCase, rate }) => [testCase, rate]));
  const told = new Set(catalogue.filter(({ health }) => health === "flaky").map(find));
  const counted = [...rates].filter(([, rate]) => rate >= COUNTED_RATE).map(([testCase]) => testCase);
  let flakyTurns = 0;
  let before = new Set<TestCase>();
  const wrong = new Set<TestCase>();
  for (const { flaky, broken } of snapshots) {
    const now = new Set(flaky.map(find));
    // What is broken for a while may be told as flaky before and after.
    for (const testCase of broken.map(find)) if (before.has(testCase)) now.add(testCase);
    flakyTurns += [...now.symmetricDifference(before)].filter((testCase) => rates.has(testCase)).length;
    for (const testCase of now) if (!rates.has(testCase)) wrong.add(testCase);
    before = now;
  }
  return {
    flakyPrecision: share([...told].filter((testCase) => rates.has(testCase)).length, told.size),
    flakyRecall: share(counted.filter((testCase) => told.has(testCase)).length, counted.length),
    flakyTurns,
    soundCalledFlaky: wrong.size,
  };
}

/** By execution of a pull request and test case: what it breaks itself is new, and nothing else is. */
function scoreNewFailures({ answers }: Recording, find: Find) {
  let [right, told, broken, flaky, flakyTold, ofMain, mainTold] = [0, 0, 0, 0, 0, 0, 0];
  for (const { upload, newFailures, flakyFailures, mainFailures } of answers) {
    const { build, task, failed } = upload;
    if (!build.pullRequest) continue;
    const own = new Set([...failed].filter(([, cause]) => cause === build.breaks?.cause).map(([testCase]) => testCase));
    if (build.outage.has(task)) own.clear();
    told += newFailures.length;
    broken += own.size;
    right += newFailures.filter((named) => own.has(find(named))).length;
    const asFlaky = new Set(flakyFailures.map(find));
    const asMains = new Set(mainFailures.map(find));
    for (const [testCase, { kind }] of failed) {
      if (kind === "flaky") [flaky, flakyTold] = [flaky + 1, flakyTold + Number(asFlaky.has(testCase))];
      if (kind === "regression") [ofMain, mainTold] = [ofMain + 1, mainTold + Number(asMains.has(testCase))];
    }
  }
  return {
    newPrecision: share(right, told),
    newRecall: share(right, broken),
    flakyTold: share(flakyTold, flaky),
    mainTold: share(mainTold, ofMain),
  };
}

function scoreBugs({ story, bugs, catalogue }: Recording, find: Find) {
  const failures = new Map<string, string>();
  const onMain = new Set<string>();
  const placeOf = (build: { number: number }, { task, name }: TestCase) => `${build.number} ${task.slug} ${name}`;
  for (const { build, failed } of story.uploads)
    for (const [testCase, { id }] of failed) {
      failures.set(placeOf(build, testCase), id);
      if (build.branch === "main") onMain.add(id);
    }
  const cases = new Map(catalogue.map((named) => [named.id, find(named)]));
  const wrongBugs = bugs.filter(({ occurrences }) => {
    const causes = occurrences.map(({ build, testCaseId }) => failures.get(placeOf(build, cases.get(testCaseId)!)));
    return new Set(causes).size > 1;
  }).length;
  return { bugs: bugs.length, trueBugs: onMain.size, wrongBugs };
}

function scoreBroken(snapshots: Recording["snapshots"], { story }: Recording, find: Find) {
  const flaky = new Set(story.flaky.map(({ testCase }) => testCase));
  const watched = new Set(story.regressions.flatMap(({ cases }) => cases));
  const inARow = new Map<TestCase, number>();
  let [right, looks, wronglyBroken, next] = [0, 0, 0, 0];
  for (const { uploads, broken } of snapshots) {
    for (const { build, task, attempt, cases, failed } of story.uploads.slice(next, uploads)) {
      if (build.pullRequest || build.outage.has(task) || attempt > 1) continue;
      for (const testCase of cases)
        if (watched.has(testCase)) inARow.set(testCase, failed.has(testCase) ? (inARow.get(testCase) ?? 0) + 1 : 0);
    }
    next = uploads;
    const told = new Set(broken.map(find));
    for (const testCase of watched) {
      const isBroken = (inARow.get(testCase) ?? 0) >= BROKEN;
      if (!isBroken && !told.has(testCase)) continue;
      looks++;
      right += Number(isBroken === told.has(testCase));
    }
    wronglyBroken += [...told].filter((testCase) => !watched.has(testCase) && !flaky.has(testCase)).length;
  }
  return { brokenRight: share(right, looks), wronglyBroken };
}

/** Counted by the reports of its task, in the order in which they arrived; Infinity where none tells of it. */
function buildThatTells(
  { from, until, cases }: Recording["story"]["regressions"][number],
  { answers }: Recording,
  find: Find,
): number {
  const { task } = cases[0]!;
  const own = answers.filter(({ upload }) => {
    const { build } = upload;
    const isInside = build.version >= from && build.version < until;
    return upload.task === task && build.pullRequest === null && isInside && !build.outage.has(task);
  });
  const index = own.findIndex(({ newFailures }) => {
    const told = new Set(newFailures.map(find));
    return cases.every((testCase) => told.has(testCase));
  });
  return index === -1 ? Infinity : index + 1;
}

/** Tests of Python are named by their file: those that move are others. */
function scoreDuplicates({ story, catalogue }: Recording, find: Find): number {
  const moved = new Set(story.moved.filter(({ task }) => task.language !== "pytest"));
  const entries = catalogue.map(find).filter((testCase) => moved.has(testCase));
  return entries.length - new Set(entries).size;
}
