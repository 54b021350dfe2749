import { describe, expect, test } from "bun:test";
import { countStatuses, mergeBlock, removeFromBlock, type ResultBlock } from "../../src/rules/merge.ts";

/** Letters of the test cases 0, 1, 2 …; a space is "not in this upload". */
const results = (letters: string) =>
  [...letters].flatMap((letter, testCase) => (letter === " " ? [] : [{ testCase, letter, durationMs: testCase }]));

/** The block of uploads, each as its letters and the number of its attempt: "pfs 1, p 2". */
const merged = (uploads: string) =>
  uploads
    .split(", ")
    .reduce<ResultBlock | undefined>(
      (old, upload) => mergeBlock(0, old, results(upload.slice(0, -2)), Number(upload.at(-1))),
      undefined,
    )!;

test("the worse of two results of one case counts, in a first upload as well", () => {
  const twice = [..."pfp"].map((letter, index) => ({ testCase: 7, letter, durationMs: index }));
  expect(mergeBlock(0, undefined, twice, 1)).toEqual({
    block: 0,
    testCases: [7],
    statuses: "f",
    attempts: null,
    durations: [1],
  });
});

describe("merging attempts", () => {
  test.each([
    ["the latest result counts", "ppf 1, pfp 2", "pfP"],
    ["what is missing stays", "pfs 1,  p  2", "pPs"],
    ["flaky stays flaky", "f 1, p 2, p 3", "P"],
    ["flaky that fails again is failed", "f 1, p 2, f 3", "F"],
    ["and flaky when it passes again", "f 1, p 2, f 3, p 4", "P"],
    ["a failure is remembered through a skip", "f 1, s 2, p 3", "P"],
    ["skipped, then passed is no flake", "s 1, p 2", "p"],
    ["an earlier attempt that comes late does not count", "p 2, f 1", "P"],
    ["flaky within one report stays so", "P 1", "P"],
  ])("%s", (_, uploads, statuses) => {
    expect(merged(uploads).statuses).toBe(statuses);
  });
});

describe("merging shards of one attempt", () => {
  test.each([
    ["p", "f", "f"],
    ["s", "p", "p"],
    ["s", "f", "f"],
    ["P", "p", "P"],
    ["P", "f", "f"],
    ["p", "p", "p"],
  ])("%s and %s are %s, in either order", (one, two, result) => {
    expect(merged(`${one} 1, ${two} 1`).statuses).toBe(result);
    expect(merged(`${two} 1, ${one} 1`).statuses).toBe(result);
  });
});

test("a block keeps its cases in order, and attempts only when there are several", () => {
  expect(merged(" p p 1, p 1")).toEqual({
    ...{ block: 0, testCases: [0, 1, 3], statuses: "ppp", attempts: null, durations: [0, 1, 3] },
  });
  expect(merged("pp 1,  p 2").attempts).toEqual([1, 2]);
});

test("a case can be taken out of its block", () => {
  const block = merged("pfs 1, p 2");
  expect(removeFromBlock(block, 1)).toEqual({
    ...{ block: 0, testCases: [0, 2], statuses: "ps", attempts: [2, 1], durations: [0, 2] },
  });
  expect(removeFromBlock(block, 9)).toEqual(block);
  expect(removeFromBlock(merged("p 1"), 0)).toBeUndefined();
});

test("counts passed, failed, skipped, and the flaky ones among the passed", () => {
  expect(countStatuses("ppPffFcsS")).toEqual({ passed: 3, failed: 4, skipped: 2, flaky: 1, through: 1 });
});
