import { expect, test } from "bun:test";
import { BLAME_ORDER, isBlame, toCounts, toLists, WORD_OF } from "../../src/rules/blame.ts";
import { BLAME_PHRASES, blameCountWords } from "../../src/wording/blame.ts";
import type { Blame } from "../../src/schema/failures.ts";

const LISTS: [Blame, string, string, string][] = [
  ["new", "newFailures", "new", "new"],
  ["unclear", "unclearFailures", "unclear", "unclear"],
  ["main", "alsoFailingOnMain", "also_failing_on_main", "failing on the default branch too"],
  ["still", "stillFailing", "still_failing", "still failing"],
  ["flaky", "flakyFailures", "flaky", "known flaky"],
  ["incident", "incidentFailures", "incident", "part of an incident"],
  ["quarantined", "quarantinedFailures", "quarantined", "quarantined"],
];
const failure = (blame: Blame) =>
  ({ id: blame, suite: "s", name: blame, blame, flakeRate: 0.5, lastFlakyAt: "2026-01-01T00:00:00.000Z" }) as never;

test.each(LISTS)("%s is listed in %s, and has its own words", (blame, list, word, short) => {
  expect<unknown[]>([isBlame(blame), WORD_OF[blame], BLAME_PHRASES[blame]]).toEqual([true, word, short]);
  const lists = toLists([failure(blame)]);
  const filled = Object.entries(lists).filter(([, failures]) => failures.length > 0);
  expect(filled.map(([name]) => name)).toEqual([list]);
  expect("flakeRate" in filled[0]![1][0]!).toBe(blame === "flaky");
  const counts = toCounts({ [blame]: 3 });
  expect(Object.entries(counts).filter(([, count]) => count !== 0)).toEqual([[list, 3]]);
  expect(blameCountWords(counts)).toBe(`3 ${short}`);
});

test("every blame has its place in the order, and what a build has to answer for comes first", () => {
  expect([...BLAME_ORDER]).toEqual(LISTS.map(([blame]) => blame));
  expect(["", "also_failing_on_main"].filter(isBlame)).toEqual([]);
});

test("several counts are one text, and none are an empty one", () => {
  expect(blameCountWords(toCounts({ flaky: 2, new: 1 }))).toBe("1 new, 2 known flaky");
  expect(blameCountWords({})).toBe("");
});
