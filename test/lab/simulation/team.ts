/** A team's tasks and test cases: the names and files that its reports have. */

import type { Language } from "./failures.ts";
import type { Random } from "../../random.ts";

export type Task = {
  slug: string;
  language: Language;
  /** Minutes from the start of a build until its report is there. */
  minutes: number;
  /** Of a package of a monorepo: it ends with a slash. */
  folder?: string;
};

export const TASKS: readonly Task[] = [
  { slug: "unit", language: "vitest", minutes: 3 },
  { slug: "e2e", language: "cypress", minutes: 14 },
  { slug: "api", language: "pytest", minutes: 6 },
  { slug: "backend", language: "java", minutes: 9 },
  { slug: "worker", language: "jest", minutes: 4 },
];

/** What a pull request or a commit to main does to a test case: `at` is main's version, Infinity while it is not there. */
export type Change = { at: number; pullRequest: number | null };

export type TestCase = {
  task: Task;
  area: string;
  /** As its report calls it; no two of a task are called the same. */
  name: string;
  file: string;
  added: Change | null;
  removed: Change | null;
  /** Not there from one version of the default branch until before another. */
  away: { from: number; until: number } | null;
  moved: (Change & { file: string })[];
  /** Milliseconds. */
  duration: number;
  /** Its name in one run, where a part of it is drawn; it begins with its name. */
  shownAs: ((random: Random) => string) | null;
};

export type Team = {
  tasks: Task[];
  cases: TestCase[];
  /** A new test of the task in one of its areas, which nobody has added yet. */
  create: (task: Task, area: string) => TestCase;
};

export const NOUNS = [
  ...["invoice", "voucher", "basket", "shipping", "refund", "customer", "search", "stock", "price", "review"],
  ...["wishlist", "address", "payment", "receipt", "category", "session", "profile", "newsletter", "coupon", "tax"],
  ...["delivery", "return", "supplier", "catalogue", "banner", "locale", "currency", "discount", "gift", "bundle"],
];
const VERBS = [
  ...["applies", "refuses", "shows", "keeps", "removes", "sorts", "counts", "rounds", "sends", "stores", "merges"],
  ...["copies", "locks", "restores", "validates", "filters", "groups", "imports", "exports", "archives"],
];
const OBJECTS = [
  ...["the draft", "an empty list", "old entries", "the total", "two owners", "a guest", "the last page", "duplicates"],
  ...["foreign names", "the default", "a deleted parent", "long texts", "expired ones", "the first one", "all rows"],
];
const WHEN = ["", " when logged out", " twice", " on mobile", " after a change", " over midnight", " without rights"];

const capital = (word: string) => word[0]!.toUpperCase() + word.slice(1);
const camel = (text: string) => text.replace(/\W+(\w)/g, (_, letter: string) => letter.toUpperCase());

const fileOf = ({ language, folder = "" }: Task, area: string): string => folder + pathOf(language, area);

function pathOf(language: Language, area: string): string {
  switch (language) {
    case "vitest":
      return `src/${area}/${area}.test.ts`;
    case "jest":
      return `worker/jobs/${area}.spec.ts`;
    case "cypress":
      return `cypress/e2e/${area}.cy.ts`;
    case "pytest":
      return `tests/api/test_${area}.py`;
    case "java":
      return `src/test/java/com/acme/shop/${capital(area)}ServiceTest.java`;
  }
}

const nameOf = ({ language }: Task, area: string, sentence: string): string => {
  switch (language) {
    case "vitest":
      return `${capital(area)} > ${sentence}`;
    case "cypress":
      return `${capital(area)} ${sentence}`;
    case "pytest":
      return `test_${area}_${sentence.replaceAll(" ", "_")}`;
    case "java":
      return camel(`${area} ${sentence}`);
    case "jest":
      return `${area}: ${sentence}`;
  }
};

/** The project's own code that tests of an area run through. */
export const sourceOf = ({ language, folder = "" }: Task, area: string): { file: string; functions: string[] } => {
  const { file, functions } = sourceIn(language, area);
  return { file: folder + file, functions };
};

const sourceIn = (language: Language, area: string): { file: string; functions: string[] } => {
  const name = capital(area);
  switch (language) {
    case "vitest":
      return { file: `src/${area}/${area}.ts`, functions: [`load${name}`, `save${name}`, `to${name}`] };
    case "jest":
      return { file: `worker/lib/${area}.ts`, functions: [`run${name}`, `retry${name}`, `close${name}`] };
    case "cypress":
      return { file: `cypress/pages/${area}.ts`, functions: [`${name}Page.open`, `${name}Page.submit`] };
    case "pytest":
      return { file: `shop/${area}.py`, functions: [`create_${area}`, `find_${area}`, `send_${area}`] };
    case "java":
      return { file: `src/main/java/com/acme/shop/${name}Service.java`, functions: ["find", "save", "publish"] };
  }
};

/** `tasks`: the first ones of `TASKS`, or others. */
export type TeamSize = { tasks: number | readonly Task[]; casesPerTask: [number, number] };

export function createTeam(random: Random, { tasks: wanted, casesPerTask }: TeamSize): Team {
  const tasks = typeof wanted === "number" ? TASKS.slice(0, wanted) : [...wanted];
  const sentences = VERBS.flatMap((verb) => OBJECTS.flatMap((what) => WHEN.map((when) => `${verb} ${what}${when}`)));
  const taken = new Set<string>();
  const create = (task: Task, area: string): TestCase => {
    let name: string;
    do name = nameOf(task, area, random.pick(sentences));
    while (taken.has(`${task.slug} ${name}`));
    taken.add(`${task.slug} ${name}`);
    const duration = random.logBetween(task.slug === "e2e" ? 800 : 3, task.slug === "e2e" ? 12_000 : 900);
    return {
      task,
      area,
      name,
      file: fileOf(task, area),
      added: null,
      removed: null,
      away: null,
      moved: [],
      duration,
      shownAs: null,
    };
  };
  const cases = tasks.flatMap((task) => {
    const wanted = random.integer(...casesPerTask);
    const areas = random.sample(NOUNS, Math.max(3, Math.round(wanted / 11)));
    return Array.from({ length: wanted }, (_, index) => create(task, areas[index % areas.length]!));
  });
  return { tasks, cases, create };
}
