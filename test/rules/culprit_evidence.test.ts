/** What stored results say in a search, and which commits have something in common with the test. */

import { describe, expect, test } from "bun:test";
import { findOverlaps, mayShare, type StoredProbe, toEvidence } from "../../src/rules/culprit_evidence.ts";

const hashes = Array.from({ length: 6 }, (_, at) => String(at).repeat(40));
const probe = (at: number, result: StoredProbe["result"], round: number, isWanted = true): StoredProbe => ({
  ...{ commit: hashes[at]!, result, isWanted, isShared: false, isCancelled: false },
  createdAt: `2026-01-31T12:00:0${round}.000Z`,
});

describe("toEvidence", () => {
  test("probes that were created at the same time are one round, and later ones a later one", () => {
    const probes = [probe(1, "passed", 2), probe(3, "failed", 2), probe(2, "failed", 5), probe(4, null, 7)];
    expect(toEvidence(hashes, probes, [])).toEqual([
      { index: 1, result: "passed", round: 0 },
      { index: 3, result: "failed", round: 0 },
      { index: 2, result: "failed", round: 1 },
    ]);
  });

  test("a failure with another fingerprint is another failure", () => {
    expect(toEvidence(hashes, [probe(1, "failed", 0, false)], [])).toEqual([
      { index: 1, result: "other_failure", round: 0 },
    ]);
  });

  test("a commit has no result after two probes without one, because the first may have lost its runner", () => {
    const one = [probe(2, "no_result", 0)];
    expect(toEvidence(hashes, one, [])).toEqual([]);
    expect(toEvidence(hashes, [...one, probe(2, "no_result", 1)], [])).toEqual([
      { index: 2, result: "no_build", round: 1 },
    ]);
    expect(toEvidence(hashes, [probe(2, "no_build", 0)], [])).toEqual([{ index: 2, result: "no_build", round: 0 }]);
  });

  test("earlier results count without a round, except those by which the range was chosen", () => {
    const earlier = [0, 1, 5].map((at) => ({
      commit: hashes[at]!.slice(0, 8),
      result: "passed" as const,
      isWanted: false,
    }));
    expect(toEvidence(hashes, [], earlier)).toEqual([{ index: 1, result: "passed" }]);
  });

  test("a commit that is not in the range says nothing", () => {
    expect(toEvidence(hashes, [{ ...probe(1, "passed", 0), commit: "a".repeat(40) }], [])).toEqual([]);
  });
});

test("a test that had no result beside others is run alone, unless the probe was cancelled", () => {
  const shared = { ...probe(1, "no_result", 0), isShared: true };
  expect(mayShare([probe(1, "no_result", 0), { ...probe(2, "passed", 1), isShared: true }])).toBe(true);
  expect(mayShare([shared])).toBe(false);
  expect(mayShare([{ ...shared, isCancelled: true }])).toBe(true);
});

describe("findOverlaps", () => {
  const overlapsOf = (files: string[], named: string[], owned: string[] = []) =>
    findOverlaps([{ files }], { named, isOwned: (file) => owned.includes(file) })[0];

  test("of a commit that changes the file of the test, wherever its path begins", () => {
    expect(overlapsOf(["packages/cart/cart.test.ts"], ["cart.test.ts"])).toBe("test");
    expect(overlapsOf(["src/cart.ts"], ["/home/ci/build/src/cart.ts"])).toBe("test");
    expect(overlapsOf(["src\\cart.ts"], ["./src/cart.ts"])).toBe("test");
  });

  test("of none whose file only ends in the same letters, or without a known file", () => {
    expect(overlapsOf(["src/shopcart.ts"], ["cart.ts"])).toBe("none");
    expect(overlapsOf(["src/cart.ts"], [""])).toBe("none");
  });

  test("of one that changes only files of the owner", () => {
    expect(overlapsOf(["cart/a.ts", "b.ts"], ["x.ts"], ["cart/a.ts"])).toBe("owner");
    expect(overlapsOf(["cart/a.ts", "x.ts"], ["x.ts"], ["cart/a.ts"])).toBe("test");
  });
});
