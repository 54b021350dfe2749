import { describe, expect, test } from "bun:test";
import {
  addPass,
  findSlower,
  mayBeSlower,
  slownessOf,
  TRACKED_MS,
  untrackedHistory,
  usualOf,
} from "../../src/rules/slower.ts";

/** Twenty passes of 500 to 690 ms. */
const USUAL = Array.from({ length: 20 }, (_, index) => 500 + 10 * ((index * 7) % 20));
const COMPARED = { usualMs: 600, longestMs: 690 };

/** On the default branch, after passes of these durations. */
const onMain = (durationMs: number, ...history: number[]) => findSlower({ durationMs, history }, 1);
/** On a branch whose last passes took this long. */
const onBranch = (durationMs: number, ...recent: number[]) => findSlower({ durationMs, history: USUAL, recent }, 1);

describe("slower than usual on the default branch", () => {
  test("is the second result that takes five times as long, and longer than all before", () => {
    expect(onMain(3_000, ...USUAL)).toBeUndefined();
    expect(onMain(3_000, ...USUAL, 3_100)).toEqual(COMPARED);
    expect(onMain(2_999, ...USUAL, 3_100)).toBeUndefined();
    expect(onMain(3_000, ...USUAL, 3_100, 600)).toBeUndefined();
    expect(onMain(3_000, 4_000, ...USUAL, 3_100)).toBeUndefined();
  });

  test("is the third of five results that take three times as long", () => {
    expect(onMain(1_800, ...USUAL, 1_900, 600, 2_000, 500)).toEqual(COMPARED);
    expect(onMain(1_800, ...USUAL, 1_900, 600, 600, 500)).toBeUndefined();
    expect(onMain(1_700, ...USUAL, 1_900, 600, 2_000, 500)).toBeUndefined();
    expect(onMain(600, ...USUAL, 1_900, 2_000, 2_000, 2_000)).toBeUndefined();
  });

  test("is never a duration of a second or less, and needs ten passes before", () => {
    const quick = Array<number>(20).fill(50);
    expect(onMain(1_000, ...quick, 2_000)).toBeUndefined();
    expect(onMain(1_001, ...quick, 2_000)).toEqual({ usualMs: 50, longestMs: 50 });
    expect(onMain(3_000, ...USUAL.slice(0, 10), 3_000)).toBeDefined();
    expect(onMain(3_000, ...USUAL.slice(0, 9), 3_000)).toBeUndefined();
    expect(onMain(3_000)).toBeUndefined();
  });

  test("becomes usual after some builds", () => {
    let history = USUAL;
    const found = Array.from({ length: 60 }, () => {
      const slower = onMain(3_000, ...history) !== undefined;
      history = addPass(history, 3_000);
      return slower;
    });
    expect(found.slice(0, 3)).toEqual([false, true, true]);
    expect(found.lastIndexOf(true)).toBeLessThan(20);
    expect(usualOf(history)).toBe(3_000);
  });
});

describe("slower than usual on a branch", () => {
  test("is confirmed by the results of the branch, not by those of the default branch", () => {
    expect(onBranch(3_000)).toBeUndefined();
    expect(onBranch(3_000, 3_000)).toEqual(COMPARED);
    expect(onBranch(3_000, 3_000, 600)).toBeUndefined();
    expect(onBranch(1_800, 1_800, 1_800)).toEqual(COMPARED);
    expect(findSlower({ durationMs: 3_000, history: [...USUAL, 3_000], recent: [] }, 1)).toBeUndefined();
  });
});

describe("a slow machine", () => {
  const cases = (factor: number, length = 11) =>
    Array.from({ length }, (_, index) => ({ durationMs: (400 + index) * factor, usualMs: 400 + index }));

  test("is one on which most test cases take longer", () => {
    expect(slownessOf(cases(3))).toBe(3);
    expect(slownessOf([...cases(1), { durationMs: 9_000, usualMs: 100 }])).toBe(1);
    expect(slownessOf(cases(3, 9))).toBe(1);
    expect(slownessOf([])).toBe(1);
  });

  test("makes no test case slower, and a fast one neither", () => {
    const compared = { durationMs: 3_000, history: [...USUAL, 3_000] };
    expect(findSlower(compared, 1)).toBeDefined();
    expect(findSlower(compared, 1.5)).toBeUndefined();
    expect(findSlower({ ...compared, durationMs: 4_500 }, 1.5)).toBeDefined();
    expect(findSlower({ ...compared, durationMs: 2_000 }, 0.5)).toBeUndefined();
  });

  test("does not change what is usual", () => {
    expect(addPass([500], 1_500, 3)).toEqual([500, 500]);
    expect(addPass([500], 250, 0.5)).toEqual([500, 250]);
  });
});

test("a history has the last 100 passes", () => {
  let history: number[] = [];
  for (let ms = 1; ms <= 150; ms++) history = addPass(history, ms);
  expect([history.length, history[0], history.at(-1)]).toEqual([100, 51, 150]);
});

test("of a test case that was always quick, the last results of the default branch count, all below the limit", () => {
  expect(untrackedHistory([10, 900, 20], 2)).toEqual([TRACKED_MS - 1, 20]);
  expect(untrackedHistory([10, 20], 5)).toEqual([10, 20]);
  expect(untrackedHistory([10, 20], 0)).toEqual([]);
});

test("a duration is compared with its history only if it may be slower", () => {
  expect([mayBeSlower(1_800, 600), mayBeSlower(1_700, 600), mayBeSlower(1_000, 10)]).toEqual([true, false, false]);
  expect([usualOf(USUAL), usualOf(USUAL.slice(0, 9))]).toEqual([600, undefined]);
});
