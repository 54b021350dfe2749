/** Which probes searches share. */

import { describe, expect, test } from "bun:test";
import { type ProbeWish, shareProbes } from "../../src/rules/culprit_sharing.ts";

const wish = (searchId: string, next: string[], bits: Record<string, number>, left = 30): ProbeWish => ({
  ...{ searchId, next, left },
  bitsOf: (hash) => bits[hash] ?? 0,
});
const shared = (...probes: [hash: string, ...searchIds: string[]][]) =>
  probes.map(([hash, ...searchIds]) => ({ hash, searchIds }));

describe("shareProbes", () => {
  test("merges the probes of one commit, as often as both want them", () => {
    const wishes = [wish("a", ["c", "c", "p"], {}), wish("b", ["c", "p", "p"], {})];
    expect(shareProbes(wishes, 8)).toEqual(shared(["c", "a", "b"], ["c", "a"], ["p", "a", "b"], ["p", "b"]));
  });

  test("replaces a probe by that of another search which says at least half as much", () => {
    const leading = wish("a", ["m"], { m: 0.9 });
    expect(shareProbes([leading, wish("b", ["n"], { n: 0.8, m: 0.5 })], 1)).toEqual(shared(["m", "a", "b"]));
    expect(shareProbes([leading, wish("b", ["n"], { n: 0.8, m: 0.1 })], 1)).toEqual(shared(["m", "a"], ["n", "b"]));
    // It says too little, but as much as its own: the commit has to be confirmed.
    expect(shareProbes([leading, wish("b", ["n"], { n: 0.1, m: 0.1 })], 1)).toEqual(shared(["m", "a"], ["n", "b"]));
  });

  test("lets a search join what says enough in addition, also before its own probes have ended", () => {
    const wishes = [
      wish("a", ["m"], { m: 0.9, n: 0.3 }),
      wish("b", ["n"], { n: 0.8, m: 0.3 }),
      wish("c", [], { m: 0.3 }),
    ];
    expect(shareProbes(wishes, 1)).toEqual(shared(["m", "a", "b", "c"], ["n", "b", "a"]));
  });

  test("does not exceed the budget of a search", () => {
    const wishes = [
      wish("a", ["m"], { m: 0.9, n: 0.9 }, 1),
      wish("b", ["n"], { n: 0.9, m: 0.1 }, 1),
      wish("c", [], { m: 0.9, n: 0.9 }, 0),
    ];
    expect(shareProbes(wishes, 8)).toEqual(shared(["m", "a"], ["n", "b"]));
  });

  test("creates no more probes than can begin at once, but one for each search that shares none", () => {
    const wishes = [
      wish("a", ["k", "l", "m"], {}),
      wish("b", ["x", "y", "z"], {}),
      wish("c", ["k", "v"], {}),
      wish("d", ["w", "v"], {}),
    ];
    expect(shareProbes(wishes, 4)).toEqual(shared(["k", "a", "c"], ["l", "a"], ["m", "a"], ["x", "b"], ["w", "d"]));
  });
});
