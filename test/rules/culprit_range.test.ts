/** The range of a search: the last good and the first bad commit, in the order in which builds arrived. */

import { describe, expect, test } from "bun:test";
import { findSearchRange, type RangeResult } from "../../src/rules/culprit_range.ts";

/** Results from a text, oldest first: "p" passed, "b" failed because of the bug, "f" failed in another way. Commits are numbered. */
const resultsOf = (letters: string): RangeResult[] =>
  [...letters]
    .map((letter, at) => ({
      ...{ executionId: `execution ${at}`, commit: hash(at) },
      ...{ isPassed: letter === "p", isBug: letter === "b" },
    }))
    .reverse();
const hash = (at: number) => String(at).repeat(40).slice(0, 40);

describe("findSearchRange", () => {
  test("lies between the last pass and the first failure after it", () => {
    expect(findSearchRange(resultsOf("ppbbb"))).toEqual({ good: hash(1), bad: hash(2), failure: "execution 2" });
  });

  test("is that of the latest series of failures, also if the test passes by now", () => {
    expect(findSearchRange(resultsOf("pbpbbp"))).toMatchObject({ good: hash(2), bad: hash(3) });
  });

  test("failures in other ways are neither good nor bad", () => {
    expect(findSearchRange(resultsOf("pffbfb"))).toMatchObject({ good: hash(0), bad: hash(3) });
  });

  test.each([
    ["ppp", "none of the stored results of the default branch failed because of it"],
    ["", "none of the stored results of the default branch failed because of it"],
    ["bbb", "no stored result of the default branch passed before it"],
  ])("there is none in %p", (letters, obstacle) => {
    expect(findSearchRange(resultsOf(letters))).toEqual({ obstacle });
  });

  test("there is none if a commit is unknown, or the test passed and failed on the same one", () => {
    const [bad, good] = resultsOf("pb") as [RangeResult, RangeResult];
    expect(findSearchRange([bad, { ...good, commit: null }])).toEqual({
      obstacle: "the commit of the last good build is unknown",
    });
    expect(findSearchRange([{ ...bad, commit: null }, good])).toEqual({
      obstacle: "the commit of the first bad build is unknown",
    });
    expect(findSearchRange([{ ...bad, commit: good.commit!.slice(0, 8) }, good])).toEqual({
      obstacle: "the test passed and failed on the same commit 00000000",
    });
  });

  test("commits that a person names take the place of those that were found", () => {
    expect(findSearchRange(resultsOf("pb"), { good: hash(9) })).toMatchObject({ good: hash(9), bad: hash(1) });
    expect(findSearchRange(resultsOf("bb"), { good: hash(9) })).toMatchObject({ good: hash(9), bad: hash(0) });
    expect(findSearchRange(resultsOf("bb"), { bad: hash(9) })).toHaveProperty("obstacle");
    expect(findSearchRange([], { good: hash(8), bad: hash(9) })).toEqual({
      good: hash(8),
      bad: hash(9),
      failure: null,
    });
  });
});
