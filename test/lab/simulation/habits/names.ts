/** The usual builds, of a team that renames files, draws values into names, names tests twice, deletes them and brings them back. */

import type { Regression, Story } from "../builds.ts";
import { createRandom, type Random } from "../../../random.ts";
import { type Alter, createStory, LOADS, type StoryOptions } from "../story.ts";
import type { TestCase } from "../team.ts";

const WEEKS = 3;
/** Of the files, each week. */
const RENAMED = 0.05;
const DRAWN = 60;
const TWICE = 20;
const AWAY = 40;
/** Deleted instead of mended. */
const GIVEN_UP = [18, 26];

export const createNames = (options: StoryOptions): Story => createStory(LOADS.normal, options, alter);

const alter: Alter = ({ seed, team, taken, flaky, versions, breakSome }) => {
  const random = createRandom(seed, "names");
  const settled = team.cases.filter(({ added, removed }) => !added && !removed);

  const moved: TestCase[] = [];
  const files = [...Map.groupBy(team.cases, ({ task, file }) => `${task.slug} ${file}`).values()];
  for (let week = 0; week < WEEKS; week++)
    for (const cases of random.sample(files, Math.ceil(files.length * RENAMED))) {
      if (cases.some((testCase) => testCase.moved.length > 0)) continue;
      const at = Math.floor(((week + random.next()) / WEEKS) * versions);
      const rename = random.pick(RENAMES);
      for (const testCase of cases) testCase.moved.push({ at, pullRequest: null, file: rename(testCase.file) });
      moved.push(...cases);
    }

  const shaky = new Set(flaky.map(({ testCase }) => testCase));
  const drawn = [...random.sample(settled, DRAWN), ...random.sample([...shaky], 4)];
  for (const testCase of drawn) testCase.shownAs = drawName(testCase.name, random);

  const plain = settled.filter((testCase) => !taken.has(testCase) && !testCase.shownAs);
  for (const testCase of random.sample(plain, TWICE)) team.cases.push({ ...testCase });
  for (const testCase of random.sample(plain, AWAY)) {
    const from = random.integer(5, versions - 10);
    testCase.away = { from, until: random.chance(0.6) ? from + random.integer(5, 60) : Infinity };
  }

  const regressions = GIVEN_UP.map((count, index): Regression => {
    const from = Math.floor(versions * (0.2 + 0.25 * index));
    const until = from + random.integer(8, 14);
    // Of several areas, for one reason: a feature is taken out, and its tests some days later.
    const { cause } = breakSome({ id: `given up ${index + 1}`, kind: "regression" }, 1);
    const task = random.pick(team.tasks);
    const own = plain.filter((testCase) => testCase.task === task && !taken.has(testCase) && !testCase.away);
    const cases = random.sample(own, count);
    for (const testCase of cases) {
      taken.add(testCase);
      testCase.away = { from: until, until: Infinity };
    }
    return { cause, cases, from, until };
  });
  return { moved, regressions };
};

const RENAMES: ((file: string) => string)[] = [
  (file) => file.replace(/([^/]+)$/, "shop/$1"),
  (file) => file.replace(/([^/]+?)((?:\.\w+)?\.\w+)$/, "$1Flow$2"),
  (file) => file.replace(/\/([^/]+)\/([^/]+)$/, "/$1-v2/$2"),
];

/** What is drawn stands at the end, see `DRAWN` in score.ts. */
function drawName(name: string, random: Random): (random: Random) => string {
  const kind = random.integer(0, 2);
  return (one) => {
    if (kind === 0) return `${name}[seed=${one.integer(10_000, 2_000_000_000)}]`;
    if (kind === 1) return `${name} on ${new Date(Date.UTC(2026, 0, one.integer(1, 700))).toISOString().slice(0, 10)}`;
    return `${name} of order ${one.text(8, "0123456789abcdef")}-${one.text(4, "0123456789abcdef")}-4a1b-8c2d-${one.text(12, "0123456789abcdef")}`;
  };
}
