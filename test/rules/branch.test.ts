import { describe, expect, test } from "bun:test";
import { isLongLived, lineOf, resolveBranch, trainRef } from "../../src/rules/branch.ts";

test.each([
  ["main", "main", true],
  ["main2", "main", false],
  ["release/1.2", "release/*", true],
  ["release/", "release/*", true],
  ["a", "a*a", false],
  ["aba", "a*a", true],
  ["x1y2z", "x*y*z", true],
  ["xzy", "x*y*z", false],
  ["a.b", "a?b", false],
  ["anything", "*", true],
  // A regular expression would try all ways to distribute the text among the stars.
  [`${"a".repeat(400)}c`, "a*a*a*a*a*a*a*b", false],
])("%s is a long-lived branch by %s: %p", (branch, pattern, expected) => {
  expect(isLongLived(branch, [pattern])).toBe(expected);
});

const SHA = "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432";

describe("a build of a merge queue", () => {
  test.each([
    [`gh-readonly-queue/main/pr-12-${SHA}`, "main", "12"],
    [`gh-readonly-queue/release/2.x/pr-7-${SHA}`, "release/2.x", "7"],
    // A base branch may look like the end of such a name.
    [`gh-readonly-queue/fix/pr-1-abcdef0/pr-7-${SHA}`, "fix/pr-1-abcdef0", "7"],
  ])("%s is a build of a pull request against its base branch", (branch, baseBranch, pullRequest) => {
    expect(resolveBranch({ branch })).toEqual({ branch: null, pullRequest, baseBranch, queueRef: branch });
  });

  test("of a merge train names its base branch beside it, or none", () => {
    const branch = trainRef("31");
    expect(branch).toBe("refs/merge-requests/31/train");
    expect(resolveBranch({ branch })).toEqual({ branch: null, pullRequest: "31", baseBranch: null, queueRef: branch });
    expect(resolveBranch({ branch, baseBranch: "develop" })).toMatchObject({
      pullRequest: "31",
      baseBranch: "develop",
    });
  });

  test("keeps the name of the pull request that the upload gives", () => {
    expect(resolveBranch({ branch: `gh-readonly-queue/main/pr-12-${SHA}`, pullRequest: "PR-12" })).toMatchObject({
      pullRequest: "PR-12",
    });
  });

  test("is a line of its own", () => {
    expect(lineOf({ branch: null, pullRequest: "12" }, "main")).toBe("pull/12");
  });
});

test.each([
  "main",
  `gh-readonly-queue/pr-12-${SHA}`,
  "gh-readonly-queue/main/pr-12",
  `gh-readonly-queue/main/pr-twelve-${SHA}`,
  `my/gh-readonly-queue/main/pr-12-${SHA}`,
  "refs/merge-requests/31/head",
])("%s is a branch", (branch) => {
  expect(resolveBranch({ branch, pullRequest: null, baseBranch: "main" })).toEqual({
    ...{ branch, pullRequest: null, baseBranch: null, queueRef: null },
  });
});
