/** Holds what an Assay has made of a story against the truth. */

import { type Build, exists } from "./builds.ts";
import type { Cause } from "./failures.ts";
import type { GatedBuild } from "./gate.ts";
import type { Named, Recording } from "./play.ts";
import type { TestCase } from "./team.ts";

const WEEK_MS = 7 * 24 * 3_600_000;

/** From this rate on a flaky test has to be found. */
const COUNTED_RATE = 0.05;

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
  /** The precision as it is told when the three weeks are over. */
  newPrecisionAtEnd: number;
  /** Builds of the default branch that tell as new what their surroundings have caused. */
  falseAlarms: number;
  /** Those, and sound tests called flaky, a week. */
  wrongAlertsAWeek: number;
  /** Of the failures of flaky tests in pull requests, the share told as such. */
  flakyTold: number;
  /** Of the failures in pull requests that main had broken, the share told as such. */
  mainTold: number;
  bugs: number;
  /** Regressions, an outage, and each flaky test that failed on main. */
  trueBugs: number;
  /** Bugs with failures of different causes. */
  wrongBugs: number;
  /** Times that the report of an old commit has reopened a bug. */
  wronglyReopened: number;
  comparisons: number;
  movedComparisons: number;
  /** Share of the looks at tests of regressions, build by build of main, at which broken was right. */
  brokenRight: number;
  /** Sound tests called broken that were not. */
  wronglyBroken: number;
  /** Of the tests called broken, build by build of the default branch, the share that was. */
  brokenPrecision: number;
  brokenRecall: number;
  /** The build of main, counted from 1, that tells of all tests of a regression; the worst of the regressions. */
  toldInBuild: number;
  /** Catalogue entries beyond one for each test whose file moved. */
  duplicates: number;
  /** Of the builds that broke nothing, the share whose jobs all passed: without a gate, with it, and with it in the last week. */
  greenWithoutGate: number;
  green: number;
  greenInLastWeek: number;
  /** Builds that broke something, or show a broken default branch, and passed the gate by their jobs or as a whole. */
  wronglyGreen: number;
  /** The largest share of the suite in quarantine at any time, in percent. */
  quarantined: number;
  seconds: number;
};

const share = (part: number, whole: number) => (whole === 0 ? Number.NaN : part / whole);
/** What a name ends with that was drawn for one run, see `drawName` in habits/names.ts. */
const DRAWN = [/\[seed=[^\]]*\]$/, / on \S+$/, / of order \S+$/];
/** What a test may be called in a report: some tools join the titles of suites and test. */
const keysOf = ({ taskSlug, suite, name }: Named) =>
  [name, `${suite} > ${name}`, `${suite} ${name}`].flatMap((title) =>
    [title, ...DRAWN.map((drawn) => title.replace(drawn, ""))].map((one) => `${taskSlug} ${one}`),
  );

export function score(recording: Recording): Score {
  const { story, snapshots, comparisons } = recording;
  // Of two tests of one name the first one fails.
  const byName = new Map(
    story.team.cases.toReversed().map((testCase) => [`${testCase.task.slug} ${testCase.name}`, testCase]),
  );
  const find = (named: Named): TestCase => {
    const found = keysOf(named).flatMap((key) => byName.get(key) ?? [])[0];
    if (!found) throw new Error(`No report named ${JSON.stringify(named)}`);
    return found;
  };
  const flaky = scoreFlaky(recording, find);
  const falseAlarms = countFalseAlarms(recording, find);
  const [first, last] = [story.builds[0]!.startsAt, story.builds.at(-1)!.startsAt];
  return {
    executions: story.builds.length,
    ...flaky,
    ...scoreNewFailures(recording, find),
    newPrecisionAtEnd: scoreAtEnd(recording, find),
    falseAlarms,
    wrongAlertsAWeek: (falseAlarms + flaky.soundCalledFlaky) / Math.max(1, (last - first) / WEEK_MS),
    ...scoreBugs(recording, find),
    wronglyReopened: recording.reopened.filter(({ upload }) => upload.build.isOld).length,
    comparisons: comparisons.length,
    movedComparisons: comparisons.filter(({ first, again }) => first.baselineId !== again.baselineId).length,
    ...scoreBroken(snapshots, recording, find),
    toldInBuild: Math.max(...story.regressions.map((regression) => buildThatTells(regression, recording, find))),
    duplicates: scoreDuplicates(recording, find),
    ...scoreGate(recording),
    seconds: recording.seconds,
  };
}

type Find = (named: Named) => TestCase;

const isTrouble = ({ kind }: Cause) => kind === "outage" || kind === "incident";

/** Builds of the default branch, each once, whatever the number of failures. */
function countFalseAlarms({ answers }: Recording, find: Find): number {
  const wrong = answers.filter(({ upload: { build, failed }, newFailures }) => {
    const causes = newFailures.flatMap((named) => failed.get(find(named)) ?? []);
    return build.isDefault && causes.some(isTrouble);
  });
  return new Set(wrong.map(({ upload }) => upload.build)).size;
}

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

/**
 * By build of another branch and test case: what it breaks itself is new, and nothing else is. What a branch of several builds
 * fails for since an earlier one may be told as still failing.
 */
function scoreNewFailures({ answers }: Recording, find: Find) {
  let [right, told, broken, found, flaky, flakyTold, ofMain, mainTold] = [0, 0, 0, 0, 0, 0, 0, 0];
  const seen = new Set<string>();
  for (const { upload, newFailures, flakyFailures, mainFailures } of answers) {
    const { build, failed } = upload;
    if (build.isDefault) continue;
    const causes = new Set(build.own.map(({ cause }) => cause));
    const own = new Set([...failed].filter(([, cause]) => causes.has(cause)).map(([testCase]) => testCase));
    const asNew = new Set(newFailures.map(find));
    const asFlaky = new Set(flakyFailures.map(find));
    const asMains = new Set(mainFailures.map(find));
    told += newFailures.length;
    broken += own.size;
    right += newFailures.filter((named) => own.has(find(named))).length;
    for (const testCase of own) {
      const place = `${build.branch} ${failed.get(testCase)!.id} ${testCase.name}`;
      found += Number(asNew.has(testCase) || (build.pullRequest === null && seen.has(place) && asMains.has(testCase)));
      seen.add(place);
    }
    for (const [testCase, { kind }] of failed) {
      if (kind === "flaky") [flaky, flakyTold] = [flaky + 1, flakyTold + Number(asFlaky.has(testCase))];
      if (kind === "regression" && !own.has(testCase))
        [ofMain, mainTold] = [ofMain + 1, mainTold + Number(asMains.has(testCase))];
    }
  }
  return {
    newPrecision: share(right, told),
    newRecall: share(found, broken),
    flakyTold: share(flakyTold, flaky),
    mainTold: share(mainTold, ofMain),
  };
}

/** An incident may be recognised by what comes after it. */
function scoreAtEnd({ story, comparisons }: Recording, find: Find): number {
  const failed = new Map<Build, Map<TestCase, Cause>>();
  for (const upload of story.uploads.filter(({ isLastOfTask }) => isLastOfTask))
    failed.set(upload.build, new Map([...(failed.get(upload.build) ?? []), ...upload.failed]));
  let [right, told] = [0, 0];
  for (const { build, again } of comparisons) {
    if (build.isDefault) continue;
    const own = new Set(build.own.map(({ cause }) => cause));
    told += again.newFailures.length;
    right += again.newFailures.filter((named) => own.has(failed.get(build)!.get(find(named))!)).length;
  }
  return share(right, told);
}

function scoreBugs({ story, bugs, catalogue }: Recording, find: Find) {
  const failures = new Map<string, string>();
  const onMain = new Set<string>();
  const placeOf = (build: { number: number }, { task, name }: TestCase) => `${build.number} ${task.slug} ${name}`;
  for (const { build, failed } of story.uploads)
    for (const [testCase, { id }] of failed) {
      failures.set(placeOf(build, testCase), id);
      if (build.isDefault) onMain.add(id);
    }
  const cases = new Map(catalogue.map((named) => [named.id, find(named)]));
  const wrongBugs = bugs.filter(({ occurrences }) => {
    const causes = occurrences.map(({ build, testCaseId }) => failures.get(placeOf(build, cases.get(testCaseId)!)));
    return new Set(causes).size > 1;
  }).length;
  return { bugs: bugs.length, trueBugs: onMain.size, wrongBugs };
}

/** What fails for certain on the default branch: a test that exists is broken while its last result there failed. */
function scoreBroken(snapshots: Recording["snapshots"], { story }: Recording, find: Find) {
  const flaky = new Set(story.flaky.map(({ testCase }) => testCase));
  const watched = new Set(story.regressions.flatMap(({ cases }) => cases));
  const failing = new Set<TestCase>();
  let [looks, rightLooks, told, right, truly, wronglyBroken, next] = [0, 0, 0, 0, 0, 0, 0];
  for (const { build: shown, uploads, broken } of snapshots) {
    for (const { build, task, attempt, cases, failed } of story.uploads.slice(next, uploads)) {
      if (!build.isDefault || build.isOld || build.outage.has(task) || attempt > 1) continue;
      for (const testCase of cases) {
        const cause = failed.get(testCase);
        if (cause && isTrouble(cause)) continue;
        if (watched.has(testCase)) failing[cause ? "add" : "delete"](testCase);
      }
    }
    next = uploads;
    const asBroken = new Set(broken.map(find));
    for (const testCase of watched) {
      const isBroken = failing.has(testCase) && exists(shown, testCase);
      // How long it takes to tell that it is gone is no mistake of the first builds without it.
      const isGone = !exists(shown, testCase) && !isLongGone(testCase, shown, story);
      if ((!isBroken && !asBroken.has(testCase)) || isGone) continue;
      looks++;
      truly += Number(isBroken);
      right += Number(isBroken && asBroken.has(testCase));
      rightLooks += Number(isBroken === asBroken.has(testCase));
    }
    const judged = [...asBroken].filter((testCase) => !flaky.has(testCase));
    told += judged.filter((testCase) => exists(shown, testCase) || isLongGone(testCase, shown, story)).length;
    wronglyBroken += judged.filter((testCase) => !watched.has(testCase)).length;
  }
  return {
    brokenRight: share(rightLooks, looks),
    wronglyBroken,
    brokenPrecision: share(right, told),
    brokenRecall: share(right, truly),
  };
}

/** So many versions of the default branch have to show that a test is no longer there; an outage shows nothing. */
const GONE_BUILDS = 20;

function isLongGone(testCase: TestCase, shown: Build, { builds }: Recording["story"]): boolean {
  const without = new Set<number>();
  for (const build of builds) {
    if (!build.isDefault || build.isOld || build.outage.has(testCase.task) || build.startsAt > shown.startsAt) continue;
    if (exists(build, testCase)) without.clear();
    else without.add(build.version);
  }
  return without.size >= GONE_BUILDS;
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
    return upload.task === task && build.isDefault && isInside && !build.outage.has(task);
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

function scoreGate({ story, gated }: Recording) {
  const isBroken = ({ build: { own, isDefault, regressions } }: GatedBuild) =>
    own.length > 0 || (isDefault && regressions.length > 0);
  const sound = gated.filter((one) => !isBroken(one));
  const lastWeek = Math.max(...gated.map(({ build }) => build.startsAt)) - WEEK_MS;
  const shareOf = (builds: readonly GatedBuild[], isGreen: (one: GatedBuild) => boolean) =>
    share(builds.filter(isGreen).length, builds.length);
  const sizeAt = (build: Build) => story.team.cases.filter((testCase) => exists(build, testCase)).length;
  const shares = gated.map(({ build, quarantined }) => (quarantined / sizeAt(build)) * 100);
  return {
    greenWithoutGate: shareOf(sound, ({ isGreenWithoutGate }) => isGreenWithoutGate),
    green: shareOf(sound, ({ isGreen }) => isGreen),
    greenInLastWeek: shareOf(
      sound.filter(({ build }) => build.startsAt > lastWeek),
      ({ isGreen }) => isGreen,
    ),
    wronglyGreen: gated.length === 0 ? Number.NaN : gated.filter(isBroken).filter(passes).length,
    quarantined: gated.length === 0 ? Number.NaN : Math.max(...shares),
  };
}

const passes = ({ isGreen, verdict }: GatedBuild): boolean => isGreen || verdict.pass;
