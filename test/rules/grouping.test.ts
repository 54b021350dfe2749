/** Pairs of failures as tools write them, of one cause or of two: how many the fingerprints tell right. */

import { describe, expect, test } from "bun:test";
import { caseFingerprint, fingerprint } from "../../src/rules/fingerprint.ts";
import table from "./grouping.json";

type Told = string | { message: string; stack: string };
/** `half` 2 was written before the rules, and looked at when they were done: then they had a precision of 1, a recall of 0.93; `test` one: both failures are of one test. */
type Pair = { half: number; cause: string; test?: string; a: Told; b: Told };

const PAIRS = table as Pair[];

const digestsOf = (told: Told, testCase: number): string[] => {
  const { message, stack } = typeof told === "string" ? { message: told, stack: null } : told;
  const name = `test ${testCase}`;
  const failure = { message, stack, kind: "failure", suite: "s", name, file: "test/a.test.ts", testCase };
  return [fingerprint(failure), caseFingerprint(failure)].flatMap((mark) => mark?.digest ?? []);
};

/** Every failure with every other one: those of two pairs have two causes. */
function measure(pairs: readonly Pair[]) {
  const failures = pairs.flatMap(({ cause, test, a, b }, index) => [
    { index, cause, told: a, digests: digestsOf(a, 2 * index) },
    { index, cause, told: b, digests: digestsOf(b, 2 * index + (test === "one" ? 0 : 1)) },
  ]);
  const wrong: string[] = [];
  let [joined, right, same] = [0, 0, 0];
  failures.forEach((a, at) => {
    for (const b of failures.slice(at + 1)) {
      const isOne = a.index === b.index && a.cause === "same";
      const isJoined = a.digests.some((digest) => b.digests.includes(digest));
      if (isOne) same++;
      if (isJoined) joined++;
      if (isOne && isJoined) right++;
      if (isOne !== isJoined) wrong.push(`${isJoined ? "joined" : "split"}: ${JSON.stringify([a.told, b.told])}`);
    }
  });
  return { precision: right / joined, recall: right / same, wrong };
}

test("the table has 200 failures, as many of one half as of the other", () => {
  expect(PAIRS.map(({ half }) => half).filter((half) => half === 1)).toHaveLength(50);
  expect(PAIRS).toHaveLength(100);
});

describe.each([
  ["that the rules were made with", (pair: Pair) => pair.half === 1],
  ["that was held out", (pair: Pair) => pair.half === 2],
  ["and all of it", () => true],
])("the half %s", (_, isOf) => {
  test("is told right", () => {
    const { precision, recall, wrong } = measure(PAIRS.filter(isOf));
    if (precision < 0.97 || recall < 0.95) throw new Error(`${precision} ${recall}\n${wrong.join("\n")}`);
  });
});
