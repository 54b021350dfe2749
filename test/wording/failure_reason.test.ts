import { describe, expect, test } from "bun:test";
import { failureReason } from "../../src/wording/failure_reason.ts";
import type { ExplanationKind } from "../../src/rules/odds_facts.ts";
import type { Blame, OddsEvidence } from "../../src/schema/failures.ts";

const EVIDENCE: OddsEvidence = {
  ...{ failed: 0, results: 40, inARow: 1, passedAtCommit: false },
  ...{ base: "passed", siblings: 0, elsewhere: 0, onlyIn: null, isNewMessage: false, isSeenLater: false },
};
const reason = (
  blame: Blame | null,
  change: number,
  more: Partial<OddsEvidence> = {},
  ruleName: string | null = null,
) => failureReason({ blame, ruleName, change, evidence: { ...EVIDENCE, ...more } }, "main");

describe("the reason of a failure", () => {
  test.each<[Blame, number, Partial<OddsEvidence>, string]>([
    ["new", 0.97, {}, "It passed in all 40 results of other builds: 97 % this change"],
    [
      ...(["new", 0.8, { failed: 3, inARow: 4 }] as const),
      "It failed in 3 of 40 results of other builds, failed 4 times in a row on this branch: 80 % this change",
    ],
    ["still", 0, { base: "this cause" }, "It failed in the baseline, with the same message: 99 % not this change"],
    [
      ...(["incident", 0.01, {}] as const),
      "Many tests failed together in this run, for a cause outside the code: 99 % not this change",
    ],
  ])("in the list %s with a share of %d of the change has its counts and its odds", (blame, change, more, sentence) => {
    expect(reason(blame, change, more)).toBe(sentence);
  });

  test.each<[Partial<Record<ExplanationKind, number>>, Partial<OddsEvidence>, string]>([
    [{ flaky: 0.6, inherited: 0.1 }, { failed: 3 }, "It failed in 3 of 40 results of other builds"],
    [{ inherited: 0.7 }, { base: "other cause" }, "It failed in the baseline, with another message"],
  ])(
    "that is unclear is the strongest explanation beside the change, and says what tells: %j",
    (more, about, words) => {
      const shares = { change: 0.3, flaky: 0, inherited: 0, outside: 0, ...more };
      const judged = { blame: "unclear", ruleName: null, change: 0.3, shares } as const;
      expect(failureReason({ ...judged, evidence: { ...EVIDENCE, ...about } })).toBe(
        `${words}: 70 % not this change; a rerun tells`,
      );
    },
  );

  test("that is unclear, though the change is the likeliest explanation, is that of the change", () => {
    const shares = { change: 0.58, flaky: 0.4, inherited: 0.02, outside: 0 };
    const judged = { blame: "unclear", ruleName: null, change: 0.58, shares, evidence: EVIDENCE } as const;
    expect(failureReason(judged)).toBe("It passed in all 40 results of other builds: 58 % this change; a rerun tells");
  });

  test("of a quarantined test, or one that matches a rule, is that alone", () => {
    expect(reason("quarantined", 0.9)).toBe("Quarantined: its failures do not count");
    expect(reason("incident", 0.9, {}, "Registry")).toBe('Matches the infrastructure rule "Registry"');
  });
});
