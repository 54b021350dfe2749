import { describe, expect, test } from "bun:test";
import { isOutageRun } from "../../src/rules/run_outcome.ts";
import { findRenamed } from "../../src/rules/rename.ts";

const at = (file: string | null, name = "works", suite = "") => ({ suite, name, file });
const files = (...names: string[]) => new Set(names);

describe("a new case is a known one", () => {
  test("when its file kept its name and moved", () => {
    expect(findRenamed([at("b/cart.ts")], [at("a/cart.ts")], files(), false)).toEqual([[0, 0]]);
  });

  test("when, in a whole report, the old file is gone and the new one holds only new cases", () => {
    expect(findRenamed([at("basket.ts")], [at("cart.ts")], files("other.ts"), true)).toEqual([[0, 0]]);
  });
});

describe("a report that names files otherwise", () => {
  test("has the same cases: an absolute path ends with the path within the repository", () => {
    const absolute = [at("/home/ci/shop/a/cart.ts"), at("/home/ci/shop/a/admin/cart.ts")];
    const known = [at("a/admin/cart.ts"), at("a/cart.ts")];
    expect(findRenamed(absolute, known, files(), false).sort()).toEqual([
      [0, 1],
      [1, 0],
    ]);
    expect(findRenamed(known, absolute, files(), false).sort()).toEqual([
      [0, 1],
      [1, 0],
    ]);
  });

  test("has the same case, when it names no file and there is only one of the name", () => {
    expect(findRenamed([at(null)], [at("a/cart.ts")], files(), false)).toEqual([[0, 0]]);
    expect(findRenamed([at("a/cart.ts")], [at(null)], files(), false)).toEqual([[0, 0]]);
  });

  test.each([
    ["two have a claim on one", [at("/x/a.ts"), at("/y/a.ts")], [at("a.ts")]],
    ["there are two without a file", [at(null), at(null)], [at("a.ts")]],
    ["there are two files for one without", [at(null)], [at("a.ts"), at("b.ts")]],
    ["the path only ends alike", [at("/x/my-cart.ts")], [at("cart.ts")]],
  ])("has others, when %s", (_, fresh, known) => {
    expect(findRenamed(fresh, known, files("a.ts", "cart.ts"), true)).toEqual([]);
  });
});

describe("it is not", () => {
  test.each([
    ["when the report is only a part", [at("basket.ts")], [at("cart.ts")], files(), false],
    ["when the old file is still there", [at("basket.ts")], [at("cart.ts")], files("cart.ts"), true],
    ["when the new file holds known cases", [at("basket.ts")], [at("cart.ts")], files("basket.ts"), true],
    ["when two known cases could be it", [at("c/cart.ts")], [at("a/cart.ts"), at("b/cart.ts")], files(), true],
    ["when two new cases could be it", [at("b/cart.ts"), at("c/cart.ts")], [at("a/cart.ts")], files(), true],
    ["when suite or name differ", [at("b/cart.ts", "adds")], [at("a/cart.ts")], files(), true],
    ["when there is no file to tell", [at(null)], [at(null)], files(), true],
  ] as const)("%s", (_, fresh, known, there, isWhole) => {
    expect(findRenamed(fresh, known, there, isWhole)).toEqual([]);
  });
});

test.each([
  [{ passed: 0, failed: 10, skipped: 0 }, true],
  [{ passed: 0, failed: 9, skipped: 0 }, false],
  [{ passed: 20, failed: 80, skipped: 0 }, false],
  [{ passed: 19, failed: 81, skipped: 0 }, true],
] as const)("%p is an outage: %p", (counts, expected) => expect(isOutageRun(counts)).toBe(expected));
