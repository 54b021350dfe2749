import { describe, expect, test } from "bun:test";
import { countUnrun, type FileQueue, newQueue, nextBatch, orderFiles, releaseShard } from "../../src/rules/batches.ts";
import { simulateSplit } from "../splitting.ts";

const take = (queue: FileQueue, shard: number, holder = `job ${shard}`, minMs = 0) =>
  nextBatch(queue, { shard, holder, minMs });
const tens = (count: number) => Array.from({ length: count }, () => 10);

describe("files that are split while they run", () => {
  test("go longest first; new ones take as long as the median, and each takes some time", () => {
    expect(
      orderFiles([
        { file: "b", ms: 0 },
        { file: "new", ms: null },
        { file: "a", ms: 30 },
        { file: "c", ms: 10 },
      ]),
    ).toEqual([
      { file: "a", ms: 30 },
      { file: "c", ms: 10 },
      { file: "new", ms: 10 },
      { file: "b", ms: 1 },
    ]);
    expect(orderFiles([{ file: "new", ms: null }])).toEqual([{ file: "new", ms: 1 }]);
  });

  test("go in batches that become smaller, each file once, until none is left", () => {
    let queue = newQueue(tens(100), 4);
    const sizes: number[] = [];
    const seen = new Set<number>();
    for (let at = 0; ; at++) {
      const next = take(queue, 1 + (at % 4));
      queue = next.queue;
      if (next.files.length === 0) break;
      for (const file of next.files) expect(seen.has(file)).toBeFalse();
      for (const file of next.files) seen.add(file);
      sizes.push(next.files.length);
    }
    expect(seen.size).toBe(100);
    expect(sizes.slice(0, 4)).toEqual([13, 13, 13, 13]);
    expect(sizes.slice(4)).toEqual(sizes.slice(4).toSorted((a, b) => b - a));
    expect(sizes.at(-1)).toBe(1);
  });

  test("are at least as many as take the least time of a batch", () => {
    const { files } = take(newQueue(tens(100), 50), 1, "a", 45);
    expect(files).toHaveLength(5);
  });

  test("are acknowledged by the next call, and what is not is told", () => {
    const first = take(newQueue(tens(10), 2), 1);
    expect(countUnrun(first.queue, 1)).toEqual({ own: first.files.length, waiting: 10 - first.files.length });
    const second = take(first.queue, 1);
    expect(countUnrun(second.queue, 1).own).toBe(second.files.length);
    expect(countUnrun(second.queue, 2)).toEqual({ own: 0, waiting: 10 - first.files.length - second.files.length });
  });

  test("of a job that starts again wait again, with those that it had run; of others they do not", () => {
    let { queue, files } = take(newQueue(tens(10), 2), 1);
    const other = take(queue, 2).files;
    queue = take(queue, 2).queue;
    queue = take(queue, 1).queue;
    const again = take(queue, 1, "job 1 again");
    expect(again.files).toEqual(files);
    expect(countUnrun(again.queue, 2).own).toBe(other.length);
    const released = releaseShard(again.queue, 1);
    expect(countUnrun(released, 1)).toEqual({ own: 0, waiting: 10 - other.length });
  });
});

describe("three hundred files on eight uneven machines", () => {
  const seeds = Array.from({ length: 20 }, (_, seed) => seed + 1);
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
  const measure = (options: Partial<Parameters<typeof simulateSplit>[0]>) =>
    median(seeds.map((seed) => simulateSplit({ seed, files: 300, machines: 8, ...options })));

  test("end within 1.10 of the bound, and a plan made beforehand does not", () => {
    expect(measure({ way: "queue" })).toBeLessThan(1.1);
    expect(measure({ way: "plan" })).toBeGreaterThan(1.15);
  });

  test("end within 1.25 where one of them dies", () => {
    expect(measure({ way: "queue", dies: true })).toBeLessThan(1.25);
  });

  test("end within 1.10 on even machines with 15 new files, by a plan that knows their names", () => {
    const even = { way: "plan", isEven: true, fresh: 15 } as const;
    expect(measure(even)).toBeLessThan(1.1);
    expect(measure({ ...even, way: "plan without new files" })).toBeGreaterThan(measure(even));
  });
});
