/** A small run of the simulation reaches its goals; and its scores tell the truth from lies. */

import { describe, expect, test } from "bun:test";
import { createHarness } from "../../harness.ts";
import { startGate } from "./gate.ts";
import { type Column, missedGoals, toTable } from "./goals.ts";
import type { HabitName } from "./habits.ts";
import { type Ask, type Named, play, type Recording } from "./play.ts";
import { score } from "./score.ts";
import type { Story } from "./builds.ts";
import { createStory, type Load, LOADS } from "./story.ts";
import type { TestCase } from "./team.ts";

const END = Date.UTC(2026, 0, 30, 18);

const toNamed = ({ task, name }: TestCase): Named => ({ taskSlug: task.slug, suite: "", name });
const idOf = ({ task, name }: TestCase) => `${task.slug} ${name}`;

/** What an Assay would answer that knows the truth. */
function tellTruth(story: Story): Recording {
  const flaky = story.flaky.map(({ testCase }) => testCase);
  const watched = story.regressions.flatMap(({ cases }) => cases);
  const inARow = new Map(watched.map((testCase) => [testCase, 0]));
  const recording: Recording = {
    story,
    answers: [],
    reopened: [],
    snapshots: [],
    comparisons: [],
    catalogue: [],
    bugs: [],
    gated: [],
    seconds: 1,
  };
  const bugs = new Map<string, Recording["bugs"][number]>();
  const told = new Set<TestCase>();
  for (const [index, upload] of story.uploads.entries()) {
    const { build, task, attempt, failed } = upload;
    const isMain = build.isDefault;
    const fresh = [...failed].flatMap(([testCase, { kind }]) => {
      const isOwn = kind === "pull request" || (isMain && kind === "regression" && !told.has(testCase));
      if (isMain && kind === "regression") told.add(testCase);
      return isOwn ? [toNamed(testCase)] : [];
    });
    if (upload.isLastOfTask)
      recording.answers.push({ upload, newFailures: fresh, flakyFailures: [], mainFailures: [] });
    if (isMain) {
      for (const [testCase, { id }] of failed) {
        if (!bugs.has(id)) bugs.set(id, { title: id, occurrences: [] });
        bugs.get(id)!.occurrences.push({ build, testCaseId: idOf(testCase) });
      }
      if (!build.outage.has(task) && attempt === 1)
        for (const [testCase, count] of inARow)
          if (testCase.task === task) inARow.set(testCase, failed.has(testCase) ? count + 1 : 0);
    }
    if (!upload.isLastOfBuild) continue;
    const isBroken = build.own.length > 0 || (isMain && build.regressions.length > 0);
    const verdict = { pass: !isBroken, reasons: [] };
    recording.gated.push({ build, isGreenWithoutGate: false, isGreen: !isBroken, verdict, quarantined: 0 });
    const asked = { executionId: String(build.number), baselineId: "1" };
    recording.comparisons.push({ build, first: asked, again: { ...asked, newFailures: [] } });
    const broken = watched.filter((testCase) => inARow.get(testCase)! > 0);
    if (isMain)
      recording.snapshots.push({ build, uploads: index + 1, flaky: flaky.map(toNamed), broken: broken.map(toNamed) });
  }
  recording.bugs = [...bugs.values()];
  recording.catalogue = story.team.cases.map((testCase) => {
    return { ...toNamed(testCase), id: idOf(testCase), health: flaky.includes(testCase) ? "flaky" : "healthy" };
  });
  return recording;
}

const createSmall = (seed: number, retries: boolean) => createStory(LOADS.small, { seed, retries, end: END });
const missed = (recording: Recording, habit?: HabitName) => {
  const column = { title: "", retries: false, ...(habit ? { habit } : {}), scores: [score(recording)] };
  return missedGoals([column]).map((one) => one.replace(/^: /, ""));
};

describe("a story", () => {
  const tell = (seed: number) =>
    JSON.stringify(
      createSmall(seed, true).uploads.map(({ build, task, at, failed }) => [
        ...[build.branch, build.commit, task.slug, at],
        [...failed].map(([testCase, { id }]) => [testCase.name, id]),
      ]),
    );

  test("is the same for a seed, and another one for another", () => {
    expect(tell(1)).toBe(tell(1));
    expect(tell(1)).not.toBe(tell(2));
  });

  test("has a main that regresses, outages, files that move, and pull requests that break something", () => {
    for (const seed of [1, 2, 3]) {
      const { builds, regressions, moved, uploads, flaky } = createSmall(seed, true);
      for (const { from, until } of regressions)
        expect(builds.some(({ isDefault, version }) => isDefault && version >= from && version < until)).toBeTrue();
      for (const isMain of [true, false])
        expect(builds.filter(({ outage, isDefault }) => outage.size > 0 && isDefault === isMain)).toHaveLength(1);
      expect(moved.length).toBeGreaterThan(0);
      expect(builds.filter(({ own }) => own.length > 0).length).toBeGreaterThan(5);
      expect(uploads.some(({ attempt }) => attempt > 1)).toBeTrue();
      const shaky = new Set(flaky.map(({ testCase }) => testCase));
      for (const { failed } of uploads)
        for (const [testCase, { kind }] of failed) if (kind === "flaky") expect(shaky.has(testCase)).toBeTrue();
    }
  });

  test("runs again only what has failed, and ends each build once", () => {
    const { uploads, builds } = createSmall(1, true);
    for (const { attempt, cases, task, build } of uploads.filter(({ attempt }) => attempt > 1)) {
      const before = uploads.find((one) => one.build === build && one.task === task && one.attempt === attempt - 1)!;
      expect(cases).toEqual([...before.failed.keys()]);
    }
    expect(
      uploads
        .filter(({ isLastOfBuild }) => isLastOfBuild)
        .map(({ build }) => build.number)
        .sort(),
    ).toEqual(builds.map(({ number }) => number));
  });
});

describe("the score", () => {
  const story = createSmall(1, false);

  test("of the truth reaches all goals", () => {
    expect(missed(tellTruth(story))).toEqual([]);
  });

  test("of calling every failure new misses the precision and nothing else", () => {
    const recording = tellTruth(story);
    for (const answer of recording.answers) answer.newFailures = [...answer.upload.failed.keys()].map(toNamed);
    expect(missed(recording)).toEqual(["new failures: precision"]);
    expect(score(recording)).toMatchObject({ newRecall: 1, toldInBuild: 1 });
  });

  test("of calling nothing new misses the recall, and the build that tells of a regression", () => {
    const recording = tellTruth(story);
    for (const answer of recording.answers) answer.newFailures = [];
    expect(missed(recording)).toEqual([
      "new failures: precision",
      "new failures: recall",
      "build that tells of a regression",
    ]);
  });

  test("counts a sound test that is called flaky, and turns of the flaky ones", () => {
    const recording = tellTruth(story);
    const sound = story.team.cases.find((one) => !story.flaky.some(({ testCase }) => testCase === one))!;
    for (const one of recording.catalogue) if (one.id === idOf(sound)) one.health = "flaky";
    recording.snapshots[5]!.flaky = [toNamed(sound)];
    const { flakyPrecision, soundCalledFlaky, flakyTurns } = score(recording);
    expect([flakyPrecision, soundCalledFlaky]).toEqual([story.flaky.length / (story.flaky.length + 1), 1]);
    // They become flaky, recover once, and become flaky again.
    expect(flakyTurns).toBe(3 * story.flaky.length);
  });

  test("finds a bug of two causes, too many bugs, and a baseline that moved", () => {
    const recording = tellTruth(story);
    const [first, second] = recording.bugs;
    const joined = [...first!.occurrences, ...second!.occurrences];
    expect(missed({ ...recording, bugs: [{ title: "", occurrences: joined }] })).toEqual([
      "bug reports of several causes",
    ]);
    const split = [...recording.bugs, ...recording.bugs, ...recording.bugs];
    expect(missed({ ...recording, bugs: split })).toEqual(["bug reports for each cause"]);
    recording.comparisons[3]!.again = { ...recording.comparisons[3]!.again, baselineId: "2" };
    expect(missed(recording)).toEqual(["comparisons whose baseline moved"]);
  });

  test("sees that a broken test is not told", () => {
    const recording = tellTruth(story);
    for (const snapshot of recording.snapshots) snapshot.broken = [];
    expect(missed(recording)).toEqual(["broken: share right"]);
  });

  test("counts builds that a gate turns green wrongly, and the largest number of quarantined tests", () => {
    const recording = tellTruth(story);
    expect(missed(recording, "gate")).toEqual([]);
    expect(score(recording)).toMatchObject({ green: 1, greenWithoutGate: 0, wronglyGreen: 0, quarantined: 0 });
    const isOf = (kind: "own" | "regressions") =>
      recording.gated.find(({ build }) => build[kind].length > 0 && build.isDefault === (kind === "regressions"))!;
    isOf("own").isGreen = true;
    isOf("regressions").verdict.pass = true;
    recording.gated[7]!.quarantined = 1;
    expect(score(recording)).toMatchObject({ green: 1, wronglyGreen: 2 });
    expect(missed(recording, "gate")).toEqual(["broken and green because of the gate", "quarantined at most, percent"]);
  });
});

test("three weeks of a small team reach the goals, with and without retries, and with a gate", async () => {
  const { ask, addProject, acme, database } = await createHarness();
  const sendTo =
    (root: string, key: string): Ask =>
    async (method, path, body) => {
      const answer = await ask(`${method} ${root}${path}`, { key, ...(body === undefined ? {} : { body }) });
      if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
      return answer.body;
    };
  const askTeam = sendTo(`/teams/${acme.team}`, acme.teamKey);
  const run = async (title: string, retries: boolean, load: Load, isGated = false): Promise<Column> => {
    const { project, key } = await addProject(acme);
    const send = sendTo(`/projects/${project}`, key);
    // A server takes nothing from the future, and forgets what is long past.
    const story = createStory(load, { seed: 1, retries, end: Date.now() - 3_600_000 });
    const gate = isGated ? await startGate(database, { project, ask: send, askTeam }) : undefined;
    const scores = [score(await play(story, send, gate))];
    return { title, retries, ...(isGated ? { habit: "gate" } : {}), scores };
  };
  // So many tests that 1 % of them is more than none.
  const large: Load = { ...LOADS.small, casesPerTask: [105, 110] };
  const [gated, ...columns] = await Promise.all([
    run("with a gate", true, large, true),
    run("with retries", true, LOADS.small),
    run("without", false, LOADS.small),
  ]);
  expect(missedGoals(columns), toTable(columns)).toEqual([]);
  expect(missedGoals([gated]), toTable([gated])).toEqual([]);
  expect(gated.scores[0]!.quarantined).toBeGreaterThan(0);
}, 300_000);
