/** Judges the recorded builds of simulated teams, and prints how right that was: `bun test/lab/judge/judge.ts`. */

import { HABITS } from "../simulation/habits.ts";
import { createBreakers } from "../simulation/habits/breakers.ts";
import { createDevices } from "../simulation/habits/devices.ts";
import { createLarge } from "../simulation/habits/large.ts";
import { createNamelessMachines } from "../simulation/habits/machines.ts";
import { createPeriodic } from "../simulation/habits/periodic.ts";
import { createStory, type Load, LOADS, type StoryOptions } from "../simulation/story.ts";
import type { Story } from "../simulation/builds.ts";
import { CONSTANTS, type Constants, type Judgement, weigh } from "../../../src/rules/odds.ts";
import { createHistory } from "./history.ts";
import { record, type Recorded } from "./record.ts";

const END = Date.UTC(2026, 0, 30, 18);

const ONLY = process.env["TEAMS"]?.split(";");

export const TEAMS: Record<string, (seed: number) => Story> = {
  usual: (seed) => createStory(LOADS.normal, options(seed, true)),
  "usual, no retries": (seed) => createStory(LOADS.normal, options(seed, false)),
  monorepo: (seed) => HABITS.monorepo(options(seed, false)),
  names: (seed) => HABITS.names(options(seed, false)),
  releases: (seed) => HABITS.releases(options(seed, false)),
  breakers: (seed) => createBreakers(options(seed, false)),
  nameless: (seed) => createNamelessMachines(options(seed, false)),
  large: (seed) => createLarge(options(seed, false)),
  devices: (seed) => createDevices(options(seed, false)),
  periodic: (seed) => createPeriodic(options(seed, false)),
  machines: (seed) => HABITS.machines(options(seed, false)),
  young: (seed) => createStory(YOUNG, options(seed, false)),
};

/** Ten to forty tests, and some weeks of builds: nothing has taught yet which tests are flaky. */
const YOUNG: Load = {
  ...{ tasks: 1, casesPerTask: [10, 40], flaky: 1, rates: [0.05, 0.2] },
  ...{ pullRequests: 22, breaking: 0.3, directCommits: 15 },
  regressions: [[3, 6]],
};

const options = (seed: number, retries: boolean): StoryOptions => ({ seed, retries, end: END, keys: "build" });

export function play({ builds }: Recorded, constants: Constants = CONSTANTS) {
  const history = createHistory(constants);
  return builds.map((build) => {
    const facts = history.factsOf(build);
    const judgements = weigh(facts, constants);
    history.add(build, judgements);
    const flaky = build.runs
      .flatMap(({ failures }) => failures.map(({ test }) => test))
      .filter((test) => history.flakiness(test) > FLAKY);
    return { build, facts, judgements, flaky, flakiness: history.flakiness };
  });
}

/** From this chance on a test is called flaky. */
const FLAKY = 0.95;
/** Rates that have to be found. */
const COUNTED = 0.05;

type Played = ReturnType<typeof play>;

const ratio = (part: number, whole: number) => (whole === 0 ? "–" : (part / whole).toFixed(2));

function scoreFlaky({ flaky, tests }: Recorded, played: Played) {
  const sound = new Set(played.flatMap(({ flaky: called }) => called.filter((test) => !flaky.has(test))));
  const { flakiness } = played.at(-1)!;
  const called = Array.from({ length: tests }, (_, test) => test).filter((test) => flakiness(test) > FLAKY);
  const counted = [...flaky].filter(([, rate]) => rate >= Math.min(COUNTED, Math.max(...flaky.values()) / 2));
  const right = called.filter((test) => flaky.has(test)).length;
  const found = counted.filter(([test]) => called.includes(test)).length;
  return `${ratio(right, called.length)} / ${ratio(found, counted.length)}, ${sound.size} sound`;
}

export function score(recorded: Recorded, played: Played) {
  const { team, seed } = recorded;
  let [told, right, own, guilty, missed, innocent, blamed] = [0, 0, 0, 0, 0, 0, 0];
  let [loss, builds] = [0, 0];
  const tenths = Array.from({ length: 10 }, () => ({ count: 0, change: 0 }));
  for (const { build, judgements } of played) {
    if (build.pullRequest === null) continue;
    const truth = new Map(build.runs.flatMap(({ failures }) => failures.map((one) => [one.test, one.truth])));
    const isOwn = ({ test }: Judgement) => build.own.has(truth.get(test)!.id);
    const asChange = judgements.filter(({ kind }) => kind === "change");
    told += asChange.length;
    right += asChange.filter(isOwn).length;
    own += judgements.filter(isOwn).length;
    const isGuilty = judgements.some(isOwn);
    if (isGuilty) {
      guilty++;
      if (asChange.length === 0) missed++;
    } else {
      innocent++;
      if (asChange.length > 0) blamed++;
    }
    const most = Math.max(0, ...judgements.filter((one) => isGuilty === isOwn(one)).map(({ share }) => share));
    loss -= Math.log(Math.max(0.001, isGuilty ? most : 1 - most));
    builds++;
    for (const one of judgements) {
      const tenth = tenths[Math.min(9, Math.floor(one.share * 10))]!;
      tenth.count++;
      if (isOwn(one)) tenth.change++;
    }
  }
  return {
    row: {
      team,
      seed,
      flaky: scoreFlaky(recorded, played),
      blame: `${ratio(right, told)} / ${ratio(right, own)}`,
      missed: `${missed} of ${guilty}`,
      blamed: `${blamed} of ${innocent}`,
    },
    tenths,
    loss: (100 * loss) / builds,
  };
}

if (import.meta.main) {
  const seeds = process.argv.slice(2).map(Number);
  for (const team of ONLY ?? Object.keys(TEAMS))
    for (const seed of seeds.length > 0 ? seeds : [7, 11]) {
      const began = performance.now();
      const recorded = record(team, TEAMS[team]!(seed));
      const recordedAt = performance.now();
      const played = play(recorded);
      const { row, tenths, loss } = score(recorded, played);
      console.log(
        JSON.stringify(row),
        loss.toFixed(1),
        `${Math.round(recordedAt - began)} + ${Math.round(performance.now() - recordedAt)} ms`,
      );
      console.log("   ", tenths.map(({ count, change }) => `${change}/${count}`).join(" "));
    }
}
