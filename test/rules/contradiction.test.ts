import { expect, test } from "bun:test";
import { addContradicted, earlierByFar, groupRuns, toCompare } from "../../src/rules/contradiction.ts";

const run = (id: number, hasFailed: boolean, commit = "abcdef0", taskSlug = "unit") => ({
  ...{ id: `r${String(id).padStart(3, "0")}`, hasFailed, commit, taskSlug },
});
/** As the store tells it: nothing of groups in which nothing has failed. */
const compare = (runs: ReturnType<typeof run>[], before: ReturnType<typeof run>[] = []) => {
  const told = new Map(
    [...groupRuns(runs)].flatMap(([name, group]) => {
      const same = before.filter(({ commit, taskSlug }) => commit === group.commit && taskSlug === group.taskSlug);
      const last = same.toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, 20);
      return group.hasFailed || last.some(({ hasFailed }) => hasFailed) ? [[name, last] as const] : [];
    }),
  );
  return Object.fromEntries(toCompare(runs, told));
};

test("a run is compared with those counted before it, in the same batch and earlier, where either failed", () => {
  expect(compare([run(1, false), run(2, true), run(3, false)])).toEqual({ r002: ["r001"], r003: ["r002"] });
  expect(compare([run(5, false)], [run(1, true), run(2, false)])).toEqual({ r005: ["r001"] });
  expect(compare([run(5, true)], [run(1, true), run(2, false)])).toEqual({ r005: ["r002", "r001"] });
});

test("a run is compared with the last one of those long before it, and only where none is nearer", () => {
  const at = (hours: number, hasFailed: boolean) => ({
    ...run(0, hasFailed),
    id: `${(hours * 3_600_000).toString(16).padStart(12, "0")}-7000`,
  });
  const [first, second, third, fourth] = [at(0, true), at(24, false), at(48, false), at(49, false)];
  expect(compare([first!, second!, third!])).toEqual({ [second!.id]: [first!.id] });
  expect(compare([third!], [first!])).toEqual({ [third!.id]: [first!.id] });
  expect(compare([fourth!], [first!, third!])).toEqual({});
  expect(compare([fourth!], [first!, { ...third!, hasFailed: true }])).toEqual({ [fourth!.id]: [third!.id] });
});

test("what is green everywhere is compared with nothing", () => {
  expect(compare([run(1, false), run(2, false)], [run(0, false)])).toEqual({});
});

test("runs of another task, or on another commit, are not compared; a short hash means all that begin with it", () => {
  expect(compare([run(1, true), run(2, false, "abcdef0", "e2e"), run(3, false, "bbbbbbb")])).toEqual({});
  expect(
    compare([
      run(1, true, "abcdef01"),
      run(2, false, "abcdef02"),
      run(3, false, "ABCDEF0"),
      run(4, false, "abcdef0123"),
    ]),
  ).toEqual({ r003: ["r001"], r004: ["r001"] });
});

test("names with blanks are not taken for each other", () => {
  const before = [run(1, true, "a", "b c"), run(2, true, "a b", "c")];
  expect(compare([run(3, false, "a", "b c"), run(4, false, "a b", "c")], before)).toEqual({
    r003: ["r001"],
    r004: ["r002"],
  });
});

test("of many the last twenty by id count, whether they have failed or not", () => {
  const before = Array.from({ length: 30 }, (_, index) => run(index, index === 12 || index === 9));
  // Those from 12 on in the batch, and those from 13 on, are twenty.
  expect(compare([run(30, false), run(31, false), run(32, false), run(33, false)], before)).toEqual({
    ...{ r030: ["r012"], r031: ["r012"], r032: ["r012"] },
  });
});

test("runs may be counted in another order than that of their ids", () => {
  expect(compare([run(9, false), run(3, true), run(5, false)])).toEqual({ r003: ["r009"], r005: ["r003"] });
});

test("a case is contradicted where it passed in one and failed in the other; a skip says nothing", () => {
  const contradicted = new Set<number>();
  const ours = { testCases: [1, 2, 3, 4, 5, 7, 8], statuses: "pfpFsPp" };
  const theirs = { testCases: [1, 2, 3, 5, 6, 7, 8], statuses: "pPfffFp" };
  addContradicted(contradicted, ours, theirs);
  expect([...contradicted]).toEqual([2, 3, 7]);
});

test("half a day apart, what failed first and passes now contradicts itself, and what began to fail does not", () => {
  const outcomes = (statuses: string) => ({ testCases: [1, 2, 3], statuses });
  const of = (ours: string, theirs: string, earlier?: "ours" | "theirs") => {
    const found = new Set<number>();
    addContradicted(found, outcomes(ours), outcomes(theirs), earlier);
    return [...found];
  };
  expect(of("pfp", "fpp")).toEqual([1, 2]);
  expect(of("pfp", "fpp", "theirs")).toEqual([1]);
  expect(of("pfp", "fpp", "ours")).toEqual([2]);
  const idOf = (hours: number) => Bun.randomUUIDv7("hex", Date.UTC(2026, 0, 1) + hours * 3_600_000);
  expect([earlierByFar(idOf(13), idOf(0)), earlierByFar(idOf(0), idOf(13))]).toEqual(["theirs", "ours"]);
  expect([earlierByFar(idOf(11), idOf(0)), earlierByFar(idOf(0), idOf(11))]).toEqual([undefined, undefined]);
});
