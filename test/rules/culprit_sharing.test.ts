/** Which probes searches share. */

import { describe, expect, test } from "bun:test";
import { type ProbeRequest, shareProbes } from "../../src/rules/culprit_sharing.ts";

const request = (searchId: string, next: string[], bits: Record<string, number>): ProbeRequest => ({
  ...{ searchId, next },
  bitsOf: (hash) => bits[hash] ?? 0,
});
const shared = (...probes: [hash: string, ...searchIds: string[]][]) =>
  probes.map(([hash, ...searchIds]) => ({ hash, searchIds }));

describe("shareProbes", () => {
  test("merges the probes of one commit, as often as both want them", () => {
    const requests = [request("a", ["c", "c", "p"], {}), request("b", ["c", "p", "p"], {})];
    expect(shareProbes(requests, 8)).toEqual(shared(["c", "a", "b"], ["c", "a"], ["p", "a", "b"], ["p", "b"]));
  });

  test("replaces a probe by that of another search which says at least half as much", () => {
    const leading = request("a", ["m"], { m: 0.9 });
    expect(shareProbes([leading, request("b", ["n"], { n: 0.8, m: 0.5 })], 1)).toEqual(shared(["m", "a", "b"]));
    expect(shareProbes([leading, request("b", ["n"], { n: 0.8, m: 0.1 })], 1)).toEqual(shared(["m", "a"], ["n", "b"]));
    // It says too little, but as much as its own: the commit has to be confirmed.
    expect(shareProbes([leading, request("b", ["n"], { n: 0.1, m: 0.1 })], 1)).toEqual(shared(["m", "a"], ["n", "b"]));
  });

  test("lets a search join what says enough in addition, also before its own probes have ended", () => {
    const requests = [
      request("a", ["m"], { m: 0.9, n: 0.3 }),
      request("b", ["n"], { n: 0.8, m: 0.3 }),
      request("c", [], { m: 0.3 }),
    ];
    expect(shareProbes(requests, 1)).toEqual(shared(["m", "a", "b", "c"], ["n", "b", "a"]));
  });

  test("creates no more probes than can begin at once, but one for each search that shares none", () => {
    const requests = [
      request("a", ["k", "l", "m"], {}),
      request("b", ["x", "y", "z"], {}),
      request("c", ["k", "v"], {}),
      request("d", ["w", "v"], {}),
    ];
    expect(shareProbes(requests, 4)).toEqual(shared(["k", "a", "c"], ["l", "a"], ["m", "a"], ["x", "b"], ["w", "d"]));
  });
});
