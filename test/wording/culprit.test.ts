/** The ends of a search in sentences: only a commit that was confirmed is named as the culprit. */

import { expect, test } from "bun:test";
import type { CommitProbe } from "../../src/rules/culprit.ts";
import { culpritSentence, unfinishedSentence } from "../../src/wording/culprit.ts";

const commits = ["a", "b", "c", "d"].map((letter, at) => ({
  ...{ hash: letter.repeat(40), author: "Ada", date: "2026-01-31T10:00:00Z", subject: `change ${at}` },
}));
const probesOf = (text: string): CommitProbe[] =>
  text.split(" ").map((word, round) => ({
    index: Number(word[0]),
    result: ({ p: "passed", f: "failed", o: "other_failure", n: "no_build" } as const)[word[1] as "p"],
    round,
  }));
const sentence = (verdict: Parameters<typeof culpritSentence>[0]["verdict"], probes: string) =>
  culpritSentence({ commits, probes: probesOf(probes), verdict, isGoodKnown: true });

test("a culprit is named with what proves it", () => {
  expect(sentence({ kind: "culprit", index: 2, chance: 1 }, "2f 1p 2f 1p 1f")).toBe(
    "cccccccccc by Ada broke it: it failed there 2 of 2 times, on its parent bbbbbbbbbb it passed 2 of 3 times",
  );
});

test("the environment is blamed with what proves it", () => {
  expect(sentence({ kind: "environment", reason: "good_fails", chance: 1 }, "0f 0f")).toBe(
    "Not the code of these commits: the good commit fails today as well, 2 of 2 times: aaaaaaaaaa change 0",
  );
  expect(sentence({ kind: "environment", reason: "bad_passes", chance: 1 }, "3p 3p")).toBe(
    "Not the code: the bad commit passed 2 of 2 times: dddddddddd change 3",
  );
});

test("what is not proven is not named", () => {
  const left = { kind: "undecided" as const, candidates: [2, 3], chance: 0.97 };
  expect(sentence({ ...left, reason: "no_result" }, "1p 2n 3f")).toBe(
    "Cannot tell which of these 2 commits broke it: 1 of them has no result",
  );
  expect(sentence({ ...left, reason: "budget" }, "1p 3f")).toBe(
    "Cannot tell after 2 probes: at 97 % it is one of 2 commits",
  );
});

test("a search that its probes have not ended says why", () => {
  const likely = { candidates: [1, 2], chance: 0.961 };
  expect(unfinishedSentence({ reason: "time", maxMinutes: 60 }, 12, likely)).toBe(
    "Cannot tell after 12 probes in 60 minutes: at 96 % it is one of 2 commits",
  );
  expect(unfinishedSentence({ reason: "no_runner", maxMinutes: 1 }, 0, likely)).toBe(
    "Cannot tell: no runner took a probe within 1 minute",
  );
  expect(unfinishedSentence({ reason: "no_commits", maxMinutes: 60 }, 0, undefined)).toBe(
    "Cannot tell: no runner could list the commits of the range",
  );
});
