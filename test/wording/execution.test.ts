import { describe, expect, test } from "bun:test";
import {
  executionHeadline,
  executionLine,
  executionOutcome,
  type ExecutionFigures,
} from "../../src/wording/execution.ts";

const figures = (more: Partial<ExecutionFigures>): ExecutionFigures => ({
  ...{ status: "failed", mode: "run", newFailures: 0, unclearFailures: 0, failed: 0, passed: 0 },
  ...{ flaky: 0, skipped: 0, tasks: 1, openTasks: 0, outageFailures: 0, redTasks: [] },
  ...more,
});

describe("in a list", () => {
  test.each<[Partial<ExecutionFigures>, string]>([
    [{ status: "running", tasks: 5, openTasks: 2 }, "running, 3 of 5 tasks"],
    [{ status: "running", tasks: 5, openTasks: 2, failed: 1 }, "running, 3 of 5 tasks, 1 failure so far"],
    [{ status: "running", mode: "report", passed: 1 }, "waiting for more reports, 1 test so far"],
    [{ status: "cancelled", failed: 2 }, "cancelled"],
    [{ failed: 3, newFailures: 3 }, "3 new failures"],
    [{ failed: 3, newFailures: 1 }, "1 new failure, 2 known"],
    [{ failed: 3, newFailures: 1, unclearFailures: 1 }, "1 new failure, 1 unclear, 1 known"],
    [{ failed: 3, unclearFailures: 2 }, "2 unclear failures, 1 known"],
    [{ failed: 2 }, "2 known failures"],
    [{ failed: 12, outageFailures: 10, newFailures: 1 }, "an outage: 10 failures, 1 new failure, 1 known failure"],
    [{ status: "passed", passed: 1_210, flaky: 1 }, "1,210 passed, 1 flaky"],
    [{ status: "passed" }, "nothing ran"],
    [{ status: "failed", tasks: 0 }, "Failed without results"],
  ])("an execution with %j: %s", (more, words) => {
    expect(executionOutcome(figures(more))).toBe(words);
  });
});

describe("as the headline of its page", () => {
  type Headline = Parameters<typeof executionHeadline>[0];
  const task = (more: object) =>
    ({
      ...{ slug: "e2e", status: "failed", attempt: 1, shards: 1, namedShards: [], completedAt: "2026-01-31T10:00:00Z" },
      ...{ passed: 4, failed: 0, skipped: 0, flaky: 0, durationMs: 0, verdict: "failed", reason: null, flaws: null },
      ...{ outage: false, ...more },
    }) as Headline["execution"]["tasks"][number];
  const words = (status: Headline["execution"]["status"], tasks: object[], counts: Headline["counts"] = {}) =>
    executionHeadline({
      execution: { status, durationMs: 8_300, tasks: tasks.map(task) },
      ...{ counts, baseline: { text: "#412", href: "/412" }, defaultBranch: "main", flaky: "1 flaky" },
    })
      .map((word) => (typeof word === "string" ? word : word.text))
      .join("");

  test("new failures come first, then the known ones", () => {
    expect(words("failed", [{ failed: 4 }], { new: 3, main: 1 })).toBe(
      "3 new failures since #412, 1 also failing on main",
    );
    expect(words("failed", [{ failed: 4 }], { new: 1, unclear: 2, flaky: 1 })).toBe(
      "1 new failure since #412, 2 unclear, 1 known flaky",
    );
    expect(words("failed", [{ failed: 2 }], { unclear: 1, still: 1 })).toBe(
      "1 unclear failure since #412, 1 still failing",
    );
    expect(words("failed", [{ failed: 2 }], { still: 2 })).toBe("Nothing new since #412: 2 still failing");
  });

  test("without failures it is what passed, what ran, or how far it is", () => {
    const passed = { status: "passed", verdict: "passed" };
    expect(words("passed", [passed])).toBe("4 passed in 8.3 s");
    expect(words("passed", [{ ...passed, flaky: 1 }])).toBe("4 passed in 8.3 s, 1 flaky");
    expect(words("passed", [{ ...passed, passed: 0, skipped: 2 }])).toBe("All tests were skipped");
    expect(words("running", [passed, { status: "running" }])).toBe("Running, 1 of 2 tasks");
    expect(words("failed", [{}])).toBe("Failed: e2e: failed without a failing test");
    expect(words("failed", [{ failed: 9, passed: 1, outage: true }, passed])).toBe(
      "An outage of e2e: 9 of 10 tests failed",
    );
  });
});

test("one line of text is one line, whatever its texts hold", () => {
  const execution = {
    ...{ status: "failed", key: "4\n12", branch: "main", passed: 3, failed: 1, skipped: 0, reason: null },
    ...{ url: "https://assay.example/e", tasks: [{ slug: "e2e", status: "timed_out", missingShards: [] }] },
  } as unknown as Parameters<typeof executionLine>[0];
  expect(executionLine(execution)).toBe(
    "FAILED 4 12 on main: 3 passed, 1 failed, 0 skipped; e2e without report https://assay.example/e\n",
  );
});
