import { describe, expect, test } from "bun:test";
import { createFileMatch, hashShard, planShards, splitFiles, toFileName } from "../../src/rules/plan.ts";
import { createRandom } from "../random.ts";

const timing = (file: string, ms: number | null = null) => ({ file, ms });
const loads = (planned: ReturnType<typeof planShards>, shards: number) =>
  Array.from({ length: shards }, (_, index) =>
    planned.filter(({ shard }) => shard === index + 1).reduce((sum, { ms }) => sum + ms, 0),
  );

describe("planShards", () => {
  test("puts the longest first, each into the emptiest shard", () => {
    const timings = [timing("a", 50), timing("b", 70), timing("c", 40), timing("d", 60), timing("e", 30)];
    expect(planShards(timings, 2)).toEqual([
      { file: "a", ms: 50, shard: 2 },
      { file: "b", ms: 70, shard: 1 },
      { file: "c", ms: 40, shard: 1 },
      { file: "d", ms: 60, shard: 2 },
      { file: "e", ms: 30, shard: 1 },
    ]);
  });

  test("is the same for the same timings in any order, also where many take equally long", () => {
    const { next: random } = createRandom(3);
    const timings = Array.from({ length: 200 }, (_, index) =>
      timing(`t/${index}.ts`, index % 7 === 0 ? null : index % 5),
    );
    const shuffled = timings.map((entry) => ({ entry, at: random() })).sort((a, b) => a.at - b.at);
    const again = planShards(
      shuffled.map(({ entry }) => entry),
      7,
    );
    expect(again).toEqual(planShards(timings, 7));
  });

  test("takes what is not known for the median of what is", () => {
    const ms = (...known: (number | null)[]) =>
      planShards([...known.map((ms, index) => timing(`k${index}`, ms)), timing("x")], 1).at(-1)!.ms;
    expect([ms(10, 1_000, 30), ms(10, 21), ms(5), ms(), ms(null)]).toEqual([30, 16, 5, 0, 0]);
  });

  test("spreads files that take no time by their number", () => {
    const planned = planShards(
      Array.from({ length: 10 }, (_, index) => timing(`${index}`, 0)),
      3,
    );
    const counts = [1, 2, 3].map((shard) => planned.filter((file) => file.shard === shard).length);
    expect(counts).toEqual([4, 3, 3]);
  });

  test("has shards without files where there are more of them, and as many as one likes", () => {
    expect(planShards([timing("a", 1), timing("b", 1)], 9_999).map(({ shard }) => shard)).toEqual([1, 2]);
    expect(planShards([], 4)).toEqual([]);
  });

  test("holds 400 skewed durations within 1 % of each other", () => {
    const { next: random } = createRandom(11);
    const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const timings = Array.from({ length: 400 }, (_, index) =>
      timing(`${index}`, Math.round(800 * Math.exp(1.2 * normal()))),
    );
    const sums = loads(planShards(timings, 4), 4);
    expect(Math.max(...sums) / Math.min(...sums)).toBeLessThan(1.01);
  });
});

test.each([
  ["./a.test.ts", "a.test.ts"],
  ["/work/app/src/a.ts", "src/a.ts"],
  ["/elsewhere/src/a.ts", "/elsewhere/src/a.ts"],
  [".\\src\\a.ts", "src/a.ts"],
  ["src//x/../a.ts", "src/a.ts"],
  ["../web/a.ts", "web/a.ts"],
  ["/home/runner/work/web/web/src/a.ts", "src/a.ts"],
])("the name of %s is %s", (file, name) => {
  expect(toFileName(file, "/work/app")).toBe(name);
});

describe("createFileMatch", () => {
  const known = [
    "src/a.ts",
    "packages/web/src/a.ts",
    "packages/web/b.ts",
    "packages/api/b.ts",
    "/usr/src/one/c/d.ts",
    "e.ts",
  ];
  const match = createFileMatch(known);
  test.each([
    ["the same", "src/a.ts", "src/a.ts"],
    ["begun further up", "repository/packages/web/b.ts", "packages/web/b.ts"],
    ["begun further down", "api/b.ts", "packages/api/b.ts"],
    ["the longest end of several", "x/packages/web/src/a.ts", "packages/web/src/a.ts"],
    ["two ends of one length", "b.ts", undefined],
    ["another folder", "packages/other/b.ts", undefined],
    ["the end of a name, not of a path", "some-e.ts", undefined],
    ["two absolute places", "/home/me/app/c/d.ts", "/usr/src/one/c/d.ts"],
    ["two absolute places that share the name alone", "/home/me/app/d.ts", undefined],
    ["none", "new.ts", undefined],
  ])("%s", (_, name, file) => {
    expect(match(name)).toBe(file);
  });
});

describe("splitFiles", () => {
  const directory = "/work/app";
  const planOf = (files: readonly { file: string; ms: number; shard: number }[], index: number) => ({
    files: files.flatMap(({ file, shard }) => (shard === index ? [file] : [])),
    timings: Object.fromEntries(files.map(({ file, ms }) => [file, ms])),
  });

  test("puts every file into exactly one shard, whatever the others see and however they spell it", () => {
    for (let seed = 1; seed <= 60; seed++) {
      const { next: random } = createRandom(seed);
      const pick = (max: number) => Math.floor(random() * max);
      const all = Array.from(
        { length: 5 + pick(60) },
        (_, index) => `p${pick(3)}/t${pick(3)}/f${index % (3 + pick(40))}.ts`,
      );
      const shards = 1 + pick(6);
      const prefix = ["", "repository/", "/other/place/"][pick(3)]!;
      const known = [...new Set(all)].filter(() => random() < 0.7).map((file) => timing(prefix + file, pick(900)));
      const planned = random() < 0.2 ? undefined : planShards([...known, timing("gone.ts", 5_000)], shards);
      const runs = new Map<string, number>();
      for (let index = 1; index <= shards; index++) {
        // A shard may have a file more or less, and its own spelling.
        const spell = (file: string) => ["", "./", `${directory}/`][pick(3)]! + file;
        const given = all.filter(() => seed % 2 === 0 || random() < 0.95);
        const plan = planned && planOf(planned, index);
        const extra = index === 2 ? ["only/here.ts"] : [];
        for (const { name } of splitFiles([...given, ...extra].map(spell), {
          plan,
          shard: { index, of: shards },
          directory,
        }))
          runs.set(name, (runs.get(name) ?? 0) + 1);
      }
      expect([seed, [...runs].filter(([, times]) => times > 1)]).toEqual([seed, []]);
      if (seed % 2 === 0) expect([seed, all.filter((file) => !runs.has(file))]).toEqual([seed, []]);
      expect(runs.has("gone.ts")).toBe(false);
    }
  });

  test("keeps the spelling and the order of what is given, each file once", () => {
    const plan = planOf(planShards([timing("src/b.ts", 9), timing("src/a.ts", 9)], 1), 1);
    const own = splitFiles(["./src/b.ts", "/work/app/src/a.ts", "src/b.ts"], {
      plan,
      shard: { index: 1, of: 1 },
      directory,
    });
    expect(own).toEqual([
      { file: "./src/b.ts", name: "src/b.ts", known: "src/b.ts" },
      { file: "/work/app/src/a.ts", name: "src/a.ts", known: "src/a.ts" },
    ]);
  });

  test("spreads by hash what no plan knows, the same on every machine", () => {
    // As sha256sum tells: the first 32 bits of it, modulo 4.
    const shards = ["a.ts", "b.ts", "c.ts", "d.ts", "e.ts"].map((file) => hashShard(file, 4));
    expect(shards).toEqual([4, 4, 1, 2, 3]);
    const many = Array.from({ length: 4_000 }, (_, index) => hashShard(`t/${index}.test.ts`, 4));
    for (const shard of [1, 2, 3, 4]) expect(many.filter((its) => its === shard).length).toBeWithin(900, 1_100);
  });
});
