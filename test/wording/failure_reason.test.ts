import { describe, expect, test } from "bun:test";
import { failureReason } from "../../src/wording/failure_reason.ts";
import type { Blame, IncidentSign } from "../../src/schema/failures.ts";

const reason = (
  blame: Blame | null,
  more: { incident?: IncidentSign; ruleName?: string; inARow?: number; flakeRate?: number } = {},
) => failureReason({ blame, incident: null, ruleName: null, inARow: null, flakeRate: null, ...more }, "main");

describe("the reason of a failure", () => {
  test.each([
    [1, 0.06, "Fails 6 % of the time without a code change"],
    [2, 0.06, "Fails 6 % of the time without a code change; 2 failures in a row on this branch have odds of 1 in 280"],
    [3, 0.25, "Fails 25 % of the time without a code change; 3 failures in a row on this branch have odds of 1 in 64"],
    [
      2,
      0.023,
      "Fails 2.3 % of the time without a code change; 2 failures in a row on this branch have odds of 1 in 1,900",
    ],
    [
      40,
      0.02,
      "Fails 2 % of the time without a code change; 40 failures in a row on this branch have odds of 1 in 1,000,000,000",
    ],
  ])("of a flaky test that failed %d times in a row at a rate of %d has its odds", (inARow, flakeRate, sentence) => {
    // It is the same sentence on either side of the bound: the odds are the reason.
    for (const blame of ["flaky", "new"] as const) expect(reason(blame, { inARow, flakeRate })).toBe(sentence);
  });

  test("of other tests is what it was compared with", () => {
    expect(reason("new")).toBe("It did not fail in the baseline or on main since then, and is not known to be flaky");
    expect(reason("still")).toBe("It failed in the baseline");
    expect(reason("main")).toBe("It also fails on main or on a long-lived branch, or did until recently");
    expect(reason("quarantined", { inARow: 2, flakeRate: 0.5 })).toBe("Quarantined: its failures do not count");
    expect(reason("flaky", { flakeRate: 0.04 })).toEndWith("branches before: 4 % of its results");
    expect(reason("flaky", { flakeRate: 0 })).toEndWith("branches before");
  });

  test("part of an incident is how it was recognised", () => {
    expect(reason("incident", { incident: "cause" })).toStartWith("Many tests in several files failed at once");
    expect(reason("incident", { incident: "machine" })).toStartWith("Recent runs on this machine failed");
    expect(reason("incident", { incident: "retries" })).toStartWith("Many tests in this run passed only on retry");
  });

  test("of what was not judged is none", () => {
    expect(reason(null)).toBeNull();
  });
});
