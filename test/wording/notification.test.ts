import { describe, expect, test } from "bun:test";
import { toNotice } from "../../src/wording/notification.ts";

type EventContext = Parameters<typeof toNotice>[0];
const EXECUTION = {
  ...{ id: "e1", key: "k", branch: "feat", commit: "0123456789abcdef", pullRequest: "7", environment: null },
  ...{ buildUrl: "https://ci.test/1", status: "failed", passed: 1, failed: 1, tasks: [] },
};
const NO_WORDS = { commitAuthor: null as string | null, commitSubject: null as string | null };
const notice = (type: string, data: object, failures: object[] = [], knownBugs: object[] = [], commit = NO_WORDS) =>
  toNotice(
    {
      ...commit,
      ...{ type, teamId: "t1", occurredAt: "2026-01-01T00:00:00.000Z", data, failures, knownBugs },
      project: { id: "p1", name: "Web", defaultBranch: "main" },
    } as unknown as EventContext,
    "https://assay.test",
  );
const BUG = {
  ...{ id: "b1", number: 4, title: "Cart is empty", severity: "major", occurrences: 1, taskSlugs: ["unit"] },
  ...{ branch: "main", commit: null, assignee: null },
};
const facts = (of: Record<string, string>) => Object.entries(of).map(([name, value]) => ({ name, value }));
const failure = {
  ...{ suite: "cart", name: "adds", message: "first\nsecond", blame: "new", reason: "why", owners: [], knownBug: null },
};

describe("an execution", () => {
  test("that failed is bad, and its facts, state and addresses are its own", () => {
    expect(notice("execution.failed", { execution: EXECUTION })).toMatchObject({
      ...{ tone: "bad", title: "Web: feat failed", state: "failure", topic: "p1 feat" },
      ...{ branch: "feat", commit: "0123456789abcdef", pullRequest: "7", buildUrl: "https://ci.test/1" },
      facts: facts({ Branch: "feat", Commit: "0123456789ab", "Pull request": "7" }),
    });
  });

  test("names the author and the subject of its commit, as far as they are known", () => {
    const commitOf = (commitAuthor: string | null, commitSubject: string | null) =>
      notice("execution.failed", { execution: EXECUTION }, [], [], { commitAuthor, commitSubject }).facts[1]!.value;
    expect(commitOf("Ada", "Round prices")).toBe("0123456789ab Round prices by Ada");
    expect(commitOf("Ada", "")).toBe("0123456789ab by Ada");
  });

  test.each([
    [[], "Web: feat is green again"],
    [["e2e", "unit"], "Web: feat passed again, and e2e and 1 more are still red"],
  ])("that recovered says what is still red: %j", (stillRed, title) => {
    const execution = { ...EXECUTION, status: "passed", stillRed };
    expect(notice("execution.recovered", { execution })).toMatchObject({ title, tone: "good", state: "success" });
  });

  test.each([
    [{ ...failure }, "cart > adds: first"],
    [{ ...failure, blame: "flaky" }, "cart > adds (known flaky): first"],
    [{ ...failure, blame: "unclear" }, "cart > adds (unclear: why): first"],
    [{ ...failure, owners: ["@cart", "@pay"] }, "cart > adds (@cart, @pay): first"],
    [{ ...failure, blame: "still", owners: ["@cart"] }, "cart > adds (still failing, @cart): first"],
    [{ ...failure, suite: "", message: null }, "adds"],
    [{ ...failure, knownBug: 12 }, "cart > adds (known bug #12): first"],
    [
      { ...failure, blame: "still", knownBug: 12, owners: ["@a"] },
      "cart > adds (still failing, known bug #12, @a): first",
    ],
  ])("has a line for a failure: %j", (one, line) => {
    expect(notice("execution.failed", { execution: EXECUTION }, [one]).lines).toEqual([line]);
  });
});

test.each(["execution.failed", "test_run.completed"])("%s names the known bugs of its failures", (type) => {
  const summary = "c4d5e6f012 by Ada broke it: proof";
  const culprit = { searchId: "s1", commit: "c4d5e6f0127a", author: "Ada", summary };
  const bugs = [
    { id: "b12", number: 12, title: "Cart is empty\nsecond", status: "open", failed: 3, known: true, culprit },
    { id: "b13", number: 13, title: "Slow", status: "in_progress", failed: 1, known: true, culprit: null },
  ];
  const testRun = type === "test_run.completed" ? { testRun: { taskSlug: "unit", verdict: "failed" } } : {};
  const { knownBugs, data } = notice(type, { execution: EXECUTION, ...testRun }, [failure], bugs);
  const urlOf = (id: string) => `https://assay.test/projects/p1/bugs/${id}`;
  expect(knownBugs).toEqual([
    { number: 12, text: 'Known bug #12 "Cart is empty". c4d5e6f012 by Ada broke it: proof', url: urlOf("b12") },
    { number: 13, text: 'Known bug #13 "Slow"', url: urlOf("b13") },
  ]);
  expect(data["knownBugs"]).toEqual(bugs.map(({ known: _, ...bug }) => ({ ...bug, url: urlOf(bug.id) })));
  expect(notice(type, { execution: EXECUTION, ...testRun }, [failure])).not.toHaveProperty("knownBugs");
});

test("the most particular thing of an event gives the words", () => {
  const testRun = { taskSlug: "unit", verdict: "failed" };
  expect(notice("test_run.completed", { execution: EXECUTION, testRun }).title).toBe("Web: unit failed on feat");
  expect(notice("task.missed", { taskSlug: "nightly" }).title).toBe("Web: nightly did not report");
});

test.each([
  ["bug_report.opened", "opened", "bad"],
  ["bug_report.regressed", "is back", "bad"],
  ["bug_report.resolved", "resolved", "good"],
])("%s says that the bug %s", (type, happened, tone) => {
  expect(notice(type, { bugReport: BUG })).toMatchObject({
    ...{ tone, title: `Web: bug #4 ${happened}: Cart is empty`, text: "major, 1 occurrence", topic: "p1 bug 4" },
  });
});

test("bug_report.culprit_found names the commit, what proves it, and its files", () => {
  const bugReport = { ...BUG, owners: ["@cart"] };
  const commit = "c4d5e6f0127a8b9c0d1e2f3a4b5c6d7e8f901234";
  const culprit = {
    ...{ searchId: "s1", summary: "c4d5e6f012 by Ada broke it: it failed there 2 of 2 times", commit, author: "Ada" },
    ...{ date: "2026-01-31T10:00:00Z", subject: "Round prices", files: ["price.ts", "cart.ts"] },
  };
  expect(notice("bug_report.culprit_found", { bugReport, culprit })).toMatchObject({
    ...{ tone: "bad", title: "Web: c4d5e6f012 by Ada broke it: bug #4: Cart is empty", commit, topic: "p1 bug 4" },
    ...{ subject: "c4d5e6f012 by Ada broke it: Cart is empty", text: `Round prices. ${culprit.summary}` },
    facts: facts({
      Commit: commit.slice(0, 12),
      Author: "Ada",
      Files: "price.ts, cart.ts",
      Tasks: "unit",
      Owners: "@cart",
    }),
    data: { culprit: { commit, files: ["price.ts", "cart.ts"] } },
  });
});
